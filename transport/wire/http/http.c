/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts HTTP requests out of a stream. A request that is refused ends where the bytes end that have
 * arrived, because nothing after it has a meaning: the reader finds the same reason, and marks the
 * request as the last one.
 */
#include "transport/wire/http/http.h"
#include "transport/wire/http/parts.h"

#include "transport/http/skim.h"

#define CUT_BODY 3
#define IDLE_NS UINT64_C(75000000000) /* HTTP has no heartbeats */
#define HEAD_STEP 512u /* bytes of a head that are waited for at first; then twice as many */

/* The first letters of GET, HEAD, POST, PUT, PATCH, OPTIONS, DELETE, CONNECT and TRACE. */
static bool http_knows(unsigned char first)
{
	static const char letters[] = "GHPODCT";

	return first != '\0' && strchr(letters, first) != NULL;
}

static int need(const struct spokei_wire_limits *limits, size_t have, size_t needed,
		size_t *ret_len)
{
	*ret_len = needed < limits->frame_max ? needed : limits->frame_max;
	if (have < *ret_len)
		return SPOKEI_CUT_MORE;
	*ret_len = have;
	return 0;
}

/* Reads the head. Returns 0 if the request is refused, CUT_BODY if its body is next, CUT_MORE, or
 * EPROTOCOL. */
static int cut_head(const struct spokei_wire_limits *limits, struct spokei_cut_http *state,
		    struct spoke_span bytes, size_t *ret_len)
{
	static const char response[] = "HTTP/";
	struct spokei_http_request request;
	size_t len;
	int status;

	if (bytes.len > limits->frame_max)
		bytes.len = limits->frame_max;
	/* Responses of a server are another wire. */
	if (bytes.len >= sizeof(response) - 1 &&
	    memcmp(bytes.data, response, sizeof(response) - 1) == 0)
		return SPOKE_EPROTOCOL;
	/* Most requests arrive as a whole; the reader parses their heads anyway. */
	len = spokei_http_skim(bytes.data, bytes.len);
	if (len > 0) {
		*ret_len = len;
		return 0;
	}
	status = spokei_http_read_head(bytes.data, bytes.len, NULL, NULL, &request);
	if (status == SPOKEI_HTTP_MORE)
		return need(limits, bytes.len, bytes.len < HEAD_STEP ? HEAD_STEP : 2 * bytes.len,
			    ret_len);
	*ret_len = bytes.len;
	if (status != SPOKEI_HTTP_WHOLE)
		return 0;
	if (request.body_len > spokei_http_body_max(limits, request.head_len)) {
		*ret_len = request.head_len;
		return 0;
	}
	*state = (struct spokei_cut_http){
		.head_len = request.head_len,
		.body_len = request.body_len,
		.chunked = request.chunked,
		.expects = request.expects,
	};
	return CUT_BODY;
}

int spokei_http_cut_body(const struct spokei_wire_limits *limits, struct spokei_cut_http *state,
			 struct spoke_span bytes, size_t *ret_len)
{
	size_t head_len = state->head_len;
	size_t max = spokei_http_body_max(limits, head_len);
	struct spoke_span body = spokei_span_after(bytes, head_len);
	struct spokei_http_chunks chunks = { state->at, state->joined };
	size_t needed;
	int status;

	if (!state->chunked) {
		*ret_len = head_len + state->body_len;
		return bytes.len >= *ret_len ? 0 : SPOKEI_CUT_MORE;
	}
	status = spokei_http_chunks_scan(&chunks, body.data, body.len < max ? body.len : max, max,
					 &needed);
	state->at = chunks.at;
	state->joined = chunks.len;
	if (status == SPOKEI_HTTP_MORE)
		return need(limits, bytes.len, head_len + needed, ret_len);
	*ret_len = status == SPOKEI_HTTP_WHOLE ? head_len + chunks.at : bytes.len;
	return 0;
}

static int http_cut(const struct spokei_wire_limits *limits, struct spokei_cut *cut,
		    struct spoke_span bytes, size_t *ret_len)
{
	int status;

	if (!cut->started) {
		status = cut_head(limits, &cut->http, bytes, ret_len);
		if (status == 0)
			cut->asked = false;
		if (status != CUT_BODY)
			return status;
		cut->started = true;
	}
	status = spokei_http_cut_body(limits, &cut->http, bytes, ret_len);
	if (status == SPOKEI_CUT_MORE && cut->http.expects && !cut->asked) {
		/* The reader makes an empty frame a question for status 100. */
		cut->asked = true;
		*ret_len = 0;
		return 0;
	}
	if (status == 0)
		cut->asked = false;
	return status;
}

/* This side sends no requests. */
static int http_prefix(const struct spokei_wire_limits *limits,
		       const struct spokei_message *message, struct spokei_buffer *out)
{
	(void)limits;
	(void)message;
	(void)out;
	return SPOKE_EUNSUPPORTED;
}

const struct spokei_wire spokei_wire_http = {
	.name = "http",
	.id_first = 1,
	.id_max = UINT32_MAX,
	.deadlines = true,
	.attachments = true,
	.in_order = true,
	.idle_ns = IDLE_NS,
	.off = &spokei_wire_http_off,
	.knows = http_knows,
	.cut = http_cut,
	.read = spokei_http_wire_read,
	.prefix = http_prefix,
	.write = spokei_http_wire_write,
};

const struct spokei_wire spokei_wire_http_off = {
	.name = "http",
	.id_first = 1,
	.id_max = UINT32_MAX,
	.deadlines = true,
	.attachments = true,
	.in_order = true,
	.idle_ns = IDLE_NS,
	.knows = http_knows,
	.cut = http_cut,
	.read = spokei_http_wire_read_off,
	.prefix = http_prefix,
	.write = spokei_http_wire_write,
};
