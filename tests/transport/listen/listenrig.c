/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the listener tests: see listenrig.h. */
#include "tests/transport/listen/listenrig.h"
#include "core/engine/engine.h"
#include "tests/support/scene.h"

#include <spoke/engine.h>
#include <spoke/stats.h>

#include <errno.h>
#include <string.h>

static void note_accept(void *arg, int fd, const struct spoke_address *peer, unsigned marks)
{
	struct listenrig *rig = arg;
	const struct spoke_env *env = rig->engine->env;
	struct spokei_quota_peer *quota_peer = spokei_quota_peer(&rig->quota, peer);

	(void)marks;
	rig->accepted++;
	if (rig->free_now) {
		spokei_listener_free(rig->listener);
		rig->listener = NULL;
	}
	if (rig->let_go) {
		env->net->close(env->ctx, fd);
		spokei_quota_leave(&rig->quota, quota_peer);
		return;
	}
	assert_in_range(rig->taken, 0, LISTENRIG_TAKEN_MAX - 1);
	rig->kept[rig->taken].fd = fd;
	rig->kept[rig->taken].quota_peer = quota_peer;
	rig->taken++;
}

void listenrig_open(struct listenrig *rig, uint32_t max, uint32_t per_peer_max, uint64_t timers)
{
	struct spoke_engine_options options = { .timers_max = timers };
	const struct spokei_quota_limits limits = { .max = max, .per_peer_max = per_peer_max };

	*rig = (struct listenrig){ .listener = NULL };
	scene_open(&rig->world, 11);
	rig->engine = scene_engine(&rig->world, &rig->server, &rig->faulty, &options);
	spokei_world_process_init(&rig->client, &rig->world);
	spokei_quota_init(&rig->quota, &rig->faulty.env, &limits);
}

void listenrig_close(struct listenrig *rig)
{
	listenrig_release(rig, rig->taken);
	spokei_listener_free(rig->listener);
	spokei_quota_fini(&rig->quota);
	scene_leave(&rig->server, &rig->faulty, &rig->engine);
	scene_kill(&rig->client);
	spokei_world_fini(&rig->world);
}

int listenrig_listen(struct listenrig *rig, const char *at)
{
	const struct spoke_env *env = &rig->client.env;
	struct spoke_address address;

	assert_int_equal(env->net->parse(env->ctx, at, &address), 0);
	return spokei_listener_new(rig->engine, &(struct spokei_listener_at){ .address = &address },
				   &rig->quota, note_accept, rig, &rig->listener);
}

int listenrig_connect(struct listenrig *rig, const char *to)
{
	return scene_connect(&rig->client.env, to);
}

bool listenrig_ended(struct listenrig *rig, int fd)
{
	const struct spoke_env *env = &rig->client.env;
	char byte;
	ssize_t got = env->net->read(env->ctx, fd, &byte, 1);

	return got == 0 || got == -ECONNRESET;
}

void listenrig_hang_up(struct listenrig *rig, int fd)
{
	scene_hang_up(&rig->client.env, fd);
}

void listenrig_release(struct listenrig *rig, unsigned count)
{
	const struct spoke_env *env = rig->engine->env;

	for (unsigned i = 0; i < count; i++) {
		env->net->close(env->ctx, rig->kept[i].fd);
		spokei_quota_leave(&rig->quota, rig->kept[i].quota_peer);
	}
	rig->taken -= count;
	memmove(rig->kept, rig->kept + count, rig->taken * sizeof(rig->kept[0]));
}

void listenrig_run(struct listenrig *rig, uint64_t ns)
{
	spokei_world_run(&rig->world, rig->world.now_ns + ns);
}

uint64_t listenrig_stat(const struct listenrig *rig, enum spoke_stat stat)
{
	return spoke_stat_get(rig->engine, stat);
}

unsigned listenrig_events(const struct listenrig *rig, int error, const char *words)
{
	struct spoke_event event = { .number = 0 };
	unsigned count = 0;

	while (spoke_event_get(rig->engine, event.number + 1, &event) == 0)
		count += event.error == error && strstr(event.text, words) != NULL;
	return count;
}
