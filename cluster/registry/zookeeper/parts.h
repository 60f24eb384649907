/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the halves of the registry in ZooKeeper share: zookeeper.c has the table, zookeeper_keep.c
 * the session, zookeeper_item.c what all that is asked for has in common, and zookeeper_entry.c,
 * _removal.c and _listing.c what each is.
 *
 * What the library answers moves an item on, within the library. What has to be told is noted at
 * the item and told on the engine's soon, where everything may be freed.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_PARTS_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_PARTS_H

#include "cluster/registry/zookeeper/handle.h"
#include "cluster/registry/zookeeper/names.h"
#include "core/engine/task.h"

#include <spoke/registry.h>

#define SPOKEI_ZOO_ITEMS_MAX 65536u    /* published, subscribed, withdrawn: at a time */
#define SPOKEI_ZOO_CHILDREN_MAX 10000u /* providers of a service */
#define SPOKEI_ZOO_DEADLINE_NS UINT64_C(10000000000) /* by then everything is answered */
#define SPOKEI_ZOO_AGAIN_NS UINT64_C(1000000000)     /* before a list is asked for again */
#define SPOKEI_ZOO_REFRESH_NS UINT64_C(10000000000)  /* without a connection: names anew */
#define SPOKEI_ZOO_BACKOFF_FIRST_NS UINT64_C(1000000000)
#define SPOKEI_ZOO_BACKOFF_CAP_NS UINT64_C(10000000000)

struct spokei_zoo_item;

/* What an item is. */
struct spokei_zoo_kind {
	const char *verb; /* for people */
	/* There is a connection, a new one perhaps; nothing is under way. NULL: it needs none. */
	void (*begin)(struct spokei_zoo_item *item);
	void (*answered)(struct spokei_zoo_item *item, const struct spokei_zoo_answer *answer);
	void (*touched)(struct spokei_zoo_item *item, int event);
	bool stays; /* when it has failed: to be asked for again */
	/* Gives back what it holds; NULL: nothing but the item itself. */
	void (*fini)(struct spokei_zoo_item *item);
	size_t size; /* of the struct that the item is the first member of */
};

/* One thing that was asked for, and stands. */
struct spokei_zoo_item {
	struct spoke_list node; /* of the registry's items */
	struct spoke_list news; /* of those with something to tell; next == NULL: nothing */
	struct spokei_zoo_registry *registry;
	const struct spokei_zoo_kind *kind;
	struct spokei_zoo_asker asker;
	uint64_t intent;  /* it is known by */
	uint64_t asked;   /* the intent that waits for its end; 0: none */
	int error;        /* with which that ended, or it was lost */
	bool ended;       /* done() is to be told, for `asked` */
	bool lost;        /* lost() is to be told, for `intent` */
	bool over;        /* to be freed when all is told */
	bool begun;       /* at some time */
	bool doubtful;    /* a removal that nobody asked for */
	uint64_t connect; /* it has begun with this one of the handle's; 0: with none */
	struct spoke_alarm alarm;
	char **urls; /* to be told; NULL: no list is. One block of memory with the texts */
	size_t url_count;
	size_t urls_size;
	char *path; /* of the node, or the folder; in a block of its own */
	size_t path_size;
	size_t folder_len; /* of the path: the folder's */
	size_t made;       /* of the path: which parents there are */
};

struct spokei_zoo_registry {
	struct spoke_engine *engine;
	const struct spoke_registry_up *up; /* NULL: closed */
	void *up_arg;
	struct spokei_zoo_settings settings;
	struct spokei_zoo_handle *handle; /* NULL: the names are being resolved, or will be */
	struct spoke_list items;
	uint32_t item_count;
	struct spoke_list news; /* items by spokei_zoo_item.news */
	struct spokei_task tell;
	bool lost_all; /* lost(0) is to be told, after those before it */
	/* --- names (zookeeper_keep.c) */
	struct spoke_work work;
	struct spoke_alarm again; /* to resolve them, or to do so anew */
	uint32_t failures;
	bool resolving;    /* the work is the loop's; `found` is its thread's */
	uint64_t connects; /* of the handle, that were seen */
	bool connected;    /* ... as was seen */
	int found_count;   /* or a negative errno */
	struct spoke_address found[SPOKEI_ZOO_PLACES_MAX];
	struct spokei_task bury;
};

/* --- zookeeper_keep.c: there is a session */

/* Begins; nothing is told from here. */
void spokei_zoo_keep(struct spokei_zoo_registry *registry);

/* Ends it. The registry is freed when its last work is back. */
void spokei_zoo_stop(struct spokei_zoo_registry *registry);

/* --- zookeeper_item.c */

/* Makes an item whose node is a service's folder, or a provider's in it if there is a `url`; NULL:
 * it has none yet. The kind's struct is zero behind the item. Returns NULL: no memory. */
struct spokei_zoo_item *spokei_zoo_item_new(struct spokei_zoo_registry *registry,
					    const struct spokei_zoo_kind *kind, uint64_t intent,
					    const char *service, const char *url);

void spokei_zoo_item_free(struct spokei_zoo_item *item);

/* It waits for its end, for `asked`, from now on until the deadline. Returns 0 or an error of the
 * wheel's. */
SPOKE_MUST_USE int spokei_zoo_item_await(struct spokei_zoo_item *item, uint64_t asked);

/* Nobody waits, but it begins anew a little later, or with the next connection. False: no timer is
 * left. */
bool spokei_zoo_item_again(struct spokei_zoo_item *item);

/* Begins if there is a connection that it has not begun with. */
void spokei_zoo_item_try(struct spokei_zoo_item *item);

/* What was asked for is done. */
void spokei_zoo_item_done(struct spokei_zoo_item *item);

/* ... or has failed; or what was done before does not hold any more. */
void spokei_zoo_item_fail(struct spokei_zoo_item *item, int error);

/* It has something to tell. */
void spokei_zoo_item_note(struct spokei_zoo_item *item);

/* Asks ZooKeeper; fails if that cannot be. */
void spokei_zoo_item_ask(struct spokei_zoo_item *item, enum spokei_zoo_ask what, const char *path,
			 const char *text);

/* Makes the next parent of the path. False: all have been made. */
bool spokei_zoo_item_make_parent(struct spokei_zoo_item *item);

/* The item of an intent, NULL: there is none. */
struct spokei_zoo_item *spokei_zoo_item_find(const struct spokei_zoo_registry *registry,
					     uint64_t intent);

/* All are over, for the session is: those who wait are told, then lost(0). */
void spokei_zoo_items_end(struct spokei_zoo_registry *registry);

/* --- kinds */

extern const struct spokei_zoo_kind spokei_zoo_entry;
extern const struct spokei_zoo_kind spokei_zoo_removal;
extern const struct spokei_zoo_kind spokei_zoo_listing;
extern const struct spokei_zoo_kind spokei_zoo_note; /* that something is done already */

/* Reads the URL of an entry. Returns 0 or an error of spoke_url_parse(). */
SPOKE_MUST_USE int spokei_zoo_entry_read(struct spokei_zoo_item *item, const char *url);

/* Makes a removal of what an entry published; the entry is freed. NULL: no memory. */
struct spokei_zoo_item *spokei_zoo_remove(struct spokei_zoo_item *entry);

/* The node of an entry whose making has failed may be there all the same: it is removed when that
 * can be, unless it is published anew before. The entry is freed. */
void spokei_zoo_doubt(struct spokei_zoo_item *entry);

/* What was to be removed is published anew: nobody removes it who has not been asked to just now.
 */
void spokei_zoo_keep_node(struct spokei_zoo_registry *registry, const char *path);

#endif
