/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway: its options, its listeners, its drain and its end. */
#include "cluster/comet/comet.h"
#include "cluster/comet/view.h"
#include "cluster/config/places.h"
#include "cluster/config/settings.h"
#include "core/engine/weak.h"
#include "core/text/option.h"
#include "transport/http/guard.h"
#include "transport/listen/listener.h"

#include <stdio.h>

#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define TIME_MAX (UINT64_C(20) * 24 * 3600 * SECOND) /* stamps are 32 bits of ms */
#define UNREAD_MIN 256u   /* unfinished requests that are always allowed */
#define UNREAD_SHARE 10u  /* ... beyond, a tenth of all connections */
#define PAGE_MAX 1048576u /* bytes of the document at / */
#define PAGE_HEAD 512u
#define LISTEN "127.0.0.1:0"

/* --- limits */

/* Logs the rule that an option breaks. Returns EINVAL. */
static int wrong_option(struct spoke_engine *engine, const char *option, const char *rule)
{
	spokei_event(engine, SPOKE_EINVAL, "option %s of the gateway: %s", option, rule);
	return SPOKE_EINVAL;
}

/* Checks values that depend on others. */
static int check_together(const struct spokei_settings *settings,
			  const struct spokei_key_values *values)
{
	const bool is_least = values->from[SPOKEI_KEY_COMET_RETRY_MAX] == SPOKEI_FROM_DEFAULT;
	const enum spokei_key key = is_least ? SPOKEI_KEY_COMET_RETRY_MIN
					     : SPOKEI_KEY_COMET_RETRY_MAX;
	const enum spokei_key other = is_least ? SPOKEI_KEY_COMET_RETRY_MAX
					       : SPOKEI_KEY_COMET_RETRY_MIN;
	char number[32];
	char why[64];

	if (values->of[SPOKEI_KEY_COMET_RETRY_MIN] <= values->of[SPOKEI_KEY_COMET_RETRY_MAX])
		return SPOKE_OK;
	spokei_key_print(other, values->of[other], false, number, sizeof(number));
	(void)snprintf(why, sizeof(why), "%s than %s, which is %s", is_least ? "greater" : "less",
		       spokei_key_in_file(other), number);
	spokei_config_refuse(settings->file.engine, settings->file.config, values, key,
			     SPOKE_EINVAL, why);
	return SPOKE_EINVAL;
}

/* No key of the file sets the time of the authorizer. */
static int check_authorizer(struct spoke_engine *engine, struct spoke_comet_options *with)
{
	if (with->authorize_ns == 0)
		with->authorize_ns = 5 * SECOND;
	if (with->authorize_ns < MS || with->authorize_ns > TIME_MAX)
		return wrong_option(engine, "authorize_ns", "out of range");
	if (with->authorize == NULL && !with->query_user)
		return wrong_option(engine, "authorize", "required, unless query_user is set");
	return SPOKE_OK;
}

/* --- changes of the file */

/* Sets the options of the system for connections that a listener accepts. */
static void preset(const struct spoke_comet *comet, struct spokei_listener *listener)
{
	/* A client that is gone without a word, or does not read, costs the system little. */
	spokei_listener_preset(listener, comet->with.slow_ns, comet->with.send_buffer);
}

/* Returns the number of an origin of the former list in the present one. */
static uint16_t moved(const struct spoke_comet *comet, const char *former, uint16_t origin)
{
	return (uint16_t)spokei_guard_listed(spokei_guard_origin_of(former, origin),
					     comet->with.origins);
}

static void move_asks(const struct spoke_comet *comet, const struct spoke_list *asks,
		      const char *former)
{
	for (struct spoke_list *node = asks->next; node != asks; node = node->next) {
		struct spokei_comet_door *door = spokei_http_user(
			spoke_container_of(node, struct spokei_comet_ask, node)->http);

		door->origin = moved(comet, former, door->origin);
	}
}

/* Connections know their origin by its number in the list. Those without one are never answered, or
 * have been. */
static void move_origins(struct spoke_comet *comet, const char *former)
{
	for (uint32_t i = 0; i < comet->used; i++) {
		struct spokei_comet_conn *conn = spokei_comet_cell(comet, i);

		if (conn->state != SPOKEI_COMET_FREE)
			conn->origin = moved(comet, former, conn->origin);
	}
	move_asks(comet, &comet->asks, former);
	move_asks(comet, &comet->sends, former);
}

