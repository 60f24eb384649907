/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structs of leases at work, shared by the files that move them: leases.c has the functions for
 * users, holding.c asks, holds and releases, renew.c renews. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_LEASE_PARTS_H
#define SPOKEI_CLUSTER_LEASE_PARTS_H

#include "cluster/lease/lease.h"
#include "cluster/lease/redis.h"
#include "core/engine/engine.h"
#include "core/memory/map.h"
#include "core/memory/slab.h"

#include <spoke/wheel.h>

#include <inttypes.h>
#include <stdio.h>

#define SPOKEI_LEASE_NAME_SHORT 24u /* names up to this length lie in their lease */
#define SPOKEI_LEASE_UUID 36u       /* bytes of a UUID as text */
#define SPOKEI_LEASE_HOLDER 64u     /* room for a holder: UUID:n */
#define SPOKEI_LEASE_BATCHES 16u    /* most scripts with renewals under way */

struct spokei_lease_settings;
struct spokei_lease_terms;
struct spokei_use;

/* The asks that wait for one name, or one ask that does not wait. Exists as long as an ask does. */
struct spokei_lease_queue {
	struct spokei_redis_channel channel; /* its name lies in `text` */
	struct spoke_leases *leases;
	struct spoke_list waiters; /* struct spokei_lease, by node; only the first one tries */
	struct spoke_list node;    /* in leases->queues_todo; next NULL: not */
	uint64_t retry_ns;         /* the first one tries again at this time; 0: at once */
	uint64_t refused_ns;       /* time of the last refusal */
	uint64_t hush_ns;          /* until then no message leads to a try */
	uint32_t rushes;           /* refusals in a row without a rest between them */
	bool alone;                /* of an ask that does not wait: no other joins it */
	bool listens;              /* it has subscribed to the channel */
	bool woken;                /* a message came while a try was under way */
	size_t size;               /* of the whole block */
	struct spoke_span name;    /* lies in `text`; the key in the map */
	char text[];               /* the name of the channel, then the name */
};

/* The part of a lease that other threads read. */
struct spokei_lease_mirror {
	_Atomic(uint64_t) end_ns; /* end of its validity; 0: it is not held */
};

/* One lease: 176 bytes, which with the head of its cell make 192. */
struct spokei_lease {
	struct spokei_lease_life life;
	/* Armed from the ask to the end, so that it always has a place on the wheel: for the next
	 * try or renewal, but not after life.end_ns. */
	struct spoke_timer timer;
	/* In queue->waiters as an ask; in leases->due when its renewal is due; in leases->todo
	 * when it has something to send; in leases->untold when it has ended and the user is to be
	 * called. next NULL: in none. */
	struct spoke_list node;
	struct spoke_leases *leases;
	uint64_t handle;
	spoke_lease_told_fn told;
	spoke_lease_lost_fn lost;
	void *arg; /* of both */
	union {
		struct spokei_use *uses;      /* of one that is held: see use.h */
		spoke_lease_released_fn done; /* after its release */
	};
	union {
		struct spokei_lease_queue *queue; /* of an ask */
		void *done_arg;                   /* after its release */
	};
	union {
		char bytes[SPOKEI_LEASE_NAME_SHORT];
		char *block; /* of name_len bytes */
	} name;
	uint16_t name_len;
	int16_t error;     /* of a call to the user that is due */
	uint8_t tell;      /* ... enum spokei_lease_tell; of LOST, `error` is the reason */
	bool under : 1;    /* its command is under way */
	bool repeats : 1;  /* its RELEASE was sent before, without an answer */
	bool granted : 1;  /* it was held */
	bool mirrored : 1; /* `arg` is a struct spokei_lease_mirror */
};

/* An ACQUIRE or a RELEASE under way. */
struct spokei_lease_command {
	struct spokei_redis_ask ask;
	struct spoke_leases *leases;
	uint64_t cell;   /* its own handle; 0: unused */
	uint64_t handle; /* of the lease, which may have ended meanwhile */
	uint64_t sent_ns;
	bool releases; /* it is a RELEASE */
};

/* Renewals under way in one script. */
struct spokei_lease_batch {
	struct spokei_redis_ask ask;
	struct spoke_leases *leases;
	bool busy; /* it is under way */
	uint32_t count;
	uint64_t sent_ns;
	uint64_t handles[SPOKEI_SCRIPT_RENEW_MAX];
};

struct spokei_weak;
struct spokei_member;

