/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of connections, and of the link of their owner: its limits; how a connection is made or
 * accepted, opened, finished, closed and freed; the legal moves between its states; the identity of
 * the peer; and how all connections of an owner begin and end together.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"
#include "transport/conn/serving.h"
#include "transport/trust/caller.h"
#include "transport/wire/codecs.h"

#include <spoke/link.h>

#include <errno.h>
#include <string.h>

/* --- the limits of a link */

#define QUEUED_MAX 268435456u
#define HELD_MAX 268435456u
#define PENDING_MAX 65536u
#define SERVING_MAX 10000u
#define SERVING_PER_CONN_MAX 1024u
#define NAME_MAX_BYTES 65536u
#define EVENT_MAX 64u
#define PLANS_MAX 512u /* bytes of the plans of codecs */

_Static_assert(SPOKE_VALUE_ITEMS_MAX <= SPOKE_VALUE_BYTES_MAX &&
		       SPOKE_VALUE_ITEMS_MAX <=
			       SPOKE_VALUE_OBJECT_BYTES_MAX / SPOKE_VALUE_OBJECT_BYTES,
	       "this many bytes are within the limits of all values");

void spokei_link_limits_values(struct spokei_link_limits *limits, uint32_t max)
{
	limits->wire.value.items_max = max;
	limits->wire.free_len = max;
}

const struct spoke_value_limits spokei_link_own_values = {
	.depth_max = SPOKE_VALUE_DEPTH_MAX,
	.items_max = SPOKE_VALUE_ITEMS_MAX,
	.object_bytes_max = SIZE_MAX,
	.bytes_max = SIZE_MAX,
};

/* Memory as a tree of objects, and queued bytes, stay in proportion to a frame. */
void spokei_link_limits_frame(struct spokei_link_limits *limits, size_t max)
{
	struct spoke_value_limits *value = &limits->wire.value;

	limits->wire.frame_max = max;
	if (max <= SPOKE_VALUE_BYTES_MAX)
		return;
	value->bytes_max = max;
	value->object_bytes_max = max * (SPOKE_VALUE_OBJECT_BYTES_MAX / SPOKE_VALUE_BYTES_MAX);
	limits->out_max = max * (SPOKEI_OUT_MAX / SPOKEI_FRAME_MAX);
}

void spokei_link_limits_init(struct spokei_link_limits *limits)
{
	*limits = (struct spokei_link_limits){
		.wire = {
			.frame_max = SPOKEI_FRAME_MAX,
			.name_max = NAME_MAX_BYTES,
			.event_max = EVENT_MAX,
			.value = {
				.depth_max = SPOKE_VALUE_DEPTH_MAX,
				.items_max = SPOKE_VALUE_ITEMS_MAX,
				.object_bytes_max = SPOKE_VALUE_OBJECT_BYTES_MAX,
				.bytes_max = SPOKE_VALUE_BYTES_MAX,
			},
			.free_len = SPOKE_VALUE_ITEMS_MAX,
			.spare_max = SPOKEI_SPARE,
		},
		.out_high = SPOKEI_OUT_HIGH,
		.out_low = SPOKEI_OUT_LOW,
		.out_max = SPOKEI_OUT_MAX,
		.queued_max = QUEUED_MAX,
		.held_max = HELD_MAX,
		.pending_max = PENDING_MAX,
		.serving_max = SERVING_MAX,
		.serving_per_conn_max = SERVING_PER_CONN_MAX,
		.unknown_replies = SPOKEI_UNKNOWN_REPLIES,
		.slow_ns = SPOKEI_SLOW_NS,
		.frame_ns = SPOKEI_FRAME_NS,
		.handshake_ns = SPOKEI_HANDSHAKE_NS,
		.half_ns = SPOKEI_HALF_NS,
		.goodbye_ns = SPOKEI_GOODBYE_NS,
		.linger_ns = SPOKEI_LINGER_NS,
	};
}

/* --- states, and what the kernel checks */

#define KEEPALIVE_NS UINT64_C(60000000000) /* for wires without heartbeats */

static const unsigned legal_moves[] = {
	[SPOKEI_CONN_CONNECTING] = 1u << SPOKEI_CONN_OPENING | 1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_OPENING] = 1u << SPOKEI_CONN_CONNECTING | 1u << SPOKEI_CONN_OPEN |
				1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_OPEN] = 1u << SPOKEI_CONN_FINISHING | 1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_FINISHING] = 1u << SPOKEI_CONN_CLOSED,
	[SPOKEI_CONN_CLOSED] = 0,
};

