/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP clients for the harness: raw peers that send requests as text and read responses. A service
 * of its own, demo.Web, has methods that the harness lacks.
 */
#ifndef TESTS_INTEGRATION_HTTPRIG_H
#define TESTS_INTEGRATION_HTTPRIG_H

#include "tests/integration/harness.h"

#define HTTP_HOST "Host: localhost\r\n"
#define HTTP_TEXT 9000u

struct http_answer {
	unsigned status;
	char head[HTTP_TEXT]; /* all lines, with their ends */
	char body[HTTP_TEXT];
	size_t body_len; /* may be longer than `body`, which has its beginning then */
};

/*
 * Does the same as stage_raw_to_provider(), with options, and adds demo.Web:
 *     get     safe; answers with its argument
 *     pool    answers with its argument, from a thread of the pool
 *     attach  answers with the request's attachments as value and as attachments
 *     left    answers with the milliseconds that are left, rounded up; null: there is no deadline
 *     one     keeps the request like "later"; one at a time
 *     seldom  answers like "get"; one a second
 */
struct raw *http_to_provider(struct stage *stage, const struct spoke_provider_options *options);

/* Sends text; like printf(). */
void http_ask(struct raw *raw, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends a POST with this path and body. */
void http_post(struct raw *raw, const char *path, const char *body);

/* Waits for the next response. Of one without a body only the head is read. */
void http_take(struct raw *raw, struct http_answer *ret_answer);
void http_take_head(struct raw *raw, struct http_answer *ret_answer);

/* Waits for the next response, and checks its status and its body, a pattern of fnmatch(). */
void http_want(struct raw *raw, unsigned status, const char *body);

/* Checks that the connection is open, and that no other response was sent. */
void assert_http_lives(struct raw *raw);

#endif
