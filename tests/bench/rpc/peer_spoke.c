/* SPDX-License-Identifier: Apache-2.0 */
/* spoke as users call it: an echo service, asynchronous calls, a deadline on each. */
#include "crowd.h"
#include "meter.h"
#include "peer.h"
#include "stage.h"

#include "tests/bench/common/order.h"
#include "tests/support/echo_handler.h"

#include <spoke/base.h>
#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/provider.h>
#include <spoke/tls.h>
#include <spoke/value.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERVICE "demo.EchoService"
#define TIMEOUT_NS (1000 * HOST_MS)

/* State shared by all calls of the client. */
struct driver {
	struct spoke_engine *engine;
	struct meter *meter;
	const struct rpc_plan *plan;
	struct spoke_builder builder; /* of args */
	struct spoke_span args;
	struct spoke_value payload; /* the only value of args */
};

/* The environment of all engines of this process; NULL: the host's. */
static const struct spoke_env *env;

/* Calls send an object in the default body, Hessian 2, in place of a text in MessagePack. */
static bool sends_object;

/* A call that is kept in flight. */
struct seat {
	struct spoke_alarm alarm; /* for a pause before the next call */
	struct driver *driver;
	struct spoke_method *method;
	uint64_t begun_ns;
};

static void must(const char *what, int error)
{
	if (error)
		host_die("spoke: %s: %s", what, spoke_strerror(error));
}

/* Returns the path of a file in the plan's folder, for one call; NULL: the plan is without TLS. */
static const char *certs_path(const struct rpc_plan *plan, const char *name)
{
	static char paths[2][160];
	static unsigned next;
	char *path = paths[next++ % 2];

	if (plan->certs[0] == '\0')
		return NULL;
	(void)snprintf(path, sizeof(paths[0]), "%s/%s", plan->certs, name);
	return path;
}

static struct spoke_engine *open_engine(const struct rpc_plan *plan)
{
	struct spoke_engine_options options = {
		.env = env,
		.spin_ns = plan->spin_ns,
		.tick_ns = (uint64_t)plan->pause_us * 1000 / 4, /* 0: the default */
	};
	struct spoke_engine *engine;

	must("engine", spoke_engine_new(&options, &engine));
	return engine;
}

static void serve(const struct rpc_plan *plan)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo_handler };
	struct spoke_tls_options tls = { .cert = certs_path(plan, "provider.pem"),
					 .key = certs_path(plan, "provider.key") };
	struct spoke_provider_options options = { .tls = tls.cert ? &tls : NULL };
	struct spoke_engine *engine = open_engine(plan);
	struct spoke_provider *provider;
	char text[128];
	const char *port;

	if (plan->is_unix)
		(void)snprintf(text, sizeof(text), "%s:%s", plan->is_shm ? "shm" : "unix",
			       plan->address);
	else
		(void)snprintf(text, sizeof(text), "dubbo://%s:0", plan->address);
	must("provider", spoke_provider_new(engine, &options, &provider));
	must("service", spoke_provider_add(provider, &service, &handler, 1));
	must(text, spoke_provider_listen(provider, text));
	if (spoke_provider_address(provider, 0, text, sizeof(text)) == 0)
		host_die("spoke: listens nowhere");
	port = plan->is_unix ? NULL : strrchr(text, ':');
	stage_ready(port == NULL ? 0 : (uint16_t)strtoul(port + 1, NULL, 10));
	must("run", spoke_engine_run(engine));
}

static void call(struct seat *seat);

static void pause_over(struct spoke_alarm *alarm)
{
	struct seat *seat = spoke_container_of(alarm, struct seat, alarm);

	meter_tick(seat->driver->meter);
	if (meter_is_over(seat->driver->meter))
		spoke_engine_stop(seat->driver->engine);
	else
		call(seat);
}

/* Makes the next call of a seat, after the pause of the plan. An idle plan has one call only. */
static void go_on(struct seat *seat)
{
	const struct rpc_plan *plan = seat->driver->plan;

	if (plan->is_idle)
		return;
	if (plan->pause_us == 0)
		call(seat);
	else
		must("pause", spoke_alarm_after(seat->driver->engine, &seat->alarm,
						(uint64_t)plan->pause_us * 1000, pause_over));
}

static void call_done(void *arg, const struct spoke_result *result)
{
	struct seat *seat = arg;
	struct driver *driver = seat->driver;
	struct meter *meter = driver->meter;

	if (meter_is_over(meter))
		return;
	if (result->error) {
		char text[256];

		(void)spoke_result_print(result, text, sizeof(text));
		host_die("spoke: a call failed: %s", text);
	}
	if (meter_is_new_batch(meter) && !spoke_value_equal(result->value, driver->payload))
		meter_failure(meter);
	meter_call(meter, seat->begun_ns);
	if (meter_is_over(meter))
		spoke_engine_stop(driver->engine);
	else
		go_on(seat);
}

static void call(struct seat *seat)
{
	struct driver *driver = seat->driver;

	seat->begun_ns = driver->meter->now_ns;
	must("call", spoke_call(seat->method, driver->args, NULL, call_done, seat, NULL));
}

