/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway in its program: the service spoke.Comet, the status, and reloads. */
#include "cluster/admin/status.h"
#include "core/memory/buffer.h"
#include "core/virtual/files.h"
#include "tests/cluster/admin/promread.h"
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- the service spoke.Comet: a consumer in another process pushes by RPC */

#define AT "127.0.0.1:20880"

static struct {
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_provider *provider;
	unsigned ends;
	char text[4096]; /* the last result, printed */
} caller;

STEP(set_up)
{
	struct spoke_comet_options options = cometrig_begin();
	struct spoke_engine_options engine = { .env = &caller.process.env };
	const struct spoke_consumer_options consumer = {
		.url = "dubbo://" AT "/spoke.Comet",
	};

	cometrig_make(&options);
	memset(&caller, 0, sizeof(caller));
	spokei_world_process_init(&caller.process, &cometrig.world);
	assert_int_equal(spoke_provider_new(cometrig.engine, NULL, &caller.provider), SPOKE_OK);
	assert_int_equal(spoke_comet_serve(cometrig.comet, caller.provider), SPOKE_OK);
	assert_int_equal(spoke_provider_listen(caller.provider, "dubbo://" AT), SPOKE_OK);
	assert_int_equal(spoke_engine_new(&engine, &caller.engine), SPOKE_OK);
	assert_int_equal(spoke_consumer_new(caller.engine, &consumer, &caller.consumer), SPOKE_OK);
}

STEP(tear_down)
{
	spoke_engine_free(caller.engine);
	spokei_world_process_fini(&caller.process);
	cometrig_close();
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
	int fd = scene_connect(&cometrig.client.env, AT);
	char request[256];

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

/* --- A gateway in the status and the metrics of its engine */

static struct spokei_buffer out;

/* Writes one of the page's documents; valid until the next call. */
static const char *write_with(int (*write)(const struct spoke_engine *engine,
					   const struct spokei_status_of *of,
					   struct spokei_buffer *out))
{
	static struct spokei_history history;
	const struct spokei_status_of of = { .name = "rig", .history = &history };

	spokei_buffer_fini(&out);
	spokei_buffer_init(&out, &cometrig.client.env, COMETRIG_READ_MAX);
	spokei_engine_refresh(cometrig.engine);
	assert_int_equal(write(cometrig.engine, &of, &out), SPOKE_OK);
	assert_int_equal(spokei_buffer_append(&out, "", 1), SPOKE_OK);
	return (const char *)spokei_buffer_data(&out);
}

static int page_tear_down(void **state)
{
	spokei_buffer_fini(&out);
	return cometrig_tear_down(state);
}

FIXTURE(cometrig_set_up, page_tear_down);

TEST(status_has_all_figures)
{
	const char *text;

	(void)cometrig_events("user=ann", NULL);
	(void)cometrig_socket("user=ann");
	text = write_with(spokei_status_write);
	assert_non_null(strstr(text, "\"gateways\":[{\"address\":\"" COMETRIG_AT
				     "\",\"draining\":false,\"users\":1,\"online\":1,\"events\":1,"
				     "\"sockets\":1,\"polls\":0,"));
}

TEST(metrics_have_all_figures)
{
	const char *text;
	unsigned line;

	(void)cometrig_events("user=ann", NULL);
	(void)cometrig_push("ann", "e", "x");
	cometrig_run(MS);
	text = write_with(spokei_metrics_write);
	assert_null(promread_check(text, strlen(text), &line));
	assert_int_equal(promread_value(text, "spoke_comet_events{gateway=\"1\"}"), 1);
	assert_int_equal(promread_value(text, "spoke_comet_written_total{gateway=\"1\"}"), 1);
	assert_int_equal(promread_value(text, "spoke_comet_lost_total{gateway=\"1\"}"), 0);
}

TEST(engine_without_a_gateway_has_no_families)
{
	spoke_comet_free(cometrig.comet);
	cometrig_run(MS);
	assert_null(strstr(write_with(spokei_metrics_write), "spoke_comet"));
	assert_non_null(strstr(write_with(spokei_status_write), "\"gateways\":[]"));
}

/* --- A gateway with the section [comet] of a file, which changes while the gateway runs */

#define PATH "comet.conf"
#define SHOP "Origin: https://shop.example\r\n"

static struct spoke_config *config;

static char told[2048]; /* of the last reload, a sentence a line */

static void note(void *arg, const char *sentence)
{
	size_t len = strlen(told);

	(void)arg;
	(void)snprintf(told + len, sizeof(told) - len, "%s\n", sentence);
}

/* Makes a gateway with a file. */
static void begin(struct spoke_comet_options *options, const char *text)
{
	spokei_vfiles_put(cometrig.world.files, PATH, text);
	assert_int_equal(spoke_config_load(&cometrig.faulty.env, PATH, NULL, NULL, &config),
			 SPOKE_OK);
	options->config = config;
	cometrig_make(options);
}

static int reload(const char *text)
{
	told[0] = '\0';
	spokei_vfiles_put(cometrig.world.files, PATH, text);
	return spoke_config_reload(config, note, NULL);
}

static int reload_tear_down(void **state)
{
	spoke_config_free(config);
	config = NULL;
	return cometrig_tear_down(state);
}

FIXTURE(NULL, reload_tear_down);

static bool has_event(const char *text)
{
	return scene_events(cometrig.engine, text) > 0;
}

static const char *ask_with(const char *path, const char *host, const char *fields)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, host,
		       fields);
	return cometrig_ask(text);
}

