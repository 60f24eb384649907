/* SPDX-License-Identifier: Apache-2.0 */
/* The status of an engine, in each state. */
#include "cluster/provider/parts.h"
#include "tests/cluster/admin/statusrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <stdio.h>
#include <string.h>

#define rig clusterrig
#define look statusrig_look
#define ONE "consumers[0].endpoints[0]."
#define TWO "consumers[0].endpoints[1]."

FIXTURE(statusrig_set_up, statusrig_tear_down);

TEST(status_of_empty_engine_is_valid)
{
	struct jsonread status = look();

	EXPECT_TEXT(status, "spoke", "0.1.0");
	EXPECT_TEXT(status, "name", "a \"test\"");
	EXPECT(status, "number", 42);
	EXPECT(status, "up_ms", 0);
	assert_false(jsonread_is_true(status, "ending"));
	EXPECT(status, "wheel.pending", 0);
	assert_true(jsonread_is_null(status, "wheel.next_in_ms"));
	EXPECT(status, "wheel.slots", 256);
	EXPECT(status, "wheel.levels", 4);
	assert_int_equal(jsonread_count(jsonread_get(status, "wheel.cursor")), 4);
	assert_int_equal(jsonread_count(jsonread_get(status, "wheel.occupied")), 4);
	assert_int_equal(jsonread_count(jsonread_get(status, "wheel.occupied[0]")), 0);
	EXPECT_TEXT(status, "wheel.classes[0].name", "alarm");
	EXPECT(status, "latency.count", 0);
	EXPECT(status, "latency.p99_ns", 0);
	EXPECT(status, "pool.threads_max", 4);
	EXPECT(status, "pool.running", 0);
	EXPECT(status, "pool.queue_max", 256);
	EXPECT(status, "pool.queued", 0);
	assert_int_equal(jsonread_count(jsonread_get(status, "history")), 0);
	assert_int_equal(jsonread_count(jsonread_get(status, "consumers")), 0);
	assert_int_equal(jsonread_count(jsonread_get(status, "providers")), 0);
	assert_int_equal(jsonread_count(jsonread_get(status, "events")), 0);
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++) {
		char path[80];

		(void)snprintf(path, sizeof(path), "stats.%s", spoke_stat_name((enum spoke_stat)i));
		EXPECT(status, path, 0);
	}
}

TEST(status_shows_consumer_and_its_providers)
{
	struct spoke_method *echo;
	struct jsonread status;

	clusterrig_provide(2);
	clusterrig_consume("cluster=failover&loadbalance=roundrobin&heartbeat=5s", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 4; i++)
		clusterrig_end(clusterrig_call(echo));
	status = look();
	EXPECT_TEXT(status, "consumers[0].service", "demo.Echo");
	EXPECT_TEXT(status, "consumers[0].cluster", "failover");
	EXPECT_TEXT(status, "consumers[0].loadbalance", "roundrobin");
	EXPECT(status, "consumers[0].ready", 2);
	EXPECT(status, "consumers[0].in_flight", 0);
	EXPECT(status, "consumers[0].heartbeat_ms", 5000);
	assert_int_equal(jsonread_count(jsonread_get(status, "consumers[0].endpoints")), 2);
	EXPECT_TEXT(status, "consumers[0].endpoints[1].name", "127.0.0.1:20881");
	EXPECT_TEXT(status, "consumers[0].endpoints[1].state", "ready");
	EXPECT(status, "consumers[0].endpoints[1].calls", 2);
	EXPECT(status, "consumers[0].endpoints[1].missed", 0);
	assert_true(jsonread_is_null(status, "consumers[0].endpoints[1].retry_in_ms"));
	assert_true(jsonread_u64(status, "consumers[0].endpoints[1].heard_ago_ms") < 1000);
	EXPECT(status, "latency.count", 4);
	EXPECT(status, "stats.calls_ok", 4);
	status = statusrig_look_at(rig.providers[0].engine);
	EXPECT_TEXT(status, "providers[0].services[0]", "demo.Echo");
	EXPECT_TEXT(status, "providers[0].addresses[0]", "127.0.0.1:20880");
	EXPECT(status, "providers[0].connections", 1);
	EXPECT_TEXT(status, "providers[0].peers[0].state", "ready");
	EXPECT(status, "providers[0].peers[0].refusals", 0);
	EXPECT(status, "stats.requests_ok", 2);
}

TEST(refusals_are_shown_at_their_connection)
{
	struct spoke_list *node;

	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	clusterrig_end(clusterrig_call(clusterrig_method("echo", NULL)));
	node = rig.providers[0].provider->link->conns.next;
	spoke_container_of(node, struct spokei_conn, node)->refusals = 2;
	EXPECT(statusrig_look_at(rig.providers[0].engine), "providers[0].peers[0].refusals", 2);
}

