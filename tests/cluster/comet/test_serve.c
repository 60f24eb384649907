/* SPDX-License-Identifier: Apache-2.0 */
/* The service spoke.Comet: a consumer in another process pushes by RPC. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AT "127.0.0.1:20880"

static struct {
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_provider *provider;
	unsigned ends;
	char text[4096]; /* the last result, printed */
} caller;

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}

static int set_up(void **state)
{
	struct spoke_comet_options options = cometrig_begin();
	struct spoke_engine_options engine = { .env = &caller.process.env };
	const struct spoke_consumer_options consumer = {
		.url = "dubbo://" AT "/spoke.Comet",
	};

	(void)state;
	cometrig_make(&options);
	memset(&caller, 0, sizeof(caller));
	spokei_world_process_init(&caller.process, &cometrig.world);
	assert_int_equal(spoke_provider_new(cometrig.engine, NULL, &caller.provider), SPOKE_OK);
	assert_int_equal(spoke_comet_serve(cometrig.comet, caller.provider), SPOKE_OK);
	assert_int_equal(spoke_provider_listen(caller.provider, "dubbo://" AT), SPOKE_OK);
	assert_int_equal(spoke_engine_new(&engine, &caller.engine), SPOKE_OK);
	assert_int_equal(spoke_consumer_new(caller.engine, &consumer, &caller.consumer), SPOKE_OK);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spoke_engine_free(caller.engine);
	spokei_world_process_fini(&caller.process);
	cometrig_close();
	return 0;
}

FIXTURE(set_up, tear_down);

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	caller.ends++;
	if (result->error == SPOKE_OK)
		(void)spoke_value_print(result->value, caller.text, sizeof(caller.text));
	else
		(void)snprintf(caller.text, sizeof(caller.text), "error %d: %.*s",
			       (int)result->error_code, (int)result->error_text.len,
			       (const char *)result->error_text.data);
}

/* Calls a method, and returns the result as text. */
static const char *call(const char *name, struct spoke_args args)
{
	struct spoke_method *method;
	unsigned ends = caller.ends;

	assert_int_equal(spoke_consumer_method(caller.consumer, name, NULL, &method), SPOKE_OK);
	cometrig_run(100 * MS);
	assert_int_equal(spoke_call_with(method, args, note_end, NULL), SPOKE_OK);
	cometrig_run(100 * MS);
	assert_int_equal(caller.ends, ends + 1);
	return caller.text;
}

TEST(push_by_rpc_reaches_the_page)
{
	int fd = cometrig_events("user=ann", NULL);

	(void)cometrig_read(fd, NULL);
	assert_has(call("push", SPOKE_ARGS("ann", "offer", "cheap")), "\"connections\": 1");
	assert_has(caller.text, cometrig_id(1));
	assert_string_equal(cometrig_stream(fd), "1 offer cheap\n");
}

TEST(data_that_is_no_text_is_sent_as_json)
{
	int fd = cometrig_events("user=ann", NULL);

	(void)cometrig_read(fd, NULL);
	(void)call("push", SPOKE_ARGS("ann", SPOKE_NIL, SPOKE_MAP("price", 5, "new", true)));
	assert_string_equal(cometrig_stream(fd), "1 message {\"price\":5,\"new\":true}\n");
}

TEST(push_many_and_all_count)
{
	int a = cometrig_events("user=ann", NULL);
	int b = cometrig_events("user=bob", NULL);

	(void)cometrig_read(a, NULL);
	(void)cometrig_read(b, NULL);
	assert_has(call("push_many", SPOKE_ARGS(SPOKE_LIST("ann", "bob", "eve"), "e", "1")),
		   "\"users\": 2");
	assert_has(call("push_all", SPOKE_ARGS("e", "2")), "\"connections\": 2");
	assert_string_equal(cometrig_stream(a), "1 e 1\n2 e 2\n");
	assert_string_equal(cometrig_stream(b), "1 e 1\n2 e 2\n");
}

TEST(options_keep_a_message_for_its_ttl)
{
	int fd;

	(void)call("push", SPOKE_ARGS("ann", "e", "short", SPOKE_MAP("keep", true, "ttl", 100)));
	(void)call("push", SPOKE_ARGS("ann", "e", "long", SPOKE_MAP("keep", true)));
	fd = cometrig_events("user=ann", cometrig_id(0));
	assert_has(cometrig_stream(fd), "\n2 e long\n");
	assert_null(strstr(cometrig.lines, "short"));
}

TEST(listing_of_users_names_and_counts)
{
	(void)cometrig_events("user=ann", NULL);
	(void)cometrig_events("user=ann", NULL);
	assert_has(call("who", SPOKE_ARGS("ann")), "\"connections\": 2");
	assert_has(call("who", SPOKE_ARGS("bob")), "\"connections\": 0");
	assert_has(call("who", SPOKE_NO_ARGS), "\"users\": [\"ann\"]");
}

