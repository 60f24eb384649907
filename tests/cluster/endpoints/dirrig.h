/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer in the virtual world whose directory is told lists as by a registry, and providers,
 * each a process of its own.
 */
#ifndef TESTS_CLUSTER_ENDPOINTS_DIRRIG_H
#define TESTS_CLUSTER_ENDPOINTS_DIRRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/consumer/parts.h"
#include "core/virtual/faults.h"
#include "core/virtual/world.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum {
	PROVIDERS = 4,
	CALLS = 64,
	LISTED = 12, /* URLs of a list, at most */
};

/* Where they are; to be followed by parameters. */
#define A "dubbo://127.0.0.1:20880/demo.Echo"
#define B "dubbo://127.0.0.1:20881/demo.Echo"
#define C "dubbo://127.0.0.1:20882/demo.Echo"
#define D "dubbo://127.0.0.1:20883/demo.Echo"

struct dirrig_call {
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
		struct spoke_engine *engine; /* NULL: it is not there */
		struct spoke_provider *provider;
		const char *version;   /* NULL: none */
		uint32_t requests_max; /* at a time; 0: as it is preset */
		bool mute;             /* keeps what it is asked */
		unsigned served;
		struct spoke_request *held[CALLS];
		unsigned held_count;
	} sides[PROVIDERS];
	struct dirrig_call calls[CALLS];
	unsigned begun;
	struct spoke_alarm beat;
	unsigned told[SPOKE_LINK_RECONNECTING + 1];         /* by change */
	void (*then)(const struct spoke_link_event *event); /* done as one is told; may be NULL */
};

extern struct dirrig dirrig;

int dirrig_set_up(void **state);
int dirrig_tear_down(void **state);

/* The consumer of "demo.Echo", which begins with an empty list; calls take turns, once each, unless
 * the options say otherwise. `parameters` of its URL: "" or as "?version=1". */
void dirrig_consume(const char *parameters, const struct spoke_consumer_options *options);

/* Starts and ends a provider; at the end calls that it keeps are dropped. */
void dirrig_start(unsigned at);
void dirrig_stop(unsigned at);

/* Answers all that it keeps. */
void dirrig_answer(unsigned at);

/* Tells a list, up to a NULL. Returns as spokei_directory_set(). */
int dirrig_list(const char *const *texts);
#define LIST(...) assert_int_equal(dirrig_list((const char *const[]){ __VA_ARGS__, NULL }), 0)
#define LIST_NOBODY() assert_int_equal(dirrig_list((const char *const[]){ NULL }), 0)

void dirrig_pass(uint64_t ns);

/* The consumer's engine has a turn so often, as where something happens all the time. */
void dirrig_beat(uint64_t ns);

/* Calls; what becomes of it stands in dirrig.calls. Returns as spoke_call(). */
int dirrig_try(uint64_t timeout_ns);

/* Calls, waits for the end, and returns the error. */
int dirrig_call(void);

/* How many were served by a side, since this was asked last. */
unsigned dirrig_served(unsigned side);

/* What the consumer says of the provider of a side; REMOVED and no calls: nothing. */
struct spoke_endpoint_info dirrig_info(unsigned side);

#endif
