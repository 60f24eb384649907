/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: one read per turn and connection, whose bytes become messages; each is delivered to its
 * receiver: replies to calls, requests to the handler, events to the connection. And the end of the
 * peer's bytes.
 */
#include "core/engine/members.h"
#include "transport/conn/link.h"
#include "transport/conn/parts.h"
#include "transport/conn/serving.h"
#include "transport/stream/stream.h"
#include "transport/wire/codecs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- delivery */

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

/* Gives back memory that is kept for the next call, and has the timer wait as long as it may,
 * because a heartbeat or its answer shows that the connection is idle. The engine gives back spare
 * memory, too, if no connection has called or answered since the heartbeat before. */
static void slim(struct spokei_conn *conn)
{
	struct spokei_link *link = conn->link;

	if (conn->pendings.count == 0 && conn->pendings.room > 0)
		spokei_pendings_fini(&conn->pendings, link->engine->env);
	if (conn->serving.count == 0 && conn->serving.room > 0)
		spokei_map_fini(&conn->serving);
	if (conn->serving_count == 0) {
		spokei_sender_drop(conn->sender);
		conn->sender = NULL;
	}
	spokei_intake_slim(&conn->in);
	/* An empty output buffer needs no memory, even on a busy connection. */
	spokei_spares_slim(&link->engine->spares, link->engine->env,
			   link->pending_count > 0 || link->serving_count > 0);
	if (spoke_timer_armed(&conn->timer)) /* so it does not close */
		spokei_conn_rearm(conn);
}

/* Counts an event. Returns how many there were before it in the present minute. */
static uint32_t count_in_minute(struct spokei_minute *minute, uint64_t now_ns)
{
	if (minute->count == 0 || now_ns - minute->began_ns >= MINUTE_NS)
		*minute = (struct spokei_minute){ .began_ns = now_ns };
	return minute->count++;
}

/* Lets the next body be translated into more bytes than it earns, again. */
static inline void refill(struct spokei_conn *conn)
{
	if (SPOKEI_UNLIKELY(conn->in.reader.scratch.max < conn->in.reader.limits->spare_max))
		conn->in.reader.scratch.max = conn->in.reader.limits->spare_max;
}

/* --- replies */

/* A few unknown replies may be a mistake of the peer; many mean that it is out of step. */
static void note_unknown(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	spokei_count(engine, SPOKE_STAT_REPLIES_UNKNOWN);
	if (count_in_minute(&conn->unknown, engine->begin_ns) >= conn->link->limits.unknown_replies)
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_UNKNOWN_REPLIES, SPOKE_EPROTOCOL);
}

/* A reply for which no call waits; `given`: its id was issued. */
static SPOKEI_NOINLINE void deliver_unexpected(struct spokei_conn *conn, bool given)
{
	/* Late, or the reply of a Java peer to a heartbeat in a serialization that it lacks. */
	if (given)
		spokei_count(spokei_conn_engine(conn), SPOKE_STAT_REPLIES_LATE);
	else if (!conn->link->asked || conn->unproven)
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_UNWANTED, SPOKE_EPROTOCOL);
	else
		note_unknown(conn);
}

/* Explains why a frame was not read. */
static struct spoke_span explain_length(const struct spokei_conn *conn, char text[TEXT_MAX])
{
	int len = snprintf(text, TEXT_MAX, "the frame has %zu bytes; frame.max allows %zu",
			   conn->in.too_long, conn->in.reader.limits->frame_max);

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
	refill(conn);
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
	const uint64_t until_ns = conn->wire->probes ? engine->drain_serves_ns : 0;

	if (conn->state != SPOKEI_CONN_FINISHING || conn->since[SPOKEI_LIMIT_NOTICE] == 0 ||
	    conn->readonly)
		return false;
	if (spokei_later(engine->begin_ns, 2 * limit_ns) <= until_ns)
		conn->since[SPOKEI_LIMIT_NOTICE] = engine->begin_ns;
	return engine->begin_ns - conn->since[SPOKEI_LIMIT_NOTICE] < SPOKEI_CROSSING_NS ||
	       spokei_later(engine->begin_ns, limit_ns) <= until_ns;
}

