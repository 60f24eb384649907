/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a provider: made, drained, ended and freed. */
#include "cluster/provider/provider.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/filter/filter.h"
#include "cluster/provider/access_log.h"
#include "cluster/provider/doors.h"
#include "cluster/provider/parts.h"
#include "cluster/provider/peers.h"
#include "cluster/provider/proof.h"
#include "cluster/provider/registration.h"
#include "cluster/provider/settings.h"
#include "cluster/serve/held.h"
#include "cluster/serve/request.h"
#include "cluster/serve/routes.h"
#include "core/engine/engine.h"
#include "core/memory/slab.h"
#include "transport/conn/conn.h"
#include "transport/listen/group.h"
#include "transport/stream/tls/tls.h"
#include "transport/trust/caller.h"

#define GRACE_NS UINT64_C(20000000) /* for the first bytes of new connections, in a drain */
#define PEERS_MAX (UINT32_MAX / 2)

/* A provider with its parts, in one block of memory. */
struct block {
	struct spoke_provider provider;
	struct spokei_link link;
	struct spokei_routes services;
	struct spokei_filters filters;
	struct spokei_caller caller;
	struct spokei_slab peers;
	struct spokei_registration registration;
	struct spokei_provider_settings settings;
	struct spokei_http_rules http;
};

const char spokei_provider_kind[] = "provider";

/* --- the end */

static void free_filters(struct spoke_provider *provider)
{
	spokei_access_log_end(provider->access_log);
	spokei_proof_free(provider->proof);
	spokei_filters_fini(provider->filters, provider->engine->env);
}

static void free_block(struct spoke_provider *provider)
{
	const struct spoke_env *env = provider->engine->env;

	spokei_settings_provider_fini(env, provider->settings);
	spokei_free(env, spoke_container_of(provider, struct block, provider), 1,
		    sizeof(struct block));
}

static void provider_bury(struct spokei_task *task)
{
	struct spoke_provider *provider = spoke_container_of(task, struct spoke_provider, bury);

	if (!provider->freed) {
		spokei_roll_retire(provider->engine, &provider->member);
		return;
	}
	if (!spokei_listen_group_free(provider->listeners)) {
		spokei_engine_dead(provider->engine, task);
		return;
	}
	spokei_roll_drop(provider->engine, &provider->member);
	spokei_request_end_orphans(provider->link);
	spokei_request_free(provider->spare);
	spokei_routes_fini(provider->services);
	spokei_doors_close(provider);
	free_filters(provider);
	spokei_methods_free(provider->caller);
	spokei_caller_fini(provider->caller);
	spokei_slab_fini(provider->peers);
	spokei_link_fini(provider->link);
	spokei_tls_free(provider->tls);
	spokei_registration_fini(provider->registration);
	free_block(provider);
}

/* Ends everything that the provider does. `bury` runs after its last connection. */
static void end_provider(struct spoke_provider *provider)
{
	if (provider->ended)
		return;
	provider->ended = true;
	provider->caller->closed = true;
	spokei_settings_leave(&provider->settings->keys);
	spokei_registration_end(provider->registration);
	spokei_listen_group_stop(provider->listeners);
	(void)spoke_alarm_cancel(&provider->grace);
	spokei_link_end(provider->link, &provider->bury);
}

void spoke_provider_free(struct spoke_provider *provider)
{
	if (provider == NULL || provider->freed)
		return;
	spokei_engine_refresh(provider->engine);
	provider->freed = true;
	end_provider(provider);
	if (provider->link->alive == 0)
		spokei_engine_dead(provider->engine, &provider->bury);
}

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
	end_provider(spoke_container_of(member, struct spoke_provider, member));
}

static void provider_free(struct spokei_member *member)
{
	spoke_provider_free(spoke_container_of(member, struct spoke_provider, member));
}

static void provider_woke(struct spokei_member *member)
{
	spokei_link_woke(spoke_container_of(member, struct spoke_provider, member)->link);
}

