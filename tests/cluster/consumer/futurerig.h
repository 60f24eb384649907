/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider and a consumer on engines of their own, for tests with threads. All memory is counted:
 * what was not given back fails the test at the end.
 */
#ifndef TESTS_CLUSTER_CONSUMER_FUTURERIG_H
#define TESTS_CLUSTER_CONSUMER_FUTURERIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <spoke/future.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdatomic.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define RIG_TIMEOUT_NS (60000 * MS) /* of calls that have to be answered */
#define RIG_HELD 256u

enum rig_place {
	RIG_TCP,
	RIG_UNIX,
};

/* A calling thread. */
struct rig_client {
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *echo;    /* answers with its argument */
	struct spoke_method *pool;    /* the same, on a thread of the pool */
	struct spoke_method *hold;    /* answers when `release` is called, or its caller is gone */
	struct spoke_method *release; /* how many were held */
	struct spoke_method *fail;    /* an error of the handler */
};

struct rig {
	struct spoke_env env;        /* the provider's */
	struct spoke_env client_env; /* the clients' */
	unsigned forks;              /* the clients'; changed, it is as if the process had forked */
	struct spoke_engine *engine; /* the provider's, on a thread of its own */
	struct spoke_provider *provider;
	struct spoke_request *held[RIG_HELD]; /* the provider's thread */
	size_t held_count;
	char folder[64]; /* of its unix socket */
	char url[192];
	struct rig_client client;
};

/* A rig whose client is made, but does not run: spoke_engine_start(). */
void rig_set_up(struct rig *rig, enum rig_place place);

/* Ends what is there, and asserts that no memory is left. */
void rig_tear_down(struct rig *rig);

/* Makes a client that calls at a URL; NULL: the provider's. */
void rig_client_init(struct rig *rig, struct rig_client *client, const char *url);

/* Lets all held requests be answered. */
void rig_release(struct rig *rig);

/* One text as the arguments of a call; valid until the thread packs another one. */
struct spoke_span rig_text(const char *text);

/* Options of a call that has to be answered. */
extern const struct spoke_call_options rig_patient;

bool rig_is_text(const struct spoke_result *result, const char *text);

/* Begins a call with a text. */
struct spoke_future *rig_start(struct spoke_method *method, const char *text);

/* Where callbacks come: rig_told_done() with one as `arg`. */
struct rig_told {
	void *parker;
	int error;
	uintptr_t thread; /* which it came on */
	int count;        /* read it after rig_told_wait() */
};

void rig_told_init(struct rig_told *told);
void rig_told_done(void *arg, const struct spoke_result *result);
void rig_told_wait(struct rig_told *told); /* until one has come; ends `told` */

/* Threads of the machine. */
void *rig_thread(void (*run)(void *arg), void *arg);
void rig_join(void *thread);
uintptr_t rig_self(void);

/* Makes the n-th allocation of this thread from now on fail, 1 being the next; 0: none. Returns how
 * far away the last failure still is. */
int rig_fail_memory(int nth);

#endif
