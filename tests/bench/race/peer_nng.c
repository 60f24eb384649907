/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nng as its documentation describes services: req and rep sockets with a context for each call in
 * flight, asynchronous, the timeout of its aio as the deadline. Its threads run the callbacks; a
 * lock guards the meter, and the clock is read for each reply.
 */
#include "tests/bench/rpc/meter.h"
#include "tests/bench/rpc/peer.h"
#include "tests/bench/rpc/stage.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 1000

/* A context of the server, or a call that is kept in flight. */
struct worker {
	nng_ctx context;
	nng_aio *aio;
	bool is_sending; /* otherwise receiving */
	struct driver *driver;
	uint64_t begun_ns;
};

/* State shared by all calls of the client. */
struct driver {
	const struct rpc_plan *plan;
	uint8_t *payload;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t all_idle;
	struct meter *meter;
	uint32_t busy; /* workers */
};

static void must(const char *what, int error)
{
	if (error != 0)
		host_die("nng: %s: %s", what, nng_strerror(error));
}

static void open_worker(struct worker *worker, nng_socket socket, void (*done)(void *))
{
	must("context", nng_ctx_open(&worker->context, socket));
	must("aio", nng_aio_alloc(&worker->aio, done, worker));
}

static void receive(struct worker *worker)
{
	worker->is_sending = false;
	nng_ctx_recv(worker->context, worker->aio);
}

static void send_message(struct worker *worker, nng_msg *message)
{
	worker->is_sending = true;
	nng_aio_set_msg(worker->aio, message);
	nng_ctx_send(worker->context, worker->aio);
}

static void served(void *arg)
{
	struct worker *worker = arg;

	must("serving", nng_aio_result(worker->aio));
	if (worker->is_sending)
		receive(worker);
	else
		send_message(worker, nng_aio_get_msg(worker->aio));
}

static void serve(const struct rpc_plan *plan)
{
	uint32_t count = plan->connections * plan->outstanding;
	struct worker *workers = host_memory(count, sizeof(*workers));
	nng_listener listener;
	nng_sockaddr address;
	nng_socket socket;
	char url[128];

	(void)snprintf(url, sizeof(url), plan->is_unix ? "ipc://%s" : "tcp://%s:0", plan->address);
	must("socket", nng_rep0_open(&socket));
	for (uint32_t i = 0; i < count; i++)
		open_worker(&workers[i], socket, served);
	must(url, nng_listen(socket, url, &listener, 0));
	for (uint32_t i = 0; i < count; i++)
		receive(&workers[i]);
	must("name", nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &address));
	/* in network byte order */
	if (plan->is_unix) {
		stage_ready(0);
	} else {
		uint8_t port[2];

		memcpy(port, &address.s_in.sa_port, sizeof(port));
		stage_ready((uint16_t)(port[0] << 8 | port[1]));
	}
	do {
		(void)pause(); /* nng's threads do all the work */
	} while (true);
}

static void call(struct worker *worker)
{
	const struct driver *driver = worker->driver;
	nng_msg *message;

	must("message", nng_msg_alloc(&message, driver->plan->payload));
	memcpy(nng_msg_body(message), driver->payload, driver->plan->payload);
	send_message(worker, message);
}

/* Returns whether the worker makes another call; otherwise it is idle. */
static bool count_call(struct worker *worker, nng_msg *reply)
{
	struct driver *driver = worker->driver;
	struct meter *meter = driver->meter;
	uint32_t len = driver->plan->payload;
	bool is_same = nng_msg_len(reply) == len &&
		       memcmp(nng_msg_body(reply), driver->payload, len) == 0;
	bool is_over;

	(void)pthread_mutex_lock(&driver->lock);
	if (!meter_is_over(meter)) {
		meter_tick(meter);
		if (!is_same)
			meter_failure(meter);
		meter_call(meter, worker->begun_ns);
		worker->begun_ns = meter->now_ns;
	}
	is_over = meter_is_over(meter);
	if (is_over && --driver->busy == 0)
		(void)pthread_cond_signal(&driver->all_idle);
	(void)pthread_mutex_unlock(&driver->lock);
	return !is_over;
}

static void called(void *arg)
{
	struct worker *worker = arg;
	int error = nng_aio_result(worker->aio);
	nng_msg *reply;

	if (error != 0)
		host_die("nng: a call failed: %s", nng_strerror(error));
	if (worker->is_sending) {
		receive(worker);
		return;
	}
	reply = nng_aio_get_msg(worker->aio);
	if (count_call(worker, reply))
		call(worker);
	nng_msg_free(reply);
}

static nng_socket open_requester(const struct rpc_plan *plan)
{
	nng_socket socket;
	char url[128];

	if (plan->is_unix)
		(void)snprintf(url, sizeof(url), "ipc://%s", plan->address);
	else
		(void)snprintf(url, sizeof(url), "tcp://%s:%u", plan->address, plan->port);
	must("socket", nng_req0_open(&socket));
	must(url, nng_dial(socket, url, NULL, 0));
	return socket;
}

/* Waits until the meter is over and all calls have ended, because not all objects can be closed
 * earlier. */
static void await_end(struct driver *driver)
{
	(void)pthread_mutex_lock(&driver->lock);
	while (driver->busy > 0)
		(void)pthread_cond_wait(&driver->all_idle, &driver->lock);
	(void)pthread_mutex_unlock(&driver->lock);
}

static void drive(const struct rpc_plan *plan, struct meter *meter)
{
	uint32_t count = plan->connections * plan->outstanding;
	struct worker *workers = host_memory(count, sizeof(*workers));
	nng_socket *sockets = host_memory(plan->connections, sizeof(*sockets));
	uint64_t begin_ns = meter->now_ns;
	struct driver driver = {
		.plan = plan,
		.meter = meter,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.all_idle = PTHREAD_COND_INITIALIZER,
		.payload = host_memory(1, plan->payload),
		.busy = count,
	};

	memset(driver.payload, 'x', plan->payload);
	for (uint32_t i = 0; i < plan->connections; i++)
		sockets[i] = open_requester(plan);
	for (uint32_t i = 0; i < count; i++) {
		workers[i].driver = &driver;
		workers[i].begun_ns = begin_ns;
		open_worker(&workers[i], sockets[i / plan->outstanding], called);
		/* NNG_OPT_RECVTIMEO applies only to an aio without a timeout, and sending sets one.
		 */
		nng_aio_set_timeout(workers[i].aio, TIMEOUT_MS);
	}
	meter_restart(meter);
	for (uint32_t i = 0; i < count; i++)
		call(&workers[i]);
	await_end(&driver);
	for (uint32_t i = 0; i < count; i++)
		nng_aio_free(workers[i].aio);
	for (uint32_t i = 0; i < plan->connections; i++)
		must("close", nng_close(sockets[i]));
}

const struct rpc_peer rpc_nng = {
	.name = "nng",
	.serve = serve,
	.drive = drive,
	.version = nng_version,
};
