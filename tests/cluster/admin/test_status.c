/* SPDX-License-Identifier: Apache-2.0 */
/* The status of an engine in each state, with its methods, slow calls and leases. */
#include "cluster/admin/status.h"
#include "cluster/provider/parts.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/memory/buffer.h"
#include "tests/cluster/admin/promread.h"
#include "tests/cluster/admin/statusrig.h"
#include "tests/cluster/lease/leaserig.h"
#include "tests/core/json/jsonread.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <stdio.h>
#include <string.h>

/* --- the status of an engine, in each state */

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

/* --- methods in the status whose policy or balancer is not that of their consumer */

TEST(methods_with_another_policy_or_balancer_are_shown)
{
	static const struct spoke_method_options own = { .balancer = &spoke_balancer_two_choices };
	static const struct spoke_method_options in_order = { .policy = &spoke_policy_available };
	struct jsonread status;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failover&loadbalance=roundrobin", NULL);
	(void)clusterrig_method("echo", NULL);
	(void)clusterrig_method("spread", &own);
	(void)clusterrig_method("first", &in_order);
	status = statusrig_look();
	EXPECT_TEXT(status, "consumers[0].loadbalance", "roundrobin");
	assert_int_equal(jsonread_count(jsonread_get(status, "consumers[0].apart")), 2);
	EXPECT_TEXT(status, "consumers[0].apart[0].method", "spread");
	EXPECT_TEXT(status, "consumers[0].apart[0].cluster", "failover");
	EXPECT_TEXT(status, "consumers[0].apart[0].loadbalance", "twochoices");
	EXPECT_TEXT(status, "consumers[0].apart[1].method", "first");
	EXPECT_TEXT(status, "consumers[0].apart[1].cluster", "available");
	EXPECT_TEXT(status, "consumers[0].apart[1].loadbalance", "");
	EXPECT(status, "consumers[0].apart_more", 0);
}

/* --- the lists of slow calls and requests */

/* Makes a call that takes so long, and two ms for the network. */
static void call_for(struct spoke_method *method, uint64_t ns)
{
	spokei_world_hold(&rig.providers[0].process, ns);
	clusterrig_end(clusterrig_call(method));
}

static struct spoke_method *begin(const char *query)
{
	clusterrig_provide(1);
	clusterrig_consume(query, NULL);
	return clusterrig_method("echo", NULL);
}

TEST(slow_calls_are_listed_with_their_peer_and_times)
{
	struct spoke_method *echo = begin("cluster=failfast&slow.after=50ms&timeout=10s");
	struct jsonread status;

	call_for(echo, 20 * MS);
	assert_null(rig.engine->slow);
	call_for(echo, 60 * MS);
	call_for(echo, 200 * MS);
	call_for(echo, 100 * MS);
	status = statusrig_look();
	EXPECT(status, "slow.count", 3);
	assert_int_equal(jsonread_count(jsonread_get(status, "slow.last")), 3);
	EXPECT(status, "slow.last[0].number", 3);
	EXPECT(status, "slow.last[2].number", 1);
	EXPECT_TEXT(status, "slow.last[0].side", "calls");
	EXPECT_TEXT(status, "slow.last[0].service", "demo.Echo");
	EXPECT_TEXT(status, "slow.last[0].method", "echo");
	EXPECT_TEXT(status, "slow.last[0].peer", "127.0.0.1:20880");
	EXPECT_TEXT(status, "slow.last[0].error", "");
	assert_true(jsonread_u64(status, "slow.last[0].took_ns") >= 100 * MS);
	assert_true(jsonread_u64(status, "slow.last[0].took_ns") < 150 * MS);
	EXPECT(status, "slow.slowest[0].number", 2);
	EXPECT(status, "slow.slowest[1].number", 3);
	EXPECT(status, "slow.slowest[2].number", 1);
}

TEST(slow_call_that_fails_has_its_error)
{
	struct spoke_method *echo = begin("cluster=failfast&timeout=2s");
	struct jsonread status;

	rig.providers[0].manner = RIG_SILENT;
	clusterrig_end(clusterrig_call(echo));
	status = statusrig_look();
	EXPECT(status, "slow.count", 1);
	EXPECT_TEXT(status, "slow.last[0].error", "ETIMEOUT");
	assert_true(jsonread_u64(status, "slow.last[0].took_ns") >= 1999 * MS);
}

