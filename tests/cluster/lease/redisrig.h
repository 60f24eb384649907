/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in the virtual world, and a server without a loop: the test reads the commands that have
 * arrived there and writes the bytes of the replies. The rig records what the store reports.
 */
#ifndef TESTS_CLUSTER_LEASE_REDISRIG_H
#define TESTS_CLUSTER_LEASE_REDISRIG_H

#include "cluster/config/store.h"
#include "cluster/lease/link.h"
#include "cluster/lease/redis.h"
#include "core/engine/engine.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/engine.h>

#include <string.h>

#define REDISRIG_AT "127.0.0.1:6379"
#define REDISRIG_SHA "0123456789012345678901234567890123456789"

enum {
	REDISRIG_TEXT = 2048,
	REDISRIG_BYTES = 16384,
	REDISRIG_CONNS = 64
};

struct redisrig {
	struct spokei_world world;
	struct spokei_world_process client;
	struct spokei_world_process server;
	struct spokei_faults faulty; /* wraps the client's environment */
	struct spoke_engine *engine;
	struct spokei_redis_options options;
	struct spokei_store store; /* at first: REDISRIG_AT */
	struct spokei_redis *redis;
	int listener;
	unsigned ready;
	unsigned down;
	int down_error;
	char down_text[REDISRIG_TEXT];
	unsigned subscribed;
	unsigned messages;
	struct spokei_redis_channel *channel; /* of the last report */
	char payload[REDISRIG_TEXT];
	void (*on_down)(struct redisrig *rig);
	void (*on_ready)(struct redisrig *rig);
	void (*on_message)(struct redisrig *rig);
	/* Bytes of each connection of the server that are read, but not taken as commands. */
	size_t held[REDISRIG_CONNS];
	unsigned char bytes[REDISRIG_CONNS][REDISRIG_BYTES];
};

/* An ask that records its answer. */
struct redisask {
	struct spokei_redis_ask ask;
	unsigned done;
	int error;
	char reply[REDISRIG_TEXT];            /* e.g. "[0 '17']" */
	void (*first)(struct redisask *told); /* called before the reply is read; may be NULL */
	void (*then)(struct redisask *told);  /* ... and afterwards */
	struct redisrig *rig;
};

int redisrig_set_up(void **state);
int redisrig_tear_down(void **state);

/* Makes the store with the rig's options. */
int redisrig_start(struct redisrig *rig);

/* Make the store and accept its connection; read its greeting; answer it with id 7. */
int redisrig_begin(struct redisrig *rig);
int redisrig_greeted(struct redisrig *rig);
int redisrig_open(struct redisrig *rig);

/* Listens at an address. */
int redisrig_listen(struct redisrig *rig, const char *at);

/* Steps until a connection has come in, and accepts it. */
int redisrig_accept_at(struct redisrig *rig, int listener);
int redisrig_accept(struct redisrig *rig);

/* Returns whether a connection waits to be accepted. */
bool redisrig_called(struct redisrig *rig);

void redisrig_run(struct redisrig *rig, uint64_t ns);

/* Steps until a command has arrived; asserts that it is this one, its texts joined by spaces. A
 * text that ends in "*" stands for all that begin so. */
void redisrig_expect(struct redisrig *rig, int fd, const char *command);

/* Asserts that no command has arrived. */
void redisrig_expect_none(struct redisrig *rig, int fd);

/* Steps until the client has closed the connection, and closes the server's end. */
void redisrig_expect_end(struct redisrig *rig, int fd);

/* Writes bytes, and lets them arrive. */
void redisrig_say(struct redisrig *rig, int fd, const char *bytes);
void redisrig_say_bytes(struct redisrig *rig, int fd, const void *bytes, size_t len);
void redisrig_hang_up(struct redisrig *rig, int fd);

/* Reads the first commands of a store without password or number, and answers as a primary whose
 * connections count from 1. */
void redisrig_expect_greeting(struct redisrig *rig, int fd);
void redisrig_answer_greeting(struct redisrig *rig, int fd, unsigned id);

/* Accepts and greets. Returns the connection, with id 7. */
int redisrig_welcome(struct redisrig *rig);

/* Sends "GET name". */
int redisrig_ask(struct redisrig *rig, struct redisask *ask, const char *name);

/* Sends an ask for a script with `keys` and `count` texts k0, k1, ... */
int redisrig_run_script(struct redisrig *rig, struct redisask *ask, enum spokei_script script,
			unsigned keys, unsigned count);

/* Returns the number of events whose text contains the words. */
unsigned redisrig_events(const struct redisrig *rig, const char *words);

/* Tests whose parameter is the rig. */
#define REDIS_TEST(...) TEST_WITH(struct redisrig *rig, *state, __VA_ARGS__)

#endif
