/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the status of an engine. */
#include "examples/spoke/status_view.h"

#include "examples/spoke/escape.h"
#include "examples/spoke/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME 48u
#define ENDS_MAX 8u
#define CLASSES_LIVE 6u
#define ROWS_LIVE_MIN 3u
#define DUE_ROWS 5u
#define EVENTS_LIVE_MIN 4u
#define EVENTS_PLAIN 10u
#define ROWS_PLAIN 100u

/* --- pieces of lines */

/* Formats a time, e.g. "12.3 ms", in static buffers used in turn. */
static const char *span_text(double ns)
{
	static char texts[4][24];
	static unsigned turn;
	char *place = texts[turn++ % 4];

	if (ns < 1e6)
		(void)snprintf(place, sizeof(texts[0]), "%.0f us", ns / 1e3);
	else if (ns < 1e9)
		(void)snprintf(place, sizeof(texts[0]), "%.3g ms", ns / 1e6);
	else if (ns < 120e9)
		(void)snprintf(place, sizeof(texts[0]), "%.1f s", ns / 1e9);
	else
		(void)snprintf(place, sizeof(texts[0]), "%.0f min", ns / 60e9);
	return place;
}

/* Formats a latency; "-": no answers. */
static const char *time_text(struct spoke_value map, const char *key)
{
	double ns = field_number(map, key);

	return ns > 0 ? span_text(ns) : "-";
}

static void heading(struct screen *screen, const char *name)
{
	screen_colour(screen, TERMINAL_BOLD);
	screen_print(screen, "%s", name);
	screen_colour(screen, TERMINAL_NORMAL);
}

static double per_second(struct spoke_value sample, const char *key)
{
	double span_ms = field_number(sample, "span_ms");

	return span_ms > 0 ? field_number(sample, key) * 1000 / span_ms : 0;
}

static unsigned rows_left(const struct screen *screen)
{
	return screen->row < screen->height ? screen->height - screen->row : 0;
}

/* --- the head line */

void status_view_head(struct screen *screen, struct spoke_value status, const char *address)
{
	struct spoke_value sample = field_last_of(status, "history");

	heading(screen, field_text(status, "name"));
	screen_print(screen, " %" PRIu64 " at %s, up %s%s\n", field_count(status, "number"),
		     address, span_text(field_number(status, "up_ms") * 1e6),
		     field_is_true(status, "ending") ? ", draining" : "");
	screen_print(screen, "  calls/s %.1f  failed/s %.1f  requests/s %.1f",
		     per_second(sample, "calls"), per_second(sample, "failed"),
		     per_second(sample, "requests"));
	screen_print(screen, "  p50 %s  p99 %s\n", time_text(sample, "p50_ns"),
		     time_text(sample, "p99_ns"));
}

/* The pool, where handlers use it. */
static void draw_pool(struct screen *screen, struct spoke_value status)
{
	struct spoke_value pool = field_child(status, "pool");
	struct spoke_value stats = field_child(status, "stats");

	if (field_count(stats, "pool_requests") == 0)
		return;
	heading(screen, "pool");
	screen_print(screen,
		     "  running %" PRIu64 " of %" PRIu64 "  queued %" PRIu64 " of %" PRIu64
		     "  waited 100ms %" PRIu64 "  refused %" PRIu64 "\n",
		     field_count(pool, "running"), field_count(pool, "threads_max"),
		     field_count(pool, "queued"), field_count(pool, "queue_max"),
		     field_count(stats, "pool_waited"), field_count(stats, "pool_full"));
}

/* --- the wheel */

static void draw_wheel(struct screen *screen, struct spoke_value wheel)
{
	struct spoke_cursor classes = field_list(wheel, "classes");
	struct spoke_value class;
	double next_ms;

	heading(screen, "wheel");
	screen_print(screen, "  pending %" PRIu64 "  fired %" PRIu64 "  late at most %s in 2 min",
		     field_count(wheel, "pending"), field_count(wheel, "fired"),
		     span_text(field_number(wheel, "late_recent_ns")));
	if (field_has_number(wheel, "next_in_ms", &next_ms))
		screen_print(screen, "  next in %s", span_text(next_ms * 1e6));
	screen_print(screen, "\n  %-16s %9s %11s %11s %11s  %s\n", "class", "pending", "scheduled",
		     "fired", "cancelled", "late");
	for (unsigned row = 0; spoke_cursor_next(&classes, &class); row++) {
		if (screen->live && row == CLASSES_LIVE) {
			screen_print(screen, "  ...\n");
			return;
		}
		screen_print(screen,
			     "  %-16s %9" PRIu64 " %11" PRIu64 " %11" PRIu64 " %11" PRIu64 "  %s\n",
			     field_text(class, "name"), field_count(class, "pending"),
			     field_count(class, "scheduled"), field_count(class, "fired"),
			     field_count(class, "cancelled"),
			     span_text(field_number(class, "late_recent_ns")));
	}
}

