/* SPDX-License-Identifier: Apache-2.0 */
/* The consumers, providers, leases and gateways of an engine, in the status and the metrics. */
#include "cluster/admin/facts.h"
#include "cluster/admin/members.h"
#include "cluster/admin/status_parts.h"
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry.h"
#include "cluster/comet/view.h"
#include "cluster/consumer/consumer.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/info.h"
#include "cluster/lease/view.h"
#include "cluster/provider/peers.h"
#include "cluster/provider/provider.h"
#include "cluster/serve/routes.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/stream/tls/tls.h"
#include "transport/trust/caller.h"

#include <stdio.h>

#define ADDRESS_TEXT 160u
#define DAY_S INT64_C(86400)

/* --- certificates */

struct certificate_row {
	uint32_t consumer; /* its number, from 1 on; 0: it is a provider's */
	uint32_t provider;
	int64_t days; /* until it ends; negative: it has; INT64_MIN: there is none */
};

#define FACT(member, ...) SPOKEI_FACT(struct certificate_row, member, __VA_ARGS__)

static const struct spokei_fact certificate_facts[] = {
	FACT(consumer, .label = "consumer", .optional = true),
	FACT(provider, .label = "provider", .optional = true),
	FACT(days, .name = "certificate_days", .family = "spoke_tls_certificate_days",
	     .help = "days until the own certificate ends; negative: it has ended"),
};
#undef FACT
static const struct spokei_facts of_certificate = SPOKEI_FACTS(certificate_facts);

static int64_t find_days(const struct spoke_engine *engine, const struct spokei_tls *tls)
{
	const struct spoke_env *env = engine->env;
	int64_t ends_s = tls ? spokei_tls_ends(tls) : 0;
	int64_t left_s;

	if (ends_s == 0)
		return INT64_MIN;
	left_s = ends_s - (int64_t)(env->wall(env->ctx) / UINT64_C(1000000000));
	return left_s < 0 ? -(-left_s + DAY_S - 1) / DAY_S : left_s / DAY_S;
}

static void show_certificate(struct spokei_json *json, const struct spoke_engine *engine,
			     const struct spokei_tls *tls)
{
	const struct certificate_row row = { .days = find_days(engine, tls) };

	spokei_facts_show(json, &of_certificate, &row);
}

static void each_certificate(const struct spoke_engine *engine, spokei_facts_take_fn take,
			     void *arg)
{
	const struct spoke_consumer *consumer = NULL;
	const struct spoke_provider *provider = NULL;
	struct certificate_row row = { 0 };

	while ((consumer = spokei_members_consumer(engine, consumer)) != NULL) {
		row.consumer++;
		row.days = find_days(engine, spokei_consumer_look(consumer).tls);
		take(arg, &row);
	}
	row.consumer = 0;
	while ((provider = spokei_members_provider(engine, provider)) != NULL) {
		row.provider++;
		row.days = find_days(engine, spokei_provider_look(provider).tls);
		take(arg, &row);
	}
}

/* --- consumers */

struct consumer_row {
	uint32_t number; /* on the engine, from 1 on, because names may repeat */
	const char *service;
	const char *cluster;
	const char *loadbalance;
	size_t ready;
	size_t in_flight;
	size_t tickets;
	size_t tickets_max;
	size_t ticket_bytes;
	uint64_t heartbeat_ns;
	uint64_t retry_period_ns;
};

#define FACT(member, ...) SPOKEI_FACT(struct consumer_row, member, __VA_ARGS__)

static const struct spokei_fact consumer_facts[] = {
	FACT(number, .label = "consumer"),
	FACT(service, .label = "service", .name = "service"),
	FACT(cluster, .name = "cluster"),
	FACT(loadbalance, .name = "loadbalance"),
	FACT(ready, .name = "ready", .family = "spoke_endpoints_ready",
	     .help = "endpoints that are connected and healthy"),
	FACT(in_flight, .name = "in_flight", .family = "spoke_calls_in_flight",
	     .help = "calls in flight, without tickets"),
	FACT(tickets, .name = "tickets", .family = "spoke_tickets",
	     .help = "failback calls that wait as tickets"),
	FACT(tickets_max, .name = "tickets_max"),
	FACT(ticket_bytes, .name = "ticket_bytes", .family = "spoke_ticket_bytes",
	     .help = "bytes held by tickets"),
	FACT(heartbeat_ns, .name = "heartbeat_ms", .ms = true),
	FACT(retry_period_ns, .name = "retry_period_ms", .ms = true),
};
#undef FACT
static const struct spokei_facts of_consumer = SPOKEI_FACTS(consumer_facts);

