/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI document of a provider. */
#include "tests/integration/httprig.h"
#include "tests/support/test.h"

#include <string.h>

static void never(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
	fail();
}

/* Returns the number of allocations that the answer took. */
static uint64_t ask_openapi(struct stage *stage, struct raw *raw, const char *body)
{
	stage_mark(stage);
	http_ask(raw, "GET /openapi.json HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200, body);
	return stage_demands(stage);
}

RUNNER(stage_run_rows);

ROW(openapi_document_is_made_again_only_for_new_services, STAGE_VIRTUAL)
{
	static const struct spoke_service_options options = { .name = "demo.New" };
	static const struct spoke_handler handler = { .method = "new", .handle = never };
	struct raw *raw = http_to_provider(stage, NULL);
	uint64_t made;
	uint64_t kept;

	(void)ask_openapi(stage, raw, "*\"/demo.Web/get\":*");
	kept = ask_openapi(stage, raw, "*\"/demo.Web/get\":*");
	assert_int_equal(spoke_provider_add(stage->provider, &options, &handler, 1), SPOKE_OK);
	made = ask_openapi(stage, raw, "*\"/demo.Web/get\":{*\"/demo.New/new\":*");
	assert_true(kept < made);
	assert_int_equal(ask_openapi(stage, raw, "*\"/demo.New/new\":*"), kept);
	assert_http_lives(raw);
}

ROW(openapi_lists_the_methods_of_each_version, STAGE_MEMORY)
{
	static const struct spoke_service_options options[] = {
		{ .name = "demo.New", .version = "1" },
		{ .name = "demo.New", .version = "2" },
	};
	static const struct spoke_handler handlers[] = {
		{ .method = "old", .handle = never },
		{ .method = "new", .handle = never },
	};
	struct raw *raw = http_to_provider(stage, NULL);
	struct http_answer answer;

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(spoke_provider_add(stage->provider, &options[i], handlers, i + 1),
				 SPOKE_OK);
	http_ask(raw, "GET /openapi.json HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_take(raw, &answer);
	assert_int_equal(answer.status, 200);
	assert_non_null(strstr(answer.body, "\"/demo.New/old\":"));
	assert_non_null(strstr(answer.body, "\"/demo.New/new\":"));
	assert_null(strstr(strstr(answer.body, "\"/demo.New/old\":") + 1, "\"/demo.New/old\":"));
}

static void fail_with_everything(struct spoke_request *request, void *arg)
{
	static const unsigned char fields[] = { 0x81, 0xa4, 'l', 'e', 'f', 't', 0x07 };

	(void)arg;
	spoke_reply_exception(request, "it.BizException", 42, "no money",
			      (struct spoke_value){ fields, sizeof(fields) });
}

/* The document is a promise to programs that are made from it. */
ROW(openapi_describes_each_field_of_an_error, STAGE_MEMORY)
{
	static const struct spoke_service_options options = { .name = "demo.Bad" };
	static const struct spoke_handler handler = { .method = "fail",
						      .handle = fail_with_everything };
	struct raw *raw = http_to_provider(stage, NULL);

	assert_int_equal(spoke_provider_add(stage->provider, &options, &handler, 1), SPOKE_OK);
	http_post(raw, "/demo.Bad/fail", "");
	http_want(raw, 500,
		  "{\"error\":\"EREMOTE\",\"code\":42,\"text\":\"no money\",\"written\":true,"
		  "\"class\":\"it.BizException\",\"fields\":{\"left\":7}}\n");
	http_ask(raw, "GET /openapi.json HTTP/1.1\r\n" HTTP_HOST "\r\n");
	http_want(raw, 200,
		  "*\"Error\":{\"type\":\"object\",\"properties\":{\"error\":{\"type\":\"string\"},"
		  "\"code\":{\"type\":\"integer\"},\"text\":{\"type\":\"string\"},"
		  "\"written\":{\"type\":\"boolean\"},\"class\":{\"type\":\"string\"},"
		  "\"fields\":{\"type\":\"object\"}},"
		  "\"required\":?\"error\",\"code\",\"text\",\"written\"?}}}}\n");
	assert_http_lives(raw);
}