void spokei_conn_move(struct spokei_conn *conn, enum spokei_conn_state state)
{
	SPOKE_ASSERT(legal_moves[conn->state] & 1u << state);
	conn->state = state;
	conn->ending = state == SPOKEI_CONN_FINISHING;
}

/* Has the kernel check for a dead peer as far as it can: once the stream is open, and again when
 * the wire is known. */
static void guard(struct spokei_conn *conn)
{
	/* Above the limit for peers that do not read, which comes first. */
	uint64_t unanswered_ns = spokei_later(conn->link->limits.slow_ns,
					      conn->link->limits.slow_ns / 2);
	bool asks = conn->wire == NULL ||
		    (conn->wire->probes && conn->link->limits.heartbeat_ns != SPOKEI_IDLE_OFF);

	/* Otherwise the first lost keepalive probe would be the last one. */
	if (!asks)
		unanswered_ns = 2 * KEEPALIVE_NS;
	/* If the system cannot do this, the connection is still checked from here. */
	(void)conn->stream.kind->guard(&conn->stream, unanswered_ns, asks ? 0 : KEEPALIVE_NS);
}

void spokei_conn_speak(struct spokei_conn *conn, const struct spokei_wire *wire)
{
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	uint64_t next = wire->id_first;

	conn->wire = wire;
	conn->in.wire = wire;
	/* Where there are enough ids they begin at random and cannot be guessed. */
	if (wire->id_max == UINT64_MAX)
		env->dice(env->ctx, &next, sizeof(next));
	if (wire->id_max == UINT64_MAX && conn->link->connects)
		next = (uint64_t)SPOKEI_CONN_MARK << 32 | (next & UINT32_MAX);
	spokei_pendings_init(&conn->pendings, wire->id_first, wire->id_max, next);
	if (spokei_conn_is_opening(conn))
		return;
	guard(conn);
	spokei_conn_arm(conn);
}

void spokei_conn_answer_end(struct spokei_conn *conn)
{
	if (spokei_conn_ended(conn) && conn->stream.layered && !spokei_conn_unwritable(conn))
		(void)conn->stream.kind->shut(&conn->stream);
}

void spokei_conn_close(struct spokei_conn *conn, int error)
{
	struct spokei_link *link = conn->link;
	struct spoke_engine *engine = link->engine;

	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	if (!spokei_conn_is_opening(conn) || conn->stream.accepted)
		spokei_count(engine, SPOKE_STAT_CLOSED);
	spokei_conn_move(conn, SPOKEI_CONN_CLOSED);
	conn->error = error;
	link->queued -= spokei_outlet_len(&conn->out) + conn->unsent_requests;
	link->held -= conn->read_held;
	link->conn_count--;
	spokei_list_remove(&conn->node);
	spokei_conn_speaks(conn);
	(void)spoke_wheel_cancel(engine->wheel, &conn->timer);
	spokei_task_drop(&conn->settle);
	spokei_task_drop(&conn->resume);
	spokei_stream_close(&conn->stream);
	spokei_run_soon(engine, &conn->end);
}

void spokei_conn_close_with(struct spokei_conn *conn, enum spoke_stat stat, int error)
{
	const struct spokei_stream_blame blame = {
		.title = "",
		.why = conn->foreign,
		.peer = &conn->peer,
		.stat = stat,
		.error = error,
		.events = &conn->link->blames,
	};

	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	spokei_stream_blame(&conn->stream, &blame);
	spokei_conn_close(conn, error);
}

/* --- the identity of the peer */

/* Lifts the bounds of unproven peers. From inside the handler of requests, or before it reads. */
static void trust(struct spokei_conn *conn)
{
	conn->unproven = false;
	conn->in.reader.limits = &conn->link->limits.wire;
}

/* Sets the bounds of unproven peers, unless the peer has an identity or is amid a frame, which had
 * other bounds when it began. */
static void distrust(struct spokei_conn *conn)
{
	if (conn->identity || spokei_intake_begun(&conn->in))
		return;
	conn->unproven = true;
	conn->in.reader.limits = &conn->link->unproven;
}

/* Notes the identity of the peer of an accepted connection, if its stream has one. Returns whether
 * there was memory. */
