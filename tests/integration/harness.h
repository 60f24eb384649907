/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage for bad peers: a live provider or consumer under test, somebody who throws raw bytes at
 * it, and a good second peer that has to be served meanwhile. It stands in the virtual world or on
 * real sockets, and a row of the table of faults is written once for all of them. Nothing depends
 * on how fast the machine is: what comes is waited for, with the patience of a busy machine.
 *
 *     static void row_xx(struct stage *stage)
 *     {
 *             struct raw *raw = stage_raw_to_provider(stage);
 *             ...
 *     }
 *
 * Where a check fails, the test ends, and the stage is torn down all the same.
 */
#ifndef TESTS_INTEGRATION_HARNESS_H
#define TESTS_INTEGRATION_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/resource.h>

#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

#define STAGE_SERVICE "demo.EchoService"
#define STAGE_TIMEOUT_NS (60 * SECOND) /* of calls that have to be answered */
#define STAGE_LATERS 4096u

/* Where a stage can stand. */
enum stage_on {
	STAGE_MEMORY = 1, /* the virtual world: exact times */
	STAGE_ROUGH = 2,  /* the same with latency, small buffers, pieces of writes, EAGAIN */
	STAGE_TCP = 4,
	STAGE_UNIX = 8,
	STAGE_VIRTUAL = STAGE_MEMORY | STAGE_ROUGH,
	STAGE_REAL = STAGE_TCP | STAGE_UNIX,
	STAGE_SMOOTH = STAGE_MEMORY | STAGE_REAL, /* what is sent at once arrives at once */
	STAGE_ALL = STAGE_SMOOTH | STAGE_ROUGH,
};

/* How a call ended; `ends` counts, and must be 1. */
struct ending {
	unsigned ends;
	int error;
	int32_t code;
	bool written;
	char value[160]; /* printed */
	char text[160];  /* of the error */
	uint64_t at_ns;
};

struct raw;

struct stage {
	enum stage_on on; /* one of them */
	struct spokei_world world;
	struct spokei_world_process processes[3]; /* under test, the good one, raw peers */
	struct spokei_faults faulty;      /* the environment under test: memory, descriptors */
	const struct spoke_env *peer_env; /* of raw peers */
	struct spoke_engine *engine;      /* under test */
	struct spoke_engine *good;
	struct spoke_provider *provider; /* under test, or the good one */
	struct spoke_consumer *consumer; /* under test, or NULL */
	struct spoke_method *echo;       /* of the consumer under test */
	struct spoke_consumer *second;   /* a good consumer, or a second one under test */
	struct spoke_method *second_echo;
	struct spokei_link_limits *limits; /* of the side under test, while it lives */
	char folder[64];
	char provider_at[128]; /* "127.0.0.1:20880", "unix:/..." */
	char raw_at[128];      /* where the raw peer listens */
	int raw_listener;
	struct raw *raws;
	/* What the handlers did. */
	unsigned handled;                           /* times any handler ran */
	struct spoke_request *laters[STAGE_LATERS]; /* kept by "later", not answered yet */
	unsigned later_count;
	unsigned abandoned;
	/* Marks of stage_mark(). */
	uint64_t stats[SPOKE_STAT_COUNT];
	uint64_t demands;    /* for memory */
	uint64_t names;      /* of calls made, for distinct texts */
	struct rlimit files; /* of descriptors, set again at the end */
};

/* --- rows */

struct row {
	const char *name;
	void (*test)(struct stage *stage);
	unsigned on; /* of enum stage_on */
};

#define ROW(function, where)                                                                       \
	{                                                                                          \
		.name = #function, .test = (function), .on = (where)                               \
	}

/* Runs every row everywhere it can stand; names are made of both. With the environment variable
 * ROW only those whose name it matches. Returns the number of failures. */
int stage_run_rows(const char *group, const struct row *rows, size_t count);

/* --- who is under test */

/*
 * A provider of demo.EchoService, and the good consumer, connected. Its methods:
 *     echo    answers with its argument
 *     later   is kept in stage->laters, see stage_answer_later()
 *     refuse  answers with error 7, "no"
 *     large   answers with a bin of as many bytes as its argument says
 *     deep    answers with as many arrays inside each other as its argument says
 *     integer answers with its argument if it is an int64_t, else with the getter's error as code
 * and any method of demo.Any, which answers as echo. `options` may be NULL.
 */
void stage_set_provider(struct stage *stage, const struct spoke_provider_options *options);

/* What set_provider() makes its provider serve; and the end of that: what "later" keeps is
 * answered, as every request has to be. */
void stage_serve(struct stage *stage, struct spoke_provider *provider);
void stage_end_serving(struct stage *stage);

/* The same for a provider made with all defaults, and a raw peer connected to it, which has not
 * written yet; accepted already, and stage_mark() done. */
