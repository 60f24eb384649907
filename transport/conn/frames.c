/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a byte stream as messages, for tools that have no connection. */
#include <spoke/frames.h>

#include "core/base/env.h"
#include "transport/conn/link.h"
#include "transport/wire/http/http.h"
#include "transport/wire/intake.h"

#include <spoke/host.h>

#define HEADS 64u /* requests of HTTP that are remembered; more are not in flight */

struct spoke_frames {
	const struct spoke_env *env;
	struct spokei_link_limits limits;
	struct spokei_intake intake;
	struct spokei_buffer fed; /* bytes that the input buffer has not taken */
	size_t taken;             /* ... of them, those of the last message */
	/* HTTP has no ids. */
	uint64_t count;             /* requests and their replies so far */
	struct spoke_frames *other; /* the reader of the other direction, or NULL */
	uint64_t heads[HEADS];      /* numbers of the last requests whose reply has no body */
	unsigned head_count;
};

static const char *const names[] = {
	[SPOKE_FRAME_REQUEST] = "request",
	[SPOKE_FRAME_ONEWAY] = "oneway",
	[SPOKE_FRAME_REPLY] = "reply",
	[SPOKE_FRAME_HEARTBEAT] = "heartbeat",
	[SPOKE_FRAME_HEARTBEAT_ANSWER] = "heartbeat-answer",
	[SPOKE_FRAME_READONLY] = "readonly",
	[SPOKE_FRAME_WRITABLE] = "writable",
	[SPOKE_FRAME_EVENT] = "event",
	[SPOKE_FRAME_CANCEL] = "cancel",
};

const char *spoke_frame_kind_name(enum spoke_frame_kind kind)
{
	return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : NULL;
}

int spoke_frames_new(const struct spoke_env *env, struct spoke_frames **ret_frames)
{
	struct spoke_frames *frames;

	if (env == NULL)
		env = spoke_host_env();
	frames = spokei_alloc(env, 1, sizeof(*frames));
	if (frames == NULL)
		return SPOKE_ENOMEM;
	frames->env = env;
	spokei_link_limits_init(&frames->limits);
	frames->limits.wire.value.cycles = true; /* messages are shown, not used */
	spokei_intake_init(&frames->intake, env, &frames->limits.wire);
	spokei_buffer_init(&frames->fed, env, frames->limits.wire.frame_max);
	*ret_frames = frames;
	return SPOKE_OK;
}

void spoke_frames_free(struct spoke_frames *frames)
{
	if (frames == NULL)
		return;
	if (frames->other)
		frames->other->other = NULL;
	spokei_intake_fini(&frames->intake);
	spokei_buffer_fini(&frames->fed);
	spokei_free(frames->env, frames, 1, sizeof(*frames));
}

void spoke_frames_pair(struct spoke_frames *frames, struct spoke_frames *other)
{
	SPOKE_ASSERT(frames->other == NULL && other->other == NULL);
	frames->other = other;
	other->other = frames;
}

/* Releases the last message. */
static void drop_taken(struct spoke_frames *frames)
{
	if (frames->taken > 0)
		spokei_buffer_consume(&frames->fed, frames->taken);
	frames->taken = 0;
}

int spoke_frames_feed(struct spoke_frames *frames, const void *bytes, size_t len)
{
	drop_taken(frames);
	if (len == 0 || frames->intake.broken)
		return SPOKE_OK;
	return spokei_buffer_append(&frames->fed, bytes, len);
}

size_t spoke_frames_waiting(const struct spoke_frames *frames)
{
	return spokei_buffer_len(&frames->fed) - frames->taken +
	       spokei_buffer_len(&frames->intake.kept) - frames->intake.given;
}

static enum spoke_frame_kind kind_of(const struct spokei_message *message)
{
	switch (message->kind) {
	case SPOKEI_REQUEST:
		return message->two_way ? SPOKE_FRAME_REQUEST : SPOKE_FRAME_ONEWAY;
	case SPOKEI_REPLY:
		return SPOKE_FRAME_REPLY;
	case SPOKEI_PROBE:
		return SPOKE_FRAME_HEARTBEAT;
	case SPOKEI_PROBE_ANSWER:
		return SPOKE_FRAME_HEARTBEAT_ANSWER;
	case SPOKEI_READONLY:
		return SPOKE_FRAME_READONLY;
	case SPOKEI_WRITABLE:
		return SPOKE_FRAME_WRITABLE;
	case SPOKEI_CANCEL:
		return SPOKE_FRAME_CANCEL;
	case SPOKEI_EVENT:
	case SPOKEI_QUESTION:
	default:
		return SPOKE_FRAME_EVENT;
	}
}

static struct spoke_span span_of(struct spoke_value value)
{
	return spokei_span(value.data, value.len);
}

