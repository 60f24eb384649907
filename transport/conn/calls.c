/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that this side makes on a connection, each from its id to its one end; the rare paths
 * of the ring that finds the call of an id; and requests that wait for the stream.
 */
#include "core/base/env.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

/* --- the ring
 *
 * An id whose cell is taken is skipped, so no two waiting calls have the same id, even after a
 * wrap; an old call costs one id in each lap. There is always a free cell: at most half of the
 * cells are taken. Either the ids from first to last pass all cells, or there are fewer ids than
 * cells, and each id has a cell of its own.
 *
 * A large ring grows cell by cell, because moving a million calls at once would take a turn of many
 * milliseconds: each call that is added moves a few others. A cell of the ring splits into two of
 * the grown ring. The grown ring is initialised on the way, so its pages are not touched at once
 * either.
 */

#define FIRST_ROOM 8u
#define FREE_AT_A_TIME ((size_t)1 << 16) /* bytes of a ring that has grown */
#define SPLIT_AT_A_TIME 4u /* cells, by each call that is added while the ring grows */

void spokei_pendings_init(struct spokei_pendings *pendings, uint64_t first, uint64_t last,
			  uint64_t next)
{
	SPOKE_ASSERT(first <= next && next <= last);
	*pendings = (struct spokei_pendings){ .first = first, .last = last, .next = next };
	spokei_list_init(&pendings->fresh);
	spokei_list_init(&pendings->kept);
	spokei_list_init(&pendings->unwritten);
}

void spokei_pendings_fini(struct spokei_pendings *pendings, const struct spoke_env *env)
{
	SPOKE_ASSERT(pendings->count == 0);
	spokei_free(env, (void *)pendings->ring, pendings->room, sizeof(void *));
	spokei_free(env, (void *)pendings->grown, 2 * pendings->room, sizeof(void *));
	spokei_free(env, pendings->spent, pendings->spent_size, 1);
	pendings->ring = NULL;
	pendings->grown = NULL;
	pendings->spent = NULL;
	pendings->room = 0;
	pendings->limit = 0;
}

/* Returns the cell of an id in the ring that has its calls now. */
static struct spokei_pending **cell_of(const struct spokei_pendings *pendings, uint64_t id)
{
	size_t cell = spokei_pendings_cell(pendings, id);

	if (pendings->grown && cell < pendings->split)
		return &pendings->grown[(size_t)id & (2 * pendings->room - 1)];
	return &pendings->ring[cell];
}

/* Frees a part of the spent ring; all of it, if that is the rest or the environment frees no parts.
 */
static void free_spent(struct spokei_pendings *pendings, const struct spoke_env *env, size_t size)
{
	size_t before = pendings->spent_size;

	if (before > size)
		pendings->spent = spokei_free_end(env, pendings->spent, &pendings->spent_size,
						  before - size);
	if (pendings->spent_size < before)
		return;
	spokei_free(env, pendings->spent, pendings->spent_size, 1);
	pendings->spent = NULL;
	pendings->limit = pendings->room / 2;
}

/* Moves the calls of the next cells into the grown ring. Ids that differ in the low bits of the
 * smaller ring differ in those of the larger one, too: no two calls get the same cell. */
static void split_cells(struct spokei_pendings *pendings, const struct spoke_env *env, size_t cells)
{
	size_t room = pendings->room;

	for (; cells > 0 && pendings->split < room; cells--) {
		size_t cell = pendings->split++;
		struct spokei_pending *pending = pendings->ring[cell];

		pendings->grown[cell] = NULL;
		pendings->grown[cell + room] = NULL;
		if (pending == NULL)
			continue;
		pendings->ring[cell] = NULL;
		pendings->grown[(size_t)pending->id & (2 * room - 1)] = pending;
	}
	if (pendings->split < room)
		return;
	pendings->spent = pendings->ring;
	pendings->spent_size = room * sizeof(void *);
	pendings->ring = pendings->grown;
	pendings->grown = NULL;
	pendings->room = 2 * room;
	free_spent(pendings, env, FREE_AT_A_TIME);
}

/* Begins to grow a ring that is half full; a small one grows at once. */
static int grow(struct spokei_pendings *pendings, const struct spoke_env *env)
{
	size_t room = pendings->room ? 2 * pendings->room : FIRST_ROOM;
	void *memory = spokei_alloc_unset(env, room * sizeof(void *));

	if (memory == NULL)
		return SPOKE_ENOMEM;
	if (pendings->room == 0) {
		pendings->ring = memset(memory, 0, room * sizeof(void *));
		pendings->room = room;
		pendings->limit = room / 2;
		return SPOKE_OK;
	}
	if (pendings->spent)
		free_spent(pendings, env, SIZE_MAX);
	pendings->grown = memory;
	pendings->split = 0;
	pendings->limit = 0;
	if (pendings->room <= SPOKEI_PENDINGS_ROOM_AT_ONCE)
		split_cells(pendings, env, pendings->room);
	return SPOKE_OK;
}

