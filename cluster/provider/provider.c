/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a provider. */
#include "cluster/provider/provider.h"

#include "cluster/provider/access_log.h"
#include "cluster/serve/request.h"

#define GRACE_NS UINT64_C(20000000) /* for who has said nothing when the drain begins */
#define CELLS_MAX (UINT32_MAX / 2)  /* of pushes, and of peers with a name */

const char spokei_provider_kind[] = "provider";

static void end_provider(struct spoke_provider *provider);

/* --- connections */

static void provider_request(void *arg, struct spokei_conn *conn,
			     const struct spokei_message *message)
{
	struct spoke_provider *provider = arg;

	spokei_request_serve(&provider->services, &provider->filters, conn, message,
			     &provider->spare);
}

static void provider_sign(void *arg, struct spokei_conn *conn, enum spokei_link_event kind)
{
	struct spoke_link_event event = { .change = SPOKE_LINK_RECOVERED };

	switch (kind) {
	case SPOKEI_LINK_EVENT_ANSWERED:
		return;
	case SPOKEI_LINK_EVENT_HEARD:
		if (spokei_peer_add(arg, conn)) {
			spokei_conn_blame(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
			return;
		}
		event.change = SPOKE_LINK_CONNECTED;
		/* It has come as the drain began. */
		if (((struct spoke_provider *)arg)->draining)
			spokei_conn_finish(conn);
		break;
	case SPOKEI_LINK_EVENT_MISSED:
		event.change = SPOKE_LINK_SUSPECT;
		event.user = SPOKE_EVENT_OF_HEARTBEAT;
		event.missed = conn->idle.misses;
		break;
	case SPOKEI_LINK_EVENT_READONLY:
		event.change = SPOKE_LINK_READONLY;
		break;
	case SPOKEI_LINK_EVENT_TRUSTED:
	case SPOKEI_LINK_EVENT_WRITABLE:
		if (spokei_conn_suspect(conn) || conn->readonly)
			return;
		if (kind == SPOKEI_LINK_EVENT_TRUSTED)
			event.user = SPOKE_EVENT_OF_HEARTBEAT;
		spokei_count(conn->link->engine, SPOKE_STAT_RECOVERED);
		break;
	}
	spokei_provider_tell(arg, conn, &event);
}

static void provider_changed(void *arg, struct spokei_conn *conn, int error)
{
	struct spoke_provider *provider = arg;
	const struct spoke_link_event closed = {
		.change = SPOKE_LINK_CLOSED,
		.user = error == SPOKE_ESILENT ? SPOKE_EVENT_OF_HEARTBEAT : SPOKE_EVENT_OF_NONE,
		.error = error,
	};

	if (error == SPOKE_OK)
		return;
	spokei_quota_leave(&provider->quota, &conn->peer);
	spokei_handoffs_look(provider);
	if (conn->handle)
		spokei_provider_tell(provider, conn, &closed);
	spokei_peer_drop(provider, conn);
	if (provider->draining && spokei_list_empty(&provider->link.conns))
		end_provider(provider);
}

static const struct spokei_conn_up provider_up = {
	.changed = provider_changed,
	.event = provider_sign,
};

void spokei_provider_accept(void *arg, int fd, const struct spoke_address *peer)
{
	struct spoke_provider *provider = arg;
	struct spokei_conn *conn;

	if (spokei_conn_accept(&provider->link, fd, peer, &provider_up, provider, &conn)) {
		/* The listener has counted it as accepted. */
		spokei_count(provider->engine, SPOKE_STAT_CLOSED);
		spokei_count(provider->engine, SPOKE_STAT_CLOSED_MEMORY);
		spokei_quota_leave(&provider->quota, peer);
	}
	spokei_handoffs_look(provider);
}

/* --- the end */

static void stop_listening(struct spoke_provider *provider)
{
	size_t count = spokei_provider_places(provider);

	atomic_store_explicit(&provider->handoffs.over, true, memory_order_relaxed);
	provider->listener_count = 0;
	provider->joined_count = 0;
	while (count > 0)
		spokei_listener_free(provider->listeners[--count]);
}

static void free_filters(struct spoke_provider *provider)
{
	spokei_access_log_end(provider->access_log);
	spokei_filters_fini(&provider->filters, provider->engine->env);
}

static void provider_bury(struct spokei_task *task)
{
	struct spoke_provider *provider = spoke_container_of(task, struct spoke_provider, bury);
	const struct spoke_env *env = provider->engine->env;

	if (!provider->freed) {
		spokei_roll_retire(provider->engine, &provider->member);
		return;
	}
	if (!spokei_handoffs_fini(provider)) {
		spokei_engine_dead(provider->engine, task);
		return;
	}
	spokei_roll_drop(provider->engine, &provider->member);
	spokei_request_end_orphans(&provider->link);
	spokei_request_free(provider->spare);
	spokei_routes_fini(&provider->services);
	free_filters(provider);
	spokei_caller_fini(&provider->caller);
	spokei_slab_fini(&provider->peers);
	spokei_quota_fini(&provider->quota);
	spokei_link_fini(&provider->link);
	spokei_registration_fini(&provider->registration);
	spokei_free(env, provider->default_service, 1, provider->default_size);
	spokei_free(env, provider, 1, sizeof(*provider));
}

/* Ends all that the provider does; it is buried when its last connection is, if it is freed. */
static void end_provider(struct spoke_provider *provider)
{
	if (provider->ended)
		return;
	provider->ended = true;
	provider->caller.closed = true;
	spokei_config_leave(&provider->file);
	spokei_registration_end(&provider->registration);
	stop_listening(provider);
	spokei_handoffs_part(provider);
	(void)spoke_alarm_cancel(&provider->grace);
	spokei_link_end(&provider->link, &provider->bury);
}

void spoke_provider_free(struct spoke_provider *provider)
{
	if (provider == NULL || provider->freed)
		return;
	provider->freed = true;
	end_provider(provider);
	if (provider->link.alive == 0)
		spokei_engine_dead(provider->engine, &provider->bury);
}

/* Has it said nothing for so long that nothing can be on its way? */
static bool has_been_silent(const struct spokei_conn *conn)
{
	return conn->link->engine->begin_ns - conn->born_ns >= GRACE_NS;
}

/* Tells those goodbye who have said anything, or had time to, or everybody. */
static void say_goodbye(struct spoke_provider *provider, bool everybody)
{
	struct spoke_list *conns = &provider->link.conns;

	for (struct spoke_list *node = conns->next; node != conns;) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		if (everybody || conn->wire || has_been_silent(conn))
			spokei_conn_finish(conn);
	}
}

