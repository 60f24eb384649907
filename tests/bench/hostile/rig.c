/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider in the virtual world, whose turns are timed. A connection counts as so many bytes more
 * as its packets have on the network, because a peer whose connections are closed has to send them.
 */
#include "core/virtual/world.h"
#include "tests/bench/hostile/hostile.h"

#include <spoke/provider.h>
#include <spoke/stats.h>
#include <spoke/value.h>

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#define AT "127.0.0.1:20880"
#define BATCH 32768u    /* bytes of a measurement */
#define FRAMES_MAX 256u /* of a measurement */
#define CONNS_MAX 64u
#define PACKETS 216u /* bytes of SYN, FIN and two ACK over Ethernet */
#define PAUSE_NS UINT64_C(1000000)

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_world_process peer;
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	uint64_t handled;
	uint64_t spent_ns;
	double conn_ns; /* of a connection without bytes */
	int fd;
} rig;

static void must(const char *what, bool holds)
{
	if (holds)
		return;
	(void)fprintf(stderr, "bench_hostile: not so: %s\n", what);
	exit(1);
}

static uint64_t cpu_ns(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void echo(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_value first = { NULL, 0 };

	(void)arg;
	rig.handled++;
	(void)!spoke_cursor_next(&args, &first);
	spoke_reply(request, first);
}

/* Does nothing with the bytes: the application's own work does not count. */
static void take(struct spoke_request *request, void *arg)
{
	(void)arg;
	rig.handled++;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void say_nothing(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	(void)line;
}

void hostile_begin(bool token)
{
	static const struct spoke_service_options service = { .name = "demo.Echo" };
	static const struct spoke_handler handlers[] = { { .method = "echo", .handle = echo },
							 { .method = "take", .handle = take } };
	const struct spoke_engine_options with = { .env = &rig.process.env };
	const struct spoke_provider_options options = { .token = token ? "correct-horse-1" : NULL };

	memset(&rig, 0, sizeof(rig));
	must("there is a world", spokei_world_init(&rig.world, 1));
	spokei_world_process_init(&rig.process, &rig.world);
	spokei_world_process_init(&rig.peer, &rig.world);
	rig.process.env.log = say_nothing;
	must("a provider listens",
	     spoke_engine_new(&with, &rig.engine) == 0 &&
		     spoke_provider_new(rig.engine, &options, &rig.provider) == 0 &&
		     spoke_provider_add(rig.provider, &service, handlers, 2) == 0 &&
		     spoke_provider_listen(rig.provider, "dubbo://" AT) == 0);
}

void hostile_end(void)
{
	spoke_engine_free(rig.engine);
	spokei_vnet_kill(&rig.peer.user);
	spokei_world_process_fini(&rig.peer);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
}

/* A function with a fixed name, which is passed to callgrind. */
__attribute__((noinline)) void hostile_turn(void)
{
	spokei_world_run(&rig.world, rig.world.now_ns + PAUSE_NS);
}

static void pass(void)
{
	uint64_t before_ns = cpu_ns();

	hostile_turn();
	rig.spent_ns += cpu_ns() - before_ns;
}

static void connect_peer(void)
{
	const struct spoke_env *env = &rig.peer.env;
	struct spoke_address address;

	must("an address is read", env->net->parse(env->ctx, AT, &address) == 0);
	rig.fd = -1;
	(void)env->net->connect(env->ctx, &address, &rig.fd);
	must("a peer connects", rig.fd >= 0);
	pass();
}

static void close_peer(void)
{
	rig.peer.env.net->close(rig.peer.env.ctx, rig.fd);
	pass();
}

/* Reads all that the provider has written. Returns false if it has closed the connection. */
static bool drain(void)
{
	static unsigned char bytes[65536];
	ssize_t got;

	do
		got = rig.peer.env.net->read(rig.peer.env.ctx, rig.fd, bytes, sizeof(bytes));
	while (got > 0);
	return got < 0;
}

/* Sends bytes on a new connection. Returns how many the provider has taken before it closed it. */
static size_t send_all(const unsigned char *bytes, size_t len)
{
	uint64_t before = spoke_stat_get(rig.engine, SPOKE_STAT_BYTES_READ);
	size_t sent = 0;
	bool open = true;

	connect_peer();
	while (open && sent < len) {
		struct iovec part = { (void *)(uintptr_t)(bytes + sent), len - sent };
		ssize_t took = rig.peer.env.net->write(rig.peer.env.ctx, rig.fd, &part, 1);

		sent += took > 0 ? (size_t)took : 0;
		pass();
		open = drain();
		if (took <= 0 && open)
			break;
	}
	close_peer();
	sent = (size_t)(spoke_stat_get(rig.engine, SPOKE_STAT_BYTES_READ) - before);
	return sent < len ? sent : len;
}

static double conn_cost(void)
{
	if (!(rig.conn_ns > 0)) {
		uint64_t best_ns = UINT64_MAX;

		for (unsigned i = 0; i < 50; i++) {
			rig.spent_ns = 0;
			connect_peer();
			close_peer();
			if (rig.spent_ns < best_ns)
				best_ns = rig.spent_ns;
		}
		rig.conn_ns = (double)best_ns;
	}
	return rig.conn_ns;
}

static struct hostile_cost measure_once(const unsigned char *bytes, size_t frame_len, size_t len)
{
	struct hostile_cost cost = { 0 };
	size_t taken = 0;
	uint64_t answers = spoke_stat_get(rig.engine, SPOKE_STAT_MESSAGES_WRITTEN);

	rig.spent_ns = 0;
	rig.handled = 0;
	while (taken < len && cost.conns < CONNS_MAX) {
		size_t took = send_all(bytes + taken, len - taken);

		cost.conns++;
		/* The next connection begins with a whole frame. */
		taken += (took + frame_len - 1) / frame_len * frame_len;
		if (took == 0)
			break;
	}
	cost.handled = rig.handled;
	cost.answers = (double)(spoke_stat_get(rig.engine, SPOKE_STAT_MESSAGES_WRITTEN) - answers) /
		       ((double)len / (double)frame_len);
	cost.ns = ((double)rig.spent_ns - cost.conns * conn_cost()) /
		  (double)(taken + (size_t)(cost.conns - 1) * PACKETS);
	return cost;
}

/* Fills the batch with a frame. Returns its length. */
static size_t fill(const struct hostile_frame *frame, unsigned char *bytes)
{
	size_t len = 0;

	for (unsigned i = 0; i < FRAMES_MAX && (len == 0 || len + frame->len <= BATCH); i++) {
		memcpy(bytes + len, frame->bytes, frame->len);
		if (frame->wire == HOSTILE_DUBBO && frame->len > 12) {
			bytes[len + 10] = (unsigned char)(i >> 8); /* of the id */
			bytes[len + 11] = (unsigned char)i;
		}
		len += frame->len;
	}
	return len;
}

size_t hostile_feed(const struct hostile_frame *frame)
{
	static unsigned char bytes[BATCH + HOSTILE_FRAME_MAX];

	return send_all(bytes, fill(frame, bytes));
}

struct hostile_cost hostile_measure(const struct hostile_frame *frame, unsigned times)
{
	static unsigned char bytes[BATCH + HOSTILE_FRAME_MAX];
	struct hostile_cost least = { .ns = 1e9 };
	size_t len = fill(frame, bytes);

	(void)conn_cost();
	while (times-- > 0) {
		struct hostile_cost cost = measure_once(bytes, frame->len, len);

		if (cost.ns < least.ns)
			least = cost;
	}
	return least;
}
