/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the parser of HTTP requests. Each prefix must get the result of the whole request, or
 * "incomplete". All parts of a complete request must lie inside of its bytes and be valid.
 */
#include "tests/fuzz/fuzz.h"
#include "transport/http/guard.h"
#include "transport/http/request.h"

#include <stdlib.h>
#include <string.h>

#define REQUEST_MAX (SPOKEI_HTTP_HEAD_MAX + SPOKEI_HTTP_BODY_MAX)
#define EVERY_PART 512u /* bytes: up to this size each prefix is tested, else some */

static int lies_inside(struct spoke_span span, const char *text, size_t len)
{
	const char *at = span.data;

	return at == NULL || (at >= text && at + span.len <= text + len);
}

/* Parses the first bytes, in a block of exactly their length. */
static int judge(const uint8_t *data, size_t len)
{
	char *text = malloc(len > 0 ? len : 1);
	struct spokei_http_request request;
	int verdict;

	demand(text != NULL, "there is memory");
	if (len > 0)
		memcpy(text, data, len);
	verdict = spokei_http_read(text, len, SPOKEI_HTTP_BODY_MAX, &request);
	if (verdict == SPOKEI_HTTP_WHOLE) {
		demand(request.len <= len && request.len <= REQUEST_MAX,
		       "the request is not longer than its bytes");
		demand(request.body.len <= SPOKEI_HTTP_BODY_MAX, "the body keeps its limit");
		demand(request.path.len > 0 && strchr("/*", *(const char *)request.path.data),
		       "a path begins with / or is *");
		demand(lies_inside(request.query, text, request.len), "the query lies inside");
		demand(lies_inside(request.fields, text, request.head_len),
		       "the fields lie inside the head");
		(void)spokei_http_field(&request, "cookie", &(struct spoke_span){ NULL, 0 });
		demand(lies_inside(request.path, text, request.len), "the path lies inside");
		demand(lies_inside(request.host, text, request.len), "the host lies inside");
		demand(lies_inside(request.origin, text, request.len), "the origin lies inside");
		demand(lies_inside(request.authorization, text, request.len),
		       "the authorization lies inside");
		(void)spokei_guard_host(request.host, "127.0.0.1:9090", "orders,b.example");
		(void)spokei_guard_origin(request.origin, request.host);
		(void)spokei_guard_token(request.authorization, "token");
	} else {
		demand(verdict == SPOKEI_HTTP_MORE || (verdict >= 400 && verdict <= 505),
		       "the result is a known one");
		demand(verdict != SPOKEI_HTTP_MORE || len < REQUEST_MAX,
		       "no more bytes are requested than a request may have");
	}
	free(text);
	return verdict;
}

FUZZ(http)
{
	size_t step = size <= EVERY_PART ? 1 : size / EVERY_PART + 1;
	int last = SPOKEI_HTTP_MORE;

	for (size_t len = 0; len < size; len += step) {
		int verdict = judge(data, len);

		demand(last == SPOKEI_HTTP_MORE || verdict == last, "a result is final");
		last = verdict;
	}
	demand(last == SPOKEI_HTTP_MORE || judge(data, size) == last,
	       "the whole gets the result of its prefix");
	(void)judge(data, size);
	return 0;
}
