/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: a request is read, its answer written, and then it ends, for the peer to close
 * first, so that nothing unread destroys the answer. A stream goes on until somebody has enough.
 */
#include "cluster/admin/admin_parts.h"

#include <errno.h>

static bool waits(ssize_t got)
{
	return got == -EAGAIN || got == -EINTR;
}

static void viewer_bury(struct spokei_task *task)
{
	struct spokei_viewer *viewer = spoke_container_of(task, struct spokei_viewer, bury);

	spokei_buffer_fini(&viewer->in);
	spokei_buffer_fini(&viewer->out);
	spokei_free(viewer->admin->engine->env, viewer, 1, sizeof(*viewer));
}

void spokei_viewer_close(struct spokei_viewer *viewer)
{
	struct spoke_admin *admin = viewer->admin;

	if (viewer->closed)
		return;
	viewer->closed = true;
	(void)spoke_wheel_cancel(admin->engine->wheel, &viewer->timer.timer);
	spokei_stream_close(&viewer->stream);
	spokei_quota_leave(&admin->quota, &viewer->peer);
	spokei_count(admin->engine, SPOKE_STAT_CLOSED);
	spokei_list_remove(&viewer->node);
	spokei_engine_dead(admin->engine, &viewer->bury);
	if (viewer->state == SPOKEI_VIEWER_STREAMING)
		spokei_admin_watched(admin);
}

static void begin_to_linger(struct spokei_viewer *viewer)
{
	viewer->state = SPOKEI_VIEWER_LINGERING;
	(void)viewer->stream.kind->shut(&viewer->stream);
	if (spokei_admin_arm(viewer->admin, &viewer->timer, SPOKEI_ADMIN_LINGER_NS))
		spokei_stream_watch(&viewer->stream, SPOKE_IO_READ);
	else
		spokei_viewer_close(viewer);
}

/* What was asked for is done once the answer is written, or nobody is there to read it. It may free
 * anything. */
static void do_action(struct spokei_viewer *viewer)
{
	const struct spoke_admin_action *action = viewer->action;
	struct spoke_admin *admin = viewer->admin;
	const struct spoke_env *env = admin->engine->env;
	char peer[SPOKEI_ADMIN_ADDRESS];

	viewer->action = NULL;
	if (action == NULL)
		return;
	env->net->print(env->ctx, &viewer->peer, peer, sizeof(peer));
	spokei_event(admin->engine, SPOKE_OK, "admin: \"%s\" is done for %s", action->name, peer);
	action->act(action->arg);
}

/* All is written. */
static void wrote_all(struct spokei_viewer *viewer)
{
	if (viewer->state == SPOKEI_VIEWER_STREAMING) {
		spokei_stream_watch(&viewer->stream, SPOKE_IO_READ);
		return;
	}
	begin_to_linger(viewer);
	do_action(viewer);
}

static void write_failed(struct spokei_viewer *viewer)
{
	spokei_viewer_close(viewer);
	do_action(viewer);
}

/* Waits until the peer takes more: an answer by its timer, a stream by the tick. */
static void wait_to_write(struct spokei_viewer *viewer, bool moved)
{
	if (moved)
		viewer->moved_ns = viewer->admin->engine->begin_ns;
	spokei_stream_watch(&viewer->stream, SPOKE_IO_READ | SPOKE_IO_WRITE);
}

static void flush(struct spokei_viewer *viewer)
{
	struct spokei_buffer *out = &viewer->out;
	bool moved = false;

	while (spokei_buffer_len(out) > 0) {
		const struct iovec part = { spokei_buffer_data(out), spokei_buffer_len(out) };
		ssize_t wrote = viewer->stream.kind->write(&viewer->stream, &part, 1);

		if (waits(wrote)) {
			wait_to_write(viewer, moved);
			return;
		}
		if (wrote < 0) {
			write_failed(viewer);
			return;
		}
		spokei_buffer_consume(out, (size_t)wrote);
		moved = moved || wrote > 0;
	}
	spokei_buffer_fini(out);
	wrote_all(viewer);
}

void spokei_viewer_tell(struct spokei_viewer *viewer, unsigned char *bytes, size_t len)
{
	const struct iovec part = { bytes, len };
	ssize_t wrote = viewer->stream.kind->write(&viewer->stream, &part, 1);

	if (wrote < 0 && !waits(wrote)) {
		spokei_viewer_close(viewer);
		return;
	}
	if (wrote < 0)
		wrote = 0;
	if ((size_t)wrote == len)
		return;
	viewer->moved_ns = viewer->admin->engine->begin_ns;
	if (spokei_buffer_append(&viewer->out, bytes + wrote, len - (size_t)wrote))
		spokei_viewer_close(viewer);
	else
		spokei_stream_watch(&viewer->stream, SPOKE_IO_READ | SPOKE_IO_WRITE);
}

