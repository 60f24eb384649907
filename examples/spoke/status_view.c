/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the status of an engine. */
#include "examples/spoke/status_view.h"

#include "examples/spoke/escape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT 232u
#define NAME 48u
#define CLASSES_LIVE 6u
#define ROWS_LIVE_MIN 3u
#define DUE_ROWS 5u
#define EVENTS_LIVE_MIN 4u
#define EVENTS_PLAIN 10u
#define ROWS_PLAIN 100u

/* --- reading the status */

static struct spoke_value child(struct spoke_value map, const char *key)
{
	struct spoke_value value;

	return spoke_value_get(map, key, &value) == SPOKE_OK ? value : (struct spoke_value){ 0 };
}

static bool has_number(struct spoke_value map, const char *key, double *ret)
{
	return spoke_value_double(child(map, key), ret) == SPOKE_OK;
}

static double number(struct spoke_value map, const char *key)
{
	double value;

	return has_number(map, key, &value) ? value : 0;
}

static uint64_t count(struct spoke_value map, const char *key)
{
	uint64_t value;

	return spoke_value_u64(child(map, key), &value) == SPOKE_OK ? value : 0;
}

/* Returns a text, escaped, in one of a few static buffers used in turn: valid for one line. */
static const char *text(struct spoke_value map, const char *key)
{
	static char texts[4][TEXT];
	static unsigned turn;
	struct spoke_span span = { NULL, 0 };
	char *place = texts[turn++ % 4];

	if (spoke_value_str(child(map, key), &span) != SPOKE_OK)
		span.len = 0;
	(void)escape_text(span, place, TEXT);
	return place;
}

static bool is_true(struct spoke_value map, const char *key)
{
	bool value;

	return spoke_value_bool(child(map, key), &value) == SPOKE_OK && value;
}

/* Returns a cursor over an array; an empty one if there is none. */
static struct spoke_cursor list(struct spoke_value map, const char *key)
{
	struct spoke_cursor cursor;

	if (spoke_cursor_array(child(map, key), &cursor) != SPOKE_OK)
		cursor = spoke_cursor_bytes((struct spoke_span){ NULL, 0 });
	return cursor;
}

static size_t list_len(struct spoke_value map, const char *key)
{
	size_t len;

	return spoke_value_array_len(child(map, key), &len) == SPOKE_OK ? len : 0;
}

static struct spoke_value last_of(struct spoke_value map, const char *key)
{
	struct spoke_cursor cursor = list(map, key);
	struct spoke_value last = { NULL, 0 };
	struct spoke_value value;

	while (spoke_cursor_next(&cursor, &value))
		last = value;
	return last;
}

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
	double ns = number(map, key);

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
	double span_ms = number(sample, "span_ms");

	return span_ms > 0 ? number(sample, key) * 1000 / span_ms : 0;
}

static unsigned rows_left(const struct screen *screen)
{
	return screen->row < screen->height ? screen->height - screen->row : 0;
}

/* --- the head line */

void status_view_head(struct screen *screen, struct spoke_value status, const char *address)
{
	struct spoke_value sample = last_of(status, "history");

	heading(screen, text(status, "name"));
	screen_print(screen, " %" PRIu64 " at %s, up %s%s\n", count(status, "number"), address,
		     span_text(number(status, "up_ms") * 1e6),
		     is_true(status, "ending") ? ", draining" : "");
	screen_print(screen, "  calls/s %.1f  failed/s %.1f  requests/s %.1f",
		     per_second(sample, "calls"), per_second(sample, "failed"),
		     per_second(sample, "requests"));
	screen_print(screen, "  p50 %s  p99 %s\n", time_text(sample, "p50_ns"),
		     time_text(sample, "p99_ns"));
}

/* The pool, where handlers use it. */
static void draw_pool(struct screen *screen, struct spoke_value status)
{
	struct spoke_value pool = child(status, "pool");
	struct spoke_value stats = child(status, "stats");

	if (count(stats, "pool_requests") == 0)
		return;
	heading(screen, "pool");
	screen_print(screen,
		     "  running %" PRIu64 " of %" PRIu64 "  queued %" PRIu64 " of %" PRIu64
		     "  waited 100ms %" PRIu64 "  refused %" PRIu64 "\n",
		     count(pool, "running"), count(pool, "threads_max"), count(pool, "queued"),
		     count(pool, "queue_max"), count(stats, "pool_waited"),
		     count(stats, "pool_full"));
}

/* --- the wheel */

