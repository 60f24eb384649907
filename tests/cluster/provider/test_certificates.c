/* SPDX-License-Identifier: Apache-2.0 */
/* The events before the end of a provider's certificate, and files that change while it runs. */
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "core/engine/engine.h"
#include "core/virtual/files.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "tests/transport/stream/issuer.h"
#include "transport/stream/tls/tls.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/stats.h>
#include <spoke/tls.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DAY (86400 * SECOND)

FIXTURE(issuer_set_up, issuer_tear_down);

static int provide(struct spoke_engine *engine, struct spoke_provider **ret_provider)
{
	const struct spoke_tls_options tls = { .cert = "/provider.pem", .key = "/provider.key" };
	const struct spoke_provider_options options = { .tls = &tls };

	spokei_vfiles_put(issuer.world.files, "/provider.pem", issuer.issued.cert);
	spokei_vfiles_put(issuer.world.files, "/provider.key", issuer.issued.key);
	return spoke_provider_new(engine, &options, ret_provider);
}

/* Starts a provider whose certificate has so many days. */
static void start(uint32_t days, struct spoke_engine **ret_engine,
		  struct spoke_provider **ret_provider)
{
	const struct spoke_engine_options options = { .env = &issuer.process.env };

	assert_int_equal(issuer_issue("dns:a.test", days), 0);
	assert_int_equal(spoke_engine_new(&options, ret_engine), 0);
	assert_int_equal(provide(*ret_engine, ret_provider), 0);
}

static void nothing(struct spoke_alarm *alarm)
{
	(void)alarm;
}

TEST(events_come_14_days_1_day_and_0_before_the_end)
{
	struct spoke_provider *provider;
	struct spoke_engine *engine;
	uint64_t begin_ns = issuer.world.now_ns;

	start(20, &engine, &provider);
	spokei_world_run(&issuer.world, begin_ns + 6 * DAY - 60 * SECOND);
	assert_int_equal(scene_events(engine, "certificate"), 0);
	spokei_world_run(&issuer.world, begin_ns + 6 * DAY + 60 * SECOND);
	assert_int_equal(scene_events(engine, "ends in 14 days"), 1);
	spokei_world_run(&issuer.world, begin_ns + 19 * DAY - 60 * SECOND);
	assert_int_equal(scene_events(engine, "certificate"), 1);
	spokei_world_run(&issuer.world, begin_ns + 19 * DAY + 60 * SECOND);
	assert_int_equal(scene_events(engine, "ends in 24 hours"), 1);
	spokei_world_run(&issuer.world, begin_ns + 20 * DAY - 60 * SECOND);
	assert_int_equal(scene_events(engine, "certificate"), 2);
	spokei_world_run(&issuer.world, begin_ns + 20 * DAY + 60 * SECOND);
	assert_int_equal(scene_events(engine, "has expired"), 1);
	spokei_world_run(&issuer.world, begin_ns + 22 * DAY);
	assert_int_equal(scene_events(engine, "certificate"), 3);
	spoke_provider_free(provider);
	spoke_engine_free(engine);
}

TEST(certificate_that_ends_soon_has_an_event_at_the_start)
{
	struct spoke_provider *provider;
	struct spoke_engine *engine;

	start(3, &engine, &provider);
	assert_int_equal(scene_events(engine, "ends in 3 days"), 1);
	spoke_provider_free(provider);
	spoke_engine_free(engine);
	assert_int_equal(issuer.process.blocks, 0);
}

/* The range of the wheel ends 2^62 ns after the engine was made. */
TEST(look_that_gets_no_timer_is_the_last_and_says_so)
{
	struct spoke_provider *provider;
	struct spoke_engine *engine;

	start(20, &engine, &provider);
	spokei_world_run(&issuer.world, issuer.world.now_ns + SECOND);
	issuer.world.now_ns += (UINT64_C(1) << 62) - 1800 * SECOND;
	spokei_world_run(&issuer.world, issuer.world.now_ns + SECOND);
	assert_int_equal(scene_events(engine, "has expired"), 1);
	assert_int_equal(scene_events(engine, "no timer is left; the end of the certificate of "
					      "this provider is not reported any more"),
			 1);
	spokei_world_run(&issuer.world, issuer.world.now_ns + 600 * SECOND);
	assert_int_equal(scene_events(engine, "certificate"), 2);
	spoke_provider_free(provider);
	spoke_engine_free(engine);
}

