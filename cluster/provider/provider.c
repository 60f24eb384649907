/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a provider: made, given services, reloaded, drained, ended and freed. */
#include "cluster/provider/provider.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/filter/filter.h"
#include "cluster/filter/limit.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/registration.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/access_control.h"
#include "cluster/serve/access_log.h"
#include "cluster/serve/dedupe.h"
#include "cluster/serve/kept.h"
#include "cluster/serve/request.h"
#include "cluster/serve/routes.h"
#include "cluster/serve/unanswered.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/memory/slab.h"
#include "transport/conn/conn.h"
#include "transport/listen/group.h"
#include "transport/stream/tls/tls.h"
#include "transport/trust/caller.h"

#include <stdio.h>

#define GRACE_NS UINT64_C(20000000) /* for the first bytes of new connections, in a drain */

/* Time limit of a peer's first byte: so many intervals, and never less than MUTE_NS, because Java
 * consumers send nothing before their first call or their own interval of 60 s. */
#define MUTE_INTERVALS 4u
#define MUTE_NS UINT64_C(240000000000)

/* A provider with its parts, in one block of memory. */
struct block {
	struct spoke_provider provider;
	struct spokei_link link;
	struct spokei_routes services;
	struct spokei_filters filters;
	struct spokei_caller caller;
	struct spokei_access_control access;
	struct spokei_slab peers;
	struct spokei_dedupe dedupe;
	struct spokei_registration registration;
	struct spokei_provider_settings settings;
	struct spokei_unanswered unanswered;
	struct spokei_http_rules http;
};

const char spokei_provider_kind[] = "provider";

/* --- the end */

/* Frees the parts that provider_new() makes first, and the block. */
static void free_block(struct spoke_provider *provider)
{
	const struct spoke_env *env = provider->engine->env;

	spokei_access_log_end(provider->access_log);
	spokei_access_fini(provider->access);
	spokei_filters_fini(provider->filters, env);
	spokei_settings_end(&provider->settings->keys, env);
	spokei_free(env, spoke_container_of(provider, struct block, provider), 1,
		    sizeof(struct block));
}

static void provider_finalise(struct spokei_task *task)
{
	struct spoke_provider *provider = spoke_container_of(task, struct spoke_provider, finalise);

	if (!spokei_keeping_end(provider->dedupe))
		return;
	if (!provider->freed) {
		spokei_member_retire(provider->engine, &provider->member);
		return;
	}
	if (!spokei_listen_group_free(provider->listeners)) {
		spokei_run_freeing(provider->engine, task);
		return;
	}
	spokei_member_drop(&provider->member);
	spokei_request_end_orphans(provider->link);
	spokei_unanswered_fini(provider->link->unanswered);
	spokei_request_free(provider->spare);
	spokei_dedupe_finish(provider->dedupe);
	spokei_keeping_free(provider->dedupe);
	spokei_routes_fini(provider->services);
	spokei_methods_free(provider->caller);
	spokei_caller_fini(provider->caller);
	spokei_slab_fini(provider->peers);
	spokei_link_fini(provider->link);
	spokei_tls_free(provider->tls);
	free_block(provider);
}

void spokei_provider_end(struct spoke_provider *provider)
{
	if (provider->ended)
		return;
	provider->ended = true;
	provider->caller->closed = true;
	spokei_settings_leave(&provider->settings->keys);
	spokei_registration_end(provider->registration);
	spokei_listen_group_stop(provider->listeners);
	(void)spoke_alarm_cancel(&provider->grace);
	(void)spoke_alarm_cancel(&provider->delay);
	spokei_link_end(provider->link, &provider->finalise);
}

void spoke_provider_free(struct spoke_provider *provider)
{
	if (provider == NULL || spokei_engine_keeps(provider->engine, "spoke_provider_free()") ||
	    provider->freed)
		return;
	provider->freed = true;
	spokei_provider_end(provider);
	if (provider->link->alive == 0)
		spokei_run_freeing(provider->engine, &provider->finalise);
}

/* --- stepping aside
 *
 * A provider that is offline is not in the registry, and its peers have been told to prefer
 * others. It answers all that comes. A drain begins with the same, and then closes.
 */

static void withdraw(struct spoke_provider *provider)
{
	provider->offline = true;
	(void)spoke_alarm_cancel(&provider->delay);
	spokei_registration_withdraw(provider->registration);
}

