/* SPDX-License-Identifier: Apache-2.0 */
/* A key-value service that uses transport/http as any program would, and its fixture. */
#include "tests/transport/http/kvrig.h"
#include "core/engine/engine.h"

#include "tests/support/scene.h"
#include "transport/http/request.h"
#include "transport/http/response.h"

#include <spoke/engine.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT "127.0.0.1:8080"
#define TEXT "text/plain; charset=utf-8"

struct kvrig kvrig;

/* The service's data of a connection. */
struct kvconn {
	bool lists; /* streams the response to GET /all */
	unsigned next;
};

/* --- the service */

static void respond(struct spokei_http_conn *conn, const void *body, size_t len)
{
	const struct spokei_http_response response = { .status = 200, .type = TEXT, .len = len };

	if (spokei_http_respond(conn, &response, body))
		spokei_http_respond_text(conn, 503, NULL, "too much");
}

static struct kvpair *find(struct spoke_span key)
{
	for (unsigned i = 0; i < kvrig.pair_count; i++)
		if (spokei_span_is(key, kvrig.pairs[i].key))
			return &kvrig.pairs[i];
	return NULL;
}

static void copy(char text[KVRIG_TEXT], struct spoke_span span)
{
	size_t len = span.len < KVRIG_TEXT ? span.len : KVRIG_TEXT - 1;

	memcpy(text, span.data, len);
	text[len] = '\0';
}

static void tell_watchers(const char *value)
{
	struct spokei_http_conn *next = spokei_http_next_stream(&kvrig.http, NULL);
	struct spokei_http_conn *conn;

	while ((conn = next) != NULL) {
		const struct kvconn *mine = spokei_http_user(conn);

		next = spokei_http_next_stream(&kvrig.http, conn);
		if (!mine->lists && spokei_http_send(conn, value, strlen(value)))
			spokei_http_close(conn);
	}
}

static void store(struct spokei_http_conn *conn, struct spoke_span key, struct spoke_span value)
{
	struct kvpair *pair = find(key);

	if (pair == NULL && kvrig.pair_count == KVRIG_PAIRS) {
		spokei_http_respond_text(conn, 503, NULL, "full");
		return;
	}
	if (pair == NULL)
		pair = &kvrig.pairs[kvrig.pair_count++];
	copy(pair->key, key);
	copy(pair->value, value);
	spokei_http_respond_text(conn, 200, NULL, "stored");
	tell_watchers(pair->value);
}

/* Writes until the socket is full; writable() continues. */
static void list(struct spokei_http_conn *conn)
{
	struct kvconn *mine = spokei_http_user(conn);

	while (spokei_http_idle(conn)) {
		const char *value = kvrig.pairs[mine->next % KVRIG_PAIRS].value;

		if (mine->next == KVRIG_REPEAT * kvrig.pair_count)
			spokei_http_end(conn);
		else if (spokei_http_send(conn, value, strlen(value)))
			spokei_http_close(conn);
		else
			mine->next++;
	}
}

static void begin_stream(struct spokei_http_conn *conn, bool lists)
{
	const struct spokei_http_response response = { .status = 200, .type = TEXT, .len = 1 };
	struct kvconn *mine = spokei_http_user(conn);

	mine->lists = lists;
	if (spokei_http_stream(conn, &response, ":"))
		spokei_http_close(conn);
}

static void kv_request(struct spokei_http_conn *conn, const struct spokei_http_request *request)
{
	static const char large[2 * KVRIG_OUT_MAX] = "x";
	struct spoke_span key = { (const char *)request->path.data + 1, request->path.len - 1 };
	const struct kvpair *pair;

	kvrig.requests++;
	if (request->method == SPOKEI_HTTP_POST)
		store(conn, key, request->body);
	else if (spokei_span_is(key, "all") || spokei_span_is(key, "watch"))
		begin_stream(conn, spokei_span_is(key, "all"));
	else if (spokei_span_is(key, "later"))
		kvrig.later = conn;
	else if (spokei_span_is(key, "large"))
		respond(conn, large, sizeof(large));
	else if ((pair = find(key)) != NULL)
		respond(conn, pair->value, strlen(pair->value));
	else
		spokei_http_respond_text(conn, 404, NULL, "no such key");
}

static void kv_sent(struct spokei_http_conn *conn)
{
	(void)conn;
	kvrig.sent++;
}

static void kv_writable(struct spokei_http_conn *conn)
{
	const struct kvconn *mine = spokei_http_user(conn);

	if (mine->lists)
		list(conn);
}

void *kvrig_seat(const struct spokei_http_conn *conn)
{
	return spokei_quota_peer(&kvrig.quota, spokei_http_peer_address(conn));
}