/* --- consumers */

static enum terminal_colour state_colour(const char *state)
{
	if (strcmp(state, "ready") == 0 || strcmp(state, "held") == 0)
		return TERMINAL_GREEN;
	if (strcmp(state, "suspect") == 0 || strcmp(state, "backoff") == 0)
		return TERMINAL_RED;
	return TERMINAL_YELLOW;
}

static void draw_state(struct screen *screen, const char *state)
{
	screen_colour(screen, state_colour(state));
	screen_print(screen, " %-10s", state);
	screen_colour(screen, TERMINAL_NORMAL);
}

static void draw_endpoint(struct screen *screen, struct spoke_value endpoint)
{
	double retry_ms = field_number(endpoint, "retry_in_ms");

	screen_print(screen, "  %-22s", field_text(endpoint, "name"));
	draw_state(screen, field_text(endpoint, "state"));
	screen_print(screen, " %6" PRIu64 " %6" PRIu64 " %9" PRIu64 " %7" PRIu64 " %8s",
		     field_count(endpoint, "in_flight"), field_count(endpoint, "missed"),
		     field_count(endpoint, "calls"), field_count(endpoint, "failures"),
		     time_text(endpoint, "mean_ns"));
	if (field_is_true(endpoint, "ejected"))
		screen_print(screen, "  ejected");
	if (field_is_true(endpoint, "tls"))
		screen_print(screen, "  TLS");
	if (field_is_true(endpoint, "local"))
		screen_print(screen, "  unix socket");
	if (strcmp(field_text(endpoint, "state"), "backoff") == 0)
		screen_print(screen, "  again in %s", span_text(retry_ms * 1e6));
	screen_print(screen, "\n");
}

static void draw_due(struct screen *screen, struct spoke_value consumer)
{
	struct spoke_cursor due = field_list(consumer, "due");
	struct spoke_value ticket;

	for (unsigned row = 0; row < DUE_ROWS && spoke_cursor_next(&due, &ticket); row++) {
		screen_print(screen, "  ticket %-15s attempt %-3" PRIu64,
			     field_text(ticket, "method"), field_count(ticket, "attempts") + 1);
		if (field_is_true(ticket, "sending"))
			screen_print(screen, " in flight");
		else
			screen_print(screen, " due in %s",
				     span_text(field_number(ticket, "in_ms") * 1e6));
		screen_print(screen, ", %s left\n",
			     span_text(field_number(ticket, "left_ms") * 1e6));
	}
}

/* Draws the policy and the balancer, if the policy asks one. */
static void draw_chosen(struct screen *screen, struct spoke_value map)
{
	const char *balancer = field_text(map, "loadbalance");

	screen_print(screen, "  %s%s%s", field_text(map, "cluster"), *balancer ? ", " : "",
		     balancer);
}

/* Draws the methods whose policy or balancer is not the consumer's. */
static void draw_apart(struct screen *screen, struct spoke_value consumer, unsigned rows)
{
	struct spoke_cursor apart = field_list(consumer, "apart");
	uint64_t total = field_list_len(consumer, "apart") + field_count(consumer, "apart_more");
	struct spoke_value method;
	unsigned row = 0;

	for (; row < rows && spoke_cursor_next(&apart, &method); row++) {
		screen_print(screen, "  method %-15s", field_text(method, "method"));
		draw_chosen(screen, method);
		screen_print(screen, "\n");
	}
	if (total > row)
		screen_print(screen, "  ... and %" PRIu64 " more methods\n", total - row);
}

static void draw_consumer(struct screen *screen, struct spoke_value consumer, unsigned rows)
{
	struct spoke_cursor endpoints = field_list(consumer, "endpoints");
	size_t total = field_list_len(consumer, "endpoints");
	struct spoke_value endpoint;
	unsigned row = 0;

	heading(screen, "consumer ");
	heading(screen, field_text(consumer, "service"));
	draw_chosen(screen, consumer);
	screen_print(screen,
		     "  ready %" PRIu64 "  in flight %" PRIu64 "  tickets %" PRIu64 "/%" PRIu64
		     "\n",
		     field_count(consumer, "ready"), field_count(consumer, "in_flight"),
		     field_count(consumer, "tickets"), field_count(consumer, "tickets_max"));
	draw_apart(screen, consumer, rows);
	if (total > 0)
		screen_print(screen, "  %-22s %-10s %6s %6s %9s %7s %8s\n", "endpoint", "state",
			     "flight", "missed", "calls", "failed", "mean");
	for (; row < rows && spoke_cursor_next(&endpoints, &endpoint); row++)
		draw_endpoint(screen, endpoint);
	if (total > row)
		screen_print(screen, "  ... and %zu more\n", total - row);
	draw_due(screen, consumer);
}

