/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates load on a provider and counts the results. A closed loop keeps a fixed number of calls
 * in flight; a call starts when another one ends. It measures the maximum throughput. An open loop
 * starts calls at a fixed rate, independent of earlier calls, as independent users do. Latency
 * counts from the time a call was due, so a stalled provider shows in the figures of later calls.
 *
 * Calls that are due between the end of the warm-up and the end of the run are counted. Each ends
 * in one counter: answered, failed, not begun or not ended.
 */
#ifndef COMMAND_LOAD_H
#define COMMAND_LOAD_H

#include <spoke/consumer.h>
#include <spoke/histogram.h>

#define LOAD_OUTSTANDING_MAX 65536u /* the limit of a consumer */
#define LOAD_KINDS 16u              /* of errors that are counted separately */
#define LOAD_TEXT 160u

struct load_plan {
	const struct spoke_env *env; /* the engine's */
	const char *place;           /* as the user wrote it */
	const char *url;
	const char *registry; /* NULL: the URL names the endpoint */
	const char *service;  /* NULL: the URL contains it */
	const char *method;
	struct spoke_span args;
	uint32_t connections;
	uint32_t outstanding; /* of a closed loop */
	double rate;          /* calls a second; 0: a closed loop */
	uint64_t warm_up_ns;
	uint64_t duration_ns;
	uint64_t calls; /* ends the run, 0: the duration does */
	uint64_t timeout_ns;
	const char *token;      /* NULL: none */
	const char *token_file; /* NULL: none */
	bool token_plain;
	const struct spoke_tls_options *tls; /* NULL: plain connections */
};

enum load_stage {
	LOAD_CONNECTING,
	LOAD_WARMING, /* and measuring: calls due from `from_ns` on are counted */
	LOAD_ENDING,  /* no new calls start */
	LOAD_OVER,
};

struct load_kind {
	int error;
	uint64_t count;
};

struct load_slot;

struct load {
	const struct load_plan *plan;
	struct spoke_engine *engine;
	const struct spoke_env *env;
	struct spoke_consumer **consumers; /* each has some of the connections */
	struct spoke_method **methods;     /* one of each consumer */
	size_t consumer_count;
	uint32_t connected;
	struct load_slot *slots;
	struct load_slot *spare; /* slots without a call */
	struct spoke_alarm pump; /* the next call is due */
	struct spoke_alarm end;  /* of the run; before, of the wait for a connection */
	enum load_stage stage;
	int unreachable;  /* why there was no connection */
	char reason[160]; /* ... as the system says; "": nothing is known */
	uint64_t start_ns;
	uint64_t from_ns;
	uint64_t until_ns;  /* of the run; UINT64_MAX: after `calls` */
	uint64_t made;      /* calls due so far, including the warm-up */
	uint64_t running;   /* calls in flight */
	uint64_t turn_ns;   /* the engine's turn in which ... */
	unsigned turn_left; /* ... this many more may start */
	/* Counters of the measured calls. */
	uint64_t due;
	uint64_t ok;
	uint64_t failed;
	uint64_t not_begun; /* due, but not started in time */
	uint64_t not_ended; /* when the run was interrupted */
	uint64_t in_time;   /* answers before the run's end */
	uint64_t last_ns;   /* when the last one ended */
	struct load_kind kinds[LOAD_KINDS];
	char first_error[LOAD_TEXT]; /* its description */
	struct spoke_histogram times;
};

/* Connects, then starts the run; stops the engine at the end. Returns 0 or an error, e.g. of
 * spoke_consumer_new(). */
int load_begin(struct load *load, struct spoke_engine *engine, const struct load_plan *plan);

/* Stops starting calls; the second time, ends the run at once. */
void load_stop(struct load *load);

/* Frees the memory; call after the engine is freed. */
void load_end(struct load *load);

/* Returns the length of the measurement so far. */
uint64_t load_span_ns(const struct load *load, uint64_t now_ns);

#endif
