/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry in ZooKeeper under test, on an engine of its own, with all that it tells noted down;
 * and a stranger, another client of the same server, who looks and meddles.
 */
#ifndef TESTS_INTEGRATION_ZOORIG_H
#define TESTS_INTEGRATION_ZOORIG_H

#include "cluster/registry/zookeeper/zookeeper.h"
#include "core/virtual/faults.h"
#include "tests/integration/zooserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zookeeper/zookeeper.h>

#define NOTES_MAX 256u
#define URL_SIZE 4096u

/* Something that was told. */
struct note {
	enum {
		NOTE_DONE,
		NOTE_LIST,
		NOTE_LOST
	} kind;
	uint64_t intent;
	int error;
	size_t count; /* of a list */
	char *urls;   /* ... a line each, in the order of the alphabet */
};

struct zoorig {
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	void *registry;
	struct note notes[NOTES_MAX];
	size_t note_count;
	uint64_t intents;    /* given so far */
	zhandle_t *theirs;   /* the newest handle that the code under test made */
	uintptr_t closed_by; /* the thread that closed one last; 0: none was closed */
	unsigned closed;     /* how many */
};

extern struct zoorig rig;

/* What tests publish, and the nodes that stand for it. */
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

/* Runs tests, of which the environment variable ROW chooses, at one server. Returns what main()
 * does. */
int zoorig_run(const struct CMUnitTest *tests, size_t count);
int zoorig_set_up(void **state);    /* an engine, and an empty ZooKeeper */
int zoorig_tear_down(void **state); /* nothing is left */
#define ZOORIG_TEST(test) cmocka_unit_test_setup_teardown(test, zoorig_set_up, zoorig_tear_down)

/* Opens the registry at the server, with parameters as "?session=1s". */
void zoorig_open(const char *parameters);
int zoorig_open_url(const char *text);
void zoorig_close(void);

/* Ask, and return the intent. */
uint64_t zoorig_publish(const char *service, const char *url);
uint64_t zoorig_subscribe(const char *service);
uint64_t zoorig_withdraw(uint64_t which);
uint64_t zoorig_unsubscribe(uint64_t which);

/* The same, which may not be had; 0 then. */
int zoorig_try_open(void);
uint64_t zoorig_try_publish(const char *service, const char *url);
uint64_t zoorig_try_subscribe(const char *service);
uint64_t zoorig_try_withdraw(uint64_t which);

/* Forgets what was told. */
void zoorig_forget(void);

/* Turns the engine once, for a short time at most. */
void zoorig_turn(void);

/* Turns it until it has got over that it stood still, as while a server was started: a request that
 * it reads before has lain in its socket for as long, for all it knows, and may be refused. */
void zoorig_catch_up(void);

/* Turn the engine until something is so; the test fails when it does not come to be. */
#define zoorig_until(condition)                                                                    \
	do {                                                                                       \
		uint64_t until_ns = zoorig_patience();                                             \
                                                                                                   \
		while (!(condition))                                                               \
			zoorig_turn_until(until_ns, #condition, __FILE__, __LINE__);               \
	} while (0)
uint64_t zoorig_patience(void);
void zoorig_turn_until(uint64_t until_ns, const char *what, const char *file, int line);

/* Waits for the end of an intent; returns its error. */
int zoorig_end(uint64_t intent);
bool zoorig_has_ended(uint64_t intent);
size_t zoorig_count(int kind, uint64_t intent);
/* The newest list for an intent, lines; "(none)": there was none. */
const char *zoorig_list(uint64_t intent);
/* The error with which an intent was lost, 1: it was not. */
int zoorig_lost(uint64_t intent);
/* Has an event with such words happened? */
bool zoorig_said(const char *words);

/* The library's own functions, where --wrap has put others in their place. */
/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
zhandle_t *__real_zookeeper_init2(const char *host, watcher_fn fn, int timeout_ms,
				  const clientid_t *id, void *context, int flags,
				  log_callback_fn log);
int __real_zookeeper_close(zhandle_t *zh);
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

/* The session of the code under test. */
int64_t zoorig_session(void);

/* --- the stranger; every function waits for the answer, and returns the library's code */

int stranger_create(const char *path, const char *data, int mode);
int stranger_delete(const char *path);
int stranger_owner(const char *path, int64_t *ret_owner);
/* ... of a node that has to be there. */
int64_t stranger_owner_of(const char *path);
int stranger_data(const char *path, char *data, size_t size);
/* The names of the children, a line each, by alphabet; "(none)": there is no such node. Until the
 * next call. */
const char *stranger_list(const char *path);
size_t stranger_count(const char *path);
void stranger_makes_folder(void);
/* Removes a node and all below. */
void stranger_clears(const char *path);
/* Many nodes at once: a prefix, and numbers. */
void stranger_create_many(const char *prefix, unsigned count);
/* Another session, that ends without a farewell: its nodes stay until its time is over. */
void stranger_leaves_behind(const char *path);
int stranger_write(const char *path, const char *data);
/* All these sessions end. */
void stranger_leaves(void);
/* Ends the session of the code under test, as time would. */
void stranger_ends_session(void);

#endif