/* Takes no more connections and requests. Requests that have begun are answered. */
static void provider_drain(struct spokei_member *member)
{
	struct spoke_provider *provider = spoke_container_of(member, struct spoke_provider, member);
	struct spoke_list *conns = &provider->link->conns;

	provider->draining = true;
	/* Clients in the backlog are connected already, so they get the drain notice too. */
	spokei_listen_group_drain(provider->listeners);
	spokei_event(provider->engine, SPOKE_OK, "drain begins: %u connections",
		     provider->link->conn_count);
	provider->caller->closed = true;
	spokei_registration_withdraw(provider->registration);
	spokei_listen_group_stop(provider->listeners);
	/* New connections may have sent requests that have not been read yet. */
	send_notice(provider, spoke_alarm_after(provider->engine, &provider->grace, GRACE_NS,
						grace_over) != SPOKE_OK);
	if (spokei_list_empty(conns))
		end_provider(provider);
}

/* --- the beginning */

static int add_filters(struct spoke_provider *provider,
		       const struct spoke_provider_options *options)
{
	const char *log = provider->settings->keys.in_force.text[SPOKEI_KEY_ACCESS_LOG];
	struct spoke_engine *engine = provider->engine;
	int error = spokei_filters_init(provider->filters, engine->env, options->filters,
					options->filter_count);

	provider->filters->fence_proven =
		provider->settings->keys.in_force.of[SPOKEI_KEY_FENCE_PROVEN] != 0;
	if (error == 0)
		error = spokei_proof_new(engine, options, provider->settings, &provider->proof);
	if (error == 0) {
		provider->proof->set.changed = spokei_provider_proof_changed;
		provider->proof->set.changed_arg = provider;
	}
	if (error == 0 && spokei_proof_may_ask(provider->proof))
		error = spokei_filters_put_first(provider->filters, engine->env,
						 &provider->proof->filter);
	if (error || log == NULL)
		return error;
	error = spokei_access_log_new(engine, log, &provider->access_log);
	if (error)
		return error;
	return spokei_filters_put_first(provider->filters, engine->env,
					spokei_access_log_filter(provider->access_log));
}

static int make_filters(struct spoke_provider *provider,
			const struct spoke_provider_options *options)
{
	int error = add_filters(provider, options);

	if (error == SPOKE_ELIMIT) {
		spokei_event(provider->engine, error,
			     "new provider: %zu filters, at most %u are possible with those of "
			     "token and access log",
			     options->filter_count, SPOKEI_FILTERS_MAX);
	}
	return error;
}

/* Makes the parts that can fail, except the filters. */
static int init_parts(struct spoke_provider *provider, const struct spoke_provider_options *options)
{
	const struct spokei_key_values *values = &provider->settings->keys.in_force;
	const struct spokei_listen_options listen = {
		.limits = provider->settings->connections,
		.accept = spokei_provider_accept,
		.make_room = spokei_provider_make_room,
		.arg = provider,
		.events = &provider->news,
	};
	struct spokei_registration_of of = {
		.services = provider->services,
		.proof = provider->proof,
		.local = { .callers = &provider->callers,
			   .wanted = &provider->settings->local_path },
	};
	struct spokei_http_rules *http =
		&spoke_container_of(provider, struct block, provider)->http;
	int error;

	*http = (struct spokei_http_rules){
		.origins = spokei_keys_text(values, SPOKEI_KEY_HTTP_ORIGINS),
		.hosts = spokei_keys_text(values, SPOKEI_KEY_HTTP_HOSTS),
	};
	provider->settings->limits.wire.http = http;
	spokei_provider_bound_unproven(provider);
	error = spokei_provider_secure(provider, options);
	if (error)
		return error;
	error = spokei_link_init(provider->link, provider->engine, &provider->settings->limits);
	if (error)
		goto err_after_tls;
	error = spokei_listen_group_new(provider->engine, &listen, &provider->listeners);
	if (error)
		goto err_after_link;
	of.listeners = provider->listeners;
	of.local.listeners = provider->listeners;
	error = spokei_doors_open(provider);
	if (error)
		goto err_after_listeners;
	error = spokei_registration_init(provider->registration, provider->engine, &of, options,
					 provider->settings);
	if (error)
		goto err_after_doors;
	return SPOKE_OK;

err_after_doors:
	spokei_doors_close(provider);
err_after_listeners:
	SPOKE_ASSERT(spokei_listen_group_free(provider->listeners));
err_after_link:
	spokei_link_fini(provider->link);
err_after_tls:
	spokei_tls_free(provider->tls);
	return error;
}

