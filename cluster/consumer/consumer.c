/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a consumer: made, subscribed, drained, ended and freed. Its present state and its
 * tickets, as users see them. */
#include "cluster/consumer/consumer.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry.h"
#include "cluster/config/credentials.h"
#include "cluster/config/places.h"
#include "cluster/consumer/parts.h"
#include "cluster/consumer/settings.h"
#include "cluster/consumer/subscription.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/endpoints/info.h"
#include "cluster/endpoints/routing.h"
#include "cluster/filter/filter.h"
#include "cluster/serve/request.h"
#include "cluster/serve/routes.h"
#include "core/engine/weak.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/stream/tls/tls.h"

#include <spoke/consumer.h>
#include <spoke/tls.h>

#include <string.h>

#define ENDPOINTS_MAX 1024u

/* A consumer with its parts, in one block of memory. */
struct block {
	struct spoke_consumer consumer;
	struct spokei_link link;
	struct spokei_consumer_settings settings;
	struct spokei_caller caller;
	struct spokei_directory directory;
	struct spokei_balancer_state balancer_state;
	struct spokei_filters filters;
	struct spokei_route pushed;
	struct spokei_credential_set credentials;
};

const char spokei_consumer_kind[] = "consumer";

/* --- its endpoints */

/* Reads the URLs of further endpoints. */
static int read_further(struct spoke_consumer *consumer,
			const struct spoke_consumer_options *options, struct spoke_url *urls)
{
	for (size_t i = 0; i < options->more_count; i++) {
		int error = spokei_places_url(consumer->engine, options->more_urls[i], &urls[i]);

		if (error == 0)
			error = spokei_settings_further(consumer->engine, consumer->settings,
							&urls[i]);
		if (error)
			return error;
	}
	return SPOKE_OK;
}

static int subscribe(struct spoke_consumer *consumer, const struct spoke_consumer_options *options)
{
	if (options->more_count > 0) {
		spokei_event(consumer->engine, SPOKE_EINVAL,
			     "option more_urls: a registry says where providers are");
		return SPOKE_EINVAL;
	}
	consumer->subscription = spokei_alloc(consumer->engine->env, 1,
					      sizeof(*consumer->subscription));
	return consumer->subscription ? spokei_subscription_begin(consumer) : SPOKE_ENOMEM;
}