static const char *limit_reached(struct spokei_conn *conn, const struct spokei_message *message)
{
	const struct spokei_link *link = conn->link;

	if (link->closing || (conn->state != SPOKEI_CONN_OPEN && !has_crossed(conn)))
		return "this side is closing; call another one";
	if (spokei_conn_unwritable(conn) && message->two_way)
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
	spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
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
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_ID_TWICE, SPOKE_EPROTOCOL);
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
	size_t before;

	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_PROBES_READ);
	answer.cancels = message->id >> 32 == SPOKEI_CONN_MARK;
	conn->waits_open |= answer.cancels;
	conn->cancels |= answer.cancels;
	slim(conn);
	if (message->id >> 32 == SPOKEI_CONN_MARK)
		spokei_conn_name(conn);
	/* The answer uses the peer's own codec; for unknown ones there is no other form. */
	learn_codec(conn, message->codec);
	if (!message->two_way || spokei_conn_unwritable(conn))
		return;
	before = spokei_outlet_len(&conn->out);
	/* A peer that sends heartbeats and does not read gets fewer answers. */
	if (spokei_outlet_put_control(&conn->out, conn->wire, &conn->link->limits.wire, &answer))
		return;
	spokei_conn_wrote(conn, spokei_outlet_len(&conn->out) - before);
	if (conn->unproven && spokei_conn_is_full(conn, conn->link->limits.out_high))
		spokei_conn_pause(conn);
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

/* A peer that toggles too often counts as writable. */
static void step_aside(struct spokei_conn *conn)
{
	uint64_t now_ns = spokei_conn_engine(conn)->begin_ns;

	if (conn->away || count_in_minute(&conn->writables, now_ns) >= WRITABLES_MAX)
		return;
	conn->away = true;
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_READONLY);
}

static void deliver_readonly(struct spokei_conn *conn, const struct spokei_message *message)
{
	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_READONLY_READ);
	if (conn->readonly)
		return;
	if (message->id == SPOKEI_CONN_ASIDE) {
		step_aside(conn);
		return;
	}
	conn->readonly = true;
	conn->away = true;
	conn->ending |= conn->link->connects;
	spokei_conn_fail_unsent(conn, SPOKE_EREFUSED);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	spokei_conn_announce(conn);
	spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_READONLY);
}

static void deliver_writable(struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);

	if (!conn->away || conn->state != SPOKEI_CONN_OPEN)
		return;
	/* Users are notified each time, up to a limit for a peer that toggles READONLY. */
	if (conn->readonly && count_in_minute(&conn->writables, engine->begin_ns) >= WRITABLES_MAX)
		return;
	conn->readonly = false;
	conn->away = false;
	conn->ending = false;
	/* The next READONLY is answered too, unless the peer does not read these answers. */
	if (spokei_outlet_len(&conn->out) == 0)
		conn->since[SPOKEI_LIMIT_NOTICE] = 0;
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_WRITABLE);
}

static void first_message(struct spokei_conn *conn)
{
	conn->heard = SPOKEI_HEARD_MESSAGE;
	conn->since[SPOKEI_LIMIT_MUTE] = 0;
	if (conn->wire == NULL)
		spokei_conn_speak(conn, conn->in.wire);
	if (conn->state != SPOKEI_CONN_CLOSED)
		conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_HEARD);
}

/* A peer that answers is not only connected, but alive. */
static void first_answer(struct spokei_conn *conn)
{
	conn->heard = SPOKEI_HEARD_ANSWER;
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_ANSWERED);
}

/* While a peer sends, its silence is not checked. One that is on probation is asked again
 * therefore: its answer to the first heartbeat may have been lost for want of memory. */
static void await_answer(struct spokei_conn *conn, enum spokei_kind kind)
{
	if (kind == SPOKEI_REPLY || kind == SPOKEI_PROBE_ANSWER)
		first_answer(conn);
	else if (conn->doubted && (kind == SPOKEI_PROBE || kind == SPOKEI_REQUEST))
		(void)spokei_conn_ask(conn);
}

