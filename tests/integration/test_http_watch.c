/* SPDX-License-Identifier: Apache-2.0 */
/* Calls over HTTP in the access log and on the admin page, and the end of the provider in its own
 * handler. */
#include "tests/integration/httprig.h"
#include "tests/support/test.h"

#include "core/virtual/files.h"

#include <spoke/admin.h>

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define ECHO "/demo.EchoService/echo"
#define REFUSE "/demo.EchoService/refuse"
#define LOG_MAX 8192u
#define ENDS(service, method, result)                                                              \
	"\nspoke_method_request_ends_total{service=\"" service "\",method=\"" method               \
	"\",result=\"" result "\"} "

static void free_provider(struct stage *stage)
{
	stage_end_serving(stage);
	spoke_provider_free(stage->provider);
	stage->provider = NULL;
	stage->limits = NULL;
}

/* --- the access log */

struct log {
	struct stage *stage;
	char path[128];
	const char *pattern;
	char text[LOG_MAX];
};

static void read_log(struct log *log)
{
	const char *virtual_text;
	FILE *file;
	size_t len;

	log->text[0] = '\0';
	if (stage_is_virtual(log->stage)) {
		virtual_text = spokei_vfiles_get(log->stage->world.files, log->path);
		(void)snprintf(log->text, sizeof(log->text), "%s",
			       virtual_text ? virtual_text : "");
		return;
	}
	file = fopen(log->path, "re");
	if (file == NULL)
		return;
	len = fread(log->text, 1, sizeof(log->text) - 1, file);
	log->text[len] = '\0';
	(void)fclose(file);
}

static bool log_matches(void *arg)
{
	struct log *log = arg;

	read_log(log);
	return fnmatch(log->pattern, log->text, 0) == 0;
}

RUNNER(stage_run_rows);

