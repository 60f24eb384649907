/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interoperability: a consumer of spoke finds a Node provider, made with sofa-rpc-node and
 * dubbo-remoting, in ZooKeeper and calls it. The peer speaks only hessian2.
 *
 * Faults of the peer that these tests meet:
 *   - its URL in the registry has no path, and an empty group;
 *   - it writes null, false, 0 and "" without the marker of an answer, if they have no Java type;
 *   - it loses the names of classes when it reads, and reads a long of more than 53 bits as text;
 *   - it answers one-way requests;
 *   - it serves neither $echo nor $invoke.
 */
#include "tests/integration/zooserver.h"
#include "tests/interop/javavalues.h"
#include "tests/interop/node.h"
#include "tests/support/test.h"

#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/stats.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE "spoke.interop.NodeService"
#define VERSION "1.0.0"
#define BEATS_WATCHED 8u

static struct stage {
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct node node;
	unsigned port;
	uint64_t beat_ns; /* heartbeat interval */
	struct spoke_builder args;
	struct spoke_builder value; /* of the last result */
	struct spoke_builder attachments;
	unsigned ends;
	int error;
	struct spoke_ticket ticket;
	char text[512];
	char class[128];
	unsigned settled;
	enum spoke_ticket_settlement settlement;
	bool is_time_over;
	struct spoke_alarm clock;
} stage;

/* --- the peer */

static void start_provider(void)
{
	char registry[32];
	char port[16];
	const char *const arguments[] = { registry, SERVICE, VERSION, port, NULL };

	(void)snprintf(registry, sizeof(registry), "127.0.0.1:%u", zooserver_port());
	(void)snprintf(port, sizeof(port), "%u", stage.port);
	node_start(&stage.node, "provider.js", arguments);
	assert_int_equal(sscanf(node_line(&stage.node, stage.engine), "ready %u", &stage.port), 1);
}

static bool is_ready(void *arg)
{
	(void)arg;
	return spoke_consumer_ready(stage.consumer) == 1;
}

static void note_settled(void *arg, const struct spoke_ticket_result *settled)
{
	(void)arg;
	stage.settled++;
	stage.settlement = settled->settlement;
}

STEP(set_up)
{
	char registry[64];
	struct spoke_consumer_options options = {
		.url = "consumer://any/" SERVICE "?version=" VERSION "&retry.period=1s",
		.registry = registry,
		.timeout_ns = NVIM_PATIENCE_NS,
		.retries = SPOKE_NONE,
		.settled = note_settled,
	};

	zooserver_make();
	(void)snprintf(registry, sizeof(registry), "zookeeper://127.0.0.1:%u", zooserver_port());
	spoke_builder_init(&stage.args, spoke_host_env(), NULL);
	spoke_builder_init(&stage.value, spoke_host_env(), NULL);
	spoke_builder_init(&stage.attachments, spoke_host_env(), NULL);
	assert_int_equal(spoke_engine_new(NULL, &stage.engine), 0);
	start_provider();
	options.heartbeat_ns = stage.beat_ns = node_interval(&stage.node);
	assert_int_equal(spoke_consumer_new(stage.engine, &options, &stage.consumer), 0);
	nvim_until(stage.engine, is_ready, NULL);
}

STEP(tear_down)
{
	node_kill(&stage.node);
	spoke_engine_free(stage.engine);
	spoke_builder_fini(&stage.args);
	spoke_builder_fini(&stage.value);
	spoke_builder_fini(&stage.attachments);
	zooserver_unmake();
}

GROUP(set_up, tear_down);

/* --- calls */

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	stage.ends++;
	stage.error = result->error;
	stage.ticket = result->ticket;
	spoke_builder_reset(&stage.value);
	spoke_pack_raw(&stage.value, (struct spoke_span){ result->value.data, result->value.len });
	(void)snprintf(stage.text, sizeof(stage.text), "%.*s", (int)result->error_text.len,
		       (const char *)result->error_text.data);
	(void)snprintf(stage.class, sizeof(stage.class), "%.*s", (int)result->error_class.len,
		       (const char *)result->error_class.data);
}

static bool has_ended(void *arg)
{
	(void)arg;
	return stage.ends > 0;
}

/* Calls with stage.args. */
static void call_with(const char *name, const struct spoke_method_options *options,
		      const struct spoke_call_options *call)
{
	struct spoke_method *method;
	struct spoke_span args;

	stage.ends = 0;
	assert_int_equal(spoke_consumer_method(stage.consumer, name, options, &method), 0);
	assert_int_equal(spoke_builder_finish(&stage.args, &args), 0);
	assert_int_equal(spoke_call(method, args, call, note_end, NULL, NULL), 0);
	spoke_builder_reset(&stage.args);
	nvim_until(stage.engine, has_ended, NULL);
}

static void call(const char *name, const char *text)
{
	if (text)
		spoke_pack_text(&stage.args, text);
	call_with(name, NULL, NULL);
}

static void assert_bytes(const char *what, const char *bytes, size_t len)
{
	struct spoke_span value;

	assert_string_equal(stage.text, "");
	assert_int_equal(stage.error, 0);
	assert_int_equal(spoke_builder_finish(&stage.value, &value), 0);
	if (value.len != len || memcmp(value.data, bytes, len) != 0) {
		char text[512];

		(void)spoke_value_print((struct spoke_value){ value.data, value.len }, text,
					sizeof(text));
		fail_msg("%s has arrived as %s, %zu bytes", what, text, value.len);
	}
}