static void draw_wheel(struct screen *screen, struct spoke_value wheel)
{
	struct spoke_cursor classes = list(wheel, "classes");
	struct spoke_value class;
	double next_ms;

	heading(screen, "wheel");
	screen_print(screen, "  pending %" PRIu64 "  fired %" PRIu64 "  late at most %s in 2 min",
		     count(wheel, "pending"), count(wheel, "fired"),
		     span_text(number(wheel, "late_recent_ns")));
	if (has_number(wheel, "next_in_ms", &next_ms))
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
			     text(class, "name"), count(class, "pending"),
			     count(class, "scheduled"), count(class, "fired"),
			     count(class, "cancelled"), span_text(number(class, "late_recent_ns")));
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
	double retry_ms = number(endpoint, "retry_in_ms");

	screen_print(screen, "  %-22s", text(endpoint, "name"));
	draw_state(screen, text(endpoint, "state"));
	screen_print(screen, " %6" PRIu64 " %6" PRIu64 " %9" PRIu64 " %7" PRIu64 " %8s",
		     count(endpoint, "in_flight"), count(endpoint, "missed"),
		     count(endpoint, "calls"), count(endpoint, "failures"),
		     time_text(endpoint, "mean_ns"));
	if (is_true(endpoint, "ejected"))
		screen_print(screen, "  ejected");
	if (strcmp(text(endpoint, "state"), "backoff") == 0)
		screen_print(screen, "  again in %s", span_text(retry_ms * 1e6));
	screen_print(screen, "\n");
}

static void draw_due(struct screen *screen, struct spoke_value consumer)
{
	struct spoke_cursor due = list(consumer, "due");
	struct spoke_value ticket;

	for (unsigned row = 0; row < DUE_ROWS && spoke_cursor_next(&due, &ticket); row++) {
		screen_print(screen, "  ticket %-15s attempt %-3" PRIu64, text(ticket, "method"),
			     count(ticket, "attempts") + 1);
		if (is_true(ticket, "sending"))
			screen_print(screen, " in flight");
		else
			screen_print(screen, " due in %s",
				     span_text(number(ticket, "in_ms") * 1e6));
		screen_print(screen, ", %s left\n", span_text(number(ticket, "left_ms") * 1e6));
	}
}

static void draw_consumer(struct screen *screen, struct spoke_value consumer, unsigned rows)
{
	struct spoke_cursor endpoints = list(consumer, "endpoints");
	size_t total = list_len(consumer, "endpoints");
	struct spoke_value endpoint;
	unsigned row = 0;

	heading(screen, "consumer ");
	heading(screen, text(consumer, "service"));
	screen_print(screen,
		     "  %s, %s  ready %" PRIu64 "  in flight %" PRIu64 "  tickets %" PRIu64
		     "/%" PRIu64 "\n",
		     text(consumer, "cluster"), text(consumer, "loadbalance"),
		     count(consumer, "ready"), count(consumer, "in_flight"),
		     count(consumer, "tickets"), count(consumer, "tickets_max"));
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
	struct spoke_cursor cursor = list(map, key);
	struct spoke_value value;
	struct spoke_span span;
	char name[NAME];

	while (spoke_cursor_next(&cursor, &value)) {
		if (spoke_value_str(value, &span) != SPOKE_OK)
			continue;
		(void)escape_text(span, name, sizeof(name));
		screen_print(screen, " %s", name);
	}
}

static void draw_peer(struct screen *screen, struct spoke_value peer)
{
	double heard_ms;

	screen_print(screen, "  %-22s", text(peer, "name"));
	draw_state(screen, text(peer, "state"));
	screen_print(screen, " %6" PRIu64 " %6" PRIu64, count(peer, "in_flight"),
		     count(peer, "missed"));
	if (has_number(peer, "heard_ago_ms", &heard_ms))
		screen_print(screen, "  heard %s ago", span_text(heard_ms * 1e6));
	screen_print(screen, "\n");
}

static void draw_provider(struct screen *screen, struct spoke_value provider, unsigned rows)
{
	struct spoke_cursor peers = list(provider, "peers");
	size_t total = list_len(provider, "peers");
	struct spoke_value peer;
	unsigned row = 0;

	heading(screen, "provider");
	draw_texts(screen, provider, "services");
	screen_print(screen, "  at");
	draw_texts(screen, provider, "addresses");
	screen_print(screen, "  connections %" PRIu64 "  in flight %" PRIu64 "%s\n",
		     count(provider, "connections"), count(provider, "in_flight"),
		     is_true(provider, "draining") ? "  draining" : "");
	if (total > 0)
		screen_print(screen, "  %-22s %-10s %6s %6s\n", "peer", "state", "flight",
			     "missed");
	for (; row < rows && spoke_cursor_next(&peers, &peer); row++)
		draw_peer(screen, peer);
	if (total > row)
		screen_print(screen, "  ... and %zu more\n", total - row);
}

