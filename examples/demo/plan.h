/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the demo and derived values. */
#ifndef DEMO_PLAN_H
#define DEMO_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_PROVIDERS_MAX 32
#define PLAN_MS UINT64_C(1000000)
#define PLAN_SECOND (1000 * PLAN_MS)
#define PLAN_SPARE_NS (60 * PLAN_SECOND) /* capacity of failback.tasks in addition to an outage */

struct plan {
	unsigned providers; /* only the second one serves the second service */
	uint64_t rate;      /* calls a second, of the first consumer ... */
	uint64_t rate2;     /* ... and of the second */
	uint64_t timeout_ns;
	uint64_t heartbeat_ns;
	uint64_t period_ns;
	uint64_t lease_ns; /* time to live of the lease of the workers */
	uint64_t seconds;  /* minimum run time; 0: the length of the acts */
	bool live;
	bool dubbo; /* with Node peers, in a ZooKeeper that demo.sh has started */
	bool tls;   /* mutual TLS, with certificates of this run */
	bool plain;
	/* Longest outage of each consumer, and the tickets it needs then. */
	uint64_t outage_ns;
	uint64_t outage2_ns;
	uint64_t tasks;
	uint64_t tasks2;
};

enum plan_verdict {
	PLAN_GO,
	PLAN_HELPED, /* the help was printed */
	PLAN_WRONG,  /* an error was printed */
};

enum plan_verdict plan_read(int argc, char **argv, struct plan *ret);

/* Formats a duration, e.g. "300ms" or "2.5s", into `text` of PLAN_TEXT bytes, and returns it. */
#define PLAN_TEXT 32
char *plan_print(uint64_t ns, char *text);

#endif