/* Lists are looked up often: one that is not set is empty. */
static void complete_lists(struct spoke_comet_options *with)
{
	const char **const lists[] = { &with->origins, &with->hosts, &with->proxies };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (*lists[i] == NULL)
			*lists[i] = "";
}

/* Applies the limits that other objects hold. */
static void apply_settings(void *owner)
{
	struct spoke_comet *comet = owner;
	const struct spoke_comet_options *with = &comet->with;
	const uint64_t now_ns = comet->engine->begin_ns;

	complete_lists(&comet->with);
	move_origins(comet, comet->origins);
	comet->origins = with->origins;
	comet->http.limits.request_ns = with->head_ns;
	comet->http.limits.body_max = with->frame_max;
	comet->http.limits.slow_ns = with->authorize_ns + with->slow_ns;
	if (comet->rate.rate != with->accept_rate) {
		const uint32_t half = with->accept_rate / 2;

		comet->rate = spokei_bucket_make(with->accept_rate, with->accept_rate, now_ns);
		comet->reserve = spokei_bucket_make(half, half, now_ns);
	}
	comet->ask_slab.max = with->connections_max;
	spokei_quota_change(&comet->quota, &comet->connections);
	for (size_t i = 0; i < comet->listener_count; i++) {
		if (comet->listeners[i])
			preset(comet, comet->listeners[i]);
	}
}

static int prepare_settings(void *owner)
{
	const struct spoke_comet *comet = owner;

	return check_together(comet->settings, comet->settings->next);
}

static const struct spokei_settings_part settings_parts[] = {
	{ SPOKEI_AT_QUOTA, offsetof(struct spoke_comet, connections), NULL },
	{ SPOKEI_AT_COMET, offsetof(struct spoke_comet, with), apply_settings },
};

static const struct spokei_settings_kind settings_kind = {
	.sections = 1u << SPOKEI_IN_COMET,
	.parts = settings_parts,
	.part_count = sizeof(settings_parts) / sizeof(settings_parts[0]),
	.prepare = prepare_settings,
};

/* --- reading the options */

/* Makes the response for the document at /, if there is one. The document may run scripts, unlike
 * other responses. */
static int make_page(struct spoke_comet *comet)
{
	const char *page = comet->with.page;
	const size_t len = page ? strlen(page) : 0;

	comet->with.page = NULL;
	if (page == NULL)
		return SPOKE_OK;
	if (len > PAGE_MAX)
		return wrong_option(comet->engine, "page", "at most 1048576 bytes");
	comet->page_size = PAGE_HEAD + len + 1;
	comet->page = spokei_alloc(comet->engine->env, 1, comet->page_size);
	if (comet->page == NULL)
		return SPOKE_ENOMEM;
	(void)snprintf(comet->page, comet->page_size,
		       "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
		       "Content-Length: %zu\r\nCache-Control: no-store\r\n"
		       "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
		       "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n%s",
		       len, page);
	return SPOKE_OK;
}

static int read_all(struct spoke_comet *comet, struct spokei_settings *settings,
		    const struct spoke_comet_options *options)
{
	struct spoke_engine *engine = comet->engine;
	struct spokei_key_values values = { .of = { 0 } };
	int error = spokei_keys_read_code(engine, &values, SPOKEI_IN_COMET, SPOKEI_AT_COMET,
					  options);

	if (error == SPOKE_OK)
		error = spokei_settings_begin(settings, engine, &values);
	if (error == SPOKE_OK) {
		spokei_settings_look(settings, &values);
		error = check_together(settings, &values);
	}
	if (error == SPOKE_OK)
		error = check_authorizer(engine, &comet->with);
	return error == SPOKE_ERANGE ? SPOKE_EINVAL : error;
}

/* Reads the options, and those of their file, which may change them later. Returns 0, EINVAL or
 * ENOMEM. */
static int read_options(struct spoke_comet *comet, const struct spoke_comet_options *options)
{
	struct spokei_settings *settings = spokei_alloc(comet->engine->env, 1, sizeof(*settings));
	int error;

	comet->with = *options;
	if (settings == NULL)
		return SPOKE_ENOMEM;
	settings->kind = &settings_kind;
	settings->owner = comet;
	settings->structs = comet;
	settings->file.config = options->config;
	comet->settings = settings;
	error = read_all(comet, settings, options);
	complete_lists(&comet->with);
	comet->origins = comet->with.origins;
	return error ? error : make_page(comet);
}

