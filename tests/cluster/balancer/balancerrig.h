/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a balancer with places to choose from. At first each place is able, has weight 100, no
 * calls in flight, no response times and no failures, and was never chosen.
 */
#ifndef TESTS_CLUSTER_BALANCER_BALANCERRIG_H
#define TESTS_CLUSTER_BALANCER_BALANCERRIG_H

#include "cluster/balancer/state.h"
#include "tests/cluster/dice.h"
#include "tests/support/test.h"

#define RIG_PLACES_MAX 1000u
#define RIG_MOVES 1024u
#define RIG_NOW_NS UINT64_C(1000000000000)
#define RIG_TIMEOUT_NS UINT64_C(1000000000)

struct balancerrig {
	/* The balancer is called as by consumers, its memory exactly as large as it requires. */
	struct spokei_balancer_state state;
	struct spoke_balancer_candidates candidates; /* point to the arrays below */
	struct spokei_changes changes;
	uint32_t moved[RIG_MOVES];
	uint32_t placed[RIG_MOVES];
	struct spoke_balancer_choice choice; /* of the next pick; a new random number each */
	uint64_t seed;
	uint8_t able[RIG_PLACES_MAX];
	uint32_t weights[RIG_PLACES_MAX];
	uint32_t actives[RIG_PLACES_MAX];
	uint64_t means_ns[RIG_PLACES_MAX];
	uint32_t successes[RIG_PLACES_MAX];
	uint64_t chosen_ns[RIG_PLACES_MAX];
	const char *names[RIG_PLACES_MAX];
	char texts[RIG_PLACES_MAX][40];
};

/* Begins with places named 10.0.0.1:20880 and so on, up to .250, and then 10.0.1.1:20880. */
void balancerrig_begin(struct balancerrig *rig, const struct spoke_balancer *balancer,
		       size_t count);
void balancerrig_end(struct balancerrig *rig);

/* The next pick notifies the balancer of a change. */
void balancerrig_changed(struct balancerrig *rig);

/* The next pick notifies the balancer of changed figures of a place. */
void balancerrig_moved(struct balancerrig *rig, size_t place);

/* The next pick notifies the balancer of another provider at a place, or of none if the place is
 * not below the count of candidates. */
void balancerrig_place(struct balancerrig *rig, size_t place, const char *name);

/* Begins again with other names: place i gets the name that place from[i] had. */
void balancerrig_rename(struct balancerrig *rig, const size_t *from, size_t count);

size_t balancerrig_pick(struct balancerrig *rig);
size_t balancerrig_pick_by(struct balancerrig *rig, const void *key, size_t len);

/* Counts the choices of each place in `picks` picks. The array is the caller's. */
void balancerrig_count(struct balancerrig *rig, size_t picks, uint32_t *ret_counts);

/* Asserts that `count` is within 3 % of `share` of `picks`. */
void balancerrig_assert_share(uint32_t count, size_t picks, double share);

#endif
