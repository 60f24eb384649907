/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine shows of itself as JSON, in the states that it can be in. */
#include "cluster/admin/status.h"
#include "tests/cluster/clusterrig.h"
#include "tests/cluster/jsonread.h"

#include <stdio.h>
#include <string.h>

#define rig clusterrig

static struct spokei_history history;
static struct spokei_buffer out;

static int set_up(void **state)
{
	if (clusterrig_set_up(state))
		return -1;
	spokei_buffer_init(&out, &rig.faulty.env, 1u << 20);
	spokei_history_init(&history, rig.engine);
	return 0;
}

static int tear_down(void **state)
{
	spokei_buffer_fini(&out);
	return clusterrig_tear_down(state);
}

static struct spokei_status_of about(const struct spoke_engine *engine)
{
	return (struct spokei_status_of){
		.name = "a \"test\"",
		.number = 42,
		.born_ns = spoke_engine_now(engine),
		.history = &history,
	};
}

static struct jsonread look_as(const struct spoke_engine *engine, const struct spokei_status_of *of)
{
	const char *text;
	const char *wrong;
	size_t at;

	spokei_buffer_truncate(&out, 0);
	assert_int_equal(spokei_status_write(engine, of, &out), 0);
	text = (const char *)spokei_buffer_data(&out);
	wrong = jsonread_check(text, spokei_buffer_len(&out), &at);
	if (wrong)
		fail_msg("%s, at %zu: %.60s", wrong, at, text + at);
	assert_null(memchr(text, '\n', spokei_buffer_len(&out)));
	assert_null(memchr(text, '<', spokei_buffer_len(&out)));
	return jsonread_of(text, spokei_buffer_len(&out));
}

static struct jsonread look_at(const struct spoke_engine *engine)
{
	struct spokei_status_of of = about(engine);

	return look_as(engine, &of);
}

static struct jsonread look(void)
{
	return look_at(rig.engine);
}

#define EXPECT_TEXT(status, path, text) assert_string_equal(jsonread_text(status, path), text)
#define EXPECT(status, path, number) assert_int_equal(jsonread_u64(status, path), number)

static void an_engine_with_nothing_on_it(void **state)
{
	struct jsonread status = look();

	(void)state;
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

static void a_consumer_and_its_providers(void **state)
{
	struct spoke_method *echo;
	struct jsonread status;

	(void)state;
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
	status = look_at(rig.providers[0].engine);
	EXPECT_TEXT(status, "providers[0].services[0]", "demo.Echo");
	EXPECT_TEXT(status, "providers[0].addresses[0]", "127.0.0.1:20880");
	EXPECT(status, "providers[0].connections", 1);
	EXPECT_TEXT(status, "providers[0].peers[0].state", "ready");
	EXPECT(status, "stats.requests_ok", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_engine_with_nothing_on_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_consumer_and_its_providers, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
