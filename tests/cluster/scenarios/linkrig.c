/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of link tests: see linkrig.h. */
#include "tests/cluster/scenarios/linkrig.h"

#include "tests/support/scene.h"
#include "transport/codec/codec.h"
#include "transport/wire/catalog.h"

#include <stdio.h>
#include <string.h>

struct linkrig linkrig;

static struct {
	struct spoke_alarm alarm;
	uint64_t ns;
} stall;

RIG_STEP(linkrig_set_up)
{
	memset(&linkrig, 0, sizeof(linkrig));
	memset(&stall, 0, sizeof(stall));
	linkrig.conn.fd = -1;
	linkrig.listener = -1;
	scene_open(&linkrig.world, 5);
	linkrig.engine = scene_engine(&linkrig.world, &linkrig.process, &linkrig.faulty, NULL);
	peer_init(&linkrig.peer, &linkrig.world);
}

RIG_STEP(linkrig_tear_down)
{
	linkrig.then = NULL;
	if (linkrig.held)
		linkrig_answer();
	scene_leave(&linkrig.process, &linkrig.faulty, &linkrig.engine);
	peer_close(&linkrig.conn);
	peer_fini(&linkrig.peer);
	spokei_world_fini(&linkrig.world);
}

void linkrig_pass(uint64_t ns)
{
	spokei_world_run(&linkrig.world, linkrig.world.now_ns + ns);
}

uint64_t linkrig_stat(enum spoke_stat stat)
{
	return spoke_stat_get(linkrig.engine, stat);
}

/* --- the side */

static void note(void *arg, const struct spoke_link_event *event)
{
	(void)arg;
	linkrig.told[event->change]++;
	linkrig.last = event->change;
	linkrig.user = event->user;
	if (event->change == SPOKE_LINK_CLOSED)
		linkrig.error = event->error;
	if (linkrig.then)
		linkrig.then(event);
}

static void echo(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void note_abandoned(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
	linkrig.abandoned++;
}

static void linkrig_hold(struct spoke_request *request, void *arg)
{
	(void)arg;
	assert_null(linkrig.held);
	assert_int_equal(spoke_request_keep(request), 0);
	spoke_request_on_abandoned(request, note_abandoned, NULL);
	linkrig.held = request;
}

void linkrig_answer(void)
{
	struct spoke_request *request = linkrig.held;

	linkrig.held = NULL;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

void linkrig_provide(const char *wire, const struct spoke_provider_options *options)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo },
		{ .method = "later", .handle = linkrig_hold },
		{ .method = "block", .handle = echo, .flags = SPOKE_HANDLER_POOL },
	};
	struct spoke_provider_options with = *options;
	char url[64];

	with.changed = note;
	(void)snprintf(url, sizeof(url), "%s://" LINKRIG_AT, wire);
	linkrig.wire = wire;
	assert_int_equal(spoke_provider_new(linkrig.engine, &with, &linkrig.provider), 0);
	assert_int_equal(spoke_provider_add(linkrig.provider, &service, handlers, 3), 0);
	assert_int_equal(spoke_provider_listen(linkrig.provider, url), 0);
}

void linkrig_consume(const char *wire, const struct spoke_consumer_options *options)
{
	struct spoke_consumer_options with = *options;
	char url[64];

	(void)snprintf(url, sizeof(url), "%s://%s:20880/demo.Echo", wire,
		       linkrig.host ? linkrig.host : "127.0.0.1");
	linkrig.wire = wire;
	with.url = url;
	with.changed = note;
	with.handle = linkrig_hold;
	linkrig.listener = peer_listen(&linkrig.peer, LINKRIG_AT);
	assert_true(linkrig.listener >= 0);
	assert_int_equal(spoke_consumer_new(linkrig.engine, &with, &linkrig.consumer), 0);
	linkrig_pass(10 * TICK);
	assert_true(linkrig_accept());
}

static void hold_up(struct spoke_alarm *alarm)
{
	(void)alarm;
	spokei_world_hold(&linkrig.process, stall.ns);
}

void linkrig_hold_up(uint64_t ns)
{
	stall.ns = ns;
	assert_int_equal(spoke_alarm_every(linkrig.engine, &stall.alarm, TICK, hold_up), 0);
}

bool linkrig_until(enum spoke_link_change change, uint64_t ns)
{
	const uint64_t end_ns = linkrig.world.now_ns + ns;
	const unsigned before = linkrig.told[change];

	while (linkrig.told[change] == before && linkrig.world.now_ns < end_ns)
		(void)spokei_world_step(&linkrig.world, end_ns);
	return linkrig.told[change] > before;
}

/* --- the peer */

void linkrig_connect(void)
{
	int fd = peer_connect(&linkrig.peer, LINKRIG_AT);

	assert_true(fd >= 0);
	peer_open(&linkrig.peer, &linkrig.conn, fd, spokei_catalog_wire(linkrig.wire));
	linkrig_pass(10 * TICK);
}

bool linkrig_accept(void)
{
	int fd = peer_accept(&linkrig.peer, linkrig.listener);

	if (fd < 0)
		return false;
	peer_close(&linkrig.conn);
	peer_open(&linkrig.peer, &linkrig.conn, fd, spokei_catalog_wire(linkrig.wire));
	return true;
}

static void put(const struct spokei_message *message)
{
	peer_put(&linkrig.conn, message);
	assert_int_equal(peer_write(&linkrig.conn, SIZE_MAX), 0);
}

void linkrig_say(enum spokei_kind kind)
{
	const struct spokei_message message = {
		.kind = kind,
		.codec = SPOKEI_CODEC_MSGPACK,
		.id = 1,
		.two_way = kind == SPOKEI_PROBE,
	};

	put(&message);
}

void linkrig_ask(const char *method)
{
	const struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.codec = SPOKEI_CODEC_MSGPACK,
		.id = 40,
		.two_way = true,
		.service = { "demo.Echo", 9 },
		.method = { method, strlen(method) },
	};

	put(&message);
}

void linkrig_write(const void *bytes, size_t len)
{
	peer_put_bytes(&linkrig.conn, (struct spoke_span){ bytes, len });
	assert_int_equal(peer_write(&linkrig.conn, SIZE_MAX), 0);
}

static void take(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	(void)arg;
	(void)conn;
	linkrig.read[message->kind]++;
}

void linkrig_read(void)
{
	peer_read(&linkrig.conn, take, NULL);
	assert_false(linkrig.conn.broken);
}
