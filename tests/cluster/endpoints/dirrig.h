/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a consumer in the virtual world whose directory the test gives lists, as a registry
 * does, and providers, each in a process of its own.
 */
#ifndef TESTS_CLUSTER_ENDPOINTS_DIRRIG_H
#define TESTS_CLUSTER_ENDPOINTS_DIRRIG_H

#include "cluster/consumer/parts.h"
#include "cluster/endpoints/directory.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

enum {
	PROVIDERS = 4,
	CALLS = 64,
};

/* URLs of the providers, to which parameters may be appended. */
#define A "dubbo://127.0.0.1:20880/demo.Echo"
#define B "dubbo://127.0.0.1:20881/demo.Echo"
#define C "dubbo://127.0.0.1:20882/demo.Echo"
#define D "dubbo://127.0.0.1:20883/demo.Echo"

struct dirrig_call {
	struct spoke_call name;
	unsigned ends;
	int error;
	bool written;
};

struct dirrig {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine; /* NULL: freed */
	struct spoke_consumer *consumer;
	struct spoke_method *echo;
	struct dirrig_side {
		struct spokei_world_process process;
		struct spoke_engine *engine; /* NULL: stopped */
		struct spoke_provider *provider;
		const char *service;   /* NULL: "demo.Echo" */
		const char *version;   /* NULL: none */
		const char *group;     /* NULL: none */
		const char *token;     /* NULL: none */
		uint32_t requests_max; /* limit of concurrent requests; 0: the default */
		bool mute;             /* holds its requests */
		unsigned served;
		char attachments[256]; /* of the last request, as text */
		struct spoke_request *held[CALLS];
		unsigned held_count;
	} sides[PROVIDERS];
	struct dirrig_call calls[CALLS];
	unsigned begun;
	struct spoke_alarm beat;
	unsigned told[SPOKE_LINK_RECONNECTING + 1];         /* events of each kind */
	void (*then)(const struct spoke_link_event *event); /* called for each event; may be NULL */
};

extern struct dirrig dirrig;

int dirrig_set_up(void **state);
int dirrig_tear_down(void **state);

/* Makes the consumer of "demo.Echo" with an empty list. Unless the options differ, calls go round
 * robin with one attempt. `parameters` are those of its URL: "" or e.g. "?version=1". */
void dirrig_consume(const char *parameters, const struct spoke_consumer_options *options);

/* Start and stop a provider. A stopped provider drops the calls that it holds. */
void dirrig_start(unsigned at);
void dirrig_stop(unsigned at);

/* Answers all held requests. */
void dirrig_answer(unsigned at);

/* Sets the list of URLs, which ends with NULL. Returns the result of spokei_directory_set(). */
int dirrig_list(const char *const *texts);
#define LIST(...) assert_int_equal(dirrig_list((const char *const[]){ __VA_ARGS__, NULL }), 0)
#define LIST_NOBODY() assert_int_equal(dirrig_list((const char *const[]){ NULL }), 0)

void dirrig_pass(uint64_t ns);

/* Makes the consumer's engine run a turn every `ns`, like a busy one. */
void dirrig_beat(uint64_t ns);

/* Makes a call, whose end is recorded in dirrig.calls. Returns the result of spoke_call(). */
int dirrig_try(uint64_t timeout_ns);

/* Makes a call, waits for its end, and returns its error. */
int dirrig_call(void);

/* Returns the number of requests that a provider has served since the last query. */
unsigned dirrig_served(unsigned side);

/* Returns the consumer's information about a provider; state REMOVED and no calls if it has none.
 */
struct spoke_endpoint_info dirrig_info(unsigned side);

#endif
