/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the consumers and providers of the status. */
#include "cluster/admin/members.h"
#include "cluster/admin/secure.h"
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
#include "transport/conn/conn.h"
#include "transport/conn/identity.h"
#include "transport/conn/link.h"

#define ADDRESS_TEXT 160u

/* --- consumers */

static void show_endpoint(struct spokei_json *json, const struct spokei_endpoint *endpoint)
{
	struct spoke_endpoint_info info;
	bool waits;

	spokei_endpoint_info(endpoint, &info);
	waits = info.state == SPOKE_ENDPOINT_BACKOFF;
	spokei_json_open(json, '{');
	spokei_json_put_text(json, "name", info.name);
	spokei_json_put_text(json, "application", endpoint->application);
	spokei_json_put_text(json, "group", endpoint->group);
	spokei_json_put_text(json, "version", endpoint->version);
	spokei_json_put_text(json, "state", spoke_endpoint_state_name(info.state));
	spokei_json_put_bool(json, "ejected", info.ejected);
	spokei_json_put_u64(json, "in_flight", info.actives);
	spokei_json_put_u64(json, "connections", info.connections);
	spokei_json_put_u64(json, "missed", info.missed);
	spokei_json_put_u64(json, "attempt", info.attempt);
	spokei_json_put_ms(json, "retry_in_ms", waits ? info.retry_ns : UINT64_MAX);
	spokei_json_put_ms(json, "heard_ago_ms", info.heard_ns);
	spokei_json_put_u64(json, "weight", info.weight);
	spokei_json_put_u64(json, "calls", info.calls);
	spokei_json_put_u64(json, "failures", info.failures);
	spokei_json_put_u64(json, "mean_ns", info.mean_ns);
	spokei_json_put_bool(json, "tls", info.tls);
	spokei_json_put_bool(json, "local", info.local);
	spokei_json_put_text(json, "admin", info.admin);
	spokei_json_close(json, '}');
}

static void show_endpoints(struct spokei_json *json, const struct spokei_directory *directory,
			   struct spokei_rows *rows)
{
	size_t count = spokei_directory_infos(directory, NULL, 0);
	size_t shown = spokei_rows_take(rows, count);
	const struct spokei_endpoint *endpoint = NULL;

	spokei_json_open_member(json, "endpoints", '[');
	for (size_t i = 0; i < shown; i++) {
		endpoint = spokei_directory_next(directory, endpoint);
		show_endpoint(json, endpoint);
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "more", count - shown);
}

static void show_due(struct spokei_json *json, const struct spokei_due *due, uint64_t now_ns)
{
	struct spoke_ticket_state state;

	spokei_ticket_look(due->retry, now_ns, &state);
	spokei_json_open(json, '{');
	spokei_json_put_text(json, "method", due->retry->call->method->name);
	spokei_json_put_u64(json, "attempts", state.attempts);
	spokei_json_put_bool(json, "sending", state.sending);
	spokei_json_put_ms(json, "in_ms", due->in_ns);
	spokei_json_put_ms(json, "left_ms", state.left_ns);
	spokei_json_close(json, '}');
}

static void show_tickets(struct spokei_json *json, const struct spoke_consumer *consumer,
			 struct spokei_rows *rows)
{
	const struct spokei_caller *caller = spokei_consumer_look(consumer).caller;
	struct spokei_due dues[SPOKEI_STATUS_ROWS];
	size_t shown = rows->left < SPOKEI_STATUS_ROWS ? rows->left : SPOKEI_STATUS_ROWS;

	shown = spokei_members_due(consumer, dues, shown);
	(void)spokei_rows_take(rows, shown);
	spokei_json_open_member(json, "due", '[');
	for (size_t i = 0; i < shown; i++)
		show_due(json, &dues[i], caller->engine->begin_ns);
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "due_more", caller->retry.tasks - shown);
}

static void show_consumer(struct spokei_json *json, const struct spoke_consumer *consumer,
			  struct spokei_rows *rows)
{
	const struct spokei_consumer_view view = spokei_consumer_look(consumer);
	const struct spokei_retry_queue *retry = &view.caller->retry;
	const struct spoke_balancer *balancer = view.settings->balancer;

	spokei_json_open(json, '{');
	spokei_json_put_text(json, "service", view.service);
	spokei_json_put_text(json, "cluster", view.settings->policy->name);
	spokei_json_put_text(json, "loadbalance", balancer ? balancer->name : "");
	spokei_json_put_u64(json, "ready", spokei_directory_ready(view.directory));
	spokei_json_put_u64(json, "in_flight", spokei_members_calls(consumer));
	spokei_json_put_u64(json, "tickets", retry->tasks);
	spokei_json_put_u64(json, "tickets_max", retry->tasks_max);
	spokei_json_put_u64(json, "ticket_bytes", retry->bytes);
	spokei_json_put_ms(json, "heartbeat_ms", view.heartbeat_ns);
	spokei_json_put_ms(json, "retry_period_ms", view.settings->period_ns);
	spokei_status_certificate(json, view.caller->engine, view.tls);
	show_endpoints(json, view.directory, rows);
	show_tickets(json, consumer, rows);
	spokei_json_close(json, '}');
}

