/* SPDX-License-Identifier: Apache-2.0 */
/* Interoperability: Neovim calls spoke's provider, over TCP and over a unix socket. */
#include "tests/interop/nvim.h"
#include "tests/support/echo_handler.h"
#include "tests/support/test.h"

#include <spoke/provider.h>
#include <spoke/stats.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * --- A provider that Neovim calls. demo.EchoService: echo      answers with its argument
 * describe  answers with the types of the arguments and the length of the first text refuse
 * fails note      counts notifications large     answers with a text of 1 MiB highest   answers
 * with 2^64 - 1 hold      answers with 7, a little later keep      keeps the request in
 * provided->held, for the test to answer leave     does the same, and the provider ends who
 * answers with the service's name and demo.Default, the default service, with echo and who
 */

#define SERVICE "demo.EchoService"
#define DEFAULT_SERVICE "demo.Default"

struct provided {
	struct spoke_engine *engine;
	struct spoke_provider *provider; /* NULL: the provider has ended */
	unsigned notes;                  /* notifications served */
	char note[64];                   /* argument of the last notification, printed */
	struct spoke_request *held;
	struct spoke_alarm release;
	unsigned abandoned;
};

/* --- the handlers that Neovim calls */

#define LARGE 1048576u
#define A_LITTLE_NS UINT64_C(50000000)
/* Answers with the number of arguments, their types and the length of the first one. */
static void describe(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_builder builder;
	unsigned char memory[512];
	struct spoke_value value;
	size_t bytes = 0;

	(void)arg;
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_array(&builder, spoke_request_arg_count(request) + 1);
	while (spoke_cursor_next(&args, &value)) {
		struct spoke_span span;

		spoke_pack_text(&builder, spoke_value_type_name(spoke_value_type(value)));
		if (bytes == 0 && spoke_value_bytes(value, &span) == 0)
			bytes = span.len;
	}
	spoke_pack_u64(&builder, bytes);
	if (spoke_builder_finish_value(&builder, &value))
		spoke_reply_error(request, 2, "too many arguments");
	else
		spoke_reply(request, value);
}

static void refuse(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_error(request, 42, "no such luck: \xe2\x82\xac 5");
}

static void note(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value = { 0 };

	if (!spoke_request_two_way(request))
		provided->notes++;
	if (spoke_cursor_next(&args, &value))
		(void)spoke_value_print(value, provided->note, sizeof(provided->note));
	spoke_reply(request, (struct spoke_value){ 0 });
}

static void large(struct spoke_request *request, void *arg)
{
	static unsigned char bytes[LARGE + 5] = { 0xdb, 0, LARGE >> 16, 0, 0 };

	(void)arg;
	memset(bytes + 5, 'x', LARGE);
	spoke_reply(request, (struct spoke_value){ bytes, sizeof(bytes) });
}

static void highest(struct spoke_request *request, void *arg)
{
	static const unsigned char bytes[] = { 0xcf, 255, 255, 255, 255, 255, 255, 255, 255 };

	(void)arg;
	spoke_reply(request, (struct spoke_value){ bytes, sizeof(bytes) });
}

static void release_held(struct spoke_alarm *alarm)
{
	struct provided *provided = spoke_container_of(alarm, struct provided, release);
	static const unsigned char seven = 7;

	spoke_reply(provided->held, (struct spoke_value){ &seven, 1 });
	provided->held = NULL;
}

static void hold(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;

	provided->held = request;
	if (spoke_alarm_after(provided->engine, &provided->release, A_LITTLE_NS, release_held))
		release_held(&provided->release);
}

static void note_abandoned(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;

	(void)request;
	provided->abandoned++;
}

static void keep(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;

	provided->held = request;
	spoke_request_on_abandoned(request, note_abandoned, provided);
}

static void leave(struct spoke_request *request, void *arg)
{
	struct provided *provided = arg;

	keep(request, arg);
	spoke_provider_free(provided->provider);
	provided->provider = NULL;
}

static void who(struct spoke_request *request, void *arg)
{
	struct spoke_builder builder;
	unsigned char memory[64];
	struct spoke_value value;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, arg);
	if (spoke_builder_finish_value(&builder, &value))
		spoke_reply_error(request, 2, "too long a name");
	else
		spoke_reply(request, value);
}