static bool identify(struct spokei_conn *conn)
{
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	const struct spoke_net *net = env->net;
	struct spokei_identity_user user;
	struct spokei_identity_of of = { .user = NULL };

	of.name_count = spokei_stream_names(&conn->stream, &of.names);
	if (conn->local && net->credentials &&
	    net->credentials(env->ctx, conn->stream.watch.fd, &user.uid, &user.gid, &user.pid) == 0)
		of.user = &user;
	if (of.user == NULL && of.name_count == 0)
		return true;
	conn->identity = spokei_identity_new(env, &of);
	if (of.name_count > 0 || (of.user && conn->link->users_prove))
		trust(conn);
	return conn->identity != NULL;
}

/* Returns the identity of the peer, which is made if there is none yet; NULL: no memory. */
static struct spokei_identity *identity_of(struct spokei_conn *conn)
{
	static const struct spokei_identity_of nothing;

	if (conn->identity == NULL)
		conn->identity = spokei_identity_new(spokei_conn_engine(conn)->env, &nothing);
	return conn->identity;
}

int spokei_conn_prove(struct spokei_conn *conn, uint64_t proof)
{
	struct spokei_identity *identity = identity_of(conn);

	if (identity == NULL)
		return SPOKE_ENOMEM;
	spokei_identity_prove(identity, proof);
	trust(conn);
	return SPOKE_OK;
}

int spokei_conn_show(struct spokei_conn *conn, const unsigned char *digest)
{
	struct spokei_identity *identity = identity_of(conn);

	if (identity == NULL)
		return SPOKE_ENOMEM;
	memcpy(identity->shown, digest, sizeof(identity->shown));
	identity->shows = true;
	return SPOKE_OK;
}

bool spokei_conn_let_in(struct spokei_conn *conn, const struct spokei_callers *callers,
			bool *ret_new)
{
	const struct spokei_identity_judged *judged = NULL;
	struct spokei_identity *identity;
	bool allowed;

	*ret_new = false;
	if (callers == NULL)
		return true;
	/* Without memory each request is checked again. */
	identity = identity_of(conn);
	if (identity)
		judged = spokei_identity_judged(identity, callers->number);
	if (judged)
		return judged->allowed;
	allowed = spokei_callers_fit(callers, spokei_conn_engine(conn)->env, identity, &conn->peer);
	if (identity)
		spokei_identity_judge(identity, callers->number, allowed);
	*ret_new = true;
	return allowed;
}

/* --- opening */

void spokei_conn_give_up(struct spokei_conn *conn, int status)
{
	spokei_stream_close(&conn->stream);
	spokei_conn_move(conn, SPOKEI_CONN_CONNECTING);
	if (conn->up->failed == NULL || !conn->up->failed(conn->up_arg, conn, status))
		spokei_conn_close(conn, conn->error ? conn->error : SPOKE_ECONNECT);
	else if (conn->state != SPOKEI_CONN_CLOSED) /* its owner may have closed it there */
		conn->error = 0;
}

/* The stream of a connection that this side makes is open. */
static void connected(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	conn->born_ns = engine->begin_ns;
	conn->since[SPOKEI_LIMIT_MUTE] = engine->begin_ns;
	spokei_idle_start(&conn->idle, engine->begin_ns);
	/* Calls that waited for the connection go before new ones. */
	if (conn->unsent_requests > 0)
		conn->output = SPOKEI_OUTPUT_WRITABLE;
	spokei_conn_watch(conn);
	conn->up->changed(conn->up_arg, conn, SPOKE_OK);
	/* The first bytes tell the peer the wire, and probe it. */
	if (conn->state == SPOKEI_CONN_OPEN && conn->wire->probes && !spokei_conn_ask(conn))
		spokei_conn_close(conn, SPOKE_ENOMEM);
}

static void open_failed(struct spokei_conn *conn, int status)
{
	bool secures = conn->stream.kind->why != NULL;

	if (!conn->stream.accepted) {
		if (secures && status != -ENOMEM)
			conn->error = SPOKE_EHANDSHAKE;
		spokei_conn_give_up(conn, status);
	} else if (status == -ENOMEM) {
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
	} else if (status == -EPROTO && secures) {
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_HANDSHAKE, SPOKE_EHANDSHAKE);
	} else if (status == -EPROTO) {
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_PROTOCOL, SPOKE_EPROTOCOL);
	} else {
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
	}
}

