/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture of network tests, with a listener, on TCP over IPv4 and IPv6, unix sockets, or memory.
 * Each test of a group runs on each of them.
 */
#ifndef TESTS_CORE_HOST_NETRIG_H
#define TESTS_CORE_HOST_NETRIG_H

#include "core/virtual/net.h"
#include "tests/support/test.h"

#define NETRIG_BACKLOG 64

/* A kind of network to test. */
struct medium {
	const char *name;
	const char *at; /* listening address; NULL: a path in the rig's folder */
	bool in_memory;
	struct spokei_vnet_link link; /* faults of the in-memory network */
};

struct netrig {
	struct spokei_vnet_user user; /* the in-memory network's context */
	uint64_t now_ns;
	const struct spoke_net *net;
	const struct medium *on;
	bool absent; /* the machine has no such network */
	int listener;
	struct spoke_address at; /* listening address */
	char folder[64];
	char text[128];
};

/* Returns the rig of a test. Skips the test if the machine has no such network. */
struct netrig *netrig_begin(void **state);

/* Waits until the descriptor is ready for any of `io`. */
void netrig_wait_for(struct netrig *rig, int fd, unsigned io);

/* Connects and waits until the connection is established. Returns the descriptor. */
int netrig_connect_to(struct netrig *rig, const struct spoke_address *to);
int netrig_accept_one(struct netrig *rig, struct spoke_address *ret_peer);

/* Connects a pair: [0] is the connecting end, [1] the accepted one. */
void netrig_make_pair(struct netrig *rig, int *ret_ends);
void netrig_close_pair(struct netrig *rig, const int *ends);

ssize_t netrig_try_write(struct netrig *rig, int fd, const char *bytes, size_t len);
void netrig_write_all(struct netrig *rig, int fd, const char *bytes, size_t len);

/* Reads like read(), but waits until there is something to read. */
ssize_t netrig_read_some(struct netrig *rig, int fd, char *bytes, size_t len);

/* Assert that this text arrives, that the stream has ended, that both addresses print the same. */
void netrig_assert_reads(struct netrig *rig, int fd, const char *text);
void netrig_assert_ended(struct netrig *rig, int fd);
void netrig_assert_same(struct netrig *rig, const struct spoke_address *a,
			const struct spoke_address *b);

/* Runs each test on each network; test names contain both. Returns the number of failures. */
int netrig_run(const char *group, const struct CMUnitTest *tests, size_t count);

/* Tests whose parameter is the rig. */
#define NET_TEST(...) TEST_WITH(struct netrig *rig, netrig_begin(state), __VA_ARGS__)

#endif
