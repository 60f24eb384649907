/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to the processes, and when: by dice, and with rests between, in which all is whole
 * and nobody calls. */
#ifndef TESTS_SOAK_ACTS_H
#define TESTS_SOAK_ACTS_H

#include "cast.h"

struct acts {
	const struct plan *plan;
	struct sim_dice dice;
	enum act_phase {
		ACT_HARM, /* calls, and harm */
		ACT_HEAL, /* calls, and nobody is harmed, until all is whole */
		ACT_HUSH, /* no calls begin */
		ACT_TRIM, /* all is at rest, and memory is given back */
	} phase;
	uint64_t phase_ns; /* when it began */
	uint64_t good_ns;  /* since when that is so which it waits for; 0: it is not */
	uint64_t next_ns;  /* of the next harm */
	uint64_t rest_ns;  /* of the next rest */
	uint64_t rests;
};

void acts_begin(struct acts *acts, const struct plan *plan);

/* Goes on. True: a rest is reached, to be looked at now; it lasts until acts_wake(). */
bool acts_step(struct acts *acts);

/* Calls begin again. */
void acts_wake(struct acts *acts);

#endif
