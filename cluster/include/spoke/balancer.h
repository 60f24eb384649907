/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load balancers: a balancer chooses the provider that takes a call. It is a table of functions
 * over arrays that the consumer keeps up to date, with memory of its own. Each index of the arrays
 * is one provider; the index keeps its provider and name as long as this memory exists, unless
 * placed() is called.
 *
 *     random             at random, by weight
 *     roundrobin         in turn, by weight, evenly mixed
 *     leastactive        the provider with the fewest calls in flight; among equals by weight
 *     consistenthash     equal arguments go to the same provider, as in Dubbo: 160 points on a
 *                        ring for each provider, by MD5
 *     shortestresponse   the least product of mean response time and calls in flight
 *     twochoices         the better of two random providers, by response time, success rate and
 *                        calls in flight
 *
 * A program may provide balancers of its own.
 */
#ifndef SPOKE_BALANCER_H
#define SPOKE_BALANCER_H

#include <spoke/value.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

SPOKE_BEGIN_DECLS

/* Result of pick() if no candidate can be chosen. */
#define SPOKE_NO_ENDPOINT SIZE_MAX

/* The candidates for a call: arrays of `count` elements, borrowed for the call. */
struct spoke_balancer_candidates {
	size_t count;
	size_t room;               /* indices that a balancer's memory is made for */
	size_t able_count;         /* at least 1 */
	const uint8_t *able;       /* 1: can take a call now; 0: must not be chosen */
	const uint32_t *weights;   /* usually 100; 0: no calls, unless all able ones have 0 */
	const uint32_t *actives;   /* calls in flight */
	const uint64_t *means_ns;  /* moving average of response times; 0: no reply yet, or none
				    * for 30 s */
	const uint32_t *successes; /* moving success rate, in 1/65,536 */
	const uint64_t *chosen_ns; /* time of the last choice; 0: never */
	const char *const *names;  /* e.g. "127.0.0.1:20880" */
};

/* The facts about one call to be placed; borrowed for the call. */
struct spoke_balancer_choice {
	uint64_t dice; /* a random number of 64 bits */
	uint64_t now_ns;
	uint64_t timeout_ns;   /* timeout of the call */
	struct spoke_span key; /* the bytes that consistenthash hashes */
	/* Indices that earlier attempts of the call used: chosen only if there is no other. A
	 * balancer may ignore them; the caller then picks again or searches itself. */
	const size_t *tried;
	size_t tried_count;
};

/* A balancer. The functions run on the engine's thread, must not block, and must not call spoke. */
struct spoke_balancer {
	const char *name; /* as in URLs: "loadbalance=random" */
	bool keyed;       /* pick() uses choice->key */
	/* Returns the bytes of memory that the balancer needs for `room` indices; SIZE_MAX: too
	 * many. The consumer owns the memory and calls changed() with `fresh` after it was
	 * allocated. NULL: the balancer needs no memory. */
	size_t (*room)(size_t room);
	/* Called before changed() for each index that has another provider or none, perhaps more
	 * than once. The index may be `count` or above. NULL: the memory is renewed then. */
	void (*placed)(void *memory, const struct spoke_balancer_candidates *candidates,
		       size_t index);
	/* Called when the memory is new and zeroed (`fresh`), and when `able` or `weights` have
	 * changed. NULL: the balancer needs no notice. */
	void (*changed)(void *memory, const struct spoke_balancer_candidates *candidates,
			bool fresh);
	/* Called before the next choice for each index whose calls in flight, mean, success rate or
	 * time of the last choice have changed, perhaps more than once. Not called for up to 16
	 * candidates, which pick() can look at. NULL: the balancer needs no notice. */
	void (*moved)(void *memory, const struct spoke_balancer_candidates *candidates,
		      size_t index);
	/* Called for every attempt. Returns the index of an able candidate, or SPOKE_NO_ENDPOINT.
	 */
	size_t (*pick)(void *memory, const struct spoke_balancer_candidates *candidates,
		       const struct spoke_balancer_choice *choice);
};

/* The built-in balancers, in the order of the list above. */
SPOKE_API extern const struct spoke_balancer spoke_balancer_random;
SPOKE_API extern const struct spoke_balancer spoke_balancer_round_robin;
SPOKE_API extern const struct spoke_balancer spoke_balancer_least_active;
SPOKE_API extern const struct spoke_balancer spoke_balancer_consistent_hash;
SPOKE_API extern const struct spoke_balancer spoke_balancer_shortest_response;
SPOKE_API extern const struct spoke_balancer spoke_balancer_two_choices;

/* Returns the balancer of the library with a name, e.g. "random"; NULL if there is none. Any
 * thread.
 */
SPOKE_API const struct spoke_balancer *spoke_balancer_find(const char *name);

SPOKE_END_DECLS

#endif