/* Creates the provider on provided->engine; it does not listen yet. Returns 0 or an error. */
static int provided_serve(struct provided *provided)
{
	static char name[] = SERVICE;
	static char default_name[] = DEFAULT_SERVICE;
	static const struct spoke_provider_options options = { .default_service = DEFAULT_SERVICE };
	static const struct spoke_service_options services[] = { { .name = SERVICE },
								 { .name = DEFAULT_SERVICE } };
	const struct spoke_handler handlers[] = {
		{ .method = "echo", .handle = echo_handler },
		{ .method = "describe", .handle = describe },
		{ .method = "refuse", .handle = refuse },
		{ .method = "note", .handle = note, .arg = provided },
		{ .method = "large", .handle = large },
		{ .method = "highest", .handle = highest },
		{ .method = "hold", .handle = hold, .arg = provided },
		{ .method = "keep", .handle = keep, .arg = provided },
		{ .method = "leave", .handle = leave, .arg = provided },
		{ .method = "who", .handle = who, .arg = name },
	};
	const struct spoke_handler default_handlers[] = {
		{ .method = "echo", .handle = echo_handler },
		{ .method = "who", .handle = who, .arg = default_name },
	};
	size_t count = sizeof(handlers) / sizeof(handlers[0]);
	int error = spoke_provider_new(provided->engine, &options, &provided->provider);

	if (error == 0)
		error = spoke_provider_add(provided->provider, &services[0], handlers, count);
	if (error == 0)
		error = spoke_provider_add(provided->provider, &services[1], default_handlers, 2);
	return error;
}

/* --- interoperability: Neovim calls spoke's provider, over TCP and over a unix socket */

struct stage {
	struct provided provided;
	const char *mode; /* of sockconnect() */
	struct nvim nvim;
	char address[128]; /* address in Neovim's format */
};

static void listen_there(struct stage *stage)
{
	bool is_unix = strcmp(stage->mode, "pipe") == 0;
	char url[NVIM_PATH_MAX + 8] = "msgpack-rpc://127.0.0.1:0";
	char at[128];

	if (is_unix) {
		char path[NVIM_PATH_MAX];

		nvim_path(&stage->nvim, "socket", path);
		(void)snprintf(url, sizeof(url), "unix:%s", path);
	}
	assert_int_equal(spoke_provider_listen(stage->provided.provider, url), 0);
	assert_true(spoke_provider_address(stage->provided.provider, 0, at, sizeof(at)) > 0);
	(void)snprintf(stage->address, sizeof(stage->address), "%s",
		       is_unix ? at + strlen("unix:") : at);
}

static int set_up(void **state, const char *mode)
{
	struct stage *stage = calloc(1, sizeof(*stage));

	assert_non_null(stage);
	*state = stage;
	stage->mode = mode;
	nvim_open(&stage->nvim);
	assert_int_equal(spoke_engine_new(NULL, &stage->provided.engine), 0);
	assert_int_equal(provided_serve(&stage->provided), 0);
	listen_there(stage);
	return 0;
}

static int set_up_tcp(void **state)
{
	return set_up(state, "tcp");
}

static int set_up_unix(void **state)
{
	return set_up(state, "pipe");
}

STEP(tear_down)
{
	struct stage *stage = *state;

	nvim_close(&stage->nvim);
	if (stage->provided.held)
		spoke_reply(stage->provided.held, (struct spoke_value){ 0 });
	spoke_engine_free(stage->provided.engine);
	free(stage);
}

/* Runs a script; client.vim lists the functions that it may call. */
static void start(struct stage *stage, const char *script)
{
	static const char *const arguments[] = { "-S", TESTS_INTEROP "/client.vim", NULL };
	char path[NVIM_PATH_MAX];
	char mode[32];
	char address[160];
	char script_at[128];
	char findings_at[128];
	const char *environment[] = { mode, address, script_at, findings_at, NULL };

	(void)snprintf(mode, sizeof(mode), "SPOKE_MODE=%s", stage->mode);
	(void)snprintf(address, sizeof(address), "SPOKE_ADDRESS=%s", stage->address);
	nvim_path(&stage->nvim, "script.vim", path);
	(void)snprintf(script_at, sizeof(script_at), "SPOKE_SCRIPT=%s", path);
	nvim_path(&stage->nvim, "findings", path);
	(void)snprintf(findings_at, sizeof(findings_at), "SPOKE_FINDINGS=%s", path);
	nvim_write(&stage->nvim, "script.vim", script);
	nvim_start(&stage->nvim, arguments, environment);
}

/* Runs a script to its end and checks that it reports no error. */
static void run(struct stage *stage, const char *script)
{
	char findings[4096];

	start(stage, script);
	nvim_until_ended(stage->provided.engine, &stage->nvim);
	assert_int_equal(stage->nvim.status, 0);
	nvim_read(&stage->nvim, "findings", findings, sizeof(findings));
	assert_string_equal(findings, "done\n");
}

