/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of tests of the Redis in memory: a server, a second one, and two clients, which are
 * sockets without a loop. */
#ifndef TESTS_CLUSTER_LEASE_FAKEREDISRIG_H
#define TESTS_CLUSTER_LEASE_FAKEREDISRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/redis/redis.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define FAKEREDISRIG_AT "127.0.0.1:6379"
#define FAKEREDISRIG_REPLICA_AT "127.0.0.1:6380"

struct fakeredisrig_client {
	struct spokei_vnet_user user;
	int fd;
};

struct fakeredisrig {
	struct spokei_world world;
	struct fakeredis server;
	struct fakeredis replica;       /* not started */
	struct fakeredisrig_client one; /* connected to the server */
	struct fakeredisrig_client two;
};

extern struct fakeredisrig fakeredisrig;

int fakeredisrig_set_up(void **state);
int fakeredisrig_tear_down(void **state);

void fakeredisrig_pass(uint64_t ns);
void fakeredisrig_connect(struct fakeredisrig_client *client, const char *at);
void fakeredisrig_put(struct fakeredisrig_client *client, const void *bytes, size_t len);

/* Sends a command, given as words separated by spaces; '~' stands for a space in a word. */
void fakeredisrig_send(struct fakeredisrig_client *client, const char *words);

/* Asserts what the client has received since the last time; "END": the connection has ended. */
void fakeredisrig_got(struct fakeredisrig_client *client, const char *expected);

/* Sends a command of the first client, and asserts the answer. */
void fakeredisrig_answer(const char *words, const char *expected);

#endif
