/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the HTTP wire, for its files: http.c finds the end of a request, read.c,
 * query.c and fields.c make it a message, write.c writes responses.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_HTTP_PARTS_H
#define SPOKEI_TRANSPORT_WIRE_HTTP_PARTS_H

#include "transport/http/chunks.h"
#include "transport/http/request.h"
#include "transport/wire/message.h"

/*
 * HTTP has no ids. The id of a request holds what its response depends on: these bits, the number
 * of the allowed origin, and the status if the request cannot become a call.
 */
#define SPOKEI_HTTP_ID_HEAD 1u     /* the response has no body */
#define SPOKEI_HTTP_ID_LAST 2u     /* the connection ends with the response */
#define SPOKEI_HTTP_ID_OLD 4u      /* the client of HTTP/1.0 wants to keep the connection */
#define SPOKEI_HTTP_ID_CONTINUE 8u /* the client waits to send the body */
#define SPOKEI_HTTP_ID_OPTIONS 16u /* asks for the allowed methods */
#define SPOKEI_HTTP_ID_ORIGIN 8u   /* shift; 8 bits */
#define SPOKEI_HTTP_ID_STATUS 16u  /* shift; 10 bits */

#define SPOKEI_HTTP_ORIGINS_MAX 255u

/* Returns the bytes of the body, while they are in chunks, that a request may have. */
static inline size_t spokei_http_body_max(const struct spokei_wire_limits *limits, size_t head_len)
{
	return limits->frame_max > head_len ? limits->frame_max - head_len : 0;
}

/* --- fields.c */

/* The header lines that concern a call. Texts lie in the head. */
struct spokei_http_fields {
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span type;     /* of the body */
	struct spoke_span encoding; /* of the body */
	struct spoke_span site;     /* Sec-Fetch-Site */
	int64_t timeout_ms;         /* as in struct spokei_message */
	size_t attachments;         /* number of lines that are attachments */
};

/* Reads the header lines. Returns 200, or the status to refuse with and the reason. */
int spokei_http_fields_read(const struct spokei_wire_limits *limits, struct spoke_span lines,
			    struct spokei_http_fields *ret, const char **ret_why);

/* Appends the map of attachments. Returns 0, ENOMEM, or an error of the limits. */
SPOKE_MUST_USE int spokei_http_fields_attach(const struct spokei_wire_limits *limits,
					     struct spoke_span lines, size_t count,
					     struct spokei_buffer *out);

/* --- query.c */

/* Packs the values of "name=value&..." at the end of the buffer: JSON, or else texts. Returns 0,
 * ENOMEM, or another error if a value is neither. `query` has at most the length of a line. */
SPOKE_MUST_USE int spokei_http_query_read(const struct spokei_wire_limits *limits,
					  struct spoke_span query, struct spokei_buffer *out,
					  struct spoke_span *ret_args, size_t *ret_count);

/* --- read.c */

int spokei_http_wire_read(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
			  struct spoke_span frame, struct spokei_buffer *scratch,
			  struct spokei_message *ret_message);
int spokei_http_wire_read_off(const struct spokei_wire_limits *limits, struct spokei_memo *memo,
			      struct spoke_span frame, struct spokei_buffer *scratch,
			      struct spokei_message *ret_message);

/* --- write.c */

int spokei_http_wire_write(const struct spokei_wire_limits *limits,
			   const struct spokei_message *message, struct spokei_buffer *out);

#endif
