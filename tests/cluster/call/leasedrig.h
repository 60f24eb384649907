/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a consumer, a peer whose sockets the test controls, and a lease, in the virtual world.
 * Asserts that every call ends once and that nothing leaks.
 */
#ifndef TESTS_CLUSTER_CALL_LEASEDRIG_H
#define TESTS_CLUSTER_CALL_LEASEDRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/cluster/call/leasing.h"
#include "tests/cluster/peer.h"

#include <spoke/consumer.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define RIG_AT "127.0.0.1:20880"

enum {
	KIB = 1024,
	MIB = 1024 * KIB,
	RIG_CALLS = 64,
	RIG_TEXT = 4096,
};

struct leasedrig_call {
	struct spoke_call name;
	unsigned ends;
	int error;
	bool written;
	bool fallback;
	uint32_t attempts;
	uint64_t took_ns;
	uint64_t begun_ns;
};

struct leasedrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct peer peer;
	struct peer_conn conn;
	int listener;
	struct leasedrig_call calls[RIG_CALLS];
	unsigned begun;
	struct spoke_lease lease;
	unsigned came;           /* requests */
	char attached[RIG_TEXT]; /* to the last one, printed */
	int64_t timeout_ms;      /* of the last one */
	uint64_t last_id;
	void (*in_done)(struct leasedrig_call *call); /* called by callbacks; may be NULL */
};

extern struct leasedrig rig;

int leasedrig_set_up(void **state);
int leasedrig_tear_down(void **state);

/* Makes a consumer of the peer, which listens. */
void leasedrig_consume(const char *scheme, enum spoke_serialization serialization);

/* The peer accepts the consumer's connection. */
void leasedrig_accept(const char *wire);

/* Makes a consumer that is connected, and the lease "reports" with number 42, which is valid for a
 * second. */
void leasedrig_begin(void);

void leasedrig_pass(uint64_t ns);

/* The peer reads for 300 ms. */
void leasedrig_read(void);

/* The peer reads once, and notes the request. */
void leasedrig_look(void);

/* The peer answers the last request. */
void leasedrig_answer(void);

/* Arguments: a bin of `len` bytes. Valid until the next call. */
struct spoke_span leasedrig_args(size_t len);

/* Call with `len` bytes: the first returns the result of spoke_call(), the others the call: with
 * these options, under the lease, without it. */
int leasedrig_try(struct spoke_method *method, size_t len,
		  const struct spoke_call_options *options);
struct leasedrig_call *leasedrig_call_with(size_t len, const struct spoke_call_options *options);
struct leasedrig_call *leasedrig_call(size_t len);
struct leasedrig_call *leasedrig_call_without(size_t len);

/* Makes a call under the lease in a callback, which returns after `stall_ns`. */
struct leasedrig_call *leasedrig_stall(size_t len, const struct spoke_call_options *options,
				       uint64_t stall_ns);

/* Expects that the call has ended with ELEASE, and that the peer gets `others` requests only. */
void leasedrig_never_came(const struct leasedrig_call *call, unsigned others);

#endif