/* Takes a message as a sign of life. Returns whether the connection is still there. */
static SPOKEI_NOINLINE bool note_life(struct spokei_conn *conn, enum spokei_kind kind)
{
	if (conn->heard == SPOKEI_HEARD_NOTHING)
		first_message(conn);
	if (conn->state != SPOKEI_CONN_CLOSED && conn->heard < SPOKEI_HEARD_ANSWER)
		await_answer(conn, kind);
	return conn->state != SPOKEI_CONN_CLOSED;
}

/* Returns whether a message of this kind says something new about the peer. */
static inline bool is_news(const struct spokei_conn *conn, enum spokei_kind kind)
{
	if (kind == SPOKEI_REQUEST)
		return conn->heard == SPOKEI_HEARD_NOTHING || conn->doubted;
	return conn->heard < SPOKEI_HEARD_ANSWER;
}

static SPOKEI_NOINLINE void deliver_event(struct spokei_conn *conn,
					  const struct spokei_message *message)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	switch (message->kind) {
	case SPOKEI_REPLY:
	case SPOKEI_REQUEST:
		return;
	case SPOKEI_PROBE:
		deliver_probe(conn, message);
		return;
	case SPOKEI_PROBE_ANSWER:
		spokei_count(engine, SPOKE_STAT_PROBE_ANSWERS_READ);
		conn->cancels |= message->cancels;
		slim(conn);
		return;
	case SPOKEI_READONLY:
		deliver_readonly(conn, message);
		return;
	case SPOKEI_WRITABLE:
		deliver_writable(conn);
		return;
	case SPOKEI_CANCEL:
		if (spokei_conn_cancelled(conn, message->id))
			return;
		spokei_count(engine, SPOKE_STAT_EVENTS_IGNORED);
		return;
	case SPOKEI_EVENT:
		if (!spokei_conn_note_name(conn, message->event))
			spokei_count(engine, SPOKE_STAT_EVENTS_IGNORED);
		return;
	case SPOKEI_QUESTION:
		deliver_question(conn, message);
		return;
	}
}

/* `error`: why the body is bad, or 0. */
static inline void deliver(struct spokei_conn *conn, const struct spokei_message *message,
			   int error)
{
	spokei_count(spokei_conn_engine(conn), SPOKE_STAT_MESSAGES_READ);
	if (SPOKEI_UNLIKELY(is_news(conn, message->kind)) && !note_life(conn, message->kind))
		return;
	if (message->kind == SPOKEI_REPLY)
		deliver_reply(conn, message, error);
	else if (SPOKEI_UNLIKELY(message->kind != SPOKEI_REQUEST))
		deliver_event(conn, message);
	else if (SPOKEI_UNLIKELY(error != 0))
		deliver_bad_request(conn, message, error);
	else
		deliver_request(conn, message);
}

/* --- programs that speak another protocol, by the first bytes that they send */

/* A frame of settings on stream 0, the first one of each side. */
static bool begins_http2(const unsigned char *bytes, size_t len)
{
	static const unsigned char zeros[4];

	return len >= 9 && bytes[0] == 0 && bytes[1] == 0 && bytes[3] == 4 && bytes[4] == 0 &&
	       memcmp(bytes + 5, zeros, sizeof(zeros)) == 0;
}

/* Returns a sentence about a server that begins with these bytes: with an answer to bytes that it
 * does not understand, or with its greeting. NULL: unknown. Clients begin with other bytes. */
static const char *sentence_about_server(const void *bytes, size_t len)
{
	static const char http[] = "an HTTP server answers there";
	static const char redis[] = "a Redis server answers there";
	static const char mail[] = "a server of mail or FTP answers there";
	static const struct {
		const char *begin;
		const char *sentence;
	} begins[] = {
		{ "<!DOCTYPE ", http }, /* to a request that looks like HTTP/0.9 */
		{ "<html", http },      { "HTTP/", http },
		{ "-ERR ", redis },     { "-NOAUTH ", redis },
		{ "-DENIED ", redis },  { "SSH-", "an SSH server answers there" },
		{ "220 ", mail },       { "220-", mail },
	};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (len >= strlen(begins[i].begin) &&
		    memcmp(bytes, begins[i].begin, strlen(begins[i].begin)) == 0)
			return begins[i].sentence;
	return begins_http2(bytes, len) ? "a server of HTTP/2 answers there, e.g. of gRPC or triple"
					: NULL;
}

