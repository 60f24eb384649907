/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses an HTTP/1.1 request (RFC 9112) from the bytes that have arrived so far. Strict: ambiguous
 * syntax is rejected. Pure: the result does not depend on how the bytes were cut, and the first
 * error counts. Any thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_REQUEST_H
#define SPOKEI_TRANSPORT_HTTP_REQUEST_H

#include <spoke/value.h>

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_HTTP_LINE_MAX 2048u /* bytes of the request line */
#define SPOKEI_HTTP_HEAD_MAX 8192u /* bytes of all lines, with their ends */
#define SPOKEI_HTTP_BODY_MAX 1024u /* bytes */
#define SPOKEI_HTTP_REQUEST_MAX (SPOKEI_HTTP_HEAD_MAX + SPOKEI_HTTP_BODY_MAX)

/* Results that are not an HTTP status. */
#define SPOKEI_HTTP_MORE (-1) /* the request is incomplete */
#define SPOKEI_HTTP_WHOLE 0   /* it is complete */

enum spokei_http_method {
	SPOKEI_HTTP_GET,
	SPOKEI_HTTP_HEAD,
	SPOKEI_HTTP_POST,
	SPOKEI_HTTP_OTHER,
};

/* Spans point into the bytes that were read; an absent header has NULL for data. */
struct spokei_http_request {
	enum spokei_http_method method;
	struct spoke_span path; /* begins with "/"; not decoded, and without the query */
	struct spoke_span host; /* of the target if it has one, else of the header */
	struct spoke_span origin;
	struct spoke_span authorization;
	struct spoke_span body;
	size_t len; /* bytes of the whole request */
};

/*
 * Parses the first request in `len` bytes. Returns SPOKEI_HTTP_WHOLE, SPOKEI_HTTP_MORE, or the
 * status to reject it with: 400, 413 (the body is too long), 414, 431 (the head is too long), 501
 * (a transfer coding) or 505. *ret_request is valid only if the request is complete, except for the
 * method, which is valid with 413 and 431 too.
 */
int spokei_http_read(const void *bytes, size_t len, struct spokei_http_request *ret_request);

#endif
