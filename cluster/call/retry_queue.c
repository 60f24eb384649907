/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/call/retry_queue.h"

static void retry_due(struct spoke_timer *timer, void *arg);

int spokei_retry_queue_init(struct spokei_retry_queue *queue, struct spoke_engine *engine,
			    uint32_t tasks_max, size_t bytes_max,
			    void (*due)(struct spokei_retry_state *retry))
{
	*queue = (struct spokei_retry_queue){
		.engine = engine,
		.due = due,
		.tasks_max = tasks_max,
		.bytes_max = bytes_max,
	};
	spokei_list_init(&queue->tickets);
	spokei_list_init(&queue->unready);
	spokei_list_init(&queue->pausing);
	return spokei_engine_class(engine, "retry", retry_due, &queue->timer_class);
}

/* --- tickets */

static struct spokei_retry_state *of_tickets(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_retry_state, of_tickets);
}

struct spokei_retry_state *spokei_retry_queue_oldest(const struct spokei_retry_queue *queue)
{
	return spokei_list_empty(&queue->tickets) ? NULL : of_tickets(queue->tickets.next);
}

void spokei_retry_queue_admit(struct spokei_retry_queue *queue, struct spokei_retry_state *retry)
{
	SPOKE_ASSERT(spokei_retry_queue_has_room(queue, retry->size));
	queue->tasks++;
	queue->bytes += retry->size;
	spokei_list_append(&queue->tickets, &retry->of_tickets);
}

/* --- waiting */

static void retry_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_retry_state *retry = spoke_container_of(timer, struct spokei_retry_state,
							      timer);
	struct spokei_retry_queue *queue = retry->queue;

	(void)arg;
	spokei_retry_queue_leave(queue, retry, false);
	queue->due(retry);
}

/* The turn ends: its times begin. */
static void retry_arm(struct spokei_task *task)
{
	struct spokei_retry_state *retry = spoke_container_of(task, struct spokei_retry_state, arm);
	struct spokei_retry_queue *queue = retry->queue;
	struct spoke_engine *engine = queue->engine;
	uint64_t now_ns = spokei_engine_settled(engine);
	uint64_t end_ns;

	if (retry->begun_ns == 0)
		retry->begun_ns = now_ns;
	if (retry->stage == SPOKEI_RETRY_STATE_UNREADY) {
		retry->due_ns = spokei_later(retry->begun_ns, retry->timeout_ns);
	} else {
		retry->due_ns = spokei_later(now_ns, retry->pause_ns);
		end_ns = spokei_later(retry->begun_ns, retry->lasts_ns);
		if (retry->due_ns > end_ns)
			retry->due_ns = end_ns;
	}
	if (spoke_wheel_schedule(engine->wheel, &retry->timer, queue->timer_class, retry->due_ns) !=
	    SPOKE_WHEEL_OK) {
		retry->homeless = true;
		spokei_retry_queue_leave(queue, retry, false);
		queue->due(retry);
	}
}

static void wait_on(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
		    enum spokei_retry_state_stage stage, struct spoke_list *list)
{
	retry->queue = queue;
	retry->stage = stage;
	spokei_list_append(list, &retry->of_retry);
	retry->arm.run = retry_arm;
	spokei_engine_last(queue->engine, &retry->arm);
}

void spokei_retry_queue_pause(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      uint64_t pause_ns)
{
	retry->pause_ns = pause_ns;
	wait_on(queue, retry, SPOKEI_RETRY_STATE_PAUSING, &queue->pausing);
}

void spokei_retry_queue_unready(struct spokei_retry_queue *queue, struct spokei_retry_state *retry)
{
	wait_on(queue, retry, SPOKEI_RETRY_STATE_UNREADY, &queue->unready);
}

void spokei_retry_queue_leave(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      bool over)
{
	spokei_task_drop(&retry->arm);
	if (retry->of_retry.next)
		spokei_list_remove(&retry->of_retry);
	(void)spoke_wheel_cancel(queue->engine->wheel, &retry->timer);
	if (!over || retry->of_tickets.next == NULL)
		return;
	spokei_list_remove(&retry->of_tickets);
	queue->tasks--;
	queue->bytes -= retry->size;
}

/* Those that wait again meanwhile are not asked again. */
void spokei_retry_queue_wake(struct spokei_retry_queue *queue)
{
	struct spoke_list ready;

	spokei_list_init(&ready);
	spokei_list_move(&queue->unready, &ready);
	while (!spokei_list_empty(&ready)) {
		struct spokei_retry_state *retry = spoke_container_of(spokei_list_first(&ready),
								      struct spokei_retry_state,
								      of_retry);

		spokei_retry_queue_leave(queue, retry, false);
		queue->due(retry);
	}
}

struct spokei_retry_state *spokei_retry_queue_any(const struct spokei_retry_queue *queue)
{
	const struct spoke_list *list = &queue->pausing;

	if (spokei_list_empty(list))
		list = &queue->unready;
	if (spokei_list_empty(list))
		return NULL;
	return spoke_container_of(list->next, struct spokei_retry_state, of_retry);
}