static struct consumer_row consumer_row(const struct spoke_consumer *consumer, uint32_t number)
{
	const struct spokei_consumer_view view = spokei_consumer_look(consumer);
	const struct spokei_retry_queue *retry = &view.caller->retry;

	return (struct consumer_row){
		.number = number,
		.service = view.service,
		.cluster = view.settings->policy->name,
		.loadbalance = spokei_members_balancer(view.settings),
		.ready = spokei_directory_ready(view.directory),
		.in_flight = spokei_members_calls(consumer),
		.tickets = retry->tasks,
		.tickets_max = retry->tasks_max,
		.ticket_bytes = retry->bytes,
		.heartbeat_ns = view.heartbeat_ns,
		.retry_period_ns = view.settings->period_ns,
	};
}

static void each_consumer(const struct spoke_engine *engine, spokei_facts_take_fn take, void *arg)
{
	const struct spoke_consumer *consumer = NULL;
	uint32_t number = 0;

	while ((consumer = spokei_members_consumer(engine, consumer)) != NULL) {
		const struct consumer_row row = consumer_row(consumer, ++number);

		take(arg, &row);
	}
}

/* --- endpoints */

struct endpoint_row {
	uint32_t consumer;
	const char *service;
	const char *wire;
	const char *application;
	const char *group;
	const char *version;
	const char *state;
	uint64_t retry_ns; /* UINT64_MAX: it does not wait */
	struct spoke_endpoint_info info;
};

#define FACT(member, ...) SPOKEI_FACT(struct endpoint_row, member, __VA_ARGS__)

/* Two listed endpoints of a consumer differ in at least one label. */
static const struct spokei_fact endpoint_facts[] = {
	FACT(consumer, .label = "consumer"),
	FACT(service, .label = "service"),
	FACT(info.name, .label = "endpoint", .name = "name"),
	FACT(wire, .label = "wire"),
	FACT(application, .name = "application"),
	FACT(group, .label = "group", .optional = true, .name = "group"),
	FACT(version, .label = "version", .optional = true, .name = "version"),
	FACT(state, .name = "state"),
	FACT(info.ejected, .name = "ejected", .family = "spoke_endpoint_ejected",
	     .help = "1: ejected after consecutive failures"),
	FACT(info.actives, .name = "in_flight", .family = "spoke_endpoint_calls_in_flight",
	     .help = "calls in flight at the endpoint"),
	FACT(info.connections, .name = "connections"),
	FACT(info.missed, .name = "missed", .family = "spoke_endpoint_heartbeats_missed",
	     .help = "consecutive heartbeats without a reply"),
	FACT(info.attempt, .name = "attempt"),
	FACT(retry_ns, .name = "retry_in_ms", .ms = true),
	FACT(info.heard_ns, .name = "heard_ago_ms", .ms = true),
	FACT(info.weight, .name = "weight"),
	FACT(info.calls, .name = "calls", .counts = true, .family = "spoke_endpoint_calls_total",
	     .help = "attempts that were sent to the endpoint"),
	FACT(info.failures, .name = "failures", .counts = true,
	     .family = "spoke_endpoint_failures_total",
	     .help = "attempts that failed at the endpoint"),
	FACT(info.mean_ns, .name = "mean_ns", .ns = true,
	     .family = "spoke_endpoint_duration_mean_seconds",
	     .help = "recent mean duration of answered calls; 0: none"),
	FACT(info.tls, .name = "tls", .family = "spoke_endpoint_tls",
	     .help = "1: a connection to it uses TLS"),
	FACT(info.local, .name = "local"),
	FACT(info.admin, .name = "admin"),
};
#undef FACT
static const struct spokei_facts of_endpoint = SPOKEI_FACTS(endpoint_facts);

