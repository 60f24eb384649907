/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway: its listeners, its drain and its end. */
#include "cluster/comet/parts.h"
#include "cluster/comet/view.h"
#include "core/engine/desk.h"
#include "core/text/option.h"
#include "transport/listen/listener.h"

#include <stdio.h>

#define MS UINT64_C(1000000)
#define UNREAD_MIN 256u  /* unfinished requests that are always allowed */
#define UNREAD_SHARE 10u /* ... beyond, a tenth of all connections */
#define LISTEN "127.0.0.1:0"

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
	spokei_comet_free_options(comet);
	spokei_free(env, comet, 1, sizeof(*comet));
}

static void bury_due(struct spokei_task *task)
{
	struct spoke_comet *comet = spoke_container_of(task, struct spoke_comet, bury);

	if (!comet->freed) {
		spokei_roll_retire(comet->engine, &comet->member);
		return;
	}
	if (!spokei_comet_part(comet)) {
		spokei_engine_dead(comet->engine, task);
		return;
	}
	spokei_roll_drop(comet->engine, &comet->member);
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
	(void)!spokei_desk_close(comet->desk);
	spokei_comet_leave_file(comet);
	stop_listening(comet);
	spokei_http_server_close(&comet->http);
	for (uint32_t i = 0; i < comet->used; i++)
		spokei_comet_close(spokei_comet_cell(comet, i), SPOKE_COMET_FIGURE_COUNT);
	spokei_comet_unserve(comet);
	(void)spoke_alarm_cancel(&comet->sweep);
	spokei_task_drop(&comet->pass);
	spokei_engine_dead(comet->engine, &comet->dead);
	spokei_engine_dead(comet->engine, &comet->bury);
}

void spoke_comet_free(struct spoke_comet *comet)
{
	if (comet == NULL || comet->freed)
		return;
	spokei_engine_refresh(comet->engine);
	comet->freed = true;
	close_comet(comet);
	spokei_engine_dead(comet->engine, &comet->bury);
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

const struct spoke_comet *spokei_comet_of_member(struct spokei_member *member)
{
	return spoke_container_of(member, struct spoke_comet, member);
}

const struct spokei_member *spokei_comet_member(const struct spoke_comet *comet)
{
	return &comet->member;
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

static void comet_accept(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct spoke_comet *comet = arg;
	const uint32_t unread = comet->http.reading_count;
	void *seat = spokei_quota_seat(&comet->quota, peer);
	struct spokei_http_conn *http;
	struct spokei_comet_door *door;

	(void)marks;
	if (unread >= UNREAD_MIN && unread >= comet->with.connections_max / UNREAD_SHARE)
		(void)spokei_http_make_room(&comet->http);
	if (spokei_http_accept(&comet->http, fd, peer, &http)) {
		spokei_quota_leave(&comet->quota, seat);
		return;
	}
	door = spokei_http_user(http);
	door->seat = seat;
}

static int listen_at(struct spoke_comet *comet, const struct spoke_address *address)
{
	struct spokei_listener **at = &comet->listeners[comet->listener_count];
	const struct spokei_listener_at where = { .address = address,
						  .shared = comet->with.shared };
	int error = spokei_listener_new_at(comet->engine, &where, &comet->quota, comet_accept,
					   comet, at);

	if (error)
		return error;
	comet->listener_count++;
	spokei_comet_preset(comet, *at);
	return SPOKE_OK;
}

static int listen_at_all(struct spoke_comet *comet, const char *list)
{
	const struct spoke_env *env = comet->engine->env;

	while (list && *list != '\0') {
		struct spoke_span item;
		struct spoke_address address;
		char text[SPOKEI_HTTP_ADDRESS];
		int error;

		(void)spokei_option_item(&list, &item);
		if (item.len == 0 || item.len >= sizeof(text) ||
		    comet->listener_count == SPOKE_COMET_LISTEN_MAX)
			return spokei_comet_wrong(comet->engine, "listen", "1 to 8 addresses");
		memcpy(text, item.data, item.len);
		text[item.len] = '\0';
		if (env->net->parse(env->ctx, text, &address))
			return spokei_comet_wrong(
				comet->engine, "listen",
				"numeric addresses, e.g. 127.0.0.1:8080, or unix:PATH");
		error = listen_at(comet, &address);
		if (error)
			return error;
	}
	return SPOKE_OK;
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
	comet->all.floor = &comet->all_floor;
	comet->dead.run = dead_due;
	comet->pass.run = spokei_comet_pass;
	comet->bury.run = bury_due;
	comet->swept = spokei_comet_sweep;
	comet->arrived = spokei_comet_arrived;
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
	int error = spokei_comet_read_options(comet, options);

	init(comet);
	comet->nobody = spokei_alloc(comet->engine->env, 1, sizeof(*comet->nobody));
	if (comet->nobody)
		comet->nobody->comet = comet;
	else if (error == SPOKE_OK)
		error = SPOKE_ENOMEM;
	if (error == SPOKE_OK && comet->with.shared)
		error = spokei_comet_open_circle(comet);
	if (error == SPOKE_OK)
		error = open_comet(comet, comet->with.listen ? comet->with.listen : LISTEN);
	if (error)
		SPOKE_ASSERT(spokei_comet_part(comet)); /* no other one knows it */
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
	spokei_roll_add(engine, &comet->member);
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