TEST(request_of_a_slow_handler_is_listed_at_its_provider)
{
	struct spoke_method *echo = begin("cluster=failfast&timeout=10s&slow.after=0");
	struct jsonread status;

	rig.providers[0].manner = RIG_SLOW;
	rig.providers[0].least_ns = 1500 * MS;
	clusterrig_end(clusterrig_call(echo));
	assert_null(rig.engine->slow);
	status = statusrig_look_at(rig.providers[0].engine);
	EXPECT(status, "slow.count", 1);
	EXPECT_TEXT(status, "slow.last[0].side", "requests");
	EXPECT_TEXT(status, "slow.last[0].method", "*");
	EXPECT(status, "slow.last[0].queued_ns", 0);
	assert_true(jsonread_u64(status, "slow.last[0].took_ns") >= 1500 * MS);
	assert_non_null(strstr(jsonread_text(status, "slow.last[0].peer"), "127.0.0.1:"));
}

TEST(a_method_has_a_threshold_of_its_own)
{
	const struct spoke_method_options patient = { .slow_after_ns = 5 * SECOND };
	const struct spoke_method_options off = { .slow_after_ns = SPOKE_OFF };

	(void)begin("cluster=failfast&timeout=10s&other.slow.after=100ms");
	call_for(clusterrig_method("patient", &patient), 2 * SECOND);
	call_for(clusterrig_method("off", &off), 2 * SECOND);
	assert_null(rig.engine->slow);
	call_for(clusterrig_method("other", NULL), 150 * MS);
	assert_int_equal(rig.engine->slow->count, 1);
}

TEST(lists_are_bounded_and_keep_the_slowest)
{
	struct spoke_method *echo = begin("cluster=failfast&slow.after=1ms&timeout=10s");
	const struct spokei_slow *slow;

	for (unsigned i = 0; i < 3 * SPOKEI_SLOW_ROWS; i++)
		call_for(echo, (1 + i * 37 % (3 * SPOKEI_SLOW_ROWS)) * 10 * MS);
	slow = rig.engine->slow;
	assert_int_equal(slow->count, 3 * SPOKEI_SLOW_ROWS);
	assert_int_equal(slow->slowest_count, SPOKEI_SLOW_ROWS);
	for (unsigned i = 1; i < SPOKEI_SLOW_ROWS; i++)
		assert_true(slow->slowest[i - 1].took_ns + slow->slowest[i - 1].queued_ns >=
			    slow->slowest[i].took_ns + slow->slowest[i].queued_ns);
	assert_true(slow->slowest[SPOKEI_SLOW_ROWS - 1].took_ns +
			    slow->slowest[SPOKEI_SLOW_ROWS - 1].queued_ns >
		    2 * SPOKEI_SLOW_ROWS * 10 * MS);
	assert_int_equal(jsonread_count(jsonread_get(statusrig_look(), "slow.last")),
			 SPOKEI_SLOW_ROWS);
}

TEST(name_of_a_peer_is_cut_at_its_beginning)
{
	const struct spokei_figures *figures;
	struct spokei_slow_row row = { 0 };
	char name[SPOKEI_SLOW_PEER + 8];

	(void)begin("cluster=failfast");
	figures = spokei_figures_next(rig.engine, NULL);
	row.figures = figures;
	memset(name, 'a', sizeof(name));
	memcpy(name + sizeof(name) - 7, ":20880", 7);
	spokei_slow_note(&row, name);
	assert_string_equal(rig.engine->slow->last[1].peer, name + 8);
}

/* --- leases in the status, as JSON and as text, and in the metrics */

#define EXPECT_TEXT(status, path, text) assert_string_equal(jsonread_text(status, path), text)
#define EXPECT(status, path, number) assert_int_equal(jsonread_u64(status, path), number)

static struct spokei_buffer out;

static struct spokei_history history;

static struct spokei_status_of of = { .name = "test", .number = 1, .history = &history };

static int set_up(void **state)
{
	if (leaserig_set_up(state))
		return -1;
	spokei_buffer_init(&out, &leaserig.one.faulty.env, 1u << 20);
	spokei_engine_refresh(leaserig.one.engine);
	spokei_history_init(&history, leaserig.one.engine);
	return 0;
}

static int tear_down(void **state)
{
	spokei_buffer_fini(&out);
	return leaserig_tear_down(state);
}

FIXTURE(set_up, tear_down);

