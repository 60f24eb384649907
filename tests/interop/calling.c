/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer that calls Neovim; see calling.h. */
#include "tests/interop/calling.h"

#include <spoke/host.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- methods of the consumer: "hold" is kept, "note" counted, every other argument doubled */

static void serve_pushed(struct spoke_request *request, void *arg)
{
	struct calling *calling = arg;
	struct spoke_span method = spoke_request_method(request);
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_builder builder;
	unsigned char memory[64];
	struct spoke_value value;
	int64_t number = 0;

	if (method.len == 4 && memcmp(method.data, "hold", 4) == 0) {
		assert_null(calling->held);
		calling->held = request;
		return;
	}
	if (!spoke_request_two_way(request))
		calling->notes++;
	if (!spoke_cursor_next(&args, &value) || spoke_value_i64(value, &number)) {
		spoke_reply_error(request, 3, "a number is wanted");
		return;
	}
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_i64(&builder, 2 * number);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	spoke_reply(request, value);
}

/* --- set-up and tear-down */

static bool has_file(void *arg)
{
	const struct calling *calling = arg;
	char path[NVIM_PATH_MAX];

	nvim_path(&calling->nvim, "listens", path);
	return access(path, F_OK) == 0;
}

void calling_start_nvim(struct calling *calling)
{
	static const char *const environment[] = { NULL };
	const char *arguments[] = { "--listen", "127.0.0.1:0", "-c", NULL, NULL };
	char path[NVIM_PATH_MAX];
	char part[NVIM_PATH_MAX];
	char tell[3 * NVIM_PATH_MAX + 64];

	if (calling->is_unix) {
		nvim_path(&calling->nvim, "socket", calling->at);
		(void)unlink(calling->at);
		arguments[1] = calling->at;
	}
	nvim_path(&calling->nvim, "listens", path);
	nvim_path(&calling->nvim, "part", part);
	(void)unlink(path);
	(void)snprintf(tell, sizeof(tell),
		       "call writefile([v:servername], '%s', 'b') | call rename('%s', '%s')", part,
		       part, path);
	arguments[3] = tell;
	nvim_start(&calling->nvim, arguments, environment);
	nvim_until(calling->engine, has_file, calling);
	nvim_read(&calling->nvim, "listens", calling->at, sizeof(calling->at));
}

void calling_open(struct calling *calling, bool is_unix)
{
	struct spoke_consumer_options options = { .timeout_ns = NVIM_PATIENCE_NS,
						  .handle = serve_pushed,
						  .handle_arg = calling };
	char url[NVIM_PATH_MAX + 32];

	calling->is_unix = is_unix;
	spoke_builder_init(&calling->args, spoke_host_env(), NULL);
	nvim_open(&calling->nvim);
	assert_int_equal(spoke_engine_new(NULL, &calling->engine), 0);
	calling_start_nvim(calling);
	(void)snprintf(url, sizeof(url), is_unix ? "msgpack-rpc+unix:%s" : "msgpack-rpc://%s",
		       calling->at);
	options.url = url;
	assert_int_equal(spoke_consumer_new(calling->engine, &options, &calling->consumer), 0);
}

void calling_close(struct calling *calling)
{
	nvim_close(&calling->nvim);
	if (calling->held)
		spoke_reply(calling->held, (struct spoke_value){ 0 });
	spoke_engine_free(calling->engine);
	spoke_builder_fini(&calling->args);
}

/* --- calls */

static void note_end(void *arg, const struct spoke_result *result)
{
	struct ending *ending = arg;

	ending->ends++;
	ending->error = result->error;
	ending->code = result->error_code;
	ending->written = result->written;
	(void)spoke_value_print(result->value, ending->value, sizeof(ending->value));
	(void)snprintf(ending->text, sizeof(ending->text), "%.*s", (int)result->error_text.len,
		       (const char *)result->error_text.data);
	ending->len = result->value.len;
	if (ending->len <= sizeof(ending->bytes) && ending->len > 0)
		memcpy(ending->bytes, result->value.data, ending->len);
}

void calling_begin_packed(struct calling *calling, const char *name, uint64_t timeout_ns,
			  bool one_way, struct ending *ending)
{
	const struct spoke_call_options options = { .timeout_ns = timeout_ns, .one_way = one_way };
	struct spoke_method *method;
	struct spoke_span args;

	memset(ending, 0, sizeof(*ending));
	assert_int_equal(spoke_consumer_method(calling->consumer, name, NULL, &method), 0);
	assert_int_equal(spoke_builder_finish(&calling->args, &args), 0);
	assert_int_equal(spoke_call(method, args, &options, note_end, ending, NULL), 0);
	spoke_builder_reset(&calling->args);
}

void calling_begin(struct calling *calling, const char *name, const char *text,
		   struct ending *ending)
{
	if (text)
		spoke_pack_text(&calling->args, text);
	calling_begin_packed(calling, name, 0, false, ending);
}

static bool have_ended(void *arg)
{
	const struct calling *calling = arg;

	for (size_t i = 0; i < calling->waiting; i++)
		if (calling->endings[i].ends == 0)
			return false;
	return true;
}

void calling_wait(struct calling *calling, size_t count)
{
	calling->waiting = count;
	nvim_until(calling->engine, have_ended, calling);
}

struct ending *calling_finish(struct calling *calling)
{
	calling_wait(calling, 1);
	assert_int_equal(calling->endings[0].ends, 1);
	return &calling->endings[0];
}

struct ending *calling_do(struct calling *calling, const char *name, const char *text)
{
	calling_begin(calling, name, text, &calling->endings[0]);
	return calling_finish(calling);
}

static bool is_held(void *arg)
{
	const struct calling *calling = arg;

	return calling->held != NULL;
}

long calling_channel(struct calling *calling)
{
	(void)calling_do(calling, "nvim_get_api_info", NULL);
	assert_int_equal(calling->endings[0].value[0], '[');
	return strtol(calling->endings[0].value + 1, NULL, 10);
}

void calling_begin_held(struct calling *calling, uint64_t timeout_ns, struct ending *ending)
{
	char expression[64];

	(void)snprintf(expression, sizeof(expression), "rpcrequest(%ld, 'hold')",
		       calling_channel(calling));
	spoke_pack_text(&calling->args, expression);
	calling_begin_packed(calling, "nvim_eval", timeout_ns, false, ending);
	nvim_until(calling->engine, is_held, calling);
}

void calling_release_held(struct calling *calling, unsigned char number)
{
	struct spoke_request *request = calling->held;

	calling->held = NULL;
	spoke_reply(request, (struct spoke_value){ &number, 1 });
}
