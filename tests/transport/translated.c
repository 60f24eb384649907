/* SPDX-License-Identifier: Apache-2.0 */
/* Translation of whole messages by the codec: see translated.h. */
#include "tests/transport/translated.h"

#include "tests/core/memory.h"
#include "tests/transport/codec/bodies.h"
#include "tests/transport/stream.h"
#include "tests/transport/wires.h"
#include "timer/base.h"
#include "transport/wire/dubbo/dubbo.h"

#define HEAD 16u
#define OK 20u
#define BYTES_MAX ((size_t)1 << 27)

static enum spokei_codec_part part_of(const struct spokei_message *message, unsigned status)
{
	if (message->kind == SPOKEI_REQUEST)
		return SPOKEI_CODEC_REQUEST;
	return status == OK ? SPOKEI_CODEC_REPLY : SPOKEI_CODEC_TEXT;
}

static bool has_body(const struct spokei_message *message)
{
	return message->codec == SPOKEI_CODEC_HESSIAN2 &&
	       (message->kind == SPOKEI_REQUEST || message->kind == SPOKEI_REPLY);
}

static struct spoke_span bytes_of(const struct spokei_buffer *buffer)
{
	return spokei_span(spokei_buffer_data(buffer), spokei_buffer_len(buffer));
}

/* Appends a header like the given one, for a body in msgpack of this length. */
static void put_head(struct spokei_buffer *buffer, const unsigned char *like, size_t len)
{
	unsigned char head[HEAD];

	memcpy(head, like, HEAD);
	head[2] = (unsigned char)((head[2] & 0xe0u) | SPOKEI_CODEC_MSGPACK);
	for (unsigned i = 0; i < 4; i++)
		head[12 + i] = (unsigned char)(len >> (24 - 8 * i));
	SPOKE_ASSERT(spokei_buffer_append(buffer, head, HEAD) == 0);
}

const char *translated_read(const struct spokei_wire_limits *limits, struct spoke_span frame,
			    const struct spokei_message *message)
{
	const unsigned char *head = frame.data;
	struct spokei_wire_limits wide = *limits;
	struct spokei_buffer scratch;
	struct spokei_buffer plain;
	struct spokei_message other;
	struct spoke_span values;
	const char *difference;
	struct memory memory;

	/* An error status counts, whatever the body contains. */
	if (!has_body(message) || (message->kind == SPOKEI_REPLY && message->status != OK))
		return NULL;
	wide.frame_max = BYTES_MAX;
	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, BYTES_MAX);
	spokei_buffer_init(&plain, &memory.env, BYTES_MAX);
	if (body_read(&spokei_codec_hessian2, &limits->value, part_of(message, head[3]),
		      spokei_span_after(frame, HEAD), &scratch, &values) != 0) {
		difference = "the codec rejects it";
	} else {
		put_head(&plain, head, values.len);
		SPOKE_ASSERT(spokei_buffer_append(&plain, values.data, values.len) == 0);
		difference = "its values are rejected";
		if (wire_read(&spokei_wire_dubbo, &wide, NULL, bytes_of(&plain), NULL, &other) ==
		    0) {
			other.codec = message->codec;
			difference = messages_differ(message, &other);
		}
	}
	spokei_buffer_fini(&scratch);
	spokei_buffer_fini(&plain);
	return difference;
}

const char *translated_write(const struct spokei_wire_limits *limits,
			     const struct spokei_message *message, struct spoke_span frame)
{
	const unsigned char *head = frame.data;
	struct spokei_message plain = *message;
	const char *difference = NULL;
	struct spokei_buffer values;
	struct spokei_buffer body;
	struct memory memory;

	if (!has_body(message) || head[3] > OK)
		return NULL;
	memory_init(&memory);
	spokei_buffer_init(&values, &memory.env, BYTES_MAX);
	spokei_buffer_init(&body, &memory.env, BYTES_MAX);
	plain.codec = SPOKEI_CODEC_MSGPACK;
	plain.prefix = spokei_span(NULL, 0);
	if (spokei_wire_dubbo.write(limits, &plain, &values) != 0)
		difference = "it cannot be written in msgpack";
	else if (body_write(&spokei_codec_hessian2, part_of(message, OK),
			    spokei_span_after(bytes_of(&values), HEAD), &body) != 0)
		difference = "the codec cannot write it";
	else if (spokei_buffer_len(&body) != frame.len - HEAD ||
		 memcmp(spokei_buffer_data(&body), head + HEAD, frame.len - HEAD) != 0)
		difference = "the codec writes other bytes";
	spokei_buffer_fini(&values);
	spokei_buffer_fini(&body);
	return difference;
}