static void fill_endpoint(struct endpoint_row *row, const struct spokei_endpoint *endpoint)
{
	spokei_endpoint_info(endpoint, &row->info);
	row->wire = endpoint->options.wire->name;
	row->application = endpoint->application;
	row->group = endpoint->group;
	row->version = endpoint->version;
	row->state = spoke_endpoint_state_name(row->info.state);
	row->retry_ns = row->info.state == SPOKE_ENDPOINT_BACKOFF ? row->info.retry_ns : UINT64_MAX;
}

/* Endpoints that are no longer listed are omitted, because their labels may be in use again. */
static void each_endpoint(const struct spoke_engine *engine, spokei_facts_take_fn take, void *arg)
{
	const struct spoke_consumer *consumer = NULL;
	struct endpoint_row row = { 0 };
	unsigned rows = 0;

	while ((consumer = spokei_members_consumer(engine, consumer)) != NULL) {
		const struct spokei_consumer_view view = spokei_consumer_look(consumer);
		const struct spokei_candidates *candidates = &view.directory->candidates;

		row.consumer++;
		row.service = view.service;
		for (size_t i = 0; i < candidates->shown.count && rows < SPOKEI_FACTS_ROWS;
		     i++, rows++) {
			fill_endpoint(&row, candidates->endpoints[i]);
			take(arg, &row);
		}
	}
}

static void show_endpoints(struct spokei_json *json, const struct spokei_directory *directory,
			   struct spokei_rows *rows)
{
	size_t count = spokei_directory_infos(directory, NULL, 0);
	size_t shown = spokei_rows_take(rows, count);
	const struct spokei_endpoint *endpoint = NULL;
	struct endpoint_row row = { 0 };

	spokei_json_open_member(json, "endpoints", '[');
	for (size_t i = 0; i < shown; i++) {
		endpoint = spokei_directory_next(directory, endpoint);
		fill_endpoint(&row, endpoint);
		spokei_facts_object(json, &of_endpoint, &row);
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "more", count - shown);
}

struct states_row {
	uint32_t consumer;
	const char *service;
	const char *state;
	uint64_t count;
};

#define FACT(member, ...) SPOKEI_FACT(struct states_row, member, __VA_ARGS__)

static const struct spokei_fact states_facts[] = {
	FACT(consumer, .label = "consumer"),
	FACT(service, .label = "service"),
	FACT(state, .label = "state"),
	FACT(count, .family = "spoke_endpoints", .help = "endpoints by state"),
};
#undef FACT
static const struct spokei_facts of_states = SPOKEI_FACTS(states_facts);

/* Counts the endpoints of each consumer in each state. */
static void each_state(const struct spoke_engine *engine, spokei_facts_take_fn take, void *arg)
{
	const struct spoke_consumer *consumer = NULL;
	struct states_row row = { 0 };

	while ((consumer = spokei_members_consumer(engine, consumer)) != NULL &&
	       row.consumer < SPOKEI_FACTS_ROWS / 8) {
		const struct spokei_consumer_view view = spokei_consumer_look(consumer);
		uint64_t counts[SPOKE_ENDPOINT_REMOVED + 1] = { 0 };
		const struct spokei_endpoint *endpoint = NULL;

		while ((endpoint = spokei_directory_next(view.directory, endpoint)) != NULL)
			counts[spokei_endpoint_state(endpoint)]++;
		row.consumer++;
		row.service = view.service;
		for (unsigned i = 0; i <= SPOKE_ENDPOINT_REMOVED; i++) {
			row.state = spoke_endpoint_state_name((enum spoke_endpoint_state)i);
			row.count = counts[i];
			take(arg, &row);
		}
	}
}

/* --- tickets */

struct ticket_row {
	const char *method;
	uint64_t due_ns;
	struct spoke_ticket_state state;
};

#define FACT(member, ...) SPOKEI_FACT(struct ticket_row, member, __VA_ARGS__)

static const struct spokei_fact ticket_facts[] = {
	FACT(method, .name = "method"),
	FACT(state.attempts, .name = "attempts"),
	FACT(state.sending, .name = "sending"),
	FACT(due_ns, .name = "in_ms", .ms = true),
	FACT(state.left_ns, .name = "left_ms", .ms = true),
};
#undef FACT
static const struct spokei_facts of_ticket = SPOKEI_FACTS(ticket_facts);

