/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics, read by a strict reader; and that all figures balance at each step. */
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "core/engine/figures.h"
#include "tests/cluster/admin/promread.h"
#include "tests/cluster/admin/statusrig.h"
#include "tests/support/balance.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * --- the metrics, checked by a strict reader of the format; metrics and status without memory
 */

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
	struct spokei_figures *figures = spokei_figures_or_other(rig.engine, SPOKEI_FIGURES_CALLS,
								 spokei_span(NULL, 0),
								 spokei_span(NULL, 0));
	const char *metrics;

	spokei_histogram_add(&figures->took, 49151);
	spokei_histogram_add(&figures->took, 49152);
	spokei_histogram_add(&figures->took, 61 * SECOND);
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

/*
 * --- calls and requests end in all ways, and the figures balance at each step: counters of
 * methods add up to those of their engine, everything that has begun has ended or is under way,
 * and at the end all that the metrics show of the present is as it was before
 */

#define TIMEOUT (200 * MS)

static struct spoke_method *echo;

static struct spoke_method *pool;

static bool seen[SPOKEI_FIGURES_COUNTERS];

static struct rig_provider *it(void)
{
	return &rig.providers[0];
}

static void serve_in_pool(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void start_provider(void)
{
	static const struct spoke_service_options service = { .name = "demo.Pool" };
	static const struct spoke_handler handler = { .handle = serve_in_pool,
						      .flags = SPOKE_HANDLER_POOL };

	if (it()->engine == NULL)
		clusterrig_start(0);
	assert_int_equal(spoke_provider_add(it()->provider, &service, &handler, 1), 0);
	it()->engine->env->loop->pool_limit(it()->engine->loop, 1, 2);
}

static void start_consumer(void)
{
	const struct spoke_method_options options = { .service = "demo.Pool" };

	clusterrig_consume("cluster=failfast&eject.failures=0&timeout=200ms&wait.ready=true", NULL);
	echo = clusterrig_method("echo", NULL);
	pool = clusterrig_method("work", &options);
}

static int set_up(void **state)
{
	if (statusrig_set_up(state))
		return -1;
	clusterrig_provide(1);
	start_provider();
	start_consumer();
	return 0;
}

FIXTURE(set_up, statusrig_tear_down);

/* --- what has to balance */

static void balance(struct spoke_engine *engine, uint64_t calls, uint64_t requests)
{
	char text[BALANCE_TEXT];
	const char *wrong = balance_wrong(engine, calls, requests, text);

	if (wrong)
		fail_msg("%s", wrong);
}

/* Lets some time pass, and checks both engines. */
static void pass(uint64_t ns)
{
	clusterrig_pass(ns);
	balance(rig.engine, rig.call_count - rig.ended, 0);
	if (it()->engine)
		balance(it()->engine, 0, it()->provider->link->serving_count);
}

static void call(struct spoke_method *method, int error)
{
	const struct rig_call *made = clusterrig_call(method);

	for (unsigned i = 0; i < 100 && made->ends == 0; i++)
		pass(TIMEOUT / 20);
	assert_int_equal(made->ends, 1);
	assert_int_equal(made->error, error);
}

/* Notes the ends that were counted, before an engine goes. */
static void note_seen(void)
{
	for (unsigned i = 0; i < SPOKEI_FIGURES_COUNTERS; i++)
		if (clusterrig_stat(balance_stat(i)) > 0 ||
		    spoke_stat_get(it()->engine, balance_stat(i)) > 0)
			seen[i] = true;
}

/* --- all ways to end */

static void answer_held(void)
{
	while (it()->held_count > 0)
		spoke_reply(it()->held[--it()->held_count], (struct spoke_value){ NULL, 0 });
	pass(10 * MS);
}

static void end_at_the_provider(void)
{
	static const struct {
		enum rig_manner manner;
		int error;
	} ways[] = {
		{ RIG_ERROR, SPOKE_EREMOTE },     { RIG_REFUSE, SPOKE_EREFUSED },
		{ RIG_FORBID, SPOKE_EFORBIDDEN }, { RIG_SLOW, SPOKE_OK },
		{ RIG_SILENT, SPOKE_ETIMEOUT },   { RIG_ECHO, SPOKE_OK },
	};
	const struct spoke_method_options nowhere = { .service = "demo.None" };
	const struct spoke_call_options one_way = { .one_way = true };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		it()->manner = ways[i].manner;
		call(echo, ways[i].error);
	}
	answer_held(); /* late */
	call(clusterrig_method("echo", &nowhere), SPOKE_ENOSERVICE);
	(void)clusterrig_call_with(echo, &one_way);
	pass(10 * MS);
}