/* A token must not go over plain TCP to another machine. */
static int check_plain(const struct spoke_consumer *consumer, const struct spoke_url *urls,
		       size_t count)
{
	if (spokei_settings_number(&consumer->settings->keys, SPOKEI_KEY_TOKEN_PLAIN) ||
	    consumer->link->stream->veiled || *consumer->shown->token == '\0')
		return SPOKE_OK;
	for (size_t i = 0; i < count; i++) {
		const char *host = urls[i].host;

		if (urls[i].socket || host == NULL || spokei_endpoint_is_near(host))
			continue;
		spokei_event(consumer->engine, SPOKE_EINVAL,
			     "token: it would go over plain TCP to %s; use TLS, or set token.plain "
			     "= true",
			     host);
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

static int fix_endpoints(struct spoke_consumer *consumer, const struct spoke_url *urls,
			 size_t count)
{
	int error = check_plain(consumer, urls, count);

	return error ? error : spokei_directory_fix(consumer->directory, urls, count);
}

static int add_endpoints(struct spoke_consumer *consumer,
			 const struct spoke_consumer_options *options)
{
	const struct spoke_env *env = consumer->engine->env;
	size_t count = options->more_count + 1;
	struct spoke_url *urls;
	int error;

	if (consumer->settings->keeper.registry)
		return subscribe(consumer, options);
	if (count == 1)
		return fix_endpoints(consumer, &consumer->settings->url, 1);
	urls = spokei_alloc(env, count, sizeof(*urls));
	if (urls == NULL)
		return SPOKE_ENOMEM;
	error = read_further(consumer, options, urls + 1);
	if (error == 0) {
		urls[0] = consumer->settings->url;
		error = fix_endpoints(consumer, urls, count);
	}
	for (size_t i = 1; i < count; i++)
		spoke_url_fini(&urls[i]);
	spokei_free(env, urls, count, sizeof(*urls));
	return error;
}

/* --- the end */

/* --- its connections */

/* Makes the link of a consumer, and the TLS of its connections. Returns 0 or an error, which the
 * engine's newest event explains. */
static int make_link(struct spoke_consumer *consumer, const struct spoke_consumer_options *options)
{
	const struct spokei_consumer_settings *settings = consumer->settings;
	const struct spokei_tls_sources sources = {
		.options = options->tls,
		.of_url = spoke_url_get(&settings->url, "tls"),
		.settings = &settings->keys,
		.section = SPOKEI_IN_CONSUMER,
	};
	enum spokei_tls_mode mode;
	int error = spokei_settings_tls(consumer->engine, &sources, &mode, &consumer->tls);

	if (error)
		return error;
	error = spokei_link_init(consumer->link, consumer->engine, &settings->limits);
	if (error) {
		spokei_tls_free(consumer->tls);
		return error;
	}
	consumer->settings->keys.file.tls = consumer->tls;
	consumer->link->connects = true;
	consumer->peers_of_file = options->tls == NULL || options->tls->peers == NULL;
	if (consumer->tls) {
		consumer->link->stream = spokei_tls_kind(consumer->tls);
		spokei_tls_watch(consumer->tls, spokei_conn_finish_stream);
	}
	return SPOKE_OK;
}

/* Frees both, after the last connection. */
static void free_link(struct spoke_consumer *consumer)
{
	spokei_link_fini(consumer->link);
	spokei_tls_free(consumer->tls);
}

/* --- the end */

static void free_block(struct spoke_consumer *consumer)
{
	spokei_free(consumer->engine->env, spoke_container_of(consumer, struct block, consumer), 1,
		    sizeof(struct block));
}

static void consumer_finalise(struct spokei_task *task)
{
	struct spoke_consumer *consumer = spoke_container_of(task, struct spoke_consumer, finalise);
	const struct spoke_env *env = consumer->engine->env;
	struct spokei_weak *weak = atomic_load_explicit(&consumer->weak, memory_order_acquire);

	/* Calls that waited for their next attempt call back first. */
	if (consumer->journal && consumer->caller->calls.count > 0) {
		spokei_run_freeing(consumer->engine, task);
		return;
	}
	if (!spokei_consumer_journal_end(consumer))
		return;
	if (!consumer->freed) {
		spokei_member_retire(consumer->engine, &consumer->member);
		return;
	}
	if (consumer->caller->calls.count > 0 || !spokei_weak_close(weak)) {
		spokei_run_freeing(consumer->engine, task);
		return;
	}
	spokei_weak_drop(weak);
	spokei_member_drop(&consumer->member);
	spokei_consumer_journal_free(consumer);
	spokei_methods_free(consumer->caller);
	spokei_caller_fini(consumer->caller);
	spokei_directory_fini(consumer->directory);
	spokei_balancer_state_fini(consumer->balancer_state, env);
	spokei_filters_fini(consumer->filters, env);
	free_link(consumer);
	spokei_credentials_fini(consumer->credentials);
	spokei_settings_consumer_fini(env, consumer->settings);
	spokei_free(env, consumer->subscription, 1, sizeof(*consumer->subscription));
	free_block(consumer);
}

/* Ends everything that the consumer does. `finalise` runs after its last connection. */
void spokei_consumer_close(struct spoke_consumer *consumer)
{
	if (consumer->ended)
		return;
	consumer->caller->closed = true;
	consumer->ended = true;
	spokei_settings_leave(&consumer->settings->keys);
	spokei_call_sweep(consumer->caller);
	if (consumer->subscription)
		spokei_subscription_end(consumer->subscription);
	spokei_directory_end(consumer->directory);
	spokei_link_end(consumer->link, &consumer->finalise);
}

/* Ends a draining consumer after its last call, and after all pushes to it are answered. */
static void rest(struct spoke_consumer *consumer)
{
	bool calls = consumer->caller->calls.count > 0;

	if (!calls && consumer->link->serving_count == 0) {
		spokei_link_part(consumer->link);
		spokei_consumer_close(consumer);
		return;
	}
	spokei_directory_rest(consumer->directory, calls);
}

static void consumer_idle(struct spokei_caller *caller)
{
	rest(spokei_consumer_calling(caller));
}

void spoke_consumer_free(struct spoke_consumer *consumer)
{
	if (consumer == NULL || spokei_engine_keeps(consumer->engine, "spoke_consumer_free()") ||
	    consumer->freed)
		return;
	consumer->freed = true;
	spokei_consumer_close(consumer);
	if (consumer->link->alive == 0)
		spokei_run_freeing(consumer->engine, &consumer->finalise);
}

static void consumer_close(struct spokei_member *member)
{
	spokei_consumer_close(spoke_container_of(member, struct spoke_consumer, member));
}

static void consumer_free(struct spokei_member *member)
{
	spoke_consumer_free(spoke_container_of(member, struct spoke_consumer, member));
}

static void consumer_woke(struct spokei_member *member)
{
	spokei_link_woke(spoke_container_of(member, struct spoke_consumer, member)->link);
}

/* Calls in flight go on, and no new ones are taken. */
static void consumer_drain(struct spokei_member *member)
{
	struct spoke_consumer *consumer = spoke_container_of(member, struct spoke_consumer, member);

	consumer->caller->closed = true;
	consumer->link->closing = true;
	spokei_call_sweep(consumer->caller);
	rest(consumer);
}

/* --- callbacks of the directory */

static void directory_event(void *arg, const struct spoke_link_event *event)
{
	const struct spoke_consumer *consumer = arg;

	if (consumer->settings->changed && !consumer->freed)
		consumer->settings->changed(consumer->settings->changed_arg, event);
}

static void directory_able(void *arg)
{
	struct spoke_consumer *consumer = arg;

	spokei_retry_queue_wake(&consumer->caller->retry);
}

static void directory_named(void *arg)
{
	const struct spoke_consumer *consumer = arg;

	spokei_methods_mark(consumer->caller);
}

static void directory_rested(void *arg)
{
	spokei_consumer_close(arg);
}

static int directory_edit(void *arg, const struct spoke_url *url, struct spoke_url *ret_url)
{
	const struct spoke_consumer *consumer = arg;

	if (consumer->subscription == NULL)
		return SPOKE_OK;
	return spokei_subscription_edit(consumer->subscription, url, ret_url);
}

static const struct spokei_directory_up directory_up = {
	.event = directory_event,
	.able = directory_able,
	.named = directory_named,
	.rested = directory_rested,
	.edit = directory_edit,
};

/* --- the beginning */

static int init_calls(struct spoke_consumer *consumer, const struct spoke_consumer_options *options)
{
	struct spoke_engine *engine = consumer->engine;
	const struct spokei_consumer_settings *settings = consumer->settings;
	const char *application = spokei_settings_text(&settings->keys, SPOKEI_KEY_APPLICATION);
	struct spokei_caller *caller = consumer->caller;
	int error;

	spokei_caller_init(caller, consumer->link,
			   (uint32_t)spokei_settings_number(&settings->keys,
							    SPOKEI_KEY_FAILBACK_TASKS));
	caller->idle = consumer_idle;
	caller->directory = consumer->directory;
	caller->awaits_list = settings->keeper.registry != NULL;
	caller->settled = settings->settled;
	caller->settled_arg = settings->settled_arg;
	if (application && *application)
		caller->application = application;
	caller->credentials = consumer->shown;
	engine->env->dice(engine->env->ctx, &caller->next_id, sizeof(caller->next_id));
	spokei_balancer_state_init(consumer->balancer_state, settings->calls.balancer);
	error = spokei_retry_queue_init(&caller->retry, engine);
	if (error)
		return error;
	spokei_consumer_limit(consumer);
	error = spokei_filters_init(consumer->filters, engine->env, options->filters,
				    options->filter_count);
	if (error == SPOKE_ELIMIT)
		spokei_event(engine, error, "new consumer: %zu filters, at most %u are possible",
			     options->filter_count, SPOKEI_FILTERS_MAX);
	if (consumer->filters->count > 0)
		caller->filters = consumer->filters;
	return error;
}

static void enrol(struct spoke_consumer *consumer)
{
	consumer->member = (struct spokei_member){
		.kind = spokei_consumer_kind,
		.close = consumer_close,
		.drain = consumer_drain,
		.woke = consumer_woke,
		.free = consumer_free,
	};
	spokei_member_add(consumer->engine, &consumer->member);
}

static int init_pushed(struct spoke_consumer *consumer, const struct spoke_consumer_options *with)
{
	if (with->handle == NULL)
		return SPOKE_OK;
	consumer->link->serve = spokei_request_serve_pushed;
	consumer->link->serve_arg = consumer->pushed;
	return spokei_route_of_pushes(consumer->engine, consumer->settings->service, with->handle,
				      with->handle_arg, consumer->pushed);
}

/* Returns whether options or a file may have a token or a key. */
static bool has_credentials(const struct spokei_settings *keys, const char *token)
{
	return token || keys->file.config ||
	       spokei_keys_kept(keys->options, SPOKEI_KEY_TOKEN_FILE) ||
	       spokei_keys_kept(keys->options, SPOKEI_KEY_ACCESS_ID) ||
	       spokei_keys_kept(keys->options, SPOKEI_KEY_ACCESS_SECRET_FILE);
}

/* Reads the token to send and the key that signs. The narrower section wins. */
static int read_credentials(struct spoke_consumer *consumer,
			    const struct spoke_consumer_options *with)
{
	static const struct spokei_credentials none;
	const char *service = consumer->settings->service;
	const struct spokei_settings *keys = &consumer->settings->keys;
	struct spokei_credential_section section = { .section = SPOKEI_IN_CONSUMER };
	struct spokei_credential_set *set = consumer->credentials;
	int error;

	consumer->shown = &none;
	if (!has_credentials(keys, with->token))
		return SPOKE_OK;
	set->keeps_text = true;
	set->sends = true;
	set->stay = "consumer: token and key stay as they were";
	error = spokei_credentials_init(set, consumer->engine, &keys->file, keys->options,
					with->token);
	if (error == SPOKE_OK)
		error = spokei_credentials_add(set, &section, &section.over);
	if (error)
		return error;
	section.section = SPOKEI_IN_SERVICE;
	section.name = (struct spoke_span){ service, strlen(service) };
	section.has_options = true;
	return spokei_credentials_add(set, &section, &consumer->shown);
}

static struct spoke_consumer *alloc_block(struct spoke_engine *engine)
{
	struct block *block = spokei_alloc(engine->env, 1, sizeof(*block));

	if (block == NULL)
		return NULL;
	block->consumer = (struct spoke_consumer){
		.engine = engine,
		.link = &block->link,
		.settings = &block->settings,
		.caller = &block->caller,
		.directory = &block->directory,
		.balancer_state = &block->balancer_state,
		.filters = &block->filters,
		.pushed = &block->pushed,
		.credentials = &block->credentials,
		.finalise.run = consumer_finalise,
	};
	return &block->consumer;
}

static int consumer_new(struct spoke_engine *engine, const struct spoke_consumer_options *options,
			struct spoke_consumer **ret_consumer)
{
	static const struct spoke_consumer_options defaults;
	const struct spoke_consumer_options *with = options ? options : &defaults;
	struct spoke_consumer *consumer;
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (spokei_engine_ending(engine))
		return SPOKE_ECLOSED;
	if (with->more_count > ENDPOINTS_MAX || (with->more_count && with->more_urls == NULL)) {
		spokei_event(engine, SPOKE_EINVAL, "option more_urls: at most %u, and not NULL",
			     ENDPOINTS_MAX);
		return SPOKE_EINVAL;
	}
	consumer = alloc_block(engine);
	if (consumer == NULL)
		return SPOKE_ENOMEM;
	error = spokei_settings_consumer(engine, with, consumer, consumer->settings);
	if (error)
		goto err_after_alloc;
	consumer->settings->keys.file.credentials = consumer->credentials;
	error = read_credentials(consumer, with);
	if (error == 0)
		error = make_link(consumer, with);
	if (error)
		goto err_after_settings;
	error = init_calls(consumer, with);
	if (error == 0)
		error = init_pushed(consumer, with);
	if (error)
		goto err_after_link;
	spokei_directory_init(consumer->directory, consumer->link, &consumer->settings->directory,
			      &directory_up, consumer);
	spokei_routing_force(consumer->directory,
			     consumer->caller->tag && consumer->caller->tag_force);
	enrol(consumer);
	error = add_endpoints(consumer, with);
	if (error == 0)
		error = spokei_consumer_journal_begin(consumer);
	if (error) {
		spoke_consumer_free(consumer);
		return error;
	}
	consumer->settings->needs_service = consumer->directory->needs_service;
	*ret_consumer = consumer;
	return SPOKE_OK;

err_after_link:
	spokei_caller_fini(consumer->caller);
	free_link(consumer);
err_after_settings:
	spokei_credentials_fini(consumer->credentials);
	spokei_settings_consumer_fini(engine->env, consumer->settings);
err_after_alloc:
	free_block(consumer);
	return error;
}

int spoke_consumer_new(struct spoke_engine *engine, const struct spoke_consumer_options *options,
		       struct spoke_consumer **ret_consumer)
{
	uint64_t begun = spokei_why_begin(engine);

	return spokei_why_end(engine, begun, consumer_new(engine, options, ret_consumer),
			      "new consumer");
}

struct spoke_consumer *spokei_consumer_calling(struct spokei_caller *caller)
{
	return &spoke_container_of(caller, struct block, caller)->consumer;
}

const struct spoke_consumer *spokei_consumer_of(struct spokei_member *member)
{
	return spoke_container_of(member, struct spoke_consumer, member);
}

/* --- the present state, for its user and for the page */

size_t spoke_consumer_ready(const struct spoke_consumer *consumer)
{
	if (spokei_engine_elsewhere(consumer->engine))
		return 0;
	return spokei_directory_ready(consumer->directory);
}

size_t spoke_consumer_endpoints(const struct spoke_consumer *consumer,
				struct spoke_endpoint_info *infos, size_t max)
{
	if (spokei_engine_elsewhere(consumer->engine))
		return 0;
	spokei_engine_refresh(consumer->engine);
	return spokei_directory_infos(consumer->directory, infos, max);
}

bool spoke_consumer_tls(const struct spoke_consumer *consumer, size_t index,
			struct spoke_tls_info *ret_info)
{
	const struct spokei_endpoint *endpoint;

	if (spokei_engine_elsewhere(consumer->engine))
		return false;
	endpoint = spokei_directory_next(consumer->directory, NULL);
	while (endpoint && index-- > 0)
		endpoint = spokei_directory_next(consumer->directory, endpoint);
	return endpoint && spokei_endpoint_tls(endpoint, ret_info);
}

struct spokei_consumer_view spokei_consumer_look(const struct spoke_consumer *consumer)
{
	const struct spokei_consumer_settings *settings = consumer->settings;

	return (struct spokei_consumer_view){
		.service = settings->service,
		.directory = consumer->directory,
		.caller = consumer->caller,
		.settings = &settings->calls,
		.all = settings,
		.tls = consumer->tls,
		.heartbeat_ns = settings->limits.heartbeat_ns,
	};
}

/* --- tickets and calls as users see them */

const char *spoke_ticket_settlement_name(enum spoke_ticket_settlement settlement)
{
	switch (settlement) {
	case SPOKE_TICKET_SUCCESS:
		return "success";
	case SPOKE_TICKET_EXHAUSTED:
		return "exhausted";
	case SPOKE_TICKET_EXPIRED:
		return "expired";
	case SPOKE_TICKET_CANCELLED:
		return "cancelled";
	case SPOKE_TICKET_REFUSED:
		return "refused";
	case SPOKE_TICKET_CLOSING:
		return "closing";
	case SPOKE_TICKET_UNKNOWN:
		return "unknown";
	case SPOKE_TICKET_KEPT:
		return "kept";
	}
	return NULL;
}

/* Returns NULL if the ticket is settled, or was never one. */
static struct spokei_call *ticket_of(const struct spoke_consumer *consumer,
				     struct spoke_ticket ticket)
{
	struct spokei_call *call = NULL;

	if (!spokei_engine_elsewhere(consumer->engine))
		call = spokei_slab_get(&consumer->caller->calls, ticket.handle);
	return call && call->retry && call->retry->ticket == SPOKEI_TICKET_HELD ? call : NULL;
}

bool spoke_ticket_ask(const struct spoke_consumer *consumer, struct spoke_ticket ticket,
		      struct spoke_ticket_state *ret_state)
{
	const struct spokei_call *call = ticket_of(consumer, ticket);

	if (call == NULL)
		return false;
	spokei_engine_refresh(consumer->engine);
	spokei_ticket_look(call->retry, consumer->engine->begin_ns, ret_state);
	return true;
}

size_t spoke_consumer_ticket_list(const struct spoke_consumer *consumer,
				  struct spoke_ticket_info *infos, size_t max)
{
	const struct spoke_list *all = &consumer->caller->retry.tickets;
	size_t count = 0;

	if (spokei_engine_elsewhere(consumer->engine))
		return 0;
	spokei_engine_refresh(consumer->engine);
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct spokei_retry_state *retry =
			spoke_container_of(node, struct spokei_retry_state, of_tickets);

		if (retry->ticket != SPOKEI_TICKET_HELD)
			continue;
		if (count < max) {
			infos[count].ticket.handle = retry->call->handle;
			infos[count].method = retry->call->method->name;
			spokei_ticket_look(retry, consumer->engine->begin_ns, &infos[count].state);
		}
		count++;
	}
	return count;
}

int spoke_ticket_then(struct spoke_consumer *consumer, struct spoke_ticket ticket,
		      spoke_ticket_done_fn done, void *arg)
{
	const struct spokei_call *call = ticket_of(consumer, ticket);
	int error = spokei_engine_check(consumer->engine);

	if (error)
		return error;
	if (call == NULL)
		return SPOKE_ENOENT;
	if (done == NULL)
		return SPOKE_EINVAL;
	if (call->retry->settle)
		return SPOKE_EEXIST;
	call->retry->settle = done;
	call->retry->settle_arg = arg;
	return SPOKE_OK;
}

bool spoke_ticket_cancel(struct spoke_consumer *consumer, struct spoke_ticket ticket)
{
	if (ticket_of(consumer, ticket) == NULL)
		return false;
	return spokei_call_cancel(consumer->caller, (struct spoke_call){ ticket.handle });
}

bool spoke_call_cancel(struct spoke_consumer *consumer, struct spoke_call call)
{
	return spokei_call_cancel(consumer->caller, call);
}

size_t spoke_consumer_tickets(const struct spoke_consumer *consumer, size_t *ret_bytes)
{
	const bool elsewhere = spokei_engine_elsewhere(consumer->engine);

	if (ret_bytes)
		*ret_bytes = elsewhere ? 0 : consumer->caller->retry.bytes;
	return elsewhere ? 0 : consumer->caller->retry.tasks;
}
