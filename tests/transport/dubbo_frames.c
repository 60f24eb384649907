/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the Dubbo wire for tests: see dubbo_frames.h. */
#include "tests/transport/dubbo_frames.h"

#include "tests/core/memory.h"
#include "tests/transport/wires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct spokei_wire *const dubbo = &spokei_wire_dubbo;

const struct spokei_wire_limits frame_limits = {
	.frame_max = FRAME_MAX,
	.name_max = NAME_MAX_BYTES,
	.event_max = EVENT_MAX,
	.free_len = SPOKE_VALUE_ITEMS_MAX,
};

void frame_init(struct frame *frame, unsigned flags, unsigned status, const void *body, size_t len)
{
	static const unsigned char head[HEAD] = { 0xda, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7 };

	memcpy(frame->bytes, head, sizeof(head));
	frame->bytes[2] = (unsigned char)flags;
	frame->bytes[3] = (unsigned char)status;
	for (unsigned i = 0; i < 4; i++)
		frame->bytes[12 + i] = (unsigned char)(len >> (24 - 8 * i));
	if (body && len > 0 && len <= FRAME_MAX)
		memcpy(frame->bytes + HEAD, body, len);
	frame->len = HEAD + len;
}

int cut_bytes(const void *bytes, size_t len, size_t *ret_len)
{
	struct spokei_cut cut = { 0 };

	return wire_cut(dubbo, &frame_limits, &cut, spokei_span(bytes, len), ret_len);
}

int read_frame(const struct frame *frame, struct spokei_message *ret)
{
	static struct memory memory;
	static struct spokei_buffer scratch;
	static unsigned char *copy;

	if (scratch.env == NULL) {
		memory_init(&memory);
		spokei_buffer_init(&scratch, &memory.env, FRAME_MAX);
	}
	free(copy);
	copy = malloc(frame->len);
	assert_non_null(copy);
	memcpy(copy, frame->bytes, frame->len);
	return wire_read(dubbo, &frame_limits, NULL, spokei_span(copy, frame->len), &scratch, ret);
}

int read_body(unsigned flags, unsigned status, const void *body, size_t len,
	      struct spokei_message *ret)
{
	struct frame frame;

	frame_init(&frame, flags, status, body, len);
	return read_frame(&frame, ret);
}

int read_joined(const char *start, const char *rest, struct spokei_message *ret)
{
	char body[256];
	int len = snprintf(body, sizeof(body), "%s%s", start, rest);

	assert_true(len > 0 && (size_t)len < sizeof(body));
	return read_body(0xdb, 0, body, (size_t)len, ret);
}

int write_frame(const struct spokei_message *message, struct frame *ret)
{
	struct spokei_buffer buffer;
	struct memory memory;
	int result;

	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, 2 * sizeof(ret->bytes));
	assert_int_equal(spokei_buffer_append(&buffer, "abc", 3), 0);
	result = dubbo->write(&frame_limits, message, &buffer);
	ret->len = spokei_buffer_len(&buffer) - 3;
	if (result != 0)
		assert_int_equal(ret->len, 0);
	memcpy(ret->bytes, spokei_buffer_data(&buffer) + 3, ret->len);
	spokei_buffer_fini(&buffer);
	assert_int_equal(memory.bytes, 0);
	return result;
}

void writes(const struct spokei_message *message, unsigned flags, unsigned status, const void *body,
	    size_t len)
{
	struct frame frame;
	struct frame expected;

	frame_init(&expected, flags, status, body, len);
	assert_int_equal(write_frame(message, &frame), 0);
	assert_int_equal(frame.len, expected.len);
	assert_memory_equal(frame.bytes, expected.bytes, frame.len);
}

void is_text(struct spoke_span span, const char *text)
{
	assert_int_equal(span.len, strlen(text));
	assert_memory_equal(span.data, text, span.len);
}

void is_bytes(struct spoke_span span, const void *bytes, size_t len)
{
	assert_int_equal(span.len, len);
	assert_memory_equal(span.data, bytes, len);
}

struct spoke_span span_of(const char *text)
{
	return spokei_span(text, strlen(text));
}

struct spoke_value value_of(const char *bytes, size_t len)
{
	struct spoke_value value;

	assert_int_equal(spoke_value_check(bytes, len, NULL, &value), 0);
	return value;
}

int read_attached(size_t count, bool twice, struct spokei_message *ret)
{
	static unsigned char body[6000];
	unsigned char *at = body;

	memcpy(at, "\xc0\xa1s\xc0\xa1m\xa0\xde", 8);
	at += 8;
	*at++ = (unsigned char)(count >> 8);
	*at++ = (unsigned char)count;
	for (size_t i = 0; i < count; i++) {
		size_t key = twice && i == count - 1 ? 0 : i;

		*at++ = 0xa3;
		*at++ = (unsigned char)('a' + key / 100);
		*at++ = (unsigned char)('a' + key / 10 % 10);
		*at++ = (unsigned char)('a' + key % 10);
		*at++ = 0xc0;
	}
	return read_body(0xdb, 0, body, (size_t)(at - body), ret);
}