const char spokei_comet_kind[] = "comet";

/* --- the end */

static void close_comet(struct spoke_comet *comet);

/* Ends a drain once the last connection is gone. The quota counts all, requests included. */
static void end_drain(struct spoke_comet *comet)
{
	if (comet->draining && !comet->closed && comet->quota.count == 0)
		close_comet(comet);
}

static void dead_due(struct spokei_task *task)
{
	struct spoke_comet *comet = spoke_container_of(task, struct spoke_comet, dead);

	while (comet->dead_list) {
		struct spokei_comet_conn *conn = comet->dead_list;

		comet->dead_list = conn->next;
		conn->next = comet->free;
		comet->free = conn;
	}
	end_drain(comet);
}

static void free_comet(struct spoke_comet *comet)
{
	const struct spoke_env *env = comet->engine->env;

	spokei_comet_forget_all(comet);
	spokei_comet_ring_clear(comet, &comet->all);
	for (uint32_t i = 0; i < comet->chunk_count; i++)
		spokei_free(env, comet->chunks[i], SPOKEI_COMET_CHUNK,
			    sizeof(struct spokei_comet_conn));
	spokei_free(env, comet->chunks, comet->chunk_room, sizeof(struct spokei_comet_conn *));
	spokei_slab_fini(&comet->ask_slab);
	spokei_free(env, comet->nobody, 1, sizeof(*comet->nobody));
	SPOKE_ASSERT(comet->figures[SPOKE_COMET_FIGURE_BYTES] == 0);
	spokei_quota_fini(&comet->quota);
	spokei_free(env, comet->page, 1, comet->page_size);
	if (comet->settings)
		spokei_settings_end(comet->settings, env);
	spokei_free(env, comet->settings, 1, sizeof(*comet->settings));
	spokei_free(env, comet, 1, sizeof(*comet));
}

static void finalise_due(struct spokei_task *task)
{
	struct spoke_comet *comet = spoke_container_of(task, struct spoke_comet, finalise);

	if (!comet->freed) {
		spokei_member_retire(comet->engine, &comet->member);
		return;
	}
	if (!spokei_comet_leave_peers(comet)) {
		spokei_run_freeing(comet->engine, task);
		return;
	}
	spokei_member_drop(&comet->member);
	free_comet(comet);
}

static void stop_listening(struct spoke_comet *comet)
{
	for (size_t i = 0; i < comet->listener_count; i++) {
		spokei_listener_free(comet->listeners[i]);
		comet->listeners[i] = NULL;
	}
}

/* Connections are put on the dead list before the gateway, so they are freed first. */
static void close_comet(struct spoke_comet *comet)
{
	if (comet->closed)
		return;
	comet->closed = true;
	/* Its engine may turn no more: pushes posted to it would keep their room. */
	(void)!spokei_weak_close(comet->weak);
	if (comet->settings)
		spokei_settings_leave(comet->settings);
	stop_listening(comet);
	spokei_http_server_close(&comet->http);
	for (uint32_t i = 0; i < comet->used; i++)
		spokei_comet_close(spokei_comet_cell(comet, i), SPOKE_COMET_FIGURE_COUNT);
	spokei_comet_unserve(comet);
	(void)spoke_alarm_cancel(&comet->sweep);
	spokei_task_drop(&comet->pass);
	spokei_run_freeing(comet->engine, &comet->dead);
	spokei_run_freeing(comet->engine, &comet->finalise);
}

void spoke_comet_free(struct spoke_comet *comet)
{
	if (comet == NULL || spokei_engine_keeps(comet->engine, "spoke_comet_free()") ||
	    comet->freed)
		return;
	comet->freed = true;
	close_comet(comet);
	spokei_run_freeing(comet->engine, &comet->finalise);
}

static void comet_close(struct spokei_member *member)
{
	close_comet(spoke_container_of(member, struct spoke_comet, member));
}

static void comet_member_free(struct spokei_member *member)
{
	spoke_comet_free(spoke_container_of(member, struct spoke_comet, member));
}

