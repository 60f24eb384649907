/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP request parser: valid and invalid requests, whole and split at every byte. */
#include "tests/support/test.h"
#include "transport/http/request.h"

#include <stdio.h>
#include <string.h>

#define H "Host: a\r\n"

struct row {
	const char *text;
	int verdict;
};

static const struct row rows[] = {
	{ "GET / HTTP/1.1\r\n" H "\r\n", 0 },
	{ "\r\nGET / HTTP/1.1\r\n" H "\r\n", 0 },
	{ "GET / HTTP/1.0\r\n\r\n", 0 },
	{ "GET http://a:1/x?y HTTP/1.1\r\nhOsT: b\r\n\r\n", 0 },
	{ "POST /act/x HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc", 0 },
	{ "GET / HTTP/1.1\r\n" H "Content-Length: 00000000003\r\n\r\nabc", 0 },
	{ "OPTIONS * HTTP/1.1\r\n" H "\r\n", 0 },
	{ "OPTIONS /a HTTP/1.1\r\n" H "Connection: close , x\r\n\r\n", 0 },
	{ "BREW /pot HTTP/1.1\r\n" H "X:\r\nY: \t a\tb \t\r\n\r\n", 0 },
	{ "GET / HTTP/1.1\r\n" H "Content-Length: 4\r\n\r\nabc", SPOKEI_HTTP_MORE },
	{ "GET / HTTP/1.1\r\n" H "\r", SPOKEI_HTTP_MORE },
	{ "", SPOKEI_HTTP_MORE },
	{ "GET / HTTP/1.1\n" H "\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" H "\n", 400 },
	{ "\nGET / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET /\r\n", 400 },
	{ "GET / HTTP/1.1\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" H H "\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400 },
	{ "\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n", 400 },
	{ " GET / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET  / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET / HTTP/1.1 \r\n" H "\r\n", 400 },
	{ "GET\t/ HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET x HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET * HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET /#x HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET /\xc3\xa4 HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET http:///x HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET http://a HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET https://a/ HTTP/1.1\r\n" H "\r\n", 400 },
	{ "CONNECT a:80 HTTP/1.1\r\n" H "\r\n", 400 },
	{ "G@T / HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET / http/1.1\r\n" H "\r\n", 400 },
	{ "GET / HTTP/1.10\r\n" H "\r\n", 400 },
	{ "GET / HTTP/2.0\r\n" H "\r\n", 505 },
	{ "GET / HTTP/0.9\r\n" H "\r\n", 505 },
	{ "GET / HTTP/1.1\r\n" H " folded\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" H "X : y\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" H ": y\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" H "nothing\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" H "X: a\rb\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" H "X: a\001b\r\n\r\n", 400 },
	{ "GET /\r HTTP/1.1\r\n" H "\r\n", 400 },
	{ "GET / HTTP/1.1\r\n" H "Expect: 100-Continue\r\n\r\n", 0 },
	{ "GET / HTTP/1.1\r\n" H "Expect: everything\r\n\r\n", 417 },
	{ "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n", 501 },
	{ "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
	  "chunked\r\n\r\n",
	  400 },
	{ "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", 400 },
	{ "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501 },
	{ "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: x\r\n\r\n", 501 },
	{ "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400 },
	{ "POST / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\na", 400 },
	{ "POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\na", 400 },
	{ "POST / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\na", 400 },
	{ "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\na", 400 },
	{ "POST / HTTP/1.1\r\n" H "Content-Length: 1025\r\n\r\na", 413 },
	{ "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551617\r\n\r\na", 413 },
	{ "POST / HTTP/1.1\r\n" H "Authorization: a\r\nAuthorization: a\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" H "Origin: a\r\nOrigin: a\r\n\r\n", 400 },
	{ "POST / HTTP/1.1\r\n" H "Content-Type: a\r\ncontent-type: a\r\n\r\n", 400 },
};

static int read_text(const char *text, size_t len, struct spokei_http_request *request)
{
	return spokei_http_read(text, len, SPOKEI_HTTP_BODY_MAX, request);
}

TEST(parser_returns_expected_status_for_each_request)
{
	struct spokei_http_request request;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		int verdict = read_text(rows[i].text, strlen(rows[i].text), &request);

		if (verdict != rows[i].verdict)
			fail_msg("%d, not %d: %s", verdict, rows[i].verdict, rows[i].text);
	}
}

TEST(prefix_gives_same_status_as_whole_or_incomplete)
{
	struct spokei_http_request request;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		int last = SPOKEI_HTTP_MORE;

		for (size_t len = 0; len <= strlen(rows[i].text); len++) {
			int verdict = read_text(rows[i].text, len, &request);

			if (last != SPOKEI_HTTP_MORE)
				assert_int_equal(verdict, last);
			last = verdict;
		}
		assert_int_equal(last, rows[i].verdict);
	}
}

/* Returns the length of a whole request without chunks and expectation; 0: it is none. */
static size_t whole_len(const char *text, size_t len)
{
	struct spokei_http_request request;

	if (spokei_http_read_head(text, len, NULL, NULL, &request) != SPOKEI_HTTP_WHOLE ||
	    request.chunked || request.expects || request.head_len + request.body_len > len)
		return 0;
	return request.head_len + request.body_len;
}

TEST(validator_finds_same_end_as_parser)
{
	static const char more[] = "POST /a HTTP/1.1\r\n" H "TE: x\r\ncontent-LENGTH:3\r\n"
				   "Traceparent: x\r\n\r\nabcGET / HTTP/1.1\r\n\r\n";
	struct spokei_http_request request;

	assert_int_equal(spokei_http_find_end(more, sizeof(more) - 1), sizeof(more) - 1 - 18);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		for (size_t len = 0; len <= strlen(rows[i].text); len++) {
			size_t found = spokei_http_find_end(rows[i].text, len);
			int status = spokei_http_read_head(rows[i].text, len, NULL, NULL, &request);

			if (status == SPOKEI_HTTP_WHOLE || status == SPOKEI_HTTP_MORE)
				assert_int_equal(found, whole_len(rows[i].text, len));
		}
	}
}

