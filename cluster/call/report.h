/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports to people: timeouts and retries as events, and the limit that has refused a
 * call. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_REPORT_H
#define SPOKEI_CLUSTER_CALL_REPORT_H

#include <spoke/engine.h>
#include <spoke/value.h>

#include <stddef.h>

struct spoke_method;

/*
 * Timeouts and retries are counted, and each event sums up a kind: the first at once, further ones
 * once a second. A call that is answered costs nothing. Part of a caller.
 */

#define SPOKEI_REPORT_PLACES 4u /* counted one by one; timeouts elsewhere are counted together */
#define SPOKEI_REPORT_NAME 64u  /* bytes of an address, with the NUL; longer ones are cut */

enum spokei_report_kind {
	SPOKEI_REPORT_DEFERRED, /* a call failed, and became a ticket */
	SPOKEI_REPORT_AGAIN,    /* a retry of a ticket failed, and the ticket waits again */
	SPOKEI_REPORT_SETTLED,  /* a ticket was answered */
	SPOKEI_REPORT_GIVEN_UP, /* a ticket was settled in any other way */
	SPOKEI_REPORT_RETRIED,  /* a call without a ticket was retried */
	SPOKEI_REPORT_KINDS,
};

struct spokei_report {
	struct spoke_engine *engine;
	const uint32_t *tickets; /* their number, borrowed; NULL: there are none */
	struct spoke_alarm alarm;
	uint64_t next_ns; /* no event before that time */
	uint32_t sum;     /* number of the present sum of kind AGAIN, from 1 on */
	uint32_t counts[SPOKEI_REPORT_KINDS];
	int errors[SPOKEI_REPORT_KINDS]; /* the last one of each kind */
	uint64_t pause_ns;               /* of the ticket that was deferred last */
	uint64_t shortest_ns;            /* timeouts since the last event */
	uint64_t longest_ns;
	uint32_t elsewhere;
	unsigned places_count;
	struct spokei_report_place {
		uint32_t count;
		char name[SPOKEI_REPORT_NAME];
	} * places; /* SPOKEI_REPORT_PLACES, where requests have timed out; NULL: nowhere yet */
};

/* The report must not be moved afterwards. `tickets` may be NULL. */
void spokei_report_init(struct spokei_report *report, struct spoke_engine *engine,
			const uint32_t *tickets);

/* Publishes all sums, and ends the report. May be called again. */
void spokei_report_fini(struct spokei_report *report);

/* Counts a request that was not answered within `timeout_ns`. `place`: its address, or NULL. */
void spokei_report_timed_out(struct spokei_report *report, const char *place, uint64_t timeout_ns);

/* Counts an event of a kind. `pause_ns`: until the retry; 0: there is none. */
void spokei_report_add(struct spokei_report *report, enum spokei_report_kind kind, int error,
		       uint64_t pause_ns);

/* Counts a ticket that was retried without success: once in each sum, however often it was. `sum`
 * is the ticket's, 0 at first. */
static inline void spokei_report_again(struct spokei_report *report, uint32_t *sum, int error,
				       uint64_t pause_ns)
{
	bool is_counted = *sum == report->sum;

	*sum = report->sum;
	report->counts[SPOKEI_REPORT_AGAIN] -= is_counted;
	spokei_report_add(report, SPOKEI_REPORT_AGAIN, error, pause_ns);
}

/* Counts a call that was refused, and explains why: names the limit, its value, and what to do; a
 * sentence that is the engine's newest already is not reported again. `len`: bytes of the
 * arguments; 0: they could not be packed. Returns the error; ETHREAD on another thread than the
 * engine's, where nothing is counted or explained. */
SPOKE_MUST_USE int spokei_limits_refuse(const struct spoke_method *method, int error, size_t len);

/* Prints the limit that has just refused a call with ELIMIT, e.g. "pending.max = 5 is reached
 * (calls in flight)". Returns the length. */
size_t spokei_limits_print(const struct spoke_method *method, char *text, size_t size);

/* Returns the text of a result for a call that was just refused with this error: why its endpoints
 * cannot be reached, or the limit; empty without one. Valid until the next use of the engine. */
struct spoke_span spokei_limits_text(const struct spoke_method *method, int error);

#endif