/* Without a timer its end could not be reported, so there is no such provider. */
TEST(provider_that_cannot_watch_its_certificate_is_not_made)
{
	struct spoke_engine_options options = { .env = &issuer.process.env, .timers_max = 8 };
	struct spoke_alarm alarms[8] = { { .due = NULL } };
	struct spoke_provider *provider;
	struct spoke_engine *engine;
	unsigned count = 0;

	assert_int_equal(issuer_issue("dns:a.test", 20), 0);
	assert_int_equal(spoke_engine_new(&options, &engine), 0);
	while (count < 8 && spoke_alarm_after(engine, &alarms[count], SECOND, nothing) == 0)
		count++;
	assert_in_range(count, 1, 8);
	assert_int_equal(provide(engine, &provider), SPOKE_ELIMIT);
	for (unsigned i = 0; i < count; i++)
		assert_true(spoke_alarm_cancel(&alarms[i]));
	assert_int_equal(provide(engine, &provider), 0);
	spoke_provider_free(provider);
	spoke_engine_free(engine);
}

/* Waits for the look at the files. */
static void pass_a_minute(void)
{
	spokei_world_run(&issuer.world, issuer.world.now_ns + 61 * SECOND);
}

TEST(changed_files_are_taken_all_or_none)
{
	static char damaged[sizeof(issuer.issued.cert) * 2];
	struct spoke_provider *provider;
	struct spoke_engine *engine;

	start(20, &engine, &provider);
	pass_a_minute();
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TLS_RELOADS), 0);
	/* The certificate comes before its key. */
	assert_int_equal(issuer_issue("dns:b.test", 20), 0);
	spokei_vfiles_put(issuer.world.files, "/provider.pem", issuer.issued.cert);
	pass_a_minute();
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TLS_RELOADS), 0);
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TLS_RELOADS_FAILED), 1);
	assert_int_equal(scene_events(engine, "the changed files are not used"), 1);
	spokei_vfiles_put(issuer.world.files, "/provider.key", issuer.issued.key);
	pass_a_minute();
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TLS_RELOADS), 1);
	/* A chain whose second certificate is half written. */
	(void)snprintf(damaged, sizeof(damaged), "%s%.*s", issuer.issued.cert,
		       (int)(strlen(issuer.ca.cert) / 2), issuer.ca.cert);
	spokei_vfiles_put(issuer.world.files, "/provider.pem", damaged);
	pass_a_minute();
	assert_int_equal(scene_events(engine, "is damaged"), 1);
	(void)snprintf(damaged, sizeof(damaged), "%s%s", issuer.issued.cert, issuer.ca.cert);
	spokei_vfiles_put(issuer.world.files, "/provider.pem", damaged);
	pass_a_minute();
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TLS_RELOADS), 2);
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TLS_RELOADS_FAILED), 2);
	spoke_provider_free(provider);
	spoke_engine_free(engine);
	assert_int_equal(issuer.process.blocks, 0);
}

static ssize_t find_wide(void *ctx, const char *path, void *bytes, size_t size)
{
	(void)ctx;
	(void)path;
	(void)bytes;
	(void)size;
	return -EPERM;
}

/* Its content is the same as before. */
TEST(key_that_others_may_read_now_has_an_event)
{
	const struct spoke_files *usual = issuer.process.env.files;
	struct spoke_files wide = *usual;
	struct spoke_provider *provider;
	struct spoke_engine *engine;

	start(20, &engine, &provider);
	wide.read_secret = find_wide;
	issuer.process.env.files = &wide;
	pass_a_minute();
	assert_int_equal(scene_events(engine, "others may read /provider.key"), 1);
	issuer.process.env.files = usual;
	pass_a_minute();
	issuer.process.env.files = &wide;
	pass_a_minute();
	assert_int_equal(scene_events(engine, "others may read /provider.key"), 2);
	issuer.process.env.files = usual;
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TLS_RELOADS), 0);
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TLS_RELOADS_FAILED), 2);
	spoke_provider_free(provider);
	spoke_engine_free(engine);
}