static uint64_t stat_of(const struct stage *stage, enum spoke_stat stat)
{
	return spoke_stat_get(stage->provided.engine, stat);
}

/* --- values */

NEEDS(nvim_absent);

NVIM_TEST(texts_come_back_as_they_were)
{
	run(*state,
	    "for text in ['', 'x', 'h\xc3\xa9llo \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x98\x80',"
	    " repeat('a', 31), repeat('b', 32), repeat('c', 255), repeat('d', 256),"
	    " repeat('e', 65536), \"two\\nlines\"]\n"
	    "  call Echoes(text)\n"
	    "endfor\n");
}

NVIM_TEST(numbers_come_back_as_they_were)
{
	run(*state,
	    "for number in [0, 1, 127, 128, 255, 256, 65535, 65536, 2147483647, 2147483648,"
	    " 4294967295, 4294967296, 9223372036854775807, -1, -32, -33, -128, -129, -32768,"
	    " -32769, -2147483648, -2147483649, -9223372036854775807 - 1, 0.0, 1.5, -2.25,"
	    " 1.0e300, v:true, v:false]\n"
	    "  call Echoes(number)\n"
	    "endfor\n");
}

NVIM_TEST(nil_is_echoed_and_is_the_result_of_nothing)
{
	run(*state, "call Echoes(v:null)\n"
		    "call Same(Call('demo.EchoService.note', 1), v:null)\n");
}

NVIM_TEST(maps_and_nested_lists_come_back_as_they_were)
{
	run(*state, "call Echoes([])\n"
		    "call Echoes({})\n"
		    "call Echoes({'a': 1, 'b': [2, 3], 'c': {'d': v:null, 'e': [[], {}]}})\n"
		    "call Echoes(range(1000))\n"
		    "call Echoes([1, [2, [3, [4, ['five', {'six': [7.5, v:true]}]]]]])\n");
}

NVIM_TEST(blobs_arrive_byte_by_byte)
{
	run(*state, "call Same(Call('demo.EchoService.describe', 0zDEADBEEF00), ['str', 5])\n");
}

NVIM_TEST(all_arguments_arrive_in_their_order)
{
	run(*state, "call Same(Call('demo.EchoService.describe'), [0])\n"
		    "call Same(Call('demo.EchoService.describe', 'abc', 1, 1.5, [], {}, v:null,"
		    " v:true), ['str', 'int', 'double', 'array', 'map', 'nil', 'bool', 3])\n");
}

NVIM_TEST(number_beyond_neovims_range_becomes_null)
{
	/* Its integers end at 2^63 - 1; it reads larger ones as null. */
	run(*state, "call Same(Call('demo.EchoService.highest'), v:null)\n"
		    "call Echoes('after it')\n");
}

NVIM_TEST(an_argument_may_be_nested_thirty_deep)
{
	run(*state, "let deep = 'x'\n"
		    "for i in range(30)\n"
		    "  let deep = [deep]\n"
		    "endfor\n"
		    "call Echoes(deep)\n");
}

NVIM_TEST(value_that_is_too_deep_closes_the_connection_only)
{
	struct stage *stage = *state;

	run(stage, "let deep = 'x'\n"
		   "for i in range(31)\n"
		   "  let deep = [deep]\n"
		   "endfor\n"
		   "call Fails('closed', 'demo.EchoService.echo', deep)\n"
		   "let g:channel = sockconnect($SPOKE_MODE, $SPOKE_ADDRESS, {'rpc': 1})\n"
		   "call Echoes('again')\n");
	assert_int_equal(stat_of(stage, SPOKE_STAT_CLOSED_PROTOCOL), 1);
}

NVIM_TEST(an_answer_may_be_large)
{
	run(*state, "call Same(Call('demo.EchoService.large'), repeat('x', 1048576))\n");
}

NVIM_TEST(an_answer_may_come_later)
{
	run(*state, "call Same(Call('demo.EchoService.hold'), 7)\n"
		    "call Echoes('after')\n");
}

NVIM_TEST(one_connection_serves_many_calls)
{
	struct stage *stage = *state;

	run(stage, "for number in range(500)\n"
		   "  call Echoes(number)\n"
		   "endfor\n");
	assert_int_equal(stat_of(stage, SPOKE_STAT_REQUESTS_OK), 500);
	assert_int_equal(stat_of(stage, SPOKE_STAT_ACCEPTED), 1);
}

/* --- names */