static void show_tickets(struct spokei_json *json, const struct spoke_consumer *consumer,
			 struct spokei_rows *rows)
{
	const struct spokei_caller *caller = spokei_consumer_look(consumer).caller;
	struct spokei_due dues[SPOKEI_STATUS_ROWS];
	size_t shown = rows->left < SPOKEI_STATUS_ROWS ? rows->left : SPOKEI_STATUS_ROWS;

	shown = spokei_members_due(consumer, dues, shown);
	(void)spokei_rows_take(rows, shown);
	spokei_json_open_member(json, "due", '[');
	for (size_t i = 0; i < shown; i++) {
		const struct spokei_retry_state *retry = dues[i].retry;
		struct ticket_row row = { .method = retry->call->method->name,
					  .due_ns = dues[i].in_ns };

		spokei_ticket_look(retry, caller->engine->begin_ns, &row.state);
		spokei_facts_object(json, &of_ticket, &row);
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "due_more", caller->retry.tasks - shown);
}

/* --- methods whose policy or balancer is not the consumer's */

struct apart_row {
	const char *method;
	const char *cluster;
	const char *loadbalance;
};

#define FACT(member, ...) SPOKEI_FACT(struct apart_row, member, __VA_ARGS__)

static const struct spokei_fact apart_facts[] = {
	FACT(method, .name = "method"),
	FACT(cluster, .name = "cluster"),
	FACT(loadbalance, .name = "loadbalance"),
};
#undef FACT
static const struct spokei_facts of_apart = SPOKEI_FACTS(apart_facts);

static void show_methods_apart(struct spokei_json *json, const struct spoke_consumer *consumer,
			       struct spokei_rows *rows)
{
	const struct spoke_method *method = NULL;
	uint64_t more = 0;

	spokei_json_open_member(json, "apart", '[');
	while ((method = spokei_members_method_apart(consumer, method)) != NULL) {
		const struct apart_row row = {
			.method = method->name,
			.cluster = method->settings.policy->name,
			.loadbalance = spokei_members_balancer(&method->settings),
		};

		if (spokei_rows_take(rows, 1) == 0) {
			more++;
			continue;
		}
		spokei_facts_object(json, &of_apart, &row);
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "apart_more", more);
}

static void show_consumers(struct spokei_json *json, const struct spoke_engine *engine,
			   struct spokei_rows *rows)
{
	const struct spoke_consumer *consumer = NULL;
	uint64_t more = 0;

	spokei_json_open_member(json, "consumers", '[');
	while ((consumer = spokei_members_consumer(engine, consumer)) != NULL) {
		const struct spokei_consumer_view view = spokei_consumer_look(consumer);
		const struct consumer_row row = consumer_row(consumer, 0);

		if (spokei_rows_take(rows, 1) == 0) {
			more++;
			continue;
		}
		spokei_json_open(json, '{');
		spokei_facts_show(json, &of_consumer, &row);
		show_certificate(json, engine, view.tls);
		show_methods_apart(json, consumer, rows);
		show_endpoints(json, view.directory, rows);
		show_tickets(json, consumer, rows);
		spokei_json_close(json, '}');
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "consumers_more", more);
}

/* --- providers */

struct provider_row {
	uint32_t number;
	uint32_t connections;
	uint32_t secured;
	uint32_t in_flight;
	uint64_t heartbeat_ns;
	bool draining;
};

#define FACT(member, ...) SPOKEI_FACT(struct provider_row, member, __VA_ARGS__)

static const struct spokei_fact provider_facts[] = {
	FACT(number, .label = "provider"),
	FACT(connections, .name = "connections", .family = "spoke_provider_connections",
	     .help = "connections of a provider"),
	FACT(secured, .family = "spoke_provider_tls_connections",
	     .help = "connections of a provider that use TLS"),
	FACT(in_flight, .name = "in_flight", .family = "spoke_requests_in_flight",
	     .help = "requests being served"),
	FACT(heartbeat_ns, .name = "heartbeat_ms", .ms = true),
	FACT(draining, .name = "draining", .family = "spoke_provider_draining",
	     .help = "1: the provider accepts no more requests"),
};
#undef FACT
static const struct spokei_facts of_provider = SPOKEI_FACTS(provider_facts);

