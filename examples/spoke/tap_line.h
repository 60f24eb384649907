/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the lines of spoke tap: one per message and per connection event. */
#ifndef COMMAND_TAP_LINE_H
#define COMMAND_TAP_LINE_H

#include <spoke/frames.h>

#include <stdbool.h>

struct tap_style {
	bool json;
	bool quiet; /* only errors */
	bool raw;   /* also the bytes, in hexadecimal */
	bool full;  /* values are not truncated */
};

/* Time, connection and direction of a line. */
struct tap_place {
	uint64_t wall_ns; /* since 1970 */
	unsigned long link;
	bool to_target;
};

/* The request of a reply. */
struct tap_request {
	bool known;
	uint64_t took_ns;
	const char *method; /* escaped, e.g. "demo.EchoService.echo" */
};

void tap_line_frame(const struct tap_style *style, const struct tap_place *place,
		    const struct spoke_frame *frame, const struct tap_request *request);

/* Prints an event of a connection, e.g. "opened", with an optional text. */
void tap_line_event(const struct tap_style *style, const struct tap_place *place, const char *event,
		    const char *text);

/* Prints an event of one direction. */
void tap_line_way(const struct tap_style *style, const struct tap_place *place, const char *event,
		  const char *text);

/* With --raw, prints bytes outside of messages. */
void tap_line_bytes(const struct tap_style *style, const struct tap_place *place,
		    struct spoke_span bytes);

#endif
