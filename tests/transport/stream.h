/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte streams for tests of wires: read whole or in pieces, with the results as comparable events
 * and messages as lines of text.
 */
#ifndef TESTS_TRANSPORT_STREAM_H
#define TESTS_TRANSPORT_STREAM_H

#include "transport/wire/message.h"

/* The default limits. */
extern const struct spokei_wire_limits stream_limits;

/* Bytes, with their wire and limits. All pointers are borrowed. */
struct stream {
	const struct spokei_wire *wire;
	const struct spokei_wire_limits *limits;
	struct spoke_span bytes;
};

/* The result at one position of a stream. */
struct stream_event {
	size_t at;  /* start of the frame */
	size_t len; /* of the frame, or as returned by cut */
	int cut;    /* result of cut */
	int read;   /* result of read if cut is 0 */
	struct spokei_message message;
};

/* Reads frames until one is incomplete, the stream is broken, or there are `max` events. The last
 * event shows which of these applies. Messages point into the bytes. Returns the number of events.
 */
size_t stream_whole(const struct stream *stream, struct stream_event *events, size_t max);

/*
 * Reads the same bytes in pieces, each a copy that ends with its allocation, and compares with the
 * `count` events of stream_whole(). `piece` returns the length of the next piece, at least 1.
 * Returns NULL, or the difference.
 */
const char *stream_pieces(const struct stream *stream, const struct stream_event *events,
			  size_t count, size_t (*piece)(void *arg), void *arg);

/* A piece function for stream_pieces(): always returns the size_t to which `arg` points. */
size_t stream_piece(void *arg);

/* Returns NULL, or the first field that differs. Spans are compared by content. */
const char *messages_differ(const struct spokei_message *a, const struct spokei_message *b);

/*
 * Prints a message, and the result of reading it, as a line:
 *
 *     request 7 demo.Echo echo ["a",1]        (an empty service is shown as -)
 *     notify demo.Echo echo []
 *     reply 7 {"a":1}
 *     reply 7 error 3 "text"
 *     EBADREQUEST request 7
 *
 * `text` has room for `size` bytes including the NUL; longer text is truncated.
 */
void message_line(int result, const struct spokei_message *message, char *text, size_t size);

/* Decodes hexadecimal text, which may contain spaces. Returns the number of bytes. Invalid text
 * ends the test. */
size_t hex_bytes(const char *text, unsigned char *bytes, size_t size);

/* Encodes bytes as hexadecimal text without spaces. */
void hex_text(struct spoke_span bytes, char *text, size_t size);

#endif
