/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP clients for the harness: see httprig.h. */
#define _GNU_SOURCE
#include "tests/integration/httprig.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct spoke_value first_of(const struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	return spoke_cursor_next(&args, &value) ? value : (struct spoke_value){ NULL, 0 };
}

static void reply_first(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, first_of(request));
}

static void attach(struct spoke_request *request, void *arg)
{
	struct spoke_value attachments = spoke_request_attachments(request);

	(void)arg;
	spoke_reply_with(request, attachments, attachments);
}

static void left(struct spoke_request *request, void *arg)
{
	uint64_t left_ns = spoke_request_left(request);

	(void)arg;
	if (left_ns == UINT64_MAX)
		spoke_reply(request, (struct spoke_value){ NULL, 0 });
	else
		spoke_reply_arg(request, SPOKE_ARG((left_ns + MS - 1) / MS));
}

static void later(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	if (spoke_request_keep(request))
		spoke_reply_error(request, 1, "no room for it");
	else
		stage->laters[stage->later_count++] = request;
}

struct raw *http_to_provider(struct stage *stage, const struct spoke_provider_options *options)
{
	const struct spoke_service_options service = { .name = "demo.Web" };
	const struct spoke_handler handlers[] = {
		{ .method = "get", .handle = reply_first, .flags = SPOKE_HANDLER_SAFE },
		{ .method = "pool", .handle = reply_first, .flags = SPOKE_HANDLER_POOL },
		{ .method = "attach", .handle = attach },
		{ .method = "left", .handle = left },
		{ .method = "one", .handle = later, .arg = stage, .executes = 1 },
		{ .method = "seldom", .handle = reply_first, .per_second = 1 },
	};
	struct raw *raw;

	stage_set_provider(stage, options);
	assert_int_equal(spoke_provider_add(stage->provider, &service, handlers,
					    sizeof(handlers) / sizeof(handlers[0])),
			 SPOKE_OK);
	raw = raw_connect(stage);
	stage_mark(stage);
	return raw;
}

void http_ask(struct raw *raw, const char *format, ...)
{
	char text[HTTP_TEXT];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	assert_in_range(len, 0, sizeof(text) - 1);
	raw_send(raw, text, (size_t)len);
}

void http_post(struct raw *raw, const char *path, const char *body)
{
	http_ask(raw, "POST %s HTTP/1.1\r\n" HTTP_HOST "Content-Length: %zu\r\n\r\n%s", path,
		 strlen(body), body);
}

void http_take_head(struct raw *raw, struct http_answer *ret_answer)
{
	const char *end = NULL;
	size_t len;

	for (size_t need = 1; end == NULL; need = spokei_buffer_len(&raw->in) + 1) {
		raw_need(raw, need);
		end = memmem(spokei_buffer_data(&raw->in), spokei_buffer_len(&raw->in), "\r\n\r\n",
			     4);
	}
	len = (size_t)(end - (const char *)spokei_buffer_data(&raw->in)) + 4;
	assert_true(len < sizeof(ret_answer->head));
	memcpy(ret_answer->head, spokei_buffer_data(&raw->in), len);
	ret_answer->head[len] = '\0';
	spokei_buffer_consume(&raw->in, len);
	assert_int_equal(strncmp(ret_answer->head, "HTTP/1.1 ", 9), 0);
	ret_answer->status = (unsigned)strtoul(ret_answer->head + 9, NULL, 10);
}

void http_take(struct raw *raw, struct http_answer *ret_answer)
{
	static const char name[] = "Content-Length: ";
	const char *at;
	size_t kept;

	http_take_head(raw, ret_answer);
	at = strstr(ret_answer->head, name);
	assert_non_null(at);
	ret_answer->body_len = strtoul(at + sizeof(name) - 1, NULL, 10);
	raw_need(raw, ret_answer->body_len);
	kept = ret_answer->body_len < HTTP_TEXT ? ret_answer->body_len : HTTP_TEXT - 1;
	memcpy(ret_answer->body, spokei_buffer_data(&raw->in), kept);
	ret_answer->body[kept] = '\0';
	spokei_buffer_consume(&raw->in, ret_answer->body_len);
}

void http_want(struct raw *raw, unsigned status, const char *body)
{
	struct http_answer answer;

	http_take(raw, &answer);
	if (answer.status != status || fnmatch(body, answer.body, 0) != 0)
		fail_msg("%u %s instead of %u %s", answer.status, answer.body, status, body);
}

void assert_http_lives(struct raw *raw)
{
	char name[32];
	char body[40];

	(void)snprintf(name, sizeof(name), "alive %llu", (unsigned long long)++raw->stage->names);
	(void)snprintf(body, sizeof(body), "[\"%s\"]", name);
	http_post(raw, "/demo.EchoService/echo", body);
	(void)snprintf(body, sizeof(body), "\"%s\"\n", name);
	http_want(raw, 200, body);
	assert_int_equal(spokei_buffer_len(&raw->in), 0);
}