/* --- methods */

static void draw_method(struct screen *screen, struct spoke_value method)
{
	struct spoke_value took = child(method, "took");
	struct spoke_value queued = child(method, "queued");
	char name[NAME];

	(void)snprintf(name, sizeof(name), "%s/%s", text(method, "service"),
		       text(method, "method"));
	screen_print(screen, "  %-8s %-34s %9" PRIu64 " %6" PRIu64 " ", text(method, "side"), name,
		     count(method, "begun"), count(method, "in_flight"));
	screen_colour(screen, count(method, "failed") ? TERMINAL_RED : TERMINAL_NORMAL);
	screen_print(screen, "%7" PRIu64, count(method, "failed"));
	screen_colour(screen, TERMINAL_NORMAL);
	screen_print(screen, " %8s %8s %8s %8s\n", time_text(took, "p50_ns"),
		     time_text(took, "p99_ns"), time_text(took, "p999_ns"),
		     queued.len ? time_text(queued, "p99_ns") : "-");
}

static void draw_methods(struct screen *screen, struct spoke_value status, unsigned rows)
{
	struct spoke_cursor methods = list(status, "methods");
	uint64_t total = list_len(status, "methods") + count(status, "methods_more");
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
	screen_print(screen, "  %-22s", text(lease, "name"));
	if (strcmp(text(lease, "state"), "held") != 0) {
		screen_print(screen, " %s\n", text(lease, "state"));
		return;
	}
	draw_state(screen, "held");
	screen_print(screen, " %10s left  fence %" PRIu64 "\n",
		     span_text(number(lease, "left_ms") * 1e6), count(lease, "fence"));
}

static void draw_leases(struct screen *screen, struct spoke_value leases, unsigned rows)
{
	struct spoke_cursor shown = list(leases, "shown");
	uint64_t total = list_len(leases, "shown") + count(leases, "more");
	struct spoke_value lease;
	unsigned row = 0;

	heading(screen, "leases at ");
	heading(screen, text(leases, "store"));
	screen_print(screen, "  %s  held %" PRIu64 "  asked for %" PRIu64 "\n",
		     is_true(leases, "connected") ? "connected" : "not connected",
		     count(leases, "held"), count(leases, "asked"));
	for (; row < rows && spoke_cursor_next(&shown, &lease); row++)
		draw_lease(screen, lease);
	if (total > row)
		screen_print(screen, "  ... and %" PRIu64 " more\n", total - row);
}

/* --- events */

static void draw_events(struct screen *screen, struct spoke_value status)
{
	struct spoke_cursor events = list(status, "events");
	size_t total = list_len(status, "events");
	size_t rows = EVENTS_PLAIN;
	struct spoke_value event;

	heading(screen, "events");
	screen_print(screen, "\n");
	if (screen->live)
		rows = rows_left(screen);
	for (size_t i = 0; spoke_cursor_next(&events, &event); i++) {
		const char *error = text(event, "error");

		if (i + rows < total)
			continue;
		screen_print(screen, "  %8s ago ", span_text(number(event, "ago_ms") * 1e6));
		screen_colour(screen, *error ? TERMINAL_RED : TERMINAL_NORMAL);
		screen_print(screen, "%-9s %s%s%s\n", text(event, "user"), text(event, "text"),
			     *error ? ": " : "", error);
	}
}

bool status_view_is_one(struct spoke_value value)
{
	return spoke_value_type(value) == SPOKE_VALUE_MAP && child(value, "wheel").len > 0;
}

void status_view_body(struct screen *screen, struct spoke_value status)
{
	struct spoke_cursor consumers = list(status, "consumers");
	struct spoke_cursor providers = list(status, "providers");
	struct spoke_cursor leases = list(status, "leases");
	size_t parts = list_len(status, "consumers") + list_len(status, "providers") +
		       list_len(status, "leases") + (list_len(status, "methods") > 0);
	unsigned rows = ROWS_PLAIN;
	struct spoke_value part;

	draw_pool(screen, status);
	draw_wheel(screen, child(status, "wheel"));
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