static void assert_span(struct spoke_span span, const char *text)
{
	assert_int_equal(span.len, strlen(text));
	assert_memory_equal(span.data, text, span.len);
}

TEST(parser_finds_every_field)
{
	static const char text[] = "POST http://h:1/act/x?a=b HTTP/1.1\r\nHost: other\r\n"
				   "ORIGIN: \t http://h:1 \r\nauthorization: Bearer x y\r\n"
				   "Content-Length: 2\r\n\r\nokGET /";
	struct spokei_http_request request;

	assert_int_equal(read_text(text, sizeof(text) - 1, &request), SPOKEI_HTTP_WHOLE);
	assert_int_equal(request.method, SPOKEI_HTTP_POST);
	assert_span(request.path, "/act/x");
	assert_span(request.host, "h:1");
	assert_span(request.origin, "http://h:1");
	assert_span(request.authorization, "Bearer x y");
	assert_int_equal(request.body.len, 2);
	assert_memory_equal(request.body.data, "ok", 2);
	assert_int_equal(request.len, sizeof(text) - 1 - 5);
}

TEST(head_tells_end_of_body_and_wishes_of_client)
{
	static const struct {
		const char *text;
		size_t body_len;
		bool chunked;
		bool closes;
		bool upgrades;
		bool expects;
	} heads[] = {
		{ "GET /a HTTP/1.1\r\n" H "\r\n", 0, false, false, false, false },
		{ "GET /a HTTP/1.0\r\n\r\n", 0, false, true, false, false },
		{ "GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\nExpect: 100-continue\r\n\r\n", 0,
		  false, false, false, false },
		{ "POST /a HTTP/1.1\r\n" H "Content-Length: 4096\r\nExpect: 100-continue\r\n"
		  "Connection: x, Close\r\n\r\n",
		  4096, false, true, false, true },
		{ "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n", 0, true, false,
		  false, false },
		{ "GET /a HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: Upgrade\r\n\r\n",
		  0, false, false, true, false },
	};
	struct spokei_http_request request;

	for (size_t i = 0; i < LENGTH(heads); i++) {
		size_t len = strlen(heads[i].text);

		assert_int_equal(spokei_http_read_head(heads[i].text, len, NULL, NULL, &request),
				 0);
		assert_int_equal(request.head_len, len);
		assert_int_equal(request.body_len, heads[i].body_len);
		assert_int_equal(request.chunked, heads[i].chunked);
		assert_int_equal(request.closes, heads[i].closes);
		assert_int_equal(request.upgrades, heads[i].upgrades);
		assert_int_equal(request.expects, heads[i].expects);
	}
}

