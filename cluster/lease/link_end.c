/* SPDX-License-Identifier: Apache-2.0 */
/* The timer of a connection that speaks RESP, its end, and the pause that follows. */
#include "cluster/lease/link.h"
#include "core/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct spokei_backoff backoff = {
	.first_ns = SPOKEI_REDIS_BACKOFF_FIRST_NS,
	.cap_ns = SPOKEI_REDIS_BACKOFF_CAP_NS,
};

/* --- the timer */

int spokei_redis_link_arm(struct spokei_redis_link *link, uint64_t due_ns)
{
	struct spoke_wheel *wheel = link->engine->wheel;

	link->due_ns = due_ns;
	if (spoke_timer_armed(&link->timer))
		return spokei_engine_fold(spoke_wheel_reschedule(wheel, &link->timer, due_ns));
	return spokei_engine_fold(
		spoke_wheel_schedule(wheel, &link->timer, link->timer_class, due_ns));
}

/* The wheel has room, because the timer was armed before; it refuses only at the end of its time.
 */
static void set_timer_at(struct spokei_redis_link *link, uint64_t due_ns)
{
	if (spokei_redis_link_arm(link, due_ns))
		spokei_event_of(link->engine, SPOKE_EVENT_OF_LEASE, SPOKE_ELIMIT,
				"store %s: its timer cannot be set; make a new engine",
				link->place.name);
}

void spokei_redis_link_timer(struct spokei_redis_link *link, uint64_t delay_ns)
{
	set_timer_at(link, spokei_later(link->engine->env->now(link->engine->env->ctx), delay_ns));
}

void spokei_redis_link_due(struct spokei_redis_link *link, uint64_t due_ns)
{
	if (link->state == SPOKEI_REDIS_READY && due_ns < link->due_ns)
		set_timer_at(link, due_ns);
}

/* --- the end */

/* Returns whether the backoff starts again. A server that breaks the protocol or refuses its task
 * after each greeting must not be connected to again and again without a growing pause. */
static bool has_worked(const struct spokei_redis_link *link)
{
	if (link->state != SPOKEI_REDIS_READY)
		return false;
	if (link->answered && link->error != SPOKE_EPROTOCOL && link->error != SPOKE_ESTORE)
		return true;
	return link->engine->begin_ns - link->ready_ns >= backoff.cap_ns;
}

static uint64_t pause_of(const struct spokei_redis_link *link)
{
	const struct spoke_env *env = link->engine->env;
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return spokei_backoff_pause(&backoff, link->failures, dice);
}

static void close_stream(struct spokei_redis_link *link)
{
	link->round++;
	link->reading = false;
	link->unwritable = false;
	spokei_task_drop(&link->write);
	spokei_stream_close(&link->stream);
	if (link->inside)
		return; /* the replies that are being read lie in the buffer */
	spokei_buffer_fini(&link->in);
	spokei_buffer_fini(&link->out);
}

void spokei_redis_link_end(struct spokei_redis_link *link, int error, const char *format, ...)
{
	va_list args;

	if (link->state <= SPOKEI_REDIS_WAITING)
		return;
	link->error = error;
	va_start(args, format);
	(void)vsnprintf(link->why, sizeof(link->why), format, args);
	va_end(args);
	link->worked = has_worked(link);
	if (link->worked)
		link->failures = 0;
	close_stream(link);
	link->state = SPOKEI_REDIS_WAITING;
	link->pause_ns = pause_of(link);
	spokei_redis_link_timer(link, link->pause_ns);
	if (link->failures < UINT32_MAX)
		link->failures++;
	spokei_engine_soon(link->engine, &link->news);
}

void spokei_redis_link_broken(struct spokei_redis_link *link, int status)
{
	char text[SPOKEI_STATUS_TEXT];

	spokei_redis_link_end(link, spokei_redis_link_open(link) ? SPOKE_ELOST : SPOKE_ECONNECT,
			      "%s",
			      status ? spokei_status_text(status, text)
				     : "the server closed the connection");
}

void spokei_redis_link_stop(struct spokei_redis_link *link)
{
	close_stream(link);
	spokei_task_drop(&link->news);
	link->state = SPOKEI_REDIS_STOPPED;
}