TEST(kick_by_rpc_closes)
{
	int fd = cometrig_socket("user=ann");

	(void)cometrig_frames(fd);
	assert_has(call("kick", SPOKE_ARGS("ann", "bye")), "\"connections\": 1");
	assert_string_equal(cometrig_frames(fd), "close 4004 bye\nend\n");
}

/* Sends a GET to the service; returns the response. */
static const char *get(const char *path)
{
	const struct spoke_env *env = &cometrig.client.env;
	struct spoke_address address;
	char request[256];
	int fd;

	assert_int_equal(env->net->parse(env->ctx, AT, &address), 0);
	assert_int_equal(env->net->connect(env->ctx, &address, &fd), -EINPROGRESS);
	cometrig_run(MS);
	(void)snprintf(request, sizeof(request),
		       "GET /spoke.Comet/%s HTTP/1.1\r\nHost: " AT "\r\n\r\n", path);
	cometrig_send(fd, request);
	return cometrig_read(fd, NULL);
}

TEST(methods_that_change_nothing_can_be_called_by_get)
{
	int fd = cometrig_socket("user=ann");

	(void)cometrig_frames(fd);
	assert_has(get("who"), "{\"online\":1,\"users\":[\"ann\"]}");
	assert_has(get("who?arg=ann"), "{\"connections\":1}");
	assert_has(get("stats"), "\"sockets\":1");
	assert_has(get("kick?arg=ann"), "HTTP/1.1 405 ");
	assert_has(get("push?arg=ann&arg=e&arg=x"), "HTTP/1.1 405 ");
	assert_has(get("push_all?arg=e&arg=x"), "HTTP/1.1 405 ");
	assert_string_equal(cometrig_frames(fd), "");
}

TEST(stats_have_all_figures)
{
	char name[64];

	(void)cometrig_events("user=ann", NULL);
	(void)call("stats", SPOKE_NO_ARGS);
	for (int i = 0; i < SPOKE_COMET_FIGURE_COUNT; i++) {
		(void)snprintf(name, sizeof(name),
			       "\"%s\": ", spoke_comet_figure_name((enum spoke_comet_figure)i));
		assert_has(caller.text, name);
	}
	assert_has(caller.text, "\"events\": 1");
}

TEST(wrong_arguments_are_explained)
{
	assert_has(call("push", SPOKE_ARGS("ann", 5, "x")), "the event is a text or nil");
	assert_has(call("push", SPOKE_ARGS("", "e", "x")), "error -1: push: the id of a user");
	assert_has(call("push", SPOKE_ARGS("ann")), "argument");
	assert_has(call("push", SPOKE_ARGS("ann", "e", "x", SPOKE_MAP("kept", true))), "kept");
	assert_has(call("push_many", SPOKE_ARGS("ann", "e", "x")), "error -9: ");
	assert_has(call("push_many", SPOKE_ARGS(SPOKE_LIST(1), "e", "x")), "error -9: ");
}

TEST(push_beyond_the_limit_names_the_limit)
{
	static char text[16385 + 1];

	memset(text, 'x', sizeof(text) - 1);
	assert_has(call("push", SPOKE_ARGS("ann", "e", text)),
		   "error -17: push: the data has 16385 bytes; message.max allows 16384");
	assert_has(call("push_all", SPOKE_ARGS("e", text)), "message.max allows 16384");
	assert_has(call("push", SPOKE_ARGS("ann", "e", SPOKE_MAP("a", text))),
		   "error -17: push: the data has more bytes as JSON than message.max allows, "
		   "16384");
	text[16384] = '\0';
	assert_has(call("push", SPOKE_ARGS("ann", "e", text)), "\"connections\": 0");
}

TEST(events_of_the_gateway_itself_are_refused)
{
	static const char sentence[] = "error -1: push: the events hello, lost, reconnect, ";
	int fd = cometrig_events("user=ann", NULL);

	(void)cometrig_read(fd, NULL);
	assert_has(call("push", SPOKE_ARGS("ann", "closed", "{}")), sentence);
	assert_has(call("push_many", SPOKE_ARGS(SPOKE_LIST("ann"), "hello", "{}")), sentence);
	assert_has(call("push_all", SPOKE_ARGS("reconnect", "{}")), sentence);
	assert_string_equal(cometrig_stream(fd), "");
}

TEST(requests_after_the_gateway_are_refused)
{
	spoke_comet_free(cometrig.comet);
	cometrig_run(MS);
	assert_has(call("push", SPOKE_ARGS("ann", "e", "x")), "error -7: the gateway is closed");
}
