/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interoperability: Node consumers, made with sofa-rpc-node and with apache-dubbo-js, find a
 * provider of spoke in ZooKeeper and call it. Both speak only hessian2.
 *
 * Faults of the peers that these tests meet:
 *   - both lose the names of classes when they read, and read a long of more than 53 bits as text;
 *   - apache-dubbo-js cannot send bytes, and cannot send null without a Java type;
 *   - apache-dubbo-js shows the text of an error status as raw bytes;
 *   - neither sends one-way requests, and neither answers a provider's heartbeat.
 */
#include "tests/integration/zooserver.h"
#include "tests/interop/javavalues.h"
#include "tests/interop/node.h"
#include "tests/support/echo_handler.h"
#include "tests/support/test.h"

#include <spoke/host.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE "spoke.interop.SpokeService"
#define VERSION "1.0.0"
#define BEATS_WATCHED 8u

static struct stage {
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	uint16_t port;
	struct node sofa;
	struct node dubbo_js;
	struct spoke_builder kept; /* last argument of "keep" */
	unsigned notes;
	bool is_time_over;
	struct spoke_alarm clock;
} stage;

/* --- the provider */

static void reply_text(struct spoke_request *request, const char *text)
{
	struct spoke_builder builder;
	unsigned char memory[256];
	struct spoke_value value;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, text);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	spoke_reply(request, value);
}

static struct spoke_value first_argument(struct spoke_request *request)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value value;

	return spoke_cursor_next(&args, &value) ? value : (struct spoke_value){ 0 };
}

/* Keeps its argument for the test. */
static void describe(struct spoke_request *request, void *arg)
{
	struct spoke_value value = first_argument(request);

	(void)arg;
	spoke_builder_reset(&stage.kept);
	spoke_pack_raw(&stage.kept, (struct spoke_span){ value.data, value.len });
	reply_text(request, "kept");
}

/* Answers with the value of that kind. */
static void make(struct spoke_request *request, void *arg)
{
	struct java_value value = { 0 };
	struct spoke_span kind = { 0 };

	(void)arg;
	if (spoke_value_str(first_argument(request), &kind) || !java_value_find(kind, &value))
		spoke_reply_error(request, 2, "no such kind");
	else
		spoke_reply(request,
			    (struct spoke_value){ (const unsigned char *)value.bytes, value.len });
}

static void refuse(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply_error(request, 42, "no such luck");
}

static void attachment(struct spoke_request *request, void *arg)
{
	struct spoke_span name;
	struct spoke_value value = { 0 };
	char key[64];

	(void)arg;
	assert_int_equal(spoke_value_str(first_argument(request), &name), 0);
	(void)snprintf(key, sizeof(key), "%.*s", (int)name.len, (const char *)name.data);
	if (spoke_value_get(spoke_request_attachments(request), key, &value))
		spoke_reply_error(request, 3, "no such attachment");
	else
		spoke_reply(request, value);
}

static void note(struct spoke_request *request, void *arg)
{
	(void)arg;
	stage.notes += !spoke_request_two_way(request);
	reply_text(request, "noted");
}

static void start_provider(uint64_t heartbeat_ns)
{
	static const struct spoke_handler handlers[] = {
		{ .method = "describe", .handle = describe },
		{ .method = "make", .handle = make },
		{ .method = "fail", .handle = refuse },
		{ .method = "attachment", .handle = attachment },
		{ .method = "note", .handle = note },
		{ .method = "echo", .handle = echo_handler },
	};
	static const struct spoke_service_options service = { .name = SERVICE, .version = VERSION };
	char registry[64];
	char address[64];
	const struct spoke_provider_options options = { .registry = registry,
							.warmup_ns = SPOKE_OFF,
							.heartbeat_ns = heartbeat_ns };

	(void)snprintf(registry, sizeof(registry), "zookeeper://127.0.0.1:%u", zooserver_port());
	(void)snprintf(address, sizeof(address), "dubbo://127.0.0.1:%u", stage.port);
	assert_int_equal(spoke_provider_new(stage.engine, &options, &stage.provider), 0);
	assert_int_equal(spoke_provider_add(stage.provider, &service, handlers,
					    sizeof(handlers) / sizeof(handlers[0])),
			 0);
	assert_int_equal(spoke_provider_listen(stage.provider, address), 0);
	(void)spoke_provider_address(stage.provider, 0, address, sizeof(address));
	stage.port = (uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10);
}

static bool is_registered(void *arg)
{
	(void)arg;
	return spoke_provider_registered(stage.provider, NULL) == 1;
}

static void start_consumer(struct node *node, const char *library)
{
	char registry[32];
	const char *const arguments[] = { library, registry, SERVICE, VERSION, NULL };

	(void)snprintf(registry, sizeof(registry), "127.0.0.1:%u", zooserver_port());
	node_start(node, "consumer.js", arguments);
}

STEP(set_up)
{
	zooserver_make();
	spoke_builder_init(&stage.kept, spoke_host_env(), NULL);
	assert_int_equal(spoke_engine_new(NULL, &stage.engine), 0);
	start_provider(0);
	nvim_until(stage.engine, is_registered, NULL);
	start_consumer(&stage.sofa, "sofa");
	start_consumer(&stage.dubbo_js, "dubbo-js");
	assert_string_equal(node_line(&stage.sofa, stage.engine), "= ready");
	assert_string_equal(node_line(&stage.dubbo_js, stage.engine), "= ready");
}

STEP(tear_down)
{
	node_kill(&stage.sofa);
	node_kill(&stage.dubbo_js);
	spoke_engine_free(stage.engine);
	spoke_builder_fini(&stage.kept);
	zooserver_unmake();
}

