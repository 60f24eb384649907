/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests and the messages that they become. */
#ifndef TESTS_TRANSPORT_WIRE_HTTP_REQUESTS_H
#define TESTS_TRANSPORT_WIRE_HTTP_REQUESTS_H

#include <stddef.h>

#define POST(path, lines, body) "POST " path " HTTP/1.1\r\nHost: localhost\r\n" lines "\r\n" body
#define GET(path, lines) "GET " path " HTTP/1.1\r\nHost: localhost\r\n" lines "\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define LEN(digits) "Content-Length: " digits "\r\n"

/* A call is logged as service, method, arguments, and things that are unusual; a refusal as its
 * status and reason. */
struct http_request {
	const char *bytes;
	const char *log; /* a line for each message; NULL: none */
};

extern const struct http_request http_requests[];
extern const size_t http_request_count;

#endif
