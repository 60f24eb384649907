/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of rigs in the virtual world: processes with engines, and sockets without an engine,
 * whose bytes the test writes and reads by itself.
 *
 *     scene_open(&world, 5);
 *     engine = scene_engine(&world, &process, &faulty, NULL);
 *     ...
 *     scene_leave(&process, &faulty, &engine);
 *     spokei_world_fini(&world);
 *
 * Whatever fails here fails the test.
 */
#ifndef TESTS_SUPPORT_SCENE_H
#define TESTS_SUPPORT_SCENE_H

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/stats.h>

/* --- the world and its processes */

void scene_open(struct spokei_world *world, uint64_t seed);

/* Makes a process and its engine. The engine's environment is wrapped by `faulty` unless that is
 * NULL. `options` may be NULL; their env is not used. */
struct spoke_engine *scene_engine(struct spokei_world *world, struct spokei_world_process *process,
				  struct spokei_faults *faulty,
				  const struct spoke_engine_options *options);

/* Frees the engine unless `engine` is NULL, and ends the process; asserts that no memory and no
 * descriptor leaked. */
void scene_leave(struct spokei_world_process *process, const struct spokei_faults *faulty,
		 struct spoke_engine **engine);

/* Ends a process without an engine and closes its sockets. */
void scene_kill(struct spokei_world_process *process);

void scene_pass(struct spokei_world *world, uint64_t ns);

/* Returns the number of events whose text contains the words. */
unsigned scene_events(const struct spoke_engine *engine, const char *words);

/* --- sockets without an engine, of any environment */

int scene_listen(const struct spoke_env *env, const char *at);

/* Returns a connection that waits, or -1. */
int scene_accept(const struct spoke_env *env, int listener);

/* Returns a descriptor; the connection is perhaps not yet open. */
int scene_connect(const struct spoke_env *env, const char *to);

/* Writes all the bytes. */
void scene_write(const struct spoke_env *env, int fd, const void *bytes, size_t len);

/* Reads all that has arrived, at most `size` bytes. Returns their number; *ret_ended tells whether
 * the other side has ended the connection. */
size_t scene_read(const struct spoke_env *env, int fd, void *bytes, size_t size, bool *ret_ended);

/* Reads all that comes until nothing has come for a millisecond, at most `size - 1` bytes, and ends
 * it with a NUL. Returns the length. */
size_t scene_hear(struct spokei_world *world, const struct spoke_env *env, int fd, char *text,
		  size_t size, bool *ret_ended);

/* Connects two sockets of an environment by a listener at `at`; the second one is accepted. */
void scene_pair(struct spokei_world *world, const struct spoke_env *env, const char *at,
		int fds[2]);

void scene_hang_up(const struct spoke_env *env, int fd);

#endif
