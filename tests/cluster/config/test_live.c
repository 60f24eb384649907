/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of a reload on existing consumers, for each kind of key. */
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/consumer/parts.h"
#include "tests/cluster/config/configrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <stdio.h>

#define rig clusterrig
#define AT "127.0.0.1:20880"

static uint64_t time_of(struct rig_call *call)
{
	uint64_t begun_ns = rig.world.now_ns;

	clusterrig_end(call);
	return (rig.world.now_ns - begun_ns) / MS;
}

/* --- settings of calls */

FIXTURE(configrig_set_up, configrig_tear_down);

TEST(timeout_of_calls_follows_reload)
{
	struct spoke_method *echo;
	struct rig_call *under_way;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	configrig_load("[consumer]\ntimeout = 200ms\n");
	configrig_consume("");
	echo = clusterrig_method("echo", NULL);
	assert_in_range(time_of(clusterrig_call(echo)), 200, 202);
	under_way = clusterrig_call(echo);
	configrig_reload("[consumer]\ntimeout = 500ms\n");
	assert_in_range(time_of(under_way), 200, 202);
	assert_int_equal(under_way->error, SPOKE_ETIMEOUT);
	assert_in_range(time_of(clusterrig_call(echo)), 500, 502);
	configrig_reload("[consumer]\ntimeout = 500ms\n[method.demo.Echo.echo]\ntimeout = 50ms\n");
	assert_in_range(time_of(clusterrig_call(echo)), 50, 52);
	configrig_reload("");
	assert_in_range(time_of(clusterrig_call(echo)), 1000, 1002);
}

TEST(policy_and_retry_period_follow_reload)
{
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	configrig_load("[consumer]\ncluster = failfast\n");
	configrig_consume("");
	echo = clusterrig_method("echo", NULL);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREFUSED);
	configrig_reload("[consumer]\ncluster = failback\nretry.period = 1s\nretries = 2\n");
	call = clusterrig_deferred(echo);
	clusterrig_pass(2500 * MS);
	assert_int_equal(call->settled_attempts, 3);
	/* A waiting ticket keeps its delay and its number of attempts. */
	call = clusterrig_deferred(echo);
	configrig_reload("[consumer]\ncluster = failback\nretry.period = 10s\nretries = 1\n");
	clusterrig_pass(900 * MS);
	assert_int_equal(call->settled, 0);
	clusterrig_pass(30 * SECOND);
	assert_int_equal(call->settled, 1);
	call = clusterrig_deferred(echo);
	clusterrig_pass(9 * SECOND);
	assert_int_equal(call->settled, 0);
	clusterrig_pass(2 * SECOND);
	assert_int_equal(call->settled_attempts, 2);
}

/* --- failback, for a program that takes no tickets */

static unsigned count_events(const char *part)
{
	struct spoke_event event;
	unsigned found = 0;

	for (uint64_t i = 1; spoke_event_get(rig.engine, i, &event) == SPOKE_OK;
	     i = event.number + 1)
		found += strstr(event.text, part) != NULL;
	return found;
}

static const char not_followed[] = "\"demo.Echo\" echo: cluster = failback is not followed";

/* Makes a consumer without `settled`, with this query. Returns its method "echo". */
static struct spoke_method *consume_without_tickets(const char *query, bool takes_tickets)
{
	struct spoke_consumer_options options = {
		.config = configrig.config,
		.takes_tickets = takes_tickets,
	};
	char url[128];

	(void)snprintf(url, sizeof(url), "%s/demo.Echo?%s", rig.providers[0].url, query);
	options.url = url;
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), 0);
	clusterrig_pass(SECOND);
	return clusterrig_method("echo", NULL);
}

TEST(file_makes_no_tickets_for_program_that_takes_none)
{
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	configrig_load("[consumer]\ncluster = failback\n");
	echo = consume_without_tickets("", false);
	assert_int_equal(count_events(not_followed), 1);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREFUSED);
	/* It is told again only after the file said something else. */
	configrig_reload("[consumer]\ncluster = failback\nretries = 2\n");
	assert_int_equal(count_events(not_followed), 1);
	configrig_reload("[consumer]\ncluster = failfast\n");
	configrig_reload("[method.demo.Echo.echo]\ncluster = failback\n");
	assert_int_equal(count_events(not_followed), 2);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_EREFUSED);
}

