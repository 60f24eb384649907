/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the reader of frames that tools use. The first byte selects whether the stream is read at
 * once or in pieces; the messages must be the same, and their bytes must add up to the stream.
 */
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"

#include <spoke/frames.h>

#include <string.h>

struct story {
	uint64_t sum; /* checksum of all messages */
	size_t bytes;
	size_t count;
	int last;
};

static void add(struct story *story, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		story->sum = (story->sum ^ at[i]) * UINT64_C(1099511628211);
	story->sum = (story->sum ^ len) * UINT64_C(1099511628211);
}

/* A refused HTTP request has the bytes that have arrived. */
static void add_frame(struct story *story, const struct spoke_frame *frame, bool is_http)
{
	const struct spoke_span spans[] = {
		frame->service,     frame->version,
		frame->group,       frame->method,
		frame->types,       frame->args,
		frame->value,       frame->text,
		frame->error_class, is_http ? (struct spoke_span){ NULL, 0 } : frame->bytes,
		frame->attachments
	};
	const int64_t numbers[] = { (int64_t)frame->kind, (int64_t)frame->id, frame->timeout_ms,
				    frame->code,          frame->status,      frame->error,
				    frame->bad,           frame->codec };

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		add(story, spans[i].data, spans[i].len);
	add(story, numbers, sizeof(numbers));
	demand(spoke_frame_kind_name(frame->kind) != NULL, "the kind has a name");
	demand(spoke_values_check(frame->args.data, frame->args.len, NULL,
				  &(struct spoke_cursor){ 0 }, NULL) == SPOKE_OK,
	       "arguments are values");
}

static struct story read_in(const uint8_t *data, size_t size, size_t piece)
{
	struct story story = { 0 };
	struct spoke_frames *frames;
	struct spoke_frame frame;
	struct memory memory;
	/* Bytes after the last request of a client are dropped. */
	bool is_http = size > 0 && data[0] != '\0' && strchr("GHPODCT", data[0]) != NULL;

	memory_init(&memory);
	demand(spoke_frames_new(&memory.env, &frames) == SPOKE_OK, "there is memory");
	story.last = SPOKE_ETRUNCATED;
	for (size_t at = 0; at < size; at += piece) {
		size_t len = size - at < piece ? size - at : piece;

		demand(spoke_frames_feed(frames, data + at, len) == SPOKE_OK, "bytes are accepted");
		while ((story.last = spoke_frames_next(frames, &frame)) == SPOKE_OK) {
			demand(frame.bytes.len > 0 && frame.bytes.len <= size - story.bytes &&
				       memcmp(frame.bytes.data, data + story.bytes,
					      frame.bytes.len) == 0,
			       "a message is the next bytes of the stream");
			story.bytes += frame.bytes.len;
			story.count++;
			add_frame(&story, &frame, is_http);
		}
		if (story.last == SPOKE_ETRUNCATED)
			demand(story.bytes + spoke_frames_waiting(frames) == at + len ||
				       (is_http && story.count > 0),
			       "the rest waits");
	}
	spoke_frames_free(frames);
	demand(memory.bytes == 0, "nothing leaks");
	return story;
}

FUZZ(frames)
{
	struct story whole;
	struct story pieces;

	if (size == 0)
		return 0;
	whole = read_in(data + 1, size - 1, size);
	pieces = read_in(data + 1, size - 1, 1 + data[0] % 32u);
	demand(whole.sum == pieces.sum && whole.count == pieces.count && whole.last == pieces.last,
	       "the pieces make no difference");
	return 0;
}
