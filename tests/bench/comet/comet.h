/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of comet: gateways with many connections of browsers (SSE over HTTP/1.1), next to a
 * bare server on epoll that sends the same bytes and does nothing else. All servers share one core
 * of the machine, and the load has another one.
 */
#ifndef BENCH_COMET_H
#define BENCH_COMET_H

#include "tests/bench/memory/memory.h"

#include <netinet/in.h>
#include <stdatomic.h>

#define US UINT64_C(1000)

#define GATEWAYS_MAX 6u
#define CONNS_MAX 19500u    /* connections of one process: descriptors are limited to 20,000 */
#define SOURCE_MAX 13000u   /* connections from one address: connect() is slow beyond 14,000 */
#define LISTENERS 200u      /* users that get pushes, read by a process of their own */
#define PAYLOAD_MAX 2048u   /* bytes of data in an event */
#define STAMP_DIGITS 19u    /* of a time in ns */
#define ANSWER_MAX 1024u    /* bytes that a gateway sends first */
#define SAMPLES_MAX 131072u /* latencies; more are dropped */
#define USER_LEN 7u         /* "u" and six digits */
#define ID_MAX 40u          /* bytes of an id, with the NUL */

/* The two servers. */
enum kind {
	FLOOR,
	SPOKE,
	KINDS
};

/* The first byte of an event's data. */
#define KIND_ALL 'b'
#define KIND_ONE 'p'

/* --- what the processes share */

/* Counters of one crowd. Written by the crowd, read by all. */
struct tally {
	_Alignas(64) _Atomic uint64_t ready; /* connections that got the head of the answer */
	_Atomic uint64_t broadcasts;         /* events for all */
	_Atomic uint64_t pushes;             /* events for one user */
	_Atomic uint64_t comments;           /* keepalives */
	_Atomic uint64_t lost;               /* events "lost" */
	_Atomic uint64_t reconnects;         /* events "reconnect" and "closed" */
	_Atomic uint64_t closed;             /* connections that the server has closed */
	_Atomic uint64_t wrong;              /* statuses but 200, ids that do not increase */
};

/* Shared memory. */
struct board {
	struct tally crowds[GATEWAYS_MAX];
	struct tally listeners;
	_Atomic uint64_t asked;    /* pushes and broadcasts that pushers have sent */
	_Atomic uint64_t answered; /* and those that were answered */
	_Atomic uint64_t failed;   /* with an error */
	_Atomic uint64_t samples;  /* latencies of pushes, from the call to the page */
	uint64_t ns[SAMPLES_MAX];
};

/* The addresses of a gateway. */
struct place {
	in_addr_t host; /* of the network's order, as both ports of the host's order */
	uint16_t http;
	uint16_t rpc;
};

/* --- servers */

/* What a server is to do. */
struct gateway_plan {
	in_addr_t host;
	unsigned conns_max;
	uint64_t keepalive_ns;
	char answer[ANSWER_MAX]; /* floor: the bytes to answer each request with */
	size_t answer_len;
};

/* Run in child processes; write a struct place to `out` when they listen. */
void floor_play(void *plan, int in, int out);
void gateway_play(void *plan, int in, int out);

/* Returns the length of the bytes that a gateway of spoke answers to a request: the head and the
 * first event. Starts a gateway for it. */
size_t answer_record(char *bytes, size_t size);

/* A command to the floor, which the payload follows. */
struct floor_command {
	uint32_t user; /* FLOOR_ALL: all */
	uint32_t len;
};
#define FLOOR_ALL UINT32_MAX

/* --- the load */

/* A crowd: connections of browsers to one gateway. */
struct crowd_plan {
	struct board *board;
	struct tally *tally;
	in_addr_t source;    /* the first source address */
	unsigned first_user; /* connection i is of user first_user + i */
	unsigned conns;
	unsigned mute_every; /* each n-th connection is to have a small buffer; 0: none */
	bool is_first;       /* runs before others on its core */
};

/* Reads orders, each a byte: CROWD_CONNECT and a struct place, the second time with the last ids;
 * CROWD_MUTE: the connections with
 * small buffers read no more; CROWD_CLOSE: all end with a reset; CROWD_SLEEP: from now on it is
 * woken by each event. All but the first are answered by a byte. */
void visitors_play(void *plan, int in, int out);
#define CROWD_CONNECT 'c'
#define CROWD_MUTE 'm'
#define CROWD_CLOSE 'x'
#define CROWD_SLEEP 's'

