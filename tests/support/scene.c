/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and plain sockets of rigs: see scene.h. */
#include "tests/support/scene.h"

#include <errno.h>
#include <string.h>

#define BACKLOG 16

/* --- the world and its processes */

void scene_open(struct spokei_world *world, uint64_t seed)
{
	assert_true(spokei_world_init(world, seed));
}

struct spoke_engine *scene_engine(struct spokei_world *world, struct spokei_world_process *process,
				  struct spokei_faults *faulty,
				  const struct spoke_engine_options *options)
{
	struct spoke_engine_options with = options ? *options : (struct spoke_engine_options){ 0 };
	struct spoke_engine *engine;

	spokei_world_process_init(process, world);
	with.env = &process->env;
	if (faulty) {
		spokei_faults_init(faulty, &process->env);
		with.env = &faulty->env;
	}
	assert_int_equal(spoke_engine_new(&with, &engine), SPOKE_OK);
	return engine;
}

void scene_leave(struct spokei_world_process *process, const struct spokei_faults *faulty,
		 struct spoke_engine **engine)
{
	if (engine) {
		spoke_engine_free(*engine);
		*engine = NULL;
	}
	if (faulty) {
		assert_int_equal(faulty->blocks, 0);
		assert_int_equal(faulty->fds, 0);
	}
	assert_int_equal(process->blocks, 0);
	assert_int_equal(process->user.fds, 0);
	spokei_world_process_fini(process);
}

void scene_kill(struct spokei_world_process *process)
{
	spokei_vnet_kill(&process->user);
	spokei_world_process_fini(process);
}

void scene_pass(struct spokei_world *world, uint64_t ns)
{
	spokei_world_run(world, world->now_ns + ns);
}

unsigned scene_events(const struct spoke_engine *engine, const char *words)
{
	struct spoke_event event = { .number = 0 };
	unsigned count = 0;

	while (spoke_event_get(engine, event.number + 1, &event) == 0)
		count += strstr(event.text, words) != NULL;
	return count;
}

/* --- sockets without an engine */

int scene_listen(const struct spoke_env *env, const char *at)
{
	struct spoke_address address;
	int fd;

	assert_int_equal(env->net->parse(env->ctx, at, &address), 0);
	assert_int_equal(env->net->listen(env->ctx, &address, BACKLOG, &fd), 0);
	return fd;
}

int scene_accept(const struct spoke_env *env, int listener)
{
	struct spoke_address peer;
	int fd;

	return env->net->accept(env->ctx, listener, &fd, &peer) == 0 ? fd : -1;
}

int scene_connect(const struct spoke_env *env, const char *to)
{
	struct spoke_address address;
	int error;
	int fd;

	assert_int_equal(env->net->parse(env->ctx, to, &address), 0);
	error = env->net->connect(env->ctx, &address, &fd);
	assert_true(error == 0 || error == -EINPROGRESS);
	return fd;
}

void scene_write(const struct spoke_env *env, int fd, const void *bytes, size_t len)
{
	union {
		const void *given;
		void *taken;
	} cast = { .given = bytes };
	struct iovec part = { cast.taken, len };

	assert_int_equal(env->net->write(env->ctx, fd, &part, 1), len);
}

size_t scene_read(const struct spoke_env *env, int fd, void *bytes, size_t size, bool *ret_ended)
{
	unsigned char *at = bytes;
	size_t len = 0;
	ssize_t got = 1;

	while (got > 0 && len < size) {
		got = env->net->read(env->ctx, fd, at + len, size - len);
		if (got > 0)
			len += (size_t)got;
	}
	*ret_ended = got <= 0 && got != -EAGAIN;
	return len;
}

size_t scene_hear(struct spokei_world *world, const struct spoke_env *env, int fd, char *text,
		  size_t size, bool *ret_ended)
{
	size_t len = 0;
	size_t got;

	do {
		scene_pass(world, MS);
		got = scene_read(env, fd, text + len, size - 1 - len, ret_ended);
		len += got;
	} while (got > 0);
	text[len] = '\0';
	return len;
}

void scene_pair(struct spokei_world *world, const struct spoke_env *env, const char *at, int fds[2])
{
	int listener = scene_listen(env, at);

	fds[0] = scene_connect(env, at);
	scene_pass(world, 1);
	assert_int_equal(env->net->finish(env->ctx, fds[0]), 0);
	fds[1] = scene_accept(env, listener);
	assert_true(fds[1] >= 0);
	scene_hang_up(env, listener);
}

void scene_hang_up(const struct spoke_env *env, int fd)
{
	env->net->close(env->ctx, fd);
}
