/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway: its options and their limits, its listeners, its drain and its end. */
#include "cluster/comet/parts.h"
#include "cluster/comet/view.h"
#include "transport/listen/listener.h"

#include <stdio.h>

#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define TIME_MAX (UINT64_C(20) * 24 * 3600 * SECOND) /* stamps are 32 bits of ms */
#define LIST_MAX 4096u                               /* bytes of a list of names */
#define UNREAD_MIN 256u   /* unfinished requests that are always allowed */
#define UNREAD_SHARE 10u  /* ... beyond, a tenth of all connections */
#define FRAME_MAX 131072u /* so that a message fits the engine's scratch */
#define LISTEN "127.0.0.1:0"

const char spokei_comet_kind[] = "comet";

/* --- options */

/* A field of the options; 0 becomes the default. */
struct field {
	size_t at;
	uint64_t preset;
	uint64_t min;
	uint64_t max;
	const char *name;
};

#define FIELD(name, preset, min, max)                                                              \
	{                                                                                          \
		offsetof(struct spoke_comet_options, name), preset, min, max, #name                \
	}

static const struct field times[] = {
	FIELD(authorize_ns, 5 * SECOND, MS, TIME_MAX),
	FIELD(head_ns, 5 * SECOND, MS, TIME_MAX),
	FIELD(keepalive_ns, 25 * SECOND, 10 * MS, TIME_MAX),
	FIELD(poll_ns, 25 * SECOND, MS, TIME_MAX),
	FIELD(life_ns, 1800 * SECOND, 10 * MS, TIME_MAX),
	FIELD(keep_ns, 60 * SECOND, MS, TIME_MAX),
	FIELD(slow_ns, 30 * SECOND, 10 * MS, TIME_MAX),
	FIELD(retry_min_ns, SECOND, MS, 3600 * SECOND),
	FIELD(retry_max_ns, 15 * SECOND, MS, 3600 * SECOND),
	FIELD(drain_ns, 10 * SECOND, MS, TIME_MAX),
	FIELD(ring_ns, 60 * SECOND, MS, TIME_MAX),
	FIELD(bytes_max, UINT64_C(67108864), 4096, UINT64_MAX),
};

static const struct field counts[] = {
	FIELD(accept_rate, 2000, 1, UINT32_MAX),
	FIELD(connections_max, 20000, 1, 16777216),
	FIELD(connections_per_peer_max, 1000, 1, UINT32_MAX),
	FIELD(connections_per_user_max, 6, 1, 250),
	FIELD(users_max, 100000, 1, UINT32_MAX),
	FIELD(frames_per_second, 10, 1, 250),
	FIELD(frame_max, 16384, 1, FRAME_MAX),
	FIELD(message_max, 16384, 1, 16777216),
	FIELD(ring_messages, 32, 1, 65535),
	FIELD(ring_bytes, 16384, 1, UINT32_MAX),
	FIELD(all_messages, 256, 1, 65535),
	FIELD(all_bytes, 262144, 1, UINT32_MAX),
	FIELD(send_buffer, 16384, 1024, 1073741824),
};

static int wrong(struct spoke_engine *engine, const char *option, const char *rule)
{
	spokei_event(engine, SPOKE_EINVAL, "option %s of the gateway: %s", option, rule);
	return SPOKE_EINVAL;
}

static int fill_fields(struct spoke_engine *engine, struct spoke_comet_options *with)
{
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		uint64_t *value = (uint64_t *)(void *)((char *)with + times[i].at);

		if (*value == 0)
			*value = times[i].preset;
		if (*value < times[i].min || *value > times[i].max)
			return wrong(engine, times[i].name, "out of range");
	}
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint32_t *value = (uint32_t *)(void *)((char *)with + counts[i].at);

		if (*value == 0)
			*value = (uint32_t)counts[i].preset;
		if (*value < counts[i].min || *value > counts[i].max)
			return wrong(engine, counts[i].name, "out of range");
	}
	if (with->retry_min_ns > with->retry_max_ns)
		return wrong(engine, "retry_min_ns", "greater than retry_max_ns");
	return SPOKE_OK;
}

/* A blank or a NUL in a list would match no request. Headers have room for any item. */
static bool is_list(const char *list)
{
	size_t len = strlen(list);
	size_t item_len = 0;

	for (size_t i = 0; i < len; i++) {
		item_len = list[i] == ',' ? 0 : item_len + 1;
		if (list[i] <= ' ' || list[i] > '~' || item_len > SPOKEI_COMET_ORIGIN_MAX)
			return false;
	}
	return len <= LIST_MAX;
}

static int check(struct spoke_engine *engine, const struct spoke_comet_options *with)
{
	if (spokei_engine_forked(engine))
		return SPOKE_EFORKED;
	if (spokei_engine_ending(engine))
		return SPOKE_ECLOSED;
	if (with->listen && !is_list(with->listen))
		return wrong(engine, "listen", "comma-separated addresses without blanks");
	if (with->origins && !is_list(with->origins))
		return wrong(engine, "origins", "comma-separated without blanks, 280 bytes each");
	if (with->hosts && (!is_list(with->hosts) || strpbrk(with->hosts, ":/")))
		return wrong(engine, "hosts", "comma-separated names without ports");
	if (with->proxies && !is_list(with->proxies))
		return wrong(engine, "proxies", "comma-separated addresses without blanks");
	if (with->authorize == NULL && !with->query_user)
		return wrong(engine, "authorize", "required, unless query_user is set");
	return SPOKE_OK;
}

