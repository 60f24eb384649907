/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a provider with filters and limits, and a consumer that calls it, in the virtual world.
 * Asserts that every call ends once and that nothing leaks.
 */
#ifndef TESTS_CLUSTER_FILTER_FILTERRIG_H
#define TESTS_CLUSTER_FILTER_FILTERRIG_H

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

enum {
	RIG_CALLS = 4096,
	RIG_TEXT = 128,
	CLIENT = 0,
	SERVER = 1,
};

struct filterrig_call {
	struct spoke_call name;
	unsigned ends;
	int error;
	int32_t code;
	char text[RIG_TEXT]; /* of an error, or of a str value */
};

struct filter_rig {
	struct spokei_world world;
	struct spokei_world_process processes[2];
	struct spokei_faults faulty[2];
	struct spoke_engine *engines[2]; /* NULL: freed */
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	/* Methods: reply at once, reply with an error, hold the request, reply from the thread
	 * pool. */
	struct spoke_method *echo;
	struct spoke_method *fail;
	struct spoke_method *later;
	struct spoke_method *pool;
	struct spoke_request *held[RIG_CALLS]; /* held by "later"; NULL: answered */
	unsigned held_count;
	unsigned handled; /* requests of all handlers */
	struct filterrig_call calls[RIG_CALLS];
	unsigned begun;
	unsigned ended;
	bool by_turns;          /* callbacks may free the engines */
	uint32_t executes;      /* of all methods, set before filterrig_begin() */
	uint32_t per_second;    /* of all methods, set before filterrig_begin() */
	void (*in_reply)(void); /* called by "echo" after its reply; may be NULL */
	const char *url;        /* of the consumer, set before filterrig_begin(); NULL: Dubbo */
	/* Filters of the consumer, set before filterrig_begin(). */
	const struct spoke_filter *const *filters;
	size_t filter_count;
	void (*in_echo)(const struct spoke_request *request); /* called first; may be NULL */
};

extern struct filter_rig rig;

/* Set-up and tear-down of each test. */
int filterrig_set_up(void **state);
int filterrig_tear_down(void **state);

/* Makes both sides, connected. Returns the result of spoke_provider_new(). */
int filterrig_begin(const struct spoke_provider_options *options);

/* Makes a provider only. */
int filterrig_provide(const struct spoke_provider_options *options);

struct filterrig_call *filterrig_call(struct spoke_method *method);
struct filterrig_call *filterrig_call_with(struct spoke_method *method, const char *text,
					   const struct spoke_call_options *options);
/* Returns whether the call was accepted. */
bool filterrig_try(struct spoke_method *method);
void filterrig_pass(uint64_t ns);

/* Answers a held request. */
void filterrig_answer(unsigned which);
void filterrig_answer_all(void);

uint64_t filterrig_stat(enum spoke_stat stat);

#endif
