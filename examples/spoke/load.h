/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load on a provider, and what became of it. A closed loop keeps so many calls outstanding, and a
 * call begins when another one has ended: it shows how much there is to be had. An open loop begins
 * calls at a rate, whatever becomes of those before, as independent users do; the time of a call is
 * counted from when it was due, so one that begins late, for somebody held the others up, says so.
 *
 * What is due between the end of the warm-up and that of the run is counted, and every call of it
 * is found again: answered, failed, not begun or not ended.
 */
#ifndef COMMAND_LOAD_H
#define COMMAND_LOAD_H

#include <spoke/consumer.h>
#include <spoke/histogram.h>

#define LOAD_OUTSTANDING_MAX 65536u /* as a consumer's calls are */
#define LOAD_KINDS 16u              /* of errors that are told apart */
#define LOAD_TEXT 160u

struct load_plan {
	const struct spoke_env *env; /* the engine's */
	const char *place;           /* as the user has said it */
	const char *url;
	const char *registry; /* NULL: the URL names the endpoint */
	const char *service;  /* NULL: the URL says it */
	const char *method;
	struct spoke_span args;
	uint32_t connections;
	uint32_t outstanding; /* of a closed loop */
	double rate;          /* calls a second; 0: a closed loop */
	uint64_t warm_up_ns;
	uint64_t duration_ns;
	uint64_t calls; /* ends the run, 0: the duration does */
	uint64_t timeout_ns;
};

enum load_stage {
	LOAD_CONNECTING,
	LOAD_WARMING, /* or beyond: what is due from `from_ns` on is counted */
	LOAD_ENDING,  /* no call begins any more */
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
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	struct load_slot *slots;
	struct load_slot *spare; /* slots that no call has */
	struct spoke_alarm pump; /* the next call is due */
	struct spoke_alarm end;  /* of the run; before it, of waiting for a connection */
	enum load_stage stage;
	int unreachable; /* why there was no connection */
	uint64_t start_ns;
	uint64_t from_ns;
	uint64_t until_ns;  /* of the run; UINT64_MAX: after `calls` */
	uint64_t made;      /* calls that were due so far, those of the warm-up too */
	uint64_t running;   /* calls without an end */
	uint64_t turn_ns;   /* the engine's turn in which ... */
	unsigned turn_left; /* ... so many more may begin */
	/* Of what is counted. */
	uint64_t due;
	uint64_t ok;
	uint64_t failed;
	uint64_t not_begun; /* nobody had time for them */
	uint64_t not_ended; /* when the run was interrupted */
	uint64_t in_time;   /* answers before the run's end */
	uint64_t last_ns;   /* when the last one ended */
	struct load_kind kinds[LOAD_KINDS];
	char first_error[LOAD_TEXT]; /* as a sentence */
	struct spoke_histogram times;
};

/* Connects, and begins when it has; the engine is stopped at the end. Returns 0 or an error of
 * spoke_consumer_new() and the like. */
int load_begin(struct load *load, struct spoke_engine *engine, const struct load_plan *plan);

/* No call begins any more; asked again, it is over. */
void load_stop(struct load *load);

/* Frees what it has, when the engine is gone. */
void load_end(struct load *load);

/* How long calls have been counted, or were. */
uint64_t load_span_ns(const struct load *load, uint64_t now_ns);

#endif
