/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handoff: the way by which one engine, the first, hands accepted connections to another engine,
 * the second. A bounded ring between the two threads. Both sides and every post under way hold a
 * reference; the last one frees it.
 *
 * No descriptor is lost: a connection offered before the second parts is in the ring, and the
 * second takes it out when it parts. Later offers are refused, and the descriptor stays with the
 * first.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_HANDOFF_H
#define SPOKEI_TRANSPORT_LISTEN_HANDOFF_H

#include "core/engine/weak.h"

#include <spoke/engine.h>

#define SPOKEI_HANDOFF_ROOM 64u  /* connections on their way, at most */
#define SPOKEI_HANDOFF_PARTED 1u /* bit of `put`: the second has parted */

/* A connection on its way. */
struct spokei_handed {
	int fd;
	unsigned marks; /* of the address where it arrived */
	struct spoke_address peer;
};

struct spokei_handoff {
	const struct spoke_env *env;
	_Atomic(unsigned) shares; /* references */
	_Atomic(bool) posted;     /* `arrived` is under way */
	struct spokei_weak *first;
	struct spokei_weak *second;
	struct spoke_post join;
	struct spoke_post arrived;
	void (*joined)(void *first, struct spokei_handoff *handoff);
	void (*arrive)(void *second);
	void *first_arg;
	void *second_arg;
	struct spoke_list node; /* of the first's list */
	_Atomic(size_t) put;    /* twice the number ever put in; odd: the second has parted */
	_Atomic(size_t) taken;  /* number ever taken out */
	_Atomic(size_t) credit; /* number that may have been put in by now */
	struct spokei_handed ring[SPOKEI_HANDOFF_ROOM];
};

/* The two ends. The desks belong to their owners; the handoff takes over a reference to each when
 * it is made. */
struct spokei_handoff_ends {
	struct spokei_weak *first;
	struct spokei_weak *second;
	/* On the first's thread: offers may begin. Passes a reference to the receiver. */
	void (*joined)(void *first, struct spokei_handoff *handoff);
	/* On the second's thread: a connection can be taken. */
	void (*arrive)(void *second);
	void *first_arg;
	void *second_arg;
};

/* Makes a handoff; the second gets a reference. NULL: no memory, and the caller keeps the
 * references to the desks. */
struct spokei_handoff *spokei_handoff_new(const struct spoke_env *env,
					  const struct spokei_handoff_ends *ends);

/* Posts `joined` to the first. Returns whether it is still there. The second's thread, once. */
SPOKE_MUST_USE bool spokei_handoff_join(struct spokei_handoff *handoff);

/* Offers a connection. Returns whether the second has taken it over. The first's thread. */
SPOKE_MUST_USE bool spokei_handoff_offer(struct spokei_handoff *handoff, int fd,
					 const struct spoke_address *peer, unsigned marks);

/* Takes the oldest connection out. Returns whether there was any. The second's thread. */
SPOKE_MUST_USE bool spokei_handoff_take(struct spokei_handoff *handoff,
					struct spokei_handed *ret_handed);

/* Sets how many connections the second has room for, beyond those it has taken; 0 at first. When
 * this decreases, more may be on their way already. The second's thread. */
void spokei_handoff_want(struct spokei_handoff *handoff, size_t room);

/* Parts the second: no offer succeeds any more, and connections offered before can be taken. The
 * second's thread; calling it again is fine. */
void spokei_handoff_part(struct spokei_handoff *handoff);

/* Returns whether the second has parted. Any thread. */
static inline bool spokei_handoff_parted(const struct spokei_handoff *handoff)
{
	return atomic_load_explicit(&handoff->put, memory_order_relaxed) & SPOKEI_HANDOFF_PARTED;
}

/* Drops a reference; NULL is fine. */
void spokei_handoff_drop(struct spokei_handoff *handoff);

#endif