/* Returns a sentence about the program that begins with these bytes; NULL: unknown. */
static const char *sentence_about(const struct spokei_stream *stream,
				  const struct spoke_span *bytes)
{
	if (!spokei_stream_begins_tls(bytes->data, bytes->len))
		return stream->accepted ? NULL : sentence_about_server(bytes->data, bytes->len);
	if (stream->kind->veiled)
		return NULL; /* inside TLS it is no hello */
	return stream->accepted ? "it speaks TLS; set tls=on or tls=optional here"
				: "it speaks TLS; set tls=on here";
}

/* --- reading */

/* Output queued during input processing is written early once it reaches EARLY bytes, so that the
 * peer can start. Each further early write of the same turn needs EARLY_MORE times as many bytes. A
 * turn with several busy connections writes nothing early: the peer has enough to do, and would be
 * woken for a part of its work.
 */
#define EARLY 4096u
#define EARLY_MORE 5u
#define EARLY_PROMPT 1024u /* for streams that are prompt; more need no more bytes */

#define AHEAD 65536u /* bytes that are read while a request is served */

/* Bytes of one read from a peer that has proven nothing: they may have to be held. And in a late
 * turn, if no call to the peer is due, or after the time of such a turn: one that floods small
 * messages must not make the turn longer for all others. */
#define SHORT_READ 65536u

/* Time after which a peer gets the spare bytes for translated bodies again. Replies to calls of
 * this side, whose number the peer does not choose, always have them. */
#define REFILL_NS UINT64_C(125000000)

/* Reads of bytes that a stream holds, in one turn: other connections wait meanwhile. */
#define PENDING_READS 8u

static void end_broken(struct spokei_conn *conn, const struct spoke_span *bytes)
{
	switch (conn->in.reader.error) {
	case SPOKE_ENOMEM:
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
		return;
	case SPOKE_ETOOLARGE:
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_LARGE, SPOKE_EPROTOCOL);
		return;
	default:
		if (conn->heard == SPOKEI_HEARD_NOTHING)
			conn->foreign = sentence_about(&conn->stream, bytes);
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_PROTOCOL, SPOKE_EPROTOCOL);
	}
}

/* Keeps bytes that may not be processed before the pause is over. */
static void hold(struct spokei_conn *conn, struct spoke_span bytes)
{
	if (bytes.len > 0 && spokei_buffer_append(&conn->held, bytes.data, bytes.len))
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
	else
		spokei_conn_watch(conn);
}

/* Returns the bytes of output at which a stream with a layer writes early. */
static SPOKEI_NOINLINE size_t early_layered(const struct spokei_conn *conn)
{
	if (spokei_conn_engine(conn)->crowded)
		return SIZE_MAX;
	return conn->stream.kind->prompt ? EARLY_PROMPT : EARLY;
}

/* Delivers the messages of the bytes that were read, until a pause, which leaves the others.
 * Returns whether there was a whole message. */
