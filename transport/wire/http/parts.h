/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the HTTP wire, for its files: http.c cuts and reads requests, fields.c reads
 * what a request has as text, and replies.c writes and reads responses.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_HTTP_PARTS_H
#define SPOKEI_TRANSPORT_WIRE_HTTP_PARTS_H

#include "transport/http/request.h"
#include "transport/wire/http/http.h"

/* Returns the bytes of the body, while they are in chunks, that a request may have. */
static inline size_t spokei_http_body_max(const struct spokei_wire_limits *limits, size_t head_len)
{
	return limits->frame_max > head_len ? limits->frame_max - head_len : 0;
}

/* --- http.c */

/* Finds the end of a body behind its head. Returns 0 if it is complete or refused, or NEXT_MORE. */
int spokei_http_cut_body(const struct spokei_wire_limits *limits, struct spokei_cut_http *state,
			 struct spoke_span bytes, size_t *ret_len);

/* --- fields.c */

/* Headers that other programs write by their own rules: the first of each counts, as it is. */
struct spokei_http_foreign {
	bool parent;
	bool state;
};

/* The header lines that concern a call; all zero at first. Texts lie in the head. */
struct spokei_http_fields {
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span type;     /* of the body */
	struct spoke_span encoding; /* of the body */
	struct spoke_span site;     /* Sec-Fetch-Site */
	int64_t timeout_ms;         /* as in struct spokei_message */
	bool timed;                 /* ... was in a header */
	size_t attachments;         /* number of lines that are attachments */
	struct spokei_http_foreign seen;
	const char *why; /* the first reason to refuse them; NULL: none */
};

/* Reads a header line; a function for spokei_http_read_head(). */
void spokei_http_fields_note(void *arg, struct spoke_span name, struct spoke_span value);

/* Checks the lines as a whole. Returns 200, or the status to refuse them with; fields->why is the
 * reason. */
int spokei_http_fields_check(const struct spokei_wire_limits *limits,
			     struct spokei_http_fields *fields);

/* Checks the type and the encoding of the body; `of_page`: a page has sent it. Returns NULL, or why
 * it is refused. */
const char *spokei_http_fields_type(const struct spokei_http_fields *fields, bool of_page);

/* Appends the map of attachments. Returns 0, ENOMEM, or an error of the limits. */
SPOKE_MUST_USE int spokei_http_fields_attach(const struct spokei_wire_limits *limits,
					     struct spoke_span lines, size_t count,
					     struct spokei_buffer *out);

/* Packs the values of "name=value&..." at the end of the buffer: JSON, or else texts. Returns 0,
 * ENOMEM, or another error if a value is neither. `query` has at most the length of a line. */
SPOKE_MUST_USE int spokei_http_query_read(const struct spokei_wire_limits *limits,
					  struct spoke_span query, struct spokei_buffer *out,
					  struct spoke_span *ret_args, size_t *ret_count);

/* --- replies.c */

int spokei_http_wire_write(const struct spokei_wire_limits *limits,
			   const struct spokei_message *message, struct spokei_buffer *out);

#endif
