/* SPDX-License-Identifier: Apache-2.0 */
/* Works of a loop that run on the pool and are handed back on the loop's thread; see works.h. */
#include "core/host/works.h"

#include "core/host/forks.h"

#include <errno.h>

static struct spoke_list *node_of(struct spoke_work *work)
{
	_Static_assert(sizeof(struct spoke_list) == 2 * sizeof(work->loop[0]), "it fits");
	return (struct spoke_list *)(void *)&work->loop[1];
}

/* Called by a thread of the pool, or by the loop as it closes. */
static void work_finished(void *arg, struct spoke_work *work)
{
	struct spokei_works *works = arg;
	struct spoke_work *newest = atomic_load_explicit(&works->finished, memory_order_relaxed);

	do {
		work->loop[0] = newest;
	} while (!atomic_compare_exchange_weak_explicit(&works->finished, &newest, work,
							memory_order_release,
							memory_order_relaxed));
	if (newest == NULL)
		works->back(works->arg);
}

int spokei_works_init(struct spokei_works *works, void (*back)(void *arg), void *arg)
{
	int error = spokei_pool_init(&works->pool, 0, 0, work_finished, works);

	if (error)
		return error;
	works->back = back;
	works->arg = arg;
	atomic_init(&works->finished, NULL);
	spokei_list_init(&works->outside);
	return 0;
}

int spokei_works_submit(struct spokei_works *works, struct spoke_work *work)
{
	int error = spokei_pool_submit(&works->pool, work);

	if (!error)
		spokei_list_append(&works->outside, node_of(work));
	return error;
}

/* Reverses a list of works. */
static struct spoke_work *oldest_first(struct spoke_work *work)
{
	struct spoke_work *oldest = NULL;

	while (work) {
		struct spoke_work *next = work->loop[0];

		work->loop[0] = oldest;
		oldest = work;
		work = next;
	}
	return oldest;
}

/* A work may fork: the others are then for the parent, and the child abandons them. */
void spokei_works_hand_back(struct spokei_works *works)
{
	struct spoke_work *work = oldest_first(
		atomic_exchange_explicit(&works->finished, NULL, memory_order_acquire));

	while (work && works->pool.forks == spokei_forks) {
		struct spoke_work *next = work->loop[0];

		spokei_list_remove(node_of(work));
		work->done(work);
		work = next;
	}
}

void spokei_works_stop(struct spokei_works *works)
{
	spokei_pool_stop(&works->pool);
	spokei_works_hand_back(works);
}

void spokei_works_abandon(struct spokei_works *works)
{
	while (!spokei_list_empty(&works->outside)) {
		struct spoke_list *node = works->outside.next;
		struct spoke_work *work = spoke_container_of(node, struct spoke_work, loop[1]);

		spokei_list_remove(node);
		work->status = -ECANCELED;
		work->done(work);
	}
}

void spokei_works_fini(struct spokei_works *works)
{
	spokei_pool_fini(&works->pool);
}