struct raw *stage_raw_to_provider(struct stage *stage);

/*
 * A consumer whose endpoint is a raw peer, which listens; and a second one, on the same engine, of
 * a good provider. `options` may be NULL; its url is not looked at, and a timeout_ns of 0 is
 * STAGE_TIMEOUT_NS.
 */
void stage_set_consumer(struct stage *stage, const struct spoke_consumer_options *options);

/* The same for a consumer with all defaults, and its connection accepted by the raw peer, its first
 * heartbeat read; stage_mark() done. */
struct raw *stage_raw_to_consumer(struct stage *stage);

/* Waits until the side under test has read so many bytes since stage_mark(). */
void stage_until_read(struct stage *stage, uint64_t bytes);

/* Over real sockets, where one waits for real: makes the times of the limits of the side under test
 * short (frame 100 ms, slow 150 ms, mute 200 ms). In memory they stay. */
void stage_shorten(struct stage *stage);

/* The side under test, which stays so for the test or until the second function, may open no more
 * descriptors than it has now; over real sockets nobody may. */
void stage_forbid_descriptors(struct stage *stage);
void stage_allow_descriptors(struct stage *stage);

/* The present connection of a consumer's first endpoint, which there is. */
struct spokei_conn *stage_conn_of(const struct spoke_consumer *consumer);

/* Another consumer on the engine under test, of `count` endpoints, all of them the raw peer; as for
 * stage_set_consumer(), which comes before. */
void stage_add_consumer(struct stage *stage, const struct spoke_consumer_options *options,
			size_t count, struct spoke_consumer **ret_consumer,
			struct spoke_method **ret_echo);

/* Is a wait here exact, and for free? */
bool stage_is_virtual(const struct stage *stage);

/* --- time */

uint64_t stage_now(const struct stage *stage);

/* Whoever has something to do turns once, or a little time passes. */
void stage_turn(struct stage *stage);

/* Time passes, and all turn meanwhile. Over real sockets at most 300 ms. */
void stage_pass(struct stage *stage, uint64_t ns);

/* Turns until a counter is up by so much since stage_mark(). */
void stage_until_up(struct stage *stage, enum spoke_stat stat, uint64_t count);

/* Turns until `is_so(arg)`; the test fails when it never comes. */
void stage_until(struct stage *stage, bool (*is_so)(void *arg), void *arg);

/* --- calls of the real peers */

/* Calls `method` of the consumer under test or of the second one with a text as argument; the call
 * is taken. `ending` stays until the call ends. */
void stage_call(struct stage *stage, struct spoke_method *method, const char *text,
		struct ending *ending, struct spoke_call *ret_call);

/* The same with any arguments and options; returns what spoke_call() does. */
int stage_try_call(struct stage *stage, struct spoke_method *method, struct spoke_span args,
		   const struct spoke_call_options *options, struct ending *ending,
		   struct spoke_call *ret_call);

void stage_wait(struct stage *stage, struct ending *ending);

/* Ends with this error, once. */
void assert_ends(struct stage *stage, struct ending *ending, int error);

/* Answers the oldest request that "later" keeps with its argument. */
void stage_answer_later(struct stage *stage);

/* The second pair makes a call, which is answered rightly. */
void assert_second_connection_works(struct stage *stage);

/* --- counters and memory of the engine under test */

/* From here on counters and memory are compared. */
void stage_mark(struct stage *stage);

uint64_t stage_stat(const struct stage *stage, enum spoke_stat stat);

/* Since stage_mark(). */
uint64_t stage_up(const struct stage *stage, enum spoke_stat stat);
uint64_t stage_demands(const struct stage *stage); /* calls that asked for memory */

#define assert_counter_up_by(stage, stat, count)                                                   \
	stage_assert_up((stage), (stat), (count), __FILE__, __LINE__)

/* One connection was closed, for this reason (SPOKE_STAT_CLOSED_...; SPOKE_STAT_CLOSED: none of
 * those) and no other. */
#define assert_closed_once(stage, stat) stage_assert_closed((stage), (stat), 1, __FILE__, __LINE__)
#define assert_closed_times(stage, stat, count)                                                    \
	stage_assert_closed((stage), (stat), (count), __FILE__, __LINE__)
#define assert_nothing_closed(stage)                                                               \
	stage_assert_closed((stage), SPOKE_STAT_CLOSED, 0, __FILE__, __LINE__)

void stage_assert_up(const struct stage *stage, enum spoke_stat stat, uint64_t count,
		     const char *file, int line);
void stage_assert_closed(const struct stage *stage, enum spoke_stat stat, uint64_t count,
			 const char *file, int line);

/* --- raw peers */

