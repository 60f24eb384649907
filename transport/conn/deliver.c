/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivers each received message: replies to calls, requests to the handler, events to the
 * connection.
 */
#include "core/engine/roll.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"

#include "transport/wire/codecs.h"

#include <stdio.h>

#define MINUTE_NS UINT64_C(60000000000)
#define WRITABLES_MAX 100u /* times a minute that a peer may take READONLY back */
#define TEXT_MAX 96u       /* bytes of an explanation */
#define QUEUED_FAIR 65536u /* queued bytes that every peer may cause */

/* Heartbeats and drain notices use the serialization that the peer used last. */
static SPOKEI_NOINLINE void learn_codec(struct spokei_conn *conn, uint8_t codec)
{
	if (spokei_wire_codec(&conn->link->limits.wire, codec))
		conn->probe_codec = codec;
}

/* --- replies */

/* A few unknown replies may be a mistake of the peer; many mean that it is out of step. */
static void note_unknown(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	spokei_count(engine, SPOKE_STAT_REPLIES_UNKNOWN);
	if (conn->unknown == 0 || engine->begin_ns - conn->unknown_ns >= MINUTE_NS) {
		conn->unknown = 0;
		conn->unknown_ns = engine->begin_ns;
	}
	if (++conn->unknown > conn->link->limits.unknown_replies)
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_UNKNOWN_REPLIES, SPOKE_EPROTOCOL);
}

/* A reply for which no call waits; `given`: its id was issued. */
static SPOKEI_NOINLINE void deliver_unexpected(struct spokei_conn *conn, bool given)
{
	/* Late, or the reply of a Java peer to a heartbeat in a serialization that it lacks. */
	if (given)
		spokei_count(spokei_conn_engine(conn), SPOKE_STAT_REPLIES_LATE);
	else if (!conn->link->asked)
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_UNWANTED, SPOKE_EPROTOCOL);
	else
		note_unknown(conn);
}

/* Explains why a frame was not read. */
static struct spoke_span explain_length(const struct spokei_conn *conn, char text[TEXT_MAX])
{
	int len = snprintf(text, TEXT_MAX, "the frame has %zu bytes; frame.max allows %zu",
			   conn->in.too_long, conn->in.limits->frame_max);

	return spokei_span(text, (size_t)len);
}

/* Counts a bad body whose bytes stand for too much. Returns the reason for its sender, or NULL. */
static const char *explain_swollen(const struct spokei_conn *conn,
				   const struct spokei_message *message)
{
	if (message->swollen)
		spokei_count(spokei_conn_engine(conn), SPOKE_STAT_BODIES_SWOLLEN);
	return message->swollen;
}

/* Ends a call whose reply cannot be read. */
static SPOKEI_NOINLINE void finish_bad_reply(struct spokei_conn *conn,
					     struct spokei_pending *pending,
					     const struct spokei_message *message, int error)
{
	const char *swollen = explain_swollen(conn, message);
	const char *why = swollen ? swollen : spoke_strerror(error);
	struct spokei_message unread = {
		.kind = SPOKEI_REPLY,
		.id = message->id,
		.codec = message->codec,
		.error_text = spokei_span(why, strlen(why)),
	};
	struct spokei_message instead = *message;
	char text[TEXT_MAX];

	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_BAD_REPLIES);
	if (conn->in.too_long == 0) {
		spokei_conn_finish_pending(pending,
					   error == SPOKE_ETOOLARGE ? error : SPOKE_EBADREPLY,
					   &unread);
		return;
	}
	instead.error_text = explain_length(conn, text);
	spokei_conn_finish_pending(pending, message->error ? message->error : SPOKE_ETOOLARGE,
				   &instead);
}

static void deliver_reply(struct spokei_conn *conn, const struct spokei_message *message, int error)
{
	struct spokei_pending *pending;
	bool given;

	if (SPOKEI_UNLIKELY(message->codec != conn->probe_codec))
		learn_codec(conn, message->codec);
	pending = spokei_pendings_find(&conn->pendings, message->id, &given);
	if (SPOKEI_UNLIKELY(pending == NULL)) {
		deliver_unexpected(conn, given);
		return;
	}
	/* Reject replies to requests that have not been written yet, even if the id matches. Bytes
	 * that were read before the request was written cannot be its reply. */
	if (pending->mark >= conn->asked_mark) {
		note_unknown(conn);
		return;
	}
	if (SPOKEI_UNLIKELY(error != 0)) {
		finish_bad_reply(conn, pending, message, error);
		return;
	}
	spokei_conn_finish_pending(pending, message->error, message);
}

/* --- requests */

/* Returns whether a request may have been sent before the peer has read this side's READONLY. Then
 * the time limit for the peer's answer begins again, because a peer that gets no CPU reads late;
 * the last two such limits before the drain's own begin no new one. A peer that is shut out, or has
 * a wire without READONLY, has a short time only. */