/* Tells all peers that have sent something; the others are told after their first bytes. */
static void tell_all(struct spoke_provider *provider)
{
	struct spoke_list *conns = &provider->link->conns;

	for (struct spoke_list *node = conns->next; node != conns;) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		spokei_conn_tell(conn, provider->offline);
	}
}

static void go_offline(struct spoke_provider *provider)
{
	spokei_event(provider->engine, SPOKE_OK, "provider: offline; %u connections stay",
		     provider->link->conn_count);
	withdraw(provider);
	tell_all(provider);
}

static void go_online(struct spoke_provider *provider)
{
	spokei_event(provider->engine, SPOKE_OK, "provider: online");
	provider->offline = false;
	spokei_registration_resume(provider->registration);
	tell_all(provider);
}

/* Steps aside or comes back, whether or not the provider is there already. */
static int step(struct spoke_provider *provider, bool away)
{
	int error = spokei_engine_check(provider->engine);

	if (error)
		return error;
	if (provider->ended || provider->draining)
		return SPOKE_ECLOSED;
	(void)spoke_alarm_cancel(&provider->delay);
	if (provider->offline != away)
		(away ? go_offline : go_online)(provider);
	return SPOKE_OK;
}

int spoke_provider_offline(struct spoke_provider *provider)
{
	return step(provider, true);
}

int spoke_provider_online(struct spoke_provider *provider)
{
	return step(provider, false);
}

bool spoke_provider_is_online(const struct spoke_provider *provider)
{
	return !provider->offline && !provider->ended;
}

void spokei_provider_step(struct spokei_member *member, bool away)
{
	/* A provider that drains stays as it is. */
	(void)!step(spoke_container_of(member, struct spoke_provider, member), away);
}

static void delay_over(struct spoke_alarm *alarm)
{
	(void)!step(spoke_container_of(alarm, struct spoke_provider, delay), false);
}

/* Decides whether the provider begins offline. Returns 0 or the error of an alarm. */
static int begin_offline(struct spoke_provider *provider)
{
	const struct spokei_settings *keys = &provider->settings->keys;
	bool online = spokei_settings_number(keys, SPOKEI_KEY_ONLINE) != 0;
	uint64_t delay_ns = spokei_settings_number(keys, SPOKEI_KEY_REGISTER_DELAY);

	if (online && delay_ns == 0)
		return SPOKE_OK;
	withdraw(provider);
	if (!online && delay_ns > 0)
		spokei_event(provider->engine, SPOKE_EINVAL,
			     "provider: register.delay is not followed, since online = off: it is "
			     "offline until it is told");
	if (!online)
		return SPOKE_OK;
	return spoke_alarm_after(provider->engine, &provider->delay, delay_ns, delay_over);
}

/* --- drains */

/* Returns whether the connection is too old for its first bytes to be still on their way. */
static bool has_been_silent(const struct spokei_conn *conn)
{
	return conn->link->engine->begin_ns - conn->born_ns >= GRACE_NS;
}

/* Sends the drain notice on `all` connections, or on those that have sent something or had time to.
 */
static void send_notice(struct spoke_provider *provider, bool all)
{
	struct spoke_list *conns = &provider->link->conns;

	for (struct spoke_list *node = conns->next; node != conns;) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		if (all || conn->wire || has_been_silent(conn))
			spokei_conn_finish(conn);
	}
}

static void grace_over(struct spoke_alarm *alarm)
{
	send_notice(spoke_container_of(alarm, struct spoke_provider, grace), true);
}

static void provider_close(struct spokei_member *member)
{
	spokei_provider_end(spoke_container_of(member, struct spoke_provider, member));
}

static void provider_free(struct spokei_member *member)
{
	spoke_provider_free(spoke_container_of(member, struct spoke_provider, member));
}

/* Tells peers of spoke which instance this is, as soon as it remembers requests. */
static void tell_instance(struct spoke_provider *provider)
{
	const struct spokei_dedupe_table *table = &provider->dedupe->table;

	if (table->on)
		spokei_link_name(provider->link, table->instance, table->clock_ns);
}