GROUP(set_up, tear_down);

/* --- values */

static void assert_kept(const struct java_value *value)
{
	struct spoke_span kept;

	assert_int_equal(spoke_builder_finish(&stage.kept, &kept), 0);
	if (kept.len != value->len || memcmp(kept.data, value->bytes, kept.len) != 0) {
		char text[512];

		(void)spoke_value_print((struct spoke_value){ kept.data, kept.len }, text,
					sizeof(text));
		fail_msg("%s has arrived as %s, %zu bytes", value->kind, text, kept.len);
	}
}

static void assert_arguments_arrive(struct node *node, const char *but)
{
	struct java_value value;

	for (size_t i = 0; java_value(i, &value); i++) {
		if (but && strcmp(value.kind, but) == 0)
			continue;
		assert_string_equal(node_ask(node, stage.engine, "call describe %s", value.kind),
				    "= \"kept\"");
		assert_kept(&value);
	}
}

static void assert_results_arrive(struct node *node)
{
	struct java_value value;

	for (size_t i = 0; java_value(i, &value); i++)
		assert_string_equal(node_ask(node, stage.engine, "text make %s", value.kind) + 2,
				    value.node);
}

NEEDS(node_absent);

TEST(sofa_sends_every_type_of_value)
{
	assert_arguments_arrive(&stage.sofa, NULL);
}

TEST(sofa_reads_every_type_of_value)
{
	assert_results_arrive(&stage.sofa);
}

TEST(dubbo_js_sends_every_type_but_bytes)
{
	assert_arguments_arrive(&stage.dubbo_js, "bytes");
}

TEST(dubbo_js_reads_every_type_of_value)
{
	assert_results_arrive(&stage.dubbo_js);
}

/* --- calls */

TEST(error_of_a_handler_is_an_exception_in_node)
{
	assert_string_equal(node_ask(&stage.sofa, stage.engine, "text fail x"),
			    "! org.apache.dubbo.rpc.RpcException: no such luck");
	assert_non_null(
		strstr(node_ask(&stage.dubbo_js, stage.engine, "text fail x"), "no such luck"));
}

TEST(unknown_method_is_an_error_in_node)
{
	assert_string_equal(node_ask(&stage.sofa, stage.engine, "text nothing x"),
			    "! Error: the service has no such method");
	assert_non_null(strstr(node_ask(&stage.dubbo_js, stage.engine, "text nothing x"),
			       "the service has no such method"));
}

TEST(attachments_of_node_arrive)
{
	struct node *nodes[] = { &stage.sofa, &stage.dubbo_js };

	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(node_ask(nodes[i], stage.engine, "attach colour blue"),
				    "= null");
		assert_string_equal(node_ask(nodes[i], stage.engine, "text attachment colour"),
				    "= \"blue\"");
	}
}

TEST(echo_answers_node)
{
	assert_string_equal(node_ask(&stage.sofa, stage.engine, "text $echo hello"), "= \"hello\"");
	assert_string_equal(node_ask(&stage.dubbo_js, stage.engine, "text $echo hello"),
			    "= \"hello\"");
}

TEST(one_way_request_of_node_is_not_answered)
{
	assert_string_equal(node_ask(&stage.sofa, stage.engine, "oneway %u note x", stage.port),
			    "= \"0 bytes of answer\"");
	assert_int_equal(stage.notes, 1);
}

/* --- links */

static void note_time(struct spoke_alarm *alarm)
{
	(void)alarm;
	stage.is_time_over = true;
}

static bool is_time_over(void *arg)
{
	(void)arg;
	return stage.is_time_over;
}

static void wait_for(uint64_t ns)
{
	stage.is_time_over = false;
	assert_int_equal(spoke_alarm_after(stage.engine, &stage.clock, ns, note_time), 0);
	nvim_until(stage.engine, is_time_over, NULL);
}

TEST(restarted_provider_is_found_again)
{
	spoke_provider_free(stage.provider);
	assert_int_equal(node_ask(&stage.sofa, stage.engine, "text $echo a")[0], '!');
	start_provider(node_interval(&stage.sofa));
	nvim_until(stage.engine, is_registered, NULL);
	while (node_ask(&stage.sofa, stage.engine, "text $echo b")[0] != '=')
		wait_for(50 * MS);
	while (node_ask(&stage.dubbo_js, stage.engine, "text $echo b")[0] != '=')
		wait_for(50 * MS);
}

static bool have_beats_come(void *arg)
{
	(void)arg;
	return spoke_stat_get(stage.engine, SPOKE_STAT_PROBES_READ) >= BEATS_WATCHED;
}

/* The peer does not answer the provider's probes, but each of its own is a sign of life. */
TEST(heartbeats_of_node_keep_its_link)
{
	uint64_t beat_ns = node_interval(&stage.sofa);
	uint64_t closed;

	node_kill(&stage.dubbo_js);
	assert_string_equal(node_ask(&stage.sofa, stage.engine, "text $echo c"), "= \"c\"");
	assert_string_equal(node_ask(&stage.sofa, stage.engine, "beat %u",
				     (unsigned)(beat_ns / 2 / MS)),
			    "= null");
	closed = spoke_stat_get(stage.engine, SPOKE_STAT_CLOSED_SILENT);
	wait_for(BEATS_WATCHED * beat_ns);
	nvim_until(stage.engine, have_beats_come, NULL);
	assert_string_equal(node_ask(&stage.sofa, stage.engine, "text $echo d"), "= \"d\"");
	assert_int_equal(spoke_stat_get(stage.engine, SPOKE_STAT_CLOSED_SILENT), closed);
}