/* Writes with one of the functions, and returns the text. */
static const char *write_with(int (*write)(const struct spoke_engine *engine,
					   const struct spokei_status_of *of,
					   struct spokei_buffer *out))
{
	const char *text;

	spokei_engine_refresh(leaserig.one.engine);
	spokei_buffer_truncate(&out, 0);
	assert_int_equal(write(leaserig.one.engine, &of, &out), 0);
	assert_int_equal(spokei_buffer_append(&out, "", 1), 0);
	text = (const char *)spokei_buffer_data(&out);
	return text ? text : "";
}

static struct jsonread leases_look(void)
{
	const char *text = write_with(spokei_status_write);
	const char *wrong;
	size_t at;

	wrong = jsonread_check(text, strlen(text), &at);
	if (wrong)
		fail_msg("%s, at %zu: %.60s", wrong, at, text + at);
	return jsonread_of(text, strlen(text));
}

static void expect_metric(const char *name, double value)
{
	const char *text = write_with(spokei_metrics_write);
	char sample[128];
	const char *wrong;
	unsigned line;
	double is;

	wrong = promread_check(text, strlen(text), &line);
	if (wrong)
		fail_msg("line %u: %s", line, wrong);
	(void)snprintf(sample, sizeof(sample), "%s{leases=\"1\",store=\"" LEASERIG_AT "\"}", name);
	is = promread_value(text, sample);
	if (is < value - 1e-6 || is > value + 1e-6)
		fail_msg("%s is %f, not %f", sample, is, value);
}

TEST(held_and_waiting_leases_are_shown)
{
	struct jsonread status;

	(void)leaserig_hold("reports");
	(void)leaserig_wait("reports");
	leaserig_pass(SECOND);
	status = leases_look();
	EXPECT_TEXT(status, "leases[0].store", LEASERIG_AT);
	EXPECT(status, "leases[0].held", 1);
	EXPECT(status, "leases[0].asked", 1);
	EXPECT(status, "leases[0].more", 0);
	EXPECT(status, "leases_more", 0);
	EXPECT_TEXT(status, "leases[0].shown[0].name", "reports");
	EXPECT_TEXT(status, "leases[0].shown[0].state", "held");
	EXPECT(status, "leases[0].shown[0].fence", 1);
	EXPECT_TEXT(status, "leases[0].shown[1].state", "waiting");
	EXPECT(status, "leases[0].shown[1].fence", 0);
	assert_in_range(jsonread_u64(status, "leases[0].shown[0].left_ms"),
			(LEASERIG_TTL - LEASERIG_GUARD - 2 * SECOND) / MS,
			(LEASERIG_TTL - LEASERIG_GUARD - SECOND) / MS);
	EXPECT(status, "stats.leases_held", 1);
	expect_metric("spoke_leases_connected", 1);
	expect_metric("spoke_leases_held", 1);
	expect_metric("spoke_leases_asked", 1);
}

TEST(without_leases_the_list_is_empty)
{
	spoke_leases_free(leaserig.one.leases);
	leaserig.one.leases = NULL;
	leaserig_pass(SECOND);
	assert_int_equal(jsonread_count(jsonread_get(leases_look(), "leases")), 0);
	assert_null(strstr(write_with(spokei_metrics_write), "spoke_leases_held{"));
}

TEST(of_many_leases_a_part_is_shown)
{
	struct jsonread status;
	char name[32];

	for (unsigned i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "lease %u", i);
		(void)leaserig_wait(name);
	}
	leaserig_pass(SECOND);
	status = leases_look();
	EXPECT(status, "leases[0].held", 500);
	EXPECT(status, "leases[0].more", 500 - SPOKEI_STATUS_ROWS);
	expect_metric("spoke_leases_held", 500);
}

TEST(a_store_that_is_away_is_shown_as_such)
{
	(void)leaserig_hold("reports");
	fakeredis_kill(&leaserig.server);
	leaserig_pass(SECOND);
	assert_false(jsonread_is_true(leases_look(), "leases[0].connected"));
	expect_metric("spoke_leases_connected", 0);
	leaserig_pass(LEASERIG_TTL);
	expect_metric("spoke_leases_held", 0);
	expect_metric("spoke_leases_left_min_seconds", 0);
}

/* --- the figures of methods: what is counted, on both sides, and how many sets there are */

#define LABELS "{service=\"demo.Echo\",method=\"echo\""
#define SERVED "{service=\"demo.Echo\",method=\"*\""

