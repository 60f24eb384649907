/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands connections from one engine to another: a ring with one thread that puts in and one that
 * takes out. A bit of `put` closes the ring, so putting in and closing cannot overtake each other.
 */
#include "transport/listen/handoff.h"
#include "core/base/env.h"
#include "core/engine/engine.h"

#include <spoke/engine.h>

#define ONE 2u /* one connection in `put` */

static void add_share(struct spokei_handoff *handoff)
{
	(void)atomic_fetch_add_explicit(&handoff->shares, 1, memory_order_relaxed);
}

void spokei_handoff_drop(struct spokei_handoff *handoff)
{
	if (handoff == NULL ||
	    atomic_fetch_sub_explicit(&handoff->shares, 1, memory_order_acq_rel) > 1)
		return;
	spokei_weak_drop(handoff->first);
	spokei_weak_drop(handoff->second);
	spokei_free(handoff->env, handoff, 1, sizeof(*handoff));
}

/* Posts to the engine of a weak handle; the post holds a reference. Returns false when the weak
 * handle is closed.
 */
static bool post(struct spokei_handoff *handoff, struct spokei_weak *weak,
		 struct spoke_post *message)
{
	if (!spokei_weak_enter(weak))
		return false;
	add_share(handoff);
	spoke_engine_post(weak->engine, message);
	spokei_weak_leave(weak);
	return true;
}

/* A weak handle is closed before its owner is freed, so an open one proves that the owner exists.
 */
static void run_joined(struct spoke_post *arrived)
{
	struct spokei_handoff *handoff = spoke_container_of(arrived, struct spokei_handoff, join);

	if (spokei_weak_closed(handoff->first))
		spokei_handoff_drop(handoff);
	else
		handoff->joined(handoff->first_arg, handoff);
}

static void run_arrived(struct spoke_post *arrived)
{
	struct spokei_handoff *handoff = spoke_container_of(arrived, struct spokei_handoff,
							    arrived);

	/* The next offer posts again; connections already in the ring are taken now. */
	(void)atomic_exchange_explicit(&handoff->posted, false, memory_order_acq_rel);
	/* The second may be freed once it has parted. */
	if (!spokei_handoff_parted(handoff))
		handoff->arrive(handoff->second_arg);
	spokei_handoff_drop(handoff);
}

struct spokei_handoff *spokei_handoff_new(const struct spoke_env *env,
					  const struct spokei_handoff_ends *ends)
{
	struct spokei_handoff *handoff = spokei_alloc(env, 1, sizeof(*handoff));

	if (handoff == NULL)
		return NULL;
	handoff->env = env;
	atomic_init(&handoff->shares, 1);
	handoff->first = ends->first;
	handoff->second = ends->second;
	handoff->joined = ends->joined;
	handoff->arrive = ends->arrive;
	handoff->first_arg = ends->first_arg;
	handoff->second_arg = ends->second_arg;
	handoff->join.run = run_joined;
	handoff->arrived.run = run_arrived;
	return handoff;
}

bool spokei_handoff_join(struct spokei_handoff *handoff)
{
	return post(handoff, handoff->first, &handoff->join);
}

bool spokei_handoff_offer(struct spokei_handoff *handoff, int fd, const struct spoke_address *peer,
			  unsigned marks)
{
	size_t put = atomic_load_explicit(&handoff->put, memory_order_relaxed);
	size_t credit = atomic_load_explicit(&handoff->credit, memory_order_acquire);

	/* The credit may have decreased below the number already put in. */
	if (put & SPOKEI_HANDOFF_PARTED || put / ONE >= credit)
		return false;
	handoff->ring[put / ONE % SPOKEI_HANDOFF_ROOM] = (struct spokei_handed){ fd, marks, *peer };
	/* Fails when the second has parted meanwhile. */
	if (!atomic_compare_exchange_strong_explicit(&handoff->put, &put, put + ONE,
						     memory_order_acq_rel, memory_order_relaxed))
		return false;
	/* A second that no post reaches any more took the connection out as it parted, or will. */
	if (!atomic_exchange_explicit(&handoff->posted, true, memory_order_acq_rel))
		(void)post(handoff, handoff->second, &handoff->arrived);
	return true;
}

void spokei_handoff_want(struct spokei_handoff *handoff, size_t room)
{
	size_t taken = atomic_load_explicit(&handoff->taken, memory_order_relaxed);

	if (room > SPOKEI_HANDOFF_ROOM)
		room = SPOKEI_HANDOFF_ROOM;
	/* So the ring is never full: a thread that reads this credit may reuse the places of all
	 * connections taken. */
	atomic_store_explicit(&handoff->credit, taken + room, memory_order_release);
}

bool spokei_handoff_take(struct spokei_handoff *handoff, struct spokei_handed *ret_handed)
{
	size_t taken = atomic_load_explicit(&handoff->taken, memory_order_relaxed);

	if (atomic_load_explicit(&handoff->put, memory_order_acquire) / ONE == taken)
		return false;
	*ret_handed = handoff->ring[taken % SPOKEI_HANDOFF_ROOM];
	atomic_store_explicit(&handoff->taken, taken + 1, memory_order_release);
	return true;
}

void spokei_handoff_part(struct spokei_handoff *handoff)
{
	(void)atomic_fetch_or_explicit(&handoff->put, SPOKEI_HANDOFF_PARTED, memory_order_acq_rel);
}
