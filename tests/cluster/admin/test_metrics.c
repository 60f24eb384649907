/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics, checked by a strict reader of the format; metrics and status without memory. */
#include "tests/cluster/admin/promread.h"
#include "tests/cluster/admin/statusrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define rig clusterrig

static void expect(const char *metrics, const char *sample, double value)
{
	double is = promread_value(metrics, sample);

	if (is < value || is > value)
		fail_msg("%s is %f", sample, is);
}

FIXTURE(statusrig_set_up, statusrig_tear_down);

TEST(metrics_of_empty_engine_are_valid)
{
	const char *metrics = statusrig_metrics(rig.engine);

	expect(metrics, "spoke_info{version=\"0.1.0\",name=\"a \\\"test\\\"\"}", 1);
	expect(metrics, "spoke_calls_total", 0);
	expect(metrics, "spoke_read_bytes_total", 0);
	expect(metrics, "spoke_timers_pending{class=\"alarm\"}", 0);
	expect(metrics, "spoke_wheel_tick_seconds", 0.001);
	expect(metrics, "spoke_call_duration_seconds_count", 0);
	assert_non_null(strstr(metrics, "# HELP spoke_closed_silent_total connections that ended "
					"because the peer left"));
}

/* Each counter has a family of its own. */
TEST(every_counter_has_its_own_family)
{
	const char *metrics;

	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++)
		rig.engine->stats[i] = i + 1;
	metrics = statusrig_metrics(rig.engine);
	for (unsigned i = 0; i < SPOKE_STAT_COUNT; i++) {
		char name[80];

		if (i == SPOKE_STAT_BYTES_READ || i == SPOKE_STAT_BYTES_WRITTEN ||
		    i == SPOKE_STAT_ACCEPTS_REFUSED_TOTAL)
			continue;
		(void)snprintf(name, sizeof(name), "spoke_%s_total",
			       spoke_stat_name((enum spoke_stat)i));
		expect(metrics, name, i + 1);
	}
	expect(metrics, "spoke_read_bytes_total", SPOKE_STAT_BYTES_READ + 1);
	expect(metrics, "spoke_written_bytes_total", SPOKE_STAT_BYTES_WRITTEN + 1);
	expect(metrics, "spoke_accepts_refused_total", SPOKE_STAT_ACCEPTS_REFUSED_TOTAL + 1);
	memset(rig.engine->stats, 0, sizeof(rig.engine->stats));
}

TEST(metrics_show_consumer_and_provider_at_work)
{
	struct spoke_method *echo;
	const char *metrics;

	clusterrig_provide(3);
	clusterrig_consume("cluster=failback&loadbalance=roundrobin&retry.period=5s", NULL);
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 6; i++) {
		spokei_world_hold(&rig.providers[i % 3].process, 20 * MS);
		clusterrig_end(clusterrig_call(echo));
	}
	metrics = statusrig_metrics(rig.engine);
	expect(metrics, "spoke_pool_threads_max", 4);
	expect(metrics, "spoke_pool_queue_max", 256);
	expect(metrics, "spoke_pool_running", 0);
	expect(metrics, "spoke_pool_queued", 0);
	expect(metrics, "spoke_calls_ok_total", 6);
	expect(metrics, "spoke_endpoints{consumer=\"1\",service=\"demo.Echo\",state=\"ready\"}", 3);
	expect(metrics,
	       "spoke_endpoint_calls_total{consumer=\"1\",service=\"demo.Echo\","
	       "endpoint=\"127.0.0.1:20881\",wire=\"dubbo\"}",
	       2);
	expect(metrics, "spoke_call_duration_seconds_bucket{le=\"0.010000\"}", 0);
	expect(metrics, "spoke_call_duration_seconds_bucket{le=\"0.025000\"}", 6);
	expect(metrics, "spoke_call_duration_seconds_count", 6);
	expect(metrics, "spoke_tickets{consumer=\"1\",service=\"demo.Echo\"}", 0);
	for (unsigned i = 0; i < 3; i++)
		clusterrig_kill(i);
	(void)clusterrig_deferred(echo);
	metrics = statusrig_metrics(rig.engine);
	expect(metrics, "spoke_tickets{consumer=\"1\",service=\"demo.Echo\"}", 1);
	expect(metrics, "spoke_endpoints{consumer=\"1\",service=\"demo.Echo\",state=\"backoff\"}",
	       3);
	expect(metrics, "spoke_timers_pending{class=\"retry\"}", 1);
	clusterrig_start(0);
	expect(statusrig_metrics(rig.providers[0].engine),
	       "spoke_provider_connections{provider=\"1\"}", 0);
}

/* The histogram's buckets end at 49,151 and 50,175 ns around the first bound. */
TEST(latency_buckets_count_up_to_their_bounds)
{
	const char *metrics;

	spoke_histogram_add(rig.engine->latency, 49151);
	spoke_histogram_add(rig.engine->latency, 49152);
	spoke_histogram_add(rig.engine->latency, 61 * SECOND);
	metrics = statusrig_metrics(rig.engine);
	expect(metrics, "spoke_call_duration_seconds_bucket{le=\"0.000050\"}", 1);
	expect(metrics, "spoke_call_duration_seconds_bucket{le=\"0.000100\"}", 2);
	expect(metrics, "spoke_call_duration_seconds_bucket{le=\"60.000000\"}", 2);
	expect(metrics, "spoke_call_duration_seconds_bucket{le=\"+Inf\"}", 3);
	expect(metrics, "spoke_call_duration_seconds_sum", 61.000098303);
}