/* The clock has stood still, so peers cannot know its time any more. */
static void provider_woke(struct spokei_member *member)
{
	struct spoke_provider *provider = spoke_container_of(member, struct spoke_provider, member);

	spokei_link_woke(provider->link);
	spokei_dedupe_renew(&provider->dedupe->table);
	tell_instance(provider);
}

/* Takes no more connections and requests. Requests that have begun are answered. */
static void provider_drain(struct spokei_member *member)
{
	struct spoke_provider *provider = spoke_container_of(member, struct spoke_provider, member);
	struct spoke_list *conns = &provider->link->conns;

	if (provider->ended)
		return;
	provider->draining = true;
	/* Clients in the backlog are connected already, so they get the drain notice too. */
	spokei_listen_group_drain(provider->listeners);
	spokei_event(provider->engine, SPOKE_OK, "drain begins: %u connections",
		     provider->link->conn_count);
	provider->caller->closed = true;
	withdraw(provider);
	spokei_listen_group_stop(provider->listeners);
	/* New connections may have sent requests that have not been read yet. */
	send_notice(provider, spoke_alarm_after(provider->engine, &provider->grace, GRACE_NS,
						grace_over) != SPOKE_OK);
	if (spokei_list_empty(conns))
		spokei_provider_end(provider);
}

/* --- methods */

void spokei_settings_route(const struct spokei_settings *settings, const struct spokei_route *route,
			   struct spokei_key_values *ret)
{
	char method[SPOKEI_SERVICE_KEY_MAX + 1];
	const struct spokei_method_name name = { route->service->name, method };

	if (route->method.len)
		memcpy(method, route->method.data, route->method.len);
	method[route->method.len] = '\0';
	/* Cannot fail: there is no URL, and no code that could be wrong. */
	(void)!spokei_settings_read_method(settings, &name, NULL, ret);
	spokei_keys_set(ret, SPOKEI_KEY_EXECUTES, route->executes);
	spokei_keys_set(ret, SPOKEI_KEY_EXECUTES_TPS, route->per_second);
}

_Static_assert(SPOKE_EXECUTES_AUTO == SPOKEI_LIMIT_AUTO, "one number in code and limits");
_Static_assert(SPOKE_EXECUTES_AUTO == SPOKEI_OPTION_CAP_AUTO, "... and in settings");

static void limit_route(struct spoke_provider *provider, const struct spokei_route *route)
{
	struct spokei_key_values values;

	spokei_settings_route(&provider->settings->keys, route, &values);
	spokei_figures_slow_after(route->figures, values.of[SPOKEI_KEY_SLOW_AFTER]);
	if (route->limit)
		spokei_limit_change(route->limit, spokei_keys_u32(&values, SPOKEI_KEY_EXECUTES),
				    spokei_keys_u32(&values, SPOKEI_KEY_EXECUTES_TPS));
	if (route->dedupe) {
		spokei_dedupe_set(&provider->dedupe->table, route->dedupe,
				  values.of[SPOKEI_KEY_DEDUPE],
				  values.of[SPOKEI_KEY_DEDUPE_UNKNOWN] != 0,
				  provider->engine->env->now(provider->engine->env->ctx));
	}
}

static void limit_each(struct spoke_provider *provider)
{
	const struct spokei_service *service = NULL;

	while ((service = spokei_routes_next(provider->services, service)) != NULL)
		for (size_t i = 0; i < service->count; i++)
			limit_route(provider, &service->routes[i]);
}

/* Sets the limits of methods whose handlers have none to those of the settings, and whether they
 * recognise repeats. */
static void limit_routes(struct spoke_provider *provider)
{
	const struct spokei_settings *keys = &provider->settings->keys;
	struct spokei_dedupe_table *table = &provider->dedupe->table;
	bool on = table->on;

	if (!provider->services->limits_all)
		return;
	spokei_dedupe_bound(table, (uint32_t)spokei_settings_number(keys, SPOKEI_KEY_DEDUPE_MAX),
			    (size_t)spokei_settings_number(keys, SPOKEI_KEY_DEDUPE_BYTES));
	limit_each(provider);
	if (!table->on)
		return;
	/* The methods before the first one that is on get to know the table, too. */
	limit_each(provider);
	spokei_dedupe_changed(provider->dedupe);
	if (!on)
		tell_instance(provider);
}

/* --- peers that may connect */

