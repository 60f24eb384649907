/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the consumers, providers, leases and gateways of an engine, and writes their facts. */
#include "cluster/admin/members.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry.h"
#include "cluster/comet/view.h"
#include "cluster/consumer/consumer.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/info.h"
#include "cluster/journal/journal.h"
#include "cluster/lease/view.h"
#include "cluster/provider/provider.h"
#include "cluster/serve/routes.h"
#include "core/engine/engine.h"
#include "core/engine/members.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/stream/tls/tls.h"
#include "transport/trust/caller.h"

#include <spoke/policy.h>

#include <stdio.h>

#define SERVICES 25u           /* of a provider, at most */
#define SEARCHED 4096u         /* waiting tickets, at most */
#define SEARCHED_SENT 1024u    /* other tickets, the oldest ones */
#define SEARCHED_METHODS 1024u /* of a consumer, at most */
#define ADDRESS_TEXT 160u
#define DAY_S INT64_C(86400)

/* --- the members of an engine */

struct spokei_member *spokei_members_next(const struct spoke_engine *engine, const char *kind,
					  const struct spokei_member *before)
{
	struct spoke_list *node = before ? before->node.next : engine->members.next;

	for (; node != &engine->members; node = node->next) {
		struct spokei_member *member = spoke_container_of(node, struct spokei_member, node);

		if (member->kind == kind)
			return member;
	}
	return NULL;
}

/* A member, and its number among those of its kind, from 1 on, because names may repeat. */
struct numbered {
	const struct spoke_engine *engine;
	struct spokei_member *member;
	uint32_t number;
};

/* All members of a kind, and what finds the values of one: a numbered member is its `of`. */
struct kind {
	const struct spoke_engine *engine;
	const char *kind;
	spokei_facts_find_fn find;
};

/* Is a spokei_facts_find_fn. */
static bool find_all(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct kind *kind = of;
	struct numbered at = { .engine = kind->engine };

	while ((at.member = spokei_members_next(at.engine, kind->kind, at.member)) != NULL) {
		at.number++;
		if (!kind->find(&at, take, arg))
			return false;
	}
	return true;
}

static void put_all(struct spokei_metrics *metrics, const struct spokei_facts *facts,
		    const struct spoke_engine *engine, const char *kind, spokei_facts_find_fn find)
{
	const struct kind all = { engine, kind, find };

	spokei_facts_families(metrics, facts, find_all, &all);
}

/* --- certificates */

#define CERTIFICATE_ROWS(FACT)                                                                     \
	FACT(consumer, LABEL("consumer"), OPTIONAL)                                                \
	FACT(provider, LABEL("provider"), OPTIONAL)                                                \
	FACT(days, NAME("certificate_days"),                                                       \
	     GAUGE("spoke_tls_certificate_days",                                                   \
		   "days until the own certificate ends; negative: it has ended"))
SPOKEI_FACTS(of_certificate, CERTIFICATE_ROWS);

/* Returns the days until the certificate ends; negative: it has; INT64_MIN: there is none. */
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

static bool find_certificate(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct numbered *at = of;
	bool consumes = at->member->kind == spokei_consumer_kind;
	uint32_t consumer = consumes ? at->number : 0;
	uint32_t provider = consumes ? 0 : at->number;
	const struct spokei_tls *tls =
		consumes ? spokei_consumer_look(spokei_consumer_of(at->member)).tls
			 : spokei_provider_look(spokei_provider_of(at->member)).tls;
	int64_t days = find_days(at->engine, tls);

	return take(arg, SPOKEI_FACT_VALUES(CERTIFICATE_ROWS));
}

/* Those of all consumers, then those of all providers. */
static bool find_certificates(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct spoke_engine *engine = of;
	const struct kind consumers = { engine, spokei_consumer_kind, find_certificate };
	const struct kind providers = { engine, spokei_provider_kind, find_certificate };

	return find_all(&consumers, take, arg) && find_all(&providers, take, arg);
}

/* --- consumers */

