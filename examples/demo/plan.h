/* SPDX-License-Identifier: Apache-2.0 */
/* What the demo is asked for, and what follows from it. */
#ifndef DEMO_PLAN_H
#define DEMO_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_PROVIDERS_MAX 32
#define PLAN_MS UINT64_C(1000000)
#define PLAN_SECOND (1000 * PLAN_MS)
#define PLAN_SPARE_NS (10 * PLAN_SECOND) /* that failback.tasks have room for beside an outage */

struct plan {
	unsigned providers; /* the second one alone serves the second service */
	uint64_t rate;      /* calls a second, of the first consumer ... */
	uint64_t rate2;     /* ... and of the second */
	uint64_t timeout_ns;
	uint64_t heartbeat_ns;
	uint64_t period_ns;
	uint64_t seconds; /* to last at least; 0: as long as the story takes */
	bool live;
	bool plain;
	/* What one consumer's calls may have to wait for, and how many do then. */
	uint64_t outage_ns;
	uint64_t outage2_ns;
	uint64_t tasks;
	uint64_t tasks2;
};

enum plan_verdict {
	PLAN_GO,
	PLAN_HELPED, /* the help was wanted, and written */
	PLAN_WRONG,  /* what is wrong was written */
};

enum plan_verdict plan_read(int argc, char **argv, struct plan *ret);

/* A duration as people write it, "300ms" or "2.5s", into `text` of PLAN_TEXT bytes, which is
 * returned. */
#define PLAN_TEXT 32
char *plan_print(uint64_t ns, char *text);

#endif
