/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a keeper: life.c makes and frees it and holds its wishes, act.c talks to the
 * registry, list.c takes lists, trouble.c handles failures.
 *
 * Events only change wishes; a single task calls the registry, so that no function of a registry
 * is called from inside another.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_PARTS_H
#define SPOKEI_CLUSTER_DISCOVERY_PARTS_H

#include "cluster/discovery/cache.h"
#include "cluster/discovery/keeper.h"
#include "cluster/discovery/wish.h"
#include "core/engine/roll.h"
#include "core/engine/task.h"

#include <spoke/engine.h>
#include <spoke/registry.h>

#define SPOKEI_KEEPER_SHOWN 64u /* bytes of a name in events */

struct spokei_keeper {
	struct spoke_engine *engine;
	struct spokei_member member; /* registration at the engine */
	const struct spoke_registry *kind;
	void *registry; /* NULL: closed */
	uint64_t retry_ns;
	uint32_t retries_max; /* 0: no limit */
	bool takes_empty;
	const struct spokei_keeper_up *up; /* NULL: no callbacks */
	void *up_arg;
	struct spoke_list wishes;
	size_t wish_count;
	size_t troubled;          /* wishes that are troubled */
	bool complained;          /* the failure was logged */
	bool gave_up;             /* giving up was logged */
	uint64_t intents;         /* number of the last intent */
	struct spoke_alarm alarm; /* always armed: for the next due wish, or the end */
	uint64_t end_ns;          /* after free(): deadline of the withdrawals */
	struct spokei_task act;   /* sends the requests */
	struct spokei_task begin; /* passes the cached list on */
	struct spokei_task bury;
	struct spokei_cache *cache; /* NULL: none */
	struct spokei_lineup kept;  /* cached list, until it is passed on */
	uint64_t kept_ns;           /* retry after an allocation failure */
	bool has_providers;         /* a non-empty list was passed on */
	bool over;                  /* the last list was longer than the limit, and logged */
	bool protecting;            /* an empty list was ignored, and logged */
	bool ended;                 /* closed: no more requests */
	bool freed;
	char name[SPOKEI_KEEPER_SHOWN]; /* name of the registry in events */
	size_t size;                    /* of this, with the path of the cache */
	char cache_path[];              /* "": none */
};

static inline struct spokei_wish *spokei_keeper_wish(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_wish, node);
}

/* Callbacks of the registry. */
extern const struct spoke_registry_up spokei_keeper_registry_up;

/* The task that sends requests, and the alarm that runs it, which is always armed. The latter
 * returns 0 or ELIMIT. */
void spokei_keeper_act(struct spokei_task *task);
SPOKE_MUST_USE int spokei_keeper_set_alarm(struct spokei_keeper *keeper, uint64_t now_ns);

/* Runs the task in this turn. */
void spokei_keeper_act_soon(struct spokei_keeper *keeper);

uint64_t spokei_keeper_now(const struct spokei_keeper *keeper);

/* --- trouble.c */

/* Logs that "cannot `verb` SERVICE", and schedules a retry after a pause. */
void spokei_keeper_fail(struct spokei_keeper *keeper, struct spokei_wish *wish, const char *verb,
			int error);

/* Marks a wish as failed or lost. */
void spokei_keeper_worry(struct spokei_keeper *keeper, struct spokei_wish *wish);

/* Marks a wish as fulfilled. The last one logs that the registry has recovered. */
void spokei_keeper_calm(struct spokei_keeper *keeper, struct spokei_wish *wish);

/* Returns when the next retry is due. */
uint64_t spokei_keeper_after_pause(const struct spokei_keeper *keeper);

/* The registry has answered: retries the wishes that were given up. */
void spokei_keeper_heard(struct spokei_keeper *keeper);

/* Removes and frees a wish. */
void spokei_keeper_drop_wish(struct spokei_keeper *keeper, struct spokei_wish *wish);

/* --- list.c */

/* Takes a list of the registry. */
void spokei_keeper_take_list(void *arg, uint64_t intent, const char *const *urls, size_t count);

/* Reads the cached list and passes it on in this turn. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_keeper_read_cache(struct spokei_keeper *keeper, const char *service);

#endif