static void expect(const char *metrics, const char *sample, double value)
{
	double is = promread_value(metrics, sample);

	if (is < value || is > value)
		fail_msg("%s is %f", sample, is);
}

static const struct spokei_figures *figures_at(struct spoke_engine *engine, const char *method)
{
	const struct spokei_figures *figures = NULL;

	while ((figures = spokei_figures_next(engine, figures)) != NULL)
		if (strcmp(figures->method, method) == 0)
			return figures;
	fail_msg("no figures of %s", method);
	return NULL;
}

FIXTURE(statusrig_set_up, statusrig_tear_down);

TEST(calls_and_requests_are_counted_by_method)
{
	struct spoke_method *echo;
	const char *metrics;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 5; i++)
		clusterrig_end(clusterrig_call(echo));
	rig.providers[0].manner = RIG_ERROR;
	clusterrig_end(clusterrig_call(echo));
	metrics = statusrig_metrics(rig.engine);
	expect(metrics, "spoke_method_calls_total" LABELS "}", 6);
	expect(metrics, "spoke_method_call_ends_total" LABELS ",result=\"ok\"}", 5);
	expect(metrics, "spoke_method_call_ends_total" LABELS ",result=\"remote\"}", 1);
	expect(metrics, "spoke_method_call_ends_total" LABELS ",result=\"timeout\"}", 0);
	expect(metrics, "spoke_method_calls_in_flight" LABELS "}", 0);
	expect(metrics, "spoke_method_call_duration_seconds_count" LABELS "}", 6);
	metrics = statusrig_metrics(rig.providers[0].engine);
	expect(metrics, "spoke_method_requests_total" SERVED "}", 6);
	expect(metrics, "spoke_method_request_ends_total" SERVED ",result=\"ok\"}", 5);
	expect(metrics, "spoke_method_request_ends_total" SERVED ",result=\"error\"}", 1);
	expect(metrics, "spoke_method_requests_in_flight" SERVED "}", 0);
	assert_null(strstr(metrics, "spoke_method_pool_wait_seconds_count"));
}

TEST(requests_are_in_flight_until_their_caller_has_gone)
{
	struct jsonread status;
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast&timeout=1s", NULL);
	echo = clusterrig_method("echo", NULL);
	rig.providers[0].manner = RIG_SILENT;
	(void)clusterrig_call(echo);
	clusterrig_pass(100 * MS);
	status = statusrig_look();
	EXPECT_TEXT(status, "methods[0].side", "calls");
	EXPECT_TEXT(status, "methods[0].service", "demo.Echo");
	EXPECT_TEXT(status, "methods[0].method", "echo");
	EXPECT(status, "methods[0].begun", 1);
	EXPECT(status, "methods[0].in_flight", 1);
	assert_int_equal(spokei_figures_in_flight(figures_at(rig.providers[0].engine, "*")), 1);
	clusterrig_pass(2 * SECOND);
	status = statusrig_look();
	EXPECT(status, "methods[0].in_flight", 0);
	EXPECT(status, "methods[0].failed", 1);
	EXPECT(status, "methods[0].ends.timeout", 1);
	clusterrig_free_consumer();
	clusterrig_pass(SECOND);
	assert_int_equal(spokei_figures_in_flight(figures_at(rig.providers[0].engine, "*")), 0);
	assert_int_equal(spokei_figures_get(figures_at(rig.providers[0].engine, "*"),
					    SPOKE_STAT_REQUESTS_ABANDONED),
			 1);
}

/* Each answer takes 2 ms to 20 ms after its request was read. */
TEST(time_in_the_handler_lasts_until_the_answer)
{
	const struct spokei_figures *figures;
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	echo = clusterrig_method("echo", NULL);
	rig.providers[0].manner = RIG_SLOW;
	rig.providers[0].least_ns = 2 * MS;
	for (unsigned i = 0; i < 40; i++)
		clusterrig_end(clusterrig_call(echo));
	figures = figures_at(rig.providers[0].engine, "*");
	assert_int_equal(figures->took.count, 40);
	assert_true(spoke_histogram_percentile(&figures->took, 1000) >= 2 * MS);
	assert_true(figures->took.max <= 20 * MS);
	assert_true(figures_at(rig.engine, "echo")->took.sum >= figures->took.sum);
}

