/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a ZooKeeper session, with the single-threaded C library inside the engine: the loop watches
 * its descriptor, the wheel has its timers. Names are resolved on a pool thread, because the
 * library would block the loop, and again while no server answers, because servers move. The
 * library reconnects by itself. An expired session is replaced by a new one.
 *
 * The library uses descriptors, memory and a clock of its own. It trusts the server. On the
 * engine's thread, except for the end of a session.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_SESSION_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_SESSION_H

#include "cluster/registry/zookeeper/names.h"
#include "core/engine/task.h"

#include <spoke/engine.h>

#include <zookeeper/zookeeper.h>

struct spokei_zoo_handle;
struct spokei_zoo_request;

struct spokei_zoo_session {
	struct spoke_engine *engine;
	struct spokei_zoo_settings settings;
	struct spokei_zoo_handle *handle; /* the library's; NULL: names are not resolved yet */
	/* There is a new connection. NULL: the session has been ended. */
	void (*connected)(void *arg);
	/* The session has expired, and its nodes are gone; a new one begins after this. */
	void (*expired)(void *arg);
	void *arg;
	struct spoke_alarm again;  /* next resolution */
	struct spoke_alarm silent; /* since the last connection, or the first attempt */
	uint32_t failures;
	bool resolving;    /* resolved() will be called */
	bool is_connected; /* last known state */
	uint64_t connects; /* last known number of connects */
	int cause;         /* negative errno: why there is no connection */
	int found_count;   /* or a negative errno */
	struct spoke_address found[SPOKEI_ZOO_PLACES_MAX];
	struct spokei_task finalise;
};

/* Reads the URL of a registry, and begins a session; calls nothing back. Returns 0, or an error
 * that the engine's newest event explains. The user sets the three callback fields. */
SPOKE_MUST_USE int spokei_zoo_session_new(struct spoke_engine *engine, const struct spoke_url *url,
					  struct spokei_zoo_session **ret_session);

/* Ends the session. Its memory is freed when its last work has returned. */
void spokei_zoo_session_end(struct spokei_zoo_session *session);

/* Returns the number of the connection, which counts up from 1; 0: there is none. */
uint64_t spokei_zoo_session_connect(const struct spokei_zoo_session *session);

/* Prints the address of this machine that the connected server sees, without a port; "" if it is
 * unknown. */
void spokei_zoo_session_local(const struct spokei_zoo_session *session, char *text, size_t size);

/* --- requests */

/* Converts a code of the library, e.g. ZNONODE, to an error of spoke. */
int spokei_zoo_fold(int code);

/* An answer, borrowed for the call. */
struct spokei_zoo_answer {
	int code;                          /* code of the library, e.g. ZNONODE; 0: success */
	const struct Stat *stat;           /* of ASK_EXISTS and ASK_GET, if the node exists */
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
	SPOKEI_ZOO_GET, /* the data of a node */
	SPOKEI_ZOO_GET_WATCH,
	SPOKEI_ZOO_SET, /* ... if it has the version of the client; -1: any */
};

/*
 * A client of the session, embedded in its owner, from join() to leave(). One request at a time.
 * Both callbacks run inside the library: they may leave, but not end the session.
 */
struct spokei_zoo_asker {
	struct spoke_list node;             /* list of the handle */
	struct spokei_zoo_handle *handle;   /* NULL: has not joined */
	struct spokei_zoo_request *request; /* in flight; NULL: none */
	uintptr_t number;                   /* identifies the watch */
	int32_t version;                    /* for SET */
	void (*answered)(struct spokei_zoo_asker *asker, const struct spokei_zoo_answer *answer);
	void (*touched)(struct spokei_zoo_asker *asker);
};

/* Adds a client. There is a connection. */
void spokei_zoo_join(struct spokei_zoo_session *session, struct spokei_zoo_asker *asker);

/* Removes a client, if it has joined. */
void spokei_zoo_leave(struct spokei_zoo_asker *asker);

/* Returns whether a node of this owner belongs to the client's session. */
bool spokei_zoo_owns(const struct spokei_zoo_asker *asker, int64_t owner);

/*
 * Sends a request of a client that has joined and has none in flight. Texts are copied, `text` is
 * for CREATE and SET. The answer comes once, later, even without a connection. Returns 0;
 * SPOKE_ENOMEM; SPOKE_EINVAL for an invalid path.
 */
SPOKE_MUST_USE int spokei_zoo_ask(struct spokei_zoo_asker *asker, enum spokei_zoo_ask what,
				  const char *path, const char *text);

#endif