void spokei_status_consumers(struct spokei_json *json, const struct spoke_engine *engine,
			     struct spokei_rows *rows)
{
	const struct spoke_consumer *consumer = NULL;
	size_t more = 0;

	spokei_json_open_member(json, "consumers", '[');
	while ((consumer = spokei_members_consumer(engine, consumer)) != NULL) {
		if (spokei_rows_take(rows, 1) == 1)
			show_consumer(json, consumer, rows);
		else
			more++;
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "consumers_more", more);
}

/* --- providers */

/* Appends a text that is not empty, with a character before and after it; 0: without. */
static char *put_part(char *at, char before, const char *text, char behind)
{
	if (*text == '\0')
		return at;
	if (before)
		*at++ = before;
	while (*text)
		*at++ = *text++;
	if (behind)
		*at++ = behind;
	return at;
}

void spokei_status_service(const struct spokei_service *service, char *text)
{
	char key[SPOKEI_SERVICE_KEY_MAX + 1];
	const char *version;
	const char *group;
	char *at;

	memcpy(key, service->key.data, service->key.len);
	key[service->key.len] = '\0';
	version = key + strlen(key) + 1;
	group = version + strlen(version) + 1;
	at = put_part(text, '\0', group, '/');
	at = put_part(at, '\0', key, '\0');
	at = put_part(at, ':', version, '\0');
	*at = '\0';
}

static void show_services(struct spokei_json *json, const struct spokei_routes *services,
			  struct spokei_rows *rows)
{
	const struct spoke_list *all = &services->all;
	size_t room = spokei_rows_take(rows, SPOKEI_STATUS_SERVICES);
	char text[SPOKEI_STATUS_SERVICE];

	spokei_json_open_member(json, "services", '[');
	for (struct spoke_list *node = all->next; node != all && room > 0; node = node->next) {
		spokei_status_service(spoke_container_of(node, struct spokei_service, node), text);
		spokei_json_text(json, text);
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

const char *spokei_status_peer_state(const struct spoke_peer_info *info)
{
	if (info->missed > 0)
		return "suspect";
	return info->readonly ? "readonly" : "ready";
}

static void show_peer(struct spokei_json *json, const struct spokei_conn *conn)
{
	const struct spoke_env *env = conn->link->engine->env;
	char identity[SPOKEI_IDENTITY_NAME];
	struct spoke_peer_info info;

	spokei_peer_look(conn, &info);
	spokei_json_open(json, '{');
	spokei_json_put_text(json, "name", info.name);
	if (spokei_identity_is_known(conn->identity)) {
		(void)spokei_identity_print(env, conn->identity, &conn->peer, 0, identity,
					    sizeof(identity));
		spokei_json_put_text(json, "identity", identity);
	}
	spokei_json_put_text(json, "state", spokei_status_peer_state(&info));
	spokei_json_put_u64(json, "missed", info.missed);
	spokei_json_put_u64(json, "in_flight", info.in_flight);
	spokei_json_put_ms(json, "heard_ago_ms", info.heard_ns);
	spokei_json_put_bool(json, "tls", info.tls);
	spokei_json_put_u64(json, "refusals", conn->refusals);
	spokei_json_close(json, '}');
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

static void show_provider(struct spokei_json *json, const struct spoke_provider *provider,
			  struct spokei_rows *rows)
{
	const struct spokei_provider_view view = spokei_provider_look(provider);

	spokei_json_open(json, '{');
	show_services(json, view.services, rows);
	show_addresses(json, provider, view.addresses);
	spokei_json_put_u64(json, "connections", view.link->conn_count);
	spokei_json_put_u64(json, "in_flight", view.link->serving_count);
	spokei_json_put_ms(json, "heartbeat_ms", view.link->limits.heartbeat_ns);
	spokei_json_put_bool(json, "draining", view.draining);
	spokei_status_certificate(json, view.link->engine, view.tls);
	show_peers(json, &view, rows);
	spokei_json_close(json, '}');
}

void spokei_status_providers(struct spokei_json *json, const struct spoke_engine *engine,
			     struct spokei_rows *rows)
{
	const struct spoke_provider *provider = NULL;
	size_t more = 0;

	spokei_json_open_member(json, "providers", '[');
	while ((provider = spokei_members_provider(engine, provider)) != NULL) {
		if (spokei_rows_take(rows, 1) == 1)
			show_provider(json, provider, rows);
		else
			more++;
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "providers_more", more);
}