int spokei_pendings_add_slowly(struct spokei_pendings *pendings, const struct spoke_env *env,
			       struct spokei_pending *pending)
{
	struct spokei_pending **cell;
	int error = SPOKE_OK;

	if (pendings->count > pendings->last - pendings->first)
		return SPOKE_ELIMIT;
	if (pendings->spent)
		free_spent(pendings, env, FREE_AT_A_TIME);
	if (pendings->grown == NULL && pendings->count >= pendings->room / 2)
		error = grow(pendings, env);
	if (error)
		return error;
	if (pendings->grown)
		split_cells(pendings, env, SPLIT_AT_A_TIME);
	while (*(cell = cell_of(pendings, pendings->next)))
		spokei_pendings_step(pendings);
	pending->id = pendings->next;
	*cell = pending;
	pendings->count++;
	spokei_pendings_step(pendings);
	return SPOKE_OK;
}

void spokei_pendings_remove_grown(struct spokei_pendings *pendings,
				  const struct spokei_pending *pending)
{
	struct spokei_pending **cell = cell_of(pendings, pending->id);

	if (*cell != pending)
		return;
	*cell = NULL;
	pendings->count--;
}

struct spokei_pending *spokei_pendings_find_grown(const struct spokei_pendings *pendings,
						  uint64_t id)
{
	struct spokei_pending *pending = pendings->count > 0 ? *cell_of(pendings, id) : NULL;

	return pending && pending->id == id ? pending : NULL;
}

bool spokei_pendings_gave(const struct spokei_pendings *pendings, uint64_t id)
{
	uint64_t behind; /* ids given after this one, if it was given */

	if (id < pendings->first || id > pendings->last)
		return false;
	if (id < pendings->next)
		behind = pendings->next - 1 - id;
	else
		behind = pendings->next - pendings->first + (pendings->last - id);
	return behind < pendings->given;
}

struct spokei_pending *spokei_pendings_any(struct spokei_pendings *pendings)
{
	if (pendings->count == 0)
		return NULL;
	/* From the cell of `next`, which is that of the oldest of the last `room` ids. */
	for (;; pendings->looked++) {
		uint64_t id = pendings->next + pendings->looked;
		struct spokei_pending *pending = *cell_of(pendings, id);

		if (pending == NULL && pendings->grown)
			pending = *cell_of(pendings, id + pendings->room);
		if (pending)
			return pending;
	}
}

/* --- the memory of unsent requests
 *
 * Unsent requests are values that a connection has not taken yet, because it is not open, the peer
 * has blocked, or the request is guarded. Once a request is in the output buffer, it cannot be
 * withdrawn. A guarded one can until its first byte is written, and stays unsent until then.
 */

/* Owned by its call. */
struct spokei_unsent {
	struct spokei_message message; /* the spans that may change point into `bytes` */
	size_t size;                   /* of this struct, with `bytes` */
	spokei_conn_guard_fn guard;    /* NULL: none */
	int error;                     /* that the request ends with; 0: none yet */
	unsigned char bytes[];
};

#define FRAME_BASE 128u /* about the size of a small request on the wire */

/* Returns the bytes that an unsent request counts for: about the size of its frame. */
static size_t weight_of(const struct spokei_message *message)
{
	return FRAME_BASE + message->args.len + message->attachments.len;
}

/* Frees the unsent request of a call, if it has one. */
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
	unsent->guard = NULL;
	unsent->error = SPOKE_OK;
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

/* Makes the request of a call an unsent one, with copies of its values. Unsent requests count like
 * queued bytes, so there is room when they are queued. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
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
	       !spokei_conn_unwritable(conn);
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

	if (conn->state > SPOKEI_CONN_OPEN || spokei_conn_unwritable(conn) || conn->readonly ||
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
	if (guard == NULL && conn->state == SPOKEI_CONN_OPEN && conn->output == SPOKEI_OUTPUT_FREE)
		error = put_request(conn, pending, message, pending->timeout_ns);
	else
		error = keep_unsent(conn, pending, message);
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
		free_unsent(pending);
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
	if (frames > 0 && !spokei_conn_unwritable(conn) && conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_unqueue(conn, mark, frames);
	for (struct spoke_list *node = unwritten->prev; node != unwritten; node = node->prev) {
		struct spokei_pending *pending = spoke_container_of(node, struct spokei_pending,
								    node);

		if (pending->unsent == NULL)
			break;
		free_unsent(pending);
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