static struct spoke_method *open_method(struct spoke_engine *engine, const struct rpc_plan *plan)
{
	char url[160];
	struct spoke_tls_options tls = { .ca = certs_path(plan, "ca.pem") };
	struct spoke_consumer_options options = {
		.serialization = sends_object ? SPOKE_SERIALIZATION_HESSIAN2
					      : SPOKE_SERIALIZATION_MSGPACK,
		.url = url,
		.tls = tls.ca ? &tls : NULL,
		.timeout_ns = TIMEOUT_NS
	};
	struct spoke_consumer *consumer;
	struct spoke_method *method;

	if (plan->is_unix) {
		(void)snprintf(url, sizeof(url), "%s:%s?interface=" SERVICE,
			       plan->is_shm ? "shm" : "unix", plan->address);
	} else {
		(void)snprintf(url, sizeof(url), "dubbo://%s:%u/" SERVICE, plan->address,
			       plan->port);
	}
	must(url, spoke_consumer_new(engine, &options, &consumer));
	must("method", spoke_consumer_method(consumer, "echo", NULL, &method));
	return method;
}

static void make_args(struct driver *driver, uint32_t len)
{
	struct spoke_cursor cursor;
	char *text = host_memory(len, 1);

	memset(text, 'x', len);
	spoke_builder_init(&driver->builder, spoke_host_env(), NULL);
	if (sends_object)
		pack_order(&driver->builder);
	else
		spoke_pack_str(&driver->builder, text, len);
	must("arguments", spoke_builder_finish(&driver->builder, &driver->args));
	free(text);
	cursor = spoke_cursor_bytes(driver->args);
	if (!spoke_cursor_next(&cursor, &driver->payload))
		host_die("spoke: no argument");
}

static void sleep_ns(uint64_t ns)
{
	const struct timespec pause = { (time_t)(ns / (1000 * HOST_MS)),
					(long)(ns % (1000 * HOST_MS)) };

	(void)nanosleep(&pause, NULL);
}

/* The engine has a thread of its own, which this thread does not wake. */
static void watch_idle(const struct driver *driver)
{
	must("start", spoke_engine_start(driver->engine));
	while (!meter_is_over(driver->meter)) {
		sleep_ns(driver->plan->span_ns);
		meter_tick(driver->meter);
	}
}

static void drive(const struct rpc_plan *plan, struct meter *meter)
{
	struct driver driver = { .engine = open_engine(plan), .meter = meter, .plan = plan };
	struct seat *seat = host_memory((uint64_t)plan->connections * plan->outstanding,
					sizeof(*seat));

	make_args(&driver, plan->payload);
	for (uint32_t i = 0; i < plan->connections; i++) {
		struct spoke_method *method = open_method(driver.engine, plan);

		for (uint32_t j = 0; j < plan->outstanding; j++, seat++) {
			seat->driver = &driver;
			seat->method = method;
			call(seat);
		}
	}
	if (plan->is_idle)
		watch_idle(&driver);
	else
		must("run", spoke_engine_run(driver.engine));
}

static void drive_object(const struct rpc_plan *plan, struct meter *meter)
{
	sends_object = true;
	drive(plan, meter);
}

static void drive_early(const struct rpc_plan *plan, struct meter *meter)
{
	env = crowd_env(1, 1);
	drive(plan, meter);
}

static void serve_early(const struct rpc_plan *plan)
{
	env = crowd_env(1, 1);
	serve(plan);
}

static void drive_late(const struct rpc_plan *plan, struct meter *meter)
{
	env = crowd_env(2, UINT_MAX);
	drive(plan, meter);
}

static void serve_late(const struct rpc_plan *plan)
{
	env = crowd_env(2, UINT_MAX);
	serve(plan);
}

static const char *version(void)
{
	static char text[32];

	(void)snprintf(text, sizeof(text), "%d.%d.%d", SPOKE_VERSION_MAJOR, SPOKE_VERSION_MINOR,
		       SPOKE_VERSION_PATCH);
	return text;
}

const struct rpc_peer rpc_spoke = {
	.name = "spoke",
	.serve = serve,
	.drive = drive,
	.version = version,
	.has_tls = true,
	.has_shm = true,
};

const struct rpc_peer rpc_spoke_spin = {
	.name = "spoke-spin",
	.serve = serve,
	.drive = drive,
	.spin_ns = RPC_SPIN_NS,
	.is_spun_only = true,
	.has_shm = true,
};

const struct rpc_peer rpc_spoke_sleep = {
	.name = "spoke-sleep",
	.serve = serve,
	.drive = drive,
	.spin_ns = SPOKE_ENGINE_SPIN_OFF,
	.is_spun_only = true,
	.has_shm = true,
};

const struct rpc_peer rpc_spoke_object = {
	.name = "spoke-object",
	.serve = serve,
	.drive = drive_object,
	.note = "sends an object of 5 fields in Hessian 2, whatever the pattern's length",
	.is_spun_only = true,
};

const struct rpc_peer rpc_spoke_early = {
	.name = "spoke-early",
	.serve = serve_early,
	.drive = drive_early,
};

const struct rpc_peer rpc_spoke_late = {
	.name = "spoke-not-early",
	.serve = serve_late,
	.drive = drive_late,
};
