/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: an engine in the virtual world whose writes are recorded, with a provider or a consumer,
 * and a peer controlled by the test.
 */
#ifndef TESTS_CLUSTER_SCENARIOS_EARLYRIG_H
#define TESTS_CLUSTER_SCENARIOS_EARLYRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/cluster/peer.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#define EARLYRIG_WRITES 8 /* maximum number of recorded writes */

struct earlyrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_method *echo;
	struct peer peer;
	struct peer_conn conn;
	uint64_t id;        /* of the last request that the peer has read */
	unsigned read;      /* messages read by the peer */
	unsigned handled;   /* requests handled by the provider */
	unsigned ended;     /* ended calls of the consumer */
	int error;          /* of the last ended call */
	void (*then)(void); /* called after a successful call; may be NULL */
	bool keeps;         /* the provider does not answer, but keeps the request */
	struct spoke_request *kept;
	uint64_t first_ns;   /* time of the turn in which the first of these was handled or ended */
	uint64_t bytes_then; /* bytes written at that moment */
	uint64_t bytes_last; /* bytes written at the last one of that turn */
	ssize_t writes[EARLYRIG_WRITES]; /* results of write() */
	unsigned write_count;
	unsigned refused; /* index of the write that is replaced */
	ssize_t refusal;  /* its result; 0: none is replaced */
	struct spoke_net net;
	unsigned forks; /* fork counter of the environment */
};

extern struct earlyrig earlyrig;

int earlyrig_set_up(void **state);
int earlyrig_tear_down(void **state);

void earlyrig_pass(void);

/* Makes the peer read the available messages and count those of this kind. */
void earlyrig_read(enum spokei_kind kind);

/* Make an echo provider to which the peer is connected, and a request that is not written yet. */
void earlyrig_serve(void);
void earlyrig_request(uint64_t id, const unsigned char *value, size_t len);

/* Make a consumer that is connected to the peer, and a call. */
void earlyrig_consume(const char *wire);
void earlyrig_call(const unsigned char *value, size_t len);

#endif
