/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that an engine shows of itself, as JSON: one object, of which these are the members. Times in
 * names: _ns, _ms; "in_ms" from now, "ago_ms" until now; all numbers are integers. Texts are cut at
 * 256 bytes. Lists of rows are cut at SPOKEI_STATUS_ROWS, and all together at ..._ALL: how many are
 * left out is said beside them.
 *
 *     "spoke": version            "name", "number": of the process
 *     "wall_ms": since 1970       "now_ms": of the engine's clock      "up_ms": since admin began
 *     "ending": does the engine drain?
 *     "wheel": { "tick_ns", "tick", "slots", "levels", "cursor": [slot of each level],
 *         "occupied": [of each level: [slot, count, slot, count, ...], occupied ones alone, from
 *             the cursor on, at most SPOKEI_STATUS_SLOTS of them],
 *         "count_max": counts go no further, "next_in_ms": null if there is no timer,
 *         "pending", "scheduled", "fired", "cancelled", "rescheduled", "late_max_ns",
 *         "classes": [{ "name", and the same six }] }
 *     "stats": { the counters of <spoke/stats.h> by their names }
 *     "latency": { "count", "mean_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns" }
 *     "history": [{ "at_ms" (of "now_ms"), "span_ms", "calls", "ok", "failed" (with timeouts,
 *         without deferred ones), "timeouts", "deferred", "requests", "p50_ns", "p99_ns" }], of
 *         each second, at most the last 120
 *     "consumers": [{ "service", "cluster", "loadbalance", "ready", "in_flight", "tickets",
 *         "tickets_max", "ticket_bytes", "heartbeat_ms", "retry_period_ms",
 *         "endpoints": [{ "name", "application", "group", "version" (each "": none), "state",
 *             "ejected", "in_flight", "connections", "missed",
 *             "attempt", "retry_in_ms" (0 and null but in the state "backoff"),
 *             "heard_ago_ms" (null: never), "weight", "calls", "failures", "mean_ns",
 *             "admin" ("": unknown) }], "more": endpoints left out,
 *         "due": [{ "method", "attempts", "sending", "in_ms", "left_ms" }], the next ones first,
 *             "due_more": tickets left out }]
 *     "consumers_more": left out
 *     "providers": [{ "services": [text], at most 25, "addresses": [text], "connections",
 *         "in_flight", "heartbeat_ms", "draining", "peers": [{ "name", "state" ("ready",
 *             "suspect", "readonly"), "missed", "in_flight", "heard_ago_ms" }], those that have
 *             spoken, "more": peers left out }]
 *     "providers_more": left out
 *     "events": [{ "number", "ago_ms", "user", "error" (its name, "" if it is none), "text" }],
 *         the last 50, oldest first
 *
 * On the engine's thread. Deciders but for the engine that is looked at.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_STATUS_H
#define SPOKEI_CLUSTER_ADMIN_STATUS_H

#include <spoke/histogram.h>
#include <spoke/stats.h>

#define SPOKEI_STATUS_ROWS 100u     /* of endpoints, peers and tickets */
#define SPOKEI_STATUS_ROWS_ALL 400u /* ... of all lists together */
#define SPOKEI_STATUS_SLOTS 1024u   /* occupied ones of a level */
#define SPOKEI_STATUS_EVENTS 50u    /* the last ones */
#define SPOKEI_STATUS_COUNT_MAX 32u
#define SPOKEI_HISTORY 120u /* seconds */

struct spoke_engine;
struct spokei_buffer;

/* One second of "history". */
struct spokei_sample {
	uint64_t at_ns;
	uint64_t span_ns;
	uint64_t calls;
	uint64_t ok;
	uint64_t failed;
	uint64_t timeouts;
	uint64_t deferred;
	uint64_t requests;
	uint64_t p50_ns;
	uint64_t p99_ns;
};

/* What has been sampled of an engine; of whoever shows it. */
struct spokei_history {
	uint64_t count; /* samples ever; number n is at n % SPOKEI_HISTORY */
	struct spokei_sample samples[SPOKEI_HISTORY];
	uint64_t last_ns; /* as of the sample taken last: */
	uint64_t last[SPOKE_STAT_COUNT];
	struct spoke_histogram latency;
};

/* Begins now. It is large: of memory of its owner's. */
void spokei_history_init(struct spokei_history *history, const struct spoke_engine *engine);

/* Takes the next sample; to be called once a second. */
void spokei_history_take(struct spokei_history *history, const struct spoke_engine *engine);

/* As "0.1.0". */
extern const char spokei_status_version[];

/* Who shows it. */
struct spokei_status_of {
	const char *name;
	uint64_t number;
	uint64_t born_ns;
	const struct spokei_history *history;
	uint64_t history_from; /* samples of a lower number are left out: a stream has told them */
	uint64_t events_from;  /* the same of events */
};

/* Appends the object, without a line end. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_status_write(const struct spoke_engine *engine,
				       const struct spokei_status_of *of,
				       struct spokei_buffer *out);

/* Appends the same for people, as lines of plain text, for those who have no JavaScript. */
SPOKE_MUST_USE int spokei_status_write_text(const struct spoke_engine *engine,
					    const struct spokei_status_of *of,
					    struct spokei_buffer *out);

/* Appends what /metrics says. */
SPOKE_MUST_USE int spokei_metrics_write(const struct spoke_engine *engine,
					const struct spokei_status_of *of,
					struct spokei_buffer *out);

#endif
