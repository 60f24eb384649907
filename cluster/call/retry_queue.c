/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps calls that wait for their next attempt in lists, and on the engine's wheel. */
#include "cluster/call/retry_queue.h"

#include "cluster/call/retry_state.h"
#include "cluster/config/keys.h"
#include "core/engine/engine.h"

#define UNKNOWN UINT32_MAX /* the class of watched attempts, before the first one */

static void retry_due(struct spoke_timer *timer, void *arg);

int spokei_retry_queue_init(struct spokei_retry_queue *queue, struct spoke_engine *engine,
			    spokei_retry_due_fn due)
{
	*queue = (struct spokei_retry_queue){
		.engine = engine,
		.due = due,
	};
	spokei_list_init(&queue->tickets);
	spokei_list_init(&queue->unready);
	spokei_list_init(&queue->pausing);
	queue->watch_class = UNKNOWN;
	return spokei_engine_class(engine, "retry", retry_due, &queue->timer_class);
}

/* --- tickets */

void spokei_retry_queue_limit(struct spokei_retry_queue *queue,
			      const struct spokei_key_values *values)
{
	queue->tasks_max = spokei_keys_u32(values, SPOKEI_KEY_FAILBACK_TASKS);
	queue->bytes_max = (size_t)values->of[SPOKEI_KEY_FAILBACK_BYTES];
	queue->drops_oldest = values->of[SPOKEI_KEY_FAILBACK_OVERFLOW] != 0;
}

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

static void end_wait(struct spokei_retry_state *retry, int error)
{
	struct spokei_retry_queue *queue = retry->queue;

	spokei_retry_queue_leave(queue, retry, false);
	queue->due(retry, error);
}

static void retry_due(struct spoke_timer *timer, void *arg)
{
	(void)arg;
	end_wait(spoke_container_of(timer, struct spokei_retry_state, timer), SPOKE_OK);
}

/* When the call is due; the turn in which its wait began ends now. */
static uint64_t due_of(const struct spokei_retry_state *retry, uint64_t now_ns)
{
	uint64_t due_ns = spokei_later(now_ns, retry->pause_ns);
	uint64_t end_ns = spokei_later(retry->begun_ns, retry->lasts_ns);

	if (retry->state == SPOKEI_CALL_UNREADY)
		return spokei_later(retry->begun_ns, retry->args.timeout_ns);
	return due_ns < end_ns ? due_ns : end_ns;
}

static void retry_arm(struct spokei_task *task)
{
	struct spokei_retry_state *retry = spoke_container_of(task, struct spokei_retry_state, arm);
	struct spokei_retry_queue *queue = retry->queue;
	uint64_t now_ns = spokei_engine_settled(queue->engine);

	if (retry->begun_ns == 0)
		retry->begun_ns = now_ns;
	retry->due_ns = due_of(retry, now_ns);
	if (spoke_wheel_schedule(queue->engine->wheel, &retry->timer, queue->timer_class,
				 retry->due_ns) != SPOKE_WHEEL_OK)
		end_wait(retry, SPOKE_ELIMIT);
}

static void wait_on(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
		    enum spokei_call_state state, struct spoke_list *list)
{
	spokei_call_move(&retry->state, state);
	retry->queue = queue;
	spokei_list_append(list, &retry->of_retry);
	retry->arm.run = retry_arm;
	spokei_engine_last(queue->engine, &retry->arm);
}

void spokei_retry_queue_pause(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      uint64_t pause_ns)
{
	retry->pause_ns = pause_ns;
	wait_on(queue, retry, SPOKEI_CALL_PAUSING, &queue->pausing);
}

void spokei_retry_queue_unready(struct spokei_retry_queue *queue, struct spokei_retry_state *retry)
{
	wait_on(queue, retry, SPOKEI_CALL_UNREADY, &queue->unready);
}

static void watch_due(struct spoke_timer *timer, void *arg)
{
	retry_due(timer, arg);
}

/* Attempts that may get a backup have a class of their own, which only programs with such methods
 * need. */
static unsigned watch_class(struct spokei_retry_queue *queue)
{
	if (queue->watch_class == UNKNOWN &&
	    spokei_engine_class(queue->engine, "hedge", watch_due, &queue->watch_class))
		queue->watch_class = queue->timer_class; /* there is no other */
	return queue->watch_class;
}

static void watch_arm(struct spokei_task *task)
{
	struct spokei_retry_state *retry = spoke_container_of(task, struct spokei_retry_state, arm);
	struct spokei_retry_queue *queue = retry->queue;
	uint64_t now_ns = spokei_engine_settled(queue->engine);

	if (retry->begun_ns == 0)
		retry->begun_ns = now_ns;
	retry->due_ns = spokei_later(now_ns, retry->pause_ns);
	/* If the wheel has no room, the call goes on as if it were not watched. */
	(void)!spoke_wheel_schedule(queue->engine->wheel, &retry->timer, watch_class(queue),
				    retry->due_ns);
}

void spokei_retry_queue_watch(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      uint64_t after_ns)
{
	retry->pause_ns = after_ns;
	retry->watched = true;
	retry->queue = queue;
	retry->arm.run = watch_arm;
	spokei_engine_last(queue->engine, &retry->arm);
}

void spokei_retry_queue_leave(struct spokei_retry_queue *queue, struct spokei_retry_state *retry,
			      bool over)
{
	retry->watched = false;
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

/* Calls that begin to wait again meanwhile are not due. */
void spokei_retry_queue_wake(struct spokei_retry_queue *queue)
{
	struct spoke_list ready;

	spokei_list_init(&ready);
	spokei_list_move(&queue->unready, &ready);
	while (!spokei_list_empty(&ready)) {
		end_wait(spoke_container_of(spokei_list_first(&ready), struct spokei_retry_state,
					    of_retry),
			 SPOKE_OK);
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
