/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something to run a little later: embedded in whoever wants it run. Queues are for one thread; the
 * mailbox is the one door through which other threads reach an engine's.
 */
#ifndef SPOKEI_CORE_ENGINE_TASK_H
#define SPOKEI_CORE_ENGINE_TASK_H

#include "timer/base.h"

#include <spoke/engine.h>

#include <stdatomic.h>

/* A function to run once. Zero-initialised it is in no queue. */
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

/* Takes a task out of the queue it may be in. */
static inline void spokei_task_drop(struct spokei_task *task)
{
	if (task->node.next != NULL)
		spokei_list_remove(&task->node);
}

/* Runs what is in the queue now; what these tasks put there waits for the next time. A task is out
 * of the queue when it runs and may be freed by it. Returns how many ran. */
size_t spokei_task_run_all(struct spoke_list *queue);

/* Posts from any thread, kept in order per thread. */
struct spokei_mailbox {
	_Atomic(struct spoke_post *) newest; /* linked by next, the newest first */
};

/* Any thread. Returns whether the mailbox was empty: whoever empties it has to be woken then. */
bool spokei_mailbox_put(struct spokei_mailbox *mailbox, struct spoke_post *post);

/* The owner's thread: runs what is there now, oldest first. Returns how many ran. */
size_t spokei_mailbox_run_all(struct spokei_mailbox *mailbox);

#endif