/* --- providers */

static void draw_texts(struct screen *screen, struct spoke_value map, const char *key)
{
	struct spoke_cursor cursor = field_list(map, key);
	struct spoke_value value;
	struct spoke_span span;
	char whole[FIELD_TEXT];
	char name[NAME];

	while (spoke_cursor_next(&cursor, &value)) {
		if (spoke_value_str(value, &span) != SPOKE_OK)
			continue;
		(void)escape_text(span, whole, sizeof(whole));
		escape_end(whole, name, sizeof(name));
		screen_print(screen, " %s", name);
	}
}

static void draw_peer(struct screen *screen, struct spoke_value peer)
{
	double heard_ms;

	screen_print(screen, "  %-22s", field_text(peer, "name"));
	draw_state(screen, field_text(peer, "state"));
	screen_print(screen, " %6" PRIu64 " %6" PRIu64, field_count(peer, "in_flight"),
		     field_count(peer, "missed"));
	if (field_has_number(peer, "heard_ago_ms", &heard_ms))
		screen_print(screen, "  heard %s ago", span_text(heard_ms * 1e6));
	screen_print(screen, "%s\n", field_is_true(peer, "tls") ? "  TLS" : "");
}

static void draw_provider(struct screen *screen, struct spoke_value provider, unsigned rows)
{
	struct spoke_cursor peers = field_list(provider, "peers");
	size_t total = field_list_len(provider, "peers");
	struct spoke_value peer;
	unsigned row = 0;

	heading(screen, "provider");
	draw_texts(screen, provider, "services");
	screen_print(screen, "  at");
	draw_texts(screen, provider, "addresses");
	screen_print(screen, "  connections %" PRIu64 "  in flight %" PRIu64 "%s\n",
		     field_count(provider, "connections"), field_count(provider, "in_flight"),
		     field_is_true(provider, "draining")  ? "  draining"
		     : field_is_true(provider, "offline") ? "  offline"
							  : "");
	if (total > 0)
		screen_print(screen, "  %-22s %-10s %6s %6s\n", "peer", "state", "flight",
			     "missed");
	for (; row < rows && spoke_cursor_next(&peers, &peer); row++)
		draw_peer(screen, peer);
	if (total > row)
		screen_print(screen, "  ... and %zu more\n", total - row);
}

/* --- methods */

/* Draws how many calls or requests had each end but "ok". */
static void draw_ends(struct screen *screen, struct spoke_value ends)
{
	struct spoke_cursor cursor;
	struct spoke_value name;
	struct spoke_value count;
	unsigned drawn = 0;

	if (spoke_cursor_map(ends, &cursor) != SPOKE_OK)
		return;
	while (drawn < ENDS_MAX && spoke_cursor_next_pair(&cursor, &name, &count)) {
		struct spoke_span span = { NULL, 0 };
		uint64_t number = 0;
		char text[NAME];

		if (spoke_value_u64(count, &number) != SPOKE_OK || number == 0 ||
		    spoke_value_str(name, &span) != SPOKE_OK)
			continue;
		(void)escape_text(span, text, sizeof(text));
		if (strcmp(text, "ok") == 0)
			continue;
		screen_print(screen, "%s%" PRIu64 " %s", drawn++ ? ", " : "  ", number, text);
	}
}

static void draw_method(struct screen *screen, struct spoke_value method)
{
	struct spoke_value took = field_child(method, "took");
	struct spoke_value queued = field_child(method, "queued");
	char whole[2 * FIELD_TEXT];
	char name[NAME];

	(void)snprintf(whole, sizeof(whole), "%s/%s", field_text(method, "service"),
		       field_text(method, "method"));
	escape_end(whole, name, sizeof(name));
	screen_print(screen, "  %-8s %-34s %9" PRIu64 " %6" PRIu64 " ", field_text(method, "side"),
		     name, field_count(method, "begun"), field_count(method, "in_flight"));
	screen_colour(screen, field_count(method, "failed") ? TERMINAL_RED : TERMINAL_NORMAL);
	screen_print(screen, "%7" PRIu64, field_count(method, "failed"));
	screen_colour(screen, TERMINAL_NORMAL);
	screen_print(screen, " %8s %8s %8s %8s", time_text(took, "p50_ns"),
		     time_text(took, "p99_ns"), time_text(took, "p999_ns"),
		     queued.len ? time_text(queued, "p99_ns") : "-");
	draw_ends(screen, field_child(method, "ends"));
	screen_print(screen, "\n");
}