/* Adds the timers of a class in all slots. */
static uint64_t count_in_slots(struct jsonread status, unsigned class)
{
	uint64_t sum = 0;
	char path[80];

	for (unsigned level = 0; level < 4; level++) {
		size_t count;

		(void)snprintf(path, sizeof(path), "wheel.occupied[%u]", level);
		count = jsonread_count(jsonread_get(status, path));
		assert_int_equal(count % 3, 0);
		for (size_t i = 0; i < count; i += 3) {
			(void)snprintf(path, sizeof(path), "wheel.occupied[%u][%zu]", level, i + 2);
			if (jsonread_u64(status, path) != class)
				continue;
			(void)snprintf(path, sizeof(path), "wheel.occupied[%u][%zu]", level, i + 1);
			sum += jsonread_u64(status, path);
		}
	}
	return sum;
}

/* Disarmed timers are counted in their slot, too. */
TEST(slots_show_the_classes_of_their_timers)
{
	struct jsonread status;
	unsigned classes;
	unsigned with_timers = 0;

	clusterrig_provide(2);
	clusterrig_consume("heartbeat=1s", NULL);
	clusterrig_end(clusterrig_call(clusterrig_method("echo", NULL)));
	clusterrig_pass(1500 * MS);
	status = look();
	classes = (unsigned)jsonread_count(jsonread_get(status, "wheel.classes"));
	for (unsigned i = 0; i < classes; i++) {
		char path[80];
		uint64_t pending;

		(void)snprintf(path, sizeof(path), "wheel.classes[%u].pending", i);
		pending = jsonread_u64(status, path);
		assert_true(count_in_slots(status, i) >= pending);
		with_timers += pending > 0;
	}
	assert_true(with_timers >= 2);
	assert_int_equal(count_in_slots(status, classes), 0);
}

TEST(silent_peer_is_shown_as_suspect)
{
	struct jsonread status;

	clusterrig_provide(2);
	clusterrig_consume("heartbeat=1s", NULL);
	clusterrig_pass(3500 * MS);
	spokei_world_hold(&rig.providers[1].process, 60 * SECOND);
	clusterrig_pass(2 * SECOND);
	status = look();
	EXPECT_TEXT(status, ONE "state", "ready");
	EXPECT_TEXT(status, TWO "state", "suspect");
	EXPECT(status, TWO "missed", 1);
	assert_in_range(jsonread_u64(status, TWO "heard_ago_ms"), 2000, 3000);
	assert_true(jsonread_is_null(status, TWO "retry_in_ms"));
	EXPECT(status, "consumers[0].ready", 1);
	EXPECT(status, "stats.suspected", 1);
	EXPECT_TEXT(status, "events[0].user", "");
}

TEST(lost_endpoint_is_shown_in_backoff)
{
	struct jsonread status;
	uint64_t soon_ms;

	clusterrig_provide(2);
	clusterrig_consume("heartbeat=1s", NULL);
	clusterrig_kill(0);
	clusterrig_pass(2 * SECOND);
	status = look();
	EXPECT_TEXT(status, ONE "state", "backoff");
	assert_true(jsonread_u64(status, ONE "attempt") > 1);
	soon_ms = jsonread_u64(status, ONE "retry_in_ms");
	assert_in_range(soon_ms, 1, 30000);
	assert_true(jsonread_is_null(status, ONE "heard_ago_ms"));
	EXPECT(status, ONE "connections", 0);
	clusterrig_pass(soon_ms * MS / 2);
	assert_in_range(jsonread_u64(look(), ONE "retry_in_ms"), soon_ms / 2 - 1, soon_ms / 2 + 1);
}

TEST(failing_endpoint_is_shown_as_ejected)
{
	struct spoke_method *echo;
	struct jsonread status;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	clusterrig_consume("cluster=failfast&loadbalance=roundrobin&timeout=50ms&eject.failures=2",
			   NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 4; i++)
		clusterrig_end(clusterrig_call(echo));
	status = look();
	assert_true(jsonread_is_true(status, ONE "ejected"));
	assert_false(jsonread_is_true(status, TWO "ejected"));
	EXPECT(status, ONE "failures", 2);
	EXPECT(status, "stats.calls_timeout", 2);
	EXPECT(status, "latency.count", 2);
	for (unsigned i = 0; i < rig.providers[0].held_count; i++)
		spoke_reply_error(rig.providers[0].held[i], 1, "late");
	rig.providers[0].held_count = 0;
}

