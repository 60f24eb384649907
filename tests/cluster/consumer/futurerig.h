/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: a provider and a consumer on their own engines, for tests with threads. All memory is
 * counted, and a leak fails the test at its end.
 */
#ifndef TESTS_CLUSTER_CONSUMER_FUTURERIG_H
#define TESTS_CLUSTER_CONSUMER_FUTURERIG_H

#include "tests/support/test.h"

#include <spoke/future.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdatomic.h>
#include <string.h>

#define RIG_TIMEOUT_NS (60000 * MS) /* timeout of calls that must be answered */
#define RIG_HELD 256u

enum rig_place {
	RIG_TCP,
	RIG_UNIX,
};

/* A client, used by one calling thread. */
struct rig_client {
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;    /* replies with its argument */
	struct spoke_method *pool;    /* does the same on a thread of the pool */
	struct spoke_method *hold;    /* replies when `release` is called, or is abandoned */
	struct spoke_method *release; /* returns the number of held requests */
	struct spoke_method *fail;    /* returns an error */
};

struct rig {
	struct spoke_env env;        /* the provider's */
	struct spoke_env client_env; /* the clients' */
	unsigned forks;              /* fork counter of the clients; a change simulates a fork */
	struct spoke_engine *engine; /* the provider's, on its own thread */
	struct spoke_provider *provider;
	struct spoke_request *held[RIG_HELD]; /* used by the provider's thread only */
	size_t held_count;
	size_t held_wanted; /* the provider unparks `held_parker` when it holds as many */
	void *held_parker;  /* set both before the first call; 0: nothing */
	char folder[64];    /* folder of its unix socket */
	char url[192];
	struct rig_client client;
};

/* Makes a rig whose client does not run yet: call spoke_engine_start(). */
void futurerig_set_up(struct rig *rig, enum rig_place place);

/* Frees everything and asserts that no memory is left. */
void futurerig_tear_down(struct rig *rig);

/* Makes a client that calls a URL; NULL: the URL of the provider. */
void futurerig_client_init(struct rig *rig, struct rig_client *client, const char *url);

/* Makes the provider answer all held requests. */
void futurerig_release(struct rig *rig);

/* Packs a text as the arguments of a call. It is valid until the thread packs the next one. */
struct spoke_span futurerig_text(const char *text);

/* The options of a call that must be answered. */
extern const struct spoke_call_options rig_patient;

bool futurerig_is_text(const struct spoke_result *result, const char *text);

/* Starts a call with a text. */
struct spoke_future *futurerig_start(struct spoke_method *method, const char *text);

/* Receives callbacks: pass futurerig_told_done() with such a struct as `arg`. */
struct rig_told {
	void *parker;
	int error;
	uintptr_t thread; /* the thread of the callback */
	int count;        /* read it after futurerig_told_wait() */
};

void futurerig_told_init(struct rig_told *told);
void futurerig_told_done(void *arg, const struct spoke_result *result);
void futurerig_told_wait(struct rig_told *told); /* until one has come; ends `told` */

/* Threads of the real environment. */
void *futurerig_thread(void (*run)(void *arg), void *arg);
void futurerig_join(void *thread);
uintptr_t futurerig_self(void);

/* Makes the n-th allocation of this thread fail; 1 is the next, 0 means none. Returns the number
 * that remained until the last failure set. */
int futurerig_fail_memory(int nth);

#endif