static void draw_methods(struct screen *screen, struct spoke_value status, unsigned rows)
{
	struct spoke_cursor methods = field_list(status, "methods");
	uint64_t total = field_list_len(status, "methods") + field_count(status, "methods_more");
	struct spoke_value method;
	unsigned row = 0;

	if (total == 0)
		return;
	heading(screen, "methods");
	screen_print(screen, "\n  %-8s %-34s %9s %6s %7s %8s %8s %8s %8s\n", "side", "method",
		     "begun", "flight", "failed", "p50", "p99", "p99.9", "queued");
	for (; row < rows && spoke_cursor_next(&methods, &method); row++)
		draw_method(screen, method);
	if (total > row)
		screen_print(screen, "  ... and %" PRIu64 " more\n", total - row);
}

/* --- leases */

static void draw_lease(struct screen *screen, struct spoke_value lease)
{
	screen_print(screen, "  %-22s", field_text(lease, "name"));
	if (strcmp(field_text(lease, "state"), "held") != 0) {
		screen_print(screen, " %s\n", field_text(lease, "state"));
		return;
	}
	draw_state(screen, "held");
	screen_print(screen, " %10s left  fence %" PRIu64 "\n",
		     span_text(field_number(lease, "left_ms") * 1e6), field_count(lease, "fence"));
}

static void draw_leases(struct screen *screen, struct spoke_value leases, unsigned rows)
{
	struct spoke_cursor shown = field_list(leases, "shown");
	uint64_t total = field_list_len(leases, "shown") + field_count(leases, "more");
	struct spoke_value lease;
	unsigned row = 0;

	heading(screen, "leases at ");
	heading(screen, field_text(leases, "store"));
	screen_print(screen, "  %s  held %" PRIu64 "  asked for %" PRIu64 "\n",
		     field_is_true(leases, "connected") ? "connected" : "not connected",
		     field_count(leases, "held"), field_count(leases, "asked"));
	for (; row < rows && spoke_cursor_next(&shown, &lease); row++)
		draw_lease(screen, lease);
	if (total > row)
		screen_print(screen, "  ... and %" PRIu64 " more\n", total - row);
}

/* --- events */

static void draw_events(struct screen *screen, struct spoke_value status)
{
	struct spoke_cursor events = field_list(status, "events");
	size_t total = field_list_len(status, "events");
	size_t rows = EVENTS_PLAIN;
	struct spoke_value event;

	heading(screen, "events");
	screen_print(screen, "\n");
	if (screen->live)
		rows = rows_left(screen);
	for (size_t i = 0; spoke_cursor_next(&events, &event); i++) {
		const char *error = field_text(event, "error");

		if (i + rows < total)
			continue;
		screen_print(screen, "  %8s ago ", span_text(field_number(event, "ago_ms") * 1e6));
		screen_colour(screen, *error ? TERMINAL_RED : TERMINAL_NORMAL);
		screen_print(screen, "%-9s %s%s%s\n", field_text(event, "user"),
			     field_text(event, "text"), *error ? ": " : "", error);
	}
}

bool status_view_is_one(struct spoke_value value)
{
	return spoke_value_type(value) == SPOKE_VALUE_MAP && field_child(value, "wheel").len > 0;
}

void status_view_body(struct screen *screen, struct spoke_value status)
{
	struct spoke_cursor consumers = field_list(status, "consumers");
	struct spoke_cursor providers = field_list(status, "providers");
	struct spoke_cursor leases = field_list(status, "leases");
	size_t parts = field_list_len(status, "consumers") + field_list_len(status, "providers") +
		       field_list_len(status, "leases") + (field_list_len(status, "methods") > 0);
	unsigned rows = ROWS_PLAIN;
	struct spoke_value part;

	draw_pool(screen, status);
	draw_wheel(screen, field_child(status, "wheel"));
	if (screen->live && parts > 0) {
		unsigned left = rows_left(screen);

		rows = left > EVENTS_LIVE_MIN ? (unsigned)((left - EVENTS_LIVE_MIN) / parts) : 0;
		rows = rows > ROWS_LIVE_MIN + 2 ? rows - 2 : ROWS_LIVE_MIN;
	}
	while (spoke_cursor_next(&consumers, &part))
		draw_consumer(screen, part, rows);
	while (spoke_cursor_next(&providers, &part))
		draw_provider(screen, part, rows);
	draw_methods(screen, status, rows);
	while (spoke_cursor_next(&leases, &part))
		draw_leases(screen, part, rows);
	draw_events(screen, status);
}
