/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener in the virtual world: a process that listens, and a process without a loop whose
 * sockets the test controls.
 */
#ifndef TESTS_TRANSPORT_LISTEN_LISTENRIG_H
#define TESTS_TRANSPORT_LISTEN_LISTENRIG_H

#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"
#include "transport/listen/listener.h"

#define LISTENRIG_AT "127.0.0.1:20880"

enum {
	LISTENRIG_TAKEN_MAX = 1024
};

struct listenrig {
	struct spokei_world world;
	struct spokei_world_process server;
	struct spokei_world_process client;
	struct spokei_faults faulty; /* wraps the server's environment */
	struct spoke_engine *engine;
	struct spokei_quota quota;
	struct spokei_listener *listener;
	bool let_go;   /* accepted connections are closed at once */
	bool free_now; /* accept() frees the listener */
	unsigned accepted;
	unsigned taken; /* accepted connections that stay open */
	struct {
		int fd;
		struct spokei_quota_peer *quota_peer;
	} kept[LISTENRIG_TAKEN_MAX];
};

/* Makes the world and the server's engine, without a listener. 0 selects the default of a limit. */
void listenrig_open(struct listenrig *rig, uint32_t max, uint32_t per_peer_max, uint64_t timers);

/* Frees everything and asserts that nothing leaked. */
void listenrig_close(struct listenrig *rig);

int listenrig_listen(struct listenrig *rig, const char *at);

/* Connects to an address. Returns the client's descriptor. */
int listenrig_connect(struct listenrig *rig, const char *to);

/* Returns whether the server has closed this connection. */
bool listenrig_ended(struct listenrig *rig, int fd);
void listenrig_hang_up(struct listenrig *rig, int fd);

/* Closes the oldest connections that the server has kept open. */
void listenrig_release(struct listenrig *rig, unsigned count);

void listenrig_run(struct listenrig *rig, uint64_t ns);

uint64_t listenrig_stat(const struct listenrig *rig, enum spoke_stat stat);

/* Counts events with this error whose text contains the words. */
unsigned listenrig_events(const struct listenrig *rig, int error, const char *words);

/* Tests whose parameter is the rig. */
#define LISTEN_TEST(...) TEST_WITH(struct listenrig *rig, *state, __VA_ARGS__)

#endif
