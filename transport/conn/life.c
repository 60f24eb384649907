/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a connection; conn.h says what it goes through. */
#include "transport/conn/parts.h"

#include "transport/codec/codec.h"

#include <errno.h>

#define ADDRESS_TEXT 160u
#define KEEPALIVE_NS UINT64_C(60000000000) /* where there are no heartbeats */

static const unsigned legal_moves[] = {
	[SPOKEI_CONN_CONNECTING] = 1u << SPOKEI_CONN_OPEN | 1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_OPEN] = 1u << SPOKEI_CONN_FINISHING | 1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_FINISHING] = 1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_CLOSED] = 0,
};

void spokei_conn_move(struct spokei_conn *conn, enum spokei_conn_state state)
{
	SPOKE_ASSERT(legal_moves[conn->state] & 1u << state);
	conn->state = state;
}

/* --- opening */

void spokei_conn_speak(struct spokei_conn *conn, const struct spokei_wire *wire)
{
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	uint64_t next = wire->id_first;

	conn->wire = wire;
	conn->in.wire = wire;
	/* Where there are ids in plenty they begin anywhere, and cannot be guessed. */
	if (wire->id_max == UINT64_MAX)
		env->dice(env->ctx, &next, sizeof(next));
	spokei_pendings_init(&conn->pendings, wire->id_first, wire->id_max, next);
}

void spokei_conn_guard(struct spokei_conn *conn)
{
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	/* Above the rule for peers that do not read, which is the one to judge. */
	uint64_t unanswered_ns = spokei_later(conn->link->limits.slow_ns,
					      conn->link->limits.slow_ns / 2);
	bool asks = conn->wire == NULL ||
		    (conn->wire->probes && conn->link->limits.heartbeat_ns != SPOKEI_IDLE_OFF);

	/* Else the first question of the system that gets lost is the last one. */
	if (!asks)
		unanswered_ns = 2 * KEEPALIVE_NS;
	/* Where the system cannot, the connection is judged from here all the same. */
	(void)env->net->guard(env->ctx, conn->stream.watch.fd, unanswered_ns,
			      asks ? 0 : KEEPALIVE_NS);
}

void spokei_conn_attach(struct spokei_conn *conn, int fd, const struct spoke_address *peer)
{
	SPOKE_ASSERT(conn->state == SPOKEI_CONN_CONNECTING && conn->stream.watch.fd < 0);
	conn->stream.watch.fd = fd;
	conn->peer = *peer;
	spokei_conn_watch(conn);
}

void spokei_conn_give_up(struct spokei_conn *conn, int status)
{
	SPOKE_ASSERT(conn->state == SPOKEI_CONN_CONNECTING);
	spokei_stream_close(&conn->stream);
	if (conn->up->failed == NULL || !conn->up->failed(conn->up_arg, conn, status))
		spokei_conn_close(conn, SPOKE_ECONNECT);
}

static void open_stream(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	int status = conn->stream.kind->open(&conn->stream);

	if (status == SPOKEI_STREAM_MORE)
		return;
	if (status < 0) {
		spokei_conn_give_up(conn, status);
		return;
	}
	spokei_conn_move(conn, SPOKEI_CONN_OPEN);
	conn->born_ns = engine->begin_ns;
	spokei_conn_guard(conn);
	spokei_idle_start(&conn->idle, engine->begin_ns);
	/* Calls that waited for this go before those that are made now. */
	conn->blocked = conn->unsent_requests > 0;
	conn->writable = conn->blocked;
	spokei_conn_watch(conn);
	conn->up->changed(conn->up_arg, conn, SPOKE_OK);
	/* The first bytes tell the wire, and ask whether anybody is there. */
	if (conn->state == SPOKEI_CONN_OPEN && conn->wire->probes && spokei_conn_probe(conn))
		spokei_conn_close(conn, SPOKE_ENOMEM);
	if (conn->state != SPOKEI_CONN_OPEN)
		return;
	spokei_engine_last(engine, &conn->settle);
	spokei_conn_arm(conn);
}

void spokei_conn_finish_connect(struct spokei_conn *conn)
{
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	int status = env->net->finish(env->ctx, conn->stream.watch.fd);

	if (status == -EINPROGRESS || status == -EAGAIN || status == -EINTR)
		return;
	if (status < 0)
		spokei_conn_give_up(conn, status);
	else
		open_stream(conn);
}

/* --- the end */

static void conn_bury(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, bury);
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	struct spokei_link *link = conn->link;

	spokei_intake_fini(&conn->in);
	spokei_outlet_fini(&conn->out);
	spokei_buffer_fini(&conn->held);
	spokei_pendings_fini(&conn->pendings, env);
	spokei_map_fini(&conn->serving);
	spokei_conn_pool_give(&link->pool, conn);
	spokei_link_left(link);
}

static void conn_reap(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, reap);

	spokei_conn_fail_calls(conn, conn->error);
	spokei_conn_abandon(conn);
	conn->up->changed(conn->up_arg, conn, conn->error);
	spokei_engine_dead(spokei_conn_engine(conn), &conn->bury);
}

