/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody asks by HTTP/1.1 (RFC 9112), read from bytes that are there so far. Strict: what
 * could be understood in two ways is refused. A decider: how the bytes were cut makes no
 * difference, the first thing wrong is what counts. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_REQUEST_H
#define SPOKEI_TRANSPORT_HTTP_REQUEST_H

#include <spoke/value.h>

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_HTTP_LINE_MAX 2048u /* bytes of the request line */
#define SPOKEI_HTTP_HEAD_MAX 8192u /* ... and of all lines, with their ends */
#define SPOKEI_HTTP_BODY_MAX 1024u
#define SPOKEI_HTTP_REQUEST_MAX (SPOKEI_HTTP_HEAD_MAX + SPOKEI_HTTP_BODY_MAX)

/* Verdicts that are no status of HTTP. */
#define SPOKEI_HTTP_MORE (-1) /* it is not complete */
#define SPOKEI_HTTP_WHOLE 0

enum spokei_http_method {
	SPOKEI_HTTP_GET,
	SPOKEI_HTTP_HEAD,
	SPOKEI_HTTP_POST,
	SPOKEI_HTTP_OTHER,
};

/* Spans point into what was read; an absent header has NULL for data. */
struct spokei_http_request {
	enum spokei_http_method method;
	struct spoke_span path; /* begins with "/"; as it was sent, without what follows "?" */
	struct spoke_span host; /* of the target if it names one, else of the header */
	struct spoke_span origin;
	struct spoke_span authorization;
	size_t body_len;
	size_t len; /* of all of it */
};

/*
 * Reads the first request of `len` bytes. Returns WHOLE; MORE; or the status it has to be refused
 * with: 400, 413 (a body that is too long), 414, 431 (a head that is too long), 501 (a coding of
 * the transfer) or 505. Only a whole request is good to be used, but for the method, which is known
 * with 413 and 431 too.
 */
int spokei_http_read(const void *bytes, size_t len, struct spokei_http_request *ret_request);

#endif
