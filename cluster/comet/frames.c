/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input of a WebSocket. It is read into the engine's scratch; a connection keeps bytes only while a
 * frame or message is incomplete.
 */
#include "cluster/comet/parts.h"
#include "transport/http/websocket.h"

#include <errno.h>

#define KEEP_FIRST 64u
#define STATE sizeof(struct spokei_websocket)
#define NO_BINARY 1003u
#define NO_MEMORY 1011u

/* Counts frames of a connection. Returns whether they are too many in this second. */
static bool floods(struct spokei_comet_conn *conn, uint32_t frames)
{
	const struct spoke_comet *comet = conn->user->comet;
	uint16_t second = (uint16_t)(spokei_comet_ms(comet) / 1000);

	if (conn->second != second) {
		conn->second = second;
		conn->frames = 0;
	}
	if (conn->frames + frames > comet->with.frames_per_second)
		return true;
	conn->frames = (uint8_t)(conn->frames + frames);
	return false;
}

/* The bytes that are read now, and the reader of them. */
struct reading {
	struct spokei_websocket websocket;
	struct spokei_websocket_input input;
	/* Memory taken from the connection, which the program may close meanwhile: the reader's
	 * state, and behind it the bytes that were kept. NULL: none */
	unsigned char *in;
	uint32_t room;
	uint32_t begun_ms; /* when the first bytes of the unfinished message came */
};

/* Makes room for `len` bytes behind the reader's state, of which `used` are there. */
static bool make_room(struct spoke_comet *comet, struct reading *reading, size_t used, size_t len)
{
	uint32_t room = KEEP_FIRST;
	unsigned char *in;

	if (reading->in && reading->room >= STATE + len)
		return true;
	while (room < STATE + len)
		room *= 2;
	in = spokei_comet_take(comet, room);
	if (in == NULL)
		return false;
	if (used)
		memcpy(in + STATE, reading->in + STATE, used);
	spokei_comet_give(comet, reading->in, reading->room);
	reading->in = in;
	reading->room = room;
	return true;
}

/* Joins the bytes that were kept and those that have come behind their place. The fewer bytes are
 * copied to the others, so that single bytes of a long message cost little. */
static bool join(struct spokei_comet_conn *conn, struct reading *reading)
{
	struct spokei_websocket_input *input = &reading->input;
	struct spokei_comet_more *more = conn->more;
	const size_t kept = input->at;
	const size_t got = input->end - kept;

	memcpy(&reading->websocket, more->in, STATE);
	reading->in = more->in;
	reading->room = more->in_room;
	reading->begun_ms = more->begun_ms;
	more->in = NULL;
	more->in_room = 0;
	more->in_len = 0;
	if (kept == 0)
		return true;
	if (got >= kept) {
		memcpy(input->bytes, reading->in + STATE, kept);
		return true;
	}
	if (!make_room(conn->user->comet, reading, kept, kept + got))
		return false;
	memcpy(reading->in + STATE + kept, input->bytes + kept, got);
	input->bytes = reading->in + STATE;
	return true;
}

/* Keeps the reader's state and the bytes that it wants to have kept. Returns false without memory.
 */
static bool keep(struct spokei_comet_conn *conn, struct reading *reading)
{
	struct spokei_comet_more *more = spokei_comet_need(conn);
	const uint32_t kept = reading->websocket.kept;

	if (more == NULL || !make_room(conn->user->comet, reading, 0, kept))
		return false;
	memcpy(reading->in, &reading->websocket, STATE);
	if (kept && reading->input.bytes != reading->in + STATE)
		memcpy(reading->in + STATE, reading->input.bytes, kept);
	more->in = reading->in;
	more->in_room = reading->room;
	more->in_len = kept;
	more->begun_ms = reading->begun_ms;
	reading->in = NULL;
	return true;
}

static void end_protocol(struct spokei_comet_conn *conn, enum spoke_comet_figure why, unsigned code,
			 const char *reason)
{
	spokei_comet_count(conn->user->comet, why);
	spokei_comet_end_with(conn, code, reason);
}

