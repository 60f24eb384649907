/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of a consumer and a provider in the virtual world while their environments fail. Each
 * scenario runs as far as the faults allow.
 */
#ifndef TESTS_CLUSTER_TORTURE_H
#define TESTS_CLUSTER_TORTURE_H

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/cluster/securerig.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

enum {
	CALLS = 16,
	HELD = 16,
	NAMED = 10,  /* scenario whose endpoint has a host name */
	LIVING = 13, /* first scenario with heartbeats */
	SCENARIOS = 15,
	CLIENT = 0,
	SERVER = 1,
};

struct play {
	struct spokei_world world;
	struct spokei_world_process processes[2];
	struct spokei_faults faulty[2];
	struct spoke_engine *engines[2];
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct spoke_method *later;
	struct spoke_request *held[HELD];
	unsigned held_count;
	struct spoke_call names[CALLS];
	unsigned ends[CALLS];
	int errors[CALLS];
	unsigned begun;
	unsigned ended;
	const char *scheme;
	const struct spokei_codec *codec; /* of both sides; NULL: msgpack */
	/* Of both sides; NULL: the socket; &secure_stream: TLS. */
	const struct spokei_stream_kind *stream;
	struct secure secure;  /* if it is TLS */
	uint64_t heartbeat_ns; /* 0: the default */
};

struct scenario {
	const char *name;
	void (*run)(void);
};

extern struct play play;
extern const struct scenario scenarios[SCENARIOS];

/* Calls a method of the play. Returns whether the call was accepted. */
bool torture_call(struct spoke_method *method);
void torture_pass(uint64_t ns);

/* Answers all held requests. */
void torture_answer_all(void);

#endif
