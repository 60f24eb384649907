/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers and calls of the harness's real peers. */
#include "tests/integration/harness.h"

#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

#define NO_CODE 7

static struct spoke_value first_argument(const struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	return spoke_cursor_next(&args, &value) ? value : (struct spoke_value){ NULL, 0 };
}

static void echo(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	stage->handled++;
	spoke_reply(request, first_argument(request));
}

static void note_abandoned(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	(void)request;
	stage->abandoned++;
}

static void later(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	stage->handled++;
	if (stage->later_count == STAGE_LATERS || spoke_request_keep(request)) {
		spoke_reply_error(request, 1, "no room for it");
		return;
	}
	spoke_request_on_abandoned(request, note_abandoned, stage);
	stage->laters[stage->later_count++] = request;
}

static void refuse(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;

	stage->handled++;
	spoke_reply_error(request, NO_CODE, "no");
}

/* Answers with a value from a builder with the given limits. */
static void reply_built(struct spoke_request *request, struct spoke_builder *builder)
{
	struct spoke_value value;

	if (spoke_builder_finish_value(builder, &value))
		spoke_reply_error(request, 1, "cannot be built");
	else
		spoke_reply(request, value);
}

static void large(struct spoke_request *request, void *arg)
{
	static const unsigned char bytes[1 << 24];
	struct spoke_value_limits limits = { .bytes_max = 1 << 25 };
	struct stage *stage = arg;
	struct spoke_builder builder;
	uint64_t len = 0;

	stage->handled++;
	if (spoke_value_u64(first_argument(request), &len) || len > sizeof(bytes)) {
		spoke_reply_error(request, 1, "how large?");
		return;
	}
	spoke_builder_init(&builder, spoke_host_env(), &limits);
	spoke_pack_bin(&builder, bytes, (size_t)len);
	reply_built(request, &builder);
	spoke_builder_fini(&builder);
}

static void deep(struct spoke_request *request, void *arg)
{
	unsigned char bytes[1000];
	struct stage *stage = arg;
	uint64_t depth = 0;

	stage->handled++;
	if (spoke_value_u64(first_argument(request), &depth) || depth >= sizeof(bytes)) {
		spoke_reply_error(request, 1, "how deep?");
		return;
	}
	memset(bytes, 0x91, (size_t)depth);
	bytes[depth] = 0xc0;
	spoke_reply(request, (struct spoke_value){ bytes, (size_t)depth + 1 });
}

static void integer(struct spoke_request *request, void *arg)
{
	struct stage *stage = arg;
	int64_t number;
	int error = spoke_value_i64(first_argument(request), &number);

	stage->handled++;
	if (error)
		spoke_reply_error(request, error, "%s", spoke_strerror(error));
	else
		spoke_reply(request, first_argument(request));
}

void stage_serve(struct stage *stage, struct spoke_provider *provider)
{
	const struct spoke_service_options services[] = { { .name = STAGE_SERVICE },
							  { .name = "demo.Any" } };
	const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo, .arg = stage },
		{ .method = "later", .handle = later, .arg = stage },
		{ .method = "refuse", .handle = refuse, .arg = stage },
		{ .method = "large", .handle = large, .arg = stage },
		{ .method = "deep", .handle = deep, .arg = stage },
		{ .method = "integer", .handle = integer, .arg = stage },
	};
	const struct spoke_handler any = { .handle = echo, .arg = stage };

	assert_int_equal(spoke_provider_add(provider, &services[0], handlers,
					    sizeof(handlers) / sizeof(handlers[0])),
			 SPOKE_OK);
	assert_int_equal(spoke_provider_add(provider, &services[1], &any, 1), SPOKE_OK);
}

void stage_answer_later(struct stage *stage)
{
	struct spoke_request *request;

	assert_true(stage->later_count > 0);
	request = stage->laters[0];
	stage->later_count--;
	for (unsigned i = 0; i < stage->later_count; i++)
		stage->laters[i] = stage->laters[i + 1];
	spoke_reply(request, first_argument(request));
}

void stage_end_serving(struct stage *stage)
{
	while (stage->later_count > 0)
		spoke_reply(stage->laters[--stage->later_count], (struct spoke_value){ NULL, 0 });
}

/* --- calls */

static void copy_text(char *to, size_t size, struct spoke_span text)
{
	(void)snprintf(to, size, "%.*s", (int)text.len, text.len ? (const char *)text.data : "");
}

static void note_end(void *arg, const struct spoke_result *result)
{
	struct ending *ending = arg;

	ending->ends++;
	ending->error = result->error;
	ending->code = result->error_code;
	ending->written = result->written;
	(void)spoke_value_print(result->value, ending->value, sizeof(ending->value));
	copy_text(ending->text, sizeof(ending->text), result->error_text);
}

int stage_try_call(struct stage *stage, struct spoke_method *method, struct spoke_span args,
		   const struct spoke_call_options *options, struct ending *ending,
		   struct spoke_call *ret_call)
{
	(void)stage;
	*ending = (struct ending){ 0 };
	return spoke_call(method, args, options, note_end, ending, ret_call);
}

void stage_call(struct stage *stage, struct spoke_method *method, const char *text,
		struct ending *ending, struct spoke_call *ret_call)
{
	struct spoke_builder builder;
	struct spoke_span args;

	spoke_builder_init(&builder, spoke_host_env(), NULL);
	spoke_pack_text(&builder, text);
	assert_int_equal(spoke_builder_finish(&builder, &args), SPOKE_OK);
	assert_int_equal(stage_try_call(stage, method, args, NULL, ending, ret_call), SPOKE_OK);
	spoke_builder_fini(&builder);
	assert_int_equal(ending->ends, 0);
}

static bool has_ended(void *arg)
{
	const struct ending *ending = arg;

	return ending->ends > 0;
}

void stage_wait(struct stage *stage, struct ending *ending)
{
	stage_until(stage, has_ended, ending);
	assert_int_equal(ending->ends, 1);
	ending->at_ns = stage_now(stage);
}

void assert_ends(struct stage *stage, struct ending *ending, int error)
{
	stage_wait(stage, ending);
	assert_string_equal(spoke_errname(ending->error), spoke_errname(error));
}

void assert_second_connection_works(struct stage *stage)
{
	struct ending ending;
	char text[32];
	char value[40];

	(void)snprintf(text, sizeof(text), "good %llu", (unsigned long long)++stage->names);
	(void)snprintf(value, sizeof(value), "\"%s\"", text);
	stage_call(stage, stage->second_echo, text, &ending, NULL);
	assert_ends(stage, &ending, SPOKE_OK);
	assert_string_equal(ending.value, value);
}
