/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZeroMQ as its guide describes services: DEALER sockets call, a ROUTER answers, and the message
 * contains the number of the call. Each side processes all pending messages before it waits; the
 * context's one I/O thread batches. Many sockets are watched by their ZMQ_FD, because zmq_poll()
 * queries each of them every time.
 */
#include "tests/bench/rpc/meter.h"
#include "tests/bench/rpc/peer.h"
#include "tests/bench/rpc/stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <zmq.h>

#define EVENTS_MAX 64

/* The I/O thread reads replies ahead, so the clock is read once per this many replies. */
#define CLOCK_EVERY 8

struct driver {
	const struct rpc_plan *plan;
	struct meter *meter;
	void *context;
	void **sockets;
	uint64_t *begun_ns; /* of all calls, by number */
	uint8_t *payload;
	uint32_t taken; /* number of replies */
};

static void must(const char *what, int result)
{
	if (result < 0)
		host_die("zeromq: %s: %s", what, zmq_strerror(zmq_errno()));
}

static void *open_socket(void *context, int type)
{
	void *socket = zmq_socket(context, type);
	int linger_ms = 0;

	if (socket == NULL)
		host_die("zeromq: no socket");
	must("linger", zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms)));
	return socket;
}

static void serve(const struct rpc_plan *plan)
{
	void *router = open_socket(zmq_ctx_new(), ZMQ_ROUTER);
	char url[128];
	size_t len = sizeof(url);
	zmq_msg_t peer;
	zmq_msg_t body;

	(void)snprintf(url, sizeof(url), plan->is_unix ? "ipc://%s" : "tcp://%s:*", plan->address);
	must(url, zmq_bind(router, url));
	must("name", zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, url, &len));
	stage_ready(plan->is_unix ? 0 : (uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
	must("message", zmq_msg_init(&peer));
	must("message", zmq_msg_init(&body));
	do {
		/* Waits only if no message is pending. */
		must("receive", zmq_msg_recv(&peer, router, 0));
		must("receive", zmq_msg_recv(&body, router, 0));
		must("send", zmq_msg_send(&peer, router, ZMQ_SNDMORE));
		must("send", zmq_msg_send(&body, router, 0));
	} while (true);
}

static void call(struct driver *driver, void *socket, uint32_t number)
{
	uint32_t len = driver->plan->payload;
	zmq_msg_t message;
	uint8_t *data;

	must("message", zmq_msg_init_size(&message, sizeof(number) + len));
	data = zmq_msg_data(&message);
	memcpy(data, &number, sizeof(number));
	memcpy(data + sizeof(number), driver->payload, len);
	driver->begun_ns[number] = driver->meter->now_ns;
	must("send", zmq_msg_send(&message, socket, 0));
}

static void take_reply(struct driver *driver, void *socket, zmq_msg_t *reply)
{
	const struct rpc_plan *plan = driver->plan;
	const uint8_t *data = zmq_msg_data(reply);
	uint32_t number;

	if (zmq_msg_size(reply) != sizeof(number) + plan->payload)
		host_die("zeromq: a reply of the wrong length");
	memcpy(&number, data, sizeof(number));
	if (number >= plan->connections * plan->outstanding)
		host_die("zeromq: a reply without a call");
	if (driver->taken++ % CLOCK_EVERY == 0) {
		meter_tick(driver->meter);
		if (memcmp(data + sizeof(number), driver->payload, plan->payload) != 0)
			meter_failure(driver->meter);
	}
	meter_call(driver->meter, driver->begun_ns[number]);
	call(driver, socket, number);
}

/* Takes all pending replies of a socket; `flags` specify whether to wait for the first. */
static void drain(struct driver *driver, void *socket, int flags)
{
	zmq_msg_t reply;

	must("message", zmq_msg_init(&reply));
	while (!meter_is_over(driver->meter)) {
		if (zmq_msg_recv(&reply, socket, flags) < 0) {
			if (errno != EAGAIN)
				host_die("zeromq: receive: %s", zmq_strerror(errno));
			break;
		}
		/* The first reply after a wait gets a time of its own. */
		driver->taken = flags == 0 && driver->plan->outstanding == 1 ? 0 : driver->taken;
		take_reply(driver, socket, &reply);
	}
	must("message", zmq_msg_close(&reply));
}

static void watch(int epoll, void *socket)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = socket } };
	int fd;
	size_t len = sizeof(fd);

	must("descriptor", zmq_getsockopt(socket, ZMQ_FD, &fd, &len));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		host_die("epoll_ctl failed");
}

/* The descriptor of a socket stays readable until its commands are processed, which requires
 * draining it. */
static void drain_many(struct driver *driver)
{
	struct epoll_event events[EVENTS_MAX];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	for (uint32_t i = 0; i < driver->plan->connections; i++) {
		watch(epoll, driver->sockets[i]);
		drain(driver, driver->sockets[i], ZMQ_DONTWAIT);
	}
	while (!meter_is_over(driver->meter)) {
		int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

		driver->taken = 0;
		for (int i = 0; i < count; i++)
			drain(driver, events[i].data.ptr, ZMQ_DONTWAIT);
	}
}

static void connect_all(struct driver *driver)
{
	const struct rpc_plan *plan = driver->plan;
	char url[128];

	if (plan->is_unix)
		(void)snprintf(url, sizeof(url), "ipc://%s", plan->address);
	else
		(void)snprintf(url, sizeof(url), "tcp://%s:%u", plan->address, plan->port);
	for (uint32_t i = 0; i < plan->connections; i++) {
		void *socket = open_socket(driver->context, ZMQ_DEALER);

		must(url, zmq_connect(socket, url));
		driver->sockets[i] = socket;
		for (uint32_t j = 0; j < plan->outstanding; j++)
			call(driver, socket, i * plan->outstanding + j);
	}
}

static void drive(const struct rpc_plan *plan, struct meter *meter)
{
	uint64_t calls = (uint64_t)plan->connections * plan->outstanding;
	struct driver driver = {
		.plan = plan,
		.meter = meter,
		.context = zmq_ctx_new(),
		.sockets = host_memory(plan->connections, sizeof(*driver.sockets)),
		.begun_ns = host_memory(calls, sizeof(*driver.begun_ns)),
		.payload = host_memory(1, plan->payload),
	};

	memset(driver.payload, 'x', plan->payload);
	connect_all(&driver);
	meter_restart(meter);
	if (plan->connections == 1)
		drain(&driver, driver.sockets[0], 0);
	else
		drain_many(&driver);
	for (uint32_t i = 0; i < plan->connections; i++)
		must("close", zmq_close(driver.sockets[i]));
	must("end", zmq_ctx_term(driver.context));
}

static const char *version(void)
{
	static char text[32];
	int major;
	int minor;
	int patch;

	zmq_version(&major, &minor, &patch);
	(void)snprintf(text, sizeof(text), "%d.%d.%d", major, minor, patch);
	return text;
}

const struct rpc_peer rpc_zeromq = {
	.name = "zeromq",
	.serve = serve,
	.drive = drive,
	.version = version,
	.note = "no call timeout is armed, because it has none",
};
