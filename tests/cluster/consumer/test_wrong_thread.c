/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the engine's thread are refused on other threads, e.g. in handlers of the pool. */
#include "tests/support/test.h"

#include <spoke/admin.h>
#include <spoke/comet.h>
#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/lease.h>
#include <spoke/provider.h>
#include <spoke/signals.h>
#include <spoke/stats.h>
#include <spoke/ticket.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HERE "127.0.0.1:0"

static struct {
	struct spoke_engine *engine;
	struct spoke_config *config;
	struct spoke_provider *provider;
	struct spoke_peer peer; /* the consumer, to the provider */
	struct spoke_consumer *consumer;
	struct spoke_method *ask;
	struct spoke_method *push;
	struct spoke_comet *gateway;
	struct spoke_leases *leases;
	struct spoke_lease lease; /* an ask */
	struct spoke_alarm alarm; /* is set */
	struct spoke_comet_entry entry;
	struct spoke_consumer *retrying;
	struct spoke_ticket ticket;
	int sockets[2]; /* of ann, and of a client that waits for the authorizer */
	struct spoke_request *kept;
	const char *why;
	int allowed; /* functions that were not refused; -1: the handler has not run */
	int error;   /* of the call */
} rig;

static void nothing_due(struct spoke_alarm *alarm)
{
	(void)alarm;
}

/* Admits ann, and keeps other clients waiting. */
static void authorize(void *arg, struct spoke_comet_entry entry,
		      const struct spoke_comet_request *request)
{
	(void)arg;
	if (request->query.len > 0)
		assert_true(spoke_comet_admit(entry, spoke_comet_text("ann")));
	else
		rig.entry = entry;
}

static void nothing_came(struct spoke_signal *signal)
{
	(void)signal;
}

static void nothing_settled(void *arg, const struct spoke_ticket_result *result)
{
	(void)arg;
	(void)result;
}

static void nothing_told(void *arg, struct spoke_lease lease,
			 const struct spoke_lease_answer *answer)
{
	(void)arg;
	(void)lease;
	(void)answer;
}