#define CONSUMER_ROWS(FACT)                                                                        \
	FACT(at->number, LABEL("consumer"))                                                        \
	FACT(view.service, LABEL("service"), NAME("service"))                                      \
	FACT(view.settings->policy->name, NAME("cluster"))                                         \
	FACT(balancer_name(view.settings), NAME("loadbalance"))                                    \
	FACT(spokei_directory_ready(view.directory), NAME("ready"),                                \
	     GAUGE("spoke_endpoints_ready", "endpoints that are connected and healthy"))           \
	FACT(calls > retry->tasks ? calls - retry->tasks : 0, NAME("in_flight"),                   \
	     GAUGE("spoke_calls_in_flight", "calls in flight, without tickets"))                   \
	FACT(retry->tasks, NAME("tickets"),                                                        \
	     GAUGE("spoke_tickets", "failback calls that wait as tickets"))                        \
	FACT(retry->tasks_max, NAME("tickets_max"))                                                \
	FACT(retry->bytes, NAME("ticket_bytes"),                                                   \
	     GAUGE("spoke_ticket_bytes", "bytes held by tickets"))                                 \
	FACT(journal_name(view.caller->journal), NAME("journal"))                                  \
	FACT(view.caller->journal ? view.caller->journal->count : 0, NAME("journal_tickets"),      \
	     GAUGE("spoke_journal_tickets", "tickets that the journal has"))                       \
	FACT(journal_bytes(view.caller->journal), NAME("journal_bytes"),                           \
	     GAUGE("spoke_journal_bytes", "bytes of the journal's files"))                         \
	FACT(view.heartbeat_ns, MS("heartbeat_ms"))                                                \
	FACT(view.settings->period_ns, MS("retry_period_ms"))
SPOKEI_FACTS(of_consumer, CONSUMER_ROWS);

/* Returns the name of the balancer that picks for these settings; "": none does. */
static const char *balancer_name(const struct spokei_call_settings *settings)
{
	return settings->policy->in_order || !settings->balancer ? "" : settings->balancer->name;
}

/* Returns the state of a journal in a word; "": there is none. */
static const char *journal_name(const struct spokei_journal *journal)
{
	if (journal == NULL)
		return "";
	if (journal->stage >= SPOKEI_JOURNAL_UNUSABLE)
		return "unusable";
	if (journal->broken)
		return "broken";
	if (journal->stage < SPOKEI_JOURNAL_OPEN)
		return "reading";
	return journal->full ? "full" : "open";
}

static uint64_t journal_bytes(const struct spokei_journal *journal)
{
	return journal ? (uint64_t)journal->segments * SPOKEI_LOG_SEGMENT : 0;
}

static bool find_consumer(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct numbered *at = of;
	const struct spokei_consumer_view view = spokei_consumer_look(
		spokei_consumer_of(at->member));
	const struct spokei_retry_queue *retry = &view.caller->retry;
	size_t calls = view.caller->calls.count;

	return take(arg, SPOKEI_FACT_VALUES(CONSUMER_ROWS));
}

/* --- endpoints */