TEST(program_that_takes_tickets_or_chooses_failback_gets_them)
{
	static const char *const queries[] = { "retries=1", "cluster=failback&retries=1" };

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	configrig_load("[consumer]\ncluster = failback\n");
	for (unsigned i = 0; i < 2; i++) {
		struct spoke_method *echo = consume_without_tickets(queries[i], i == 0);
		struct rig_call *call = clusterrig_call(echo);

		clusterrig_end(call);
		assert_int_equal(call->error, SPOKE_EDEFERRED);
		assert_int_equal(count_events(not_followed), 0);
		call->settled = 1; /* by a ticket that nobody waits for */
		spoke_consumer_free(rig.consumer);
		rig.consumer = NULL;
		clusterrig_pass(SECOND);
	}
}

TEST(balancer_follows_reload)
{
	struct spoke_method *echo;

	clusterrig_provide(2);
	configrig_load("[consumer]\nloadbalance = consistenthash\n");
	configrig_consume("");
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 8; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_int_equal(rig.providers[0].runs * rig.providers[1].runs, 0);
	configrig_reload("[method.echo]\nloadbalance = roundrobin\n");
	for (unsigned i = 0; i < 8; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_int_equal(rig.providers[0].runs + rig.providers[1].runs, 16);
	assert_int_equal(rig.providers[0].runs * rig.providers[1].runs, 48);
}

TEST(method_limit_follows_reload_while_calls_run)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	configrig_load("[service.demo.Echo]\nactives = 2\n");
	configrig_consume("");
	echo = clusterrig_method("echo", NULL);
	(void)clusterrig_call(echo);
	(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	configrig_reload("[service.demo.Echo]\nactives = 3\n");
	(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	configrig_reload("[service.demo.Echo]\nactives = 1\n");
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	configrig_reload("");
	(void)clusterrig_call(echo);
	configrig_reload("[service.demo.Echo]\nactives = 1\n");
	clusterrig_pass(2 * SECOND);
	assert_int_equal(rig.ended, 4);
	(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	configrig_reload("[service.demo.Echo]\ntps = 1\n");
	(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	configrig_reload("[service.demo.Echo]\ntps = 1\nactives = 100\n");
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	clusterrig_pass(2 * SECOND);
}

TEST(new_limit_counts_calls_in_flight)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	configrig_load("[consumer]\ncluster = failback\n");
	configrig_consume("");
	echo = clusterrig_method("echo", NULL);
	(void)clusterrig_deferred(echo);
	rig.providers[0].manner = RIG_SILENT;
	(void)clusterrig_call(echo);
	(void)clusterrig_call(clusterrig_method("echo", NULL));
	(void)clusterrig_call(echo);
	/* Neither the ticket counts, nor the other method's call. */
	configrig_reload("[consumer]\ncluster = failback\n[service.demo.Echo]\nactives = 3\n");
	(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	rig.providers[0].manner = RIG_ECHO;
	clusterrig_pass(60 * SECOND);
	assert_int_equal(echo->limit.active, 0);
}

TEST(wait_ready_follows_reload)
{
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(1);
	configrig_load("");
	configrig_consume("");
	echo = clusterrig_method("echo", NULL);
	clusterrig_kill(0);
	clusterrig_pass(10 * MS);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_EUNAVAILABLE);
	configrig_reload("[consumer]\nwait.ready = true\n");
	call = clusterrig_call(echo);
	clusterrig_start(0);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
}

TEST(options_in_code_override_reload)
{
	const struct spoke_method_options options = { .timeout_ns = 30 * MS };
	struct spoke_method *echo;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	configrig_load("");
	configrig_consume("retries=0&timeout=70ms");
	echo = clusterrig_method("echo", &options);
	configrig_reload("[consumer]\ntimeout=1s\n[method.echo]\ntimeout=2s\n");
	assert_in_range(time_of(clusterrig_call(echo)), 30, 32);
	assert_in_range(time_of(clusterrig_call(clusterrig_method("other", NULL))), 70, 72);
}

/* --- settings of consumers */

TEST(limits_of_tickets_follow_reload)
{
	struct spoke_method *echo;
	struct rig_call *call;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_REFUSE;
	configrig_load("[consumer]\ncluster = failback\nfailback.tasks = 1\n");
	configrig_consume("");
	echo = clusterrig_method("echo", NULL);
	(void)clusterrig_deferred(echo);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ELIMIT);
	configrig_reload("[consumer]\ncluster = failback\nfailback.tasks = 2\n");
	(void)clusterrig_deferred(echo);
	call = clusterrig_call(echo);
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ELIMIT);
	configrig_reload("[consumer]\ncluster = failback\nfailback.tasks = 2\n"
			 "failback.overflow = drop-oldest\n");
	(void)clusterrig_deferred(echo);
	clusterrig_pass(MS);
	assert_int_equal(rig.settled, 1);
	configrig_reload("[consumer]\ncluster = failback\nfailback.bytes = 1KiB\n");
	assert_int_equal(rig.consumer->caller->retry.bytes_max, 1024);
	clusterrig_pass(60 * SECOND);
}

TEST(pending_max_follows_reload)
{
	struct spoke_method *echo;

	clusterrig_provide(1);
	rig.providers[0].manner = RIG_SILENT;
	configrig_load("[consumer]\npending.max = 1\nfailback.tasks = 1\n");
	configrig_consume("");
	echo = clusterrig_method("echo", NULL);
	(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	configrig_reload("[consumer]\npending.max = 40\nfailback.tasks = 1\n");
	for (unsigned i = 1; i < 40; i++)
		(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	configrig_reload("[consumer]\npending.max = 2\nfailback.tasks = 1\n");
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	clusterrig_pass(2 * SECOND);
	assert_int_equal(rig.ended, 40);
	(void)clusterrig_call(echo);
	(void)clusterrig_call(echo);
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	clusterrig_pass(2 * SECOND);
}

TEST(endpoint_actives_follows_reload)
{
	struct spoke_method *echo;

	for (unsigned providers = 1; providers <= 2; providers++) {
		clusterrig_provide(providers);
		rig.providers[0].manner = RIG_SILENT;
		rig.providers[1].manner = RIG_SILENT;
		configrig_load("[consumer]\nendpoint.actives = 1\n");
		configrig_consume("cluster=failfast");
		echo = clusterrig_method("echo", NULL);
		for (unsigned i = 0; i < providers; i++)
			(void)clusterrig_call(echo);
		assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
		configrig_reload("[consumer]\nendpoint.actives = 2\n");
		for (unsigned i = 0; i < providers; i++)
			(void)clusterrig_call(echo);
		assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
		configrig_reload("");
		(void)clusterrig_call(echo);
		clusterrig_pass(2 * SECOND);
		clusterrig_free_consumer();
		spoke_config_free(configrig.config);
		configrig.config = NULL;
		clusterrig_kill(0);
		clusterrig_pass(SECOND);
	}
}

TEST(lower_endpoint_actives_counts_calls_in_flight)
{
	struct spoke_method *echo;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_SILENT;
	configrig_load("[consumer]\nloadbalance = roundrobin\n");
	configrig_consume("cluster=failfast");
	echo = clusterrig_method("echo", NULL);
	(void)clusterrig_call(echo);
	(void)clusterrig_call(echo);
	configrig_reload("[consumer]\nloadbalance = roundrobin\nendpoint.actives = 1\n");
	assert_int_equal(clusterrig_try(echo, NULL), SPOKE_ELIMIT);
	clusterrig_pass(2 * SECOND);
}

TEST(eject_failures_follows_reload)
{
	struct spoke_endpoint_info infos[2];
	struct spoke_method *echo;

	clusterrig_provide(2);
	rig.providers[0].manner = RIG_SILENT;
	rig.providers[1].manner = RIG_SILENT;
	configrig_load("[consumer]\ncluster = failfast\neject.failures = 0\ntimeout = 10ms\n"
		       "loadbalance = roundrobin\n");
	configrig_consume("");
	echo = clusterrig_method("echo", NULL);
	for (unsigned i = 0; i < 10; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_int_equal(spoke_consumer_endpoints(rig.consumer, infos, 2), 2);
	assert_false(infos[0].ejected || infos[1].ejected);
	configrig_reload("[consumer]\ncluster = failfast\neject.failures = 2\neject.time = 1h\n"
			 "timeout = 10ms\nloadbalance = roundrobin\n");
	for (unsigned i = 0; i < 10; i++)
		clusterrig_end(clusterrig_call(echo));
	assert_int_equal(spoke_consumer_endpoints(rig.consumer, infos, 2), 2);
	assert_true(infos[0].ejected || infos[1].ejected);
}

TEST(open_links_use_reloaded_heartbeat)
{
	clusterrig_provide(1);
	configrig_load("[consumer]\nheartbeat = 1h\n");
	configrig_consume("");
	clusterrig_pass(10 * SECOND);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_PROBES_WRITTEN), 1);
	configrig_reload("[consumer]\nheartbeat = 1s\n");
	clusterrig_pass(10 * SECOND);
	assert_in_range(clusterrig_stat(SPOKE_STAT_PROBES_WRITTEN), 10, 12);
	configrig_reload("[consumer]\nheartbeat = 0\n");
	clusterrig_pass(100 * SECOND);
	assert_in_range(clusterrig_stat(SPOKE_STAT_PROBES_WRITTEN), 10, 12);
	configrig_reload("[consumer]\nheartbeat = 10s\n");
	clusterrig_pass(101 * SECOND);
	assert_in_range(clusterrig_stat(SPOKE_STAT_PROBES_WRITTEN), 20, 23);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_PROBES_MISSED), 0);
	assert_int_equal(spoke_consumer_ready(rig.consumer), 1);
}

