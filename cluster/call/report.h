/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller's deadlines and retries do, as events: however many there are, they are counted
 * and told together, the first at once, the others once a second. Nothing is done for a call that
 * is answered. Part of a caller, on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_REPORT_H
#define SPOKEI_CLUSTER_CALL_REPORT_H

#include <spoke/engine.h>

#define SPOKEI_REPORT_PLACES 4u /* told apart; what times out elsewhere is counted together */
#define SPOKEI_REPORT_NAME 64u  /* bytes of a place's name, with the NUL; longer ones are cut */

enum spokei_report_kind {
	SPOKEI_REPORT_DEFERRED, /* a call failed, and is a ticket now */
	SPOKEI_REPORT_AGAIN,    /* a ticket was tried again, and waits again */
	SPOKEI_REPORT_SETTLED,  /* a ticket was settled by an answer */
	SPOKEI_REPORT_GIVEN_UP, /* ... or in another way */
	SPOKEI_REPORT_RETRIED,  /* a call that is no ticket was tried again */
	SPOKEI_REPORT_KINDS,
};

struct spokei_report {
	struct spoke_engine *engine;
	const uint32_t *tickets; /* how many wait; borrowed. NULL: there are none ever */
	struct spoke_alarm alarm;
	uint64_t next_ns; /* nothing is told before */
	uint32_t counts[SPOKEI_REPORT_KINDS];
	int errors[SPOKEI_REPORT_KINDS]; /* of the last one of each */
	uint64_t pause_ns;               /* the last one that tickets wait for */
	uint64_t shortest_ns; /* time that one which timed out had, since they were told */
	uint64_t longest_ns;
	uint32_t elsewhere;
	unsigned places_count;
	struct spokei_report_place {
		uint32_t count;
		char name[SPOKEI_REPORT_NAME];
	} places[SPOKEI_REPORT_PLACES]; /* where requests timed out */
};

/* It must not be moved afterwards. `tickets` may be NULL. */
void spokei_report_init(struct spokei_report *report, struct spoke_engine *engine,
			const uint32_t *tickets);

/* Tells what has not been told yet, and nothing more; may be called again. */
void spokei_report_fini(struct spokei_report *report);

/* A request was not answered by its deadline, for which it had `timeout_ns`. `place` NULL: nobody
 * knows where. */
void spokei_report_timed_out(struct spokei_report *report, const char *place, uint64_t timeout_ns);

/* Another one of a kind. `pause_ns`: until it is tried again; 0: it is not. */
void spokei_report_add(struct spokei_report *report, enum spokei_report_kind kind, int error,
		       uint64_t pause_ns);

#endif
