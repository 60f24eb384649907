/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for a reply on one connection. Each has an id that only this connection has
 * issued, a timer that is armed at the end of the turn, and one completion. Ids count up, so a ring
 * finds the call of an id in one step, and the connection knows of every id whether it was issued.
 * Owned by one connection, on the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONN_PENDING_H
#define SPOKEI_TRANSPORT_CONN_PENDING_H

#include "timer/base.h"

#include <spoke/error.h>
#include <spoke/wheel.h>

struct spoke_env;
struct spokei_conn;
struct spokei_message;
struct spokei_pending;
struct spokei_unsent;

/* How an attempt ended; borrowed for done(). */
struct spokei_outcome {
	int error;                          /* SPOKE_OK: `reply` has the result */
	const struct spokei_message *reply; /* NULL: none, or the call was one-way */
	bool written;
	const char *reason; /* why there is no connection; NULL: not known */
	uint64_t queued_ns; /* until it was written, or ended */
	uint64_t waited_ns; /* from the write to the end */
};

/* Embedded in a call; one attempt. Zero-initialised. */
struct spokei_pending {
	struct spoke_timer timer;
	struct spoke_list node;   /* in one of the lists below; next == NULL: in none */
	struct spokei_conn *conn; /* NULL: not in flight */
	struct spokei_unsent
		*unsent; /* the request as values, while the connection takes nothing */
	uint64_t id;
	uint64_t mark; /* written once the output has passed this; UINT64_MAX: not queued yet */
	uint64_t begun_ns;
	uint64_t written_ns; /* 0: not written */
	uint64_t timeout_ns;
	void (*done)(struct spokei_pending *pending, const struct spokei_outcome *outcome);
	bool two_way;
	/* Its memory outlives the attempt, so its timer may stay in the wheel, which makes the next
	 * call cheaper. The owner detaches it before freeing. */
	bool lasting;
	/* Of the owner: the attempt began while another one of a hedged call was slow. */
	bool backup;
};

#define SPOKEI_PENDINGS_ROOM_AT_ONCE 1024u /* a ring with more cells grows in steps */

struct spokei_pendings {
	struct spokei_pending **ring; /* the call of an id at id & (room - 1), or NULL */
	size_t room;                  /* 0 or a power of two; at most half of it is taken */
	size_t limit;                 /* calls that an addition need not look further for */
	size_t count;                 /* in both rings */
	uint64_t last;                /* largest id; `first` follows it */
	uint64_t next;                /* the next id to issue */
	uint64_t given;               /* ids issued or skipped */
	struct spoke_list fresh;      /* of this turn: their timers are not armed */
	struct spoke_list unwritten;  /* of earlier turns, queued and not written, in that order */
	struct spoke_list kept;       /* of earlier turns, unsent, in their order */
	uint64_t first;               /* smallest id */
	/* A ring of twice the room, while calls move into it; NULL: none. Those of the first
	 * `split` cells are there, at id & (2 * room - 1); the other cells are not initialised. */
	struct spokei_pending **grown;
	size_t split;
	void *spent; /* the ring before, while it is freed in steps; NULL: none */
	size_t spent_size;
	size_t looked; /* cells that any() need not look at again soon */
};

/* Prepares ids from `first` to `last`, beginning with `next`. The struct must not be moved
 * afterwards. */
static inline void spokei_pendings_init(struct spokei_pendings *pendings, uint64_t first,
					uint64_t last, uint64_t next)
{
	SPOKE_ASSERT(first <= next && next <= last);
	*pendings = (struct spokei_pendings){ .first = first, .last = last, .next = next };
	spokei_list_init(&pendings->fresh);
	spokei_list_init(&pendings->kept);
	spokei_list_init(&pendings->unwritten);
}

/* Frees the ring, when no call waits any more. */
void spokei_pendings_fini(struct spokei_pendings *pendings, const struct spoke_env *env);

/* Adds a call where the ring is full, or grows, or the cell of `next` is taken; returns as
 * spokei_pendings_add(). */
SPOKE_MUST_USE int spokei_pendings_add_slowly(struct spokei_pendings *pendings,
					      const struct spoke_env *env,
					      struct spokei_pending *pending);

/* Removes a call that is not in `ring` from the grown ring, if it is there. */
void spokei_pendings_remove_grown(struct spokei_pendings *pendings,
				  const struct spokei_pending *pending);

/* Returns the call of an id in the grown ring, or NULL. */
struct spokei_pending *spokei_pendings_find_grown(const struct spokei_pendings *pendings,
						  uint64_t id);

static inline size_t spokei_pendings_cell(const struct spokei_pendings *pendings, uint64_t id)
{
	return (size_t)id & (pendings->room - 1);
}

/* Uses up the next id. */
static inline void spokei_pendings_step(struct spokei_pendings *pendings)
{
	pendings->next = pendings->next == pendings->last ? pendings->first : pendings->next + 1;
	pendings->given++;
}

/* Gives the call an id that no waiting call has. Returns 0, SPOKE_ENOMEM, or SPOKE_ELIMIT: all ids
 * are in use. */
SPOKE_MUST_USE static inline int spokei_pendings_add(struct spokei_pendings *pendings,
						     const struct spoke_env *env,
						     struct spokei_pending *pending)
{
	if (SPOKEI_UNLIKELY(pendings->count >= pendings->limit ||
			    pendings->ring[spokei_pendings_cell(pendings, pendings->next)]))
		return spokei_pendings_add_slowly(pendings, env, pending);
	pending->id = pendings->next;
	pendings->ring[spokei_pendings_cell(pendings, pending->id)] = pending;
	pendings->count++;
	spokei_pendings_step(pendings);
	return SPOKE_OK;
}

/* Removes the call from the ring, if it is there. */
static inline void spokei_pendings_remove(struct spokei_pendings *pendings,
					  const struct spokei_pending *pending)
{
	size_t cell = spokei_pendings_cell(pendings, pending->id);

	if (pendings->count == 0)
		return;
	if (SPOKEI_UNLIKELY(pendings->ring[cell] != pending)) {
		spokei_pendings_remove_grown(pendings, pending);
		return;
	}
	pendings->ring[cell] = NULL;
	pendings->count--;
}

/* Returns whether the id was ever issued or skipped. Ids are used again after all of them were
 * used. */
bool spokei_pendings_gave(const struct spokei_pendings *pendings, uint64_t id);

/* Returns the call of an id, or NULL; *ret_given: whether the id was ever issued. */
static inline struct spokei_pending *spokei_pendings_find(const struct spokei_pendings *pendings,
							  uint64_t id, bool *ret_given)
{
	struct spokei_pending *pending = NULL;

	if (pendings->count > 0)
		pending = pendings->ring[spokei_pendings_cell(pendings, id)];
	if (SPOKEI_LIKELY(pending && pending->id == id)) {
		*ret_given = true;
		return pending;
	}
	pending = SPOKEI_UNLIKELY(pendings->grown != NULL)
			  ? spokei_pendings_find_grown(pendings, id)
			  : NULL;
	*ret_given = pending || spokei_pendings_gave(pendings, id);
	return pending;
}

/* Returns any waiting call, usually the oldest; NULL: none. Taking one after another until none is
 * left costs one step for each cell of the ring. */
struct spokei_pending *spokei_pendings_any(struct spokei_pendings *pendings);

#endif
