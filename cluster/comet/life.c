/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a connection: it opens, reads, and its one timer looks at its stamps. */
#include "cluster/comet/parts.h"
#include "transport/http/sse.h"
#include "transport/http/websocket.h"

#include <errno.h>

#define NS_PER_MS UINT64_C(1000000)

static struct spoke_comet *comet_of(const struct spokei_comet_conn *conn)
{
	return conn->user->comet;
}

/* --- the timer */

static void life_over(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = comet_of(conn);
	const enum spoke_comet_figure why = conn->drains ? SPOKE_COMET_FIGURE_CLOSED_DRAIN
							 : SPOKE_COMET_FIGURE_CLOSED_LIFE;

	if (conn->kind != SPOKE_COMET_POLL)
		spokei_comet_count(comet, why);
	spokei_comet_end_again(conn, SPOKEI_WEBSOCKET_RESTART,
			       conn->drains || conn->kind != SPOKE_COMET_POLL
				       ? spokei_comet_ms_of(comet->with.retry_min_ns)
				       : 0);
}

static void keep_alive(struct spokei_comet_conn *conn)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];

	if (conn->kind == SPOKE_COMET_SOCKET) {
		spokei_comet_write(conn, frame,
				   spokei_websocket_control(SPOKEI_WEBSOCKET_OP_PING, NULL, 0,
							    frame));
	} else {
		spokei_comet_write(conn, SPOKEI_SSE_KEEPALIVE, sizeof(SPOKEI_SSE_KEEPALIVE) - 1);
	}
}

/* Returns whether the connection has been quiet for this time. */
static bool is_quiet(const struct spokei_comet_conn *conn, uint64_t ns)
{
	return -spokei_comet_until(conn->moved_ms, spokei_comet_ms(comet_of(conn))) >=
	       (int32_t)spokei_comet_ms_of(ns);
}

static bool is_over(const struct spokei_comet_conn *conn)
{
	return spokei_comet_until(conn->ends_ms, spokei_comet_ms(comet_of(conn))) <= 0;
}

static bool is_slow(const struct spokei_comet_conn *conn)
{
	return spokei_comet_behind(conn) && is_quiet(conn, comet_of(conn)->with.slow_ns);
}

/* Has a message from the page not become complete in time? */
static bool is_late(const struct spokei_comet_conn *conn)
{
	const struct spoke_comet *comet = comet_of(conn);

	return spokei_comet_partial(conn) &&
	       spokei_comet_until(conn->more->begun_ms + spokei_comet_ms_of(comet->with.slow_ns),
				  spokei_comet_ms(comet)) <= 0;
}

static void end_late(struct spokei_comet_conn *conn)
{
	spokei_comet_count(comet_of(conn), SPOKE_COMET_FIGURE_CLOSED_SLOW);
	spokei_comet_end_with(conn, SPOKEI_COMET_POLICY, "a message takes too long");
}

/* Looks at the stamps of an open connection. */
static void look(struct spokei_comet_conn *conn)
{
	if (is_over(conn))
		life_over(conn);
	else if (is_late(conn))
		end_late(conn);
	else if (!spokei_comet_behind(conn) && conn->kind != SPOKE_COMET_POLL &&
		 is_quiet(conn, comet_of(conn)->with.keepalive_ns))
		keep_alive(conn);
}

/* The timer is idle, but its room in the wheel is still free, so it can be armed again. */
void spokei_comet_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_comet_conn *conn = spoke_container_of(timer, struct spokei_comet_conn, timer);
	struct spoke_engine *engine = arg;
	struct spoke_comet *comet = comet_of(conn);

	if (is_slow(conn)) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_SLOW);
		return;
	}
	if (conn->state == SPOKEI_COMET_ENDING && is_over(conn)) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
		return;
	}
	if (spoke_wheel_schedule(engine->wheel, timer, comet->timer_class,
				 engine->begin_ns + NS_PER_MS) != SPOKE_WHEEL_OK) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
		return;
	}
	if (conn->state == SPOKEI_COMET_OPEN)
		look(conn);
	if (conn->state != SPOKEI_COMET_FREE)
		spokei_comet_arm(conn);
}

/* --- readiness */

/* Input of other kinds than WebSocket: only its end is expected. While a connection ends, the
 * client may still send what it has begun. */
static void read_other(struct spokei_comet_conn *conn)
{
	struct spoke_engine *engine = comet_of(conn)->engine;
	ssize_t got = engine->env->net->read(engine->env->ctx, conn->watch.fd, engine->scratch,
					     SPOKEI_ENGINE_SCRATCH);

	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got > 0 && conn->state == SPOKEI_COMET_ENDING)
		return;
	spokei_comet_close(conn,
			   got > 0 ? SPOKE_COMET_FIGURE_CLOSED_PROTOCOL : SPOKE_COMET_FIGURE_COUNT);
}