/* Both sides show one certificate, and have a file of authorities each. */
static const struct spoke_tls_options served = { .cert = "/a.pem",
						 .key = "/a.key",
						 .ca = "/served.pem" };
static const struct spoke_tls_options calling = {
	.cert = "/a.pem", .key = "/a.key", .ca = "/calling.pem", .peers = "dns:a.test"
};
static const struct spoke_provider_options with = { .tls = &served };
static const struct spoke_consumer_options to = { .url = "dubbo://127.0.0.1:20880/demo.Echo",
						  .tls = &calling };

static void put_both_sides(void)
{
	assert_int_equal(issuer_issue("dns:a.test", 20), 0);
	spokei_vfiles_put(issuer.world.files, "/a.pem", issuer.issued.cert);
	spokei_vfiles_put(issuer.world.files, "/a.key", issuer.issued.key);
	spokei_vfiles_put(issuer.world.files, "/served.pem", issuer.ca.cert);
	spokei_vfiles_put(issuer.world.files, "/calling.pem", issuer.ca.cert);
}

TEST(live_connections_are_drained_when_their_authority_goes)
{
	const struct spoke_engine_options options = { .env = &issuer.process.env };
	const struct issue_options stranger = { .name = "stranger" };
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_engine *engine;

	put_both_sides();
	assert_int_equal(spoke_engine_new(&options, &engine), 0);
	assert_int_equal(spoke_provider_new(engine, &with, &provider), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://127.0.0.1:20880"), 0);
	assert_int_equal(spoke_consumer_new(engine, &to, &consumer), 0);
	pass_a_minute();
	assert_int_equal(spoke_provider_connections(provider), 1);
	assert_int_equal(scene_events(engine, "are drained"), 0);
	assert_int_equal(issue_make(&issuer.process.env, &stranger, &issuer.issued), 0);
	spokei_vfiles_put(issuer.world.files, "/served.pem", issuer.issued.cert);
	pass_a_minute();
	assert_int_equal(scene_events(engine, "1 connections are drained"), 1);
	assert_int_equal(spoke_provider_connections(provider), 0);
	spoke_consumer_free(consumer);
	spoke_provider_free(provider);
	spoke_engine_free(engine);
	assert_int_equal(issuer.process.blocks, 0);
}

enum {
	CROWD = 40, /* more than are verified in a turn */
};

/* A provider whose authorities are replaced twice. */
static struct {
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	bool again;   /* the second time */
	bool drained; /* an event has said that all connections are */
} replaced;

/* Replaces the authorities again, while connections wait to be verified after the first time. */
static void replace_again(struct spokei_world_process *turned)
{
	(void)turned;
	replaced.drained |= scene_events(replaced.engine, "40 connections are drained") > 0;
	if (replaced.again || spoke_stat_get(replaced.engine, SPOKE_STAT_TLS_RELOADS) == 0)
		return;
	replaced.again = true;
	spokei_vfiles_put(issuer.world.files, "/served.pem", issuer.issued.cert);
	spokei_tls_reload(replaced.provider->tls);
}

TEST(connections_are_verified_after_each_of_two_quick_changes)
{
	const struct spoke_engine_options options = { .env = &issuer.process.env };
	const struct issue_options stranger = { .name = "stranger" };
	static char both[2 * sizeof(issuer.ca.cert)];
	struct spoke_consumer *crowd[CROWD];

	memset(&replaced, 0, sizeof(replaced));
	put_both_sides();
	assert_int_equal(spoke_engine_new(&options, &replaced.engine), 0);
	assert_int_equal(spoke_provider_new(replaced.engine, &with, &replaced.provider), 0);
	assert_int_equal(spoke_provider_listen(replaced.provider, "dubbo://127.0.0.1:20880"), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		assert_int_equal(spoke_consumer_new(replaced.engine, &to, &crowd[i]), 0);
		spokei_world_run(&issuer.world, issuer.world.now_ns + SECOND);
	}
	assert_int_equal(spoke_provider_connections(replaced.provider), CROWD);
	assert_int_equal(issue_make(&issuer.process.env, &stranger, &issuer.issued), 0);
	(void)snprintf(both, sizeof(both), "%s%s", issuer.ca.cert, issuer.issued.cert);
	spokei_vfiles_put(issuer.world.files, "/served.pem", both);
	spokei_tls_reload(replaced.provider->tls);
	issuer.process.turned = replace_again;
	spokei_world_run(&issuer.world, issuer.world.now_ns + 10 * SECOND);
	issuer.process.turned = NULL;
	assert_int_equal(spoke_stat_get(replaced.engine, SPOKE_STAT_TLS_RELOADS), 2);
	assert_true(replaced.drained);
	assert_int_equal(spoke_provider_connections(replaced.provider), 0);
	for (unsigned i = 0; i < CROWD; i++)
		spoke_consumer_free(crowd[i]);
	spoke_provider_free(replaced.provider);
	spoke_engine_free(replaced.engine);
	assert_int_equal(issuer.process.blocks, 0);
}

static void echo(struct spoke_request *request, void *arg)
{
	(void)arg;
	SPOKE_REPLY(request, true);
}

/* The end of a call; 1: it has not ended. */
static int call_error;

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	call_error = result->error;
}

