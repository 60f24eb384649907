/* SPDX-License-Identifier: Apache-2.0 */
/* What `spoke tap` prints: a line for each message, and for what becomes of a connection. */
#ifndef COMMAND_TAP_LINE_H
#define COMMAND_TAP_LINE_H

#include <spoke/frames.h>

#include <stdbool.h>

struct tap_style {
	bool json;
	bool quiet; /* only what went wrong */
	bool raw;   /* the bytes too, in hexadecimal */
	bool full;  /* values are not cut */
};

/* Where and when a line belongs. */
struct tap_place {
	uint64_t wall_ns; /* since 1970 */
	unsigned long link;
	bool to_target;
};

/* What is known of the request that a reply is for. */
struct tap_request {
	bool known;
	uint64_t took_ns;
	const char *method; /* escaped, as "demo.EchoService.echo" */
};

void tap_line_frame(const struct tap_style *style, const struct tap_place *place,
		    const struct spoke_frame *frame, const struct tap_request *request);

/* "opened" and so on, of a connection; `text`: what there is to say beside, or NULL. */
void tap_line_event(const struct tap_style *style, const struct tap_place *place, const char *event,
		    const char *text);

/* Of one direction of it. */
void tap_line_way(const struct tap_style *style, const struct tap_place *place, const char *event,
		  const char *text);

/* With --raw: bytes that are no message. */
void tap_line_bytes(const struct tap_style *style, const struct tap_place *place,
		    struct spoke_span bytes);

#endif