/* Does the rest, which cannot fail. */
static void begin_life(struct spoke_provider *provider, const struct spoke_provider_options *with)
{
	const struct spoke_env *env = provider->engine->env;

	provider->link->serve = spokei_provider_serve;
	provider->link->serve_arg = provider;
	provider->link->is_unsafe = spokei_provider_is_unsafe;
	provider->link->unread = spokei_provider_unread;
	provider->link->refused = spokei_provider_refused;
	provider->news = spokei_provider_news(env->now(env->ctx));
	provider->changed = with->changed;
	provider->changed_arg = with->changed_arg;
	provider->end = end_provider;
	spokei_routes_init(provider->services, provider->engine,
			   provider->settings->keys.in_force.text[SPOKEI_KEY_DEFAULT_SERVICE],
			   spokei_request_commons, SPOKEI_REQUEST_COMMONS);
	provider->services->about = spokei_request_about;
	provider->services->lets_know = spokei_provider_lets_know;
	provider->services->lets_know_arg = provider;
	provider->services->limits_all = provider->settings->keys.file.config != NULL;
	spokei_caller_init(provider->caller, provider->link, 0);
	provider->caller->pushes = true;
	spokei_slab_init(provider->peers, env, sizeof(struct spokei_peer), PEERS_MAX);
	provider->member = (struct spokei_member){
		.kind = spokei_provider_kind,
		.close = provider_close,
		.drain = provider_drain,
		.woke = provider_woke,
		.free = provider_free,
	};
	spokei_roll_add(provider->engine, &provider->member);
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
		.peers = &block->peers,
		.registration = &block->registration,
		.settings = &block->settings,
		.bury.run = provider_bury,
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
	error = spokei_settings_provider(engine, with, provider, provider->settings);
	if (error == 0)
		error = make_filters(provider, with);
	if (error == 0)
		error = init_parts(provider, with);
	if (error) {
		free_filters(provider);
		free_block(provider);
		return error;
	}
	begin_life(provider, with);
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
	int error = spokei_engine_check(provider->engine);

	if (error)
		return error;
	error = spokei_doors_prepare(provider, service->name, &callers);
	if (error)
		return error;
	error = spokei_proof_add(provider->proof, service->name, &credentials);
	if (error) {
		spokei_callers_free(provider->engine->env, callers);
		return error;
	}
	error = spokei_routes_add(provider->services, service, handlers, count, why, sizeof(why));
	if (error == SPOKE_EINVAL || error == SPOKE_EEXIST || error == SPOKE_ETOOLARGE)
		spokei_event(provider->engine, error, "new service: %s", why);
	if (error) {
		spokei_callers_free(provider->engine->env, callers);
		return error;
	}
	spokei_doors_add(provider, callers, credentials);
	spokei_provider_limit(provider);
	spokei_provider_warn_of_last(provider);
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

size_t spoke_provider_registered(const struct spoke_provider *provider, size_t *ret_wanted)
{
	size_t wanted;
	size_t listed = spokei_registration_count(provider->registration, &wanted);

	if (ret_wanted)
		*ret_wanted = wanted;
	return listed;
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
		.draining = provider->draining,
		.tls = provider->tls,
		.settings = provider->settings,
	};
}
