/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A harness for misbehaving peers: a provider or consumer under test, a raw peer that sends
 * arbitrary bytes to it, and a good second peer that must still be served. It runs in the virtual
 * environment or on real sockets, and each row of the table of faults is written once for all of
 * them. Nothing depends on the speed of the machine: tests wait for events, with a timeout for busy
 * machines.
 *
 *     ROW(row_xx, STAGE_ALL)
 *     {
 *             struct raw *raw = stage_raw_to_provider(stage);
 *             ...
 *     }
 *
 * When a check fails, the test ends, and the harness is still torn down.
 */
#ifndef TESTS_INTEGRATION_HARNESS_H
#define TESTS_INTEGRATION_HARNESS_H

#include "tests/support/test.h"

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

#define STAGE_SERVICE "demo.EchoService"
#define STAGE_TIMEOUT_NS (60 * SECOND) /* of calls that must be answered */
#define STAGE_LATERS 4096u

/* The environments in which a row can run. */
enum stage_on {
	STAGE_MEMORY = 1, /* the virtual environment: exact times */
	STAGE_ROUGH = 2,  /* the same with latency, small buffers, short writes, EAGAIN */
	STAGE_TCP = 4,
	STAGE_UNIX = 8,
	STAGE_VIRTUAL = STAGE_MEMORY | STAGE_ROUGH,
	STAGE_REAL = STAGE_TCP | STAGE_UNIX,
	STAGE_SMOOTH = STAGE_MEMORY | STAGE_REAL, /* bytes sent at once arrive at once */
	STAGE_ALL = STAGE_SMOOTH | STAGE_ROUGH,
};

/* The result of a call; `ends` counts the ends and must be 1. */
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
	struct spokei_world_process processes[3]; /* under test, good peer, raw peers */
	struct spokei_faults faulty;      /* the environment under test: memory, descriptors */
	const struct spoke_env *peer_env; /* of raw peers */
	struct spoke_engine *engine;      /* under test */
	struct spoke_engine *good;
	struct spoke_provider *provider; /* under test, or the good one */
	struct spoke_consumer *consumer; /* under test, or NULL */
	struct spoke_method *echo;       /* of the consumer under test */
	struct spoke_consumer *second;   /* a good consumer, or another one under test */
	struct spoke_method *second_echo;
	struct spokei_link_limits *limits; /* of the side under test, while it exists */
	char folder[64];
	char provider_at[128]; /* "127.0.0.1:20880", "unix:/..." */
	char raw_at[128];      /* the raw peer's listening address */
	int raw_listener;
	struct raw *raws;
	/* Counters of the handlers. */
	unsigned handled;                           /* number of handler runs */
	struct spoke_request *laters[STAGE_LATERS]; /* requests kept by "later" */
	unsigned later_count;
	unsigned abandoned;
	/* Values saved by stage_mark(). */
	uint64_t stats[SPOKE_STAT_COUNT];
	uint64_t demands;    /* number of allocations */
	uint64_t names;      /* number of calls, for distinct texts */
	struct rlimit files; /* limit of descriptors, restored at the end */
};

/* --- rows */

struct row {
	void (*test)(struct stage *stage);
	unsigned on; /* bits of enum stage_on */
};

