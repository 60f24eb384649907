/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of tasks and the mailbox for other threads; see task.h. */
#include "core/engine/task.h"

#include <spoke/engine.h>

static inline bool is_parted(const unsigned *forks, unsigned before)
{
	return forks && *forks != before;
}

size_t spokei_task_run_queue(struct spoke_list *queue, const unsigned *forks, unsigned before)
{
	struct spoke_list batch;
	size_t ran = 0;

	spokei_list_move(queue, &batch);
	while (!spokei_list_empty(&batch)) {
		struct spokei_task *task = spoke_container_of(batch.next, struct spokei_task, node);

		spokei_list_remove(&task->node);
		if (SPOKEI_UNLIKELY(is_parted(forks, before))) {
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

size_t spokei_mailbox_run_posts(struct spokei_mailbox *mailbox, const unsigned *forks,
				unsigned before)
{
	struct spoke_post *newest = atomic_exchange_explicit(&mailbox->newest, NULL,
							     memory_order_acquire);
	struct spoke_post *oldest = NULL;
	size_t ran = 0;

	while (newest) {
		struct spoke_post *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest && !is_parted(forks, before)) {
		struct spoke_post *next = oldest->next;

		oldest->run(oldest);
		oldest = next;
		ran++;
	}
	return ran;
}
