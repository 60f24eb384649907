/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interoperability: spoke's consumer calls Neovim as a server, over TCP and over a unix socket.
 */
#include "tests/interop/nvim.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- A consumer that calls a Neovim and serves the requests that Neovim sends back */

#define ENDINGS 1024u

struct ending {
	unsigned ends;
	int error;
	int32_t code;
	bool written;
	char value[256]; /* printed */
	char text[256];  /* text of the error */
	unsigned char bytes[64];
	size_t len; /* length of the value; `bytes` contains as much of it as fits */
};

struct calling {
	bool is_unix;
	struct nvim nvim;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	char at[NVIM_PATH_MAX]; /* address at which Neovim listens */
	struct spoke_builder args;
	struct ending endings[ENDINGS];
	size_t waiting; /* number of endings for which calling_wait() waits, from the first on */
	struct spoke_request *held; /* a request from Neovim */
	unsigned notes;
};

/* --- the consumer that calls Neovim */

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

/* Starts a Neovim that listens, and creates the consumer; may be repeated for another Neovim. */
static void calling_start_nvim(struct calling *calling)
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

static void calling_open(struct calling *calling, bool is_unix)
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

static void calling_close(struct calling *calling)
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

/* Calls with the arguments in calling->args. `ending` is one of calling->endings. */
static void calling_begin_packed(struct calling *calling, const char *name, uint64_t timeout_ns,
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

/* Calls with one text, or without arguments (NULL). */
static void calling_begin(struct calling *calling, const char *name, const char *text,
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

/* Waits for the first `count` endings. */
static void calling_wait(struct calling *calling, size_t count)
{
	calling->waiting = count;
	nvim_until(calling->engine, have_ended, calling);
}

/* Waits for the first ending, which must occur once; the second function begins the call, too. */
static struct ending *calling_finish(struct calling *calling)
{
	calling_wait(calling, 1);
	assert_int_equal(calling->endings[0].ends, 1);
	return &calling->endings[0];
}

static struct ending *calling_do(struct calling *calling, const char *name, const char *text)
{
	calling_begin(calling, name, text, &calling->endings[0]);
	return calling_finish(calling);
}

static bool is_held(void *arg)
{
	const struct calling *calling = arg;

	return calling->held != NULL;
}

/* Returns Neovim's number of the consumer's connection. */
static long calling_channel(struct calling *calling)
{
	(void)calling_do(calling, "nvim_get_api_info", NULL);
	assert_int_equal(calling->endings[0].value[0], '[');
	return strtol(calling->endings[0].value + 1, NULL, 10);
}

/* Begins a call that Neovim answers only after its request "hold" was answered; answers that one.
 */
static void calling_begin_held(struct calling *calling, uint64_t timeout_ns, struct ending *ending)
{
	char expression[64];

	(void)snprintf(expression, sizeof(expression), "rpcrequest(%ld, 'hold')",
		       calling_channel(calling));
	spoke_pack_text(&calling->args, expression);
	calling_begin_packed(calling, "nvim_eval", timeout_ns, false, ending);
	nvim_until(calling->engine, is_held, calling);
}

static void calling_release_held(struct calling *calling, unsigned char number)
{
	struct spoke_request *request = calling->held;

	calling->held = NULL;
	spoke_reply(request, (struct spoke_value){ &number, 1 });
}

/*
 * --- interoperability: spoke's consumer calls Neovim as a server, over TCP and over a unix
 * socket
 */

STEP(set_up_tcp)
{
	struct calling *calling = calloc(1, sizeof(*calling));

	assert_non_null(calling);
	*state = calling;
	calling_open(calling, false);
}

STEP(set_up_unix)
{
	struct calling *calling = calloc(1, sizeof(*calling));

	assert_non_null(calling);
	*state = calling;
	calling_open(calling, true);
}

STEP(tear_down)
{
	calling_close(*state);
	free(*state);
}

static void assert_gives(const struct ending *ending, const char *value)
{
	assert_string_equal(ending->text, "");
	assert_int_equal(ending->error, 0);
	assert_string_equal(ending->value, value);
}

static void assert_evaluates(struct calling *calling, const char *expression, const char *value)
{
	assert_gives(calling_do(calling, "nvim_eval", expression), value);
}

static void assert_fails(const struct ending *ending, int error, const char *text)
{
	assert_int_equal(ending->error, error);
	assert_string_equal(ending->text, text);
}

/* --- calls and answers */

NEEDS(nvim_absent);

#define CALLING_TEST(...) TEST_WITH(struct calling *calling, *state, __VA_ARGS__)

NVIM_TEST(expressions_give_their_values)
{
	struct calling *calling = *state;

	assert_evaluates(calling, "1+41", "42");
	assert_evaluates(calling, "'h\xc3\xa9llo'", "\"h\\xc3\\xa9llo\"");
	assert_evaluates(calling, "[1, [2, v:null, v:true], 2.5]", "[1, [2, null, true], 2.5]");
	assert_evaluates(calling, "{'a': {'b': []}}", "{\"a\": {\"b\": []}}");
	assert_evaluates(calling, "-9223372036854775807 - 1", "-9223372036854775808");
	assert_evaluates(calling, "9223372036854775807", "9223372036854775807");
	assert_evaluates(calling, "len(repeat('x', 100000))", "100000");
}

NVIM_TEST(a_large_value_arrives_whole)
{
	struct calling *calling = *state;

	assert_int_equal(calling_do(calling, "nvim_eval", "repeat('x', 1048576)")->error, 0);
	assert_int_equal(calling->endings[0].len, 1048576 + 5);
}

NVIM_TEST(a_url_without_a_path_names_no_service)
{
	struct calling *calling = *state;

	/* With an interface in the URL the method would be "something.nvim_eval". */
	assert_gives(calling_do(calling, "nvim_eval", "'plain'"), "\"plain\"");
	assert_fails(calling_do(calling, "no.such_method", NULL), SPOKE_EREMOTE,
		     "Invalid method: no.such_method");
}

NVIM_TEST(the_api_describes_itself)
{
	struct calling *calling = *state;

	assert_int_equal(calling_do(calling, "nvim_get_api_info", NULL)->error, 0);
	assert_true(calling->endings[0].len > 10000);
	assert_int_equal(calling->endings[0].value[0], '[');
}

NVIM_TEST(lines_of_a_buffer_are_set_and_got)
{
	struct calling *calling = *state;
	struct spoke_builder *args = &calling->args;
	unsigned char buffer[64];
	size_t len;

	/* A buffer is an ext, which is sent back unchanged. */
	len = calling_do(calling, "nvim_get_current_buf", NULL)->len;
	assert_in_range(len, 1, sizeof(buffer));
	memcpy(buffer, calling->endings[0].bytes, len);
	assert_int_equal(spoke_value_type((struct spoke_value){ buffer, len }), SPOKE_VALUE_EXT);

	spoke_pack_raw(args, (struct spoke_span){ buffer, len });
	spoke_pack_i64(args, 0);
	spoke_pack_i64(args, -1);
	spoke_pack_bool(args, true);
	spoke_pack_array(args, 3);
	spoke_pack_text(args, "one");
	spoke_pack_text(args, "");
	spoke_pack_text(args, "dr\xc3\xa9i");
	calling_begin_packed(calling, "nvim_buf_set_lines", 0, false, &calling->endings[0]);
	assert_gives(calling_finish(calling), "null");

	spoke_pack_raw(args, (struct spoke_span){ buffer, len });
	spoke_pack_i64(args, 0);
	spoke_pack_i64(args, -1);
	spoke_pack_bool(args, true);
	calling_begin_packed(calling, "nvim_buf_get_lines", 0, false, &calling->endings[0]);
	assert_gives(calling_finish(calling), "[\"one\", \"\", \"dr\\xc3\\xa9i\"]");
}

NVIM_TEST(an_error_of_type_and_text_becomes_its_text)
{
	struct calling *calling = *state;

	assert_fails(calling_do(calling, "nvim_command", "nosuchcommand"), SPOKE_EREMOTE,
		     "Vim:E492: Not an editor command: nosuchcommand");
	assert_int_equal(calling->endings[0].code, 0);
	assert_fails(calling_do(calling, "no_such_method", NULL), SPOKE_EREMOTE,
		     "Invalid method: no_such_method");
	assert_fails(calling_do(calling, "nvim_eval", NULL), SPOKE_EREMOTE,
		     "Wrong number of arguments: expecting 1 but got 0");
	/* Its type is 1: invalid argument. */
	spoke_pack_i64(&calling->args, 4711);
	calling_begin_packed(calling, "nvim_buf_line_count", 0, false, &calling->endings[0]);
	assert_fails(calling_finish(calling), SPOKE_EREMOTE, "Invalid buffer id: 4711");
	assert_int_equal(calling->endings[0].code, 1);
	assert_evaluates(calling, "'still here'", "\"still here\"");
}

NVIM_TEST(many_calls_at_once_each_get_their_own_answer)
{
	struct calling *calling = *state;
	char expression[32];
	char value[32];

	for (unsigned i = 0; i < ENDINGS; i++) {
		(void)snprintf(expression, sizeof(expression), "%u * 3", i);
		calling_begin(calling, "nvim_eval", expression, &calling->endings[i]);
	}
	calling_wait(calling, ENDINGS);
	for (unsigned i = 0; i < ENDINGS; i++) {
		(void)snprintf(value, sizeof(value), "%u", i * 3);
		assert_gives(&calling->endings[i], value);
		assert_int_equal(calling->endings[i].ends, 1);
	}
	assert_int_equal(spoke_stat_get(calling->engine, SPOKE_STAT_CALLS_OK), ENDINGS);
	assert_int_equal(spoke_stat_get(calling->engine, SPOKE_STAT_CONNECTED), 1);
}

NVIM_TEST(call_without_an_answer_is_still_executed)
{
	struct calling *calling = *state;

	spoke_pack_text(&calling->args, "let g:mark = 'made'");
	calling_begin_packed(calling, "nvim_command", 0, true, &calling->endings[0]);
	assert_gives(calling_finish(calling), "null");
	assert_evaluates(calling, "g:mark", "\"made\"");
	assert_int_equal(spoke_stat_get(calling->engine, SPOKE_STAT_MESSAGES_READ), 1);
}

/* --- requests from Neovim */

NVIM_TEST(a_request_inside_a_call_is_served_and_answered)
{
	struct calling *calling = *state;
	char expression[64];
	long channel = calling_channel(calling);

	(void)snprintf(expression, sizeof(expression), "1 + rpcrequest(%ld, 'double', 21)",
		       channel);
	assert_evaluates(calling, expression, "43");
	(void)snprintf(expression, sizeof(expression), "rpcnotify(%ld, 'some.note', 1)", channel);
	assert_evaluates(calling, expression, "1");
	assert_int_equal(calling->notes, 1);
	(void)snprintf(expression, sizeof(expression), "rpcrequest(%ld, 'double', 'x')", channel);
	(void)calling_do(calling, "nvim_eval", expression);
	assert_int_equal(calling->endings[0].error, SPOKE_EREMOTE);
	assert_non_null(strstr(calling->endings[0].text, "a number is wanted"));
}

/* --- time */

NVIM_TEST(an_answer_that_comes_late_is_an_answer)
{
	struct calling *calling = *state;

	calling_begin_held(calling, 0, &calling->endings[0]);
	assert_int_equal(calling->endings[0].ends, 0);
	calling_release_held(calling, 7);
	assert_gives(calling_finish(calling), "7");
}

NVIM_TEST(answer_after_the_deadline_is_dropped)
{
	struct calling *calling = *state;

	calling_begin_held(calling, 100 * MS, &calling->endings[0]);
	assert_fails(calling_finish(calling), SPOKE_ETIMEOUT, "");
	assert_true(calling->endings[0].written);
	assert_int_equal(spoke_stat_get(calling->engine, SPOKE_STAT_REPLIES_LATE), 0);
	calling_release_held(calling, 7);
	calling_begin(calling, "nvim_eval", "'next'", &calling->endings[1]);
	calling_wait(calling, 2);
	assert_gives(&calling->endings[1], "\"next\"");
	assert_int_equal(calling->endings[0].ends, 1);
	assert_int_equal(spoke_stat_get(calling->engine, SPOKE_STAT_REPLIES_LATE), 1);
	assert_int_equal(spoke_stat_get(calling->engine, SPOKE_STAT_CONNECTED), 1);
}

/* --- ends */

static bool has_ended(void *arg)
{
	return nvim_ended(arg);
}

NVIM_TEST(calls_in_flight_are_lost_once_when_neovim_is_killed)
{
	struct calling *calling = *state;

	calling_begin_held(calling, 0, &calling->endings[1]);
	nvim_signal(&calling->nvim, SIGKILL);
	calling_wait(calling, 2);
	assert_fails(&calling->endings[1], SPOKE_ELOST, "");
	assert_true(calling->endings[1].written);
	nvim_until(calling->engine, has_ended, &calling->nvim);
	assert_int_equal(calling->endings[1].ends, 1);
	assert_int_equal(spoke_stat_get(calling->engine, SPOKE_STAT_CALLS_LOST), 1);
}

/* Answers sent before Neovim ends are delivered. */
NVIM_TEST(calls_in_flight_end_once_when_neovim_quits)
{
	struct calling *calling = *state;
	unsigned lost = 0;

	calling_begin(calling, "nvim_command", "qall!", &calling->endings[0]);
	for (unsigned i = 1; i < 100; i++)
		calling_begin(calling, "nvim_eval", "1", &calling->endings[i]);
	calling_wait(calling, 100);
	nvim_until(calling->engine, has_ended, &calling->nvim);
	for (unsigned i = 0; i < 100; i++) {
		const struct ending *ending = &calling->endings[i];

		assert_int_equal(ending->ends, 1);
		lost += ending->error == SPOKE_ELOST;
		if (ending->error != SPOKE_ELOST)
			assert_gives(ending, "1");
	}
	assert_int_equal(calling->endings[0].error, SPOKE_ELOST);
	assert_int_equal(spoke_stat_get(calling->engine, SPOKE_STAT_CALLS_LOST), lost);
}

static bool is_ready(void *arg)
{
	const struct calling *calling = arg;

	return spoke_consumer_ready(calling->consumer) == 1;
}

/* Over TCP it would use another port after a restart. */
CALLING_TEST(restarted_neovim_is_reconnected, .set_up = set_up_unix, .tear_down = tear_down)
{
	assert_evaluates(calling, "1", "1");
	calling_begin(calling, "nvim_command", "qall!", &calling->endings[0]);
	assert_int_equal(calling_finish(calling)->error, SPOKE_ELOST);
	nvim_until_ended(calling->engine, &calling->nvim);
	calling_start_nvim(calling);
	nvim_until(calling->engine, is_ready, calling);
	assert_evaluates(calling, "'again'", "\"again\"");
	assert_int_equal(spoke_stat_get(calling->engine, SPOKE_STAT_CONNECTED), 2);
}