TEST(method_of_other_service_has_version_of_that_service)
{
	const struct spoke_method_options options = { .service = "demo.Echo" };
	struct spoke_consumer_options with = { .url = "dubbo://" AT };
	struct rig_call *call;

	clusterrig_provide(1);
	configrig_load("[service.demo.Echo]\nversion = 7\n");
	with.config = configrig.config;
	assert_int_equal(spoke_consumer_new(rig.engine, &with, &rig.consumer), SPOKE_OK);
	call = clusterrig_call(clusterrig_method("echo", &options));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_ENOSERVICE);
	assert_int_equal(configrig_try("[service.demo.Other]\nversion = 7\n"), SPOKE_OK);
	call = clusterrig_call(clusterrig_method("echo", &options));
	clusterrig_end(call);
	assert_int_equal(call->error, SPOKE_OK);
}

/* Asserts whether keepalive is on. A connection with heartbeats does not need it. */
static void assert_watched(bool watched)
{
	const struct spokei_link *link = rig.consumer->link;
	const struct spokei_conn *conn = spoke_container_of(link->conns.next, struct spokei_conn,
							    node);
	const struct spokei_vnet_guard *guard = spokei_vnet_guard(rig.world.net,
								  conn->stream.watch.fd);

	assert_int_equal(guard->keepalive_ns, watched ? 60 * SECOND : 0);
}

TEST(tcp_keepalive_is_on_while_heartbeat_is_off)
{
	clusterrig_provide(1);
	configrig_load("[consumer]\nheartbeat = 5s\n");
	configrig_consume("");
	clusterrig_pass(SECOND);
	assert_watched(false);
	configrig_reload("[consumer]\nheartbeat = 0\n");
	assert_watched(true);
	configrig_reload("[consumer]\nheartbeat = 1s\n");
	assert_watched(false);
}

TEST(silent_provider_is_detected_at_new_interval)
{
	clusterrig_provide(1);
	configrig_load("[consumer]\nheartbeat = 1h\n");
	configrig_consume("");
	spokei_world_hold(&rig.providers[0].process, 1000 * SECOND);
	clusterrig_pass(60 * SECOND);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_CLOSED_SILENT), 0);
	configrig_reload("[consumer]\nheartbeat = 1s\n");
	clusterrig_pass(5 * SECOND);
	assert_int_equal(clusterrig_stat(SPOKE_STAT_CLOSED_SILENT), 1);
}
