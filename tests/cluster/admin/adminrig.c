/* SPDX-License-Identifier: Apache-2.0 */
/* An admin page in the virtual world, and its clients. */
#include "tests/cluster/admin/adminrig.h"
#include "tests/support/scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct adminrig adminrig;

static void act(void *arg)
{
	struct adminrig *rig = arg;

	rig->acted++;
	if (rig->then)
		rig->then(rig);
}

static void note_accepted(void *arg, const struct spokei_vnet_news *news)
{
	struct adminrig *rig = arg;

	if (news->act == SPOKEI_VNET_ACCEPT)
		rig->accepted = news->fd;
}

struct spoke_admin_options adminrig_options(void)
{
	static const struct spoke_admin_action actions[] = {
		{ .name = "act", .sentence = "Does \"it\"", .act = act, .arg = &adminrig },
	};

	return (struct spoke_admin_options){
		.listen = ADMINRIG_AT,
		.name = "<b>rig</b>",
		.number = 42,
		.token = ADMINRIG_TOKEN,
		.hosts = "rig.example",
		.actions = actions,
		.action_count = 1,
	};
}

void adminrig_open_bare(void)
{
	struct spoke_engine_options options = { .env = &adminrig.faulty.env };

	adminrig = (struct adminrig){ .engine = NULL };
	scene_open(&adminrig.world, 11);
	spokei_vnet_observe(adminrig.world.net, note_accepted, &adminrig);
	spokei_world_process_init(&adminrig.server, &adminrig.world);
	spokei_world_process_init(&adminrig.client, &adminrig.world);
	spokei_faults_init(&adminrig.faulty, &adminrig.server.env);
	adminrig.faulty.env.forks = &adminrig.forks;
	adminrig.got = malloc(ADMINRIG_READ_MAX);
	assert_non_null(adminrig.got);
	assert_int_equal(spoke_engine_new(&options, &adminrig.engine), SPOKE_OK);
}

void adminrig_open(void)
{
	struct spoke_admin_options options = adminrig_options();

	adminrig_open_bare();
	assert_int_equal(spoke_admin_new(adminrig.engine, &options, &adminrig.admin), SPOKE_OK);
}

void adminrig_close(void)
{
	scene_leave(&adminrig.server, &adminrig.faulty, &adminrig.engine);
	scene_kill(&adminrig.client);
	spokei_world_fini(&adminrig.world);
	free(adminrig.got);
}

RIG_STEP(adminrig_set_up)
{
	adminrig_open();
}

RIG_STEP(adminrig_tear_down)
{
	adminrig_close();
}

void adminrig_run(uint64_t ns)
{
	spokei_world_run(&adminrig.world, adminrig.world.now_ns + ns);
}

int adminrig_connect(void)
{
	return scene_connect(&adminrig.client.env, ADMINRIG_AT);
}

void adminrig_send(int fd, const char *text)
{
	scene_write(&adminrig.client.env, fd, text, strlen(text));
}

const char *adminrig_read(int fd, bool *ret_ended)
{
	(void)scene_hear(&adminrig.world, &adminrig.client.env, fd, adminrig.got, ADMINRIG_READ_MAX,
			 ret_ended);
	return adminrig.got;
}

void adminrig_hang_up(int fd)
{
	scene_hang_up(&adminrig.client.env, fd);
}

const char *adminrig_ask(const char *request)
{
	int fd = adminrig_connect();
	const char *answer;
	bool ended;

	adminrig_run(MS);
	adminrig_send(fd, request);
	answer = adminrig_read(fd, &ended);
	assert_true(ended);
	adminrig_hang_up(fd);
	adminrig_run(MS);
	return answer;
}

int adminrig_status(const char *request)
{
	const char *answer = adminrig_ask(request);

	assert_memory_equal(answer, "HTTP/1.1 ", 9);
	return (int)strtol(answer + 9, NULL, 10);
}

uint64_t adminrig_timers(void)
{
	const struct spoke_wheel *wheel = spoke_engine_wheel(adminrig.engine);
	struct spoke_wheel_counts counts;

	assert_int_equal(spoke_wheel_class_counts(wheel, adminrig.admin->timer_class, &counts,
						  NULL),
			 SPOKE_WHEEL_OK);
	return counts.pending;
}