static void conn_ready(struct spoke_watch *watch, unsigned io)
{
	struct spokei_comet_conn *conn = spoke_container_of(watch, struct spokei_comet_conn, watch);

	if (io & SPOKE_IO_READ) {
		if (conn->kind == SPOKE_COMET_SOCKET && conn->state == SPOKEI_COMET_OPEN)
			spokei_comet_frames(conn);
		else
			read_other(conn);
	}
	if ((io & SPOKE_IO_WRITE) && conn->state != SPOKEI_COMET_FREE)
		spokei_comet_writable(conn);
}

/* --- the beginning */

static bool add_chunk(struct spoke_comet *comet)
{
	const struct spoke_env *env = comet->engine->env;
	struct spokei_comet_conn *chunk;

	if (comet->chunk_count == comet->chunk_room) {
		uint32_t room = comet->chunk_room ? 2 * comet->chunk_room : 4;
		struct spokei_comet_conn **chunks =
			spokei_alloc(env, room, sizeof(struct spokei_comet_conn *));

		if (chunks == NULL)
			return false;
		if (comet->chunk_count)
			memcpy(chunks, comet->chunks,
			       comet->chunk_count * sizeof(struct spokei_comet_conn *));
		spokei_free(env, comet->chunks, comet->chunk_room,
			    sizeof(struct spokei_comet_conn *));
		comet->chunks = chunks;
		comet->chunk_room = room;
	}
	chunk = spokei_alloc(env, SPOKEI_COMET_CHUNK, sizeof(*chunk));
	if (chunk)
		comet->chunks[comet->chunk_count++] = chunk;
	return chunk != NULL;
}

/* Takes a cell of the slab, which has no handles: nothing outside the gateway names one. */
static struct spokei_comet_conn *take_cell(struct spoke_comet *comet)
{
	struct spokei_comet_conn *conn = comet->free;

	if (conn) {
		comet->free = conn->next;
		return conn;
	}
	if (comet->used == comet->chunk_count * SPOKEI_COMET_CHUNK && !add_chunk(comet))
		return NULL;
	return spokei_comet_cell(comet, comet->used++);
}

static uint64_t life_ns(const struct spoke_comet *comet, enum spoke_comet_kind kind)
{
	if (kind == SPOKE_COMET_POLL)
		return comet->with.poll_ns;
	return spokei_comet_dice(comet, comet->with.life_ns / 10 * 9,
				 comet->with.life_ns / 10 * 11);
}

/* Others have what their listener had set; clients of unix sockets have no seat. */
static void limit_unix(struct spoke_comet *comet, int fd, const void *seat)
{
	const struct spoke_env *env = comet->engine->env;

	if (seat == NULL && env->net->send_buffer)
		(void)env->net->send_buffer(env->ctx, fd, comet->with.send_buffer);
}

struct spokei_comet_conn *spokei_comet_open(struct spoke_comet *comet, enum spoke_comet_kind kind,
					    struct spokei_comet_user *user, int fd, void *seat)
{
	struct spoke_engine *engine = comet->engine;
	struct spokei_comet_conn *conn = take_cell(comet);
	uint32_t now_ms = spokei_comet_ms(comet);

	if (conn) {
		*conn = (struct spokei_comet_conn){
			.watch = { .ready = conn_ready, .fd = fd },
			.user = comet->nobody,
			.seat = seat,
			.cursor = comet->number,
			.moved_ms = now_ms,
			.ends_ms = now_ms + spokei_comet_ms_of(life_ns(comet, kind)),
			.kind = (uint8_t)kind,
		};
		if (spoke_wheel_schedule(engine->wheel, &conn->timer, comet->timer_class,
					 spokei_comet_due_ns(conn)) == SPOKE_WHEEL_OK) {
			conn->state = SPOKEI_COMET_OPEN;
			limit_unix(comet, fd, seat);
			engine->env->loop->watch(engine->loop, &conn->watch, SPOKE_IO_READ);
			if (user != comet->nobody)
				spokei_comet_join(conn, user);
			conn->user = user;
			return conn;
		}
		conn->next = comet->free;
		comet->free = conn;
	}
	engine->env->net->close(engine->env->ctx, fd);
	spokei_quota_leave(&comet->quota, seat);
	spokei_count(engine, SPOKE_STAT_CLOSED);
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_CLOSED_MEMORY);
	/* A drain may have waited for this one only. */
	spokei_engine_dead(engine, &comet->dead);
	return NULL;
}
