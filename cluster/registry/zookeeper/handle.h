/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session at ZooKeeper, by the C library for one thread, inside the engine: its descriptor is
 * watched by the loop, its times stand on the wheel, names were resolved before. The library
 * connects, and connects anew, by itself; a session that ZooKeeper has given up stays so, and the
 * next one is another handle.
 *
 * The library has its own door to the machine: descriptors, memory and a clock. It trusts the
 * server. On the engine's thread, but for the last farewell.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_HANDLE_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_HANDLE_H

#include "timer/base.h"

#include <zookeeper/zookeeper.h>

struct spoke_engine;
struct spokei_zoo_handle;
struct spokei_zoo_request;

/* An answer, borrowed for the call. */
struct spokei_zoo_answer {
	int code;                          /* one of the library's, as ZNONODE; 0: it is done */
	const struct Stat *stat;           /* of ASK_EXISTS, if there is such a node */
	const struct String_vector *names; /* of ASK_LIST */
};

enum spokei_zoo_ask {
	SPOKEI_ZOO_CREATE,           /* with text as data; stays */
	SPOKEI_ZOO_CREATE_EPHEMERAL, /* ... is gone with the session */
	SPOKEI_ZOO_DELETE,
	SPOKEI_ZOO_EXISTS,
	SPOKEI_ZOO_EXISTS_WATCH, /* ... and `touched` when that has changed */
	SPOKEI_ZOO_LIST,         /* the names of the children */
	SPOKEI_ZOO_LIST_WATCH,
};

/*
 * Who asks; embedded in its owner, from join() to leave(). It asks one thing at a time. Both
 * functions are called inside the library: they may leave, but not give the handle up.
 */
struct spokei_zoo_asker {
	struct spoke_list node; /* the handle's, as all below */
	struct spokei_zoo_handle *handle;
	struct spokei_zoo_request *request; /* under way; NULL: none */
	uintptr_t number;                   /* which the library gives back with a watch */
	void (*answered)(struct spokei_zoo_asker *asker, const struct spokei_zoo_answer *answer);
	void (*touched)(struct spokei_zoo_asker *asker, int event);
};

struct spokei_zoo_handle_up {
	/* Connected or not any more, or over. May be called without a change. It may give the
	 * handle up. */
	void (*changed)(void *arg);
};

/* `servers` in digits, as the library reads them. Returns 0, SPOKE_ENOMEM, or ESYSTEM: the library
 * refused. */
SPOKE_MUST_USE int spokei_zoo_handle_new(struct spoke_engine *engine, const char *servers,
					 int session_ms, const struct spokei_zoo_handle_up *up,
					 void *up_arg, struct spokei_zoo_handle **ret_handle);

/*
 * Nothing is told any more, no asker belongs to it. The session is ended on a thread of the pool,
 * for the library waits for the server then. If there is no such thread, as while the engine ends
 * or in a forked child, the connection is cut, and the server forgets the session when its time is
 * over. NULL is fine.
 */
void spokei_zoo_handle_give_up(struct spokei_zoo_handle *handle);

bool spokei_zoo_handle_connected(const struct spokei_zoo_handle *handle);

/* How often it has become connected. */
uint64_t spokei_zoo_handle_connects(const struct spokei_zoo_handle *handle);

/* ZooKeeper has given the session up, and what was made in it is gone. */
bool spokei_zoo_handle_over(const struct spokei_zoo_handle *handle);

/* Is a node of this owner one of this session's? */
bool spokei_zoo_handle_owns(const struct spokei_zoo_handle *handle, int64_t owner);

/* Other servers from now on, as for new(). */
void spokei_zoo_handle_use(struct spokei_zoo_handle *handle, const char *servers);

void spokei_zoo_join(struct spokei_zoo_handle *handle, struct spokei_zoo_asker *asker);

/* Nothing is told any more. Of one that never joined nothing happens. */
void spokei_zoo_leave(struct spokei_zoo_asker *asker);

/*
 * Asks, of one who joined and has nothing under way; texts are copied, `text` is for CREATE. The
 * answer comes once, later; without a connection it says so. Returns 0; SPOKE_ENOMEM; SPOKE_EINVAL:
 * that cannot be the path of a node.
 */
SPOKE_MUST_USE int spokei_zoo_ask(struct spokei_zoo_asker *asker, enum spokei_zoo_ask what,
				  const char *path, const char *text);

/* The library's code as one of spoke's errors. */
int spokei_zoo_fold(int code);

#endif
