/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of tasks and the mailbox for other threads; see task.h. */
#include "core/engine/task.h"

#include "core/engine/engine.h"

#include <spoke/engine.h>

/* Returns the counter of forks, and sets the value that it has in the process of the engine. NULL:
 * the counter never changes. */
static const unsigned *forks_of(const struct spoke_engine *engine, unsigned *ret_forks)
{
	static const unsigned none;
	bool counts = engine && engine->env->forks;

	*ret_forks = counts ? engine->forks : none;
	return counts ? engine->env->forks : &none;
}

size_t spokei_task_run_all(struct spoke_list *queue, const struct spoke_engine *engine)
{
	struct spoke_list batch;
	const unsigned *forks;
	unsigned before;
	size_t ran = 0;

	if (spokei_list_empty(queue))
		return 0;
	forks = forks_of(engine, &before);
	spokei_list_move(queue, &batch);
	while (!spokei_list_empty(&batch)) {
		struct spokei_task *task = spoke_container_of(batch.next, struct spokei_task, node);

		spokei_list_remove(&task->node);
		if (SPOKEI_UNLIKELY(*forks != before)) {
			spokei_list_append(queue, &task->node);
			continue;
		}
		task->run(task);
		ran++;
	}
	return ran;
}

bool spokei_mailbox_put(struct spokei_mailbox *mailbox, struct spoke_post *post)
{
	struct spoke_post *newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);

	do {
		post->next = newest;
	} while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &newest, post,
							memory_order_release,
							memory_order_relaxed));
	return newest == NULL;
}

size_t spokei_mailbox_run_all(struct spokei_mailbox *mailbox, const struct spoke_engine *engine)
{
	struct spoke_post *newest = atomic_exchange_explicit(&mailbox->newest, NULL,
							     memory_order_acquire);
	struct spoke_post *oldest = NULL;
	const unsigned *forks;
	unsigned before;
	size_t ran = 0;

	if (newest == NULL)
		return 0;
	forks = forks_of(engine, &before);
	while (newest) {
		struct spoke_post *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest && *forks == before) {
		struct spoke_post *next = oldest->next;

		oldest->run(oldest);
		oldest = next;
		ran++;
	}
	return ran;
}
