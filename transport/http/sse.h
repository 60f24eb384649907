/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Server-Sent Events (the format text/event-stream of the HTML standard). A caller asks for
 * the size first, so that an event that is sent to many is written once into memory of its exact
 * size. Pure; any thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_SSE_H
#define SPOKEI_TRANSPORT_HTTP_SSE_H

#include <spoke/value.h>

#include <stdint.h>

#define SPOKEI_SSE_TYPE "text/event-stream"
#define SPOKEI_SSE_KEEPALIVE ":\n\n" /* a comment: browsers ignore it */

/*
 * An event. A span with NULL for data leaves its field out. A browser dispatches an event only if
 * it has data, which may be empty. An event without data still sets the id and the retry time.
 */
struct spokei_sse_event {
	struct spoke_span id;   /* no LF, CR or NUL; an empty one resets the browser's last id */
	struct spoke_span name; /* no LF, CR or NUL; left out: "message" */
	struct spoke_span data; /* UTF-8. LF, CR and CRLF end a line: the page sees LF for each */
	uint32_t retry_ms;      /* the browser's pause before it reconnects; 0: left out */
};

/* Writes the bytes that the event takes. Returns 0, or SPOKE_EINVAL if the id or the name contains
 * a forbidden character. */
SPOKE_MUST_USE int spokei_sse_size(const struct spokei_sse_event *event, size_t *ret_size);

/* Writes the event, which spokei_sse_size() has accepted, with its empty line and no NUL. `out` has
 * room for its size. Returns the bytes written, which are that size. */
size_t spokei_sse_write(const struct spokei_sse_event *event, char *out);

#endif