/* The reconnects are spread, so that other gateways are not asked by all at one time. */
static void comet_drain(struct spokei_member *member)
{
	struct spoke_comet *comet = spoke_container_of(member, struct spoke_comet, member);
	uint32_t now_ms = spokei_comet_ms(comet);

	comet->draining = true;
	stop_listening(comet);
	for (uint32_t i = 0; i < comet->used; i++) {
		struct spokei_comet_conn *conn = spokei_comet_cell(comet, i);
		uint32_t ends_ms =
			now_ms + (uint32_t)(spokei_comet_dice(comet, 0, comet->with.drain_ns) / MS);

		/* One that lingers ends soon anyway. */
		if (conn->state != SPOKEI_COMET_OPEN && !spokei_comet_behind(conn))
			continue;
		conn->drains = true;
		if (spokei_comet_until(ends_ms, conn->ends_ms) < 0)
			conn->ends_ms = ends_ms;
		spokei_comet_arm(conn);
	}
	end_drain(comet);
}

/* --- for the page */

const struct spokei_settings *spokei_comet_settings(const struct spoke_comet *comet)
{
	return comet->settings;
}

const struct spoke_comet *spokei_comet_of_member(struct spokei_member *member)
{
	return spoke_container_of(member, struct spoke_comet, member);
}

bool spokei_comet_drains(const struct spoke_comet *comet)
{
	return comet->draining;
}

/* --- the beginning */

/* Is a spokei_make_room. */
static bool make_room(void *arg)
{
	struct spoke_comet *comet = arg;

	return spokei_http_make_room(&comet->http);
}

/* Others have what their listener had set; clients of unix sockets are no peer of the quota. */
static void limit_unix(struct spoke_comet *comet, int fd,
		       const struct spokei_quota_peer *quota_peer)
{
	const struct spoke_env *env = comet->engine->env;

	if (quota_peer == NULL && env->net->send_buffer)
		(void)env->net->send_buffer(env->ctx, fd, comet->with.send_buffer);
}

static void comet_accept(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct spoke_comet *comet = arg;
	const uint32_t unread = comet->http.reading_count;
	struct spokei_quota_peer *quota_peer = spokei_quota_peer(&comet->quota, peer);
	struct spokei_http_conn *http;
	struct spokei_comet_door *door;

	(void)marks;
	if (unread >= UNREAD_MIN && unread >= comet->with.connections_max / UNREAD_SHARE)
		(void)spokei_http_drop_unread(&comet->http);
	if (spokei_http_accept(&comet->http, fd, peer, &http)) {
		spokei_quota_leave(&comet->quota, quota_peer);
		return;
	}
	door = spokei_http_user(http);
	door->quota_peer = quota_peer;
	limit_unix(comet, fd, quota_peer);
}

static int listen_at(struct spoke_comet *comet, const struct spoke_address *address)
{
	struct spokei_listener **at = &comet->listeners[comet->listener_count];
	const struct spokei_listener_at where = { .address = address,
						  .shared = comet->with.shared };
	int error = spokei_listener_new(comet->engine, &where, &comet->quota, comet_accept, comet,
					at);

	if (error)
		return error;
	comet->listener_count++;
	preset(comet, *at);
	return SPOKE_OK;
}

static int listen_at_all(struct spoke_comet *comet, const char *list)
{
	struct spoke_address address;
	struct spoke_span item;
	int error = SPOKE_OK;

	while (error == SPOKE_OK && spokei_option_item(&list, &item)) {
		if (comet->listener_count == SPOKE_COMET_LISTEN_MAX ||
		    !spokei_places_read(comet->engine->env, item, &address))
			return wrong_option(comet->engine, "listen", "1 to 8 numeric addresses");
		error = listen_at(comet, &address);
	}
	return error;
}

static int open_comet(struct spoke_comet *comet, const char *listen)
{
	struct spoke_engine *engine = comet->engine;
	const struct spokei_http_limits limits = {
		.out_max = 65536,
		.body_max = comet->with.frame_max,
		.request_ns = comet->with.head_ns,
		/* The authorizer's time is checked by the sweep. */
		.slow_ns = comet->with.authorize_ns + comet->with.slow_ns,
	};
	int error = spokei_engine_class(engine, "comet", spokei_comet_due, &comet->timer_class);

	if (error == SPOKE_OK)
		error = spokei_http_server_init(&comet->http, engine, &spokei_comet_up, &limits);
	if (error == SPOKE_OK)
		error = spoke_alarm_after(engine, &comet->sweep, comet->with.ring_ns,
					  spokei_comet_sweep);
	if (error)
		return error;
	comet->sweep_ms = spokei_comet_ms(comet) + (uint32_t)(comet->with.ring_ns / MS);
	comet->all.look_ms = comet->sweep_ms;
	error = listen_at_all(comet, listen);
	if (error) {
		stop_listening(comet);
		(void)spoke_alarm_cancel(&comet->sweep);
	}
	return error;
}

