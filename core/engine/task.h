/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task: a function to run a little later, embedded in its owner. Queues belong to one thread; the
 * mailbox is the one door through which other threads reach an engine.
 */
#ifndef SPOKEI_CORE_ENGINE_TASK_H
#define SPOKEI_CORE_ENGINE_TASK_H

#include "timer/base.h"

#include <stdatomic.h>

struct spoke_post;

/* A function to run once. Zero-initialised: in no queue. */
struct spokei_task {
	struct spoke_list node; /* next == NULL: in no queue */
	void (*run)(struct spokei_task *task);
};

/* Puts a task at the end of a queue, unless it is in one already. */
static inline void spokei_task_put(struct spoke_list *queue, struct spokei_task *task)
{
	if (task->node.next == NULL)
		spokei_list_append(queue, &task->node);
}

/* Takes a task out of its queue, if it is in one. */
static inline void spokei_task_drop(struct spokei_task *task)
{
	if (task->node.next != NULL)
		spokei_list_remove(&task->node);
}

/* spokei_task_run_all() of a queue that is not empty. */
size_t spokei_task_run_queue(struct spoke_list *queue, const unsigned *forks, unsigned before);

/* Runs the tasks that are in the queue now; tasks that they add wait for the next time. A task has
 * left the queue when it runs, and may be freed by its function. Once *forks is another number than
 * `before`, this is a forked child: no more tasks run, because they are the parent's, and they stay
 * in the queue. `forks` NULL: all run. Returns how many ran. */
static inline size_t spokei_task_run_all(struct spoke_list *queue, const unsigned *forks,
					 unsigned before)
{
	return spokei_list_empty(queue) ? 0 : spokei_task_run_queue(queue, forks, before);
}

/* Posts from any thread; the order of each thread is kept. */
struct spokei_mailbox {
	_Atomic(struct spoke_post *) newest; /* linked by next, newest first */
};

/* Adds a post. Any thread. Returns whether the mailbox was empty: its owner has to be woken then.
 */
bool spokei_mailbox_put(struct spokei_mailbox *mailbox, struct spoke_post *post);

/* spokei_mailbox_run_all() of a mailbox that is not empty. */
size_t spokei_mailbox_run_posts(struct spokei_mailbox *mailbox, const unsigned *forks,
				unsigned before);

/* Runs the posts that are there now, oldest first. The owner's thread. The others are dropped in a
 * forked child, see above. Returns how many ran. A post that this misses wakes the loop for another
 * turn. */
static inline size_t spokei_mailbox_run_all(struct spokei_mailbox *mailbox, const unsigned *forks,
					    unsigned before)
{
	if (atomic_load_explicit(&mailbox->newest, memory_order_relaxed) == NULL)
		return 0;
	return spokei_mailbox_run_posts(mailbox, forks, before);
}

#endif