static void show_request(const struct spokei_message *message, struct spoke_frame *frame)
{
	frame->service = message->service;
	frame->version = message->version;
	frame->group = message->group;
	frame->method = message->method;
	frame->types = message->types;
	frame->args = message->args;
	frame->arg_count = message->arg_count;
	frame->timeout_ms = message->timeout_ms;
	frame->attachments = span_of(message->attachments);
}

static void show_reply(const struct spokei_message *message, struct spoke_frame *frame)
{
	frame->value = span_of(message->value);
	frame->text = message->error_text;
	frame->error_class = message->error_class;
	frame->code = message->error_code;
	frame->status = message->status;
	frame->error = message->error;
	frame->attachments = span_of(message->attachments);
}

/* Returns the number of an HTTP message; a status like 100 has that of the reply it announces. */
static uint64_t take_number(struct spoke_frames *frames, const struct spokei_message *message)
{
	if (message->kind == SPOKEI_EVENT)
		return frames->count + 1;
	frames->count++;
	if (message->kind != SPOKEI_REPLY && message->id & SPOKEI_HTTP_ID_HEAD)
		frames->heads[frames->head_count++ % HEADS] = frames->count;
	return frames->count;
}

/* Does the next reply answer a HEAD? */
static bool answers_head(const struct spoke_frames *frames)
{
	const struct spoke_frames *asker = frames->other;

	for (unsigned i = 0; asker && i < HEADS && i < asker->head_count; i++) {
		if (asker->heads[i] == frames->count + 1)
			return true;
	}
	return false;
}

/* "HTTP/" begins a reply, "HEAD" a request. Returns false if a byte is missing to tell. */
static bool choose_wire(struct spokei_intake *intake, struct spoke_span bytes)
{
	const char *text = bytes.data;

	if (intake->wire || bytes.len == 0 || text[0] != 'H')
		return true;
	if (bytes.len > 1 && text[1] == 'T')
		intake->wire = &spokei_wire_http_replies;
	return bytes.len > 1;
}

static void show(struct spoke_frames *frames, const struct spokei_message *message,
		 struct spoke_span bytes, bool bad, struct spoke_frame *ret_frame)
{
	*ret_frame = (struct spoke_frame){
		.kind = kind_of(message),
		.wire = frames->intake.wire->name,
		.id = frames->intake.wire->in_order ? take_number(frames, message) : message->id,
		.codec = message->codec,
		.bytes = bytes,
		.error = bad ? frames->intake.reader.error : SPOKE_OK,
		.bad = bad,
	};
	if (!bad && message->kind == SPOKEI_REQUEST)
		show_request(message, ret_frame);
	if (!bad && message->kind == SPOKEI_REPLY)
		show_reply(message, ret_frame);
	if (frames->intake.wire == &spokei_wire_http_replies)
		ret_frame->status = (int)message->id;
}

/* Returns the next message that has bytes. A question has none if an HTTP client waits for status
 * 100 before it sends the rest. */
static enum spokei_intake_result take_next(struct spokei_intake *intake, struct spoke_span *rest,
					   struct spokei_message *ret_message)
{
	for (;;) {
		size_t before = rest->len;
		enum spokei_intake_result result = spokei_intake_next(intake, rest, ret_message);

		if (result != SPOKEI_INTAKE_MESSAGE || ret_message->kind != SPOKEI_QUESTION ||
		    intake->given > 0 ||
		    (rest->len < before && spokei_buffer_len(&intake->kept) == 0))
			return result;
	}
}

int spoke_frames_next(struct spoke_frames *frames, struct spoke_frame *ret_frame)
{
	struct spokei_message message;
	enum spokei_intake_result result;
	struct spoke_span all;
	struct spoke_span rest;

	drop_taken(frames);
	all = spokei_span(spokei_buffer_data(&frames->fed), spokei_buffer_len(&frames->fed));
	rest = all;
	if (!choose_wire(&frames->intake, all))
		return SPOKE_ETRUNCATED;
	frames->intake.reader.cut.to_head = answers_head(frames);
	result = take_next(&frames->intake, &rest, &message);
	frames->taken = all.len - rest.len;
	switch (result) {
	case SPOKEI_INTAKE_MESSAGE:
	case SPOKEI_INTAKE_BAD_BODY:
		if (frames->intake.given > 0)
			all = spokei_span(spokei_buffer_data(&frames->intake.kept),
					  frames->intake.given);
		else
			all.len = frames->taken;
		show(frames, &message, all, result == SPOKEI_INTAKE_BAD_BODY, ret_frame);
		return SPOKE_OK;
	case SPOKEI_INTAKE_BROKEN:
		spokei_buffer_fini(&frames->fed);
		frames->taken = 0;
		return frames->intake.reader.error;
	case SPOKEI_INTAKE_MORE:
	default:
		return SPOKE_ETRUNCATED;
	}
}
