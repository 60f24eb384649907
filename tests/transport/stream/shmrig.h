/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams over shared memory that face each other without a connection. */
#ifndef TESTS_TRANSPORT_STREAM_SHMRIG_H
#define TESTS_TRANSPORT_STREAM_SHMRIG_H

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"
#include "transport/stream/shm/parts.h"

#include <spoke/engine.h>

#define SHMRIG_PLACE "unix:/run/x.sock"

struct shmrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spokei_stream sides[2]; /* that connects, that has accepted */
};

/* Set-up and tear-down functions for cmocka: streams that are not open, and nothing left. */
int shmrig_set_up(void **state);
int shmrig_tear_down(void **state);

/* Opens both. */
void shmrig_open(struct shmrig *pair);

struct spokei_shm_link *shmrig_link(struct shmrig *pair, size_t side);

/* Writes, or reads, at most 8192 bytes. */
ssize_t shmrig_write(struct shmrig *pair, size_t side, size_t len);
ssize_t shmrig_read(struct shmrig *pair, size_t side, size_t len);

/* Has both sides wait for these events, and sleep. */
void shmrig_sleep(struct shmrig *pair, unsigned first, unsigned second);

/* Returns whether a bell, or the peer's end, waits at the socket. */
bool shmrig_is_rung(struct shmrig *pair, size_t side);

/* Tests whose parameter is the rig. */
#define SHM_TEST(...) TEST_WITH(struct shmrig *pair, *state, __VA_ARGS__)

#endif
