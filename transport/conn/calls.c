/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that this side makes on a connection, each from its id to its one end. */
#include "core/base/env.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#define NS_PER_MS UINT64_C(1000000)
#define PUT_HIGH 262144u     /* queued bytes above which unsent requests stay unsent */
#define RING_ROOM_IDLE 1024u /* cells that an idle connection may keep */
#define FRAME_BASE 128u      /* about the size of a small request on the wire */

/* A request that the connection has not taken yet: once it is in the output buffer, it cannot be
 * withdrawn. */
struct spokei_unsent {
	struct spokei_message message; /* the spans that may change point into `bytes` */
	size_t size;                   /* of this struct, with `bytes` */
	unsigned char bytes[];
};

/* Returns the bytes that an unsent request counts for: about the size of its frame. */
static size_t weight_of(const struct spokei_message *message)
{
	return FRAME_BASE + message->args.len + message->attachments.len;
}

static void free_unsent(struct spokei_pending *pending)
{
	struct spokei_unsent *unsent = pending->unsent;
	struct spokei_conn *conn = pending->conn;
	const struct spoke_env *env = spokei_conn_engine(conn)->env;

	if (unsent == NULL)
		return;
	pending->unsent = NULL;
	conn->unsent_requests -= weight_of(&unsent->message);
	conn->link->queued -= weight_of(&unsent->message);
	spokei_free(env, unsent, 1, unsent->size);
}

/* Copies a span to *at, and moves *at behind it. Returns the copy. */
static struct spoke_span put_span(unsigned char **at, struct spoke_span span)
{
	unsigned char *copy = *at;

	if (span.len == 0)
		return spokei_span(NULL, 0);
	memcpy(copy, span.data, span.len);
	*at += span.len;
	return spokei_span(copy, span.len);
}

static struct spokei_unsent *make_unsent(const struct spoke_env *env,
					 const struct spokei_message *message)
{
	const struct spoke_span pairs = { message->attachments.data, message->attachments.len };
	size_t size = sizeof(struct spokei_unsent) + message->args.len + pairs.len +
		      message->service.len + message->version.len + message->group.len;
	struct spokei_unsent *unsent = spokei_alloc_unset(env, size);
	unsigned char *at;

	if (unsent == NULL)
		return NULL;
	unsent->message = *message;
	unsent->size = size;
	at = unsent->bytes;
	unsent->message.args = put_span(&at, message->args);
	unsent->message.attachments.data = put_span(&at, pairs).data;
	/* The method may rename these three for another endpoint before this request is sent, and
	 * rebuild its prefix for another wire. */
	unsent->message.service = put_span(&at, message->service);
	unsent->message.version = put_span(&at, message->version);
	unsent->message.group = put_span(&at, message->group);
	unsent->message.prefix = spokei_span(NULL, 0);
	return unsent;
}

/* Unsent requests count like queued ones, so there is room when they are queued. */
static int keep_unsent(struct spokei_conn *conn, struct spokei_pending *pending,
		       const struct spokei_message *message)
{
	const struct spokei_link_limits *limits = &conn->link->limits;
	size_t waits = conn->unsent_requests + spokei_buffer_len(&conn->out.out);
	size_t len = weight_of(message);

	if (waits > limits->out_max || len > limits->out_max - waits)
		return SPOKE_ELIMIT;
	pending->unsent = make_unsent(spokei_conn_engine(conn)->env, message);
	if (pending->unsent == NULL)
		return SPOKE_ENOMEM;
	conn->unsent_requests += len;
	conn->link->queued += len;
	return SPOKE_OK;
}

/* --- the end */

/* Returns whether the request was written or still may be. A frame in the output buffer is sent if
 * anything is, even after its call has ended. */
static bool is_written(const struct spokei_conn *conn, const struct spokei_pending *pending)
{
	if (spokei_conn_has_written(conn, pending))
		return true;
	return pending->mark != UINT64_MAX && conn->state != SPOKEI_CONN_CLOSED &&
	       !conn->unwritable;
}

void spokei_conn_finish_pending(struct spokei_pending *pending, int error,
				const struct spokei_message *reply)
{
	struct spokei_conn *conn = pending->conn;
	struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t now_ns = engine->begin_ns;
	struct spokei_outcome outcome = { .error = error, .reply = reply };

	if (pending->lasting)
		(void)spoke_wheel_disarm(engine->wheel, &pending->timer);
	else
		(void)spoke_wheel_cancel(engine->wheel, &pending->timer);
	if (pending->node.next)
		spokei_list_remove(&pending->node);
	if (pending->two_way)
		spokei_pendings_remove(&conn->pendings, pending);
	if (SPOKEI_UNLIKELY(pending->unsent))
		free_unsent(pending);
	conn->link->pending_count--;
	outcome.written = is_written(conn, pending);
	if (pending->written_ns) {
		outcome.queued_ns = pending->written_ns - pending->begun_ns;
		if (now_ns > pending->written_ns)
			outcome.waited_ns = now_ns - pending->written_ns;
	} else if (pending->begun_ns && now_ns > pending->begun_ns) {
		outcome.queued_ns = now_ns - pending->begun_ns;
	}
	pending->conn = NULL;
	engine->settle_old = true;
	pending->done(pending, &outcome);
	if (conn->ending)
		spokei_engine_last(engine, &conn->settle);
}

