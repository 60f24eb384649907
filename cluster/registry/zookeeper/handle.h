/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ZooKeeper session, with the single-threaded C library inside the engine: the loop watches its
 * descriptor, the wheel has its timers, names were resolved before. The library reconnects by
 * itself. An expired session stays so; the next one needs another handle.
 *
 * The library uses descriptors, memory and a clock of its own. It trusts the server. On the
 * engine's thread, except for the end of a session.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_HANDLE_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_HANDLE_H

#include "core/engine/task.h"

#include <zookeeper/zookeeper.h>

struct spoke_engine;
struct spokei_zoo_handle;
struct spokei_zoo_request;

/* An answer, borrowed for the call. */
struct spokei_zoo_answer {
	int code;                          /* code of the library, e.g. ZNONODE; 0: success */
	const struct Stat *stat;           /* of ASK_EXISTS, if the node exists */
	const struct String_vector *names; /* of ASK_LIST */
	const char *data;                  /* of ASK_GET; NULL: none */
	size_t len;
};

enum spokei_zoo_ask {
	SPOKEI_ZOO_CREATE,           /* persistent, with text as data */
	SPOKEI_ZOO_CREATE_EPHEMERAL, /* removed with the session */
	SPOKEI_ZOO_DELETE,
	SPOKEI_ZOO_EXISTS,
	SPOKEI_ZOO_EXISTS_WATCH, /* ... and calls `touched` when that changes */
	SPOKEI_ZOO_LIST,         /* names of the children */
	SPOKEI_ZOO_LIST_WATCH,
	SPOKEI_ZOO_GET_WATCH, /* the data of a node */
};

/*
 * A client of the handle, embedded in its owner, from join() to leave(). One request at a time.
 * Both callbacks run inside the library: they may leave, but not give the handle up.
 */
struct spokei_zoo_asker {
	struct spoke_list node; /* list of the handle */
	struct spokei_zoo_handle *handle;
	struct spokei_zoo_request *request; /* in flight; NULL: none */
	uintptr_t number;                   /* identifies the watch */
	void (*answered)(struct spokei_zoo_asker *asker, const struct spokei_zoo_answer *answer);
	void (*touched)(struct spokei_zoo_asker *asker);
};

/* Converts a code of the library, e.g. ZNONODE, to an error of spoke. */
int spokei_zoo_fold(int code);

/* Begins a session. `servers` are numeric, in the library's format. `changed` is called when the
 * connection or the session may have changed, and may give the handle up. Returns 0, SPOKE_ENOMEM,
 * or ESYSTEM if the library fails. */
SPOKE_MUST_USE int spokei_zoo_handle_new(struct spoke_engine *engine, const char *servers,
					 int session_ms, void (*changed)(void *arg), void *arg,
					 struct spokei_zoo_handle **ret_handle);

/*
 * Ends the session; no client may belong to the handle. The session is closed on a pool thread,
 * because the library waits for the server. Without a pool thread (the engine ends, or in a
 * forked child) the connection is cut, and the server drops the session when it times out. NULL
 * is fine.
 */
void spokei_zoo_handle_give_up(struct spokei_zoo_handle *handle);

bool spokei_zoo_handle_connected(const struct spokei_zoo_handle *handle);

/* Returns how often it has connected. */
uint64_t spokei_zoo_handle_connects(const struct spokei_zoo_handle *handle);

/* Returns whether the session has expired; its ephemeral nodes are gone. */
bool spokei_zoo_handle_over(const struct spokei_zoo_handle *handle);

/* Returns whether a node of this owner belongs to the session. */
bool spokei_zoo_handle_owns(const struct spokei_zoo_handle *handle, int64_t owner);

/* Prints the address of this machine that the connected server sees, without a port; "" if it is
 * unknown. */
void spokei_zoo_handle_local(const struct spokei_zoo_handle *handle, char *text, size_t size);

/* Replaces the servers, in the format of new(). */
void spokei_zoo_handle_use(struct spokei_zoo_handle *handle, const char *servers);

void spokei_zoo_join(struct spokei_zoo_handle *handle, struct spokei_zoo_asker *asker);

/* Removes a client, if it has joined. */
void spokei_zoo_leave(struct spokei_zoo_asker *asker);

/*
 * Sends a request of a client that has joined and has none in flight. Texts are copied, `text` is
 * for CREATE. The answer comes once, later, even without a connection. Returns 0; SPOKE_ENOMEM;
 * SPOKE_EINVAL for an invalid path.
 */
SPOKE_MUST_USE int spokei_zoo_ask(struct spokei_zoo_asker *asker, enum spokei_zoo_ask what,
				  const char *path, const char *text);

#endif
