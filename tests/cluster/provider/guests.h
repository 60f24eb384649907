/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a provider with the services demo.Echo and demo.Other, and several consumers, which
 * connect from addresses and as users that the test sets. Each is a process of a virtual world.
 * Handlers note by which names they know their caller.
 */
#ifndef TESTS_CLUSTER_PROVIDER_GUESTS_H
#define TESTS_CLUSTER_PROVIDER_GUESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/faults.h"
#include "core/virtual/world.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

#define GUESTS_PORT "dubbo://10.0.0.1:20880"
#define GUESTS_PATH "unix:/run/x.sock"
#define GUESTS_FILE "a.conf"

enum {
	GUESTS = 4,
	GUESTS_TEXT = 512,
};

/* A consumer. */
struct guest {
	struct spokei_world_process process;
	struct spoke_engine *engine; /* NULL: there is none */
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	/* The last call. */
	unsigned ends;
	int error;
	int32_t code;
	char text[GUESTS_TEXT]; /* of the error */
};

struct guests {
	struct spokei_world world;
	struct spokei_world_process process; /* of the provider */
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_config *config; /* NULL: none */
	struct guest guest[GUESTS];
	char names[GUESTS_TEXT]; /* of the caller, separated by blanks, as handlers saw them */
	unsigned handled;
	struct spoke_request *held; /* by "later" */
};

extern struct guests guests;

int guests_set_up(void **state);
int guests_tear_down(void **state);

/* Loads the settings file, before guests_begin(). */
void guests_configure(const char *text);

/* Reloads it. Returns the result. */
int guests_reload(const char *text);

/* Makes the provider. Returns the result of spoke_provider_new(). */
int guests_try(const struct spoke_provider_options *options);

/* Makes the provider, which listens at these URLs, up to a NULL. */
void guests_begin(const struct spoke_provider_options *options, const char *const *urls);

/* Makes a consumer of a URL that connects from this address, e.g. "10.0.0.7:0"; NULL: that of this
 * machine. At a unix socket it is user `uid` of group `gid`. */
void guests_enter(unsigned which, const char *url, const char *from, uint32_t uid, uint32_t gid);
void guests_leave(unsigned which);

/* Calls a method and returns its error. */
int guests_call(unsigned which, const char *method);

void guests_pass(uint64_t ns);
uint64_t guests_stat(enum spoke_stat stat);

/* Counts the events of the provider's engine that contain the words. */
unsigned guests_events(const char *words);

#endif