void spokei_pending_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_pending *pending = spoke_container_of(timer, struct spokei_pending, timer);

	(void)arg;
	spokei_conn_finish_pending(pending,
				   is_written(pending->conn, pending) ? SPOKE_ETIMEOUT
								      : SPOKE_ETIMEOUT_UNSENT,
				   NULL);
}

void spokei_conn_withdraw(struct spokei_pending *pending)
{
	free_unsent(pending);
}

void spokei_conn_cancel(struct spokei_pending *pending, int error)
{
	spokei_conn_finish_pending(pending, error, NULL);
}

static void fail_list(struct spoke_list *list, int error)
{
	while (!spokei_list_empty(list))
		spokei_conn_finish_pending(spoke_container_of(spokei_list_first(list),
							      struct spokei_pending, node),
					   error, NULL);
}

void spokei_conn_fail_unsent(struct spokei_conn *conn, int error)
{
	struct spoke_list fresh;

	if (conn->wire == NULL)
		return;
	fail_list(&conn->pendings.kept, error);
	/* Calls of this turn may be written or not. */
	spokei_list_init(&fresh);
	spokei_list_move(&conn->pendings.fresh, &fresh);
	while (!spokei_list_empty(&fresh)) {
		struct spoke_list *node = spokei_list_first(&fresh);
		struct spokei_pending *pending = spoke_container_of(node, struct spokei_pending,
								    node);

		if (pending->unsent) {
			spokei_conn_finish_pending(pending, error, NULL);
		} else {
			spokei_list_unlink(node);
			spokei_list_append(&conn->pendings.fresh, node);
		}
	}
}

void spokei_conn_fail_calls(struct spokei_conn *conn, int error)
{
	struct spokei_pending *pending;

	if (conn->wire == NULL)
		return;
	/* Unwritten calls first: they are in order. */
	fail_list(&conn->pendings.unwritten, error);
	fail_list(&conn->pendings.kept, error);
	fail_list(&conn->pendings.fresh, error);
	while ((pending = spokei_pendings_any(&conn->pendings)) != NULL)
		spokei_conn_finish_pending(pending, error, NULL);
}

/* --- the beginning */

static int put_request(struct spokei_conn *conn, struct spokei_pending *pending,
		       struct spokei_message *message, uint64_t left_ns)
{
	uint64_t mark = spokei_outlet_mark(&conn->out);
	int error;

	if (conn->wire->deadlines)
		message->timeout_ms = (int64_t)(left_ns / NS_PER_MS + (left_ns % NS_PER_MS != 0));
	error = spokei_conn_put(conn, message, message->args.len);
	if (error == 0)
		pending->mark = mark;
	return error;
}

static int check_room(const struct spokei_conn *conn)
{
	const struct spokei_link *link = conn->link;

	if (conn->state > SPOKEI_CONN_OPEN || conn->unwritable || conn->readonly ||
	    conn->wire == NULL)
		return SPOKE_ESTATE;
	if (link->pending_count >= link->limits.pending_max ||
	    link->queued >= link->limits.queued_max)
		return SPOKE_ELIMIT;
	return 0;
}

int spokei_conn_call(struct spokei_conn *conn, struct spokei_pending *pending,
		     struct spokei_message *message)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	int error = check_room(conn);

	if (error == 0)
		error = spokei_pendings_add(&conn->pendings, engine->env, pending);
	if (error)
		return error;
	pending->mark = UINT64_MAX;
	pending->two_way = message->two_way;
	message->id = pending->id;
	if (!message->two_way) /* a one-way request needs an id, but waits for no reply */
		spokei_pendings_remove(&conn->pendings, pending);
	if (conn->state == SPOKEI_CONN_OPEN && !conn->blocked)
		error = put_request(conn, pending, message, pending->timeout_ns);
	else
		error = keep_unsent(conn, pending, message);
	if (error) {
		if (message->two_way)
			spokei_pendings_remove(&conn->pendings, pending);
		return error;
	}
	pending->conn = conn;
	spokei_list_append(&conn->pendings.fresh, &pending->node);
	conn->link->pending_count++;
	conn->link->asked = true;
	spokei_engine_last(engine, &conn->settle);
	return 0;
}

/* --- the end of a turn */