static void never(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static const struct spoke_span no_args = { "", 0 };
static const struct spoke_service_options service = { .name = "demo.Asked" };
static const struct spoke_service_options other = { .name = "demo.Other" };

/* Adds 1 for each function that is not refused. */
static int count_of_calls(void)
{
	const struct spoke_ticket ticket = { 0 };
	const struct spoke_peer peer = { 0 };
	const int errors[] = {
		spoke_call(rig.ask, no_args, NULL, NULL, NULL, NULL),
		spoke_call_args(rig.ask, SPOKE_ARGS("x"), NULL, NULL, NULL, NULL),
		spoke_push(rig.push, peer, no_args, NULL, NULL, NULL, NULL),
		spoke_push_all(rig.push, no_args, NULL, NULL),
		spoke_ticket_then(rig.consumer, ticket, nothing_settled, NULL),
	};
	struct spoke_ticket_info info;
	struct spoke_endpoint_info endpoint;
	struct spoke_peer any;
	struct spoke_peer_info peer_info;
	char text[64];
	int count = spoke_call_cancel(rig.consumer, (struct spoke_call){ 0 });

	count += spoke_ticket_cancel(rig.retrying, rig.ticket);
	count += spoke_ticket_ask(rig.retrying, rig.ticket, &info.state);
	count += (int)spoke_consumer_ticket_list(rig.retrying, &info, 1);
	count += (int)spoke_consumer_tickets(rig.retrying, NULL);
	count += (int)spoke_consumer_ready(rig.consumer);
	count += (int)spoke_consumer_endpoints(rig.consumer, &endpoint, 1);
	count += (int)spoke_provider_peers(rig.provider, &any, 1);
	count += (int)spoke_provider_peer(rig.provider, rig.peer, &peer_info);
	count += (int)spoke_peer_print(rig.provider, rig.peer, text, sizeof(text));
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		count += errors[i] != SPOKE_ETHREAD;
	return count;
}

static int count_of_objects(void)
{
	static const struct spoke_handler handlers[] = { { .handle = never } };
	const struct spoke_consumer_options calling = { .url = "dubbo://127.0.0.1:1/demo.A" };
	const struct spoke_comet_options showing = { .listen = HERE, .query_user = true };
	const struct spoke_leases_options leasing = { .store = "redis://127.0.0.1:1" };
	const struct spoke_comet_message message = { .data = { "x", 1 } };
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	struct spoke_provider *provider;
	struct spoke_comet *gateway;
	struct spoke_admin *page;
	struct spoke_leases *leases;
	struct spoke_leases_look look;
	static struct spoke_alarm alarm;
	static struct spoke_signal signal;
	const int errors[] = {
		spoke_consumer_new(rig.engine, &calling, &consumer),
		spoke_consumer_method(rig.consumer, "more", NULL, &method),
		spoke_provider_new(rig.engine, NULL, &provider),
		spoke_provider_add(rig.provider, &other, handlers, 1),
		spoke_provider_listen(rig.provider, "dubbo://" HERE),
		spoke_provider_listen_configured(rig.provider),
		spoke_provider_method(rig.provider, "more", NULL, &method),
		spoke_admin_new(rig.engine, NULL, &page),
		spoke_comet_new(rig.engine, &showing, &gateway),
		spoke_comet_push(rig.gateway, spoke_comet_text("ann"), &message, NULL),
		spoke_comet_push_all(rig.gateway, &message, NULL),
		spoke_leases_new(rig.engine, &leasing, &leases),
		spoke_lease_ask(rig.leases, "job", NULL, nothing_told, NULL),
		spoke_leases_look(rig.leases, &look),
		spoke_config_reload(rig.config, NULL, NULL),
		spoke_alarm_after(rig.engine, &alarm, MS, nothing_due),
		spoke_signal_watch(rig.engine, &signal, SIGUSR2, nothing_came),
		spoke_engine_drain(rig.engine, 0),
		spoke_engine_log(rig.engine, "off"),
	};
	struct spoke_span user;
	int count;

	/* What is used below is still there. */
	spoke_consumer_free(rig.consumer);
	spoke_provider_free(rig.provider);
	spoke_comet_free(rig.gateway);
	spoke_leases_free(rig.leases);
	count = (int)spoke_comet_kick(rig.gateway, spoke_comet_text("ann"), NULL);

	count += (int)spoke_comet_connections(rig.gateway, spoke_comet_text("ann"));
	count += (int)spoke_comet_users(rig.gateway, &user, 1);
	count += spoke_comet_admit(rig.entry, spoke_comet_text("ann"));
	count += spoke_comet_refuse(rig.entry, NULL);
	count += spoke_comet_later(rig.entry);
	count += spoke_alarm_cancel(&rig.alarm);
	count += spoke_lease_name(rig.lease).len > 0;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		count += errors[i] != SPOKE_ETHREAD;
	return count;
}

static void ask(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.allowed = count_of_calls() + count_of_objects();
	rig.why = spoke_engine_why(rig.engine);
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void keep(struct spoke_request *request, void *arg)
{
	(void)arg;
	assert_int_equal(spoke_request_keep(request), 0);
	rig.kept = request;
}

static void asked(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.error = result->error;
	spoke_engine_stop(rig.engine);
}

static void deferred(void *arg, const struct spoke_result *result)
{
	(void)arg;
	rig.ticket = result->ticket;
}

/* Makes a call that waits for its next attempt. */
static void make_ticket(void)
{
	const struct spoke_consumer_options calling = {
		.url = "dubbo://127.0.0.1:1/demo.None?cluster=failback&retry.period=1h&timeout=1h",
	};
	struct spoke_method *method;

	assert_int_equal(spoke_consumer_new(rig.engine, &calling, &rig.retrying), 0);
	assert_int_equal(spoke_consumer_method(rig.retrying, "none", NULL, &method), 0);
	assert_int_equal(spoke_call(method, no_args, NULL, deferred, NULL, NULL), 0);
	while (rig.ticket.handle == 0)
		assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
}

/* Has a client of the gateway ask for a path. */
static void ask_gateway(const char *path, int *socket)
{
	char request[128];
	const int len = snprintf(request, sizeof(request),
				 "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
				 "Accept: text/event-stream\r\n\r\n",
				 path);
	const struct iovec part = { request, (size_t)len };
	const struct spoke_env *env = spoke_host_env();
	struct spoke_address to;
	char address[128];
	ssize_t wrote;

	assert_true(spoke_comet_address(rig.gateway, 0, address, sizeof(address)) > 0);
	assert_int_equal(env->net->parse(env->ctx, address, &to), 0);
	(void)env->net->connect(env->ctx, &to, socket);
	do {
		assert_int_equal(spoke_engine_turn(rig.engine, false), 0);
		wrote = env->net->write(env->ctx, *socket, &part, 1);
	} while (wrote == -EAGAIN || wrote == -ENOTCONN);
	assert_int_equal(wrote, part.iov_len);
}

/* Has a user connected to the gateway, and a client that waits for the authorizer. */
static void make_entries(void)
{
	ask_gateway("/spoke/events?ann", &rig.sockets[0]);
	while (spoke_comet_connections(rig.gateway, spoke_comet_text("ann")) == 0)
		assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
	ask_gateway("/spoke/events", &rig.sockets[1]);
	while (rig.entry.comet == NULL)
		assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
}

static void tear_down(void)
{
	spoke_engine_free(rig.engine);
	spoke_config_free(rig.config);
	for (size_t i = 0; i < sizeof(rig.sockets) / sizeof(rig.sockets[0]); i++)
		spoke_host_env()->net->close(spoke_host_env()->ctx, rig.sockets[i]);
}

static void set_up(void)
{
	static const struct spoke_handler handlers[] = {
		{ .method = "ask", .handle = ask, .flags = SPOKE_HANDLER_POOL },
		{ .method = "keep", .handle = keep },
	};
	const struct spoke_comet_options showing = { .listen = HERE, .authorize = authorize };
	const struct spoke_leases_options leasing = { .store = "redis://127.0.0.1:1" };
	const struct spoke_lease_options waiting = { .wait_ns = SPOKE_LEASE_FOREVER };
	const struct spoke_method_options pushing = { .service = "demo.Push" };
	struct spoke_consumer_options calling = { 0 };
	struct spoke_provider_options serving = { 0 };
	char address[128];
	char url[192];

	memset(&rig, 0, sizeof(rig));
	rig.allowed = -1;
	assert_int_equal(spoke_config_parse(NULL, "a.conf", no_args, NULL, NULL, &rig.config), 0);
	assert_int_equal(spoke_engine_new(NULL, &rig.engine), 0);
	serving.config = rig.config;
	assert_int_equal(spoke_provider_new(rig.engine, &serving, &rig.provider), 0);
	assert_int_equal(spoke_provider_add(rig.provider, &service, handlers, 2), 0);
	assert_int_equal(spoke_provider_listen(rig.provider, "dubbo://" HERE), 0);
	assert_true(spoke_provider_address(rig.provider, 0, address, sizeof(address)) > 0);
	assert_int_equal(spoke_provider_method(rig.provider, "told", &pushing, &rig.push), 0);
	(void)snprintf(url, sizeof(url), "dubbo://%s/demo.Asked?timeout=1m", address);
	calling.url = url;
	assert_int_equal(spoke_consumer_new(rig.engine, &calling, &rig.consumer), 0);
	assert_int_equal(spoke_consumer_method(rig.consumer, "ask", NULL, &rig.ask), 0);
	assert_int_equal(spoke_comet_new(rig.engine, &showing, &rig.gateway), 0);
	assert_int_equal(spoke_leases_new(rig.engine, &leasing, &rig.leases), 0);
	assert_int_equal(spoke_lease_ask(rig.leases, "asked", &waiting, nothing_told, &rig.lease),
			 0);
	assert_true(spoke_lease_name(rig.lease).len > 0);
	assert_int_equal(spoke_alarm_after(rig.engine, &rig.alarm, 3600000 * MS, nothing_due), 0);
	make_ticket();
	make_entries();
	assert_int_equal(spoke_provider_peers(rig.provider, &rig.peer, 1), 1);
}

TEST(handlers_of_the_pool_are_refused_with_ethread)
{
	uint64_t refused;

	set_up();
	assert_int_equal(spoke_call(rig.ask, no_args, NULL, asked, NULL, NULL), 0);
	refused = spoke_stat_get(rig.engine, SPOKE_STAT_CALLS_REFUSED);
	assert_int_equal(spoke_engine_run(rig.engine), 0);
	assert_int_equal(rig.error, SPOKE_OK);
	assert_int_equal(rig.allowed, 0);
	assert_string_equal(rig.why, spoke_strerror(SPOKE_ETHREAD));
	/* Nothing of the engine was touched, not even a counter. */
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_CALLS_REFUSED), refused);
	/* Between two runs every thread may use it. */
	assert_int_equal(spoke_call(rig.ask, no_args, NULL, NULL, NULL, NULL), 0);
	tear_down();
}