static void release_pool(void)
{
	it()->process.pool_is_busy = false;
	call(echo, SPOKE_OK); /* it turns */
	pass(10 * MS);
}

static void end_in_the_pool(void)
{
	const struct spoke_call_options one_way = { .one_way = true };

	call(pool, SPOKE_OK);
	/* It has room for two. The first one's deadline passes while it waits. */
	it()->process.pool_is_busy = true;
	(void)clusterrig_call(pool);
	(void)clusterrig_call_with(pool, &one_way);
	pass(10 * MS);
	call(pool, SPOKE_EREFUSED);
	pass(2 * TIMEOUT);
	release_pool();
}

/* The connection goes while requests wait for the pool, for their handlers, and for answers. */
static void end_with_the_connection(void)
{
	it()->process.pool_is_busy = true;
	it()->manner = RIG_SILENT;
	(void)clusterrig_call(pool);
	(void)clusterrig_call(echo);
	pass(10 * MS);
	clusterrig_free_consumer();
	pass(100 * MS);
	assert_int_equal(rig.ended, rig.call_count);
	answer_held();
	it()->manner = RIG_ECHO;
	start_consumer();
	release_pool();
}

static void end_at_the_consumer(void)
{
	static const unsigned char nil = 0xc0;
	const struct spoke_method_options falls_back = { .fallback = { &nil, 1 } };
	const struct spoke_call_options failback = { .policy = &spoke_policy_failback };
	static const unsigned char no_value = 0xc1;
	struct spoke_method *safe = clusterrig_method("safe", &falls_back);
	struct rig_call *made;

	it()->manner = RIG_SILENT;
	call(safe, SPOKE_OK);
	made = clusterrig_call(echo);
	pass(10 * MS);
	assert_true(spoke_call_cancel(rig.consumer, made->name));
	pass(10 * MS);
	made = clusterrig_call_with(echo, &failback);
	pass(2 * TIMEOUT);
	assert_int_equal(made->error, SPOKE_EDEFERRED);
	assert_true(spoke_ticket_cancel(rig.consumer, made->ticket));
	assert_int_not_equal(spoke_call(echo, (struct spoke_span){ &no_value, 1 }, NULL, NULL, NULL,
					NULL),
			     SPOKE_OK);
	answer_held();
}

static void end_with_the_provider(void)
{
	(void)clusterrig_call(echo);
	(void)clusterrig_call(pool);
	pass(10 * MS);
	note_seen();
	clusterrig_kill(0);
	pass(100 * MS);
	call(echo, SPOKE_ETIMEOUT_UNSENT);
	start_provider();
	for (unsigned i = 0; i < 100 && spoke_consumer_ready(rig.consumer) == 0; i++)
		pass(100 * MS);
}

/* Compares all present numbers of the metrics but times with those of before. Returns how many
 * there are. */
static unsigned compare(const char *before, const char *after)
{
	unsigned count = 0;
	bool gauge = false;
	size_t len;

	for (const char *line = before; *line; line += len + (line[len] != '\0')) {
		char text[256];

		len = strcspn(line, "\n");
		assert_true(len + 2 < sizeof(text));
		(void)snprintf(text, sizeof(text), "\n%.*s\n", (int)len, line);
		if (*line == '#') {
			gauge = strstr(text, " gauge\n") && !strstr(text, "_seconds ");
			continue;
		}
		if (!gauge)
			continue;
		count++;
		if (strstr(after, text) == NULL)
			fail_msg("no longer so: %s", text + 1);
	}
	return count;
}

TEST(figures_balance_however_calls_end)
{
	static char before[1 << 18];

	call(echo, SPOKE_OK);
	call(pool, SPOKE_OK);
	(void)snprintf(before, sizeof(before), "%s", statusrig_metrics(it()->engine));
	end_at_the_provider();
	end_in_the_pool();
	end_with_the_connection();
	end_at_the_consumer();
	assert_true(compare(before, statusrig_metrics(it()->engine)) > 10);
	end_with_the_provider();
	note_seen();
	for (unsigned i = 0; i < SPOKEI_FIGURES_COUNTERS; i++)
		if (balance_stat(i) != SPOKE_STAT_CALLS_FAILED && !seen[i])
			fail_msg("no %s", spoke_stat_name(balance_stat(i)));
}