/* Reads the lists of addresses and users. `why` begins with the name of the key. */
static int read_rules(struct spoke_engine *engine, const struct spokei_key_values *of,
		      struct spokei_rules **ret_rules, char why[SPOKE_EVENT_TEXT])
{
	char sentence[SPOKEI_RULES_WHY];
	int error = spokei_rules_new(engine->env,
				     &(struct spokei_rules_of){
					     .deny_from = of->text[SPOKEI_KEY_DENY_FROM],
					     .allow_from = of->text[SPOKEI_KEY_ALLOW_FROM],
					     .allow_users = of->text[SPOKEI_KEY_ALLOW_USERS],
				     },
				     ret_rules, sentence);

	if (error == SPOKE_EINVAL)
		(void)snprintf(why, SPOKE_EVENT_TEXT, "%.220s", sentence);
	return error;
}

/* Puts the rules in force, for connections that are accepted from now on. */
static void set_rules(struct spoke_provider *provider, struct spokei_rules *rules)
{
	provider->link->users_prove = rules && rules->user_count > 0;
	spokei_listen_group_rule(provider->listeners, rules);
}

/* Returns whether lists and credentials in force allow a connection that exists. The names of a
 * peer are known when its connection is open; until then only its address counts. */
static bool is_allowed(const struct spoke_provider *provider, struct spokei_conn *conn)
{
	const struct spoke_env *env = provider->engine->env;
	const struct spokei_identity *identity = conn->identity;
	uint32_t user[2] = { 0, 0 };
	bool has_user = identity && identity->has_user;
	bool is_new;

	if (has_user) {
		user[0] = identity->user.uid;
		user[1] = identity->user.gid;
	}
	if (!spokei_access_stands(provider->access, conn))
		return false;
	if (spokei_rules_admit_again(env, spokei_listen_group_rules(provider->listeners),
				     &conn->peer, has_user ? user : NULL))
		return false;
	return spokei_conn_is_opening(conn) ||
	       spokei_conn_let_in(conn, provider->access->callers, &is_new);
}

/* Drains the connections that lists or credentials do not allow any more. */
static void drain_barred(struct spoke_provider *provider)
{
	struct spoke_list *conns = &provider->link->conns;
	unsigned drained = 0;

	for (struct spoke_list *node = conns->next; node != conns;) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		if (conn->state > SPOKEI_CONN_OPEN || is_allowed(provider, conn))
			continue;
		spokei_count(provider->engine, SPOKE_STAT_DRAINED_CALLER);
		spokei_conn_finish(conn);
		drained++;
	}
	if (drained > 0) {
		spokei_event(provider->engine, SPOKE_EFORBIDDEN,
			     "provider: %u connections are drained, which the new lists or tokens "
			     "do not allow",
			     drained);
	}
}

/* --- changes */

static void bound_silence(struct spokei_link_limits *limits)
{
	limits->mute_ns = MUTE_INTERVALS * limits->heartbeat_ns;
	if (limits->mute_ns < MUTE_NS)
		limits->mute_ns = MUTE_NS;
}

/* Sets the bounds of peers that have proven nothing, if the provider asks for proof. */
static void bound_unproven(struct spoke_provider *provider)
{
	struct spokei_provider_settings *settings = provider->settings;

	settings->limits.unproven_frame_max =
		spokei_access_asks(provider->access->own)
			? (size_t)spokei_settings_number(&settings->keys,
							 SPOKEI_KEY_UNPROVEN_FRAME_MAX)
			: 0;
}

/* Publishes and applies tokens and keys whose files have changed. `arg`: the provider. */
static void credentials_changed(void *arg)
{
	struct spoke_provider *provider = arg;

	if (provider->access->set.new_text)
		spokei_registration_changed(provider->registration);
	drain_barred(provider);
}

static void apply_link(void *owner)
{
	struct spoke_provider *provider = owner;

	bound_silence(&provider->settings->limits);
	bound_unproven(provider);
	spokei_link_change(provider->link, &provider->settings->limits);
}

static void apply_connections(void *owner)
{
	const struct spoke_provider *provider = owner;

	spokei_listen_group_limit(provider->listeners, &provider->settings->connections);
}