TEST(time_until_answer_outside_of_turn_is_counted)
{
	static const unsigned char nil = 0xc0;
	struct rig_provider *provider = &rig.providers[0];

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast&timeout=10s", NULL);
	provider->manner = RIG_SILENT;
	(void)clusterrig_call(clusterrig_method("echo", NULL));
	clusterrig_pass(10 * MS);
	assert_int_equal(provider->held_count, 1);
	spokei_world_stall(&rig.world, 3 * SECOND);
	spoke_reply(provider->held[--provider->held_count], (struct spoke_value){ &nil, 1 });
	assert_true(figures_at(provider->engine, "*")->took.max >= 3 * SECOND);
}

/* The first ones are all timed; later one stands for the others. */
TEST(requests_that_are_not_timed_are_counted_with_one_that_is)
{
	const struct spokei_figures *figures;
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	echo = clusterrig_method("echo", NULL);
	clusterrig_end(clusterrig_call(echo));
	figures = figures_at(rig.providers[0].engine, "*");
	assert_int_equal(figures->took.count, 1);
	for (unsigned i = 1; i < 1000; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_true(figures->took.count > 1000 - SPOKEI_FIGURES_TIMED);
	assert_true(figures->took.count <= 1000);
	assert_int_equal(figures->took.count + figures->timed_for - 1 - figures->until_timed, 1000);
}

TEST(tickets_are_not_in_flight)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	echo = clusterrig_failback("retry.period=5s");
	clusterrig_kill(0);
	(void)clusterrig_deferred(echo);
	assert_int_equal(spokei_figures_in_flight(figures_at(rig.engine, "echo")), 0);
	assert_int_equal(spokei_figures_get(figures_at(rig.engine, "echo"),
					    SPOKE_STAT_CALLS_DEFERRED),
			 1);
}

TEST(refused_calls_were_not_begun)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	echo = clusterrig_method("echo", NULL);
	clusterrig_kill(0);
	clusterrig_pass(100 * MS);
	assert_int_not_equal(clusterrig_try(echo, NULL), 0);
	assert_int_equal(spokei_figures_get(figures_at(rig.engine, "echo"), SPOKE_STAT_CALLS), 0);
	assert_int_equal(spokei_figures_get(figures_at(rig.engine, "echo"),
					    SPOKE_STAT_CALLS_REFUSED),
			 1);
}

TEST(figures_outlive_their_consumer)
{
	const struct spokei_figures *figures;

	clusterrig_provide(1);
	for (unsigned i = 1; i <= 3; i++) {
		clusterrig_consume("cluster=failfast", NULL);
		clusterrig_end(clusterrig_call(clusterrig_method("echo", NULL)));
		clusterrig_end(clusterrig_call(clusterrig_method("echo", NULL)));
		clusterrig_free_consumer();
		clusterrig_pass(SECOND);
		figures = figures_at(rig.engine, "echo");
		assert_int_equal(spokei_figures_get(figures, SPOKE_STAT_CALLS_OK), 2 * i);
		assert_null(spokei_figures_next(rig.engine, figures));
	}
}

TEST(methods_beyond_the_limit_share_one_set)
{
	const char *metrics;
	unsigned sets = 0;

	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	for (unsigned i = 0; i < 2 * SPOKEI_FIGURES_MAX; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "echo%u", i);
		clusterrig_end(clusterrig_call(clusterrig_method(name, NULL)));
	}
	for (const struct spokei_figures *at = NULL;
	     (at = spokei_figures_next(rig.engine, at)) != NULL;)
		sets++;
	assert_true(sets < SPOKEI_FIGURES_MAX);
	metrics = statusrig_metrics(rig.engine);
	expect(metrics, "spoke_method_calls_total{service=\"other\",method=\"other\"}",
	       2 * SPOKEI_FIGURES_MAX - sets + 1);
	EXPECT(statusrig_look(), "methods_more", sets - SPOKEI_STATUS_ROWS);
}

/* A name may contain any byte. */
TEST(names_are_escaped)
{
	clusterrig_provide(1);
	clusterrig_consume("cluster=failfast", NULL);
	(void)clusterrig_method("a\"b\nc\\", NULL);
	expect(statusrig_metrics(rig.engine),
	       "spoke_method_calls_total{service=\"demo.Echo\",method=\"a\\\"b\\nc\\\\\"}", 0);
	EXPECT_TEXT(statusrig_look(), "methods[0].method", "a\"b\nc\\");
}