/* Two listed endpoints of a consumer differ in at least one label. */
#define ENDPOINT_ROWS(FACT)                                                                        \
	FACT(number, LABEL("consumer"))                                                            \
	FACT(service, LABEL("service"))                                                            \
	FACT(info.name, LABEL("endpoint"), NAME("name"))                                           \
	FACT(endpoint->options.wire->name, LABEL("wire"))                                          \
	FACT(endpoint->application, NAME("application"))                                           \
	FACT(endpoint->group, LABEL("group"), OPTIONAL, NAME("group"))                             \
	FACT(endpoint->version, LABEL("version"), OPTIONAL, NAME("version"))                       \
	FACT(spoke_endpoint_state_name(info.state), NAME("state"))                                 \
	FACT(info.ejected, NAME("ejected"),                                                        \
	     GAUGE("spoke_endpoint_ejected", "1: ejected after consecutive failures"))             \
	FACT(info.actives, NAME("in_flight"),                                                      \
	     GAUGE("spoke_endpoint_calls_in_flight", "calls in flight at the endpoint"))           \
	FACT(info.connections, NAME("connections"))                                                \
	FACT(info.missed, NAME("missed"),                                                          \
	     GAUGE("spoke_endpoint_heartbeats_missed", "consecutive heartbeats without a reply"))  \
	FACT(info.attempt, NAME("attempt"))                                                        \
	FACT(info.state == SPOKE_ENDPOINT_BACKOFF ? info.retry_ns : UINT64_MAX, MS("retry_in_ms")) \
	FACT(info.heard_ns, MS("heard_ago_ms"))                                                    \
	FACT(info.weight, NAME("weight"))                                                          \
	FACT(info.calls, NAME("calls"),                                                            \
	     COUNTER("spoke_endpoint_calls_total", "attempts that were sent to the endpoint"))     \
	FACT(info.failures, NAME("failures"),                                                      \
	     COUNTER("spoke_endpoint_failures_total", "attempts that failed at the endpoint"))     \
	FACT(info.mean_ns, NAME("mean_ns"), NS,                                                    \
	     GAUGE("spoke_endpoint_duration_mean_seconds",                                         \
		   "recent mean duration of answered calls; 0: none"))                             \
	FACT(info.tls, NAME("tls"), GAUGE("spoke_endpoint_tls", "1: a connection to it uses TLS")) \
	FACT(info.local, NAME("local"))                                                            \
	FACT(info.admin, NAME("admin"))
SPOKEI_FACTS(of_endpoint, ENDPOINT_ROWS);

static bool take_endpoint(const struct spokei_endpoint *endpoint, uint32_t number,
			  const char *service, spokei_facts_take_fn take, void *arg)
{
	struct spoke_endpoint_info info;

	spokei_endpoint_info(endpoint, &info);
	return take(arg, SPOKEI_FACT_VALUES(ENDPOINT_ROWS));
}

/* Endpoints that are no longer listed are omitted, because their labels may be in use again. */
static bool find_endpoints(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct numbered *at = of;
	const struct spokei_consumer_view view = spokei_consumer_look(
		spokei_consumer_of(at->member));
	const struct spokei_candidates *candidates = &view.directory->candidates;

	for (size_t i = 0; i < candidates->shown.count; i++)
		if (!take_endpoint(candidates->endpoints[i], at->number, view.service, take, arg))
			return false;
	return true;
}

static bool show_endpoint(void *arg, const struct spokei_fact_value *values)
{
	spokei_facts_object(arg, &of_endpoint, values);
	return true;
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
		(void)take_endpoint(endpoint, 0, NULL, show_endpoint, json);
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "more", count - shown);
}

#define STATES_ROWS(FACT)                                                                          \
	FACT(at->number, LABEL("consumer"))                                                        \
	FACT(view.service, LABEL("service"))                                                       \
	FACT(spoke_endpoint_state_name(i), LABEL("state"))                                         \
	FACT(counts[i], GAUGE("spoke_endpoints", "endpoints by state"))
SPOKEI_FACTS(of_states, STATES_ROWS);

/* Counts the endpoints of a consumer in each state. */
static bool find_states(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct numbered *at = of;
	const struct spokei_consumer_view view = spokei_consumer_look(
		spokei_consumer_of(at->member));
	uint64_t counts[SPOKE_ENDPOINT_REMOVED + 1] = { 0 };
	const struct spokei_endpoint *endpoint = NULL;

	while ((endpoint = spokei_directory_next(view.directory, endpoint)) != NULL)
		counts[spokei_endpoint_state(endpoint)]++;
	for (enum spoke_endpoint_state i = 0; i <= SPOKE_ENDPOINT_REMOVED; i++)
		if (!take(arg, SPOKEI_FACT_VALUES(STATES_ROWS)))
			return false;
	return at->number < SPOKEI_FACTS_ROWS / 8;
}

/* --- tickets */

/* A ticket, and the time until its next attempt: 0 while one is under way, or cannot begin. */
struct due {
	const struct spokei_retry_state *retry;
	uint64_t in_ns;
};

/* The earliest tickets in order; equal ones in the order of their insertion. */
struct dues {
	struct due of[SPOKEI_STATUS_ROWS];
	size_t count;
	size_t max;
};

