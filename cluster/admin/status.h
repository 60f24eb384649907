/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that an engine shows of itself, as JSON: one object, of which these are the members. Times in
 * names: _ns, _ms; "in_ms" from now, "ago_ms" until now. Texts of peers are escaped. Lists are cut
 * at SPOKEI_STATUS_ROWS, and say in "more" how many are left out.
 *
 *     "spoke": version            "name", "number": of the process
 *     "wall_ms": since 1970       "now_ms": of the engine's clock      "up_ms": since admin began
 *     "ending": does the engine drain?
 *     "wheel": { "tick_ns", "tick", "slots", "levels", "cursor": [slot of each level],
 *         "occupied": [of each level: [slot, count, slot, count, ...], occupied ones alone],
 *         "count_max": counts go no further, "next_in_ms": null if there is no timer,
 *         "pending", "scheduled", "fired", "cancelled", "rescheduled", "late_max_ns",
 *         "classes": [{ "name", "pending", "scheduled", "fired", "cancelled", "late_max_ns" }] }
 *     "stats": { the counters of <spoke/stats.h> by their names }
 *     "latency": { "count", "mean_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns" }
 *     "history": [{ "at_ms" (of "now_ms"), "span_ms", "calls", "ok", "failed", "timeouts",
 *         "deferred", "requests", "p50_ns", "p99_ns" }], of each second, at most the last 120
 *     "consumers": [{ "service", "cluster", "loadbalance", "ready", "in_flight", "tickets",
 *         "tickets_max", "ticket_bytes", "heartbeat_ms", "retry_period_ms", "endpoints": [{ "name",
 *             "state", "ejected", "in_flight", "connections", "missed", "attempt", "retry_in_ms",
 *             "heard_ago_ms" (null: never), "weight", "calls", "failures", "mean_ns", "admin" }],
 *         "due": [{ "method", "attempts", "sending", "in_ms", "left_ms" }], the next ones first }]
 *     "providers": [{ "services": [text], "addresses": [text], "connections", "in_flight",
 *         "heartbeat_ms", "draining", "peers": [{ "name", "state" ("ready", "suspect",
 *             "readonly"), "missed", "in_flight", "heard_ago_ms" }] }]
 *     "events": [{ "number", "ago_ms", "user", "error" (its name, "" if it is none), "text" }], the
 *         last 50, oldest first
 *
 * On the engine's thread. Deciders but for the engine that is looked at.
 */
#ifndef SPOKEI_STATUS_H
#define SPOKEI_STATUS_H

#include "core/buffer.h"
#include "core/engine.h"

#include <spoke/histogram.h>

#define SPOKEI_STATUS_ROWS 100u  /* of endpoints, peers and tickets */
#define SPOKEI_STATUS_EVENTS 50u /* the last ones */
#define SPOKEI_STATUS_COUNT_MAX 32u
#define SPOKEI_HISTORY 120u /* seconds */

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

/* Begins now. */
void spokei_history_init(struct spokei_history *history, const struct spoke_engine *engine);

/* Takes the next sample; to be called once a second. */
void spokei_history_take(struct spokei_history *history, const struct spoke_engine *engine);

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