/* Where a crowd's connection is in what it reads. */
struct reader {
	uint64_t epoch;
	uint64_t number; /* of the last id */
	uint8_t has_head : 1;
	uint8_t has_status : 1;
	uint8_t has_id : 1;
	uint8_t carried; /* bytes of an unfinished line */
	uint8_t kind;    /* of the data of this event; 0: none yet */
	char carry[60];  /* and its beginning */
	char id[ID_MAX]; /* the last one */
};

/* A pusher: a program that pushes events, by RPC to spoke and by commands to the floor. */
struct pusher_plan {
	struct board *board;
	enum kind kind;
};

struct pusher_order {
	struct place place; /* of the server; connected with the first order */
	uint32_t per_s;     /* pushes to one user a second; 0: broadcasts, all at once */
	uint32_t count;
	uint32_t users; /* pushes go in turn to users 0 to users - 1 */
	uint32_t size;  /* bytes of data */
};

/* Runs orders, and answers each by a byte when the last push was answered. */
void pusher_play(void *plan, int in, int out);

/* --- a stage: servers with their crowds */

struct stage {
	enum kind kind;
	unsigned gateways;
	unsigned conns;  /* of all gateways */
	unsigned storms; /* times that all have connected */
	bool has_listeners;
	struct board *board;
	struct place places[GATEWAYS_MAX];
	struct helper servers[GATEWAYS_MAX];
	struct helper crowds[GATEWAYS_MAX];
	struct helper listeners;
	struct helper caster; /* pushes to all */
	struct helper pusher; /* pushes to one */
	struct crowd_plan crowd_plans[GATEWAYS_MAX];
	struct crowd_plan listener_plan;
	struct pusher_plan pusher_plan;
	struct gateway_plan plan;
};

struct stage_options {
	enum kind kind;
	unsigned gateways;
	unsigned conns;
	unsigned mute_every;
	bool has_listeners;
};

/* Lets the floor answer as spoke does; otherwise it has an answer of its own. */
void stage_learn_answer(void);

/* Starts all processes; no connections yet. */
void stage_open(struct stage *stage, const struct stage_options *options);

/* Connects all, and returns the time until each has its answer. */
uint64_t stage_storm(struct stage *stage);

/* Give an order to the pushers; stage_wait() waits for its end. */
void stage_cast(struct stage *stage, uint32_t count, uint32_t size);
void stage_push(struct stage *stage, uint32_t per_s, uint32_t count);
void stage_wait(struct helper *helper);

/* Order the crowds, and wait. stage_drop() ends all connections; stage_storm() may follow. */
void stage_mute(struct stage *stage);
void stage_drop(struct stage *stage);
void stage_sleep(struct stage *stage);

/* Ends all processes. Dies if a connection was closed or an event was wrong and `is_strict`. */
void stage_close(struct stage *stage, bool is_strict);

/* The sums of all crowds. */
struct sums {
	uint64_t ready;
	uint64_t broadcasts;
	uint64_t pushes;
	uint64_t comments;
	uint64_t lost;
	uint64_t reconnects;
	uint64_t closed;
	uint64_t wrong;
};
struct sums stage_sums(const struct stage *stage);

/* Waits until the crowds have got so many broadcasts; dies after a minute. */
void stage_hear(const struct stage *stage, uint64_t broadcasts);

/* CPU time and resident memory of all servers. */
uint64_t stage_cpu_ns(const struct stage *stage);
uint64_t stage_resident(const struct stage *stage);

/* The same memory, where a page that several processes share counts once. */
uint64_t stage_proportional(const struct stage *stage);

/* Pauses this process. */
void pause_ns(uint64_t ns);

/* --- measurements */

struct bench {
	unsigned conns; /* of the large part */
	bool is_quick;
	bool is_idle;          /* the large part also measures idle connections */
	bool has[KINDS];       /* which servers are measured */
	uint64_t idle_minutes; /* for spoke; 0: a few intervals */
	uint64_t broadcasts;   /* in a measurement */
};

/* --- rows */

#define REPS_MAX 5u

/* The values of one figure. */
struct figure {
	const char *name;
	const char *unit;
	double bar;   /* the first bar; 0: none */
	double goal;  /* 0: none */
	bool is_more; /* larger values are better */
	unsigned count[KINDS];
	double values[KINDS][REPS_MAX];
};

#endif