static uint32_t count_secured(const struct spokei_link *link)
{
	uint32_t count = 0;

	for (struct spoke_list *node = link->conns.next; node != &link->conns; node = node->next) {
		const struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		count += spokei_stream_look(&conn->stream, NULL);
	}
	return count;
}

static struct provider_row provider_row(const struct spoke_provider *provider, uint32_t number)
{
	const struct spokei_provider_view view = spokei_provider_look(provider);

	return (struct provider_row){
		.number = number,
		.connections = view.link->conn_count,
		.secured = view.tls ? count_secured(view.link) : 0,
		.in_flight = view.link->serving_count,
		.heartbeat_ns = view.link->limits.heartbeat_ns,
		.draining = view.draining,
	};
}

static void each_provider(const struct spoke_engine *engine, spokei_facts_take_fn take, void *arg)
{
	const struct spoke_provider *provider = NULL;
	uint32_t number = 0;

	while ((provider = spokei_members_provider(engine, provider)) != NULL) {
		const struct provider_row row = provider_row(provider, ++number);

		take(arg, &row);
	}
}

/* Prints a service as Dubbo does: "group/name:version". */
static void show_service(struct spokei_json *json, const struct spokei_service *service)
{
	char text[3 * SPOKEI_SERVICE_KEY_MAX + 3];
	char key[SPOKEI_SERVICE_KEY_MAX + 1];
	const char *version;
	const char *group;

	memcpy(key, service->key.data, service->key.len);
	key[service->key.len] = '\0';
	version = key + strlen(key) + 1;
	group = version + strlen(version) + 1;
	(void)snprintf(text, sizeof(text), "%s%s%s%s%s", group, *group ? "/" : "", key,
		       *version ? ":" : "", version);
	spokei_json_text(json, text);
}

static void show_services(struct spokei_json *json, const struct spokei_routes *services,
			  struct spokei_rows *rows)
{
	const struct spoke_list *all = &services->all;
	size_t room = spokei_rows_take(rows, SPOKEI_STATUS_SERVICES);

	spokei_json_open_member(json, "services", '[');
	for (struct spoke_list *node = all->next; node != all && room > 0; node = node->next) {
		show_service(json, spoke_container_of(node, struct spokei_service, node));
		room--;
	}
	spokei_json_close(json, ']');
	rows->left += room;
}

static void show_addresses(struct spokei_json *json, const struct spoke_provider *provider,
			   size_t count)
{
	char text[ADDRESS_TEXT];

	spokei_json_open_member(json, "addresses", '[');
	for (size_t i = 0; i < count; i++) {
		(void)spoke_provider_address(provider, i, text, sizeof(text));
		spokei_json_text(json, text);
	}
	spokei_json_close(json, ']');
}

struct peer_row {
	const char *identity; /* NULL: unknown */
	const char *state;
	uint32_t refusals;
	struct spoke_peer_info info;
};

#define FACT(member, ...) SPOKEI_FACT(struct peer_row, member, __VA_ARGS__)

static const struct spokei_fact peer_facts[] = {
	FACT(info.name, .name = "name"),
	FACT(identity, .name = "identity"),
	FACT(state, .name = "state"),
	FACT(info.missed, .name = "missed"),
	FACT(info.in_flight, .name = "in_flight"),
	FACT(info.heard_ns, .name = "heard_ago_ms", .ms = true),
	FACT(info.tls, .name = "tls"),
	FACT(refusals, .name = "refusals"),
};
#undef FACT
static const struct spokei_facts of_peer = SPOKEI_FACTS(peer_facts);

static const char *peer_state(const struct spoke_peer_info *info)
{
	if (info->missed > 0)
		return "suspect";
	return info->readonly ? "readonly" : "ready";
}

static void show_peer(struct spokei_json *json, const struct spokei_conn *conn)
{
	const struct spoke_env *env = conn->link->engine->env;
	char identity[SPOKEI_IDENTITY_NAME];
	struct peer_row row = { .refusals = conn->refusals };

	spokei_peer_look(conn, &row.info);
	row.state = peer_state(&row.info);
	if (spokei_identity_is_known(conn->identity)) {
		(void)spokei_identity_print(env, conn->identity, &conn->peer, 0, identity,
					    sizeof(identity));
		row.identity = identity;
	}
	spokei_facts_object(json, &of_peer, &row);
}

