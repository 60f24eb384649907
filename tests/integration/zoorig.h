/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rig for the ZooKeeper registry: the registry under test on an engine of its own, a record of
 * all its notifications, and the "stranger", another client of the same server, which inspects and
 * changes nodes.
 */
#ifndef TESTS_INTEGRATION_ZOORIG_H
#define TESTS_INTEGRATION_ZOORIG_H

#include "cluster/registry/registries.h"
#include "core/virtual/faults.h"
#include "tests/integration/zooserver.h"
#include "tests/support/test.h"

#include <zookeeper/zookeeper.h>

#define NOTES_MAX 256u
#define URL_SIZE 4096u

/* A notification of the registry. */
struct note {
	enum note_kind {
		NOTE_DONE,
		NOTE_LIST,
		NOTE_LOST
	} kind;
	uint64_t number; /* of the request; of the entry's want() for lists and losses */
	int error;
	size_t count; /* of a list */
	char *urls;   /* of a list: sorted, one per line */
};

#define ENTRIES_MAX 64u

/* An entry, with the numbers of its requests. */
struct zoorig_entry {
	struct spoke_registry_entry *of; /* NULL: unused */
	struct spoke_url url;
	uint64_t number; /* of want() */
	uint64_t asked;  /* of the request in flight; 0: none */
};

struct zoorig {
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	void *registry;
	struct note notes[NOTES_MAX];
	size_t note_count;
	struct zoorig_entry entries[ENTRIES_MAX];
	uint64_t numbers;    /* the last number of a request */
	zhandle_t *theirs;   /* the newest handle that the code under test created */
	uintptr_t closed_by; /* the thread that closed a handle last; 0: none */
	unsigned closed;     /* number of closed handles */
};

extern struct zoorig rig;

/* URLs that tests publish, and their nodes. */
#define SERVICE "demo.Echo"
#define FOLDER "/dubbo/demo.Echo/providers"
#define URL_A "dubbo://10.0.0.1:20880/demo.Echo?group=g&timestamp=1&version=1.0"
#define LEAF_A                                                                                     \
	"dubbo%3A%2F%2F10.0.0.1%3A20880%2Fdemo.Echo%3Fgroup%3Dg%26timestamp%3D1%26version%3D1.0"
#define NODE_A FOLDER "/" LEAF_A
#define URL_B "dubbo://10.0.0.2:20880/demo.Echo"
#define LEAF_B "dubbo%3A%2F%2F10.0.0.2%3A20880%2Fdemo.Echo"
#define NODE_B FOLDER "/" LEAF_B
#define LIST(text) (text "\n")

/* The group of a file: one server for all its tests. */
int zoorig_set_up_all(void **state);
int zoorig_tear_down_all(void **state);
int zoorig_set_up(void **state);    /* creates an engine and empties ZooKeeper */
int zoorig_tear_down(void **state); /* checks that nothing is left */

/* Opens the registry; parameters like "?session=1s". */
void zoorig_open(const char *parameters);
int zoorig_open_url(const char *text);
void zoorig_close(void);

/* Request an entry, which lives as long as the registry, and return the number of the request. */
uint64_t zoorig_publish(const char *service, const char *url);
uint64_t zoorig_subscribe(const char *service);
uint64_t zoorig_watch(const char *service, const char *category);
/* Requests the end of the entry with this number, and returns that of this request. */
uint64_t zoorig_unwant(uint64_t which);

/* Does the same, but may fail. */
int zoorig_try_open(void);

/* Clears the record of notifications. */
void zoorig_forget(void);

/* Runs one turn of the engine, which waits a short time at most. */
void zoorig_turn(void);

/* Runs the engine until it is no longer late, e.g. after the start of a server. A request read
 * before that may have waited in its socket for as long, and may be rejected as expired. */
void zoorig_catch_up(void);

/* Run the engine until the condition holds; the test fails if it never does. */
#define zoorig_until(condition)                                                                    \
	do {                                                                                       \
		uint64_t until_ns = zoorig_patience();                                             \
                                                                                                   \
		while (!(condition))                                                               \
			zoorig_turn_until(until_ns, #condition, __FILE__, __LINE__);               \
	} while (0)
uint64_t zoorig_patience(void);
void zoorig_turn_until(uint64_t until_ns, const char *what, const char *file, int line);

/* Waits for the end of a number; returns its error. */
int zoorig_end(uint64_t number);
bool zoorig_has_ended(uint64_t number);
size_t zoorig_count(int kind, uint64_t number);
/* Returns the newest list of a number, one URL per line; "(none)" if there was none. */
const char *zoorig_list(uint64_t number);
/* Returns the error with which a number was lost; 1 if it was not lost. */
int zoorig_lost(uint64_t number);
/* Returns whether an event with these words has occurred. */
bool zoorig_said(const char *words);

/* The library's own functions, for those that --wrap has replaced. */
/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
zhandle_t *__real_zookeeper_init2(const char *host, watcher_fn fn, int timeout_ms,
				  const clientid_t *id, void *context, int flags,
				  log_callback_fn log);
int __real_zookeeper_close(zhandle_t *zh);
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

/* Returns the session of the code under test. */
int64_t zoorig_session(void);

/* --- the stranger; each function waits for the answer and returns the library's code */

int zoostranger_create(const char *path, const char *data, int mode);
int zoostranger_delete(const char *path);
int zoostranger_owner(const char *path, int64_t *ret_owner);
/* Does the same for a node that must exist. */
int64_t zoostranger_owner_of(const char *path);
int zoostranger_data(const char *path, char *data, size_t size);
/* Returns the names of the children, sorted, one per line; "(none)" if the node is missing. Valid
 * until the next call. */
const char *zoostranger_list(const char *path);
size_t zoostranger_count(const char *path);
void zoostranger_makes_folder(void);
/* Removes a node and its subtree. */
void zoostranger_clears(const char *path);
/* Creates many nodes at once: a prefix and numbers. */
void zoostranger_create_many(const char *prefix, unsigned count);
/* Opens another session that is not closed: its nodes stay until it expires. */
void zoostranger_leaves_behind(const char *path);
int zoostranger_write(const char *path, const char *data);
/* Expires all these sessions. */
void zoostranger_leaves(void);
/* Expires the session of the code under test. */
void zoostranger_ends_session(void);

#endif
