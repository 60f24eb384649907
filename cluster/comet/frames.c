/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input of a WebSocket. It is read into the engine's scratch; a connection keeps bytes only while a
 * frame or message is incomplete.
 */
#include "cluster/comet/parts.h"
#include "transport/http/websocket.h"

#include <errno.h>

#define KEEP_FIRST 64u
#define TOO_FAST 1008u
#define NO_BINARY 1003u
#define NO_MEMORY 1011u

bool spokei_comet_floods(struct spokei_comet_conn *conn, uint32_t frames)
{
	const struct spoke_comet *comet = conn->user->comet;
	uint16_t second = (uint16_t)(spokei_comet_ms(comet) / 1000);

	if (conn->second != second) {
		conn->second = second;
		conn->frames = 0;
	}
	if (frames > comet->with.frames_per_second - conn->frames)
		return true;
	conn->frames = (uint8_t)(conn->frames + frames);
	return false;
}

/* Keeps the reader's state and, behind it, the first `len` bytes. Returns false without memory. */
static bool keep(struct spokei_comet_conn *conn, const struct spokei_websocket *websocket,
		 const unsigned char *bytes, uint32_t len)
{
	struct spoke_comet *comet = conn->user->comet;
	struct spokei_comet_more *more = spokei_comet_need(conn);
	uint32_t room = KEEP_FIRST;

	if (more == NULL)
		return false;
	while (room < sizeof(*websocket) + len)
		room *= 2;
	if (room > more->in_room) {
		unsigned char *in = spokei_comet_take(comet, room);

		if (in == NULL)
			return false;
		spokei_comet_give(comet, more->in, more->in_room);
		more->in = in;
		more->in_room = room;
	}
	memcpy(more->in, websocket, sizeof(*websocket));
	if (len)
		memcpy(more->in + sizeof(*websocket), bytes, len);
	more->in_len = len;
	return true;
}

static void keep_nothing(struct spokei_comet_conn *conn)
{
	struct spokei_comet_more *more = conn->more;

	if (more == NULL || more->in == NULL)
		return;
	spokei_comet_give(conn->user->comet, more->in, more->in_room);
	more->in = NULL;
	more->in_room = 0;
	more->in_len = 0;
	spokei_comet_less(conn);
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

static void read_frames(struct spokei_comet_conn *conn, struct spokei_websocket *websocket,
			struct spokei_websocket_input *input)
{
	const uint32_t max = conn->user->comet->with.frame_max;
	struct spokei_websocket_event event;
	enum spokei_websocket_verdict verdict;

	do {
		input->frames = 0;
		verdict = spokei_websocket_read(websocket, input, max, &event);
		if (spokei_comet_floods(conn, input->frames))
			end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_RATE, TOO_FAST,
				     "too many frames in a second");
		else
			take(conn, verdict, &event);
	} while (conn->state == SPOKEI_COMET_OPEN && verdict != SPOKEI_WEBSOCKET_MORE);
	if (conn->state != SPOKEI_COMET_OPEN)
		return;
	/* Between two messages the reader has no state. */
	if (websocket->step == 0 && websocket->message == 0)
		keep_nothing(conn);
	else if (!keep(conn, websocket, input->bytes, websocket->kept))
		end_protocol(conn, SPOKE_COMET_FIGURE_CLOSED_MEMORY, NO_MEMORY, "no memory");
}

void spokei_comet_frames(struct spokei_comet_conn *conn)
{
	struct spoke_engine *engine = conn->user->comet->engine;
	struct spokei_websocket websocket = { 0 };
	struct spokei_websocket_input input = { .bytes = engine->scratch };
	ssize_t got;

	if (conn->more && conn->more->in) {
		memcpy(&websocket, conn->more->in, sizeof(websocket));
		input.at = conn->more->in_len;
		if (input.at)
			memcpy(input.bytes, conn->more->in + sizeof(websocket), input.at);
	}
	/* A part of the scratch, so that one client does not hold up the others. */
	got = engine->env->net->read(engine->env->ctx, conn->watch.fd, input.bytes + input.at,
				     SPOKEI_WEBSOCKET_MESSAGE_MAX);
	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got <= 0) {
		spokei_comet_close(conn, SPOKE_COMET_FIGURE_COUNT);
		return;
	}
	input.end = input.at + (size_t)got;
	read_frames(conn, &websocket, &input);
}
