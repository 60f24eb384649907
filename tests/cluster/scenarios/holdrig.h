/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a provider in the virtual world over a stream that takes bytes and passes them on a few
 * at a time, and a peer without a stream, which is controlled by the test.
 */
#ifndef TESTS_CLUSTER_SCENARIOS_HOLDRIG_H
#define TESTS_CLUSTER_SCENARIOS_HOLDRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/cluster/peer.h"

#include <spoke/provider.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum {
	HOLDRIG_TIMERS = 64, /* maximum number of armed timers of the engine */
	HOLDRIG_CONNS = 3,
	HOLDRIG_LONG = 200000, /* bytes of a long value: more than the network holds */
};

struct holdrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_method *news; /* a push method */
	struct peer peer;
	struct peer_conn conns[HOLDRIG_CONNS];
	unsigned replies;      /* that the peer has read */
	bool opens;            /* the handshake of the stream ends */
	size_t write_max;      /* bytes that one write takes */
	int read_error;        /* negative errno of each read; 0: it reads */
	unsigned early_reads;  /* calls of read() before the stream was open */
	unsigned late_flushes; /* calls of flush() after the stream was closed */
	unsigned lent_parts;   /* parts of write() in the memory of holdrig_long() */
	unsigned served;       /* requests that were handled */
	unsigned forks;        /* what the engine takes for the number of forks */
	struct spoke_alarm alarms[HOLDRIG_TIMERS];
};

extern struct holdrig holdrig;

/* Set-up and tear-down functions for cmocka. The provider uses the stream. */
int holdrig_set_up(void **state);
int holdrig_tear_down(void **state);

void holdrig_pass(uint64_t ns);
uint64_t holdrig_stat(enum spoke_stat stat);

/* Makes the provider use the plain socket for connections that come. */
void holdrig_use_socket(void);

/* Returns a value of HOLDRIG_LONG bytes, which are static. */
struct spoke_value holdrig_long(void);

/* Connects the peer to the provider; by default without heartbeats, which MessagePack-RPC has not.
 */
struct peer_conn *holdrig_connect(void);
struct peer_conn *holdrig_connect_by(const char *wire);

/* Makes the peer send a request: "short" is answered with nil, "long" with holdrig_long(), "fork"
 * too late with nil, because the provider is a forked child then. */
void holdrig_ask(struct peer_conn *conn, const char *method);

/* Makes the peer read for 1 s, or until the end. */
void holdrig_read(struct peer_conn *conn);

/* Sets alarms until the engine has no timer left. */
void holdrig_use_up_timers(void);

#endif