/* Opens the stream, or continues to open it. */
static void open_stream(struct spokei_conn *conn)
{
	int status = conn->stream.kind->open(&conn->stream);

	if (status == SPOKEI_STREAM_MORE || status == -EAGAIN || status == -EINTR) {
		if (conn->stream.accepted && conn->since[SPOKEI_LIMIT_OPENING] == 0 &&
		    (!conn->stream.kind->patient || conn->stream.state))
			conn->since[SPOKEI_LIMIT_OPENING] = spokei_conn_engine(conn)->begin_ns;
		spokei_conn_watch(conn);
		spokei_conn_arm(conn);
		return;
	}
	if (status < 0) {
		open_failed(conn, status);
		return;
	}
	conn->since[SPOKEI_LIMIT_OPENING] = 0;
	spokei_conn_move(conn, SPOKEI_CONN_OPEN);
	if (conn->stream.layered)
		spokei_conn_speaks(conn);
	conn->stream.watch.ready = spokei_conn_ready;
	if (conn->stream.accepted && !identify(conn)) {
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
		return;
	}
	guard(conn);
	if (conn->stream.accepted)
		spokei_conn_watch(conn);
	else
		connected(conn);
	if (conn->state != SPOKEI_CONN_CLOSED && spokei_stream_pending(&conn->stream) > 0)
		(void)spokei_conn_read(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	/* The stream may be a plain socket from now on, which holds nothing. */
	conn->holds &= conn->stream.layered;
	if (!conn->stream.accepted || conn->stream.layered)
		spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
	spokei_conn_arm(conn);
}

/* The watch of a stream that is being opened. */
static void opening_ready(struct spoke_watch *ready, unsigned io)
{
	(void)io;
	open_stream(spoke_container_of(ready, struct spokei_conn, stream.watch));
}

void spokei_conn_attach(struct spokei_conn *conn, int fd, const struct spokei_stream_kind *kind)
{
	SPOKE_ASSERT(conn->state == SPOKEI_CONN_CONNECTING && conn->stream.watch.fd < 0);
	conn->stream.watch.fd = fd;
	spokei_stream_use(&conn->stream, kind ? kind : conn->link->stream);
	spokei_conn_move(conn, SPOKEI_CONN_OPENING);
	open_stream(conn);
}

/* --- the end */

static void free_conn(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, end);
	const struct spoke_env *env = spokei_conn_engine(conn)->env;
	struct spokei_link *link = conn->link;

	spokei_intake_fini(&conn->in);
	spokei_outlet_fini(&conn->out);
	spokei_buffer_fini(&conn->held);
	spokei_pendings_fini(&conn->pendings, env);
	spokei_map_fini(&conn->serving);
	spokei_identity_drop(conn->identity);
	spokei_sender_drop(conn->sender);
	spokei_cells_give(&link->cells, conn);
	if (--link->alive == 0 && link->end)
		spokei_run_freeing(link->engine, link->end);
}

/* Ends its calls and requests, and reports the end. */
static void finalise(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, end);

	spokei_conn_fail_calls(conn, conn->error);
	spokei_conn_abandon(conn, true);
	if (conn->up)
		conn->up->changed(conn->up_arg, conn, conn->error);
	conn->end.run = free_conn;
	spokei_run_freeing(spokei_conn_engine(conn), &conn->end);
}

void spokei_conn_finish(struct spokei_conn *conn)
{
	if (spokei_conn_is_opening(conn))
		spokei_conn_close(conn, SPOKE_ECLOSED);
	if (conn->state != SPOKEI_CONN_OPEN)
		return;
	spokei_conn_move(conn, SPOKEI_CONN_FINISHING);
	/* A peer that has sent WRITABLE since then has to be notified again. */
	if (!conn->readonly)
		conn->since[SPOKEI_LIMIT_NOTICE] = 0;
	/* A side that only calls announces nothing: it just ends. */
	if (conn->link->serve)
		spokei_conn_announce(conn);
	spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
}

void spokei_conn_tell(struct spokei_conn *conn, bool away)
{
	struct spokei_message message = {
		.kind = away ? SPOKEI_READONLY : SPOKEI_WRITABLE,
		.id = SPOKEI_CONN_ASIDE,
		.codec = conn->probe_codec,
	};

	if (conn->state != SPOKEI_CONN_OPEN || spokei_conn_unwritable(conn) || conn->wire == NULL ||
	    !conn->wire->probes)
		return;
	if (spokei_conn_put(conn, &message, 0) == 0)
		spokei_count(spokei_conn_engine(conn),
			     away ? SPOKE_STAT_READONLY_WRITTEN : SPOKE_STAT_WRITABLE_WRITTEN);
	else if (!away)
		spokei_conn_finish(conn);
}