void spokei_conn_close(struct spokei_conn *conn, int error)
{
	struct spokei_link *link = conn->link;
	struct spoke_engine *engine = link->engine;

	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	if (conn->state != SPOKEI_CONN_CONNECTING)
		spokei_count(engine, SPOKE_STAT_CLOSED);
	spokei_conn_move(conn, SPOKEI_CONN_CLOSED);
	conn->error = error;
	link->queued -= spokei_outlet_len(&conn->out);
	link->held -= conn->read_held;
	link->conn_count--;
	spokei_list_remove(&conn->node);
	(void)spoke_wheel_cancel(engine->wheel, &conn->timer);
	spokei_task_drop(&conn->settle);
	spokei_task_drop(&conn->resume);
	spokei_stream_close(&conn->stream);
	spokei_engine_soon(engine, &conn->reap);
}

void spokei_conn_blame(struct spokei_conn *conn, enum spoke_stat stat, int error)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	enum spoke_event_user user = SPOKE_EVENT_OF_NONE;
	char peer[ADDRESS_TEXT] = "";

	if (stat == SPOKE_STAT_CLOSED_SILENT || stat == SPOKE_STAT_CLOSED_IDLE)
		user = SPOKE_EVENT_OF_HEARTBEAT;
	spokei_count(engine, stat);
	if (stat != SPOKE_STAT_CLOSED_BY_PEER &&
	    spokei_bucket_take(&conn->link->blames, 1, engine->begin_ns)) {
		engine->env->net->print(engine->env->ctx, &conn->peer, peer, sizeof(peer));
		spokei_event_of(engine, user, error, "connection of %s closed %s", peer,
				spoke_stat_sentence(stat) + strlen("... "));
	}
	spokei_conn_close(conn, error);
}

void spokei_conn_finish(struct spokei_conn *conn)
{
	if (conn->state == SPOKEI_CONN_CONNECTING)
		spokei_conn_close(conn, SPOKE_ECLOSED);
	if (conn->state != SPOKEI_CONN_OPEN)
		return;
	spokei_conn_move(conn, SPOKEI_CONN_FINISHING);
	/* A peer that has said since that it goes on has to be told again. */
	if (!conn->readonly)
		conn->announced = false;
	/* Who only calls has nothing to announce: it just ends. */
	if (conn->link->serve)
		spokei_conn_announce(conn);
	spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
}

/* --- the beginning */

static struct spokei_conn *make(struct spokei_link *link, int fd, enum spokei_conn_state state,
				const struct spokei_conn_up *up, void *up_arg)
{
	struct spoke_engine *engine = link->engine;
	const struct spoke_env *env = engine->env;
	struct spokei_conn *conn = spokei_conn_pool_take(&link->pool);

	if (conn == NULL)
		return NULL;
	conn->link = link;
	conn->up = up;
	conn->up_arg = up_arg;
	conn->state = state;
	conn->probe_codec = SPOKEI_CODEC_MSGPACK;
	conn->born_ns = engine->begin_ns;
	conn->settle.run = spokei_conn_settle;
	conn->resume.run = spokei_conn_resume;
	conn->reap.run = conn_reap;
	conn->bury.run = conn_bury;
	spokei_stream_init(&conn->stream, engine, &spokei_stream_socket, fd, spokei_conn_ready);
	spokei_intake_init(&conn->in, env, &link->limits.wire);
	spokei_outlet_init(&conn->out, env, link->limits.out_max);
	spokei_buffer_init(&conn->held, env, SPOKEI_ENGINE_SCRATCH);
	spokei_map_init(&conn->serving, env);
	spokei_list_init(&conn->servings);
	spokei_list_append(&link->conns, &conn->node);
	link->conn_count++;
	link->alive++;
	return conn;
}

int spokei_conn_new(struct spokei_link *link, const struct spokei_wire *wire,
		    const struct spokei_conn_up *up, void *up_arg, struct spokei_conn **ret_conn)
{
	struct spokei_conn *conn = make(link, -1, SPOKEI_CONN_CONNECTING, up, up_arg);

	if (conn == NULL)
		return SPOKE_ENOMEM;
	spokei_conn_speak(conn, wire);
	*ret_conn = conn;
	return SPOKE_OK;
}

int spokei_conn_accept(struct spokei_link *link, int fd, const struct spoke_address *peer,
		       const struct spokei_conn_up *up, void *up_arg, struct spokei_conn **ret_conn)
{
	const struct spoke_env *env = link->engine->env;
	struct spokei_conn *conn = make(link, fd, SPOKEI_CONN_OPEN, up, up_arg);

	if (conn == NULL) {
		env->net->close(env->ctx, fd);
		return SPOKE_ENOMEM;
	}
	conn->peer = *peer;
	spokei_conn_guard(conn);
	spokei_conn_watch(conn);
	spokei_conn_arm(conn);
	*ret_conn = conn;
	return SPOKE_OK;
}