TEST(functions_are_refused_while_the_engine_has_its_own_thread)
{
	set_up();
	assert_int_equal(spoke_engine_start(rig.engine), 0);
	assert_int_equal(count_of_calls() + count_of_objects(), 0);
	tear_down();
}

static void run_ends(struct spoke_alarm *alarm)
{
	spoke_engine_stop(alarm->engine);
}

TEST(reply_on_another_thread_is_refused_with_an_event)
{
	struct spoke_event event = { 0 };
	struct spoke_method *method;
	unsigned told = 0;
	struct spoke_alarm end = { 0 };

	set_up();
	assert_int_equal(spoke_consumer_method(rig.consumer, "keep", NULL, &method), 0);
	assert_int_equal(spoke_call(method, no_args, NULL, asked, NULL, NULL), 0);
	rig.error = 1;
	while (rig.kept == NULL)
		assert_int_equal(spoke_engine_turn(rig.engine, true), 0);
	assert_int_equal(spoke_alarm_after(rig.engine, &end, 20 * MS, run_ends), 0);
	assert_int_equal(spoke_engine_start(rig.engine), 0);
	spoke_reply(rig.kept, (struct spoke_value){ NULL, 0 });
	assert_int_equal(spoke_engine_join(rig.engine), 0);
	assert_int_equal(rig.error, 1);
	while (spoke_event_get(rig.engine, event.number + 1, &event) == 0)
		told += event.error == SPOKE_ETHREAD && strstr(event.text, "spoke_reply()");
	assert_int_equal(told, 1);
	spoke_reply(rig.kept, (struct spoke_value){ NULL, 0 });
	assert_int_equal(spoke_engine_run(rig.engine), 0);
	assert_int_equal(rig.error, SPOKE_OK);
	tear_down();
}