/* Shows the connections that have sent a message. */
static void show_peers(struct spokei_json *json, const struct spokei_provider_view *view,
		       struct spokei_rows *rows)
{
	const struct spoke_list *conns = &view->link->conns;
	size_t room = spokei_rows_take(rows, view->peers);
	size_t shown = 0;

	spokei_json_open_member(json, "peers", '[');
	for (struct spoke_list *node = conns->next; node != conns && shown < room;
	     node = node->next) {
		const struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		if (conn->handle == 0)
			continue;
		show_peer(json, conn);
		shown++;
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "more", view->peers - shown);
}

static void show_providers(struct spokei_json *json, const struct spoke_engine *engine,
			   struct spokei_rows *rows)
{
	const struct spoke_provider *provider = NULL;
	uint64_t more = 0;

	spokei_json_open_member(json, "providers", '[');
	while ((provider = spokei_members_provider(engine, provider)) != NULL) {
		const struct spokei_provider_view view = spokei_provider_look(provider);
		const struct provider_row row = provider_row(provider, 0);

		if (spokei_rows_take(rows, 1) == 0) {
			more++;
			continue;
		}
		spokei_json_open(json, '{');
		show_services(json, view.services, rows);
		show_addresses(json, provider, view.addresses);
		spokei_facts_show(json, &of_provider, &row);
		show_certificate(json, engine, view.tls);
		show_peers(json, &view, rows);
		spokei_json_close(json, '}');
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "providers_more", more);
}

/* --- leases */

struct leases_row {
	uint32_t number;
	struct spoke_leases_look look;
};

#define FACT(member, ...) SPOKEI_FACT(struct leases_row, member, __VA_ARGS__)

static const struct spokei_fact leases_facts[] = {
	FACT(number, .label = "leases"),
	FACT(look.store, .label = "store", .name = "store"),
	FACT(look.connected, .name = "connected", .family = "spoke_leases_connected",
	     .help = "1: the store of the leases takes commands"),
	FACT(look.asked, .name = "asked", .family = "spoke_leases_asked",
	     .help = "leases that are asked for and not granted"),
	FACT(look.held, .name = "held", .family = "spoke_leases_held",
	     .help = "leases that are held"),
	FACT(look.left_min_ns, .name = "left_min_ms", .ms = true,
	     .family = "spoke_leases_left_min_seconds",
	     .help = "time left of the held lease that ends first; 0: none is held"),
};
#undef FACT
#define FACT(member, ...) SPOKEI_FACT(struct spokei_lease_row, member, __VA_ARGS__)

static const struct spokei_fact lease_facts[] = {
	FACT(id, .name = "id"),
	FACT(state, .name = "state"),
	FACT(left_ns, .name = "left_ms", .ms = true),
	FACT(fence, .name = "fence"),
};
#undef FACT
static const struct spokei_facts of_leases = SPOKEI_FACTS(leases_facts);
static const struct spokei_facts of_lease = SPOKEI_FACTS(lease_facts);

static void each_leases(const struct spoke_engine *engine, spokei_facts_take_fn take, void *arg)
{
	struct spoke_leases *leases = NULL;
	struct leases_row row = { 0 };

	while ((leases = spokei_members_leases(engine, leases)) != NULL) {
		row.number++;
		spoke_leases_look(leases, &row.look);
		take(arg, &row);
	}
}

static void show_lease(struct spokei_json *json, const struct spokei_lease_row *row)
{
	spokei_json_open(json, '{');
	spokei_json_key(json, "name");
	spokei_json_span(json, row->name.data, row->name.len);
	spokei_facts_show(json, &of_lease, row);
	spokei_json_close(json, '}');
}

static void show_of_store(struct spokei_json *json, const struct spoke_leases *leases,
			  struct spokei_rows *rows)
{
	struct spokei_lease_row found[SPOKEI_STATUS_ROWS];
	size_t count = spokei_rows_take(rows, SPOKEI_STATUS_ROWS);
	size_t shown = spokei_leases_rows(leases, found, count);
	struct leases_row row = { 0 };
	size_t all;

