/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dubbo frames for tests: made from a header and a body, then read, cut, written and compared. A
 * failed check ends the test.
 */
#ifndef TESTS_TRANSPORT_DUBBO_FRAMES_H
#define TESTS_TRANSPORT_DUBBO_FRAMES_H

#include "tests/support/test.h"
#include "transport/codec/codec.h"
#include "transport/wire/dubbo/dubbo.h"

#define HEAD 16
#define FRAME_MAX 8192
#define NAME_MAX_BYTES 200
#define EVENT_MAX 64

extern const struct spokei_wire_limits frame_limits;

struct frame {
	unsigned char bytes[FRAME_MAX + HEAD];
	size_t len;
};

/* Makes a frame of id 7 with these flags and status. A body longer than FRAME_MAX is only
 * announced. */
void frame_init(struct frame *frame, unsigned flags, unsigned status, const void *body, size_t len);

int cut_bytes(const void *bytes, size_t len, size_t *ret_len);

/* Read a copy that ends with its allocation, so that a sanitizer detects overruns. The message is
 * valid until the next read. */
int read_frame(const struct frame *frame, struct spokei_message *ret);
int read_body(unsigned flags, unsigned status, const void *body, size_t len,
	      struct spokei_message *ret);

/* Reads a two-way request whose body is the concatenation of two texts. */
int read_joined(const char *start, const char *rest, struct spokei_message *ret);

/* Reads a body given as a literal, which may contain NUL. */
#define READ(flags, status, body, ret) read_body(flags, status, body, sizeof(body) - 1, ret)

/* Reads a request with `count` attachments. All keys differ, but the last one is repeated if
 * `twice`. */
int read_attached(size_t count, bool twice, struct spokei_message *ret);

/* Writes a message into a frame. Asserts that a failure leaves the buffer unchanged and that
 * nothing leaks. */
int write_frame(const struct spokei_message *message, struct frame *ret);

/* Asserts that the message is written as this frame. */
void writes(const struct spokei_message *message, unsigned flags, unsigned status, const void *body,
	    size_t len);

#define WRITES(message, flags, status, body) writes(message, flags, status, body, sizeof(body) - 1)

void is_text(struct spoke_span span, const char *text);
void is_bytes(struct spoke_span span, const void *bytes, size_t len);

struct spoke_span span_of(const char *text);
struct spoke_value value_of(const char *bytes, size_t len);

#define VALUE(packed) value_of(packed, sizeof(packed) - 1)

/* The fields before the arguments in a request of demo.Echo.echo, without a version. */
#define NAMED(descriptor) "\2452.0.2\251demo.Echo\2450.0.0\244echo" descriptor

#endif
