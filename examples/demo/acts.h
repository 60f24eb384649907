/* SPDX-License-Identifier: Apache-2.0 */
/* The story, act by act. */
#ifndef DEMO_ACTS_H
#define DEMO_ACTS_H

#include "examples/demo/plan.h"

#include <stdbool.h>

/* Who plays. */
struct stage {
	const struct plan *plan;
	const char *folder; /* where the registry's file is */
	struct actor *providers[PLAN_PROVIDERS_MAX];
	struct actor *consumer;  /* of the first service */
	struct actor *consumer2; /* of the second */
};

/* Plays all of it. Returns false where it could not go on: cast.trouble says why. */
bool acts_play(struct stage *stage);

/* Goes on after it, until then or until somebody interrupts it, while visitors of the pages do
 * harm.
 */
bool acts_live(struct stage *stage, uint64_t end_ns);

/* Everybody is asked to end, consumers first, and does. */
bool acts_end(struct stage *stage);

#endif
