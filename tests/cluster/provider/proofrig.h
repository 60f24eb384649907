/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a provider that asks for tokens, and a peer that writes frames as it likes, in the
 * virtual world.
 */
#ifndef TESTS_CLUSTER_PROVIDER_PROOFRIG_H
#define TESTS_CLUSTER_PROVIDER_PROOFRIG_H

#include "core/virtual/files.h"
#include "tests/cluster/peer.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"
#include "transport/wire/dubbo/dubbo.h"
#include "transport/wire/http/http.h"
#include "transport/wire/mprpc.h"

#include <spoke/config.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define AT "127.0.0.1:20880"
#define FILE_NAME "a.conf"
#define CONNS 4
#define SECRET "correct-horse-1"
#define OTHER "battery-staple-2"

struct proofrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_config *config;
	struct peer peer;
	struct peer_conn conns[CONNS];
	uint64_t id;
	unsigned served;
	unsigned lines; /* of the log, from the room "proof" */
	char line[512]; /* the last of them */
	/* The replies to a connection since it last sent something. */
	struct seen {
		unsigned count;
		unsigned probes; /* answers to heartbeats */
		int error;       /* of the last one */
		int32_t code;
		char text[256];
	} seen[CONNS];
};

extern struct proofrig proofrig;

int proofrig_set_up(void **state);
int proofrig_tear_down(void **state);

void proofrig_pass(void);
uint64_t proofrig_stat(enum spoke_stat which);

/* Make the provider of "demo.A" and "demo.B", each with the method "get": with these options, with
 * this token (NULL: none), or with this settings file, which the last one replaces (NULL: only
 * other files have changed). */
void proofrig_start(const struct spoke_provider_options *options);
void proofrig_provide(const char *token);
void proofrig_configure(const char *text);
int proofrig_reconfigure(const char *text);

/* Opens a connection of the peer, in place of the one before. */
void proofrig_open(unsigned which, const struct spokei_wire *wire);

/* Queues a request. `token` NULL: none. `filler`: bytes of an argument. */
void proofrig_put(unsigned which, const char *service, const char *method, const char *token,
		  size_t filler);

/* Writes the queued bytes, as far as the network takes them. */
void proofrig_flush(unsigned which);

/* Notes a message; the argument is a struct seen. */
void proofrig_take(void *arg, struct peer_conn *conn, const struct spokei_message *message);

/* Sends the queued bytes, and reads the replies. Returns the error of the last one; -1: none came.
 */
int proofrig_ask(unsigned which);

/* Calls "get" of a service. */
int proofrig_call(unsigned which, const char *service, const char *token);

/* Calls "$token". */
int proofrig_show(unsigned which, const char *token);

/* Asserts that a call was refused for want of credentials. */
void proofrig_forbidden(unsigned which, int error, const char *service);

#endif