static bool take_in(struct spokei_conn *conn, struct spoke_span *bytes)
{
	struct spokei_message message;
	size_t early = spokei_conn_engine(conn)->crowded ? SIZE_MAX : EARLY;
	bool any = false;

	if (SPOKEI_UNLIKELY(conn->stream.layered))
		early = early_layered(conn);
	do {
		int error = 0;

		switch (spokei_intake_next(&conn->in, bytes, &message)) {
		case SPOKEI_INTAKE_MORE:
			return any;
		case SPOKEI_INTAKE_MESSAGE:
			break;
		case SPOKEI_INTAKE_BAD_BODY:
			error = conn->in.reader.error;
			if (SPOKEI_LIKELY(!conn->unproven) || conn->in.too_long == 0)
				break;
			spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_LARGE, SPOKE_EPROTOCOL);
			return any;
		case SPOKEI_INTAKE_BROKEN:
			end_broken(conn, bytes);
			return any;
		}
		any = true;
		deliver(conn, &message, error);
		/* A handler has forked: the rest is for the parent. */
		if (SPOKEI_UNLIKELY(spokei_engine_forked(spokei_conn_engine(conn))))
			break;
		if (SPOKEI_UNLIKELY(spokei_buffer_len(&conn->out.out) >= early)) {
			spokei_conn_write_early(conn);
			if (!conn->stream.kind->prompt)
				early *= EARLY_MORE;
		}
	} while (conn->state != SPOKEI_CONN_CLOSED && !conn->paused);
	return any;
}

/* Returns whether the peer waits for anything. A side that only calls need not send its unwritten
 * requests: those calls end as unwritten. */
static bool owes_answers(const struct spokei_conn *conn)
{
	if (!spokei_list_empty(&conn->servings))
		return true;
	return (spokei_outlet_len(&conn->out) > 0 || conn->holds) &&
	       (!conn->link->asked || conn->link->serve);
}

/* Returns whether a peer that sends no more is still served. A consumer of spoke never half-closes
 * while it waits: its process has ended, or it has given up all its calls. */
static bool may_wait(const struct spokei_conn *conn)
{
	if (!conn->waits_open && conn->link->limits.half_ns > 0)
		return owes_answers(conn);
	return !spokei_list_empty(&conn->servings);
}

/* The peer sends no more: its requests are answered first. */
static void end_of_input(struct spokei_conn *conn)
{
	conn->since[SPOKEI_LIMIT_HALF] = spokei_conn_engine(conn)->begin_ns;
	conn->since[SPOKEI_LIMIT_FRAME] = 0;
	if (conn->output == SPOKEI_OUTPUT_SHUT) {
		spokei_conn_close(conn, SPOKE_ECLOSED);
		return;
	}
	/* It drained before, and no reply is owed. */
	if (conn->readonly && conn->since[SPOKEI_LIMIT_NOTICE] && conn->pendings.count == 0 &&
	    spokei_list_empty(&conn->servings)) {
		spokei_conn_answer_end(conn);
		spokei_conn_close(conn, SPOKE_ECLOSED);
		return;
	}
	if (conn->waits_open || conn->link->limits.half_ns == 0)
		spokei_conn_abandon(conn, false);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	if (spokei_conn_unwritable(conn) || conn->link->connects || !may_wait(conn)) {
		spokei_conn_answer_end(conn);
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
		return;
	}
	/* First, because failed calls may be retried at once, and not on this connection. */
	if (conn->state == SPOKEI_CONN_OPEN)
		spokei_conn_move(conn, SPOKEI_CONN_FINISHING);
	spokei_conn_fail_calls(conn, SPOKE_ELOST);
	spokei_conn_watch(conn);
	if (conn->state != SPOKEI_CONN_CLOSED)
		spokei_conn_arm(conn);
}

/* Accounts bytes that wait for the rest of a frame. Returns whether they may: too many peers with
 * incomplete frames would take all memory. */
static bool count_held(struct spokei_conn *conn)
{
	struct spokei_link *link = conn->link;
	size_t held = conn->in.kept.capacity + conn->in.reader.scratch.capacity +
		      conn->held.capacity;
	bool more = held > conn->read_held;

	if (SPOKEI_LIKELY(held == conn->read_held))
		return true;
	link->held += held - conn->read_held;
	conn->read_held = held;
	if (!more || link->held <= link->limits.held_max)
		return true;
	spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
	return false;
}