TEST(fields_are_found_by_name_in_any_case_and_counted)
{
	static const char text[] = "GET /a?b=c&d?e HTTP/1.1\r\nHost: h\r\nCookie: \t a=b; c \t\r\n"
				   "X:\r\nLast-Event-ID: 5.7\r\ncookie: z\r\n\r\n";
	struct spokei_http_request request;
	struct spoke_span value;

	assert_int_equal(spokei_http_read_head(text, sizeof(text) - 1, NULL, NULL, &request), 0);
	assert_span(request.path, "/a");
	assert_span(request.query, "b=c&d?e");
	assert_int_equal(spokei_http_field(&request, "cookie", &value), 2);
	assert_span(value, "a=b; c");
	assert_int_equal(spokei_http_field(&request, "last-event-id", &value), 1);
	assert_span(value, "5.7");
	assert_int_equal(spokei_http_field(&request, "x", &value), 1);
	assert_int_equal(value.len, 0);
	assert_int_equal(spokei_http_field(&request, "accept", &value), 0);
}

/* The request line and the head at their limits, and one byte longer. */
/* Wherever it stands among others. */
TEST(values_have_no_control_characters_but_tab)
{
	static const char head[] = "GET / HTTP/1.1\r\n" H "X: abcdefghijklmnopqrstuvw\r\n\r\n";
	const size_t from = sizeof(head) - 1 - 4 - 23;
	struct spokei_http_request request;
	char text[sizeof(head)];

	for (size_t at = from; at < from + 23; at++) {
		for (int c = 0; c < 256; c++) {
			memcpy(text, head, sizeof(head));
			text[at] = (char)c;
			if (c == '\n')
				continue;
			assert_int_equal(read_text(text, sizeof(text) - 1, &request),
					 (c < ' ' && c != '\t') || c == 127 ? 400
									    : SPOKEI_HTTP_WHOLE);
		}
	}
}

TEST(line_and_head_are_rejected_beyond_their_limits)
{
	char text[SPOKEI_HTTP_HEAD_MAX + 64];
	struct spokei_http_request request;

	memset(text, 'a', sizeof(text));
	memcpy(text, "GET /", 5);
	assert_int_equal(read_text(text, SPOKEI_HTTP_LINE_MAX - 1, &request), SPOKEI_HTTP_MORE);
	assert_int_equal(read_text(text, SPOKEI_HTTP_LINE_MAX, &request), 414);
	assert_int_equal(read_text(text, sizeof(text), &request), 414);
	memcpy(text + SPOKEI_HTTP_LINE_MAX - 11, " HTTP/1.1\r\n", 11);
	assert_int_equal(read_text(text, SPOKEI_HTTP_LINE_MAX, &request), SPOKEI_HTTP_MORE);
	memcpy(text + SPOKEI_HTTP_LINE_MAX, "X:", 2);
	assert_int_equal(read_text(text, SPOKEI_HTTP_HEAD_MAX - 1, &request), SPOKEI_HTTP_MORE);
	assert_int_equal(read_text(text, SPOKEI_HTTP_HEAD_MAX, &request), 431);
	assert_int_equal(read_text(text, sizeof(text), &request), 431);
	memcpy(text + SPOKEI_HTTP_HEAD_MAX - 13, "\r\nHost: b\r\n\r\n", 13);
	assert_int_equal(read_text(text, SPOKEI_HTTP_HEAD_MAX, &request), SPOKEI_HTTP_WHOLE);
	text[SPOKEI_HTTP_HEAD_MAX - 2] = 'a';
	assert_int_equal(read_text(text, SPOKEI_HTTP_HEAD_MAX, &request), 400);
}

TEST(body_is_rejected_beyond_the_limit_of_the_server)
{
	static const char text[] = "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nabcde";
	struct spokei_http_request request;

	assert_int_equal(spokei_http_read(text, sizeof(text) - 1, 5, &request), SPOKEI_HTTP_WHOLE);
	assert_int_equal(request.len, sizeof(text) - 1);
	assert_int_equal(spokei_http_read(text, sizeof(text) - 2, 5, &request), SPOKEI_HTTP_MORE);
	assert_int_equal(request.len, sizeof(text) - 1);
	assert_int_equal(spokei_http_read(text, sizeof(text) - 1, 4, &request), 413);
	assert_int_equal(request.method, SPOKEI_HTTP_POST);
	assert_int_equal(spokei_http_read(text, 10, 5, &request), SPOKEI_HTTP_MORE);
	assert_int_equal(request.len, 0);
}