static SPOKEI_NOINLINE bool has_crossed(struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);
	const uint64_t limit_ns = conn->link->limits.goodbye_ns;
	const uint64_t until_ns = conn->wire->probes ? spokei_drain_serves_until(engine) : 0;

	if (conn->state != SPOKEI_CONN_FINISHING || !conn->announced || conn->readonly)
		return false;
	if (spokei_later(engine->begin_ns, 2 * limit_ns) <= until_ns)
		conn->announced_ns = engine->begin_ns;
	return engine->begin_ns - conn->announced_ns < SPOKEI_CROSSING_NS ||
	       spokei_later(engine->begin_ns, limit_ns) <= until_ns;
}

static const char *limit_reached(struct spokei_conn *conn, const struct spokei_message *message)
{
	const struct spokei_link *link = conn->link;

	if (link->closing || (conn->state != SPOKEI_CONN_OPEN && !has_crossed(conn)))
		return "this side is closing; call another one";
	if (conn->unwritable && message->two_way)
		return "the connection can no longer be written to";
	if (link->serving_count + link->orphan_count >= link->limits.serving_max)
		return "the provider's limit of running requests is reached";
	if (conn->serving_count >= link->limits.serving_per_conn_max)
		return "the connection's limit of running requests is reached";
	/* Peers that read are not refused because others do not. */
	if (link->queued >= link->limits.queued_max &&
	    spokei_conn_queues(conn, spokei_outlet_len(&conn->out), QUEUED_FAIR + 1))
		return "the provider has as many answers waiting as it may";
	return NULL;
}

/* The connection ends when its last request is answered. */
static void note_last(struct spokei_conn *conn, const struct spokei_message *message)
{
	if (!message->last)
		return;
	conn->ending = true;
	spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
}

static void deliver_request(struct spokei_conn *conn, const struct spokei_message *message)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	const char *limit;

	if (!message->repeat) {
		note_last(conn, message);
		conn->found = NULL;
		learn_codec(conn, message->codec);
		conn->asked_codec = conn->probe_codec;
	}
	if (conn->link->serve == NULL) {
		spokei_count(engine, SPOKE_STAT_REQUESTS_UNWANTED);
		spokei_conn_refuse(conn, message, SPOKE_ENOSERVICE, "nothing is served here");
		return;
	}
	/* A one-way request cannot get a wrong reply; a notification has no id at all. */
	if (message->two_way && conn->serving.count > 0 && message->id <= conn->serving_top &&
	    spokei_map_get(&conn->serving, &message->id, sizeof(message->id))) {
		spokei_conn_blame(conn, SPOKE_STAT_CLOSED_ID_TWICE, SPOKE_EPROTOCOL);
		return;
	}
	spokei_count(engine, SPOKE_STAT_REQUESTS);
	limit = limit_reached(conn, message);
	if (limit) {
		spokei_count(engine, SPOKE_STAT_REQUESTS_REFUSED);
		spokei_conn_refuse(conn, message, SPOKE_EREFUSED, limit);
		return;
	}
	conn->link->serve(conn->link->serve_arg, conn, message);
}

/* Returns the error of a request that asks what its method takes: that it takes no requests which
 * are for safe methods only; else this one. */
static int error_of_asked(struct spokei_conn *conn, const struct spokei_message *message, int error)
{
	const struct spokei_link *link = conn->link;

	if (message->safe_only && link->is_unsafe &&
	    link->is_unsafe(link->serve_arg, conn, message))
		return SPOKE_EUNSUPPORTED;
	return error;
}

static void deliver_bad_request(struct spokei_conn *conn, const struct spokei_message *message,
				int error)
{
	const char *swollen = explain_swollen(conn, message);
	const char *why = swollen ? swollen : spoke_strerror(error);
	struct spokei_message answer = {
		.error = error_of_asked(conn, message, SPOKE_EBADREQUEST),
		.error_text = message->error_text,
	};
	char text[TEXT_MAX];

	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_BAD_REQUESTS);
	note_last(conn, message);
	if (conn->in.too_long)
		answer.error_text = explain_length(conn, text);
	else if (answer.error_text.len == 0)
		answer.error_text = spokei_span(why, strlen(why));
	if (conn->unproven)
		conn->link->unread(conn->link->serve_arg, conn);
	spokei_conn_note_refused(conn, message, answer.error);
	spokei_conn_reply(conn, message, &answer);
	if (conn->dismissed)
		spokei_conn_dismiss(conn, SPOKE_STAT_CLOSED_AUTH, SPOKE_EFORBIDDEN);
}

/* --- events */

