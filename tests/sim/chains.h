/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of calls: in some worlds each provider is a consumer of the next ones, too, on the same
 * engine, and its handlers make calls for the requests that they serve. The calls of consumers
 * begin the chains; those of providers are called inner calls here.
 */
#ifndef TESTS_SIM_CHAINS_H
#define TESTS_SIM_CHAINS_H

#include "tests/sim/oracle.h"

enum {
	SIM_INNERS = 65536,      /* inner calls of a world */
	SIM_INNER = SIM_CALLS,   /* the numbers of inner calls follow those of calls */
	SIM_PARENTS = 512,       /* requests that have inner calls, at a time */
	SIM_INNERS_ACTIVE = 512, /* inner calls at a time */
	SIM_HOPS = 2,            /* most inner calls in a row after a call */
	SIM_NEXT = 2,            /* providers that a provider calls */
};

/* A request that is served, and for which inner calls are made. */
struct sim_parent {
	struct sim_held what;            /* request NULL: unused */
	const struct sim_stream *stream; /* on which the request came, with this id */
	uint64_t id;
	uint64_t due_ns;    /* its deadline, by the clock of its provider */
	uint64_t early_ns;  /* the same, if it was there when the turn was due that has read it */
	uint64_t held_ns;   /* value of the provider's held_ns when the request was read */
	unsigned hops;      /* further hops that it may make */
	unsigned waits;     /* inner calls that go on */
	bool kept;          /* for repeats: it is served to its end, even if nobody waits */
	bool answers;       /* it is answered when its inner calls have ended */
	uint64_t gone_turn; /* turn in which its caller has gone; 0: it has not */
};

/* An inner call. */
struct sim_inner {
	struct sim_provider *by;
	struct sim_parent *parent; /* NULL: none, or none any more */
	struct spoke_call name;
	uint64_t begun_ns; /* on the clock of its process, as the others */
	uint64_t own_ns;   /* its own timeout */
	uint64_t held_ns;  /* of the process, when it began */
	uint64_t due_ns;   /* the deadline of its request; UINT64_MAX: made for none */
	uint64_t early_ns;
	uint64_t due_held_ns; /* of the process, when the request was read */
	unsigned hops;
	bool over;
	bool may_cancel;     /* its request is or may have been abandoned */
	uint64_t gone_turn;  /* the request's; 0: it must not end before its time */
	uint64_t gone_order; /* sequence number of the end of that turn; 0: not ended */
	uint64_t gone_ns;    /* ... and its time */
};

struct sim_chains {
	struct sim_dice dice;
	struct sim_inner *inners; /* array of SIM_INNERS */
	uint32_t count;
	uint32_t active[SIM_INNERS_ACTIVE]; /* indices of those that have not ended */
	unsigned active_count;
	struct sim_parent parents[SIM_PARENTS];
	unsigned parent_count; /* places in use, with unused ones between them */
};

/* --- chains.c */

void sim_chains_begin(struct sim_world *world);

/* Returns the handler of inner calls. */
struct spoke_handler sim_chains_handler(struct sim_provider *provider);

/* Makes the consumer of a provider, if it has one. Returns false without memory. */
bool sim_chains_make(struct sim_provider *provider);

/* Makes inner calls for the request of a call whose handler runs. Returns whether the request is
 * answered later. */
bool sim_chain_serves(const struct sim_held *what, const struct sim_call *call,
		      struct sim_stream *stream);

/* Makes inner calls for requests whose handlers have returned. */
void sim_chains_look(struct sim_world *world);

/* Returns the inner call of a number, or NULL. */
struct sim_inner *sim_inner_at(struct sim_world *world, uint64_t number);

/* --- oracle_parents.c */

/* Returns the one request of this number that the connection has read and that runs; NULL: there
 * may be another one like it. With `starts` it has not run before, and runs now. */
struct sim_ask *sim_parent_ask(struct sim_stream *stream, uint64_t number, bool starts);

/* Begins to observe a request; without room for it returns NULL. */
struct sim_parent *sim_parent_new(const struct sim_held *what, const struct sim_stream *stream,
				  const struct sim_ask *ask);

/* Records that spoke_call() is about to be called, or has returned `error`. */
void sim_inner_begins(struct sim_inner *inner);
void sim_inner_begun(struct sim_inner *inner, int error);
void sim_inner_ended(struct sim_inner *inner, int error);

#endif