static void add_due(struct dues *dues, const struct spokei_retry_state *retry, uint64_t in_ns)
{
	size_t at = dues->count;

	if (at == dues->max && (at == 0 || dues->of[at - 1].in_ns <= in_ns))
		return;
	if (at == dues->max)
		at--;
	else
		dues->count++;
	for (; at > 0 && dues->of[at - 1].in_ns > in_ns; at--)
		dues->of[at] = dues->of[at - 1];
	dues->of[at] = (struct due){ retry, in_ns };
}

/*
 * Finds the tickets that are due next. Only the first few thousand waiting tickets are searched.
 * They wait in the order in which their pauses began, which is also the order in which the pauses
 * end unless their lengths differ.
 */
static void find_dues(const struct spokei_caller *caller, struct dues *dues)
{
	const struct spokei_retry_queue *queue = &caller->retry;
	uint64_t now_ns = caller->engine->begin_ns;
	struct spoke_list *node = queue->tickets.next;

	for (unsigned i = 0; i < SEARCHED_SENT && node != &queue->tickets; i++, node = node->next) {
		const struct spokei_retry_state *retry =
			spoke_container_of(node, struct spokei_retry_state, of_tickets);

		if (retry->ticket == SPOKEI_TICKET_HELD && retry->state != SPOKEI_CALL_PAUSING)
			add_due(dues, retry, 0);
	}
	node = queue->pausing.next;
	for (unsigned i = 0; i < SEARCHED && node != &queue->pausing; i++, node = node->next) {
		const struct spokei_retry_state *retry =
			spoke_container_of(node, struct spokei_retry_state, of_retry);

		if (retry->ticket == SPOKEI_TICKET_HELD)
			add_due(dues, retry, spokei_retry_state_pause(retry, now_ns));
	}
}

#define TICKET_ROWS(FACT)                                                                          \
	FACT(due->retry->call->method->name, NAME("method"))                                       \
	FACT(state.attempts, NAME("attempts"))                                                     \
	FACT(state.sending, NAME("sending"))                                                       \
	FACT(due->in_ns, MS("in_ms"))                                                              \
	FACT(state.left_ns, MS("left_ms"))
SPOKEI_FACTS(of_ticket, TICKET_ROWS);

static void show_tickets(struct spokei_json *json, const struct spokei_caller *caller,
			 struct spokei_rows *rows)
{
	struct dues dues = { .count = 0 };

	dues.max = rows->left < SPOKEI_STATUS_ROWS ? rows->left : SPOKEI_STATUS_ROWS;
	find_dues(caller, &dues);
	(void)spokei_rows_take(rows, dues.count);
	spokei_json_open_member(json, "due", '[');
	for (const struct due *due = dues.of; due < dues.of + dues.count; due++) {
		struct spoke_ticket_state state;

		spokei_ticket_look(due->retry, caller->engine->begin_ns, &state);
		spokei_facts_object(json, &of_ticket, SPOKEI_FACT_VALUES(TICKET_ROWS));
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "due_more", caller->retry.tasks - dues.count);
}

/* --- methods whose policy or balancer is not the consumer's */

#define APART_ROWS(FACT)                                                                           \
	FACT(method->name, NAME("method"))                                                         \
	FACT(method->settings.policy->name, NAME("cluster"))                                       \
	FACT(balancer_name(&method->settings), NAME("loadbalance"))
SPOKEI_FACTS(of_apart, APART_ROWS);

static void show_methods_apart(struct spokei_json *json, const struct spokei_consumer_view *view,
			       struct spokei_rows *rows)
{
	const struct spoke_list *methods = &view->caller->methods;
	unsigned searched = 0; /* since the last such method */
	uint64_t more = 0;

	spokei_json_open_member(json, "apart", '[');
	for (struct spoke_list *node = methods->next;
	     node != methods && searched < SEARCHED_METHODS; node = node->next) {
		const struct spoke_method *method = spoke_container_of(node, struct spoke_method,
								       node);

		searched++;
		if (method->settings.policy == view->settings->policy &&
		    method->settings.balancer == view->settings->balancer)
			continue;
		searched = 0;
		if (spokei_rows_take(rows, 1) == 1)
			spokei_facts_object(json, &of_apart, SPOKEI_FACT_VALUES(APART_ROWS));
		else
			more++;
	}
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "apart_more", more);
}