	rows->left += count - shown;
	spoke_leases_look(leases, &row.look);
	all = (size_t)row.look.asked + row.look.held;
	spokei_json_open(json, '{');
	spokei_facts_show(json, &of_leases, &row);
	spokei_json_open_member(json, "shown", '[');
	for (size_t i = 0; i < shown; i++)
		show_lease(json, &found[i]);
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "more", all > shown ? all - shown : 0);
	spokei_json_close(json, '}');
}

static void show_leases(struct spokei_json *json, const struct spoke_engine *engine,
			struct spokei_rows *rows)
{
	struct spoke_leases *leases = NULL;
	uint64_t more = 0;

	spokei_json_open_member(json, "leases", '[');
	while ((leases = spokei_members_leases(engine, leases)) != NULL) {
		if (spokei_rows_take(rows, 1) == 1)
			show_of_store(json, leases, rows);
		else
			more++;
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "leases_more", more);
}

/* --- gateways, whose figures are a table of their own */

static uint64_t figure_of(const struct spoke_comet *comet, int figure)
{
	return spoke_comet_figure(comet, (enum spoke_comet_figure)figure);
}

static void show_gateways(struct spokei_json *json, const struct spoke_engine *engine,
			  struct spokei_rows *rows)
{
	const struct spoke_comet *comet = NULL;
	char address[ADDRESS_TEXT];

	spokei_json_open_member(json, "gateways", '[');
	while ((comet = spokei_members_comet(engine, comet)) != NULL &&
	       spokei_rows_take(rows, 1) == 1) {
		if (spoke_comet_address(comet, 0, address, sizeof(address)) == 0)
			address[0] = '\0';
		spokei_json_open(json, '{');
		spokei_json_put_text(json, "address", address);
		spokei_json_put_bool(json, "draining", spokei_comet_drains(comet));
		for (int i = 0; i < SPOKE_COMET_FIGURE_COUNT; i++)
			spokei_json_put_u64(json,
					    spoke_comet_figure_name((enum spoke_comet_figure)i),
					    figure_of(comet, i));
		spokei_json_close(json, '}');
	}
	spokei_json_close(json, ']');
}

static void put_figure(struct spokei_metrics *metrics, const struct spoke_engine *engine,
		       int figure)
{
	const bool grows = figure > SPOKE_COMET_FIGURE_BYTES;
	const struct spoke_comet *comet = NULL;
	char family[96];
	char number[12];
	const struct spokei_labels labels = { .extra = "gateway", .value = number };

	(void)snprintf(family, sizeof(family), "spoke_comet_%s%s",
		       spoke_comet_figure_name((enum spoke_comet_figure)figure),
		       grows ? "_total" : "");
	spokei_metrics_family(metrics, family, grows ? "counter" : "gauge",
			      spoke_comet_figure_sentence((enum spoke_comet_figure)figure));
	for (unsigned at = 1; at <= SPOKEI_FACTS_ROWS; at++) {
		comet = spokei_members_comet(engine, comet);
		if (comet == NULL)
			break;
		(void)snprintf(number, sizeof(number), "%u", at);
		spokei_metrics_line(metrics, family, &labels, figure_of(comet, figure));
	}
}

/* A program without gateways has none of these families. */
static void put_gateways(struct spokei_metrics *metrics, const struct spoke_engine *engine)
{
	if (spokei_members_comet(engine, NULL) == NULL)
		return;
	for (int i = 0; i < SPOKE_COMET_FIGURE_COUNT; i++)
		put_figure(metrics, engine, i);
}

/* --- all */

void spokei_status_members(struct spokei_json *json, const struct spoke_engine *engine,
			   struct spokei_rows *rows)
{
	show_consumers(json, engine, rows);
	show_providers(json, engine, rows);
	show_leases(json, engine, rows);
	show_gateways(json, engine, rows);
}

void spokei_metrics_members(struct spokei_metrics *metrics, const struct spoke_engine *engine)
{
	spokei_facts_families(metrics, &of_consumer, engine, each_consumer);
	spokei_facts_families(metrics, &of_states, engine, each_state);
	spokei_facts_families(metrics, &of_endpoint, engine, each_endpoint);
	spokei_facts_families(metrics, &of_provider, engine, each_provider);
	spokei_facts_families(metrics, &of_certificate, engine, each_certificate);
	spokei_facts_families(metrics, &of_leases, engine, each_leases);
	put_gateways(metrics, engine);
}