static int prepare(void *owner)
{
	struct spoke_provider *provider = owner;
	char why[SPOKE_EVENT_TEXT] = "out of memory";
	int error = read_rules(provider->engine, provider->settings->keys.next,
			       &provider->next_rules, why);

	if (error == SPOKE_OK)
		error = spokei_access_prepare(provider->access, provider->services, why);
	if (error)
		spokei_event(provider->engine, error, "provider: the old lists stay: %s", why);
	return error;
}

static void drop(void *owner)
{
	struct spoke_provider *provider = owner;

	spokei_rules_free(provider->engine->env, provider->next_rules);
	provider->next_rules = NULL;
	spokei_access_replace(provider->access, provider->services, false);
}

/* The credentials of the reload change next, which drains. */
static void take(void *owner)
{
	struct spoke_provider *provider = owner;
	struct spokei_key_values values;
	struct spokei_tls_limits handshakes;

	spokei_settings_look(&provider->settings->keys, &values);
	spokei_keys_fill(&values, 1u << SPOKEI_IN_PROVIDER, SPOKEI_AT_HANDSHAKES, &handshakes);
	spokei_tls_limit(provider->tls, &handshakes);
	provider->filters->fence_proven = values.of[SPOKEI_KEY_FENCE_PROVEN] != 0;
	spokei_caller_resize(provider->caller, provider->settings->limits.pending_max, 0);
	limit_routes(provider);
	set_rules(provider, provider->next_rules);
	provider->next_rules = NULL;
	spokei_access_replace(provider->access, provider->services, true);
	spokei_provider_warn(provider, NULL);
	spokei_registration_changed(provider->registration);
}

#define AT(member) offsetof(struct spokei_provider_settings, member)

static const struct spokei_settings_part parts[] = {
	{ SPOKEI_AT_LINK, AT(limits), apply_link },
	{ SPOKEI_AT_QUOTA, AT(connections), apply_connections },
	{ SPOKEI_AT_JOURNAL, AT(journal), NULL },
};

static const struct spokei_settings_kind kind = {
	.sections = 1u << SPOKEI_IN_PROVIDER | 1u << SPOKEI_IN_REGISTRY,
	.parts = parts,
	.part_count = sizeof(parts) / sizeof(parts[0]),
	.prepare = prepare,
	.drop = drop,
	.take = take,
};

static int read_settings(struct spoke_provider *provider,
			 const struct spoke_provider_options *options)
{
	struct spokei_provider_settings *settings = provider->settings;
	struct spokei_key_values values = { .of = { 0 } };
	struct spoke_engine *engine = provider->engine;
	int error;

	settings->keys.kind = &kind;
	settings->keys.owner = provider;
	settings->keys.structs = settings;
	settings->keys.file.config = options->config;
	spokei_link_limits_init(&settings->limits);
	error = spokei_keys_read_code(engine, &values, SPOKEI_IN_PROVIDER, SPOKEI_AT_PROVIDER,
				      options);
	if (error == SPOKE_OK)
		error = spokei_keys_read_code(engine, &values, SPOKEI_IN_PROVIDER, SPOKEI_AT_TLS,
					      options->tls);
	if (error == SPOKE_OK)
		error = spokei_settings_begin(&settings->keys, engine, &values);
	if (error)
		return error;
	bound_silence(&settings->limits);
	spokei_link_limits_frame(&settings->limits, settings->limits.wire.frame_max);
	spokei_link_limits_values(&settings->limits, settings->limits.wire.value.items_max);
	settings->local_path = spokei_settings_number(&settings->keys, SPOKEI_KEY_LOCAL_PATH) == 0;
	return SPOKE_OK;
}

/* --- the beginning */

static int make_filters(struct spoke_provider *provider,
			const struct spoke_provider_options *options)
{
	struct spoke_engine *engine = provider->engine;
	int error = spokei_filters_init(provider->filters, engine->env, options->filters,
					options->filter_count);

	provider->filters->fence_proven = spokei_settings_number(&provider->settings->keys,
								 SPOKEI_KEY_FENCE_PROVEN) != 0;
	if (error == SPOKE_ELIMIT)
		spokei_event(engine, error, "new provider: %zu filters, at most %u are possible",
			     options->filter_count, SPOKEI_FILTERS_MAX);
	if (error == SPOKE_OK)
		error = spokei_access_init(provider->access, engine, &provider->settings->keys,
					   options->token, provider->filters);
	if (error == SPOKE_OK)
		error = spokei_access_log_new(&provider->settings->keys, provider->filters,
					      &provider->access_log);
	return error;
}