static void show_consumer(struct spokei_json *json, const struct numbered *at,
			  struct spokei_rows *rows)
{
	const struct spokei_consumer_view view = spokei_consumer_look(
		spokei_consumer_of(at->member));

	spokei_facts_find(json, &of_consumer, find_consumer, at);
	spokei_facts_find(json, &of_certificate, find_certificate, at);
	show_methods_apart(json, &view, rows);
	show_endpoints(json, view.directory, rows);
	show_tickets(json, view.caller, rows);
}

/* --- providers */

#define PROVIDER_ROWS(FACT)                                                                        \
	FACT(at->number, LABEL("provider"))                                                        \
	FACT(view.link->conn_count, NAME("connections"),                                           \
	     GAUGE("spoke_provider_connections", "connections of a provider"))                     \
	FACT(view.tls ? count_secured(view.link) : 0,                                              \
	     GAUGE("spoke_provider_tls_connections", "connections of a provider that use TLS"))    \
	FACT(view.link->serving_count, NAME("in_flight"),                                          \
	     GAUGE("spoke_requests_in_flight", "requests being served"))                           \
	FACT(view.link->limits.heartbeat_ns, MS("heartbeat_ms"))                                   \
	FACT(view.remembered, NAME("remembered"),                                                  \
	     GAUGE("spoke_requests_remembered", "requests remembered for their repeats"))          \
	FACT(view.remembered_bytes, NAME("remembered_bytes"),                                      \
	     GAUGE("spoke_requests_remembered_bytes", "memory of these requests"))                 \
	FACT(journal_name(view.journal), NAME("journal"))                                          \
	FACT(view.journal ? view.journal->count : 0, NAME("journal_answers"),                      \
	     GAUGE("spoke_journal_answers", "answers that the journal has"))                       \
	FACT(journal_bytes(view.journal), NAME("journal_bytes"),                                   \
	     GAUGE("spoke_journal_answers_bytes", "bytes of the files of a provider's journal"))   \
	FACT(view.offline, NAME("offline"),                                                        \
	     GAUGE("spoke_provider_offline", "1: the provider has stepped aside, or drains"))      \
	FACT(view.draining, NAME("draining"),                                                      \
	     GAUGE("spoke_provider_draining", "1: the provider accepts no more requests"))
SPOKEI_FACTS(of_provider, PROVIDER_ROWS);

static uint32_t count_secured(const struct spokei_link *link)
{
	uint32_t count = 0;

	for (struct spoke_list *node = link->conns.next; node != &link->conns; node = node->next) {
		const struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		count += spokei_stream_look(&conn->stream, NULL);
	}
	return count;
}

