/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: processes of a virtual world, each with an engine and a registry, which record the
 * callbacks. It asserts all the time that no callback comes from within a function of the registry
 * or after its close.
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
	RIG_TEXT = 1000, /* bytes of a file that registryrig_text() returns */
};

enum rig_kind {
	RIG_DONE,
	RIG_LIST,
	RIG_LOST,
	RIG_NO_CLOSE, /* value of close_at */
};

struct rig_news {
	enum rig_kind kind;
	uint64_t intent;
	int error;
	char list[200]; /* a URL per line */
};

struct rig_member {
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	const struct spoke_registry *kind;
	void *registry; /* NULL: closed */
	bool inside;    /* within a function of the registry */
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

/* Makes engines without registries. */
int registryrig_set_up(void **state);
int registryrig_tear_down(void **state);

/* Opens a registry of this kind by its URL. Returns the result. */
int registryrig_open(struct rig_member *member, const struct spoke_registry *kind, const char *url);

/* Call the functions of the registry. */
int registryrig_publish(struct rig_member *member, uint64_t intent, const char *service,
			const char *url);
int registryrig_withdraw(struct rig_member *member, uint64_t intent, uint64_t which);
int registryrig_subscribe(struct rig_member *member, uint64_t intent, const char *service);
int registryrig_unsubscribe(struct rig_member *member, uint64_t intent, uint64_t which);
void registryrig_close(struct rig_member *member);

void registryrig_pass(struct rig *rig, uint64_t ns);

/* Assert that the next callback is this one, or that there is none. */
void registryrig_assert_done(struct rig_member *member, uint64_t intent, int error);
void registryrig_assert_list(struct rig_member *member, uint64_t intent, const char *list);
void registryrig_assert_lost(struct rig_member *member, uint64_t intent);
void registryrig_assert_no_more(struct rig_member *member);

/* Returns the text of the file RIG_PATH without the marks of processes, which are at the ends of
 * lines; NULL: no such file. Valid until the next call. */
const char *registryrig_text(const struct rig *rig);

/* Returns the number of events that contain the text. */
unsigned registryrig_events(const struct rig_member *member, const char *part);

#endif