/* Copies the texts that are used later. */
static int copy_texts(struct spoke_comet *comet)
{
	const char *origins = comet->with.origins ? comet->with.origins : "";
	const char *hosts = comet->with.hosts ? comet->with.hosts : "";
	const char *proxies = comet->with.proxies ? comet->with.proxies : "";
	const size_t origins_size = strlen(origins) + 1;
	const size_t hosts_size = strlen(hosts) + 1;

	comet->texts_size = origins_size + hosts_size + strlen(proxies) + 1;
	comet->texts = spokei_alloc(comet->engine->env, 1, comet->texts_size);
	if (comet->texts == NULL)
		return SPOKE_ENOMEM;
	memcpy(comet->texts, origins, origins_size);
	memcpy(comet->texts + origins_size, hosts, hosts_size);
	memcpy(comet->texts + origins_size + hosts_size, proxies, strlen(proxies) + 1);
	comet->with.proxies = comet->texts + origins_size + hosts_size;
	comet->with.origins = comet->texts;
	comet->with.hosts = comet->texts + origins_size;
	comet->with.listen = NULL;
	return spokei_comet_make_page(comet);
}

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
	spokei_free(env, comet->texts, 1, comet->texts_size);
	spokei_free(env, comet, 1, sizeof(*comet));
}

static void bury_due(struct spokei_task *task)
{
	struct spoke_comet *comet = spoke_container_of(task, struct spoke_comet, bury);

	if (!comet->freed) {
		spokei_roll_retire(comet->engine, &comet->member);
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

static void comet_accept(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct spoke_comet *comet = arg;
	const struct spoke_env *env = comet->engine->env;
	const uint32_t unread = comet->http.reading_count;

	(void)marks;
	if (unread >= UNREAD_MIN && unread >= comet->with.connections_max / UNREAD_SHARE) {
		env->net->close(env->ctx, fd);
		spokei_count(comet->engine, SPOKE_STAT_CLOSED);
	} else if (spokei_http_accept(&comet->http, fd, peer) == SPOKE_OK) {
		return;
	}
	spokei_quota_leave(&comet->quota, peer);
}

static int listen_at(struct spoke_comet *comet, const struct spoke_address *address)
{
	struct spokei_listener **at = &comet->listeners[comet->listener_count];
	int error = (comet->with.shared ? spokei_listener_new_shared
					: spokei_listener_new)(comet->engine, address,
							       &comet->quota, comet_accept, comet,
							       at);

	if (error)
		return error;
	comet->listener_count++;
	/* A client that is gone without a word, or does not read, costs the system little. */
	spokei_listener_preset(*at, comet->with.slow_ns, comet->with.send_buffer);
	return SPOKE_OK;
}

static int listen_at_all(struct spoke_comet *comet, const char *list)
{
	const struct spoke_env *env = comet->engine->env;

	while (*list != '\0') {
		size_t len = strcspn(list, ",");
		struct spoke_address address;
		char text[SPOKEI_HTTP_ADDRESS];
		int error;

		if (len == 0 || len >= sizeof(text) ||
		    comet->listener_count == SPOKE_COMET_LISTEN_MAX)
			return wrong(comet->engine, "listen", "1 to 8 addresses");
		memcpy(text, list, len);
		text[len] = '\0';
		if (env->net->parse(env->ctx, text, &address))
			return wrong(comet->engine, "listen",
				     "numeric addresses, e.g. 127.0.0.1:8080, or unix:PATH");
		error = listen_at(comet, &address);
		if (error)
			return error;
		list += len + (list[len] == ',');
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
	env->dice(env->ctx, &comet->seed, sizeof(comet->seed));
	comet->dirty_end = &comet->dirty;
	comet->all.floor = &comet->all_floor;
	comet->dead.run = dead_due;
	comet->pass.run = spokei_comet_pass;
	comet->bury.run = bury_due;
	comet->swept = spokei_comet_sweep;
	comet->rate = spokei_bucket_make(rate, rate, engine->begin_ns);
	comet->reserve = spokei_bucket_make(rate / 2, rate / 2, engine->begin_ns);
	spokei_list_init(&comet->grace);
	spokei_list_init(&comet->absent);
	spokei_list_init(&comet->asks);
	spokei_list_init(&comet->sends);
	spokei_list_init(&comet->rings);
	spokei_list_append(&comet->rings, &comet->all.node);
	spokei_quota_init(&comet->quota, env, comet->with.connections_max,
			  comet->with.connections_per_peer_max);
	spokei_slab_init(&comet->ask_slab, env, sizeof(struct spokei_comet_ask),
			 comet->with.connections_max);
}

static int comet_new(struct spoke_engine *engine, const struct spoke_comet_options *options,
		     struct spoke_comet **ret_comet)
{
	static const struct spoke_comet_options defaults;
	struct spoke_comet *comet;
	const char *listen;
	int error = check(engine, options ? options : &defaults);

	if (error)
		return error;
	comet = spokei_alloc(engine->env, 1, sizeof(*comet));
	if (comet == NULL)
		return SPOKE_ENOMEM;
	comet->engine = engine;
	comet->with = *options;
	listen = options->listen ? options->listen : LISTEN;
	error = fill_fields(engine, &comet->with);
	init(comet);
	if (error == SPOKE_OK)
		error = copy_texts(comet);
	comet->nobody = spokei_alloc(engine->env, 1, sizeof(*comet->nobody));
	if (comet->nobody)
		comet->nobody->comet = comet;
	else if (error == SPOKE_OK)
		error = SPOKE_ENOMEM;
	if (error == SPOKE_OK)
		error = open_comet(comet, listen);
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