static const char *post_of(unsigned len)
{
	char text[512];
	int fd = cometrig_connect();

	(void)snprintf(text, sizeof(text),
		       "POST /spoke/send?user=ann HTTP/1.1\r\n" COMETRIG_HOST COMETRIG_ORIGIN
		       "Content-Length: %u\r\n\r\n%.*s",
		       len, (int)len, "0123456789012345678901234567890123456789");
	cometrig_send(fd, text);
	return cometrig_read(fd, NULL);
}

static unsigned long retry_of(const char *user)
{
	char query[64];

	(void)snprintf(query, sizeof(query), "user=%s", user);
	return cometrig_number(cometrig_read(cometrig_events(query, NULL), NULL), "\nretry: ");
}

TEST(live_keys_change_a_running_gateway)
{
	struct spoke_comet_options options = cometrig_begin();

	begin(&options,
	      "[comet]\nretry.min = 2s\nretry.max = 2s\ntext.max = 20\nhosts = a.example\n"
	      "connections.max = 50\nbytes.max = 1MiB\nmessage.max = 9\n");
	assert_int_equal(retry_of("ann"), 2000);
	assert_has(post_of(20), "HTTP/1.1 202 ");
	assert_has(post_of(21), "limited to 20 bytes");
	assert_has(ask_with("/spoke.js", "a.example", ""), "HTTP/1.1 200 ");
	assert_has(ask_with("/spoke.js", "b.example", ""), "HTTP/1.1 421 ");
	assert_int_equal(reload("[comet]\nretry.min = 4s\nretry.max = 4s\ntext.max = 30\n"
				"hosts = b.example\nconnections.max = 60\nsend.buffer = 2KiB\n"),
			 SPOKE_OK);
	assert_string_equal(told, "");
	assert_int_equal(retry_of("bob"), 4000);
	assert_int_equal(spokei_vnet_guard(cometrig.world.net, cometrig.accepted)->send_buffer,
			 2048);
	assert_has(post_of(30), "HTTP/1.1 202 ");
	assert_has(post_of(31), "limited to 30 bytes");
	assert_has(ask_with("/spoke.js", "b.example", ""), "HTTP/1.1 200 ");
	assert_has(ask_with("/spoke.js", "a.example", ""), "HTTP/1.1 421 ");
	assert_int_equal(cometrig.comet->quota.limits.max, 60);
	/* Keys that the file does not set any more have their defaults. */
	assert_int_equal(cometrig.comet->with.message_max, 16384);
	/* Connections that were there have stayed. */
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_EVENTS), 2);
}