static void note_frame(struct spokei_conn *conn, bool any)
{
	if (!spokei_intake_begun(&conn->in)) {
		conn->since[SPOKEI_LIMIT_FRAME] = 0;
		/* A block that is not lent again must not add to the spares. */
		if (conn->in.kept.bytes)
			spokei_buffer_fini(&conn->in.kept);
		if (conn->read_held > 0 || conn->in.reader.scratch.bytes || conn->paused)
			(void)count_held(conn);
		return;
	}
	if (!count_held(conn))
		return;
	if (any || conn->since[SPOKEI_LIMIT_FRAME] == 0)
		conn->since[SPOKEI_LIMIT_FRAME] = spokei_conn_engine(conn)->begin_ns;
	spokei_conn_arm(conn);
}

/* Notes that bytes have come. The owner may close the connection. */
static inline void note_heard(struct spokei_conn *conn)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);

	if (SPOKEI_LIKELY(!spokei_idle_heard(&conn->idle, engine->begin_ns)))
		return;
	conn->up->event(conn->up_arg, conn, SPOKEI_LINK_EVENT_TRUSTED);
}

/* Reads into the scratch. Returns the number of bytes; 0: none are to be processed. */
static inline size_t read_bytes(struct spokei_conn *conn, size_t max)
{
	struct spoke_engine *engine = spokei_conn_engine(conn);
	ssize_t got = conn->stream.kind->read(&conn->stream, engine->scratch, max);

	conn->asked_mark = conn->out.sent;
	spokei_count(engine, SPOKE_STAT_READS);
	if (got == -EAGAIN || got == -EINTR)
		return 0;
	if (got < 0 && conn->output == SPOKEI_OUTPUT_SHUT) {
		spokei_conn_close(conn, SPOKE_ECLOSED);
		return 0;
	}
	/* E.g. bytes were changed, or the peer refuses this side's certificate: a provider says so
	 * when the handshake of its consumer is over. */
	if (got == -EPROTO) {
		bool refuses = conn->heard == SPOKEI_HEARD_NOTHING && !conn->stream.accepted &&
			       conn->stream.kind->veiled;

		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_PROTOCOL,
				       refuses ? SPOKE_EHANDSHAKE : SPOKE_EPROTOCOL);
		return 0;
	}
	if (got == -ETIMEDOUT) { /* the kernel's keepalive found the peer silent */
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_SILENT, SPOKE_ESILENT);
		return 0;
	}
	if (got == -ENOMEM) { /* of a stream that needs memory to read */
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
		return 0;
	}
	if (got < 0) {
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_BY_PEER, SPOKE_ELOST);
		return 0;
	}
	if (got == 0) {
		end_of_input(conn);
		return 0;
	}
	spokei_count_by(engine, SPOKE_STAT_BYTES_READ, (uint64_t)got);
	/* The list lies in a cache line that a turn does not need else. */
	if (SPOKEI_UNLIKELY(conn->heard == SPOKEI_HEARD_NOTHING))
		spokei_conn_speaks(conn);
	note_heard(conn);
	return conn->state == SPOKEI_CONN_CLOSED ? 0 : (size_t)got;
}

static inline size_t read_max(const struct spokei_conn *conn)
{
	const struct spoke_engine *engine = spokei_conn_engine(conn);

	if (SPOKEI_UNLIKELY(spokei_engine_late(engine)) &&
	    (conn->late_turn != engine->turn || !spokei_engine_has_time(engine)))
		return SHORT_READ;
	return SPOKEI_UNLIKELY(conn->unproven) ? SHORT_READ : SPOKEI_ENGINE_SCRATCH;
}

static void refill_in_time(struct spokei_conn *conn)
{
	const uint64_t now_ns = spokei_conn_engine(conn)->begin_ns;

	if (now_ns - conn->refilled_ns < REFILL_NS)
		return;
	conn->refilled_ns = now_ns;
	refill(conn);
}

/* Returns whether there were bytes. */
static bool read_some(struct spokei_conn *conn)
{
	size_t got = read_bytes(conn, read_max(conn));
	struct spoke_span bytes = { spokei_conn_engine(conn)->scratch, got };
	bool any;

	if (got == 0)
		return false;
	if (SPOKEI_UNLIKELY(conn->in.reader.scratch.max < conn->in.reader.limits->spare_max))
		refill_in_time(conn);
	any = take_in(conn, &bytes);
	if (SPOKEI_UNLIKELY(conn->paused) && conn->state != SPOKEI_CONN_CLOSED)
		hold(conn, bytes);
	if (conn->state != SPOKEI_CONN_CLOSED)
		note_frame(conn, any);
	return true;
}

