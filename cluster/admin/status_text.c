/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the status as plain text. Foreign names are escaped to printable ASCII. */
#include "cluster/admin/lines.h"
#include "cluster/admin/members.h"
#include "cluster/admin/status_parts.h"
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry_state.h"
#include "cluster/consumer/consumer.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/info.h"
#include "cluster/provider/peers.h"
#include "cluster/provider/provider.h"
#include "cluster/serve/routes.h"
#include "core/engine/engine.h"
#include "core/engine/events.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/stats.h>

#include <inttypes.h>
#include <stdio.h>

#define NAME 80u /* bytes of a name */
#define TIME 24u /* bytes of a time */
#define MS UINT64_C(1000000)

static const char *escape(char out[NAME], const char *text)
{
	(void)spokei_log_escape_end(out, NAME, text, strlen(text));
	return out;
}

/* Prints a time, e.g. "1.234 s" or "0.250 ms". */
static const char *print_time(char out[TIME], uint64_t ns)
{
	if (ns < 1000 * MS)
		(void)snprintf(out, TIME, "%" PRIu64 ".%03" PRIu64 " ms", ns / MS,
			       ns / 1000 % 1000);
	else
		(void)snprintf(out, TIME, "%" PRIu64 ".%03" PRIu64 " s", ns / (1000 * MS),
			       ns / MS % 1000);
	return out;
}

/* Prints the time since the last byte was received. */
static void put_heard(struct spokei_lines *lines, uint64_t heard_ns)
{
	char ago[TIME];

	if (heard_ns == UINT64_MAX)
		spokei_lines_put(lines, ", nothing received");
	else
		spokei_lines_put(lines, ", received %s ago", print_time(ago, heard_ns));
}

/* --- the engine */

static void put_head(struct spokei_lines *lines, const struct spoke_engine *engine,
		     const struct spokei_status_of *of)
{
	uint64_t now_ns = engine->begin_ns;
	char name[NAME];
	char up[TIME];

	spokei_lines_put(lines, "%s, process %" PRIu64 ", spoke %s, up %s%s\n",
			 escape(name, of->name), of->number, spokei_status_version,
			 print_time(up, now_ns > of->born_ns ? now_ns - of->born_ns : 0),
			 spokei_engine_ending(engine) ? ", draining" : "");
}

static void put_counts(struct spokei_lines *lines, const char *name,
		       const struct spoke_wheel_counts *counts)
{
	char late[TIME];

	spokei_lines_put(lines,
			 "  %-12s %10" PRIu64 " pending %12" PRIu64 " fired %12" PRIu64
			 " cancelled   at most %s late in 2 min\n",
			 name, counts->pending, counts->fired, counts->cancelled,
			 print_time(late, counts->late_recent_ns));
}

static void put_wheel(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	struct spoke_wheel_counts counts;
	struct spoke_wheel_shape shape;
	const char *name;
	char tick[TIME];

	spoke_wheel_shape(engine->wheel, &shape);
	spokei_lines_put(lines,
			 "\nThe wheel: %" PRIu32 " levels of %" PRIu32
			 " slots, tick %s, now at tick %" PRIu64 "\n",
			 shape.levels, shape.slots, print_time(tick, shape.tick_ns), shape.tick);
	for (unsigned i = 0; !spoke_wheel_class_counts(engine->wheel, i, &counts, &name); i++)
		put_counts(lines, name, &counts);
	spoke_wheel_counts(engine->wheel, &counts);
	put_counts(lines, "all", &counts);
}

static void put_calls(struct spokei_lines *lines, const struct spoke_engine *engine)
{
	const struct spoke_histogram *latency = engine->latency;
	const uint64_t *stats = engine->stats;
	char median[TIME];
	char p99[TIME];
	char max[TIME];

	spokei_lines_put(lines,
			 "\nCalls: %" PRIu64 " started, %" PRIu64 " ok, %" PRIu64
			 " timed out, %" PRIu64 " deferred, %" PRIu64 " lost; requests: %" PRIu64
			 "\n",
			 stats[SPOKE_STAT_CALLS], stats[SPOKE_STAT_CALLS_OK],
			 stats[SPOKE_STAT_CALLS_TIMEOUT] + stats[SPOKE_STAT_CALLS_TIMEOUT_UNSENT],
			 stats[SPOKE_STAT_CALLS_DEFERRED], stats[SPOKE_STAT_CALLS_LOST],
			 stats[SPOKE_STAT_REQUESTS]);
	if (latency->count == 0)
		return;
	spokei_lines_put(lines,
			 "  %" PRIu64 " replies: 50%% within %s, 99%% within %s, all within %s\n",
			 latency->count,
			 print_time(median, spoke_histogram_percentile(latency, 500000)),
			 print_time(p99, spoke_histogram_percentile(latency, 990000)),
			 print_time(max, latency->max));
}