static void grace_over(struct spoke_alarm *alarm)
{
	say_goodbye(spoke_container_of(alarm, struct spoke_provider, grace), true);
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
	spokei_link_woke(&spoke_container_of(member, struct spoke_provider, member)->link);
}

/* Who is connected already, as far as the system knows, is told goodbye as all the others. */
static void take_the_last(struct spoke_provider *provider)
{
	size_t count = spokei_provider_places(provider);

	for (size_t i = 0; i < count; i++)
		spokei_listener_sweep(provider->listeners[i]);
	spokei_handoffs_part(provider);
}

/* Nothing new comes in; what was begun is answered, and the answers are written. */
static void provider_drain(struct spokei_member *member)
{
	struct spoke_provider *provider = spoke_container_of(member, struct spoke_provider, member);
	struct spoke_list *conns = &provider->link.conns;

	provider->draining = true;
	take_the_last(provider);
	spokei_event(provider->engine, SPOKE_OK, "drains: %u connections are told goodbye",
		     provider->link.conn_count);
	provider->caller.closed = true;
	provider->link.closing = true;
	spokei_registration_withdraw(&provider->registration);
	stop_listening(provider);
	/* Who has just come may have asked for something, and it has not been read yet. */
	say_goodbye(provider, spoke_alarm_after(provider->engine, &provider->grace, GRACE_NS,
						grace_over) != SPOKE_OK);
	if (spokei_list_empty(conns))
		end_provider(provider);
}

/* --- the beginning */

static int copy_default_service(struct spoke_provider *provider, const char *name)
{
	if (name == NULL)
		return SPOKE_OK;
	provider->default_size = strlen(name) + 1;
	provider->default_service = spokei_alloc(provider->engine->env, 1, provider->default_size);
	if (provider->default_service == NULL)
		return SPOKE_ENOMEM;
	memcpy(provider->default_service, name, provider->default_size);
	return SPOKE_OK;
}

static int make_filters(struct spoke_provider *provider,
			const struct spoke_provider_options *options, const char *access_log)
{
	struct spoke_engine *engine = provider->engine;
	int error = spokei_filters_init(&provider->filters, engine->env, options->filters,
					options->filter_count);

	if (error || access_log == NULL)
		return error;
	error = spokei_access_log_new(engine, access_log, &provider->access_log);
	if (error)
		return error;
	return spokei_filters_put_first(&provider->filters, engine->env,
					spokei_access_log_filter(provider->access_log));
}

