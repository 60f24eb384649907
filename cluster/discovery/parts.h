/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a keeper, for the files it is made of: keeper_life.c is its life and what is wanted
 * of it, keeper_act.c asks the registry and hears how that ended, keeper_list.c takes the lists.
 *
 * Whatever happens only notes what is wanted and what is so; one task alone asks the registry, so
 * that no function of a registry is called from inside another one.
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
	struct spokei_member member; /* of the engine's roll */
	const struct spoke_registry *kind;
	void *registry; /* NULL: closed */
	uint64_t retry_ns;
	uint32_t retries_max; /* 0: no limit */
	bool takes_empty;
	const struct spokei_keeper_up *up; /* NULL: nobody is told */
	void *up_arg;
	struct spoke_list wishes;
	size_t wish_count;
	size_t troubled;          /* of them */
	bool complained;          /* an event has said what fails, */
	bool gave_up;             /* ... and that it is not tried any more */
	uint64_t intents;         /* used so far */
	struct spoke_alarm alarm; /* always set: the next wish that is due, and the end */
	uint64_t end_ns;          /* after free(): it ends then, done or not */
	struct spokei_task act;   /* asks the registry for what is to be asked */
	struct spokei_task begin; /* tells the list that was kept */
	struct spokei_task bury;
	struct spokei_cache *cache; /* NULL: none */
	struct spokei_lineup kept;  /* as read from it, until told */
	uint64_t kept_ns;           /* not told before, for lack of memory */
	bool has_providers;         /* a list with some was told upwards */
	bool protecting;            /* an empty list is not believed, and an event has said so */
	bool ended;                 /* closed: nothing is asked any more */
	bool freed;
	char name[SPOKEI_KEEPER_SHOWN]; /* of the registry, for events */
	size_t size;                    /* of this, with the path of the cache */
	char cache_path[];              /* "": there is none */
};

static inline struct spokei_wish *spokei_keeper_wish(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_wish, node);
}

/* What a registry tells. */
extern const struct spoke_registry_up spokei_keeper_registry_up;

/* The task that asks, and the alarm that has it run; the second is set all the time, which returns
 * 0 or ELIMIT. */
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

/* All providers of the service, as the registry tells them. */
void spokei_keeper_take_list(void *arg, uint64_t intent, const char *const *urls, size_t count);

/* Reads the list that was kept, and has it told soon. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_keeper_read_cache(struct spokei_keeper *keeper, const char *service);

#endif
