/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/call/retry.h"

static void course_due(struct spoke_timer *timer, void *arg);

int spokei_retry_init(struct spokei_retry *retry, struct spoke_engine *engine, uint32_t tasks_max,
		      size_t bytes_max, void (*due)(struct spokei_course *course))
{
	*retry = (struct spokei_retry){
		.engine = engine,
		.due = due,
		.tasks_max = tasks_max,
		.bytes_max = bytes_max,
	};
	spokei_list_init(&retry->tickets);
	spokei_list_init(&retry->unready);
	spokei_list_init(&retry->pausing);
	return spokei_engine_class(engine, "retry", course_due, &retry->timer_class);
}

/* --- tickets */

static struct spokei_course *of_tickets(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_course, of_tickets);
}

struct spokei_course *spokei_retry_oldest(const struct spokei_retry *retry)
{
	return spokei_list_empty(&retry->tickets) ? NULL : of_tickets(retry->tickets.next);
}

void spokei_retry_admit(struct spokei_retry *retry, struct spokei_course *course)
{
	SPOKE_ASSERT(spokei_retry_has_room(retry, course->size));
	retry->tasks++;
	retry->bytes += course->size;
	spokei_list_append(&retry->tickets, &course->of_tickets);
}

/* --- waiting */

static void course_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_course *course = spoke_container_of(timer, struct spokei_course, timer);
	struct spokei_retry *retry = course->retry;

	(void)arg;
	spokei_retry_leave(retry, course, false);
	retry->due(course);
}

/* The turn ends: its times begin. */
static void course_arm(struct spokei_task *task)
{
	struct spokei_course *course = spoke_container_of(task, struct spokei_course, arm);
	struct spokei_retry *retry = course->retry;
	struct spoke_engine *engine = retry->engine;
	uint64_t now_ns = spokei_engine_settled(engine);
	uint64_t end_ns;

	if (course->begun_ns == 0)
		course->begun_ns = now_ns;
	if (course->stage == SPOKEI_COURSE_UNREADY) {
		course->due_ns = spokei_later(course->begun_ns, course->timeout_ns);
	} else {
		course->due_ns = spokei_later(now_ns, course->pause_ns);
		end_ns = spokei_later(course->begun_ns, course->lasts_ns);
		if (course->due_ns > end_ns)
			course->due_ns = end_ns;
	}
	if (spoke_wheel_schedule(engine->wheel, &course->timer, retry->timer_class,
				 course->due_ns) != SPOKE_WHEEL_OK) {
		course->homeless = true;
		spokei_retry_leave(retry, course, false);
		retry->due(course);
	}
}

static void wait_on(struct spokei_retry *retry, struct spokei_course *course,
		    enum spokei_course_stage stage, struct spoke_list *list)
{
	course->retry = retry;
	course->stage = stage;
	spokei_list_append(list, &course->of_retry);
	course->arm.run = course_arm;
	spokei_engine_last(retry->engine, &course->arm);
}

void spokei_retry_pause(struct spokei_retry *retry, struct spokei_course *course, uint64_t pause_ns)
{
	course->pause_ns = pause_ns;
	wait_on(retry, course, SPOKEI_COURSE_PAUSING, &retry->pausing);
}

void spokei_retry_unready(struct spokei_retry *retry, struct spokei_course *course)
{
	wait_on(retry, course, SPOKEI_COURSE_UNREADY, &retry->unready);
}

void spokei_retry_leave(struct spokei_retry *retry, struct spokei_course *course, bool over)
{
	spokei_task_drop(&course->arm);
	if (course->of_retry.next)
		spokei_list_remove(&course->of_retry);
	(void)spoke_wheel_cancel(retry->engine->wheel, &course->timer);
	if (!over || course->of_tickets.next == NULL)
		return;
	spokei_list_remove(&course->of_tickets);
	retry->tasks--;
	retry->bytes -= course->size;
}

/* Those that wait again meanwhile are not asked again. */
void spokei_retry_wake(struct spokei_retry *retry)
{
	struct spoke_list ready;

	spokei_list_init(&ready);
	spokei_list_move(&retry->unready, &ready);
	while (!spokei_list_empty(&ready)) {
		struct spokei_course *course = spoke_container_of(spokei_list_first(&ready),
								  struct spokei_course, of_retry);

		spokei_retry_leave(retry, course, false);
		retry->due(course);
	}
}

struct spokei_course *spokei_retry_any(const struct spokei_retry *retry)
{
	const struct spoke_list *list = &retry->pausing;

	if (spokei_list_empty(list))
		list = &retry->unready;
	if (spokei_list_empty(list))
		return NULL;
	return spoke_container_of(list->next, struct spokei_course, of_retry);
}
