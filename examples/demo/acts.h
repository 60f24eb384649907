/* SPDX-License-Identifier: Apache-2.0 */
/* The acts of the demo. */
#ifndef DEMO_ACTS_H
#define DEMO_ACTS_H

#include "examples/demo/plan.h"

#include <stdbool.h>

/* The processes of the demo. */
struct stage {
	const struct plan *plan;
	const char *folder; /* where the registry's file is */
	struct actor *providers[PLAN_PROVIDERS_MAX];
	struct actor *consumer;  /* of the first service */
	struct actor *consumer2; /* of the second */
};

/* Plays all acts. Returns false on a failure, which cast.trouble describes. */
bool acts_play(struct stage *stage);

/* Keeps the cluster running until `end_ns` or an interrupt, while visitors of the pages inject
 * faults. */
bool acts_live(struct stage *stage, uint64_t end_ns);

/* Ends all processes, consumers first. */
bool acts_end(struct stage *stage);

#endif