/* Notes that the request was written, if it was. A one-way call then ends. */
static void note_written(struct spokei_conn *conn, struct spokei_pending *pending)
{
	if (!spokei_outlet_passed(&conn->out, pending->mark))
		return;
	pending->written_ns = spokei_conn_engine(conn)->settle_ns;
	if (pending->two_way)
		spokei_list_remove(&pending->node);
	else
		spokei_conn_finish_pending(pending, SPOKE_OK, NULL);
}

/* Returns the list of earlier calls that this one belongs to: queued, or still unsent. */
static struct spoke_list *list_of(struct spokei_conn *conn, const struct spokei_pending *pending)
{
	return pending->unsent ? &conn->pendings.kept : &conn->pendings.unwritten;
}

static void arm_call(struct spokei_conn *conn, struct spokei_pending *pending)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	uint64_t now_ns = spokei_engine_settled(engine);
	uint64_t due_ns = spokei_later(now_ns, pending->timeout_ns);
	int status;

	pending->begun_ns = now_ns;
	status = spoke_wheel_schedule(engine->wheel, &pending->timer, conn->link->pending_class,
				      due_ns);
	if (status != SPOKE_WHEEL_OK) {
		spokei_conn_finish_pending(pending, spokei_engine_fold(status), NULL);
		return;
	}
	note_written(conn, pending);
}

static void settle_fresh(struct spokei_conn *conn)
{
	struct spoke_list fresh;

	if (spokei_list_empty(&conn->pendings.fresh))
		return;
	spokei_list_init(&fresh);
	spokei_list_move(&conn->pendings.fresh, &fresh);
	while (!spokei_list_empty(&fresh)) {
		struct spoke_list *node = spokei_list_first(&fresh);
		struct spokei_pending *pending = spoke_container_of(node, struct spokei_pending,
								    node);

		spokei_list_unlink(node);
		spokei_list_append(list_of(conn, pending), node);
		arm_call(conn, pending);
	}
}

void spokei_conn_settle_calls(struct spokei_conn *conn)
{
	struct spokei_pendings *pendings = &conn->pendings;

	if (conn->wire == NULL)
		return;
	while (!spokei_list_empty(&pendings->unwritten)) {
		struct spokei_pending *pending = spoke_container_of(spokei_list_first(
									    &pendings->unwritten),
								    struct spokei_pending, node);

		if (!spokei_outlet_passed(&conn->out, pending->mark))
			break;
		note_written(conn, pending);
	}
	settle_fresh(conn);
	/* A connection that was busy once may be idle for ever. */
	if (pendings->count == 0 && SPOKEI_UNLIKELY(pendings->room > RING_ROOM_IDLE))
		spokei_pendings_fini(pendings, spokei_conn_engine(conn)->env);
}

/* --- unsent requests */

/* Returns whether there may be room for the next one. */
static bool send_unsent(struct spokei_conn *conn, struct spokei_pending *pending)
{
	uint64_t now_ns = spokei_conn_engine(conn)->settle_ns;
	uint64_t gone_ns = now_ns > pending->begun_ns ? now_ns - pending->begun_ns : 0;
	int error;

	/* The wheel will end it: it advances after all sockets were read. */
	if (gone_ns >= pending->timeout_ns) {
		spokei_conn_finish_pending(pending, SPOKE_ETIMEOUT_UNSENT, NULL);
		return true;
	}
	error = put_request(conn, pending, &pending->unsent->message,
			    pending->timeout_ns - gone_ns);
	if (error == SPOKE_ELIMIT && spokei_buffer_len(&conn->out.out) > 0)
		return false; /* the next write is for this frame alone */
	free_unsent(pending);
	if (error) {
		spokei_conn_finish_pending(pending, error, NULL);
		return true;
	}
	spokei_list_remove(&pending->node);
	spokei_list_append(&conn->pendings.unwritten, &pending->node);
	return true;
}

void spokei_conn_send_unsent(struct spokei_conn *conn)
{
	struct spoke_list *kept = &conn->pendings.kept;
	struct spoke_list withdrawn; /* calls that are about to end */
	bool room = true;

	settle_fresh(conn);
	spokei_list_init(&withdrawn);
	while (room && conn->state != SPOKEI_CONN_CLOSED && !spokei_list_empty(kept) &&
	       spokei_buffer_len(&conn->out.out) < PUT_HIGH) {
		struct spokei_pending *pending = spoke_container_of(spokei_list_first(kept),
								    struct spokei_pending, node);

		if (pending->unsent) {
			room = send_unsent(conn, pending);
		} else {
			spokei_list_remove(&pending->node);
			spokei_list_append(&withdrawn, &pending->node);
		}
	}
	while (!spokei_list_empty(&withdrawn)) {
		struct spoke_list *node = spokei_list_first(&withdrawn);

		spokei_list_unlink(node);
		spokei_list_append(kept, node);
	}
}
