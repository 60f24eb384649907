/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the registry in ZooKeeper: zookeeper.c has the public table, session.c the
 * session, item.c the common parts of requests, and entry.c, removal.c and listing.c the kinds of
 * requests ("items").
 *
 * Answers move an item on inside the library. Results are noted at the item and reported on the
 * engine's soon queue, where everything may be freed.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_PARTS_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_PARTS_H

#include "cluster/registry/zookeeper/fold.h"
#include "cluster/registry/zookeeper/handle.h"
#include "cluster/registry/zookeeper/names.h"
#include "core/engine/task.h"

#include <spoke/registry.h>

#define SPOKEI_ZOO_ITEMS_MAX 65536u    /* publications, subscriptions and withdrawals at a time */
#define SPOKEI_ZOO_CHILDREN_MAX 10000u /* providers of a service */
#define SPOKEI_ZOO_DEADLINE_NS UINT64_C(10000000000) /* timeout of requests */
#define SPOKEI_ZOO_AGAIN_NS UINT64_C(1000000000)     /* pause before a list is requested again */
#define SPOKEI_ZOO_REFRESH_NS                                                                      \
	UINT64_C(10000000000) /* without a connection: pause before names are resolved again */
#define SPOKEI_ZOO_SILENT_NS UINT64_C(2000000000) /* without a connection: before it is told */
#define SPOKEI_ZOO_BACKOFF_FIRST_NS UINT64_C(1000000000)
#define SPOKEI_ZOO_BACKOFF_CAP_NS UINT64_C(10000000000)

struct spokei_zoo_item;

/* A kind of item. */
struct spokei_zoo_kind {
	const char *verb; /* for messages */
	/* There is a connection, perhaps a new one; nothing is in flight. NULL: needs none. */
	void (*begin)(struct spokei_zoo_item *item);
	void (*answered)(struct spokei_zoo_item *item, const struct spokei_zoo_answer *answer);
	void (*touched)(struct spokei_zoo_item *item, int event);
	bool stays; /* kept after a failure, to be requested again */
	/* Frees its resources; NULL: none but the item itself. */
	void (*fini)(struct spokei_zoo_item *item);
	size_t size; /* size of the struct whose first member is the item */
};

/* A request that is in force. */
struct spokei_zoo_item {
	struct spoke_list node; /* list of the registry */
	struct spoke_list news; /* list of those with results; next == NULL: none */
	struct spokei_zoo_registry *registry;
	const struct spokei_zoo_kind *kind;
	struct spokei_zoo_asker asker;
	uint64_t intent;  /* its intent */
	uint64_t asked;   /* intent that waits for the result; 0: none */
	int error;        /* error of the result or of the loss */
	bool ended;       /* done() is to be called for `asked` */
	bool lost;        /* lost() is to be called for `intent` */
	bool over;        /* to be freed after the results are reported */
	bool begun;       /* has begun at least once */
	bool doubtful;    /* a removal without a request */
	bool crowded;     /* the last list was longer than the limit, which an event has told */
	bool rule;        /* a listing of one node, which has a text */
	uint64_t connect; /* connection of the handle at which it has begun; 0: none */
	struct spoke_alarm alarm;
	char **urls; /* list to be reported; NULL: none. One block of memory with the texts */
	size_t url_count;
	size_t urls_size;
	char *path; /* path of the node or the folder, in a block of its own */
	size_t path_size;
	size_t folder_len; /* length of the folder's path */
	size_t made;       /* length of the path whose parents exist */
};

struct spokei_zoo_registry {
	struct spoke_engine *engine;
	const struct spoke_registry_up *up; /* NULL: closed */
	void *up_arg;
	struct spokei_zoo_settings settings;
	struct spokei_zoo_handle *handle; /* NULL: names are not resolved yet */
	struct spoke_list items;
	uint32_t item_count;
	struct spoke_list news; /* linked by spokei_zoo_item.news */
	struct spokei_task tell;
	bool instances_asked; /* whether there are any was asked, after an empty list */
	bool lost_all;        /* lost(0) is to be called, after earlier results */
	/* --- names (session.c) */
	struct spoke_alarm again;  /* next resolution */
	struct spoke_alarm silent; /* since the last connection, or the first attempt */
	uint32_t failures;
	bool resolving;    /* resolved() will be called */
	uint64_t connects; /* last known number of connects */
	bool connected;    /* last known state */
	int found_count;   /* or a negative errno */
	struct spoke_address found[SPOKEI_ZOO_PLACES_MAX];
	struct spokei_task bury;
};

