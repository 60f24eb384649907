/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture of the in-memory network: a clock that the test sets, a client and a server. */
#ifndef TESTS_CORE_VIRTUAL_NETRIG_H
#define TESTS_CORE_VIRTUAL_NETRIG_H

#include "core/virtual/net.h"
#include "tests/support/test.h"

#define NEVER UINT64_MAX

/* Two processes on one network; the server listens. */
struct memrig {
	struct spokei_vnet_user client; /* first: the rig is the client's context */
	struct spokei_vnet_user server;
	struct spokei_vnet *net;
	uint64_t now_ns;
	struct spoke_address at;
	int listener;
	int near; /* the client's end of a connection */
	int far;  /* the server's end */
};

/* Makes the fixture. Its server listens on 127.0.0.1:20880. */
void memrig_open(struct memrig *rig, uint64_t seed, int backlog);

/* Set-up and tear-down functions for cmocka. */
int memrig_set_up(void **state);
int memrig_tear_down(void **state);

struct spoke_address memrig_parse(const char *text);

/* Starts to connect the client. Returns the descriptor. */
int memrig_start_connect(struct memrig *rig);

/* Accepts a connection of the server. Returns the descriptor or a negative errno. */
int memrig_accept_next(struct memrig *rig);

/* Connects `near` to `far`. */
void memrig_make_pair(struct memrig *rig);

/* Write arbitrary bytes and read available bytes. Return the result of the network's call. */
ssize_t memrig_put(struct memrig *rig, int fd, size_t len);
ssize_t memrig_get(struct memrig *rig, int fd);

void memrig_pass(struct memrig *rig, uint64_t ns);

/* Tests whose parameter is the rig. */
#define MEM_TEST(...) TEST_WITH(struct memrig *rig, *state, __VA_ARGS__)

#endif