TEST(ticket_of_a_refused_handshake_goes_to_the_next)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo };
	/* The last bytes of a handshake wait for the peer to take the first ones. */
	const struct spokei_vnet_link slow = { .latency_ns = SECOND / 10, .capacity = 300 };
	const struct spoke_engine_options options = { .env = &issuer.process.env };
	const struct issue_options stranger = { .name = "stranger" };
	struct spoke_consumer_options failback = to;
	struct spoke_provider *provider;
	struct spoke_consumer *consumer;
	struct spoke_engine *engine;
	struct spoke_method *method;

	put_both_sides();
	spokei_vnet_set_all(issuer.world.net, &slow);
	assert_int_equal(spoke_engine_new(&options, &engine), 0);
	assert_int_equal(spoke_provider_new(engine, &with, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://127.0.0.1:20880"), 0);
	failback.url = "dubbo://127.0.0.1:20880/demo.Echo?cluster=failback";
	assert_int_equal(spoke_consumer_new(engine, &failback, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &method), 0);
	call_error = 1;
	assert_int_equal(spoke_call(method, (struct spoke_span){ NULL, 0 },
				    &(struct spoke_call_options){ .timeout_ns = 60 * SECOND },
				    note_end, NULL, NULL),
			 0);
	while (spoke_stat_get(engine, SPOKE_STAT_CONNECTS_SECURED) == 0)
		spokei_world_run(&issuer.world, issuer.world.now_ns + SECOND / 100);
	assert_int_equal(spoke_consumer_ready(consumer), 0);
	assert_int_equal(issue_make(&issuer.process.env, &stranger, &issuer.issued), 0);
	spokei_vfiles_put(issuer.world.files, "/calling.pem", issuer.issued.cert);
	spokei_tls_reload(consumer->tls);
	spokei_world_run(&issuer.world, issuer.world.now_ns + SECOND / 100);
	assert_int_equal(scene_events(engine, "1 connections are drained"), 1);
	assert_int_equal(call_error, SPOKE_EDEFERRED);
	spokei_vfiles_put(issuer.world.files, "/calling.pem", issuer.ca.cert);
	spokei_tls_reload(consumer->tls);
	spokei_world_run(&issuer.world, issuer.world.now_ns + 30 * SECOND);
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TICKETS_SUCCESS), 1);
	spoke_consumer_free(consumer);
	spoke_provider_free(provider);
	spoke_engine_free(engine);
	assert_int_equal(issuer.process.blocks, 0);
}
