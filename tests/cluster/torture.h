/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a consumer and a provider are put through in the virtual world, while their environments
 * fail: scenarios that go as far as they get.
 */
#ifndef TESTS_CLUSTER_TORTURE_H
#define TESTS_CLUSTER_TORTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/faults.h"
#include "core/virtual/world.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum {
	CALLS = 16,
	HELD = 16,
	NAMED = 10,  /* whose endpoint has a name */
	LIVING = 13, /* the first of those with heartbeats */
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
	const struct spokei_codec *codec;        /* of both sides; NULL: msgpack */
	const struct spokei_stream_kind *stream; /* of both sides; NULL: the socket */
	uint64_t heartbeat_ns;                   /* 0: as it is preset */
};

struct scenario {
	const char *name;
	void (*run)(void);
};

extern struct play play;
extern const struct scenario scenarios[SCENARIOS];

/* Calls a method of play's; false: the call was refused. */
bool torture_call(struct spoke_method *method);
void torture_pass(uint64_t ns);

/* Answers all that is held. */
void torture_answer_all(void);

#endif
