/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One side of links in the virtual world, a provider or a consumer, whose peer is moved by hand;
 * and what the side was told of its links, and the peer has read.
 */
#ifndef TESTS_CLUSTER_SCENARIOS_LINKRIG_H
#define TESTS_CLUSTER_SCENARIOS_LINKRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/faults.h"
#include "tests/cluster/peer.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define TICK MS
#define LINKRIG_AT "127.0.0.1:20880" /* where the provider or the peer listens */

struct linkrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine; /* NULL: freed */
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct peer peer;
	int listener; /* the peer's */
	struct peer_conn conn;
	const char *wire;                                   /* of conn */
	unsigned told[SPOKE_LINK_RECONNECTING + 1];         /* by change */
	enum spoke_link_change last;                        /* ... and the last one */
	enum spoke_event_user user;                         /* the same */
	int error;                                          /* of the last CLOSED */
	void (*then)(const struct spoke_link_event *event); /* done as one is told; may be NULL */
	unsigned read[SPOKEI_EVENT + 1];                    /* by kind of message */
	struct spoke_request *held;                         /* by linkrig_hold */
	unsigned abandoned;
};

extern struct linkrig linkrig;

int linkrig_set_up(void **state);
int linkrig_tear_down(void **state);

void linkrig_pass(uint64_t ns);
uint64_t linkrig_stat(enum spoke_stat stat);

/* The side, which speaks this wire. A provider's methods are "echo" and "later"; a consumer holds
 * what is pushed to it. Both tell the rig of their links. */
void linkrig_provide(const char *wire, const struct spoke_provider_options *options);
void linkrig_consume(const char *wire, const struct spoke_consumer_options *options);

/* Keeps the request for linkrig_answer(). */
void linkrig_hold(struct spoke_request *request, void *arg);
void linkrig_answer(void);

/* The peer connects to the provider; takes the consumer's connection, and returns whether there was
 * one. */
void linkrig_connect(void);
bool linkrig_accept(void);

/* The peer writes: a message without content, a request, bytes. */
void linkrig_say(enum spokei_kind kind);
void linkrig_ask(const char *method);
void linkrig_write(const void *bytes, size_t len);

/* The peer reads what is there. */
void linkrig_read(void);

/* The process is held up for `ns` in each turn from now on. */
void linkrig_hold_up(uint64_t ns);

/* Goes on until it was told of one more such change, at most for so long. Returns whether. */
bool linkrig_until(enum spoke_link_change change, uint64_t ns);

#endif