void spokei_conn_finish_stream(struct spokei_stream *stream)
{
	struct spokei_conn *conn = spoke_container_of(stream, struct spokei_conn, stream);

	/* Calls that wait for it are for the next one: the user has closed nothing. */
	if (spokei_conn_is_opening(conn))
		spokei_conn_close(conn, SPOKE_EHANDSHAKE);
	else
		spokei_conn_finish(conn);
}

/* --- the beginning */

static struct spokei_conn *make(struct spokei_link *link, int fd, enum spokei_conn_state state,
				const struct spokei_conn_up *up, void *up_arg)
{
	struct spoke_engine *engine = link->engine;
	const struct spoke_env *env = engine->env;
	struct spokei_conn *conn = spokei_cells_take(&link->cells);

	if (conn == NULL)
		return NULL;
	conn->link = link;
	conn->queued = &link->queued;
	conn->up = up;
	conn->up_arg = up_arg;
	conn->state = state;
	conn->probe_codec = SPOKEI_CODEC_HESSIAN2; /* every Dubbo peer understands it */
	conn->asked_codec = spokei_wire_codec_id(&link->limits.wire);
	conn->profile_id = conn->asked_codec;
	conn->born_ns = engine->begin_ns;
	conn->since[SPOKEI_LIMIT_MUTE] = engine->begin_ns;
	conn->settle.run = spokei_conn_settle;
	conn->resume.run = spokei_conn_resume;
	conn->end.run = finalise;
	spokei_stream_init(&conn->stream, engine, link->stream, fd, opening_ready);
	conn->stream.ring_bits = link->limits.ring_bits;
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

int spokei_conn_accept(struct spokei_link *link, const struct spokei_arrival *arrival,
		       const struct spokei_conn_up *up, void *up_arg, struct spokei_conn **ret_conn)
{
	const struct spoke_env *env = link->engine->env;
	struct spokei_conn *conn = make(link, arrival->fd, SPOKEI_CONN_OPENING, up, up_arg);

	if (conn == NULL) {
		env->net->close(env->ctx, arrival->fd);
		return SPOKE_ENOMEM;
	}
	conn->in.no_http = !arrival->http;
	if (link->limits.unproven_frame_max > 0)
		distrust(conn);
	conn->peer = *arrival->peer;
	conn->stream.accepted = true;
	if (arrival->stream)
		spokei_stream_use(&conn->stream, arrival->stream);
	conn->local = arrival->local;
	conn->quota_peer = arrival->quota_peer;
	spokei_list_append(&link->silent, &conn->silent);
	*ret_conn = conn;
	open_stream(conn);
	return SPOKE_OK;
}

/* --- requests whose connection is gone */

bool spokei_link_spare_sender(struct spokei_link *link)
{
	if (link->spare_sender == NULL)
		link->spare_sender = spokei_alloc(link->engine->env, 1,
						  sizeof(struct spokei_sender));
	return link->spare_sender != NULL;
}

struct spokei_sender *spokei_conn_sender(struct spokei_conn *conn)
{
	struct spokei_link *link = conn->link;

	if (conn->sender == NULL) {
		if (!spokei_link_spare_sender(link))
			return NULL;
		conn->sender = link->spare_sender;
		link->spare_sender = NULL;
		*conn->sender = (struct spokei_sender){ link->engine->env, conn->handle, 1,
							conn->peer };
	}
	conn->sender->shares++;
	return conn->sender;
}

void spokei_sender_drop(struct spokei_sender *sender)
{
	if (sender && --sender->shares == 0)
		spokei_free(sender->env, sender, 1, sizeof(*sender));
}

void spokei_conn_join_orphans(struct spokei_serving *serving, struct spokei_link *link)
{
	serving->link = link;
	spokei_list_append(&link->orphans, &serving->node);
	link->orphan_count++;
}

void spokei_conn_leave_orphans(struct spokei_serving *serving)
{
	if (serving->link == NULL)
		return;
	spokei_list_remove(&serving->node);
	serving->link->orphan_count--;
	serving->link = NULL;
}

/* --- all connections together */

#define BLAMES 10u /* in a second */

static void set_limits(struct spokei_link *link, const struct spokei_link_limits *limits)
{
	const size_t unproven_max = limits->unproven_frame_max;

	link->limits = *limits;
	link->limits.wire.plans = &link->plans;
	link->unproven = link->limits.wire;
	link->unproven.spare_max = SPOKEI_UNPROVEN_SPARE;
	if (unproven_max > 0 && unproven_max < link->unproven.frame_max)
		link->unproven.frame_max = unproven_max;
}

int spokei_link_init(struct spokei_link *link, struct spoke_engine *engine,
		     const struct spokei_link_limits *limits)
{
	*link = (struct spokei_link){
		.engine = engine,
		.stream = &spokei_stream_socket,
	};
	spokei_list_init(&link->conns);
	spokei_list_init(&link->silent);
	spokei_cells_init(&link->cells, engine->env, sizeof(struct spokei_conn));
	spokei_buffer_init(&link->plans, engine->env, PLANS_MAX);
	spokei_list_init(&link->orphans);
	link->blames = spokei_bucket_make(BLAMES, BLAMES, engine->env->now(engine->env->ctx));
	set_limits(link, limits);
	return spokei_link_time(link);
}

void spokei_link_change(struct spokei_link *link, const struct spokei_link_limits *limits)
{
	bool asked = link->limits.heartbeat_ns != SPOKEI_IDLE_OFF;
	bool asks = limits->heartbeat_ns != SPOKEI_IDLE_OFF;
	bool trusted = link->limits.unproven_frame_max == 0;
	struct spoke_list *node = link->conns.next;
	struct spokei_link_limits with = *limits;

	/* No settings: a pause of reading ends by the mark by which it began. */
	with.out_high = link->limits.out_high;
	with.out_low = link->limits.out_low;
	set_limits(link, &with);
	while (node != &link->conns) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		if (limits->unproven_frame_max == 0)
			trust(conn);
		else if (trusted)
			distrust(conn);
		/* A connection that is not open yet is guarded when it opens. */
		if (asks != asked && conn->state == SPOKEI_CONN_OPEN)
			guard(conn);
		spokei_conn_arm(conn);
	}
}