/* Tickets are in order of their next attempt, not of their creation. */
TEST(tickets_are_shown_in_order_of_next_attempt)
{
	struct spoke_method *echo;
	struct jsonread status;
	uint64_t before = 0;

	clusterrig_provide(1);
	echo = clusterrig_failback("retry.period=5s&failback.tasks=50&timeout=500ms");
	clusterrig_kill(0);
	clusterrig_pass(SECOND);
	for (unsigned i = 0; i < 5; i++) {
		(void)clusterrig_deferred(echo);
		clusterrig_pass(100 * MS);
	}
	status = look();
	EXPECT(status, "consumers[0].tickets", 5);
	EXPECT(status, "consumers[0].tickets_max", 50);
	EXPECT(status, "consumers[0].in_flight", 0);
	EXPECT(status, "consumers[0].retry_period_ms", 5000);
	EXPECT(status, "consumers[0].due_more", 0);
	assert_true(jsonread_u64(status, "consumers[0].ticket_bytes") > 0);
	assert_int_equal(jsonread_count(jsonread_get(status, "consumers[0].due")), 5);
	EXPECT_TEXT(status, "consumers[0].due[0].method", "echo");
	EXPECT(status, "consumers[0].due[0].attempts", 1);
	for (unsigned i = 0; i < 5; i++) {
		char path[40];
		uint64_t in_ms;

		(void)snprintf(path, sizeof(path), "consumers[0].due[%u].in_ms", i);
		in_ms = jsonread_u64(status, path);
		assert_in_range(in_ms, before + (i > 0 ? 99 : 0), 5000);
		before = in_ms;
	}
	assert_int_equal(jsonread_u64(statusrig_look_at(rig.engine), "stats.calls_deferred"), 5);
}

/* Of more tickets than rows, the earliest are shown. */
TEST(list_of_many_tickets_shows_the_next_ones)
{
	struct spoke_method *echo;
	struct jsonread status;

	clusterrig_provide(1);
	echo = clusterrig_failback("retry.period=5s&failback.tasks=1000&timeout=500ms");
	clusterrig_kill(0);
	clusterrig_pass(SECOND);
	for (unsigned i = 0; i < 300; i++) {
		(void)clusterrig_call(echo);
		clusterrig_pass(MS);
	}
	status = look();
	EXPECT(status, "consumers[0].tickets", 300);
	assert_int_equal(jsonread_count(jsonread_get(status, "consumers[0].due")), 100);
	EXPECT(status, "consumers[0].due_more", 200);
	assert_in_range(jsonread_u64(status, "consumers[0].due[0].in_ms"), 4600, 4720);
	assert_in_range(jsonread_u64(status, "consumers[0].due[99].in_ms"), 4700, 4820);
}

/* Tickets with short pauses were created last, but are due first. */
TEST(tickets_with_shorter_pauses_are_shown_first)
{
	struct spoke_method *methods[2];
	struct jsonread status;
	uint64_t before = 0;
	char path[40];

	clusterrig_provide(1);
	methods[0] = clusterrig_failback(
		"retry.period=5s&failback.tasks=1000&upper.retry.period=1s");
	methods[1] = clusterrig_method("upper", NULL);
	clusterrig_kill(0);
	clusterrig_pass(SECOND);
	for (unsigned i = 0; i < 150; i++) {
		(void)clusterrig_call(methods[i >= 120]);
		clusterrig_pass(MS);
	}
	status = look();
	EXPECT(status, "consumers[0].due_more", 50);
	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(path, sizeof(path), "consumers[0].due[%u].method", i);
		EXPECT_TEXT(status, path, i < 30 ? "upper" : "echo");
		(void)snprintf(path, sizeof(path), "consumers[0].due[%u].in_ms", i);
		assert_true(jsonread_u64(status, path) >= before);
		before = jsonread_u64(status, path);
	}
	/* The rest are the earliest of the others. */
	assert_in_range(before, 4800, 4950);
}

TEST(history_has_one_sample_per_second)
{
	struct spoke_method *echo;
	struct jsonread status;

	clusterrig_provide(1);
	clusterrig_consume("", NULL);
	echo = clusterrig_method("echo", NULL);
	spokei_history_init(&statusrig_history, rig.engine);
	for (unsigned second = 0; second < SPOKEI_HISTORY + 5; second++) {
		for (unsigned i = 0; i < second % 3; i++) {
			spokei_world_hold(&rig.providers[0].process, 20 * MS);
			clusterrig_end(clusterrig_call(echo));
		}
		clusterrig_pass(SECOND - rig.world.now_ns % SECOND);
		spokei_engine_refresh(rig.engine);
		spokei_history_take(&statusrig_history, rig.engine);
	}
	status = look();
	assert_int_equal(jsonread_count(jsonread_get(status, "history")), SPOKEI_HISTORY);
	EXPECT(status, "history[0].calls", 5 % 3);
	EXPECT(status, "history[1].calls", 6 % 3);
	EXPECT(status, "history[2].ok", 7 % 3);
	EXPECT(status, "history[1].p99_ns", 0);
	assert_in_range(jsonread_u64(status, "history[2].p50_ns"), 19 * MS, 22 * MS);
	assert_in_range(jsonread_u64(status, "history[2].p99_ns"), 19 * MS, 22 * MS);
	assert_in_range(jsonread_u64(status, "latency.p50_ns"), 19 * MS, 22 * MS);
	assert_in_range(jsonread_u64(status, "history[3].span_ms"), 900, 1100);
	statusrig_of.history_from = statusrig_history.count - 2;
	assert_int_equal(jsonread_count(jsonread_get(look(), "history")), 2);
	statusrig_of.history_from = statusrig_history.count;
	assert_int_equal(jsonread_count(jsonread_get(look(), "history")), 0);
}