static int make_tls(struct spoke_provider *provider, const struct spoke_provider_options *options)
{
	const struct spokei_tls_sources sources = {
		.options = options->tls,
		.settings = &provider->settings->keys,
		.section = SPOKEI_IN_PROVIDER,
	};
	int error = spokei_settings_tls(provider->engine, &sources, &provider->tls_mode,
					&provider->tls);

	if (provider->tls)
		spokei_tls_watch(provider->tls, spokei_conn_finish_stream);
	provider->settings->keys.file.tls = provider->tls;
	provider->settings->keys.file.credentials = &provider->access->set;
	return error;
}

/* Makes the parts that can fail, except the filters. */
static int init_parts(struct spoke_provider *provider, const struct spoke_provider_options *options)
{
	struct spokei_key_values values;
	struct spokei_http_rules *http =
		&spoke_container_of(provider, struct block, provider)->http;
	char why[SPOKE_EVENT_TEXT];
	struct spokei_rules *rules;
	int error;

	spokei_settings_look(&provider->settings->keys, &values);
	*http = (struct spokei_http_rules){
		.origins = spokei_keys_text(&values, SPOKEI_KEY_HTTP_ORIGINS),
		.hosts = spokei_keys_text(&values, SPOKEI_KEY_HTTP_HOSTS),
	};
	provider->settings->limits.wire.http = http;
	bound_unproven(provider);
	error = make_tls(provider, options);
	if (error)
		return error;
	error = spokei_provider_open(provider);
	if (error)
		goto err_after_tls;
	error = read_rules(provider->engine, &values, &rules, why);
	if (error == SPOKE_EINVAL)
		spokei_event(provider->engine, error, "option %s", why);
	if (error)
		goto err_after_open;
	set_rules(provider, rules);
	error = spokei_unanswered_init(
		&spoke_container_of(provider, struct block, provider)->unanswered, provider->link);
	if (error == 0)
		error = spokei_registration_init(provider, options);
	if (error)
		goto err_after_open;
	error = begin_offline(provider);
	if (error)
		goto err_after_registration;
	return SPOKE_OK;

err_after_registration:
	spokei_registration_end(provider->registration);
err_after_open:
	SPOKE_ASSERT(spokei_listen_group_free(provider->listeners));
	spokei_link_fini(provider->link);
err_after_tls:
	spokei_tls_free(provider->tls);
	return error;
}

/* Does the rest, which cannot fail. */
static void begin_life(struct spoke_provider *provider, const struct spoke_provider_options *with)
{
	provider->access->set.changed = credentials_changed;
	provider->access->set.changed_arg = provider;
	provider->changed = with->changed;
	provider->changed_arg = with->changed_arg;
	spokei_routes_init(provider->services, provider->engine,
			   spokei_settings_text(&provider->settings->keys,
						SPOKEI_KEY_DEFAULT_SERVICE));
	provider->services->access = provider->access;
	provider->services->limits_all = provider->settings->keys.file.config != NULL ||
					 with->dedupe_ns > 0;
	provider->services->holds_all = provider->settings->journal.folder != NULL;
	spokei_dedupe_begin(provider->dedupe, provider->engine);
	spokei_caller_init(provider->caller, provider->link, 0);
	provider->caller->pushes = true;
	provider->member = (struct spokei_member){
		.kind = spokei_provider_kind,
		.close = provider_close,
		.drain = provider_drain,
		.woke = provider_woke,
		.free = provider_free,
	};
	spokei_member_add(provider->engine, &provider->member);
}

/* --- the journal of answers */

/* Answers of earlier processes are known, so that requests may come. */
static void journal_opened(void *arg)
{
	struct spoke_provider *provider = arg;

	if (provider->ended)
		return;
	tell_instance(provider);
	spokei_listen_group_hold(provider->listeners, false);
}

static void journal_closed(void *arg)
{
	struct spoke_provider *provider = arg;

	spokei_run_freeing(provider->engine, &provider->finalise);
}