/* A refused head or body is no call, and has no line. */
ROW(calls_have_a_line_in_the_access_log, STAGE_ALL)
{
	struct log log = { .stage = stage };
	const struct spoke_provider_options options = { .access_log = log.path };
	struct raw *raw;

	(void)snprintf(log.path, sizeof(log.path), "%s/access", stage->folder);
	raw = http_to_provider(stage, &options);
	http_ask(raw, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST
		      "Spoke-Version: 9\r\nContent-Length: 1\r\n\r\n1");
	http_want(raw, 404, "*");
	http_post(raw, ECHO, "\"hello\"");
	http_want(raw, 200, "\"hello\"\n");
	http_post(raw, REFUSE, "1");
	http_want(raw, 500, "*");
	http_post(raw, ECHO, "{");
	http_want(raw, 400, "*");
	http_ask(raw, "GET /demo.Web/get?a=2 HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200, "2\n");
	http_post(raw, "/demo.Web/pool", "[3]");
	http_want(raw, 200, "3\n");
	log.pattern = "20* \"demo.EchoService\" \"\" \"\" \"echo\" 6 OK *\n"
		      "20* \"demo.EchoService\" \"\" \"\" \"refuse\" 1 EREMOTE *\n"
		      "20* \"demo.Web\" \"\" \"\" \"get\" 1 OK *\n"
		      "20* \"demo.Web\" \"\" \"\" \"pool\" 1 OK *\n";
	stage_until(stage, log_matches, &log);
	free_provider(stage);
	stage_pass(stage, 20 * MS);
	if (!stage_is_virtual(stage))
		assert_int_equal(remove(log.path), 0);
}

/* --- the admin page */

ROW(calls_are_counted_on_the_admin_page, STAGE_ALL)
{
	static const struct spoke_admin_options with = { .listen = "127.0.0.1:0" };
	static const char *const lines[] = {
		"\nspoke_method_requests_total{service=\"demo.Web\",method=\"get\"} 3\n",
		ENDS("demo.Web", "get", "ok") "3\n",
		ENDS("demo.Web", "seldom", "ok") "1\n",
		ENDS("demo.Web", "seldom", "refused") "1\n",
		ENDS("demo.EchoService", "refuse", "error") "1\n",
		"\nspoke_bad_requests_total 1\n",
	};
	char provider_at[sizeof(stage->provider_at)];
	struct raw *raw = http_to_provider(stage, NULL);
	struct spoke_admin *admin;
	const char *text;
	struct raw *page;

	for (unsigned i = 0; i < 3; i++) {
		http_ask(raw, "GET /demo.Web/get?a=1 HTTP/1.1\r\n" HTTP_HOST "\r\n");
		http_want(raw, 200, "1\n");
	}
	http_post(raw, "/demo.Web/seldom", "1");
	http_want(raw, 200, "1\n");
	http_post(raw, "/demo.Web/seldom", "1");
	http_want(raw, 429, "*");
	http_post(raw, REFUSE, "1");
	http_want(raw, 500, "*");
	http_post(raw, ECHO, "{");
	http_want(raw, 400, "*");
	assert_int_equal(spoke_admin_new(stage->engine, &with, &admin), SPOKE_OK);
	memcpy(provider_at, stage->provider_at, sizeof(provider_at));
	(void)snprintf(stage->provider_at, sizeof(stage->provider_at), "%s",
		       spoke_admin_address(admin));
	page = raw_start(stage);
	memcpy(stage->provider_at, provider_at, sizeof(provider_at));
	stage_pass(stage, 20 * MS);
	http_ask(page, "GET /metrics HTTP/1.1\r\n" HTTP_HOST "\r\n");
	(void)raw_wait_end(page);
	assert_int_equal(spokei_buffer_append(&page->in, "", 1), 0);
	text = (const char *)spokei_buffer_data(&page->in);
	for (size_t i = 0; i < LENGTH(lines); i++) {
		if (strstr(text, lines[i]) == NULL)
			fail_msg("no line %s", lines[i]);
	}
	raw_close(page);
	spoke_admin_free(admin);
	assert_http_lives(raw);
}

/* --- the end of the provider in its own handler */

static void end_and_reply(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	spoke_provider_free(stage->provider);
	stage->provider = NULL;
	stage->limits = NULL;
	spoke_reply_arg(request, SPOKE_ARG("late"));
	stage->handled++;
}

static void reply_and_end(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	spoke_reply_arg(request, SPOKE_ARG("early"));
	spoke_provider_free(stage->provider);
	stage->provider = NULL;
	stage->limits = NULL;
	stage->handled++;
}

static bool is_freed(void *arg)
{
	const struct stage *stage = arg;

	return stage->provider == NULL;
}

/* Returns whether the handler has run, on a connection with this many further requests. */
static void end_inside(struct stage *stage,
		       void (*handle)(struct spoke_request *request, void *arg), unsigned further)
{
	static const struct spoke_service_options service = { .name = "demo.End" };
	struct spoke_handler handler = { .method = "end", .arg = stage };
	struct raw *raw = http_to_provider(stage, NULL);
	struct raw *other = raw_connect(stage);
	unsigned before = stage->handled;

	handler.handle = handle;
	assert_int_equal(spoke_provider_add(stage->provider, &service, &handler, 1), SPOKE_OK);
	http_ask(other, "POST " ECHO " HTTP/1.1\r\n" HTTP_HOST "Content-Length: 9\r\n\r\n1");
	http_post(raw, "/demo.End/end", "");
	for (unsigned i = 0; i < further; i++)
		http_post(raw, "/demo.End/end", "");
	stage_until(stage, is_freed, stage);
	assert_closed_mutely(other);
	assert_closed_mutely(raw);
	assert_int_equal(stage->handled, before + 1);
}

ROW(a_handler_may_end_the_provider_before_it_answers, STAGE_ALL)
{
	end_inside(stage, end_and_reply, 0);
}

ROW(a_handler_may_end_the_provider_while_a_request_waits, STAGE_ALL)
{
	end_inside(stage, end_and_reply, 2);
}

ROW(a_handler_may_end_the_provider_after_it_has_answered, STAGE_ALL)
{
	end_inside(stage, reply_and_end, 2);
}