TEST(history_of_a_provider_has_ends_and_times_of_handlers)
{
	struct spoke_engine *provider;
	struct spoke_method *echo;
	struct jsonread status;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	echo = clusterrig_method("echo", NULL);
	provider = rig.providers[0].engine;
	spokei_engine_refresh(provider);
	spokei_history_init(&statusrig_history, provider);
	rig.providers[0].manner = RIG_SLOW;
	for (unsigned i = 0; i < 40; i++)
		clusterrig_end(clusterrig_call(echo));
	rig.providers[0].manner = RIG_ERROR;
	for (unsigned i = 0; i < 3; i++)
		clusterrig_end(clusterrig_call(echo));
	clusterrig_pass(SECOND - rig.world.now_ns % SECOND);
	spokei_engine_refresh(provider);
	spokei_history_take(&statusrig_history, provider);
	clusterrig_pass(SECOND);
	spokei_engine_refresh(provider);
	spokei_history_take(&statusrig_history, provider);
	status = statusrig_look_at(provider);
	EXPECT(status, "history[0].requests", 43);
	EXPECT(status, "history[0].requests_ok", 40);
	EXPECT(status, "history[0].requests_failed", 3);
	assert_in_range(jsonread_u64(status, "history[0].handler_p50_ns"), 1, 3 * MS);
	assert_in_range(jsonread_u64(status, "history[0].handler_p99_ns"),
			jsonread_u64(status, "history[0].handler_p50_ns"), 18 * MS);
	EXPECT(status, "history[1].requests_ok", 0);
	EXPECT(status, "history[1].handler_p99_ns", 0);
}

TEST(last_events_are_shown)
{
	struct jsonread status;

	for (unsigned i = 1; i <= 60; i++)
		spokei_event_of(rig.engine, SPOKE_EVENT_OF_HEARTBEAT, i == 60 ? SPOKE_ELOST : 0,
				"</script>\xff\n\"%u", i);
	status = look();
	assert_int_equal(jsonread_count(jsonread_get(status, "events")), 50);
	EXPECT(status, "events[0].number", 11);
	EXPECT_TEXT(status, "events[0].user", "heartbeat");
	EXPECT_TEXT(status, "events[0].error", "");
	EXPECT(status, "events[0].ago_ms", 0);
	EXPECT_TEXT(status, "events[49].error", "ELOST");
	EXPECT_TEXT(status, "events[49].text", "</script>\xef\xbf\xbd\n\"60");
	statusrig_of.events_from = 60;
	assert_int_equal(jsonread_count(jsonread_get(look(), "events")), 1);
	statusrig_of.events_from = 61;
	assert_int_equal(jsonread_count(jsonread_get(look(), "events")), 0);
}

/* Names of services and methods may contain almost any byte. */
TEST(hostile_names_are_escaped)
{
	static const char name[] = "</script>\"\\\xc3(\x01\xff";
	struct spoke_service_options service = { .name = name, .version = "1\"", .group = "<g>" };
	struct spoke_handler handler = { .method = name, .handle = statusrig_drop };
	struct spoke_provider *provider;
	struct jsonread status;

	statusrig_of.name = name;
	clusterrig_provide(1);
	provider = rig.providers[0].provider;
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	status = statusrig_look_at(rig.providers[0].engine);
	EXPECT_TEXT(status, "name", "</script>\"\\\xef\xbf\xbd(\x01\xef\xbf\xbd");
	EXPECT_TEXT(status, "providers[0].services[1]",
		    "<g>/</script>\"\\\xef\xbf\xbd(\x01\xef\xbf\xbd:1\"");
	(void)statusrig_metrics(rig.providers[0].engine);
}

TEST(drain_is_shown)
{
	struct jsonread status;

	clusterrig_provide(1);
	clusterrig_consume("heartbeat=1s", NULL);
	assert_int_equal(spoke_engine_drain(rig.providers[0].engine, 10 * SECOND), 0);
	clusterrig_pass(0);
	status = statusrig_look_at(rig.providers[0].engine);
	assert_true(jsonread_is_true(status, "ending"));
	clusterrig_pass(10 * MS);
	EXPECT_TEXT(look(), ONE "state", "backoff");
}
