/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the decoder of MessagePack-RPC. The first three bytes select limits and cuts, the rest is
 * the stream. All cuts must give the same messages, with and without a memo. A message that is
 * encoded again must decode to the same message.
 */
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"
#include "tests/transport/recall.h"
#include "tests/transport/stream.h"
#include "transport/wire/mprpc.h"

#include "timer/base.h"

#include <stdio.h>
#include <stdlib.h>

#define EVENTS_MAX 64

/* Splits the stream into pieces of 1 to `spread` bytes, with a simple generator. */
struct pieces {
	uint32_t state;
	uint32_t spread;
};

static size_t next_piece(void *arg)
{
	struct pieces *pieces = arg;

	pieces->state = pieces->state * 1664525u + 1013904223u;
	return 1 + (pieces->state >> 16) % pieces->spread;
}

static struct spokei_wire_limits make_limits(unsigned choice)
{
	static const size_t frames[] = { SPOKE_VALUE_BYTES_MAX, 4096, 64, 17 };
	static const uint32_t items[] = { SPOKE_VALUE_ITEMS_MAX, 16 };
	static const uint32_t depths[] = { SPOKE_VALUE_DEPTH_MAX, 3 };
	struct spokei_wire_limits limits = stream_limits;

	limits.frame_max = frames[choice & 3];
	limits.value.items_max = items[choice >> 2 & 1];
	limits.value.depth_max = depths[choice >> 3 & 1];
	limits.name_max = choice >> 4 & 1 ? 8 : limits.name_max;
	return limits;
}

static void complain(const char *what)
{
	if (what == NULL)
		return;
	(void)fprintf(stderr, "%s\n", what);
	abort();
}

/* Normalizes a message as encoding does: an error always has a text and no code. */
static struct spokei_message passed_on(struct spokei_message message)
{
	const char *text = spoke_strerror(message.error);

	if (message.error == 0)
		return message;
	message.error_code = 0;
	if (message.error_text.len == 0)
		message.error_text = spokei_span(text, strlen(text));
	return message;
}

static void write_and_read(const struct spokei_wire_limits *limits,
			   const struct spokei_message *message)
{
	struct spokei_message expected = passed_on(*message);
	struct memory memory;
	struct spokei_buffer out;
	struct stream_event event;
	int result;

	memory_init(&memory);
	spokei_buffer_init(&out, &memory.env, SPOKE_VALUE_BYTES_MAX);
	result = spokei_wire_mprpc.write(limits, message, &out);
	if (result == 0) {
		struct stream stream = {
			&spokei_wire_mprpc,
			limits,
			{ spokei_buffer_data(&out), spokei_buffer_len(&out) },
		};

		(void)stream_whole(&stream, &event, 1);
		SPOKE_ASSERT(event.cut == 0 && event.len == stream.bytes.len && event.read == 0);
		complain(messages_differ(&event.message, &expected));
	} else {
		/* Only a text that was added can exceed the limit. */
		SPOKE_ASSERT(result == SPOKE_ETOOLARGE && message->error != 0);
		SPOKE_ASSERT(message->error_text.len == 0 && spokei_buffer_len(&out) == 0);
	}
	spokei_buffer_fini(&out);
	SPOKE_ASSERT(memory.bytes == 0);
}

/* Decodes each frame twice, with a memo. Both results must be equal; the second must be a repeat if
 * the frame is a request. */
static void recall_all(const struct stream *stream, const struct stream_event *events, size_t count)
{
	struct recall recall;

	recall_init(&recall, stream->wire, stream->limits);
	for (size_t i = 0; i < count; i++) {
		const unsigned char *first = stream->bytes.data;
		struct spoke_span frame = spokei_span(first + events[i].at, events[i].len);

		if (events[i].cut != 0)
			break;
		complain(recall_read(&recall, frame));
		complain(recall_read(&recall, frame));
	}
	recall_fini(&recall);
}

FUZZ(mprpc)
{
	static struct stream_event events[EVENTS_MAX];
	struct spokei_wire_limits limits;
	struct stream stream;
	struct pieces pieces;
	size_t byte_by_byte = 1;
	size_t count;

	if (size < 3)
		return 0;
	limits = make_limits(data[0]);
	pieces = (struct pieces){ data[1], 1u + data[2] };
	stream = (struct stream){ &spokei_wire_mprpc, &limits, { data + 3, size - 3 } };
	count = stream_whole(&stream, events, EVENTS_MAX);
	complain(stream_pieces(&stream, events, count, next_piece, &pieces));
	if (stream.bytes.len <= 256)
		complain(stream_pieces(&stream, events, count, stream_piece, &byte_by_byte));
	recall_all(&stream, events, count);
	for (size_t i = 0; i < count; i++)
		if (events[i].cut == 0 && events[i].read == 0)
			write_and_read(&limits, &events[i].message);
	return 0;
}