/* A connection's end without any spoke on it. */
struct raw {
	struct raw *next;
	struct stage *stage;
	int fd;                         /* -1: closed by this side */
	const struct spokei_wire *wire; /* how raw_frame() reads; Dubbo unless it is set */
	struct spokei_buffer in;        /* read, and not taken yet */
	size_t given;                   /* bytes of it that the last message lies in */
	bool ended;                     /* the other side has closed ... */
	bool reset;                     /* ... by a reset */
	uint64_t ended_ns;
};

/* Connects to the provider under test; its connection is accepted when this returns. */
struct raw *raw_connect(struct stage *stage);

/* The same without waiting: it may be refused. */
struct raw *raw_start(struct stage *stage);

/* The same from an address in digits, over TCP. */
struct raw *raw_start_from(struct stage *stage, const char *digits);

/* Accepts the next connection of the consumer under test; it has not been read from. */
struct raw *raw_accept(struct stage *stage);

/* Puts all bytes on their way. Returns false if the other side has closed meanwhile. */
bool raw_try_send(struct raw *raw, const void *bytes, size_t len);
void raw_send(struct raw *raw, const void *bytes, size_t len);

/* A literal, which may have NULs. */
#define RAW_SEND(raw, literal) raw_send((raw), (literal), sizeof(literal) - 1)
#define RAW_TRY_SEND(raw, literal) raw_try_send((raw), (literal), sizeof(literal) - 1)

/* Sends what the buffer holds, and empties it. */
void raw_send_buffer(struct raw *raw, struct spokei_buffer *buffer);

/* Takes what has come, without waiting; returns bytes that lie in raw->in and are not taken. */
size_t raw_pull(struct raw *raw);

/* Waits for so many bytes in all, which then lie in raw->in. What raw_frame() gave is taken. */
void raw_need(struct raw *raw, size_t len);

/* The next whole frame, waited for (only its head in a serialization other than 27); the message
 * lives until the next function of this raw. The test fails when the connection ends instead. */
void raw_frame(struct raw *raw, struct spokei_message *ret_message);

/* Waits for the other side's end. Returns the bytes that came before and are not taken. */
size_t raw_wait_end(struct raw *raw);

/* The other side has closed, or does so now, without another byte. */
void assert_closed_mutely(struct raw *raw);

/* This side closes, and forgets what it has read; a second time does nothing. Done at the end of
 * the test for all. */
void raw_close(struct raw *raw);

/* This side resets the connection, and is done with it. */
void raw_reset(struct raw *raw);

/* This side sends no more. */
void raw_shut(struct raw *raw);

/* The next frame is a reply of this id and status; what it says is in *ret_message if not NULL. */
void assert_reply(struct raw *raw, uint64_t id, unsigned status,
		  struct spokei_message *ret_message);

/* A provider has handled all that was sent before, the connection lives, and no reply came but
 * those that were taken: it answers one more request, which is the next frame. */
void assert_raw_lives(struct raw *raw);

/* The same for a connection of the consumer: it answers a heartbeat, which is the next frame. */
void assert_consumer_lives(struct raw *raw);

/* --- frames, appended to a buffer of frames_init() */

void frames_init(struct spokei_buffer *frames);

/* A header of Dubbo. */
void frames_head(struct spokei_buffer *frames, unsigned flags, unsigned status, uint64_t id,
		 uint32_t body_len);

/* A header and a body. */
void frames_raw(struct spokei_buffer *frames, unsigned flags, unsigned status, uint64_t id,
		const void *body, size_t len);

/* A two-way request of demo.EchoService with one text as argument. */
void frames_request(struct spokei_buffer *frames, uint64_t id, const char *method,
		    const char *text);

/* The same with any arguments, packed. */
void frames_request_with(struct spokei_buffer *frames, uint64_t id, const char *service,
			 const char *method, struct spoke_span args);

/* Status 20 and a text; or an error's status and the text. */
void frames_reply(struct spokei_buffer *frames, uint64_t id, unsigned status, const char *text);

void frames_heartbeat(struct spokei_buffer *frames, uint64_t id);

/* What stands before the arguments in a request's body of demo.EchoService: method "echo", one
 * argument of this descriptor (1 byte of length and the text). */
#define BODY_ECHO(descriptor) "\2452.0.2\260demo.EchoService\2450.0.0\244echo" descriptor
#define BODY_OBJECT "\262Ljava/lang/Object;"

/* --- calls of a consumer, answered by hand */

/* Begins a call and takes its request from the raw peer. Returns the request's id. */
uint64_t begin_call(struct stage *stage, struct spoke_method *method, struct raw *raw,
		    struct ending *ending);
void send_reply(struct raw *raw, uint64_t id, const char *text);

/* The call ended well, with this text. */
void assert_answered(struct stage *stage, struct ending *ending, const char *value);

#endif