static void init(struct spoke_comet *comet)
{
	struct spoke_engine *engine = comet->engine;
	const struct spoke_env *env = engine->env;
	const uint32_t rate = comet->with.accept_rate;

	comet->born_ns = engine->begin_ns;
	env->dice(env->ctx, &comet->epoch, sizeof(comet->epoch));
	env->dice(env->ctx, comet->hash_key, sizeof(comet->hash_key));
	comet->dirty_end = &comet->dirty;
	comet->dead.run = dead_due;
	comet->pass.run = spokei_comet_pass;
	comet->finalise.run = finalise_due;
	comet->rate = spokei_bucket_make(rate, rate, engine->begin_ns);
	comet->reserve = spokei_bucket_make(rate / 2, rate / 2, engine->begin_ns);
	spokei_list_init(&comet->grace);
	spokei_list_init(&comet->absent);
	spokei_list_init(&comet->asks);
	spokei_list_init(&comet->sends);
	spokei_list_init(&comet->rings);
	spokei_list_append(&comet->rings, &comet->all.node);
	spokei_quota_init(&comet->quota, env, &comet->connections);
	spokei_quota_give_way(&comet->quota, make_room, comet);
	spokei_slab_init(&comet->ask_slab, env, sizeof(struct spokei_comet_ask),
			 comet->with.connections_max);
}

static int make(struct spoke_comet *comet, const struct spoke_comet_options *options)
{
	int error = read_options(comet, options);

	init(comet);
	comet->nobody = spokei_alloc(comet->engine->env, 1, sizeof(*comet->nobody));
	if (comet->nobody)
		comet->nobody->comet = comet;
	else if (error == SPOKE_OK)
		error = SPOKE_ENOMEM;
	if (error == SPOKE_OK && comet->with.shared)
		error = spokei_comet_open_peers(comet);
	if (error == SPOKE_OK)
		error = open_comet(comet, comet->with.listen ? comet->with.listen : LISTEN);
	if (error)
		SPOKE_ASSERT(spokei_comet_leave_peers(comet)); /* no other one knows it */
	return error;
}

static int comet_new(struct spoke_engine *engine, const struct spoke_comet_options *options,
		     struct spoke_comet **ret_comet)
{
	static const struct spoke_comet_options defaults;
	struct spoke_comet *comet;
	int error = spokei_engine_check(engine);

	if (error)
		return error;
	if (spokei_engine_ending(engine))
		return SPOKE_ECLOSED;
	comet = spokei_alloc(engine->env, 1, sizeof(*comet));
	if (comet == NULL)
		return SPOKE_ENOMEM;
	comet->engine = engine;
	error = make(comet, options ? options : &defaults);
	if (error) {
		free_comet(comet);
		return error;
	}
	comet->member = (struct spokei_member){
		.kind = spokei_comet_kind,
		.close = comet_close,
		.drain = comet_drain,
		.free = comet_member_free,
	};
	spokei_member_add(engine, &comet->member);
	*ret_comet = comet;
	return SPOKE_OK;
}

int spoke_comet_new(struct spoke_engine *engine, const struct spoke_comet_options *options,
		    struct spoke_comet **ret_comet)
{
	uint64_t begun = spokei_why_begin(engine);

	return spokei_why_end(engine, begun, comet_new(engine, options, ret_comet), "new gateway");
}

size_t spoke_comet_address(const struct spoke_comet *comet, size_t index, char *text, size_t size)
{
	const struct spoke_env *env = comet->engine->env;
	char printed[SPOKEI_HTTP_ADDRESS];

	if (index >= comet->listener_count || comet->listeners[index] == NULL)
		return 0;
	env->net->print(env->ctx, spokei_listener_address(comet->listeners[index]), printed,
			sizeof(printed));
	return (size_t)snprintf(text, size, "%s", printed);
}