/* Reads while a request is served, to notice the peer's end. Its next requests wait. */
static SPOKEI_NOINLINE void read_ahead(struct spokei_conn *conn)
{
	size_t got = read_bytes(conn, AHEAD);

	if (got == 0)
		return;
	hold(conn, spokei_span(spokei_conn_engine(conn)->scratch, got));
	if (conn->state != SPOKEI_CONN_CLOSED)
		(void)count_held(conn);
}

static inline bool is_readable(const struct spokei_conn *conn)
{
	return !spokei_conn_is_opening(conn) && conn->state != SPOKEI_CONN_CLOSED &&
	       !spokei_conn_ended(conn);
}

static bool may_read(const struct spokei_conn *conn)
{
	return is_readable(conn) && !conn->paused;
}

/* Reads bytes that the stream holds, because the descriptor will not become ready for them. */
static void read_pending(struct spokei_conn *conn)
{
	unsigned reads = 0;

	/* In a forked child the bytes are its parent's. */
	while (may_read(conn) && !spokei_engine_forked(spokei_conn_engine(conn)) &&
	       spokei_stream_pending(&conn->stream) > 0) {
		if (reads++ == PENDING_READS) {
			spokei_run_soon(spokei_conn_engine(conn), &conn->resume);
			return;
		}
		(void)read_some(conn);
	}
}

/* A stream that is prompt is asked again in the next turn anyway, and its write costs little: the
 * peer gets answers before this turn is over. */
static void finish_read(struct spokei_conn *conn)
{
	if (!conn->stream.kind->prompt)
		read_pending(conn);
	else if (spokei_buffer_len(&conn->out.out) > 0 && !spokei_conn_engine(conn)->crowded)
		spokei_conn_write_early(conn);
}

bool spokei_conn_read(struct spokei_conn *conn)
{
	bool any;

	if (SPOKEI_UNLIKELY(!may_read(conn))) {
		if (is_readable(conn) && spokei_conn_has_room(conn))
			read_ahead(conn);
		return false;
	}
	any = read_some(conn);
	if (SPOKEI_UNLIKELY(conn->stream.layered))
		finish_read(conn);
	return any;
}

void spokei_conn_resume(struct spokei_task *task)
{
	struct spokei_conn *conn = spoke_container_of(task, struct spokei_conn, resume);
	struct spokei_buffer *held = &conn->held;
	struct spoke_span bytes = { spokei_buffer_data(held), spokei_buffer_len(held) };
	bool any;

	spokei_conn_unpause(conn);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	conn->since[SPOKEI_LIMIT_FRAME] = 0; /* the frame has waited for this side */
	any = take_in(conn, &bytes);
	if (bytes.len > 0 && conn->state != SPOKEI_CONN_CLOSED)
		spokei_buffer_consume(held, spokei_buffer_len(held) - bytes.len);
	else
		spokei_buffer_fini(held);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	note_frame(conn, any);
	if (conn->state == SPOKEI_CONN_CLOSED)
		return;
	spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
	finish_read(conn);
}

void spokei_conn_ready(struct spoke_watch *ready, unsigned io)
{
	struct spokei_conn *conn = spoke_container_of(ready, struct spokei_conn, stream.watch);

	/* Such a stream may have to read in order to write, and to write in order to read. */
	if (SPOKEI_UNLIKELY(conn->stream.layered)) {
		spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
		io = SPOKE_IO_READ | SPOKE_IO_WRITE;
	}
	if (io & SPOKE_IO_WRITE && conn->output == SPOKEI_OUTPUT_BLOCKED) {
		conn->output = SPOKEI_OUTPUT_WRITABLE;
		spokei_run_settling(spokei_conn_engine(conn), &conn->settle);
	}
	if (io & SPOKE_IO_READ)
		(void)spokei_conn_read(conn);
}