void spokei_link_part(struct spokei_link *link)
{
	struct spoke_list *node = link->conns.next;

	if (spokei_engine_forked(link->engine))
		return;
	for (; node != &link->conns; node = node->next)
		spokei_conn_part(spoke_container_of(node, struct spokei_conn, node));
}

void spokei_link_end(struct spokei_link *link, struct spokei_task *end)
{
	link->closing = true;
	link->end = end;
	while (!spokei_list_empty(&link->conns))
		spokei_conn_close(spoke_container_of(spokei_list_first(&link->conns),
						     struct spokei_conn, node),
				  SPOKE_ECLOSED);
	if (link->alive == 0)
		spokei_run_freeing(link->engine, end);
}

struct spokei_conn *spokei_link_make_room(struct spokei_link *link)
{
	struct spokei_conn *conn;

	if (spokei_list_empty(&link->silent))
		return NULL;
	conn = spoke_container_of(spokei_list_first(&link->silent), struct spokei_conn, silent);
	spokei_count(link->engine, SPOKE_STAT_CLOSED_MUTE);
	spokei_conn_close(conn, SPOKE_ELIMIT);
	return conn;
}

void spokei_link_woke(struct spokei_link *link)
{
	struct spoke_list *node = link->conns.next;

	while (node != &link->conns) {
		struct spokei_conn *conn = spoke_container_of(node, struct spokei_conn, node);

		node = node->next;
		if (spokei_conn_is_listened_to(conn) && conn->wire->probes &&
		    link->limits.heartbeat_ns != SPOKEI_IDLE_OFF)
			(void)spokei_conn_ask(conn);
	}
}

void spokei_link_fini(struct spokei_link *link)
{
	SPOKE_ASSERT(spokei_list_empty(&link->conns));
	while (!spokei_list_empty(&link->orphans)) /* their replies come when the link is gone */
		spokei_conn_leave_orphans(spoke_container_of(spokei_list_first(&link->orphans),
							     struct spokei_serving, node));
	spokei_buffer_fini(&link->plans);
	spokei_free(link->engine->env, link->spare_sender, 1, sizeof(*link->spare_sender));
	spokei_cells_fini(&link->cells);
}

const char *spoke_link_change_name(enum spoke_link_change change)
{
	static const char *const names[] = {
		[SPOKE_LINK_CONNECTED] = "connected",       [SPOKE_LINK_PROBATION] = "probation",
		[SPOKE_LINK_SUSPECT] = "suspect",           [SPOKE_LINK_RECOVERED] = "recovered",
		[SPOKE_LINK_READONLY] = "readonly",         [SPOKE_LINK_CLOSED] = "closed",
		[SPOKE_LINK_RECONNECTING] = "reconnecting",
	};

	return (unsigned)change < sizeof(names) / sizeof(names[0]) ? names[change] : NULL;
}