/* --- session.c */

/* Begins a session; makes no callbacks. */
void spokei_zoo_keep(struct spokei_zoo_registry *registry);

/* Ends the session. The registry is freed when its last work has returned. */
void spokei_zoo_stop(struct spokei_zoo_registry *registry);

/* --- item.c */

/* Makes an item for the folder of a service's category, for a node in it if there is a `url`, or,
 * if `service` is NULL, without a path. The rest of the kind's struct is zero. Returns NULL if
 * there is no memory. */
struct spokei_zoo_item *spokei_zoo_item_new(struct spokei_zoo_registry *registry,
					    const struct spokei_zoo_kind *kind, uint64_t intent,
					    const char *service, const char *category,
					    const char *url);

/* Appends the node of a URL to the path of an item that has only its folder. Returns 0 or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_zoo_item_name(struct spokei_zoo_item *item, const char *url);

void spokei_zoo_item_free(struct spokei_zoo_item *item);

/* Sets the intent that waits for the result, and starts the timeout. Returns 0 or an error of
 * the wheel. */
SPOKE_MUST_USE int spokei_zoo_item_await(struct spokei_zoo_item *item, uint64_t asked);

/* Begins the item again a little later or with the next connection. Returns false if no timer
 * is left. */
bool spokei_zoo_item_again(struct spokei_zoo_item *item);

/* Begins the item if there is a connection at which it has not begun. */
void spokei_zoo_item_try(struct spokei_zoo_item *item);

/* Notes success. */
void spokei_zoo_item_done(struct spokei_zoo_item *item);

/* Notes a failure or a loss. */
void spokei_zoo_item_fail(struct spokei_zoo_item *item, int error);

/* Schedules the report of results. */
void spokei_zoo_item_note(struct spokei_zoo_item *item);

/* Sends a request; fails the item if that is impossible. */
void spokei_zoo_item_ask(struct spokei_zoo_item *item, enum spokei_zoo_ask what, const char *path,
			 const char *text);

/* Creates the next parent of the path. Returns false if all exist. */
bool spokei_zoo_item_make_parent(struct spokei_zoo_item *item);

/* Returns the item of an intent, or NULL. */
struct spokei_zoo_item *spokei_zoo_item_find(const struct spokei_zoo_registry *registry,
					     uint64_t intent);

/* Ends all items after the session has expired: waiting ones are reported, then lost(0). */
void spokei_zoo_items_end(struct spokei_zoo_registry *registry);

/* --- kinds */

extern const struct spokei_zoo_kind spokei_zoo_entry;
extern const struct spokei_zoo_kind spokei_zoo_removal;
extern const struct spokei_zoo_kind spokei_zoo_listing;
extern const struct spokei_zoo_kind spokei_zoo_note; /* reports a result only */

/* Parses the URL of an entry. The node of a consumer gets its name when there is a connection.
 * Returns 0 or an error of spoke_url_parse(). */
SPOKE_MUST_USE int spokei_zoo_entry_read(struct spokei_zoo_item *item, const char *url);

/* Turns an entry into its removal and frees it. Returns NULL if there is no memory. */
struct spokei_zoo_item *spokei_zoo_remove(struct spokei_zoo_item *entry);

/* Removes the node of an entry that failed and may have been created all the same, unless it
 * is published again before. Frees the entry. */
void spokei_zoo_doubt(struct spokei_zoo_item *entry);

/* Cancels removals without a request, because the node is published again. */
void spokei_zoo_keep_node(struct spokei_zoo_registry *registry, const char *path);

#endif