/* Has the clients wait until the journal is read. */
static int begin_journal(struct spoke_provider *provider)
{
	const struct spokei_keeping_options options = {
		.settings = &provider->settings->journal,
		.services = provider->services,
		.opened = journal_opened,
		.closed = journal_closed,
		.arg = provider,
	};

	if (options.settings->folder == NULL)
		return SPOKE_OK;
	spokei_listen_group_hold(provider->listeners, true);
	return spokei_keeping_begin(provider->dedupe, &options);
}

static struct spoke_provider *alloc_block(struct spoke_engine *engine)
{
	struct block *block = spokei_alloc(engine->env, 1, sizeof(*block));

	if (block == NULL)
		return NULL;
	block->provider = (struct spoke_provider){
		.engine = engine,
		.link = &block->link,
		.services = &block->services,
		.filters = &block->filters,
		.caller = &block->caller,
		.access = &block->access,
		.peers = &block->peers,
		.dedupe = &block->dedupe,
		.registration = &block->registration,
		.settings = &block->settings,
		.finalise.run = provider_finalise,
	};
	return &block->provider;
}

static int provider_new(struct spoke_engine *engine, const struct spoke_provider_options *options,
			struct spoke_provider **ret_provider)
{
	static const struct spoke_provider_options defaults;
	const struct spoke_provider_options *with = options ? options : &defaults;
	struct spoke_provider *provider;
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (spokei_engine_ending(engine))
		return SPOKE_ECLOSED;
	provider = alloc_block(engine);
	if (provider == NULL)
		return SPOKE_ENOMEM;
	error = read_settings(provider, with);
	if (error == 0)
		error = make_filters(provider, with);
	if (error == 0)
		error = init_parts(provider, with);
	if (error) {
		free_block(provider);
		return error;
	}
	begin_life(provider, with);
	error = begin_journal(provider);
	if (error) {
		spoke_provider_free(provider);
		return error;
	}
	*ret_provider = provider;
	return SPOKE_OK;
}

int spoke_provider_new(struct spoke_engine *engine, const struct spoke_provider_options *options,
		       struct spoke_provider **ret_provider)
{
	uint64_t begun = spokei_why_begin(engine);

	return spokei_why_end(engine, begun, provider_new(engine, options, ret_provider),
			      "new provider");
}

static int add_service(struct spoke_provider *provider, const struct spoke_service_options *service,
		       const struct spoke_handler *handlers, size_t count)
{
	char why[SPOKE_EVENT_TEXT];
	struct spokei_callers *callers;
	const struct spokei_credentials *credentials;
	struct spokei_service *added;
	int error = spokei_engine_check(provider->engine);

	if (error)
		return error;
	error = spokei_access_read(provider->access, service->name, &callers, &credentials);
	if (error)
		return error;
	error = spokei_routes_add(provider->services, service, handlers, count, why, sizeof(why));
	if (error == SPOKE_EINVAL || error == SPOKE_EEXIST || error == SPOKE_ETOOLARGE)
		spokei_event(provider->engine, error, "new service: %s", why);
	if (error) {
		spokei_callers_free(provider->engine->env, callers);
		return error;
	}
	added = spoke_container_of(provider->services->all.prev, struct spokei_service, node);
	added->callers = callers;
	added->credentials = credentials;
	limit_routes(provider);
	spokei_provider_warn(provider, added);
	spokei_registration_changed(provider->registration);
	return SPOKE_OK;
}

int spoke_provider_add(struct spoke_provider *provider, const struct spoke_service_options *service,
		       const struct spoke_handler *handlers, size_t count)
{
	uint64_t begun = spokei_why_begin(provider->engine);

	return spokei_why_end(provider->engine, begun,
			      add_service(provider, service, handlers, count), "new service");
}

const struct spoke_provider *spokei_provider_of(struct spokei_member *member)
{
	return spoke_container_of(member, struct spoke_provider, member);
}

struct spokei_provider_view spokei_provider_look(const struct spoke_provider *provider)
{
	return (struct spokei_provider_view){
		.link = provider->link,
		.services = provider->services,
		.addresses = spokei_listen_group_count(provider->listeners),
		.peers = provider->peers->count,
		.offline = provider->offline,
		.draining = provider->draining,
		.tls = provider->tls,
		.settings = provider->settings,
		.remembered = provider->dedupe->table.ids.count,
		.remembered_bytes = provider->dedupe->table.bytes,
		.journal = provider->dedupe->keeping ? &provider->dedupe->keeping->journal : NULL,
	};
}