/* Defines a test of a file with RUNNER(stage_run_rows). */
#define ROW(rule, where)                                                                           \
	static void rule(struct stage *stage);                                                     \
	static const struct row row_of_##rule = { rule, where };                                   \
	TEST_ENTRY(#rule, rule, .initial = (void *)(uintptr_t)&row_of_##rule, .line = __LINE__);   \
	static void rule(struct stage *stage)

/* Runs every row in every environment that it allows; test names consist of both. */
test_runner stage_run_rows;

/* --- the side under test */

/*
 * Creates a provider of demo.EchoService and a good consumer of it, connected. Its methods:
 *     echo    answers with its argument
 *     later   keeps the request in stage->laters, see stage_answer_later()
 *     refuse  answers with error 7, "no"
 *     large   answers with a bin; the argument is its length in bytes
 *     deep    answers with nested arrays; the argument is their depth
 *     integer answers with its argument if it is an int64_t, else with the getter's error as code
 * Any method of demo.Any answers like echo. `options` may be NULL.
 */
void stage_set_provider(struct stage *stage, const struct spoke_provider_options *options);

/* Adds the handlers of stage_set_provider() to a provider; and answers the requests that "later"
 * keeps, because every request must be answered. */
void stage_serve(struct stage *stage, struct spoke_provider *provider);
void stage_end_serving(struct stage *stage);

/* Does the same with default options and connects a raw peer, which has not written yet. The
 * connection is accepted, and stage_mark() was called. */
struct raw *stage_raw_to_provider(struct stage *stage);

/*
 * Creates a consumer whose endpoint is a raw peer that listens, and on the same engine a second
 * consumer of a good provider. `options` may be NULL; its url is ignored, and a timeout_ns of 0
 * means STAGE_TIMEOUT_NS.
 */
void stage_set_consumer(struct stage *stage, const struct spoke_consumer_options *options);

/* Does the same with default options; the raw peer has accepted the connection and read its first
 * heartbeat, and stage_mark() was called. */
struct raw *stage_raw_to_consumer(struct stage *stage);

/* Waits until the side under test has read this many bytes since stage_mark(). */
void stage_until_read(struct stage *stage, uint64_t bytes);

/* On real sockets, shortens the time limits of the side under test (frame 100 ms, slow 150 ms, mute
 * 200 ms). In memory they stay, because waiting costs nothing. */
void stage_shorten(struct stage *stage);

/* Prevents the side under test from opening more descriptors, until the end of the test or the
 * second function. On real sockets this applies to all sides. */
void stage_forbid_descriptors(struct stage *stage);
void stage_allow_descriptors(struct stage *stage);

/* Returns the present connection of the consumer's first endpoint, which must exist. */
struct spokei_conn *stage_conn_of(const struct spoke_consumer *consumer);

/* Creates another consumer on the engine under test, with `count` endpoints that all are the raw
 * peer. Requires stage_set_consumer(). */
void stage_add_consumer(struct stage *stage, const struct spoke_consumer_options *options,
			size_t count, struct spoke_consumer **ret_consumer,
			struct spoke_method **ret_echo);

/* Returns whether waiting is exact and costs no real time. */
bool stage_is_virtual(const struct stage *stage);

/* --- time */

uint64_t stage_now(const struct stage *stage);

/* Runs one turn of each side with pending work, or lets a little time pass. */
void stage_turn(struct stage *stage);

/* Lets time pass and runs all sides. On real sockets at most 300 ms. */
void stage_pass(struct stage *stage, uint64_t ns);

/* Runs all sides until a counter has risen by this much since stage_mark(). */
void stage_until_up(struct stage *stage, enum spoke_stat stat, uint64_t count);

/* Runs all sides until `is_so(arg)`; the test fails if that never happens. */
void stage_until(struct stage *stage, bool (*is_so)(void *arg), void *arg);

/* --- calls of the real peers */

/* Calls `method` of the consumer under test, or of the second one, with a text as argument; the
 * call must be accepted. `ending` must exist until the call ends. */
void stage_call(struct stage *stage, struct spoke_method *method, const char *text,
		struct ending *ending, struct spoke_call *ret_call);

/* Does the same with any arguments and options; returns the result of spoke_call(). */
int stage_try_call(struct stage *stage, struct spoke_method *method, struct spoke_span args,
		   const struct spoke_call_options *options, struct ending *ending,
		   struct spoke_call *ret_call);

void stage_wait(struct stage *stage, struct ending *ending);

/* Checks that the call ends once with this error. */
void assert_ends(struct stage *stage, struct ending *ending, int error);

/* Answers the oldest request that "later" keeps with its argument. */
void stage_answer_later(struct stage *stage);

/* Makes a call between the second pair and checks its answer. */
void assert_second_connection_works(struct stage *stage);

/* --- counters and memory of the engine under test */

/* Saves counters and memory for later comparisons. */
void stage_mark(struct stage *stage);

uint64_t stage_stat(const struct stage *stage, enum spoke_stat stat);

/* Since stage_mark(): */
uint64_t stage_up(const struct stage *stage, enum spoke_stat stat);
uint64_t stage_demands(const struct stage *stage); /* number of allocations */

#define assert_counter_up_by(stage, stat, count)                                                   \
	stage_assert_up((stage), (stat), (count), __FILE__, __LINE__)

/* Checks that one connection was closed for this reason (SPOKE_STAT_CLOSED_...; SPOKE_STAT_CLOSED:
 * for none of them) and none for another. */
#define assert_closed_once(stage, stat) stage_assert_closed((stage), (stat), 1, __FILE__, __LINE__)
#define assert_closed_times(stage, stat, count)                                                    \
	stage_assert_closed((stage), (stat), (count), __FILE__, __LINE__)
#define assert_nothing_closed(stage)                                                               \
	stage_assert_closed((stage), SPOKE_STAT_CLOSED, 0, __FILE__, __LINE__)

/* Checks that the raw peer's connection was closed for this reason, and that it got no byte before.
 */
#define assert_refused(raw, stat) stage_assert_refused((raw), (stat), __FILE__, __LINE__)

/* Checks that no connection was closed, and that the second one works. */
#define assert_undisturbed(stage)                                                                  \
	do {                                                                                       \
		assert_nothing_closed(stage);                                                      \
		assert_second_connection_works(stage);                                             \
	} while (0)

void stage_assert_refused(struct raw *raw, enum spoke_stat stat, const char *file, int line);
void stage_assert_up(const struct stage *stage, enum spoke_stat stat, uint64_t count,
		     const char *file, int line);
void stage_assert_closed(const struct stage *stage, enum spoke_stat stat, uint64_t count,
			 const char *file, int line);

/* --- raw peers */

/* One end of a connection, without any code of spoke. */
struct raw {
	struct raw *next;
	struct stage *stage;
	int fd;                         /* -1: closed by this side */
	const struct spokei_wire *wire; /* protocol for raw_frame(); default Dubbo */
	struct spokei_buffer in;        /* read and not consumed */
	struct spokei_buffer scratch;   /* translated body of the last message */
	size_t given;                   /* length of the last message in `in` */
	bool ended;                     /* the other side has closed */
	bool reset;                     /* the other side has closed by a reset */
	uint64_t ended_ns;
};

/* Connects to the provider under test; returns after the connection was accepted. */
struct raw *raw_connect(struct stage *stage);

/* Does the same without waiting; the connection may be rejected. */
struct raw *raw_start(struct stage *stage);

/* Does the same from a numeric local address, over TCP. */
struct raw *raw_start_from(struct stage *stage, const char *digits);

/* Accepts the next connection of the consumer under test; nothing was read from it yet. */
struct raw *raw_accept(struct stage *stage);

/* Sends all bytes. Returns false if the other side has closed meanwhile. */
bool raw_try_send(struct raw *raw, const void *bytes, size_t len);
void raw_send(struct raw *raw, const void *bytes, size_t len);

/* Sends a literal, which may contain NULs. */
#define RAW_SEND(raw, literal) raw_send((raw), (literal), sizeof(literal) - 1)
#define RAW_TRY_SEND(raw, literal) raw_try_send((raw), (literal), sizeof(literal) - 1)

/* Sends the content of the buffer and empties it. */
void raw_send_buffer(struct raw *raw, struct spokei_buffer *buffer);

/* Reads pending bytes without waiting; returns the number of bytes in raw->in that are not
 * consumed. */
size_t raw_pull(struct raw *raw);

/* Waits until raw->in contains this many bytes. Consumes the message of raw_frame(). */
void raw_need(struct raw *raw, size_t len);

/* Waits for the next complete frame (for other serializations than 27, its header). The message is
 * valid until the next function of this raw peer. The test fails if the connection ends instead. */
void raw_frame(struct raw *raw, struct spokei_message *ret_message);

/* Waits until the other side closes. Returns the number of bytes before that which are not
 * consumed. */
size_t raw_wait_end(struct raw *raw);

/* Waits until the other side closes, and checks that it sends no further byte. */
void assert_closed_mutely(struct raw *raw);

/* Closes this side and drops what it has read; may be repeated. Done for all at the end of the
 * test. */
void raw_close(struct raw *raw);

/* Resets the connection and closes this side. */
void raw_reset(struct raw *raw);

/* Shuts down the sending direction. */
void raw_shut(struct raw *raw);

/* Checks that the request is refused with status 60. */
void assert_not_found(struct raw *raw, uint64_t id);

/* Checks that the next frame is a reply with this id and status; stores the message in *ret_message
 * if not NULL. */
void assert_reply(struct raw *raw, uint64_t id, unsigned status,
		  struct spokei_message *ret_message);

/* Checks that the provider has handled all earlier input, the connection is open and no other reply
 * was sent: the provider answers one more request, whose reply is the next frame. */
void assert_raw_lives(struct raw *raw);

/* Checks the same of a consumer's connection: the consumer answers a heartbeat with the next frame.
 */
void assert_consumer_lives(struct raw *raw);

/* --- frames, appended to a buffer of frames_init() */

void frames_init(struct spokei_buffer *frames);

/* Appends a Dubbo header. */
void frames_head(struct spokei_buffer *frames, unsigned flags, unsigned status, uint64_t id,
		 uint32_t body_len);

/* Appends a header and a body. */
void frames_raw(struct spokei_buffer *frames, unsigned flags, unsigned status, uint64_t id,
		const void *body, size_t len);

/* Appends a two-way request to demo.EchoService with one text as argument. */
void frames_request(struct spokei_buffer *frames, uint64_t id, const char *method,
		    const char *text);

/* Does the same with any packed arguments. */
void frames_request_with(struct spokei_buffer *frames, uint64_t id, const char *service,
			 const char *method, struct spoke_span args);

/* Append a reply: status 20 with a text; or an error status with its text. */
void frames_reply(struct spokei_buffer *frames, uint64_t id, unsigned status, const char *text);

void frames_heartbeat(struct spokei_buffer *frames, uint64_t id);

/* Send one such frame. */
void say_head(struct raw *raw, unsigned flags, unsigned status, uint64_t id, uint32_t body_len);
void say_raw(struct raw *raw, unsigned flags, unsigned status, uint64_t id, const void *body,
	     size_t len);
void say_request(struct raw *raw, uint64_t id, const char *method, const char *text);
void say_request_with(struct raw *raw, uint64_t id, const char *service, const char *method,
		      struct spoke_span args);
void say_reply(struct raw *raw, uint64_t id, unsigned status, const char *text);
void say_heartbeat(struct raw *raw, uint64_t id);

/* The part of a request body of demo.EchoService before the arguments: method "echo", one argument
 * with this descriptor (1 byte of length and the text). */
#define BODY_ECHO(descriptor) "\2452.0.2\260demo.EchoService\2450.0.0\244echo" descriptor
#define BODY_OBJECT "\262Ljava/lang/Object;"

/* --- calls of a consumer, answered by hand */

/* Begins a call and reads its request from the raw peer. Returns the request's id. */
uint64_t begin_call(struct stage *stage, struct spoke_method *method, struct raw *raw,
		    struct ending *ending);

/* Checks that the call succeeded with this text. */
void assert_answered(struct stage *stage, struct ending *ending, const char *value);

#endif
