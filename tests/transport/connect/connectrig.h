/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connector in the virtual world: a process that connects, and a server without a loop whose
 * sockets the test controls. The rig records the connector's reports.
 */
#ifndef TESTS_TRANSPORT_CONNECT_CONNECTRIG_H
#define TESTS_TRANSPORT_CONNECT_CONNECTRIG_H

#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/connect/connector.h"

#include <spoke/link.h>

#define CONNECTRIG_TICK MS

enum {
	CONNECTRIG_TOLD_MAX = 512,
	CONNECTRIG_NEVER = -1, /* no state */
};

/* A report of the connector. */
struct told {
	enum spokei_connector_state state;
	int error;
	uint64_t at_ns;
	char peer[64]; /* peer address of its connection; "": no connection */
};

struct connectrig {
	struct spokei_world world;
	struct spokei_world_process client;
	struct spokei_world_process server;
	struct spokei_faults faulty; /* wraps the client's environment */
	struct spoke_engine *engine;
	struct spokei_link link;
	struct spokei_connector_options options; /* at first: dubbo at 127.0.0.1:20880 */
	struct spokei_connector *connector;
	int free_in;   /* `changed` frees the connector in this state */
	int retire_in; /* ... or retires it */
	struct told told[CONNECTRIG_TOLD_MAX];
	unsigned told_count;
	unsigned seen; /* reports consumed by connectrig_wait() */
};

void connectrig_open(struct connectrig *rig, uint64_t seed);

/* Frees everything and asserts that nothing leaked. */
void connectrig_close(struct connectrig *rig);

/* Set-up and tear-down functions for cmocka. */
int connectrig_set_up(void **state);
int connectrig_tear_down(void **state);

/* Makes the connector with the rig's options. */
int connectrig_start(struct connectrig *rig);
void connectrig_free(struct connectrig *rig);

/* Server side: listen; accept the waiting connection, or return -1; send a frame; close. */
int connectrig_listen(struct connectrig *rig, const char *at);
int connectrig_accept(struct connectrig *rig, int listener);
void connectrig_speak(struct connectrig *rig, int fd);
void connectrig_hang_up(struct connectrig *rig, int fd);

void connectrig_run(struct connectrig *rig, uint64_t ns);

/* Runs until the connector reports this state. Returns that report. */
const struct told *connectrig_wait(struct connectrig *rig, enum spokei_connector_state state);

/* Waits for OPEN and accepts the connection; older waiting ones are closed. Returns the server's
 * end. */
int connectrig_wait_open(struct connectrig *rig, int listener);

uint64_t connectrig_stat(const struct connectrig *rig, enum spoke_stat stat);

/* Returns the number of armed timers. */
uint64_t connectrig_timers(const struct connectrig *rig);

/* Returns the number of events with this error whose text contains the words. */
unsigned connectrig_events(const struct connectrig *rig, int error, const char *words);

/* Asserts that this is the backoff after `failures` failed rounds, plus or minus a fifth and a
 * tick. */
void connectrig_assert_pause(uint64_t pause_ns, unsigned failures);

/* Tests whose parameter is the rig. */
#define CONNECT_TEST(...) TEST_WITH(struct connectrig *rig, *state, __VA_ARGS__)

#endif