static void assert_answered(const char *text)
{
	struct spoke_builder builder;
	unsigned char memory[512];
	struct spoke_span span;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, text);
	assert_int_equal(spoke_builder_finish(&builder, &span), 0);
	assert_bytes(text, span.data, span.len);
}

/* --- values */

NEEDS(node_absent);

TEST(node_reads_every_type_of_value)
{
	struct java_value value;

	for (size_t i = 0; java_value(i, &value); i++) {
		spoke_pack_raw(&stage.args, (struct spoke_span){ (const unsigned char *)value.bytes,
								 value.len });
		call_with("describe", NULL, NULL);
		assert_answered(value.node);
	}
}

TEST(node_sends_every_type_of_value)
{
	struct java_value value;

	for (size_t i = 0; java_value(i, &value); i++) {
		call("make", value.kind);
		assert_bytes(value.kind, value.bytes, value.len);
	}
}

TEST(declared_types_reach_node)
{
	static const struct spoke_method_options options = {
		.types = "JLjava/lang/String;Lspoke/interop/Point;"
	};

	spoke_pack_i64(&stage.args, 5);
	spoke_pack_nil(&stage.args);
	spoke_pack_map(&stage.args, 1);
	spoke_pack_text(&stage.args, "x");
	spoke_pack_i64(&stage.args, 1);
	call_with("types", &options, NULL);
	assert_answered("long,java.lang.String,spoke.interop.Point");
}

TEST(answer_without_a_marker_is_a_bad_reply)
{
	call("nothing", NULL);
	assert_int_equal(stage.error, SPOKE_EBADREPLY);
}

/* --- errors */

TEST(error_thrown_by_node_arrives_with_its_text)
{
	call("fail", "no such luck");
	assert_int_equal(stage.error, SPOKE_ESERVER);
	assert_string_equal(stage.text, "no such luck");
}

TEST(exception_of_node_arrives_with_class_and_text)
{
	call("raise", "store is full");
	assert_int_equal(stage.error, SPOKE_EREMOTE);
	assert_string_equal(stage.class, "spoke.interop.StoreException");
	assert_string_equal(stage.text, "store is full");
}

TEST(node_has_no_echo_and_no_invoke)
{
	static const struct spoke_method_options generic = { .generic = true };

	call("$echo", "x");
	assert_string_equal(stage.text, "Can not find method: " SERVICE ":" VERSION "#$echo()");
	spoke_pack_text(&stage.args, "x");
	call_with("describe", &generic, NULL);
	assert_string_equal(stage.text, "Can not find method: " SERVICE ":" VERSION "#$invoke()");
}

/* --- other calls */

TEST(attachments_reach_node)
{
	struct spoke_call_options options = { 0 };

	spoke_pack_map(&stage.attachments, 1);
	spoke_pack_text(&stage.attachments, "colour");
	spoke_pack_text(&stage.attachments, "blue");
	assert_int_equal(spoke_builder_finish_value(&stage.attachments, &options.attachments), 0);
	spoke_pack_text(&stage.args, "colour");
	call_with("attachment", NULL, &options);
	assert_answered("\"blue\"");
}

TEST(late_answer_of_node_is_dropped)
{
	const struct spoke_call_options options = { .timeout_ns = 50 * MS };

	spoke_pack_i64(&stage.args, 150);
	call_with("sleep", NULL, &options);
	assert_int_equal(stage.error, SPOKE_ETIMEOUT);
	spoke_pack_i64(&stage.args, 200);
	call_with("sleep", NULL, NULL);
	assert_answered("slept 200");
}

/* The peer answers the one-way request, too; that answer is dropped. */
TEST(one_way_call_reaches_node)
{
	const struct spoke_call_options options = { .one_way = true };
	uint64_t closed = spoke_stat_get(stage.engine, SPOKE_STAT_CLOSED);

	call_with("note", NULL, &options);
	assert_int_equal(stage.error, 0);
	call("notes", NULL);
	assert_answered("1 notes");
	assert_int_equal(spoke_stat_get(stage.engine, SPOKE_STAT_CLOSED), closed);
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

TEST(heartbeats_keep_the_link_to_node)
{
	uint64_t closed = spoke_stat_get(stage.engine, SPOKE_STAT_CLOSED);
	uint64_t answers = spoke_stat_get(stage.engine, SPOKE_STAT_PROBE_ANSWERS_READ);

	assert_int_equal(spoke_alarm_after(stage.engine, &stage.clock,
					   BEATS_WATCHED * stage.beat_ns, note_time),
			 0);
	nvim_until(stage.engine, is_time_over, NULL);
	assert_int_equal(spoke_stat_get(stage.engine, SPOKE_STAT_CLOSED), closed);
	assert_true(spoke_stat_get(stage.engine, SPOKE_STAT_PROBE_ANSWERS_READ) > answers);
	assert_true(is_ready(NULL));
}

static bool is_settled(void *arg)
{
	(void)arg;
	return stage.settled > 0;
}

TEST(call_to_a_killed_node_is_answered_when_it_is_back)
{
	const struct spoke_method_options options = { .policy = &spoke_policy_failback,
						      .retries = 100 };

	node_kill(&stage.node);
	call_with("pid", &options, NULL);
	assert_int_equal(stage.error, SPOKE_EDEFERRED);
	start_provider();
	nvim_until(stage.engine, is_settled, NULL);
	assert_int_equal(stage.settlement, SPOKE_TICKET_SUCCESS);
	call("describe", "back");
	assert_answered("\"back\"");
}