static bool find_provider(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct numbered *at = of;
	const struct spokei_provider_view view = spokei_provider_look(
		spokei_provider_of(at->member));

	return take(arg, SPOKEI_FACT_VALUES(PROVIDER_ROWS));
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
	size_t room = spokei_rows_take(rows, SERVICES);

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

#define PEER_ROWS(FACT)                                                                            \
	FACT(info.name, NAME("name"))                                                              \
	FACT(known ? identity : NULL, NAME("identity"))                                            \
	FACT(peer_state(&info), NAME("state"))                                                     \
	FACT(info.missed, NAME("missed"))                                                          \
	FACT(info.in_flight, NAME("in_flight"))                                                    \
	FACT(info.heard_ns, MS("heard_ago_ms"))                                                    \
	FACT(info.tls, NAME("tls"))                                                                \
	FACT(conn->refusals, NAME("refusals"))
SPOKEI_FACTS(of_peer, PEER_ROWS);

static const char *peer_state(const struct spoke_peer_info *info)
{
	if (info->missed > 0)
		return "suspect";
	return info->readonly ? "readonly" : "ready";
}

static void show_peer(struct spokei_json *json, const struct spokei_conn *conn)
{
	const struct spoke_env *env = conn->link->engine->env;
	bool known = spokei_identity_is_known(conn->identity);
	char identity[SPOKEI_IDENTITY_NAME];
	struct spoke_peer_info info;

	spokei_peer_look(conn, &info);
	if (known)
		(void)spokei_identity_print(env, conn->identity, &conn->peer, 0, identity,
					    sizeof(identity));
	spokei_facts_object(json, &of_peer, SPOKEI_FACT_VALUES(PEER_ROWS));
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

static void show_provider(struct spokei_json *json, const struct numbered *at,
			  struct spokei_rows *rows)
{
	const struct spoke_provider *provider = spokei_provider_of(at->member);
	const struct spokei_provider_view view = spokei_provider_look(provider);

	show_services(json, view.services, rows);
	show_addresses(json, provider, view.addresses);
	spokei_facts_find(json, &of_provider, find_provider, at);
	spokei_facts_find(json, &of_certificate, find_certificate, at);
	show_peers(json, &view, rows);
}

/* --- leases */

#define LEASES_ROWS(FACT)                                                                          \
	FACT(at->number, LABEL("leases"))                                                          \
	FACT(look.store, LABEL("store"), NAME("store"))                                            \
	FACT(look.connected, NAME("connected"),                                                    \
	     GAUGE("spoke_leases_connected", "1: the store of the leases takes commands"))         \
	FACT(look.asked, NAME("asked"),                                                            \
	     GAUGE("spoke_leases_asked", "leases that are asked for and not granted"))             \
	FACT(look.held, NAME("held"), GAUGE("spoke_leases_held", "leases that are held"))          \
	FACT(look.left_min_ns, MS("left_min_ms"),                                                  \
	     GAUGE("spoke_leases_left_min_seconds",                                                \
		   "time left of the held lease that ends first; 0: none is held"))
SPOKEI_FACTS(of_leases, LEASES_ROWS);

#define LEASE_ROWS(FACT)                                                                           \
	FACT(lease->id, NAME("id"))                                                                \
	FACT(lease->state, NAME("state"))                                                          \
	FACT(lease->left_ns, MS("left_ms"))                                                        \
	FACT(lease->fence, NAME("fence"))
SPOKEI_FACTS(of_lease, LEASE_ROWS);

static bool find_leases(const void *of, spokei_facts_take_fn take, void *arg)
{
	const struct numbered *at = of;
	struct spoke_leases_look look;

	spoke_leases_look(spokei_leases_of(at->member), &look);
	return take(arg, SPOKEI_FACT_VALUES(LEASES_ROWS));
}

static void show_lease(struct spokei_json *json, const struct spokei_lease_row *lease)
{
	spokei_json_open(json, '{');
	spokei_json_key(json, "name");
	spokei_json_span(json, lease->name.data, lease->name.len);
	spokei_facts_show(json, &of_lease, SPOKEI_FACT_VALUES(LEASE_ROWS));
	spokei_json_close(json, '}');
}

static void show_leases(struct spokei_json *json, const struct numbered *at,
			struct spokei_rows *rows)
{
	struct spoke_leases *leases = spokei_leases_of(at->member);
	struct spokei_lease_row found[SPOKEI_STATUS_ROWS];
	size_t count = spokei_rows_take(rows, SPOKEI_STATUS_ROWS);
	size_t shown = spokei_leases_rows(leases, found, count);
	struct spoke_leases_look look;
	size_t all;

	rows->left += count - shown;
	spoke_leases_look(leases, &look);
	all = (size_t)look.asked + look.held;
	spokei_facts_find(json, &of_leases, find_leases, at);
	spokei_json_open_member(json, "shown", '[');
	for (size_t i = 0; i < shown; i++)
		show_lease(json, &found[i]);
	spokei_json_close(json, ']');
	spokei_json_put_u64(json, "more", all > shown ? all - shown : 0);
}

/* --- gateways, whose figures are a table of their own */

static uint64_t figure_of(struct spokei_member *member, int figure)
{
	return spoke_comet_figure(spokei_comet_of_member(member), (enum spoke_comet_figure)figure);
}

static void show_gateway(struct spokei_json *json, const struct numbered *at,
			 struct spokei_rows *rows)
{
	const struct spoke_comet *comet = spokei_comet_of_member(at->member);
	char address[ADDRESS_TEXT];

	(void)rows;
	if (spoke_comet_address(comet, 0, address, sizeof(address)) == 0)
		address[0] = '\0';
	spokei_json_put_text(json, "address", address);
	spokei_json_put_bool(json, "draining", spokei_comet_drains(comet));
	for (int i = 0; i < SPOKE_COMET_FIGURE_COUNT; i++)
		spokei_json_put_u64(json, spoke_comet_figure_name((enum spoke_comet_figure)i),
				    figure_of(at->member, i));
}

static void put_figure(struct spokei_metrics *metrics, const struct spoke_engine *engine,
		       int figure)
{
	const bool grows = figure > SPOKE_COMET_FIGURE_BYTES;
	struct spokei_member *member = NULL;
	char family[96];
	char number[12];
	const struct spokei_labels labels = { .extra = "gateway", .value = number };

	(void)snprintf(family, sizeof(family), "spoke_comet_%s%s",
		       spoke_comet_figure_name((enum spoke_comet_figure)figure),
		       grows ? "_total" : "");
	spokei_metrics_family(metrics, family, grows ? "counter" : "gauge",
			      spoke_comet_figure_sentence((enum spoke_comet_figure)figure));
	for (unsigned at = 1; at <= SPOKEI_FACTS_ROWS; at++) {
		member = spokei_members_next(engine, spokei_comet_kind, member);
		if (member == NULL)
			break;
		(void)snprintf(number, sizeof(number), "%u", at);
		spokei_metrics_line(metrics, family, &labels, figure_of(member, figure));
	}
}

/* A program without gateways has none of these families. */
static void put_gateways(struct spokei_metrics *metrics, const struct spoke_engine *engine)
{
	if (spokei_members_next(engine, spokei_comet_kind, NULL) == NULL)
		return;
	for (int i = 0; i < SPOKE_COMET_FIGURE_COUNT; i++)
		put_figure(metrics, engine, i);
}

/* --- all */

/* The lists of the status, and the numbers of members that found no row. */
static const struct list {
	const char *name;
	const char *more;
	const char *kind;
	void (*show)(struct spokei_json *json, const struct numbered *at, struct spokei_rows *rows);
} lists[] = {
	{ "consumers", "consumers_more", spokei_consumer_kind, show_consumer },
	{ "providers", "providers_more", spokei_provider_kind, show_provider },
	{ "leases", "leases_more", spokei_leases_kind, show_leases },
	{ "gateways", NULL, spokei_comet_kind, show_gateway },
};

static void show_list(struct spokei_json *json, const struct spoke_engine *engine,
		      const struct list *list, struct spokei_rows *rows)
{
	struct numbered at = { .engine = engine };
	uint64_t more = 0;

	spokei_json_open_member(json, list->name, '[');
	while ((at.member = spokei_members_next(engine, list->kind, at.member)) != NULL) {
		if (spokei_rows_take(rows, 1) == 0) {
			more++;
			continue;
		}
		spokei_json_open(json, '{');
		list->show(json, &at, rows);
		spokei_json_close(json, '}');
	}
	spokei_json_close(json, ']');
	if (list->more)
		spokei_json_put_u64(json, list->more, more);
}

void spokei_members_show(struct spokei_json *json, const struct spoke_engine *engine,
			 struct spokei_rows *rows)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		show_list(json, engine, &lists[i], rows);
}

void spokei_members_families(struct spokei_metrics *metrics, const struct spoke_engine *engine)
{
	put_all(metrics, &of_consumer, engine, spokei_consumer_kind, find_consumer);
	put_all(metrics, &of_states, engine, spokei_consumer_kind, find_states);
	put_all(metrics, &of_endpoint, engine, spokei_consumer_kind, find_endpoints);
	put_all(metrics, &of_provider, engine, spokei_provider_kind, find_provider);
	spokei_facts_families(metrics, &of_certificate, find_certificates, engine);
	put_all(metrics, &of_leases, engine, spokei_leases_kind, find_leases);
	put_gateways(metrics, engine);
}
