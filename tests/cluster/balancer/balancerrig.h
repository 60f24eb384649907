/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A balancer with places to choose from, which tests set as they like. At first all are able, have
 * weight 100, no calls under way, no mean, no failures, and were never chosen.
 */
#ifndef TESTS_CLUSTER_BALANCER_BALANCERRIG_H
#define TESTS_CLUSTER_BALANCER_BALANCERRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/cluster/dice.h"

#include <spoke/balancer.h>

#define RIG_PLACES_MAX 1000u
#define RIG_NOW_NS UINT64_C(1000000000000)
#define RIG_TIMEOUT_NS UINT64_C(1000000000)

struct balancerrig {
	const struct spoke_balancer *balancer;
	struct spoke_balancer_candidates candidates; /* of the arrays below */
	struct spoke_balancer_choice choice; /* for the next pick; its dice are thrown for each */
	void *memory;                        /* exactly as large as the balancer says */
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

/* Its places are named 10.0.0.1:20880 and so on, up to .250, and then 10.0.1.1:20880. */
void rig_begin(struct balancerrig *rig, const struct spoke_balancer *balancer, size_t count);
void rig_end(struct balancerrig *rig);

/* Tells the balancer that something has changed. */
void rig_changed(struct balancerrig *rig);

/* Forgets all and begins again with other names: place i is called as place from[i] was. */
void rig_rename(struct balancerrig *rig, const size_t *from, size_t count);

size_t rig_pick(struct balancerrig *rig);
size_t rig_pick_by(struct balancerrig *rig, const void *key, size_t len);

/* How often each place was chosen in so many picks; the array is the caller's. */
void rig_count(struct balancerrig *rig, size_t picks, uint32_t *ret_counts);

/* Is `count` within 3 % of `share` of `picks`? */
void rig_assert_share(uint32_t count, size_t picks, double share);

#endif
