/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes HTTP response heads, and has the sentences for requests that cannot be read. The headers
 * forbid caching, content sniffing, framing and, mostly, use by other sites, and announce that the
 * connection closes. Appends to a buffer, and touches nothing else.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_RESPONSE_H
#define SPOKEI_TRANSPORT_HTTP_RESPONSE_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

#include <stdint.h>

#define SPOKEI_HTTP_UNTIL_CLOSE SIZE_MAX /* a length: the body ends when the connection does */
#define SPOKEI_HTTP_NONCE 33u            /* bytes of a nonce as text, with the NUL */
#define SPOKEI_HTTP_SENTENCE 512u        /* bytes of a body that is a sentence, at most */
#define SPOKEI_HTTP_TIMEOUT 408          /* the request did not arrive in time */

/* The head of a response; a zero-initialised field leaves its header out. */
struct spokei_http_response {
	int status;
	const char *type;  /* of the body */
	size_t len;        /* of the body, in bytes */
	const char *allow; /* the methods that are allowed; for status 405 */
	const char *more;  /* further headers: whole lines, borrowed */
	bool foreign;      /* pages of other origins may load it, e.g. a script */
	const char *nonce; /* only scripts and styles with this nonce run; NULL: none do */
};

/* Appends a head. Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE. */
SPOKE_MUST_USE int spokei_http_response_head(struct spokei_buffer *out,
					     const struct spokei_http_response *response);

/* Appends the status line, and the field that has to follow status 401. The phrase of a status that
 * spoke never sends is that of 400. Returns as above. */
SPOKE_MUST_USE int spokei_http_begin_head(struct spokei_buffer *out, int status);

/* Returns the sentence for a status of spokei_http_read(), or for SPOKEI_HTTP_TIMEOUT. */
const char *spokei_http_fault(int status);

/* Makes a nonce of 128 random bits, in hexadecimal digits. */
void spokei_http_make_nonce(const struct spoke_env *env, char nonce[SPOKEI_HTTP_NONCE]);

/* Appends text for HTML, escaped for use between tags or in quotation marks. Returns as above. */
SPOKE_MUST_USE int spokei_http_escape(struct spokei_buffer *out, const void *text, size_t len);

/* --- Server-Sent Events
 *
 * Writes Server-Sent Events (the format text/event-stream of the HTML standard). A caller asks for
 * the size first, so that an event that is sent to many is written once into memory of its exact
 * size. Pure; any thread. */

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