/* The program may close the connection, and free the gateway. */
static void take_text(struct spokei_comet_conn *conn, struct spoke_span text)
{
	struct spoke_comet *comet = conn->user->comet;
	char id[SPOKE_COMET_USER_MAX];
	const struct spoke_span user = { id, conn->user->len };

	if (comet->with.message == NULL) {
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_PROTOCOL, NO_BINARY,
			     "texts are not wanted");
		return;
	}
	memcpy(id, conn->user->id, user.len);
	spokei_comet_count(comet, SPOKE_COMET_FIGURE_RECEIVED);
	comet->with.message(comet->with.arg, user, text);
}

/* While output waits there is no room for a pong; the client does not read anyway. */
static void give_pong(struct spokei_comet_conn *conn, struct spoke_span data)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];
	size_t len = spokei_websocket_control(SPOKEI_WEBSOCKET_OP_PONG, data.data, data.len, frame);

	if (!spokei_comet_behind(conn))
		spokei_comet_write(conn, frame, len);
}

static void take(struct spokei_comet_conn *conn, enum spokei_websocket_verdict verdict,
		 const struct spokei_websocket_event *event)
{
	switch (verdict) {
	case SPOKEI_WEBSOCKET_GIVES_TEXT:
		take_text(conn, event->data);
		break;
	case SPOKEI_WEBSOCKET_GIVES_BINARY:
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_PROTOCOL, NO_BINARY,
			     "texts only, no binary messages");
		break;
	case SPOKEI_WEBSOCKET_GIVES_PING:
		give_pong(conn, event->data);
		break;
	case SPOKEI_WEBSOCKET_GIVES_CLOSE:
		spokei_comet_end_with(conn, event->answer, NULL);
		break;
	case SPOKEI_WEBSOCKET_GIVES_FAILURE:
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_PROTOCOL, event->answer,
			     event->data.data);
		break;
	case SPOKEI_WEBSOCKET_GIVES_PONG:
	case SPOKEI_WEBSOCKET_MORE:
		break;
	}
}

static void read_frames(struct spokei_comet_conn *conn, struct reading *reading)
{
	struct spoke_comet *comet = conn->user->comet;
	const struct spokei_websocket *websocket = &reading->websocket;
	struct spokei_websocket_event event;
	enum spokei_websocket_verdict verdict;

	do {
		reading->input.frames = 0;
		verdict = spokei_websocket_read(&reading->websocket, &reading->input,
						comet->with.frame_max, &event);
		if (verdict != SPOKEI_WEBSOCKET_MORE && websocket->message == 0)
			reading->begun_ms = spokei_comet_ms(comet);
		if (floods(conn, reading->input.frames))
			end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_RATE, SPOKEI_COMET_POLICY,
				     "too many frames in a second");
		else
			take(conn, verdict, &event);
	} while (conn->state == SPOKEI_COMET_OPEN && verdict != SPOKEI_WEBSOCKET_MORE);
	/* Between two messages the reader has no state. */
	if (conn->state == SPOKEI_COMET_OPEN && (websocket->step != 0 || websocket->message != 0) &&
	    !keep(conn, reading))
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY, NO_MEMORY, "no memory");
}

void spokei_comet_frames(struct spokei_comet_conn *conn)
{
	struct spoke_comet *comet = conn->user->comet;
	struct spoke_engine *engine = comet->engine;
	struct reading reading = {
		.input.bytes = engine->scratch,
		.begun_ms = spokei_comet_ms(comet),
	};
	const bool was_kept = conn->more && conn->more->in;
	ssize_t got;

	if (was_kept)
		reading.input.at = conn->more->in_len;
	/* A part of the scratch, so that one client does not hold up the others. */
	got = engine->env->net->read(engine->env->ctx, conn->watch.fd,
				     reading.input.bytes + reading.input.at,
				     SPOKEI_WEBSOCKET_MESSAGE_MAX);
	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got <= 0) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
		return;
	}
	reading.input.end = reading.input.at + (size_t)got;
	if (was_kept && !join(conn, &reading))
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY, NO_MEMORY, "no memory");
	else
		read_frames(conn, &reading);
	spokei_comet_give(comet, reading.in, reading.room);
	spokei_comet_less(conn);
}