struct spoke_leases {
	struct spoke_engine *engine;
	struct spokei_redis *redis; /* NULL: ended */
	const struct spokei_lease_settings *settings;
	struct spokei_lease_clock clock;
	_Atomic(struct spokei_weak *) weak; /* for futures; NULL: none was made yet */
	unsigned timer_class;
	struct spokei_slab cells;    /* struct spokei_lease; lasting, so that all can be visited */
	struct spokei_slab commands; /* struct spokei_lease_command; lasting, too */
	struct spokei_map queues;    /* name -> struct spokei_lease_queue, of those that wait */
	struct spoke_list todo;      /* leases whose RELEASE is to be sent */
	struct spoke_list queues_todo; /* queues whose first lease has something to send */
	struct spoke_list due;         /* held leases to be renewed */
	struct spoke_list untold;      /* ended leases whose users are to be called */
	struct spokei_task work;       /* for due, todo and queues_todo */
	struct spokei_task tell;       /* for untold */
	struct spokei_task rest;       /* ends leases that drain, when none is left */
	struct spokei_task end;        /* frees the leases */
	struct spokei_early early;     /* on the engine's list while leases are held */
	uint64_t earliest_ns;          /* no lease that is held ends before */
	uint64_t hold_ns; /* until then nothing is acquired or released: the store is busy */
	uint32_t holds;   /* ... how often in a row */
	uint64_t patience_ns;
	uint32_t asks;
	uint32_t held;
	bool reached;  /* the store was reached since the last failure */
	bool draining; /* no new leases */
	bool ended;
	bool freed;
	char uuid[SPOKEI_LEASE_UUID];
	char why[sizeof(((struct spoke_leases_look *)0)->why)]; /* as shown there */
	struct spokei_lease_batch batches[SPOKEI_LEASE_BATCHES];
};

/* --- of all files */

static inline uint64_t spokei_leases_now(const struct spoke_leases *leases)
{
	return spokei_lease_clock_now(&leases->clock);
}

/* Returns a pause before something is repeated: 50 to 250 ms, at random. */
static inline uint64_t spokei_leases_pause(const struct spoke_leases *leases)
{
	const struct spoke_env *env = leases->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return UINT64_C(50000000) + dice % UINT64_C(200000000);
}

/* Returns the name of a lease, valid as long as the lease. */
static inline struct spoke_span spokei_lease_name_of(const struct spokei_lease *lease)
{
	return (struct spoke_span){ lease->name_len > SPOKEI_LEASE_NAME_SHORT ? lease->name.block
									      : lease->name.bytes,
				    lease->name_len };
}

static inline struct spokei_lease *spokei_lease_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_lease, node);
}

/* Returns how the user names this lease. */
static inline struct spoke_lease spokei_lease_public(const struct spokei_lease *lease)
{
	return (struct spoke_lease){ lease->leases, lease->handle };
}

/* Writes the holder's name, without a NUL; returns it. */
static inline struct spoke_span spokei_lease_holder(const struct spokei_lease *lease,
						    char to[SPOKEI_LEASE_HOLDER])
{
	int len;

	memcpy(to, lease->leases->uuid, SPOKEI_LEASE_UUID);
	len = snprintf(to + SPOKEI_LEASE_UUID, SPOKEI_LEASE_HOLDER - SPOKEI_LEASE_UUID, ":%" PRIu64,
		       lease->handle);
	return (struct spoke_span){ to, SPOKEI_LEASE_UUID + (size_t)len };
}

/* Removes the lease from the list that it is in. */
static inline void spokei_lease_unlist(struct spokei_lease *lease)
{
	if (lease->node.next)
		spokei_list_remove(&lease->node);
}

/* --- leases.c */

/* Returns whether an event about single leases may be logged: there were not too many of late. */
bool spokei_leases_may_log(struct spoke_leases *leases);

/* --- holding.c */

/* Begins all: lists, tasks, the connection to the store; and what their member does when the engine
 * drains or wakes. Returns 0, or an error. */
SPOKE_MUST_USE int spokei_leases_begin(struct spoke_leases *leases, struct spokei_member *member);

/* Ends everything. Commands under way are forgotten by the store, and so is their memory. */
void spokei_leases_end(struct spoke_leases *leases);

/* Begins an ask on these terms, whose callbacks are set afterwards. Returns 0, SPOKE_ELIMIT or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_lease_take(struct spoke_leases *leases, const char *name,
				     const struct spokei_lease_terms *terms,
				     struct spokei_lease **ret_lease);

/* Releases a lease that is held, or cancels an ask. `done` may be NULL. */
void spokei_lease_give(struct spokei_lease *lease, spoke_lease_released_fn done, void *arg);

/* Sets the timer of a lease for `at_ns` of the clock of leases, or for its end if that is earlier.
 * Returns whether the wheel had room, which it always has for a timer that is armed. */
bool spokei_lease_arm(struct spokei_lease *lease, uint64_t at_ns);

/* The words of the store, for the user. */
struct spokei_lease_words {
	struct spoke_span text;
	uint64_t left_ns;
};

extern const struct spokei_lease_words spokei_lease_no_words;

/*
 * Moves the lease after an event, and carries out the verdict. Calls the user at once if `words` is
 * not NULL, else by a task. The lease may be gone, and its leases ended, when this returns.
 */
void spokei_lease_happen(struct spokei_lease *lease, const struct spokei_lease_news *news,
			 const struct spokei_lease_words *words);

/* --- renew.c */

/* Has a held lease renewed when the tasks of this turn run. */
void spokei_lease_renew_soon(struct spokei_lease *lease);

/* Sends the renewals that are due, as far as the store takes them. */
void spokei_leases_renew(struct spoke_leases *leases);

#endif
