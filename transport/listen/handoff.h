/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mate: the way by which one engine, the first, hands accepted connections to another one, the
 * second. It is a bounded ring between the two threads, and shared by both sides and by every post
 * that is under way; whoever goes last frees it.
 *
 * No descriptor gets lost: what was offered before the second parts is in the ring, and the second
 * takes it out when it parts; whatever is offered later is refused, and stays with who offers.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_HANDOFF_H
#define SPOKEI_TRANSPORT_LISTEN_HANDOFF_H

#include "core/engine/desk.h"

#define SPOKEI_HANDOFF_ROOM 64u  /* connections on their way, at most */
#define SPOKEI_HANDOFF_PARTED 1u /* of `put`: the second has gone */

/* A connection on its way. */
struct spokei_handed {
	int fd;
	struct spoke_address peer;
};

struct spokei_handoff {
	const struct spoke_env *env;
	_Atomic(unsigned) shares;
	_Atomic(bool) posted; /* `arrived` is under way */
	struct spokei_desk *first;
	struct spokei_desk *second;
	struct spoke_post join;
	struct spoke_post arrived;
	void (*joined)(void *first, struct spokei_handoff *handoff);
	void (*arrive)(void *second);
	void *first_arg;
	void *second_arg;
	struct spoke_list node; /* the first's */
	_Atomic(size_t) put;    /* twice what was ever put in; odd: the second has parted */
	_Atomic(size_t) taken;  /* what was ever taken out */
	_Atomic(size_t) credit; /* how many may ever have been put in, as of now */
	struct spokei_handed ring[SPOKEI_HANDOFF_ROOM];
};

/* What a mate leads from and to; the desks are those of their owners, and a share of each is the
 * mate's when it is made. */
struct spokei_handoff_ends {
	struct spokei_desk *first;
	struct spokei_desk *second;
	/* On the first's thread: offers may begin. With a share, which is the receiver's. */
	void (*joined)(void *first, struct spokei_handoff *handoff);
	/* On the second's thread: there is something to take. */
	void (*arrive)(void *second);
	void *first_arg;
	void *second_arg;
};

/* One with a share for the second. NULL: no memory, and the desks keep their shares. */
struct spokei_handoff *spokei_handoff_new(const struct spoke_env *env,
					  const struct spokei_handoff_ends *ends);

/* Lets the first know. Returns whether it is there to be told. The second's thread, once. */
SPOKE_MUST_USE bool spokei_handoff_join(struct spokei_handoff *handoff);

/* Offers a connection. Returns whether the second has it now. The first's thread. */
SPOKE_MUST_USE bool spokei_handoff_offer(struct spokei_handoff *handoff, int fd,
					 const struct spoke_address *peer);

/* Takes the oldest one out. Returns whether there was any. The second's thread. */
SPOKE_MUST_USE bool spokei_handoff_take(struct spokei_handoff *handoff,
					struct spokei_handed *ret_handed);

/* Says how many more the second has room for, beyond what it has taken; none at first. What is on
 * its way may be more than that, when it has become less. Its thread. */
void spokei_handoff_want(struct spokei_handoff *handoff, size_t room);

/* The second goes: nothing is offered any more, and what was can be taken. Its thread; again is
 * fine. */
void spokei_handoff_part(struct spokei_handoff *handoff);

/* Has the second gone? Any thread. */
static inline bool spokei_handoff_parted(const struct spokei_handoff *handoff)
{
	return atomic_load_explicit(&handoff->put, memory_order_relaxed) & SPOKEI_HANDOFF_PARTED;
}

/* Gives a share back; NULL is fine. */
void spokei_handoff_drop(struct spokei_handoff *handoff);

#endif
