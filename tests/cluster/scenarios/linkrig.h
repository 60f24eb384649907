/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: one side of links in the virtual world, a provider or a consumer, and a peer controlled
 * by the test. It records the side's link events and the messages that the peer reads.
 */
#ifndef TESTS_CLUSTER_SCENARIOS_LINKRIG_H
#define TESTS_CLUSTER_SCENARIOS_LINKRIG_H

#include "core/virtual/faults.h"
#include "tests/cluster/peer.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define TICK MS
#define LINKRIG_AT "127.0.0.1:20880" /* listening address of the provider or the peer */

struct linkrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine; /* NULL: freed */
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct peer peer;
	int listener; /* the peer's listener */
	struct peer_conn conn;
	const char *wire; /* of conn */
	const char *host; /* of the consumer's URL; NULL: that of LINKRIG_AT */
	unsigned told[SPOKE_LINK_RECONNECTING + 1];         /* events of each kind */
	enum spoke_link_change last;                        /* of the last event */
	enum spoke_event_user user;                         /* of the last event */
	int error;                                          /* of the last CLOSED */
	void (*then)(const struct spoke_link_event *event); /* called for each event; may be NULL */
	unsigned read[SPOKEI_EVENT + 1]; /* messages of each kind read by the peer */
	struct spoke_request *held;      /* held by linkrig_hold() */
	unsigned abandoned;
};

extern struct linkrig linkrig;

int linkrig_set_up(void **state);
int linkrig_tear_down(void **state);

void linkrig_pass(uint64_t ns);
uint64_t linkrig_stat(enum spoke_stat stat);

/* Make the side, with this wire. A provider has the methods "echo", "later" and "block" (an echo on
 * the pool); a consumer holds the pushes that it gets. Both report their link events to the rig. */
void linkrig_provide(const char *wire, const struct spoke_provider_options *options);
void linkrig_consume(const char *wire, const struct spoke_consumer_options *options);

/* Holds the request until linkrig_answer(). */
void linkrig_answer(void);

/* Connects the peer to the provider; accepts the consumer's connection and returns whether there
 * was one. */
void linkrig_connect(void);
bool linkrig_accept(void);

/* Make the peer write a message without content, a request, or bytes. */
void linkrig_say(enum spokei_kind kind);
void linkrig_ask(const char *method);
void linkrig_write(const void *bytes, size_t len);

/* Makes the peer read the available bytes. */
void linkrig_read(void);

/* Stalls the process for `ns` in each turn from now on. */
void linkrig_hold_up(uint64_t ns);

/* Runs until one more such event, for at most `ns`. Returns whether it came. */
bool linkrig_until(enum spoke_link_change change, uint64_t ns);

#endif