NVIM_TEST(a_method_without_a_dot_is_one_of_the_default_service)
{
	run(*state, "call Same(Call('echo', 'x'), 'x')\n"
		    "call Same(Call('who'), '" DEFAULT_SERVICE "')\n"
		    "call Same(Call('demo.EchoService.who'), '" SERVICE "')\n"
		    "call Same(Call('demo.Default.who'), '" DEFAULT_SERVICE "')\n");
}

NVIM_TEST(unknown_method_gives_an_error_with_its_name)
{
	struct stage *stage = *state;

	run(stage, "call Fails('the service has no such method', 'demo.EchoService.nope', 1)\n"
		   "call Fails('the service has no such method', 'nope')\n"
		   "call Fails('no such service', 'demo.Nobody.echo', 1)\n"
		   "call Echoes('still here')\n");
	assert_int_equal(stat_of(stage, SPOKE_STAT_REQUESTS_NO_SERVICE), 3);
}

NVIM_TEST(a_method_that_is_no_name_is_a_bad_request)
{
	struct stage *stage = *state;

	run(stage, "call Fails('', 'demo.EchoService.')\n"
		   "call Echoes('still here')\n");
	assert_int_equal(stat_of(stage, SPOKE_STAT_BAD_REQUESTS), 1);
}

/* --- errors and notifications */

NVIM_TEST(the_text_of_a_handlers_error_arrives)
{
	run(*state, "call Fails(\"no such luck: \xe2\x82\xac 5\", 'demo.EchoService.refuse')\n"
		    "call Fails('echo: argument missing', 'demo.EchoService.echo')\n"
		    "call Echoes('still here')\n");
}

NVIM_TEST(a_notification_is_received_once)
{
	struct stage *stage = *state;

	run(stage, "call rpcnotify(g:channel, 'demo.EchoService.note', 'fire', 'and forget')\n"
		   "call Echoes('after it')\n");
	assert_int_equal(stage->provided.notes, 1);
	assert_string_equal(stage->provided.note, "\"fire\"");
	assert_int_equal(stat_of(stage, SPOKE_STAT_REQUESTS), 2);
}

NVIM_TEST(a_notification_is_never_answered)
{
	struct stage *stage = *state;

	/* Neovim would close the channel after a reply without a request. */
	run(stage, "call rpcnotify(g:channel, 'demo.EchoService.echo', 1)\n"
		   "call rpcnotify(g:channel, 'demo.EchoService.refuse')\n"
		   "call rpcnotify(g:channel, 'demo.EchoService.nope')\n"
		   "call rpcnotify(g:channel, 'demo.Nobody.echo')\n"
		   "call rpcnotify(g:channel, 'demo.EchoService.')\n"
		   "call Echoes('still here')\n");
	assert_int_equal(stat_of(stage, SPOKE_STAT_MESSAGES_READ), 6);
	assert_int_equal(stat_of(stage, SPOKE_STAT_MESSAGES_WRITTEN), 1);
}

/* --- ends */

static bool is_held(void *arg)
{
	const struct stage *stage = arg;

	return stage->provided.held != NULL;
}

static bool is_alone(void *arg)
{
	const struct stage *stage = arg;

	return spoke_provider_connections(stage->provided.provider) == 0;
}

NVIM_TEST(peer_killed_while_waiting_is_gone_with_its_reply)
{
	struct stage *stage = *state;
	struct spoke_request *request;

	start(stage, "call Call('demo.EchoService.keep')\n");
	nvim_until(stage->provided.engine, is_held, stage);
	nvim_signal(&stage->nvim, SIGKILL);
	nvim_until_ended(stage->provided.engine, &stage->nvim);
	/* To the provider this is a peer that has shut down its sending direction and still reads.
	 */
	request = stage->provided.held;
	stage->provided.held = NULL;
	spoke_reply(request, (struct spoke_value){ 0 });
	nvim_until(stage->provided.engine, is_alone, stage);
	assert_int_equal(stat_of(stage, SPOKE_STAT_CLOSED), 1);
}

NVIM_TEST(peer_that_quits_leaves_no_connection)
{
	struct stage *stage = *state;

	run(stage, "call Echoes(1)\n");
	nvim_until(stage->provided.engine, is_alone, stage);
	assert_int_equal(stat_of(stage, SPOKE_STAT_CLOSED_BY_PEER), 1);
}

NVIM_TEST(ended_provider_fails_the_call)
{
	struct stage *stage = *state;

	run(stage, "call Fails('closed', 'demo.EchoService.leave')\n"
		   "call Fails('', 'demo.EchoService.echo', 1)\n");
	assert_int_equal(stage->provided.abandoned, 1);
}
