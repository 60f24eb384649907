/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule of faults: processes are disturbed at random. At rests in between all processes are
 * up and no calls are made.
 */
#ifndef TESTS_SOAK_ACTS_H
#define TESTS_SOAK_ACTS_H

#include "cast.h"

struct acts {
	const struct plan *plan;
	struct sim_dice dice;
	enum act_phase {
		ACT_HARM, /* calls and faults */
		ACT_HEAL, /* calls without faults, until all processes are up */
		ACT_HUSH, /* no calls begin */
		ACT_TRIM, /* no call is open, memory is trimmed */
	} phase;
	uint64_t phase_ns; /* when the phase began */
	uint64_t good_ns;  /* since when the phase's condition holds; 0: it does not */
	uint64_t next_ns;  /* time of the next fault */
	uint64_t rest_ns;  /* time of the next rest */
	uint64_t rests;
};

void acts_begin(struct acts *acts, const struct plan *plan);

/* Advances the schedule. Returns true when a rest is reached; the rest lasts until acts_wake(). */
bool acts_step(struct acts *acts);

/* Ends the rest. */
void acts_wake(struct acts *acts);

#endif
