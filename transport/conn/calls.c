/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that this side makes on a connection, each from its id to its one end. */
#include "transport/conn/link.h"
#include "transport/conn/parts.h"
#include "transport/conn/unsent.h"

#define NS_PER_MS UINT64_C(1000000)
#define PUT_HIGH 262144u     /* queued bytes above which unsent requests stay unsent */
#define RING_ROOM_IDLE 1024u /* cells that an idle connection may keep */

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

bool spokei_conn_may_be_written(const struct spokei_pending *pending)
{
	return is_written(pending->conn, pending);
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
		spokei_unsent_free(pending);
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

void spokei_conn_withdraw(struct spokei_pending *pending)
{
	spokei_unsent_free(pending);
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
	if (link->pending_count >= link->limits.pending_max)
		return spokei_link_refused(conn->link, SPOKE_ELIMIT, SPOKEI_REFUSED_BY_PENDING);
	if (link->queued >= link->limits.queued_max)
		return spokei_link_refused(conn->link, SPOKE_ELIMIT, SPOKEI_REFUSED_BY_QUEUED);
	return 0;
}

/* `guard` NULL: the request is queued at once if the connection takes it. */
static inline int begin_call(struct spokei_conn *conn, struct spokei_pending *pending,
			     struct spokei_message *message, spokei_conn_guard_fn guard)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	int error = check_room(conn);

	if (error)
		return error;
	error = spokei_pendings_add(&conn->pendings, engine->env, pending);
	if (error)
		return spokei_link_refused(conn->link, error, SPOKEI_REFUSED_BY_IDS);
	pending->mark = UINT64_MAX;
	pending->two_way = message->two_way;
	message->id = pending->id;
	if (!message->two_way) /* a one-way request needs an id, but waits for no reply */
		spokei_pendings_remove(&conn->pendings, pending);
	if (guard == NULL && conn->state == SPOKEI_CONN_OPEN && !conn->blocked)
		error = put_request(conn, pending, message, pending->timeout_ns);
	else
		error = spokei_unsent_keep(conn, pending, message);
	if (error) {
		if (message->two_way)
			spokei_pendings_remove(&conn->pendings, pending);
		return spokei_link_refused(conn->link, error, SPOKEI_REFUSED_BY_OUTPUT);
	}
	pending->conn = conn;
	if (guard)
		pending->unsent->guard = guard;
	spokei_list_append(&conn->pendings.fresh, &pending->node);
	conn->link->pending_count++;
	conn->link->asked = true;
	spokei_engine_last(engine, &conn->settle);
	return 0;
}

int spokei_conn_call(struct spokei_conn *conn, struct spokei_pending *pending,
		     struct spokei_message *message)
{
	return begin_call(conn, pending, message, NULL);
}

SPOKEI_NOINLINE int spokei_conn_call_guarded(struct spokei_conn *conn,
					     struct spokei_pending *pending,
					     struct spokei_message *message,
					     spokei_conn_guard_fn guard)
{
	SPOKE_ASSERT(guard != NULL);
	return begin_call(conn, pending, message, guard);
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

/* Returns the error that ends the request before it is queued, or 0. */
static int check_unsent(struct spokei_pending *pending, uint64_t gone_ns)
{
	/* The wheel will end it: it advances after all sockets were read. */
	if (gone_ns >= pending->timeout_ns)
		return SPOKE_ETIMEOUT_UNSENT;
	return pending->unsent->guard ? pending->unsent->guard(pending) : SPOKE_OK;
}

/* Returns whether there may be room for the next one. */
static bool send_unsent(struct spokei_conn *conn, struct spokei_pending *pending,
			struct spokei_conn_batch *batch)
{
	struct spokei_unsent *unsent = pending->unsent;
	uint64_t now_ns = spokei_conn_engine(conn)->settle_ns;
	uint64_t gone_ns = now_ns > pending->begun_ns ? now_ns - pending->begun_ns : 0;
	int error = check_unsent(pending, gone_ns);

	if (error == 0)
		error = put_request(conn, pending, &unsent->message, pending->timeout_ns - gone_ns);
	if (error == SPOKE_ELIMIT && spokei_buffer_len(&conn->out.out) > 0)
		return false; /* the next write is for this frame alone */
	if (error && !batch->guarded) {
		spokei_conn_finish_pending(pending, error, NULL);
		return true;
	}
	spokei_list_remove(&pending->node);
	if (error) {
		unsent->error = error;
		spokei_list_append(&batch->failed, &pending->node);
		return true;
	}
	spokei_list_append(&conn->pendings.unwritten, &pending->node);
	batch->guarded |= unsent->guard != NULL;
	if (!batch->guarded)
		spokei_unsent_free(pending);
	return true;
}

void spokei_conn_send_unsent(struct spokei_conn *conn, struct spokei_conn_batch *batch)
{
	struct spoke_list *kept = &conn->pendings.kept;
	struct spoke_list withdrawn; /* calls that are about to end */
	bool room = true;

	settle_fresh(conn);
	spokei_list_init(&batch->failed);
	batch->guarded = false;
	spokei_list_init(&withdrawn);
	while (room && conn->state != SPOKEI_CONN_CLOSED && !spokei_list_empty(kept) &&
	       spokei_buffer_len(&conn->out.out) < PUT_HIGH) {
		struct spokei_pending *pending = spoke_container_of(spokei_list_first(kept),
								    struct spokei_pending, node);

		if (pending->unsent) {
			room = send_unsent(conn, pending, batch);
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

/* Makes requests unsent again whose frames the stream has not begun to take. They were queued last,
 * so those of a batch with a guarded request are the last ones with an unsent request. */
static void take_back(struct spokei_conn *conn)
{
	struct spoke_list *unwritten = &conn->pendings.unwritten;
	uint64_t mark = UINT64_MAX;
	uint64_t frames = 0;

	while (!spokei_list_empty(unwritten)) {
		struct spoke_list *node = unwritten->prev;
		struct spokei_pending *pending = spoke_container_of(node, struct spokei_pending,
								    node);

		if (pending->unsent == NULL || spokei_conn_has_written(conn, pending))
			break;
		mark = pending->mark;
		pending->mark = UINT64_MAX;
		spokei_list_unlink(node);
		spokei_list_append(conn->pendings.kept.next, node);
		frames++;
	}
	if (frames > 0 && !conn->unwritable && conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_unqueue(conn, mark, frames);
	for (struct spoke_list *node = unwritten->prev; node != unwritten; node = node->prev) {
		struct spokei_pending *pending = spoke_container_of(node, struct spokei_pending,
								    node);

		if (pending->unsent == NULL)
			break;
		spokei_unsent_free(pending);
	}
}

void spokei_conn_sent_unsent(struct spokei_conn *conn, struct spokei_conn_batch *batch)
{
	if (batch->guarded)
		take_back(conn);
	while (!spokei_list_empty(&batch->failed)) {
		struct spokei_pending *pending = spoke_container_of(spokei_list_first(
									    &batch->failed),
								    struct spokei_pending, node);

		if (pending->unsent) {
			spokei_conn_finish_pending(pending, pending->unsent->error, NULL);
		} else { /* withdrawn by the callback of another one: it is about to end */
			spokei_list_remove(&pending->node);
			spokei_list_append(&conn->pendings.kept, &pending->node);
		}
	}
}