/* What can fail, but for the filters. */
static int init_parts(struct spoke_provider *provider, const struct spoke_provider_options *options,
		      const struct spokei_provider_texts *texts)
{
	const struct spokei_registration_of of = { &provider->services, provider->listeners,
						   &provider->listener_count };
	int error = copy_default_service(provider, texts->default_service);

	if (error == 0)
		error = spokei_link_init(&provider->link, provider->engine,
					 &provider->settings.limits);
	if (error)
		return error;
	error = spokei_registration_init(&provider->registration, provider->engine, &of, options,
					 &provider->settings);
	if (error)
		spokei_link_fini(&provider->link);
	return error;
}

/* What its life goes on from here, and nothing fails. */
static void begin_life(struct spoke_provider *provider, const struct spoke_provider_options *with)
{
	const struct spoke_env *env = provider->engine->env;

	provider->link.serve = provider_request;
	provider->link.serve_arg = provider;
	provider->news = spokei_provider_news(env->now(env->ctx));
	provider->changed = with->changed;
	provider->changed_arg = with->changed_arg;
	spokei_quota_init(&provider->quota, env, provider->settings.connections_max,
			  provider->settings.connections_per_peer_max);
	spokei_routes_init(&provider->services, env, provider->default_service,
			   spokei_request_echo);
	provider->services.limits_all = provider->file.config != NULL;
	spokei_caller_init(&provider->caller, &provider->link, 0);
	provider->caller.pushes = true;
	spokei_slab_init(&provider->peers, env, sizeof(struct spokei_peer), CELLS_MAX);
	spokei_list_init(&provider->handoffs.all);
	provider->member = (struct spokei_member){
		.kind = spokei_provider_kind,
		.close = provider_close,
		.drain = provider_drain,
		.woke = provider_woke,
		.free = provider_free,
	};
	spokei_roll_add(provider->engine, &provider->member);
}

int spoke_provider_new(struct spoke_engine *engine, const struct spoke_provider_options *options,
		       struct spoke_provider **ret_provider)
{
	static const struct spoke_provider_options defaults;
	const struct spoke_provider_options *with = options ? options : &defaults;
	struct spokei_provider_texts texts = spokei_settings_texts(with);
	const struct spoke_env *env = engine->env;
	struct spokei_provider_settings settings;
	struct spoke_provider *provider;
	int error;

	if (spokei_engine_forked(engine))
		return SPOKE_EFORKED;
	if (spokei_engine_ending(engine))
		return SPOKE_ECLOSED;
	error = spokei_settings_provider(engine, with, &settings);
	if (error)
		return error;
	provider = spokei_alloc(env, 1, sizeof(*provider));
	if (provider == NULL)
		return SPOKE_ENOMEM;
	provider->engine = engine;
	provider->bury.run = provider_bury;
	provider->settings = settings;
	provider->file.config = with->config;
	provider->file.changed = spokei_provider_changed;
	error = spokei_config_join(&provider->file, engine);
	if (error == 0)
		error = make_filters(provider, with, texts.access_log);
	if (error == 0)
		error = init_parts(provider, with, &texts);
	if (error) {
		spokei_config_leave(&provider->file);
		free_filters(provider);
		spokei_free(env, provider->default_service, 1, provider->default_size);
		spokei_free(env, provider, 1, sizeof(*provider));
		return error;
	}
	begin_life(provider, with);
	*ret_provider = provider;
	return SPOKE_OK;
}

int spoke_provider_add(struct spoke_provider *provider, const struct spoke_service_options *service,
		       const struct spoke_handler *handlers, size_t count)
{
	int error;

	if (spokei_engine_forked(provider->engine))
		return SPOKE_EFORKED;
	error = spokei_routes_add(&provider->services, service, handlers, count);
	if (error)
		return error;
	if (provider->file.config)
		spokei_provider_limit(provider);
	spokei_registration_changed(&provider->registration);
	return SPOKE_OK;
}

size_t spoke_provider_connections(const struct spoke_provider *provider)
{
	return provider->link.conn_count;
}

size_t spoke_provider_registered(const struct spoke_provider *provider, size_t *ret_wanted)
{
	size_t wanted;
	size_t listed = spokei_registration_count(&provider->registration, &wanted);

	if (ret_wanted)
		*ret_wanted = wanted;
	return listed;
}
