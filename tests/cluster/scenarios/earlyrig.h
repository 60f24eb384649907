/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine in the virtual world whose writes are noted, with a provider or a consumer, and a peer
 * that is moved by hand.
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

#define EARLYRIG_WRITES 8 /* at most so many are noted */

struct earlyrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_method *echo;
	struct peer peer;
	struct peer_conn conn;
	uint64_t id;        /* of the request that the peer has read last */
	unsigned read;      /* messages, by the peer */
	unsigned handled;   /* by the provider */
	unsigned ended;     /* calls of the consumer */
	int error;          /* of the one that has ended last */
	void (*then)(void); /* when one has ended well; may be NULL */
	bool keeps;         /* the provider does not answer: */
	struct spoke_request *kept;
	uint64_t first_ns;   /* the turn in which the first of these was handled, or ended */
	uint64_t bytes_then; /* written then ... */
	uint64_t bytes_last; /* ... and when the last one of that turn was */
	ssize_t writes[EARLYRIG_WRITES]; /* what the calls of write() have given */
	unsigned write_count;
	unsigned refused; /* which of them gives ... */
	ssize_t refusal;  /* ... this instead; 0: none does */
	struct spoke_net net;
	unsigned forks; /* as the environment tells them */
};

extern struct earlyrig earlyrig;

int earlyrig_set_up(void **state);
int earlyrig_tear_down(void **state);

void earlyrig_pass(void);

/* The peer reads what has come, and counts messages of this kind. */
void earlyrig_read(enum spokei_kind kind);

/* A provider that echoes, to which the peer is connected; and a request for that, not written yet.
 */
void earlyrig_serve(void);
void earlyrig_request(uint64_t id, const unsigned char *value, size_t len);

/* A consumer that is connected to the peer; and a call of it. */
void earlyrig_consume(const char *wire);
void earlyrig_call(const unsigned char *value, size_t len);

#endif
