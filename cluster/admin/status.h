/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of an engine as JSON: one object with the members below. Names end in their unit, _ns
 * or _ms; "in_ms" counts from now, "ago_ms" up to now. All numbers are integers. Texts are cut at
 * 256 bytes. Each list has at most SPOKEI_STATUS_ROWS rows, all lists together
 * SPOKEI_STATUS_ROWS_ALL; the number of omitted rows follows each list.
 *
 *     "spoke": version
 *     "name", "number": of the process
 *     "wall_ms": since 1970
 *     "now_ms": of the engine's clock
 *     "up_ms": since the page opened
 *     "ending": the engine drains
 *     "wheel": { "tick_ns", "tick", "slots", "levels", "cursor": [slot of each level],
 *         "occupied": [for each level: [slot, count, class, slot, count, class, ...], one row for
 *             each class of timers in a slot, from the cursor on, no further slot after
 *             SPOKEI_STATUS_SLOTS rows],
 *         "count_max": the limit of a slot's counts, "next_in_ms": null if there is no timer,
 *         "pending", "scheduled", "fired", "cancelled", "rescheduled", "late_max_ns",
 *         "late_recent_ns" (of two minutes),
 *         "classes": [{ "name", and the same seven counters }], whose index is the class of
 *             "occupied" }
 *     "stats": { the counters of <spoke/stats.h>, by name }
 *     "latency": { "count", "mean_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns" }
 *     "pool": { "threads_max", "running", "queue_max", "queued" }
 *     "history": [{ "at_ms" (of "now_ms"), "span_ms", "calls", "ok", "failed" (timeouts included,
 *         deferred calls not), "timeouts", "deferred", "requests", "p50_ns", "p99_ns",
 *         "requests_ok", "requests_failed" (all other ends), "handler_p50_ns",
 *         "handler_p99_ns" (of all methods) }], one for each second, the last 120 at most
 *     "consumers": [{ "service", "cluster", "loadbalance" ("": none, the policy chooses in order),
 *         "ready", "in_flight", "tickets", "tickets_max", "ticket_bytes", "heartbeat_ms",
 *         "retry_period_ms", "certificate_days" (until the own certificate ends; missing: none),
 *         "journal" ("": none, "reading", "open", "full", "broken", "unusable"),
 *         "journal_tickets", "journal_bytes" (of its files),
 *         "apart": [{ "method", "cluster", "loadbalance" }], methods whose policy or balancer
 *             is not the consumer's, "apart_more": omitted,
 *         "endpoints": [{ "name", "application", "group", "version" ("": none), "state",
 *             "ejected", "in_flight", "connections", "missed", "attempt",
 *             "retry_in_ms" (0 and null except in the state "backoff"),
 *             "heard_ago_ms" (null: never), "weight", "calls", "failures", "mean_ns", "tls",
 *             "local" (by its unix socket), "admin" ("": unknown) }],
 *             "more": endpoints omitted,
 *         "due": [{ "method", "attempts", "sending", "in_ms", "left_ms" }], in order of the
 *             next attempt, "due_more": tickets omitted }]
 *     "consumers_more": omitted
 *     "providers": [{ "services": [text], at most 25, "addresses": [text], "connections",
 *         "in_flight", "heartbeat_ms", "remembered" and "remembered_bytes" (requests, for
 *         their repeats), "journal" and "journal_bytes" (as above), "journal_answers", "offline",
 * "draining", "certificate_days" (as above), "peers": [{ "name", "identity" (proven by TLS or the
 * system; missing: none), "state"
 *             ("ready", "suspect", "readonly"), "missed", "in_flight", "heard_ago_ms", "tls",
 *             "refusals" (requests without good credentials) }], only peers that have sent a
 *             message, "more": peers omitted }]
 *     "providers_more": omitted
 *     "leases": [{ "store", "connected", "asked" (not granted yet), "held", "left_min_ms" (of the
 *         held lease that ends first; 0: none),
 *         "shown": [{ "name", "id" (unique among present ones), "state" ("asking", "waiting",
 *             "held", "releasing"), "left_ms" and "fence" (of one that is held; else 0) }],
 *         "more": leases omitted }]
 *     "leases_more": omitted
 *     "gateways": [{ "address" ("": none), "draining", and the figures of <spoke/comet.h>, by
 *         name }], at most as many as find a row
 *     "methods": [{ "side" ("calls", "requests"), "service", "method" ("*": all others, or what a
 *             provider pushes; both "other": methods beyond the engine's limit of figures),
 *         "begun", "in_flight", "failed", "ends": { counters, by name },
 *         "took" (answered calls; requests in the handler): as "latency",
 *         "queued" (for a thread of the pool; missing if no request was): as "latency" }]
 *     "methods_more": omitted
 *     "slow": { "count": of all,
 *         "last": [{ "number", "ago_ms", "side", "service", "method", "peer",
 *             "queued_ns" (until written; for a thread of the pool),
 *             "took_ns" (from there to the answer; in the handler),
 *             "error" (its name; "": none) }], the latest first,
 *         "slowest": [the same], at most 32 of each }
 *     "events": [{ "number", "ago_ms", "user", "error" (its name; "": none), "text" }], the last
 *         50, oldest first
 *
 * On the engine's thread. The functions only read the engine.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_STATUS_H
#define SPOKEI_CLUSTER_ADMIN_STATUS_H

#include <spoke/histogram.h>
#include <spoke/stats.h>

#define SPOKEI_STATUS_ROWS 100u     /* of a list: endpoints, peers, tickets */
#define SPOKEI_STATUS_ROWS_ALL 400u /* of all lists together */
#define SPOKEI_STATUS_SLOTS 1024u   /* rows of a level */
#define SPOKEI_STATUS_EVENTS 50u    /* the latest */
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
	uint64_t requests_ok;
	uint64_t requests_failed;
	uint64_t handler_p50_ns;
	uint64_t handler_p99_ns;
};

/* The samples of an engine; owned by its page. */
struct spokei_history {
	uint64_t count; /* of all samples ever; sample n is at n % SPOKEI_HISTORY */
	struct spokei_sample samples[SPOKEI_HISTORY];
	uint64_t last_ns; /* the state at the last sample: */
	uint64_t last[SPOKE_STAT_COUNT];
	struct spoke_histogram latency;
	struct spoke_histogram handled; /* time in the handlers of all methods */
};

/* Initialises an empty history that begins now. */
void spokei_history_init(struct spokei_history *history, const struct spoke_engine *engine);

/* Takes the next sample. Call it once a second. */
void spokei_history_take(struct spokei_history *history, const struct spoke_engine *engine);

/* E.g. "0.1.0". */
extern const char spokei_status_version[];

/* Describes the page, and the rows to omit. */
struct spokei_status_of {
	const char *name;
	uint64_t number;
	uint64_t born_ns;
	const struct spokei_history *history;
	uint64_t history_from; /* earlier samples are omitted: the stream has sent them */
	uint64_t events_from;  /* the same for events */
};

/* Appends the object without a newline. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_status_write(const struct spoke_engine *engine,
				       const struct spokei_status_of *of,
				       struct spokei_buffer *out);

/* Appends the text of /metrics. Returns as above. */
SPOKE_MUST_USE int spokei_metrics_write(const struct spoke_engine *engine,
					const struct spokei_status_of *of,
					struct spokei_buffer *out);

#endif