static void kv_closed(struct spokei_http_conn *conn)
{
	spokei_quota_leave(&kvrig.quota, kvrig_seat(conn));
	kvrig.closed++;
	if (kvrig.later == conn)
		kvrig.later = NULL;
}

static const struct spokei_http_up kv_up = {
	.user_size = sizeof(struct kvconn),
	.request = kv_request,
	.sent = kv_sent,
	.writable = kv_writable,
	.closed = kv_closed,
};

static void kv_accept(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct spokei_http_conn *conn;

	(void)arg;
	(void)marks;
	if (spokei_http_accept(&kvrig.http, fd, peer, &conn))
		spokei_quota_leave(&kvrig.quota, spokei_quota_peer(&kvrig.quota, peer));
}

void kvrig_respond_later(const char *text)
{
	struct spokei_http_conn *conn = kvrig.later;

	assert_non_null(conn);
	kvrig.later = NULL;
	spokei_http_respond_text(conn, 200, NULL, text);
}

/* --- the fixture */

static void note_accepted(void *arg, const struct spokei_vnet_news *news)
{
	(void)arg;
	if (news->act == SPOKEI_VNET_ACCEPT)
		kvrig.accepted = news->fd;
}

void kvrig_open_bare(uint64_t timers_max)
{
	struct spoke_engine_options options = {
		.timers_max = timers_max,
	};

	kvrig = (struct kvrig){ .engine = NULL };
	scene_open(&kvrig.world, 11);
	spokei_vnet_observe(kvrig.world.net, note_accepted, NULL);
	kvrig.engine = scene_engine(&kvrig.world, &kvrig.server, &kvrig.faulty, &options);
	spokei_world_process_init(&kvrig.client, &kvrig.world);
	kvrig.got = malloc(KVRIG_READ_MAX);
	assert_non_null(kvrig.got);
}

int kvrig_serve(void)
{
	static const struct spokei_http_limits limits = {
		.out_max = KVRIG_OUT_MAX,
		.request_ns = SECOND,
		.slow_ns = 2 * SECOND,
		.linger_ns = SECOND / 2,
	};
	static const struct spokei_quota_limits most = { .max = 64, .per_peer_max = 64 };
	const struct spoke_env *env = &kvrig.client.env;
	struct spoke_address address;

	kvrig.is_open = true;
	assert_int_equal(env->net->parse(env->ctx, AT, &address), 0);
	spokei_quota_init(&kvrig.quota, &kvrig.faulty.env, &most);
	assert_int_equal(spokei_http_server_init(&kvrig.http, kvrig.engine, &kv_up, &limits), 0);
	return spokei_listener_new(kvrig.engine,
				   &(struct spokei_listener_at){ .address = &address },
				   &kvrig.quota, kv_accept, NULL, &kvrig.listener);
}

void kvrig_stop(void)
{
	spokei_listener_free(kvrig.listener);
	kvrig.listener = NULL;
	kvrig.is_open = false;
	spokei_http_server_close(&kvrig.http);
	assert_int_equal(kvrig.quota.count, 0);
	kvrig_run(MS);
	spokei_quota_fini(&kvrig.quota);
}

void kvrig_open(void)
{
	kvrig_open_bare(0);
	assert_int_equal(kvrig_serve(), SPOKE_OK);
}

void kvrig_close(void)
{
	if (kvrig.is_open)
		kvrig_stop();
	scene_leave(&kvrig.server, &kvrig.faulty, &kvrig.engine);
	scene_kill(&kvrig.client);
	spokei_world_fini(&kvrig.world);
	free(kvrig.got);
}

void kvrig_run(uint64_t ns)
{
	spokei_world_run(&kvrig.world, kvrig.world.now_ns + ns);
}

int kvrig_connect(void)
{
	int fd = scene_connect(&kvrig.client.env, AT);

	kvrig_run(MS);
	return fd;
}

void kvrig_send(int fd, const char *text)
{
	scene_write(&kvrig.client.env, fd, text, strlen(text));
}

void kvrig_hang_up(int fd)
{
	scene_hang_up(&kvrig.client.env, fd);
}

const char *kvrig_read(int fd, bool *ret_ended)
{
	(void)scene_hear(&kvrig.world, &kvrig.client.env, fd, kvrig.got, KVRIG_READ_MAX, ret_ended);
	return kvrig.got;
}

const char *kvrig_ask(const char *request)
{
	int fd = kvrig_connect();
	const char *response;
	bool ended;

	kvrig_send(fd, request);
	response = kvrig_read(fd, &ended);
	assert_true(ended);
	kvrig_hang_up(fd);
	kvrig_run(MS);
	return response;
}

int kvrig_status(const char *request)
{
	const char *response = kvrig_ask(request);

	assert_memory_equal(response, "HTTP/1.1 ", 9);
	return (int)strtol(response + 9, NULL, 10);
}