TEST(request_under_way_keeps_its_limit)
{
	struct spoke_comet_options options = cometrig_begin();
	int fd;

	begin(&options, "[comet]\ntext.max = 1000\n");
	fd = cometrig_connect();
	cometrig_send(fd, "POST /spoke/send?user=ann HTTP/1.1\r\n" COMETRIG_HOST COMETRIG_ORIGIN
			  "Content-Length: 10\r\n\r\n01234");
	cometrig_run(MS);
	assert_int_equal(reload("[comet]\ntext.max = 1\n"), SPOKE_OK);
	cometrig_send(fd, "56789");
	assert_has(cometrig_read(fd, NULL), "HTTP/1.1 202 ");
	assert_string_equal(cometrig.heard, "ann: 0123456789\n");
	assert_has(post_of(2), "limited to 1 bytes");
}

TEST(waiting_polls_know_their_origin_after_a_change)
{
	struct spoke_comet_options options = cometrig_begin();
	char path[96];
	char text[512];
	int fds[3];

	options.authorize = cometrig_authorize;
	begin(&options, "[comet]\norigins = https://shop.example,https://b.example\n");
	(void)snprintf(path, sizeof(path), "/spoke/poll?after=%s", cometrig_id(0));
	for (unsigned i = 0; i < 3; i++) {
		fds[i] = cometrig_connect();
		(void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n" COMETRIG_HOST "%s\r\n",
			       path, i == 1 ? "Origin: https://b.example\r\n" : SHOP);
		cometrig_send(fds[i], text);
		cometrig_run(MS);
		if (i < 2)
			assert_true(spoke_comet_admit(cometrig.asked[i].entry,
						      spoke_comet_text("ann")));
	}
	/* The third one waits for the authorizer. */
	assert_int_equal(reload("[comet]\norigins = https://m.example,https://shop.example\n"),
			 SPOKE_OK);
	assert_true(spoke_comet_admit(cometrig.asked[2].entry, spoke_comet_text("ann")));
	(void)cometrig_push("ann", "e", "x");
	for (unsigned i = 0; i < 3; i++) {
		assert_has(cometrig_read(fds[i], NULL), "\"data\":\"x\"");
		if (i == 1)
			assert_null(strstr(cometrig.got, "Access-Control"));
		else
			assert_has(cometrig.got,
				   "Access-Control-Allow-Origin: https://shop.example\r\n");
	}
}

TEST(keys_that_need_a_restart_stay_and_are_told)
{
	struct spoke_comet_options options = cometrig_begin();

	options.listen = NULL;
	options.query_user = false;
	begin(&options, "[comet]\nlisten = " COMETRIG_AT "\nquery.user = true\nkeep = 7s\n");
	assert_int_equal(reload("[comet]\nlisten = 127.0.0.1:8081\nkeep = 9s\nring.time = 9s\n"),
			 SPOKE_OK);
	assert_has(told, ":2: listen = 127.0.0.1:8081: takes effect after a restart");
	assert_has(told, ":3: keep = 9s: takes effect after a restart");
	assert_has(told, ":4: ring.time = 9s: takes effect after a restart");
	assert_has(told, ":3: query.user = true: is removed");
	assert_int_equal(cometrig.comet->with.keep_ns, 7 * SECOND);
	assert_int_equal(cometrig.comet->with.ring_ns, 60 * SECOND);
	assert_in_range(retry_of("ann"), 1000, 15000);
}

TEST(file_with_errors_changes_nothing)
{
	struct spoke_comet_options options = cometrig_begin();

	begin(&options, "[comet]\nretry.min = 2s\nretry.max = 2s\nhosts = a.example\n");
	assert_int_equal(reload("[comet]\nretry.min = 3\nhosts = b.example\n"), SPOKE_ESYNTAX);
	assert_has(told, "a duration needs a unit");
	assert_int_equal(retry_of("ann"), 2000);
	/* Values that are wrong together only. */
	assert_int_equal(reload("[comet]\nretry.min = 16s\nhosts = b.example\n"), SPOKE_EINVAL);
	assert_true(has_event(":2: retry.min = 16s: greater than retry.max, which is 15s"));
	assert_int_equal(retry_of("bob"), 2000);
	assert_has(ask_with("/spoke.js", "a.example", ""), "HTTP/1.1 200 ");
	assert_int_equal(reload("[comet]\nhosts = a.example:80\nretry.min = 1s\n"), SPOKE_ESYNTAX);
	assert_has(told, "is no host without a port");
	assert_int_equal(retry_of("eve"), 2000);
}

