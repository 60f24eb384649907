/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture: processes of a virtual world, each with an engine and a registry, which record the
 * callbacks by the numbers that a test gives to its requests. It asserts all the time that no
 * callback comes after the close, and that each request is answered once.
 */
#ifndef TESTS_CLUSTER_REGISTRY_REGISTRYRIG_H
#define TESTS_CLUSTER_REGISTRY_REGISTRYRIG_H

#include "core/virtual/faults.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/registry.h>
#include <spoke/stats.h>

#define RIG_PATH "/run/providers"
#define RIG_URL "file:///run/providers"

enum {
	RIG_MEMBERS = 2,
	RIG_NEWS = 64,
	RIG_ENTRIES = 128,
	RIG_TEXT = 1000, /* bytes of a file that registryrig_text() returns */
};

enum rig_kind {
	RIG_DONE,
	RIG_LIST,
	RIG_LOST,
};

struct rig_news {
	enum rig_kind kind;
	uint64_t number; /* of the request; of the entry's first one for lists and losses */
	int error;
	char list[200]; /* a URL per line */
};

/* An entry, with the numbers of its requests. Its memory is the test's until the end. */
struct rig_entry {
	struct spoke_registry_entry *of; /* NULL: unused */
	struct spoke_url url;
	uint64_t number; /* of want() */
	uint64_t asked;  /* of the request in flight; 0: none */
	bool over;       /* it has been removed */
	char *texts;
};

struct rig_member {
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	const struct spoke_registry *kind;
	void *registry; /* NULL: closed */
	struct rig_news news[RIG_NEWS];
	unsigned count;
	struct rig_entry entries[RIG_ENTRIES];
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

/* Call the functions of the registry. `which` is the number of the want(). */
void registryrig_publish(struct rig_member *member, uint64_t number, const char *service,
			 const char *url);
void registryrig_subscribe(struct rig_member *member, uint64_t number, const char *service);
void registryrig_unwant(struct rig_member *member, uint64_t number, uint64_t which);
void registryrig_close(struct rig_member *member);

void registryrig_pass(struct rig *rig, uint64_t ns);

/* Assert that the next callback is this one, or that there is none. */
void registryrig_assert_done(struct rig_member *member, uint64_t number, int error);
void registryrig_assert_list(struct rig_member *member, uint64_t number, const char *list);
void registryrig_assert_lost(struct rig_member *member, uint64_t number);
void registryrig_assert_no_more(struct rig_member *member);

/* Returns the text of the file RIG_PATH without the marks of processes, which are at the ends of
 * lines; NULL: no such file. Valid until the next call. */
const char *registryrig_text(const struct rig *rig);

/* Returns the number of events that contain the text. */
unsigned registryrig_events(const struct rig_member *member, const char *part);

#endif