static void deliver_probe(struct spokei_conn *conn, const struct spokei_message *message)
{
	struct spokei_message answer = {
		.kind = SPOKEI_PROBE_ANSWER,
		.id = message->id,
		.codec = message->codec,
		.event = message->event,
	};
	size_t before = spokei_outlet_len(&conn->out);

	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_PROBES_READ);
	conn->waits_open |= message->id >> 32 == SPOKEI_CONN_MARK;
	spokei_conn_slim(conn);
	/* The answer uses the peer's own codec; for unknown ones there is no other form. */
	learn_codec(conn, message->codec);
	if (!message->two_way || conn->unwritable)
		return;
	/* A peer that sends heartbeats and does not read gets fewer answers. */
	if (spokei_outlet_put_control(&conn->out, conn->wire, &conn->link->limits.wire, &answer))
		return;
	spokei_conn_wrote(conn, spokei_outlet_len(&conn->out) - before);
	if (conn->unproven)
		spokei_conn_answered(conn);
}

/* A question that the wire answers by the id, and by what its method takes. */
static void deliver_question(struct spokei_conn *conn, const struct spokei_message *message)
{
	struct spokei_message answer = {
		.kind = SPOKEI_REPLY,
		.error = error_of_asked(conn, message, SPOKE_OK),
	};

	note_last(conn, message);
	spokei_conn_reply(conn, message, &answer);
}

static void deliver_readonly(struct spokei_conn *conn)
{
	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_READONLY_READ);
	if (conn->readonly)
		return;
	conn->readonly = true;
	conn->ending |= conn->link->connects;
	spokei_conn_fail_unsent(conn, SPOKE_EREFUSED);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	spokei_conn_announce(conn);
	spokei_engine_last(spokei_conn_engine(conn), &conn->settle);
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_READONLY);
}

static void deliver_writable(struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);

	if (!conn->readonly || conn->state != SPOKEI_CONN_OPEN)
		return;
	/* Users are notified each time, up to a limit for a peer that toggles READONLY. */
	if (engine->begin_ns - conn->writable_ns >= MINUTE_NS) {
		conn->writables = 0;
		conn->writable_ns = engine->begin_ns;
	}
	if (conn->writables == WRITABLES_MAX)
		return;
	conn->writables++;
	conn->readonly = false;
	conn->ending = false;
	/* The next READONLY is answered too, unless the peer does not read these answers. */
	if (spokei_outlet_len(&conn->out) == 0)
		conn->announced = false;
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_WRITABLE);
}

static void first_message(struct spokei_conn *conn)
{
	conn->heard = true;
	if (conn->wire == NULL) {
		spokei_conn_speak(conn, conn->in.wire);
		spokei_conn_guard(conn);
		spokei_conn_arm(conn);
	}
	if (conn->state != SPOKEI_CONN_CLOSED)
		conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_HEARD);
}

/* A peer that answers is not only connected, but alive. */
static void first_answer(struct spokei_conn *conn)
{
	conn->answered = true;
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_ANSWERED);
}

/* While a peer sends, its silence is not checked. One that is on probation is asked again
 * therefore: its answer to the first heartbeat may have been lost for want of memory. */
static void await_answer(struct spokei_conn *conn, enum spokei_kind kind)
{
	if (kind == SPOKEI_REPLY || kind == SPOKEI_PROBE_ANSWER)
		first_answer(conn);
	else if (conn->doubted && (kind == SPOKEI_PROBE || kind == SPOKEI_REQUEST))
		spokei_conn_ask(conn);
}

void spokei_conn_deliver(struct spokei_conn *conn, const struct spokei_message *message, int error)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	spokei_count(engine, SPOKE_STAT_MESSAGES_READ);
	if (!conn->heard) {
		first_message(conn);
		if (conn->state == SPOKEI_CONN_CLOSED)
			return;
	}
	if (!conn->answered) {
		await_answer(conn, message->kind);
		if (conn->state == SPOKEI_CONN_CLOSED)
			return;
	}
	switch (message->kind) {
	case SPOKEI_REPLY:
		deliver_reply(conn, message, error);
		return;
	case SPOKEI_REQUEST:
		if (error)
			deliver_bad_request(conn, message, error);
		else
			deliver_request(conn, message);
		return;
	case SPOKEI_PROBE:
		deliver_probe(conn, message);
		return;
	case SPOKEI_PROBE_ANSWER:
		spokei_count(engine, SPOKE_STAT_PROBE_ANSWERS_READ);
		spokei_conn_slim(conn);
		return;
	case SPOKEI_READONLY:
		deliver_readonly(conn);
		return;
	case SPOKEI_WRITABLE:
		deliver_writable(conn);
		return;
	case SPOKEI_EVENT:
		spokei_count(engine, SPOKE_STAT_EVENTS_IGNORED);
		return;
	case SPOKEI_QUESTION:
		deliver_question(conn, message);
		return;
	}
}