TEST(options_of_the_program_outlast_the_file)
{
	struct spoke_comet_options options = cometrig_begin();

	options.frame_max = 10;
	options.hosts = "a.example";
	begin(&options, "[comet]\ntext.max = 20\nhosts = b.example\n");
	for (int i = 0; i < 2; i++) {
		assert_has(post_of(11), "limited to 10 bytes");
		assert_has(ask_with("/spoke.js", "a.example", ""), "HTTP/1.1 200 ");
		assert_has(ask_with("/spoke.js", "b.example", ""), "HTTP/1.1 421 ");
		assert_int_equal(reload("[comet]\ntext.max = 30\nhosts = c.example\n"), SPOKE_OK);
	}
}

TEST(limits_below_what_is_in_use_let_in_no_more)
{
	const struct spoke_comet_message message = { .data = spoke_comet_text("0123456789") };
	struct spoke_comet_options options = cometrig_begin();
	int fds[4];

	begin(&options, "[comet]\nmessage.max = 20KiB\nring.bytes = 20KiB\n");
	for (int i = 0; i < 4; i++)
		fds[i] = cometrig_events("user=ann", NULL);
	for (int i = 0; i < 30; i++) {
		static char large[1001];

		memset(large, 'x', sizeof(large) - 1);
		(void)cometrig_push("ann", "e", large);
	}
	assert_int_equal(reload("[comet]\nbytes.max = 4KiB\nconnections.per.user.max = 2\n"
				"ring.bytes = 20KiB\n"),
			 SPOKE_OK);
	assert_true(cometrig_figure(SPOKE_COMET_FIGURE_BYTES) > 4096);
	assert_int_equal(spoke_comet_push(cometrig.comet, spoke_comet_text("ann"), &message, NULL),
			 SPOKE_ELIMIT);
	/* The next connection of the user closes all that are too many. */
	(void)cometrig_events("user=ann", NULL);
	assert_int_equal(spoke_comet_connections(cometrig.comet, spoke_comet_text("ann")), 2);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_CLOSED_EXTRA), 3);
	cometrig_hang_up(fds[3]);
}

TEST(reload_without_memory_keeps_the_settings)
{
	struct spoke_comet_options options = cometrig_begin();
	int failures = 0;
	int error;

	begin(&options, "[comet]\nhosts = a.example\n");
	for (uint64_t nth = 1; nth < 20; nth++) {
		spokei_faults_fail(&cometrig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = reload("[comet]\nhosts = b.example\n");
		spokei_faults_heal(&cometrig.faulty);
		if (error == SPOKE_OK)
			break;
		assert_int_equal(error, SPOKE_ENOMEM);
		assert_string_equal(cometrig.comet->with.hosts, "a.example");
		failures++;
	}
	assert_in_range(failures, 1, 18);
	assert_string_equal(cometrig.comet->with.hosts, "b.example");
}

TEST(config_may_be_freed_before_the_gateway)
{
	struct spoke_comet_options options = cometrig_begin();

	begin(&options, "[comet]\nretry.min = 2s\nretry.max = 2s\n");
	spoke_config_free(config);
	config = NULL;
	assert_int_equal(retry_of("ann"), 2000);
}

TEST(gateway_may_be_freed_before_the_config)
{
	struct spoke_comet_options options = cometrig_begin();

	begin(&options, "[comet]\nretry.min = 2s\n");
	spoke_comet_free(cometrig.comet);
	assert_int_equal(reload("[comet]\nretry.min = 3s\n"), SPOKE_OK);
	cometrig_run(MS);
	assert_int_equal(reload("[comet]\nretry.min = 4s\n"), SPOKE_OK);
}

TEST(config_of_another_engine_is_refused)
{
	struct spoke_comet_options options = cometrig_begin();
	struct spoke_engine_options with = { .env = &cometrig.client.env };
	struct spoke_engine *other;
	struct spoke_comet *comet;

	begin(&options, "[comet]\n");
	assert_int_equal(spoke_engine_new(&with, &other), SPOKE_OK);
	options.listen = "127.0.0.1:8081";
	assert_int_equal(spoke_comet_new(other, &options, &comet), SPOKE_EINVAL);
	assert_has(spoke_engine_why(other), "belongs to another engine");
	spoke_engine_free(other);
}
