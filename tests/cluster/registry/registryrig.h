/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of a virtual world, each with an engine and a registry on it, who note what they are
 * told. That nothing is told from inside a function of the registry, nor after its end, is looked
 * at all the time.
 */
#ifndef TESTS_CLUSTER_REGISTRY_REGISTRYRIG_H
#define TESTS_CLUSTER_REGISTRY_REGISTRYRIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/faults.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"

#include <spoke/registry.h>
#include <spoke/stats.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define RIG_PATH "/run/providers"
#define RIG_URL "file:///run/providers"

enum {
	RIG_MEMBERS = 2,
	RIG_NEWS = 64,
};

enum rig_kind {
	RIG_DONE,
	RIG_LIST,
	RIG_LOST,
	RIG_NO_CLOSE, /* for close_at */
};

struct rig_news {
	enum rig_kind kind;
	uint64_t intent;
	int error;
	char list[200]; /* each URL with a line end */
};

struct rig_member {
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	const struct spoke_registry *kind;
	void *registry; /* NULL: closed */
	bool inside;    /* a function of the registry */
	enum rig_kind close_at;
	void (*then)(struct rig_member *member, const struct rig_news *news); /* may be NULL */
	struct rig_news news[RIG_NEWS];
	unsigned count;
};

struct rig {
	struct spokei_world world;
	struct spokei_vfiles *files;
	struct rig_member members[RIG_MEMBERS];
};

/* A rig with engines and no registries. */
int rig_set_up(void **state);
int rig_tear_down(void **state);

/* Opens a registry of that kind by its URL. Returns what that did. */
int rig_open(struct rig_member *member, const struct spoke_registry *kind, const char *url);

/* As the functions of the registry. */
int rig_publish(struct rig_member *member, uint64_t intent, const char *service, const char *url);
int rig_withdraw(struct rig_member *member, uint64_t intent, uint64_t which);
int rig_subscribe(struct rig_member *member, uint64_t intent, const char *service);
int rig_unsubscribe(struct rig_member *member, uint64_t intent, uint64_t which);
void rig_close(struct rig_member *member);

void rig_pass(struct rig *rig, uint64_t ns);

/* The member was told exactly this since the last time. */
void rig_assert_done(struct rig_member *member, uint64_t intent, int error);
void rig_assert_list(struct rig_member *member, uint64_t intent, const char *list);
void rig_assert_lost(struct rig_member *member, uint64_t intent);
void rig_assert_no_more(struct rig_member *member);

/* How many events of the engine have this in their sentence? */
unsigned rig_events(const struct rig_member *member, const char *part);

#endif