/* --- consumers */

static void put_endpoint(struct spokei_lines *lines, const struct spokei_endpoint *endpoint)
{
	struct spoke_endpoint_info info;
	char name[NAME];
	char retry[TIME];

	spokei_endpoint_info(endpoint, &info);
	spokei_lines_put(lines, "  %-22s %-10s%s %" PRIu32 " in flight, %u missed",
			 escape(name, info.name), spoke_endpoint_state_name(info.state),
			 info.ejected ? " ejected," : "", info.actives, info.missed);
	put_heard(lines, info.heard_ns);
	spokei_lines_put(lines, "%s%s", info.tls ? ", TLS" : "", info.local ? ", unix socket" : "");
	if (info.state == SPOKE_ENDPOINT_BACKOFF)
		spokei_lines_put(lines, ", attempt %" PRIu32 " in %s", info.attempt,
				 print_time(retry, info.retry_ns));
	if (*info.admin)
		spokei_lines_put(lines, ", page at http://%s/", info.admin);
	spokei_lines_put(lines, "\n");
}

static void put_due(struct spokei_lines *lines, const struct spokei_due *due, uint64_t now_ns)
{
	struct spoke_ticket_state state;
	char name[NAME];
	char in[TIME];
	char left[TIME];

	spokei_ticket_look(due->retry, now_ns, &state);
	spokei_lines_put(lines, "  ticket %s: %" PRIu32 " attempts, %s%s, %s left\n",
			 escape(name, due->retry->call->method->name), state.attempts,
			 state.sending ? "one in flight" : "next in ",
			 state.sending ? "" : print_time(in, due->in_ns),
			 print_time(left, state.left_ns));
}

static void put_more(struct spokei_lines *lines, const char *kind, size_t count)
{
	if (count > 0)
		spokei_lines_put(lines, "  and %zu more %s\n", count, kind);
}

static void put_consumer(struct spokei_lines *lines, const struct spoke_consumer *consumer,
			 struct spokei_rows *rows)
{
	const struct spokei_consumer_view view = spokei_consumer_look(consumer);
	const struct spokei_retry_queue *retry = &view.caller->retry;
	const struct spokei_endpoint *endpoint = NULL;
	struct spokei_due dues[SPOKEI_STATUS_ROWS];
	size_t count = spokei_directory_infos(view.directory, NULL, 0);
	size_t shown = spokei_rows_take(rows, count);
	char name[NAME];

	spokei_lines_put(lines,
			 "\nConsumer of %s, %s: %zu endpoints ready, %zu calls in flight, "
			 "%" PRIu32 " of %" PRIu32 " tickets\n",
			 escape(name, view.service), view.settings->policy->name,
			 spokei_directory_ready(view.directory), spokei_members_calls(consumer),
			 retry->tasks, retry->tasks_max);
	for (size_t i = 0; i < shown; i++) {
		endpoint = spokei_directory_next(view.directory, endpoint);
		put_endpoint(lines, endpoint);
	}
	put_more(lines, "endpoints", count - shown);
	shown = spokei_members_due(consumer, dues, SPOKEI_STATUS_ROWS);
	shown = spokei_rows_take(rows, shown);
	for (size_t i = 0; i < shown; i++)
		put_due(lines, &dues[i], view.caller->engine->begin_ns);
	put_more(lines, "tickets", retry->tasks - shown);
}

/* --- providers */

static void put_peer(struct spokei_lines *lines, const struct spokei_conn *conn)
{
	struct spoke_peer_info info;
	char name[NAME];

	spokei_peer_look(conn, &info);
	spokei_lines_put(lines, "  %-22s %-10s %" PRIu32 " in flight, %u missed",
			 escape(name, info.name), spokei_status_peer_state(&info), info.in_flight,
			 info.missed);
	put_heard(lines, info.heard_ns);
	if (conn->refusals > 0)
		spokei_lines_put(lines, ", %u refused", conn->refusals);
	spokei_lines_put(lines, "%s\n", info.tls ? ", TLS" : "");
}

