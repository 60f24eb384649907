/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the connector tests: see connectrig.h. */
#include "tests/transport/connect/connectrig.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include "tests/support/scene.h"
#include "transport/wire/catalog.h"

#include <spoke/engine.h>
#include <spoke/stats.h>
#include <spoke/wheel.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_NS (200 * SECOND)

static void note_change(void *arg, struct spokei_connector *connector, int error)
{
	struct connectrig *rig = arg;
	const struct spoke_env *env = rig->engine->env;
	const struct spokei_conn *conn = spokei_connector_conn(connector);
	struct told *told = &rig->told[rig->told_count++];

	assert_in_range(rig->told_count, 1, CONNECTRIG_TOLD_MAX);
	assert_ptr_equal(connector, rig->connector);
	*told = (struct told){
		.state = spokei_connector_state(connector),
		.error = error,
		.at_ns = rig->world.now_ns,
	};
	if (conn)
		env->net->print(env->ctx, &conn->peer, told->peer, sizeof(told->peer));
	if ((int)told->state == rig->free_in)
		connectrig_free(rig);
	else if ((int)told->state == rig->retire_in)
		assert_true(spokei_connector_retire(connector));
}

static const struct spokei_connector_up rig_up = { .changed = note_change };

void connectrig_open(struct connectrig *rig, uint64_t seed)
{
	struct spoke_engine_options options = { .env = &rig->faulty.env };
	struct spokei_link_limits limits;

	*rig = (struct connectrig){ .free_in = CONNECTRIG_NEVER, .retire_in = CONNECTRIG_NEVER };
	rig->options = (struct spokei_connector_options){
		.host = "127.0.0.1",
		.port = 20880,
		.wire = spokei_catalog_wire("dubbo"),
	};
	scene_open(&rig->world, seed);
	spokei_world_process_init(&rig->client, &rig->world);
	spokei_world_process_init(&rig->server, &rig->world);
	spokei_faults_init(&rig->faulty, &rig->client.env);
	assert_int_equal(spoke_engine_new(&options, &rig->engine), SPOKE_OK);
	spokei_link_limits_init(&limits);
	assert_int_equal(spokei_link_init(&rig->link, rig->engine, &limits), SPOKE_OK);
}

void connectrig_close(struct connectrig *rig)
{
	connectrig_free(rig);
	connectrig_run(rig, MS);
	spokei_link_fini(&rig->link);
	scene_leave(&rig->client, &rig->faulty, &rig->engine);
	scene_kill(&rig->server);
	spokei_world_fini(&rig->world);
}

RIG_STEP(connectrig_set_up)
{
	static struct connectrig rig;

	connectrig_open(&rig, 5);
	*state = &rig;
}

RIG_STEP(connectrig_tear_down)
{
	connectrig_close(*state);
}

int connectrig_start(struct connectrig *rig)
{
	unsigned before = rig->told_count;
	int error;

	spokei_engine_refresh(rig->link.engine);
	error = spokei_connector_new(&rig->link, &rig->options, &rig_up, rig, &rig->connector);

	assert_int_equal(rig->told_count, before);
	return error;
}

void connectrig_free(struct connectrig *rig)
{
	spokei_engine_refresh(rig->link.engine);
	spokei_connector_free(rig->connector);
	rig->connector = NULL;
}

int connectrig_listen(struct connectrig *rig, const char *at)
{
	return scene_listen(&rig->server.env, at);
}

int connectrig_accept(struct connectrig *rig, int listener)
{
	return scene_accept(&rig->server.env, listener);
}

void connectrig_speak(struct connectrig *rig, int fd)
{
	/* A heartbeat that requests no reply. */
	unsigned char frame[17] = { 0xda, 0xbb, 0xbb, [11] = 1, [15] = 1, [16] = 0xc0 };

	scene_write(&rig->server.env, fd, frame, sizeof(frame));
}

void connectrig_hang_up(struct connectrig *rig, int fd)
{
	scene_hang_up(&rig->server.env, fd);
}

void connectrig_run(struct connectrig *rig, uint64_t ns)
{
	spokei_world_run(&rig->world, rig->world.now_ns + ns);
}

const struct told *connectrig_wait(struct connectrig *rig, enum spokei_connector_state state)
{
	uint64_t until_ns = rig->world.now_ns + PATIENCE_NS;

	for (;;) {
		while (rig->seen < rig->told_count) {
			const struct told *told = &rig->told[rig->seen++];

			if (told->state == state)
				return told;
		}
		assert_true(spokei_world_step(&rig->world, until_ns));
		assert_true(rig->client.user.fds <= 1); /* one attempt at a time */
	}
}

int connectrig_wait_open(struct connectrig *rig, int listener)
{
	int newest;
	int fd;

	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
	newest = connectrig_accept(rig, listener);
	assert_true(newest >= 0);
	while ((fd = connectrig_accept(rig, listener)) >= 0) {
		connectrig_hang_up(rig, newest);
		newest = fd;
	}
	return newest;
}

uint64_t connectrig_stat(const struct connectrig *rig, enum spoke_stat stat)
{
	return spoke_stat_get(rig->engine, stat);
}

uint64_t connectrig_timers(const struct connectrig *rig)
{
	struct spoke_wheel_counts counts;

	spoke_wheel_counts(rig->engine->wheel, &counts);
	return counts.pending;
}

unsigned connectrig_events(const struct connectrig *rig, int error, const char *words)
{
	struct spoke_event event = { .number = 0 };
	unsigned count = 0;

	while (spoke_event_get(rig->engine, event.number + 1, &event) == 0)
		count += event.error == error && strstr(event.text, words) != NULL;
	return count;
}

void connectrig_assert_pause(uint64_t pause_ns, unsigned failures)
{
	uint64_t middle_ns = SPOKEI_BACKOFF_FIRST_NS;

	for (unsigned i = 0; i < failures && middle_ns < SPOKEI_BACKOFF_CAP_NS; i++)
		middle_ns = middle_ns / 5 * 8;
	if (middle_ns > SPOKEI_BACKOFF_CAP_NS)
		middle_ns = SPOKEI_BACKOFF_CAP_NS;
	/* The tolerance includes a thousandth for integer rounding. */
	assert_in_range(pause_ns, middle_ns / 1000 * 799,
			middle_ns / 1000 * 1201 + CONNECTRIG_TICK);
}
