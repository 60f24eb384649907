/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes HTTP response heads, and has the sentences for requests that cannot be read. The headers
 * forbid caching, content sniffing, framing and, mostly, use by other sites, and announce that the
 * connection closes. Appends to a buffer, and touches nothing else.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_RESPONSE_H
#define SPOKEI_TRANSPORT_HTTP_RESPONSE_H

#include "core/memory/buffer.h"

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

/* Returns the phrase after the number of a status, e.g. "Not Found"; of one that spoke never sends,
 * that of 400. */
const char *spokei_http_reason(int status);

/* Returns the sentence for a status of spokei_http_read(), or for SPOKEI_HTTP_TIMEOUT. */
const char *spokei_http_fault(int status);

/* Makes a nonce of 128 random bits, in hexadecimal digits. */
void spokei_http_make_nonce(const struct spoke_env *env, char nonce[SPOKEI_HTTP_NONCE]);

/* Appends text for HTML, escaped for use between tags or in quotation marks. Returns as above. */
SPOKE_MUST_USE int spokei_http_escape(struct spokei_buffer *out, const void *text, size_t len);

#endif