static void answer(struct spokei_viewer *viewer, int verdict,
		   const struct spokei_http_request *request)
{
	int error;

	viewer->state = SPOKEI_VIEWER_ANSWERED;
	if (verdict == SPOKEI_HTTP_WHOLE)
		error = spokei_admin_serve(viewer, request);
	else
		error = spokei_admin_refuse(viewer, verdict, request->method == SPOKEI_HTTP_HEAD);
	spokei_buffer_fini(&viewer->in);
	if (error) {
		spokei_viewer_close(viewer);
		return;
	}
	viewer->moved_ns = viewer->admin->engine->begin_ns;
	if (viewer->state == SPOKEI_VIEWER_STREAMING) {
		(void)spoke_wheel_cancel(viewer->admin->engine->wheel, &viewer->timer.timer);
		spokei_admin_watched(viewer->admin);
		if (viewer->closed)
			return;
	} else if (!spokei_admin_arm(viewer->admin, &viewer->timer, SPOKEI_ADMIN_SLOW_NS)) {
		spokei_viewer_close(viewer);
		return;
	}
	flush(viewer);
}

/* Bytes of the request have come: is it one? */
static void ask(struct spokei_viewer *viewer, const unsigned char *bytes, size_t len)
{
	struct spokei_http_request request;
	int verdict;

	if (spokei_buffer_append(&viewer->in, bytes, len)) {
		spokei_viewer_close(viewer);
		return;
	}
	verdict = spokei_http_read(spokei_buffer_data(&viewer->in), spokei_buffer_len(&viewer->in),
				   &request);
	if (verdict != SPOKEI_HTTP_MORE)
		answer(viewer, verdict, &request);
}

/* Reads as much as there can be of a request; what comes behind it is read when it lingers, and is
 * nobody's concern. */
static void read_some(struct spokei_viewer *viewer)
{
	unsigned char *scratch = viewer->admin->engine->scratch;
	size_t room = SPOKEI_HTTP_REQUEST_MAX;
	ssize_t got;

	if (viewer->state == SPOKEI_VIEWER_ASKING)
		room -= spokei_buffer_len(&viewer->in);
	got = viewer->stream.kind->read(&viewer->stream, scratch, room);
	if (waits(got))
		return;
	if (got > 0) {
		if (viewer->state == SPOKEI_VIEWER_ASKING)
			ask(viewer, scratch, (size_t)got);
		return;
	}
	/* Who has said all it wanted to ask still reads the answer. */
	if (got == 0 && viewer->state == SPOKEI_VIEWER_ANSWERED)
		spokei_stream_watch(&viewer->stream, SPOKE_IO_WRITE);
	else
		spokei_viewer_close(viewer);
}

static void viewer_ready(struct spoke_watch *watch, unsigned io)
{
	struct spokei_stream *stream = spoke_container_of(watch, struct spokei_stream, watch);
	struct spokei_viewer *viewer = spoke_container_of(stream, struct spokei_viewer, stream);

	if (io & SPOKE_IO_READ)
		read_some(viewer);
	if ((io & SPOKE_IO_WRITE) && !viewer->closed && spokei_buffer_len(&viewer->out) > 0)
		flush(viewer);
}

/* The time is over. What has come meanwhile is read before that is said. */
static void viewer_due(struct spokei_admin_timer *timer)
{
	static const struct spokei_http_request unknown = { .method = SPOKEI_HTTP_OTHER };
	struct spokei_viewer *viewer = spoke_container_of(timer, struct spokei_viewer, timer);

	if (viewer->state == SPOKEI_VIEWER_ASKING) {
		read_some(viewer);
		if (!viewer->closed && viewer->state == SPOKEI_VIEWER_ASKING)
			answer(viewer, 408, &unknown);
		return;
	}
	spokei_viewer_close(viewer);
}

void spokei_viewer_take(struct spoke_admin *admin, int fd, const struct spoke_address *peer)
{
	const struct spoke_env *env = admin->engine->env;
	struct spokei_viewer *viewer = spokei_alloc(env, 1, sizeof(*viewer));

	if (viewer == NULL) {
		env->net->close(env->ctx, fd);
		spokei_quota_leave(&admin->quota, peer);
		spokei_count(admin->engine, SPOKE_STAT_CLOSED);
		return;
	}
	viewer->admin = admin;
	viewer->peer = *peer;
	viewer->bury.run = viewer_bury;
	viewer->timer.due = viewer_due;
	spokei_buffer_init(&viewer->in, env, SPOKEI_HTTP_REQUEST_MAX);
	spokei_buffer_init(&viewer->out, env, SPOKEI_ADMIN_OUT_MAX);
	spokei_stream_init(&viewer->stream, admin->engine, &spokei_stream_socket, fd, viewer_ready);
	spokei_list_append(&admin->viewers, &viewer->node);
	if (spokei_admin_arm(admin, &viewer->timer, SPOKEI_ADMIN_REQUEST_NS))
		spokei_stream_watch(&viewer->stream, SPOKE_IO_READ);
	else
		spokei_viewer_close(viewer);
}
