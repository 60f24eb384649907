/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connector in the virtual world: a process that connects, and another that has no loop and whose
 * sockets the test moves by hand. What the connector tells is written down.
 */
#ifndef TESTS_TRANSPORT_CONNECT_CONNECTRIG_H
#define TESTS_TRANSPORT_CONNECT_CONNECTRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/connect/connector.h"

#include <spoke/link.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define CONNECTRIG_TICK MS

enum {
	CONNECTRIG_TOLD_MAX = 512,
	CONNECTRIG_NEVER = -1, /* no state */
};

/* What the connector told. */
struct told {
	enum spokei_connector_state state;
	int error;
	uint64_t at_ns;
	char peer[64]; /* of its connection; "": none */
};

struct connectrig {
	struct spokei_world world;
	struct spokei_world_process client;
	struct spokei_world_process server;
	struct spokei_faults faulty; /* around the client's environment */
	struct spoke_engine *engine;
	struct spokei_link link;
	struct spokei_connector_options options; /* dubbo at 127.0.0.1:20880 at first */
	struct spokei_connector *connector;
	int free_in; /* `changed` frees the connector when told of this state */
	struct told told[CONNECTRIG_TOLD_MAX];
	unsigned told_count;
	unsigned seen; /* of them, by connectrig_wait() */
};

void connectrig_open(struct connectrig *rig, uint64_t seed);

/* Ends all, and looks for what was left behind. */
void connectrig_close(struct connectrig *rig);

/* As cmocka wants them. */
int connectrig_set_up(void **state);
int connectrig_tear_down(void **state);

/* Makes the connector, by the options. */
int connectrig_start(struct connectrig *rig);
void connectrig_free(struct connectrig *rig);

/* The server listens; takes the connection that waits, or -1; speaks on it; closes it. */
int connectrig_listen(struct connectrig *rig, const char *at);
int connectrig_accept(struct connectrig *rig, int listener);
void connectrig_speak(struct connectrig *rig, int fd);
void connectrig_hang_up(struct connectrig *rig, int fd);

void connectrig_run(struct connectrig *rig, uint64_t ns);

/* Goes on until the connector tells this state, and returns what it told. */
const struct told *connectrig_wait(struct connectrig *rig, enum spokei_connector_state state);

/* OPEN, and its connection is accepted: the server's end. Older ones that wait are closed. */
int connectrig_wait_open(struct connectrig *rig, int listener);

uint64_t connectrig_stat(const struct connectrig *rig, enum spoke_stat stat);

/* Timers that are armed. */
uint64_t connectrig_timers(const struct connectrig *rig);

/* Events with this error whose text has these words. */
unsigned connectrig_events(const struct connectrig *rig, int error, const char *words);

/* Is it the pause after `failures` failed rounds, give or take a fifth and a tick? */
void connectrig_assert_pause(uint64_t pause_ns, unsigned failures);

#endif
