/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams: told twice a second what is new since the last time, by one document for all. The
 * timer for it is there while somebody watches.
 */
#include "cluster/admin/admin_parts.h"

static bool is_streaming(const struct spokei_viewer *viewer)
{
	return viewer->state == SPOKEI_VIEWER_STREAMING;
}

static bool is_idle(const struct spokei_viewer *viewer)
{
	return is_streaming(viewer) && spokei_buffer_len(&viewer->out) == 0;
}

static struct spokei_viewer *viewer_of(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_viewer, node);
}

/* Closes streams that take nothing; returns whether some may be told, and from where on. */
static bool look_at_streams(struct spoke_admin *admin, uint64_t *ret_events, uint64_t *ret_history)
{
	uint64_t now_ns = admin->engine->begin_ns;
	bool any = false;

	*ret_events = UINT64_MAX;
	*ret_history = UINT64_MAX;
	for (struct spoke_list *node = admin->viewers.next; node != &admin->viewers;) {
		struct spokei_viewer *viewer = viewer_of(node);

		node = node->next;
		if (!is_streaming(viewer))
			continue;
		if (!is_idle(viewer)) {
			if (now_ns - viewer->moved_ns >= SPOKEI_ADMIN_SLOW_NS)
				spokei_viewer_close(viewer);
			continue;
		}
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

static void tell_streams(struct spoke_admin *admin)
{
	for (struct spoke_list *node = admin->viewers.next; node != &admin->viewers;) {
		struct spokei_viewer *viewer = viewer_of(node);

		node = node->next;
		if (!is_idle(viewer))
			continue;
		viewer->events_from = admin->engine->events.last + 1;
		viewer->history_from = admin->history.count;
		spokei_viewer_tell(viewer, spokei_buffer_data(&admin->document),
				   spokei_buffer_len(&admin->document));
	}
}

/* One that still has something to take is left out, and told all of it the next time. */
void spokei_admin_tick(struct spokei_admin_timer *timer)
{
	struct spoke_admin *admin = spoke_container_of(timer, struct spoke_admin, tick);
	uint64_t events_from;
	uint64_t history_from;

	if (look_at_streams(admin, &events_from, &history_from) &&
	    write_document(admin, events_from, history_from) == SPOKE_OK)
		tell_streams(admin);
	spokei_admin_watched(admin);
}

/* Nobody could be told that there is no timer left: such streams end, and are asked for again. */
static void close_streams(struct spoke_admin *admin)
{
	for (struct spoke_list *node = admin->viewers.next; node != &admin->viewers;) {
		struct spokei_viewer *viewer = viewer_of(node);

		node = node->next;
		if (!is_streaming(viewer))
			continue;
		viewer->state = SPOKEI_VIEWER_ANSWERED;
		spokei_viewer_close(viewer);
	}
}

void spokei_admin_watched(struct spoke_admin *admin)
{
	bool any = false;

	if (admin->closed)
		return;
	for (struct spoke_list *node = admin->viewers.next; node != &admin->viewers;
	     node = node->next)
		any = any || is_streaming(viewer_of(node));
	if (!any) {
		(void)spoke_wheel_cancel(admin->engine->wheel, &admin->tick.timer);
		spokei_buffer_fini(&admin->document);
	} else if (!spoke_timer_armed(&admin->tick.timer) &&
		   !spokei_admin_arm(admin, &admin->tick, SPOKEI_ADMIN_TICK_NS)) {
		close_streams(admin);
	}
}
