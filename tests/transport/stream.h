/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of bytes for tests of wires: read in one piece or in any pieces, with what came out of it
 * as events that can be compared, and messages as lines of text.
 */
#ifndef TESTS_TRANSPORT_STREAM_H
#define TESTS_TRANSPORT_STREAM_H

#include "transport/wire/message.h"

/* The defaults. */
extern const struct spokei_wire_limits stream_limits;

/* Bytes, and how they are to be read. All is borrowed. */
struct stream {
	const struct spokei_wire *wire;
	const struct spokei_wire_limits *limits;
	struct spoke_span bytes;
};

/* What a wire said at one place of a stream. */
struct stream_event {
	size_t at;  /* where the frame begins */
	size_t len; /* of the frame, or as cut said */
	int cut;    /* what cut said; if 0: */
	int read;   /* what read said */
	struct spokei_message message;
};

/*
 * Reads frames until one is incomplete, the stream is broken, or there are `max` events; the last
 * event says which. Messages point into its bytes. Returns how many events.
 */
size_t stream_whole(const struct stream *stream, struct stream_event *events, size_t max);

/*
 * Reads the same bytes in pieces, each in memory of its own that ends with it, and compares with
 * the `count` events of stream_whole(). `piece` gives the length of the next, at least 1. Returns
 * NULL, or what was different.
 */
const char *stream_pieces(const struct stream *stream, const struct stream_event *events,
			  size_t count, size_t (*piece)(void *arg), void *arg);

/* A piece of `stream_pieces`: as many bytes as the size_t behind `arg` says, each time. */
size_t stream_piece(void *arg);

/* NULL, or the first field that is different; spans are compared by content. */
const char *messages_differ(const struct spokei_message *a, const struct spokei_message *b);

/*
 * A message, and what read said of it, as a line:
 *
 *     request 7 demo.Echo echo ["a",1]        (an empty service is shown as -)
 *     notify demo.Echo echo []
 *     reply 7 {"a":1}
 *     reply 7 error 3 "text"
 *     EBADREQUEST request 7
 *
 * `text` has room for `size` bytes, with the end mark; what does not fit is cut.
 */
void message_line(int result, const struct spokei_message *message, char *text, size_t size);

/* Bytes of a hex text, which may have spaces. Returns how many; a wrong text ends the test. */
size_t hex_bytes(const char *text, unsigned char *bytes, size_t size);

/* The other way round, without spaces. */
void hex_text(struct spoke_span bytes, char *text, size_t size);

#endif
