/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of the page: twice a second, one document with all that is new is written to all of them.
 * The timer for it runs while there are streams.
 */
#include "cluster/admin/parts.h"
#include "core/engine/engine.h"
#include "core/engine/events.h"

bool spokei_admin_arm(struct spoke_admin *admin, struct spokei_admin_timer *timer,
		      uint64_t delay_ns)
{
	struct spoke_wheel *wheel = admin->engine->wheel;
	uint64_t due_ns = spokei_later(admin->engine->begin_ns, delay_ns);

	if (spoke_timer_armed(&timer->timer))
		return spoke_wheel_reschedule(wheel, &timer->timer, due_ns) == SPOKE_WHEEL_OK;
	return spoke_wheel_schedule(wheel, &timer->timer, admin->timer_class, due_ns) ==
	       SPOKE_WHEEL_OK;
}

struct spokei_status_of spokei_admin_status_of(const struct spoke_admin *admin,
					       uint64_t events_from, uint64_t history_from)
{
	return (struct spokei_status_of){
		.name = admin->name,
		.number = admin->number,
		.born_ns = admin->born_ns,
		.history = &admin->history,
		.history_from = history_from,
		.events_from = events_from,
	};
}

void spokei_admin_told(struct spokei_http_conn *conn)
{
	const struct spoke_admin *admin = spokei_admin_of(conn);
	struct spokei_viewer *viewer = spokei_http_user(conn);

	viewer->events_from = admin->engine->events->last + 1;
	viewer->history_from = admin->history.count;
}

/* Finds the first event and sample that some idle stream has not had. Returns false if no stream is
 * idle. */
static bool find_news(const struct spoke_admin *admin, uint64_t *ret_events, uint64_t *ret_history)
{
	struct spokei_http_conn *conn = NULL;
	bool any = false;

	*ret_events = UINT64_MAX;
	*ret_history = UINT64_MAX;
	while ((conn = spokei_http_next_stream(&admin->http, conn)) != NULL) {
		const struct spokei_viewer *viewer = spokei_http_user(conn);

		if (!spokei_http_idle(conn))
			continue;
		any = true;
		if (viewer->events_from < *ret_events)
			*ret_events = viewer->events_from;
		if (viewer->history_from < *ret_history)
			*ret_history = viewer->history_from;
	}
	return any;
}

static int write_document(struct spoke_admin *admin, uint64_t events_from, uint64_t history_from)
{
	const struct spokei_status_of of = spokei_admin_status_of(admin, events_from, history_from);
	int error;

	spokei_buffer_truncate(&admin->document, 0);
	error = spokei_buffer_append(&admin->document, "data: ", 6);
	if (error == SPOKE_OK)
		error = spokei_status_write(admin->engine, &of, &admin->document);
	return error ? error : spokei_buffer_append(&admin->document, "\n\n", 2);
}

static void write_to_streams(struct spoke_admin *admin)
{
	struct spokei_http_conn *next = spokei_http_next_stream(&admin->http, NULL);
	struct spokei_http_conn *conn;

	while ((conn = next) != NULL) {
		next = spokei_http_next_stream(&admin->http, conn);
		if (!spokei_http_idle(conn))
			continue;
		spokei_admin_told(conn);
		if (spokei_http_send(conn, spokei_buffer_data(&admin->document),
				     spokei_buffer_len(&admin->document)))
			spokei_http_close(conn);
	}
}

/* A stream whose output still waits is left out. A later tick writes the news that it has missed.
 */
void spokei_admin_tick(struct spokei_admin_timer *timer)
{
	struct spoke_admin *admin = spoke_container_of(timer, struct spoke_admin, tick);
	uint64_t events_from;
	uint64_t history_from;

	if (find_news(admin, &events_from, &history_from) &&
	    write_document(admin, events_from, history_from) == SPOKE_OK)
		write_to_streams(admin);
	spokei_admin_watched(admin);
}

static void close_streams(struct spoke_admin *admin)
{
	struct spokei_http_conn *conn;

	while ((conn = spokei_http_next_stream(&admin->http, NULL)) != NULL)
		spokei_http_close(conn);
}

void spokei_admin_watched(struct spoke_admin *admin)
{
	if (admin->closed)
		return;
	if (admin->http.stream_count == 0) {
		(void)spoke_wheel_cancel(admin->engine->wheel, &admin->tick.timer);
		spokei_buffer_fini(&admin->document);
	} else if (!spoke_timer_armed(&admin->tick.timer) &&
		   !spokei_admin_arm(admin, &admin->tick, SPOKEI_ADMIN_TICK_NS)) {
		close_streams(admin);
	}
}
