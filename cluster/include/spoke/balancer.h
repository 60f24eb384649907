/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several providers takes a call. A balancer is a table of functions over arrays that
 * whoever keeps the providers keeps up to date; it has memory of its own beside them. One place in
 * the arrays is one provider, with one name, as long as it has this memory.
 *
 *     random             by weight
 *     roundrobin         each in its turn, as often as its weight says, evenly mixed
 *     leastactive        the one with the fewest calls under way; among equals by weight
 *     consistenthash     the same arguments to the same provider, as Dubbo's: 160 places on a
 *                        ring for each, by MD5
 *     shortestresponse   the least product of mean response time and calls under way
 *     twochoices         the better one of two by chance, by response time, successes and calls
 *                        under way
 *
 * A program may bring balancers of its own.
 */
#ifndef SPOKE_BALANCER_H
#define SPOKE_BALANCER_H

#include <spoke/value.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

SPOKE_BEGIN_DECLS

#define SPOKE_NO_ENDPOINT SIZE_MAX

/* Who could take a call. Arrays of `count`, borrowed for the call. */
struct spoke_balancer_candidates {
	size_t count;
	size_t able_count;         /* from 1 on */
	const uint8_t *able;       /* 1: can take a call now; 0: must not be chosen */
	const uint32_t *weights;   /* usually 100; 0: no calls, unless all of the able have 0 */
	const uint32_t *actives;   /* calls under way */
	const uint64_t *means_ns;  /* of the times of answered calls, the newest ones count most;
				    * 0: none yet, or none for 30 s */
	const uint32_t *successes; /* in 1/65,536: running share of calls that did not fail */
	const uint64_t *chosen_ns; /* when it was chosen last; 0: never */
	const char *const *names;  /* as "127.0.0.1:20880" */
};

struct spoke_balancer_choice {
	uint64_t dice; /* a random number of 64 bits */
	uint64_t now_ns;
	uint64_t timeout_ns;   /* of the call */
	struct spoke_span key; /* what consistenthash hashes */
	/* Places that the call was at already: not to be chosen unless there is nobody else. A
	 * balancer may leave that to its caller, which then asks again or looks itself. */
	const size_t *tried;
	size_t tried_count;
};

/* Its functions answer, and do nothing else: they must not call spoke. */
struct spoke_balancer {
	const char *name; /* as in URLs: "loadbalance=random" */
	bool keyed;       /* it looks at choice->key */
	/* Bytes of its own memory for so many places; SIZE_MAX: too many. */
	size_t (*room)(size_t count);
	/* The memory is new, and zero (`fresh`); or who is able has changed, or weights have. NULL:
	 * it does not matter. */
	void (*changed)(void *memory, const struct spoke_balancer_candidates *candidates,
			bool fresh);
	/* A place that is able, or SPOKE_NO_ENDPOINT. */
	size_t (*pick)(void *memory, const struct spoke_balancer_candidates *candidates,
		       const struct spoke_balancer_choice *choice);
};

SPOKE_API extern const struct spoke_balancer spoke_balancer_random;
SPOKE_API extern const struct spoke_balancer spoke_balancer_round_robin;
SPOKE_API extern const struct spoke_balancer spoke_balancer_least_active;
SPOKE_API extern const struct spoke_balancer spoke_balancer_consistent_hash;
SPOKE_API extern const struct spoke_balancer spoke_balancer_shortest_response;
SPOKE_API extern const struct spoke_balancer spoke_balancer_two_choices;

SPOKE_END_DECLS

#endif
