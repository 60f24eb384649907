/* SPDX-License-Identifier: Apache-2.0 */
/* Task queues and mailboxes: order, removal, and posts from several threads. */
#include "core/engine/task.h"
#include "tests/support/test.h"

#include <spoke/engine.h>

#include <pthread.h>
#include <stdlib.h>

struct job {
	struct spokei_task task;
	struct spoke_list *again; /* the queue to which the task adds itself again */
	int *log;                 /* the task appends its number */
	int number;
};

static int logged;

static void job_run(struct spokei_task *task)
{
	struct job *job = spoke_container_of(task, struct job, task);

	job->log[logged++] = job->number;
	if (job->again)
		spokei_task_put(job->again, task);
}

TEST(tasks_run_in_order_and_once)
{
	struct spoke_list queue;
	int log[8] = { 0 };
	struct job jobs[3];

	logged = 0;
	spokei_list_init(&queue);
	for (int i = 0; i < 3; i++) {
		jobs[i] = (struct job){ { { 0 }, job_run }, NULL, log, i + 1 };
		spokei_task_put(&queue, &jobs[i].task);
		spokei_task_put(&queue, &jobs[i].task); /* already queued */
	}
	spokei_task_drop(&jobs[1].task);
	spokei_task_drop(&jobs[1].task);
	assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 2);
	assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 0);
	assert_int_equal(logged, 2);
	assert_int_equal(log[0], 1);
	assert_int_equal(log[1], 3);
}

TEST(task_added_by_a_task_runs_in_next_round)
{
	struct spoke_list queue;
	int log[8] = { 0 };
	struct job job = { { { 0 }, job_run }, &queue, log, 1 };

	logged = 0;
	spokei_list_init(&queue);
	spokei_task_put(&queue, &job.task);
	for (int i = 1; i < 4; i++) {
		assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 1);
		assert_int_equal(logged, i);
	}
	spokei_task_drop(&job.task);
	assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 0);
}

static struct job *mortal; /* freed by its own run function */

static void free_task(struct spokei_task *task)
{
	assert_ptr_equal(task, &mortal->task);
	free(mortal);
	mortal = NULL;
}

TEST(a_task_may_free_itself)
{
	struct spoke_list queue;

	mortal = calloc(1, sizeof(*mortal));
	assert_non_null(mortal);
	spokei_list_init(&queue);
	mortal->task.run = free_task;
	spokei_task_put(&queue, &mortal->task);
	assert_int_equal(spokei_task_run_all(&queue, NULL, 0), 1);
	assert_null(mortal);
}

struct letter {
	struct spoke_post post;
	int sender;
	int number;
};

enum {
	SENDERS = 4,
	LETTERS = 5000
};

static struct letter letters[SENDERS][LETTERS];
static int received[SENDERS];
static struct spokei_mailbox mailbox;
static atomic_int wakes;

static void letter_run(struct spoke_post *post)
{
	struct letter *letter = spoke_container_of(post, struct letter, post);

	assert_int_equal(letter->number, received[letter->sender]);
	received[letter->sender]++;
}

static void *send_letters(void *arg)
{
	int sender = *(int *)arg;

	for (int i = 0; i < LETTERS; i++) {
		letters[sender][i] = (struct letter){ { NULL, letter_run }, sender, i };
		if (spokei_mailbox_put(&mailbox, &letters[sender][i].post))
			atomic_fetch_add(&wakes, 1);
	}
	return NULL;
}

TEST(posts_of_threads_arrive_once_in_order_of_each_thread)
{
	pthread_t threads[SENDERS];
	int numbers[SENDERS];
	size_t ran = 0;
	int batches = 0;

	for (int i = 0; i < SENDERS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, send_letters, &numbers[i]), 0);
	}
	while (ran < (size_t)SENDERS * LETTERS) {
		size_t some = spokei_mailbox_run_all(&mailbox, NULL, 0);

		ran += some;
		batches += some > 0;
	}
	for (int i = 0; i < SENDERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(received[i], LETTERS);
	}
	/* Only the first post into an empty mailbox reports a wake-up: one per batch. */
	assert_int_equal(atomic_load(&wakes), batches);
	assert_int_equal(spokei_mailbox_run_all(&mailbox, NULL, 0), 0);
}