static void put_places(struct spokei_lines *lines, const struct spoke_provider *provider,
		       const struct spokei_provider_view *view)
{
	const struct spoke_list *all = &view->services->all;
	char service[SPOKEI_STATUS_SERVICE];
	char name[NAME];
	unsigned left = SPOKEI_STATUS_SERVICES;

	for (struct spoke_list *node = all->next; node != all && left > 0; node = node->next) {
		spokei_status_service(spoke_container_of(node, struct spokei_service, node),
				      service);
		spokei_lines_put(lines, "  serves %s\n", escape(name, service));
		left--;
	}
	for (size_t i = 0; i < view->addresses; i++) {
		(void)spoke_provider_address(provider, i, service, sizeof(service));
		spokei_lines_put(lines, "  listens at %s\n", escape(name, service));
	}
}

static void put_provider(struct spokei_lines *lines, const struct spoke_provider *provider,
			 struct spokei_rows *rows)
{
	const struct spokei_provider_view view = spokei_provider_look(provider);
	const struct spoke_list *conns = &view.link->conns;
	size_t room = spokei_rows_take(rows, view.peers);
	size_t more = view.peers - room;

	spokei_lines_put(lines,
			 "\nProvider%s: %" PRIu32 " connections, %" PRIu32 " requests in flight\n",
			 view.draining ? ", draining" : "", view.link->conn_count,
			 view.link->serving_count);
	put_places(lines, provider, &view);
	for (struct spoke_list *node = conns->next; node != conns && room > 0; node = node->next) {
		const struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		if (conn->handle == 0)
			continue;
		put_peer(lines, conn);
		room--;
	}
	put_more(lines, "peers", more);
}

/* --- the whole status */

static void put_events(struct spokei_lines *lines, const struct spoke_engine *engine,
		       const struct spokei_status_of *of)
{
	uint64_t number = spokei_status_first_event(engine, of);
	const struct spoke_event *event;
	char ago[TIME];

	spokei_lines_put(lines, "\nLatest events\n");
	while ((event = spokei_events_find(engine->events, number)) != NULL) {
		uint64_t at_ns = event->at_ns;

		spokei_lines_put(lines, "  %12s ago %-9s %s\n",
				 print_time(ago, engine->begin_ns > at_ns ? engine->begin_ns - at_ns
									  : 0),
				 spoke_event_user_name(event->user), event->text);
		number = event->number + 1;
	}
}

int spokei_status_write_text(const struct spoke_engine *engine, const struct spokei_status_of *of,
			     struct spokei_buffer *out)
{
	struct spokei_lines lines = spokei_lines_make(out);
	struct spokei_rows rows = { SPOKEI_STATUS_ROWS_ALL };
	const struct spoke_consumer *consumer = NULL;
	const struct spoke_provider *provider = NULL;
	struct spoke_leases *leases = NULL;
	const struct spoke_comet *comet = NULL;
	size_t before = spokei_buffer_len(out);

	put_head(&lines, engine, of);
	put_wheel(&lines, engine);
	put_calls(&lines, engine);
	while ((consumer = spokei_members_consumer(engine, consumer)) != NULL &&
	       spokei_rows_take(&rows, 1) == 1)
		put_consumer(&lines, consumer, &rows);
	while ((provider = spokei_members_provider(engine, provider)) != NULL &&
	       spokei_rows_take(&rows, 1) == 1)
		put_provider(&lines, provider, &rows);
	while ((leases = spokei_members_leases(engine, leases)) != NULL &&
	       spokei_rows_take(&rows, 1) == 1)
		spokei_status_put_leases(&lines, leases, &rows);
	while ((comet = spokei_members_comet(engine, comet)) != NULL &&
	       spokei_rows_take(&rows, 1) == 1)
		spokei_status_put_comet(&lines, comet);
	spokei_status_put_methods(&lines, engine, &rows);
	put_events(&lines, engine, of);
	if (lines.error == SPOKE_OK)
		return SPOKE_OK;
	spokei_buffer_truncate(out, before);
	return SPOKE_ENOMEM;
}
