/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses an HTTP/1.1 request (RFC 9112) from the bytes that have arrived so far. Strict: ambiguous
 * syntax is rejected. Pure: the result does not depend on how the bytes were cut, and the first
 * error counts. The body is the caller's concern: of a known length here, in chunks in chunks.h.
 * Any thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_REQUEST_H
#define SPOKEI_TRANSPORT_HTTP_REQUEST_H

#include "core/base/span.h"

#include "core/memory/buffer.h"

#include <spoke/value.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SPOKEI_HTTP_LINE_MAX 2048u /* bytes of the request line */
#define SPOKEI_HTTP_HEAD_MAX 8192u /* bytes of all lines, with their ends */
#define SPOKEI_HTTP_BODY_MAX 1024u /* bytes, unless a server has another limit */

/* Results that are not an HTTP status. */
#define SPOKEI_HTTP_MORE (-1) /* the request is incomplete */
#define SPOKEI_HTTP_WHOLE 0   /* it is complete */

enum spokei_http_method {
	SPOKEI_HTTP_GET,
	SPOKEI_HTTP_HEAD,
	SPOKEI_HTTP_POST,
	SPOKEI_HTTP_OPTIONS,
	SPOKEI_HTTP_OTHER,
};

/* Spans point into the bytes that were read; an absent part has NULL for data. */
struct spokei_http_request {
	enum spokei_http_method method;
	/* Begins with "/", or is "*" for OPTIONS; not decoded, and without the query. */
	struct spoke_span path;
	struct spoke_span query; /* after the "?"; not decoded */
	struct spoke_span host;  /* of the target if it has one, else of the header */
	struct spoke_span origin;
	struct spoke_span authorization;
	struct spoke_span fields; /* all header lines, checked, for spokei_http_field() */
	size_t head_len;          /* bytes before the body */
	size_t body_len;          /* of Content-Length, at most SIZE_MAX / 16; 0 if there is none */
	bool chunked;             /* the body comes in chunks; body_len is 0 */
	bool old;                 /* HTTP/1.0 */
	bool closes;              /* the client wants no further request on this connection */
	bool upgrades;            /* the header Connection contains "upgrade" */
	bool expects;             /* the client waits for status 100 before it sends the body */
	/* Set by spokei_http_read() only. */
	struct spoke_span body;
	size_t len; /* bytes of the whole request; 0: its head is incomplete, or rejected */
};

/* Is called with each checked header line, in their order; a later line may still be refused. */
typedef void (*spokei_http_field_fn)(void *arg, struct spoke_span name, struct spoke_span value);

/*
 * Parses the head of the first request in `len` bytes, and calls each(arg) with its lines; NULL:
 * nothing is called. Returns SPOKEI_HTTP_WHOLE, SPOKEI_HTTP_MORE,
 * or the status to reject it with: 400, 414, 417 (an unknown expectation), 431 (the head is too
 * long), 501 (a transfer coding) or 505. *ret_request is valid only if the head is complete, except
 * for the method, which is valid with 431 too.
 */
int spokei_http_read_head(const void *bytes, size_t len, spokei_http_field_fn each, void *arg,
			  struct spokei_http_request *ret_request);

/*
 * Parses the first request in `len` bytes, with a body of at most `body_max` bytes. Returns the
 * same, 413 (the body is too long), or 501 for a body in chunks. Once the head is complete,
 * *ret_request is valid without the body, with every result.
 */
int spokei_http_read(const void *bytes, size_t len, size_t body_max,
		     struct spokei_http_request *ret_request);

/* Can it be the name of a header, or a part of one? */
bool spokei_http_is_token(struct spoke_span span);

/* Is it the value of a Content-Length? A huge one becomes SIZE_MAX / 16. */
bool spokei_http_length(struct spoke_span value, size_t *ret_length);

/* Takes the next of the checked header lines. Returns false if there is none. */
bool spokei_http_next_field(struct spoke_span *fields, struct spoke_span *ret_name,
			    struct spoke_span *ret_value);

/* Finds a header by its name, in either case. Returns how often the request has it, and the first
 * value. */
unsigned spokei_http_field(const struct spokei_http_request *request, const char *name,
			   struct spoke_span *ret_value);

/* Takes the next element of a comma-separated list, without blanks around it. Returns false at the
 * end. */
bool spokei_http_next_item(struct spoke_span *list, struct spoke_span *ret_item);

/* Does the comma-separated list have this element, in either case? */
bool spokei_http_list_has(struct spoke_span list, const char *element);

/* --- chunks
 *
 * Finds the end of a body in chunks (RFC 9112, section 7.1), and joins the chunks. Strict: sizes
 * have at most eight hexadecimal digits, lines end with CRLF, and a line has a limit. Extensions
 * of chunks and trailers are checked and ignored. Pure; any thread. */

#define SPOKEI_HTTP_CHUNK_LINE 256u    /* bytes of the line before a chunk, with its end */
#define SPOKEI_HTTP_TRAILERS_MAX 1024u /* bytes of all trailers, with the empty line */

/* How far a body was scanned; all zero at first. */
struct spokei_http_chunks {
	size_t at;  /* offset of the next chunk's line */
	size_t len; /* bytes of the chunks before it, joined */
};

/*
 * Scans the body that begins with these `len` bytes; earlier calls saw a prefix of them. Returns
 * SPOKEI_HTTP_WHOLE, and chunks->at is the offset of the body's end; SPOKEI_HTTP_MORE (*ret_needed:
 * bytes needed in all, as far as known); 400 (bad syntax), or 413 (more than `max` bytes when
 * joined).
 */
int spokei_http_chunks_scan(struct spokei_http_chunks *chunks, const void *bytes, size_t len,
			    size_t max, size_t *ret_needed);

/* Copies the chunks of a whole body, which was scanned, to `to`. Returns their length. */
size_t spokei_http_chunks_join(const void *bytes, void *to);

/* --- the end of a request
 *
 * Finds the end of a request without parsing it. Pure; any thread. */

/*
 * Finds the end of the first request quickly, if all of it is in these bytes and its body has a
 * known length. Checks nothing: spokei_http_read_head() finds the same end, or an error. Returns
 * the length of the request; 0: only spokei_http_read_head() can tell.
 */
size_t spokei_http_find_end(const void *bytes, size_t len);

#endif
