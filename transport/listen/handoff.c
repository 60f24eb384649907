/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring has one thread that puts in and one that takes out. `put` carries the word that it is
 * closed, so putting in and closing cannot pass each other.
 */
#include "transport/listen/handoff.h"

#define ONE 2u /* of `put` */

static void add_share(struct spokei_mate *mate)
{
	(void)atomic_fetch_add_explicit(&mate->shares, 1, memory_order_relaxed);
}

void spokei_mate_drop(struct spokei_mate *mate)
{
	if (mate == NULL || atomic_fetch_sub_explicit(&mate->shares, 1, memory_order_acq_rel) > 1)
		return;
	spokei_desk_drop(mate->first);
	spokei_desk_drop(mate->second);
	spokei_free(mate->env, mate, 1, sizeof(*mate));
}

/* Has a post run behind a desk, with a share of its own; false: nobody is there any more. */
static bool post(struct spokei_mate *mate, struct spokei_desk *desk, struct spoke_post *what)
{
	if (!spokei_desk_enter(desk))
		return false;
	add_share(mate);
	spoke_engine_post(desk->engine, what);
	spokei_desk_leave(desk);
	return true;
}

/* A desk closes when its owner is buried, so an open one tells that the owner is there. */
static void run_joined(struct spoke_post *arrived)
{
	struct spokei_mate *mate = spoke_container_of(arrived, struct spokei_mate, join);

	if (spokei_desk_closed(mate->first))
		spokei_mate_drop(mate);
	else
		mate->joined(mate->first_arg, mate);
}

static void run_arrived(struct spoke_post *arrived)
{
	struct spokei_mate *mate = spoke_container_of(arrived, struct spokei_mate, arrived);

	/* From here on whoever puts something in posts again; what lies there is taken now. */
	(void)atomic_exchange_explicit(&mate->posted, false, memory_order_acq_rel);
	/* The second may be freed once it has parted. */
	if (!spokei_mate_parted(mate))
		mate->arrive(mate->second_arg);
	spokei_mate_drop(mate);
}

struct spokei_mate *spokei_mate_new(const struct spoke_env *env,
				    const struct spokei_mate_ends *ends)
{
	struct spokei_mate *mate = spokei_alloc(env, 1, sizeof(*mate));

	if (mate == NULL)
		return NULL;
	mate->env = env;
	atomic_init(&mate->shares, 1);
	mate->first = ends->first;
	mate->second = ends->second;
	mate->joined = ends->joined;
	mate->arrive = ends->arrive;
	mate->first_arg = ends->first_arg;
	mate->second_arg = ends->second_arg;
	mate->join.run = run_joined;
	mate->arrived.run = run_arrived;
	return mate;
}

bool spokei_mate_join(struct spokei_mate *mate)
{
	return post(mate, mate->first, &mate->join);
}

bool spokei_mate_offer(struct spokei_mate *mate, int fd, const struct spoke_address *peer)
{
	size_t put = atomic_load_explicit(&mate->put, memory_order_relaxed);
	size_t credit = atomic_load_explicit(&mate->credit, memory_order_acquire);

	/* It may have become less than was put in already. */
	if (put & SPOKEI_MATE_PARTED || put / ONE >= credit)
		return false;
	mate->ring[put / ONE % SPOKEI_MATE_ROOM] = (struct spokei_handed){ fd, *peer };
	/* It fails when the second has parted meanwhile. */
	if (!atomic_compare_exchange_strong_explicit(&mate->put, &put, put + ONE,
						     memory_order_acq_rel, memory_order_relaxed))
		return false;
	/* Whom no post reaches any more has taken it out as it parted, or is about to. */
	if (!atomic_exchange_explicit(&mate->posted, true, memory_order_acq_rel))
		(void)post(mate, mate->second, &mate->arrived);
	return true;
}

void spokei_mate_want(struct spokei_mate *mate, size_t room)
{
	size_t taken = atomic_load_explicit(&mate->taken, memory_order_relaxed);

	if (room > SPOKEI_MATE_ROOM)
		room = SPOKEI_MATE_ROOM;
	/* So the ring is never full: whoever sees this may use the places of all that was taken. */
	atomic_store_explicit(&mate->credit, taken + room, memory_order_release);
}

bool spokei_mate_take(struct spokei_mate *mate, struct spokei_handed *ret_handed)
{
	size_t taken = atomic_load_explicit(&mate->taken, memory_order_relaxed);

	if (atomic_load_explicit(&mate->put, memory_order_acquire) / ONE == taken)
		return false;
	*ret_handed = mate->ring[taken % SPOKEI_MATE_ROOM];
	atomic_store_explicit(&mate->taken, taken + 1, memory_order_release);
	return true;
}

void spokei_mate_part(struct spokei_mate *mate)
{
	(void)atomic_fetch_or_explicit(&mate->put, SPOKEI_MATE_PARTED, memory_order_acq_rel);
}