/* With two consumers of one service, and invalid UTF-8, no sample is repeated. */
TEST(labels_distinguish_equal_services)
{
	static const char *const more[] = {
		"dubbo://127.0.0.1:20880/demo.Echo?group=other",
		"msgpack-rpc://127.0.0.1:20880/demo.Echo",
	};
	static const struct spoke_consumer_options same = {
		.url = "dubbo://127.0.0.1:20880/demo.Echo?group=%ff%22%0a%5c&version=2",
		.more_urls = more,
		.more_count = 2,
	};
	struct spoke_consumer *consumers[2];
	const char *metrics;

	for (unsigned i = 0; i < 2; i++)
		if (spoke_consumer_new(rig.engine, &same, &consumers[i]))
			fail_msg("%s", spoke_engine_why(rig.engine));
	metrics = statusrig_metrics(rig.engine);
	expect(metrics,
	       "spoke_endpoint_ejected{consumer=\"2\",service=\"demo.Echo\","
	       "endpoint=\"127.0.0.1:20880\",wire=\"msgpack-rpc\"}",
	       0);
	expect(metrics,
	       "spoke_endpoint_ejected{consumer=\"1\",service=\"demo.Echo\","
	       "endpoint=\"127.0.0.1:20880\",wire=\"dubbo\","
	       "group=\"\xef\xbf\xbd\\\"\\n\\\\\",version=\"2\"}",
	       0);
	(void)statusrig_look();
	for (unsigned i = 0; i < 2; i++)
		spoke_consumer_free(consumers[i]);
}

/* --- memory */

typedef int (*writer)(const struct spoke_engine *engine, const struct spokei_status_of *of,
		      struct spokei_buffer *out);

/* Lets each allocation fail once. Returns the number of allocations. */
static unsigned write_without(writer write)
{
	struct spokei_buffer out;
	unsigned demands = 0;
	int error;

	do {
		spokei_buffer_init(&out, &rig.faulty.env, 1u << 20);
		assert_int_equal(spokei_buffer_append(&out, "before", 6), 0);
		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, ++demands, -ENOMEM, false);
		spokei_engine_refresh(rig.engine);
		error = write(rig.engine, &statusrig_of, &out);
		spokei_faults_heal(&rig.faulty);
		assert_true(error == 0 || error == SPOKE_ENOMEM);
		assert_memory_equal(spokei_buffer_data(&out), "before", 6);
		if (error)
			assert_int_equal(spokei_buffer_len(&out), 6);
		spokei_buffer_fini(&out);
		assert_true(demands < 100);
	} while (error);
	return demands;
}

TEST(nothing_is_written_when_memory_fails)
{
	struct spoke_method *echo;

	clusterrig_provide(2);
	clusterrig_consume("cluster=failback&retry.period=5s", NULL);
	echo = clusterrig_method("echo", NULL);
	clusterrig_end(clusterrig_call(echo));
	clusterrig_kill(0);
	clusterrig_kill(1);
	(void)clusterrig_deferred(echo);
	assert_true(write_without(spokei_status_write) > 3);
	assert_true(write_without(spokei_metrics_write) > 3);
}

TEST(nothing_is_written_when_buffer_is_full)
{
	static const writer writers[] = { spokei_status_write, spokei_metrics_write };
	struct spokei_buffer out;

	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		for (size_t max = 0; max < 3000; max += 97) {
			int error;

			spokei_buffer_init(&out, &rig.faulty.env, max);
			error = writers[i](rig.engine, &statusrig_of, &out);
			assert_true(error == SPOKE_ENOMEM || error == 0);
			assert_true(error == 0 || spokei_buffer_len(&out) == 0);
			spokei_buffer_fini(&out);
		}
	}
}

/* --- the reader */

TEST(test_reader_rejects_invalid_metrics, .bare = true)
{
	static const char *const wrong[] = {
		"",
		"a 1\n",
		"# HELP a b\na 1\n",
		"# HELP a b\n# TYPE a gauge\na 1",
		"# HELP a b\n# TYPE a gauge\na x\n",
		"# HELP a b\n# TYPE a gauge\na 1 2x\n",
		"# HELP a b\n# TYPE a counter\na 1\n",
		"# HELP a_total b\n# TYPE a_total gauge\na_total 1\n",
		"# HELP a b\n# TYPE a gauge\na 1\na 1\n",
		"# HELP a b\n# TYPE a gauge\nb 1\n",
		"# HELP a b\n# TYPE a gauge\na 1\n# HELP a b\n# TYPE a gauge\n",
		"# HELP a b\n# TYPE a gauge\na{b=\"\\x\"} 1\n",
		"# HELP a b\n# TYPE a gauge\na{b=\"\xff\"} 1\n",
		"# HELP a b\n# TYPE a gauge\na{b=\"c\" 1\n",
		"# HELP a b\n# TYPE a gauge\na{1b=\"c\"} 1\n",
		"# HELP a b\n# TYPE a gauge\n\n",
		"# HELP a\n# TYPE a gauge\n",
		"# HELP a b\n# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
		"# HELP a b\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 2\n",
		"# HELP a b\n# TYPE a histogram\na_bucket{le=\"2\"} 1\na_bucket{le=\"1\"} 1\n"
		"a_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
		"# HELP a b\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\n"
		"a_sum 1\na_count 1\n",
	};
	unsigned line;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (promread_check(wrong[i], strlen(wrong[i]), &line) == NULL)
			fail_msg("accepted: %s", wrong[i]);
}
