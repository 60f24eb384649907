/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the relay of `spoke tap` between a client and a target in the simulated network. */
#include "core/virtual/world.h"
#include "examples/spoke/relay.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MUCH = 1 << 20
};

struct stage {
	struct spokei_world world;
	struct spokei_world_process tap;
	struct spokei_world_process people;
	struct relay relay;
	int target;      /* listening socket; -1: none */
	int client;      /* socket of the client ... */
	int server;      /* ... and of the target */
	uint64_t sum[2]; /* checksum of the bytes seen, by direction */
	size_t seen[2];
	unsigned opened;
	unsigned ended[2];
	unsigned closed;
	unsigned refused;
	int error; /* of the last closed pair */
};

/* --- callbacks of the relay */

static uint64_t sum_of(uint64_t sum, const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ bytes[i]) * UINT64_C(1099511628211);
	return sum;
}

static bool opened(struct relay_pair *pair, const struct spoke_address *peer)
{
	struct stage *stage = pair->relay->arg;

	assert_true(peer->len > 0);
	stage->opened++;
	return true;
}

static void bytes_came(struct relay_pair *pair, enum relay_way way, const void *bytes, size_t len)
{
	struct stage *stage = pair->relay->arg;

	stage->sum[way] = sum_of(stage->sum[way], bytes, len);
	stage->seen[way] += len;
}

static void ended(struct relay_pair *pair, enum relay_way way)
{
	struct stage *stage = pair->relay->arg;

	stage->ended[way]++;
}

static void closed(struct relay_pair *pair)
{
	struct stage *stage = pair->relay->arg;

	stage->closed++;
	stage->error = pair->error;
}

static void refused(struct relay *relay, int error)
{
	struct stage *stage = relay->arg;

	assert_true(error < 0);
	stage->refused++;
}

static const struct relay_looks looks = { opened, bytes_came, ended, closed, refused };

/* --- the stage */

static const struct spoke_net *net_of(const struct stage *stage)
{
	return stage->people.env.net;
}

static void address_of(struct stage *stage, const char *name, struct spoke_address *ret)
{
	assert_int_equal(net_of(stage)->parse(stage->people.env.ctx, name, ret), 0);
}

static void go(struct stage *stage)
{
	spokei_world_run(&stage->world, stage->world.now_ns + 5 * MS);
}

static void set_up(struct stage *stage)
{
	struct spoke_address at;

	*stage = (struct stage){ .target = -1, .client = -1, .server = -1 };
	scene_open(&stage->world, 7);
	stage->relay.engine = scene_engine(&stage->world, &stage->tap, NULL, NULL);
	spokei_world_process_init(&stage->people, &stage->world);
	stage->relay.env = &stage->tap.env;
	stage->relay.looks = &looks;
	stage->relay.arg = stage;
	address_of(stage, "mem:nobody", &stage->relay.targets[0]);
	address_of(stage, "mem:target", &stage->relay.targets[1]);
	stage->relay.target_count = 2;
	address_of(stage, "mem:tap", &at);
	assert_int_equal(relay_begin(&stage->relay, &at), 0);
	address_of(stage, "mem:target", &at);
	assert_int_equal(net_of(stage)->listen(stage->people.env.ctx, &at, 512, &stage->target), 0);
}

static void tear_down(struct stage *stage)
{
	relay_end(&stage->relay);
	assert_int_equal(stage->relay.pair_count, 0);
	assert_int_equal(stage->closed, stage->opened);
	scene_leave(&stage->tap, NULL, &stage->relay.engine);
	scene_kill(&stage->people);
	spokei_world_fini(&stage->world);
}

static int connect_one(struct stage *stage)
{
	struct spoke_address at;
	int fd;
	int result;

	address_of(stage, "mem:tap", &at);
	result = net_of(stage)->connect(stage->people.env.ctx, &at, &fd);
	assert_true(result == 0 || result == -EINPROGRESS);
	go(stage);
	return fd;
}

static int accept_one(struct stage *stage)
{
	struct spoke_address peer;
	int fd;

	assert_int_equal(net_of(stage)->accept(stage->people.env.ctx, stage->target, &fd, &peer),
			 0);
	return fd;
}

static void connect_both(struct stage *stage)
{
	stage->client = connect_one(stage);
	stage->server = accept_one(stage);
}

static ssize_t put(struct stage *stage, int fd, const void *bytes, size_t len)
{
	unsigned char copy[65536];
	struct iovec part = { copy, len < sizeof(copy) ? len : sizeof(copy) };

	memcpy(copy, bytes, part.iov_len);
	return net_of(stage)->write(stage->people.env.ctx, fd, &part, 1);
}

static ssize_t get(struct stage *stage, int fd, void *bytes, size_t len)
{
	return net_of(stage)->read(stage->people.env.ctx, fd, bytes, len);
}

static void assert_gets(struct stage *stage, int fd, const char *text)
{
	char got[64] = "";

	assert_int_equal(get(stage, fd, got, sizeof(got) - 1), strlen(text));
	assert_string_equal(got, text);
}

static void assert_over(struct stage *stage, int fd)
{
	char byte;

	assert_int_equal(get(stage, fd, &byte, 1), 0);
}

static void shut(struct stage *stage, int fd)
{
	assert_int_equal(net_of(stage)->shut(stage->people.env.ctx, fd), 0);
	go(stage);
}

static void close_fd(struct stage *stage, int fd)
{
	net_of(stage)->close(stage->people.env.ctx, fd);
	go(stage);
}

/* --- tests */

TEST(relay_forwards_both_ways_and_half_close)
{
	struct stage stage;

	set_up(&stage);
	connect_both(&stage);
	assert_int_equal(put(&stage, stage.client, "hello", 5), 5);
	go(&stage);
	assert_gets(&stage, stage.server, "hello");
	shut(&stage, stage.client);
	assert_over(&stage, stage.server);
	assert_int_equal(stage.ended[RELAY_TO], 1);

	/* The other direction continues. */
	assert_int_equal(put(&stage, stage.server, "world", 5), 5);
	go(&stage);
	assert_gets(&stage, stage.client, "world");
	assert_int_equal(stage.closed, 0);
	close_fd(&stage, stage.server);
	assert_over(&stage, stage.client);
	assert_int_equal(stage.closed, 1);
	assert_int_equal(stage.error, 0);
	assert_int_equal(stage.seen[RELAY_TO], 5);
	assert_int_equal(stage.seen[RELAY_FROM], 5);
	tear_down(&stage);
}

/* Writes until the buffers are full, then reads; checks that all bytes arrive. */
static void push_much(struct stage *stage, int from, int to)
{
	static unsigned char bytes[MUCH];
	static unsigned char got[MUCH];
	size_t sent = 0;
	size_t received = 0;
	size_t stuck;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 + (i >> 11));
	for (int idle = 0; idle < 3; go(stage)) {
		ssize_t taken = put(stage, from, bytes + sent, sizeof(bytes) - sent);

		idle = taken < 0 ? idle + 1 : 0;
		sent += taken > 0 ? (size_t)taken : 0;
	}
	stuck = sent;
	assert_true(stuck < sizeof(bytes)); /* the relay does not buffer all */
	while (received < sizeof(bytes)) {
		ssize_t taken = sent < sizeof(bytes)
					? put(stage, from, bytes + sent, sizeof(bytes) - sent)
					: 0;
		ssize_t some = get(stage, to, got + received, sizeof(got) - received);

		sent += taken > 0 ? (size_t)taken : 0;
		received += some > 0 ? (size_t)some : 0;
		go(stage);
	}
	assert_memory_equal(got, bytes, sizeof(bytes));
}

TEST(relay_waits_for_a_receiver_that_does_not_read)
{
	struct stage stage;

	set_up(&stage);
	connect_both(&stage);
	push_much(&stage, stage.client, stage.server);
	push_much(&stage, stage.server, stage.client);
	assert_int_equal(stage.seen[RELAY_TO], MUCH);
	assert_int_equal(stage.sum[RELAY_TO], stage.sum[RELAY_FROM]);
	tear_down(&stage);
}

TEST(bytes_before_a_reset_are_passed_on)
{
	struct stage stage;

	for (int dies = 0; dies < 2; dies++) {
		int dead;
		int alive;

		set_up(&stage);
		connect_both(&stage);
		dead = dies == 0 ? stage.client : stage.server;
		alive = dies == 0 ? stage.server : stage.client;
		assert_int_equal(put(&stage, dead, "last", 4), 4);
		spokei_vnet_reset(stage.world.net, dead);
		go(&stage);
		assert_gets(&stage, alive, "last");
		assert_over(&stage, alive);
		assert_int_equal(stage.closed, 1);
		assert_int_equal(stage.error, -ECONNRESET);
		tear_down(&stage);
	}
}

TEST(bytes_without_a_receiver_are_dropped)
{
	static const unsigned char bytes[65536];
	struct stage stage;

	set_up(&stage);
	connect_both(&stage);
	for (int idle = 0; idle < 3; go(&stage))
		idle = put(&stage, stage.server, bytes, sizeof(bytes)) < 0 ? idle + 1 : 0;
	spokei_vnet_reset(stage.world.net, stage.client);
	go(&stage);
	assert_int_equal(stage.closed, 1);
	assert_int_equal(stage.relay.pair_count, 0);
	tear_down(&stage);
}

TEST(client_is_closed_without_a_target)
{
	struct stage stage;

	set_up(&stage);
	close_fd(&stage, stage.target);
	stage.client = connect_one(&stage);
	assert_over(&stage, stage.client);
	assert_int_equal(stage.closed, 1);
	assert_int_equal(stage.error, -ECONNREFUSED);
	tear_down(&stage);
}

TEST(bytes_received_while_connecting_are_kept)
{
	struct stage stage;

	set_up(&stage);
	spokei_vnet_route(stage.world.net, "mem:target", SPOKEI_VNET_SILENT);
	stage.client = connect_one(&stage);
	assert_int_equal(put(&stage, stage.client, "early", 5), 5);
	shut(&stage, stage.client);
	spokei_vnet_route(stage.world.net, "mem:target", SPOKEI_VNET_NORMAL);
	spokei_world_run(&stage.world, stage.world.now_ns + 3000 * MS); /* accept() is retried */
	stage.server = accept_one(&stage);
	go(&stage);
	assert_gets(&stage, stage.server, "early");
	assert_over(&stage, stage.server);
	tear_down(&stage);
}

TEST(clients_above_the_limit_wait_in_backlog)
{
	static int fds[RELAY_PAIRS_MAX + 3];
	struct stage stage;

	set_up(&stage);
	for (size_t i = 0; i < RELAY_PAIRS_MAX + 3; i++)
		fds[i] = connect_one(&stage);
	assert_int_equal(stage.opened, RELAY_PAIRS_MAX);
	assert_int_equal(stage.relay.pair_count, RELAY_PAIRS_MAX);
	for (size_t i = 0; i < RELAY_PAIRS_MAX; i++)
		close_fd(&stage, accept_one(&stage));
	for (size_t i = 0; i < 4; i++)
		close_fd(&stage, fds[i]);
	assert_int_equal(stage.opened, RELAY_PAIRS_MAX + 3);
	tear_down(&stage);
}

TEST(failed_accept_is_retried)
{
	struct stage stage;

	set_up(&stage);
	assert_true(spokei_vnet_fail_accepts_at(stage.world.net, "mem:tap", -EMFILE, 2));
	stage.client = connect_one(&stage);
	assert_int_equal(stage.refused, 1);
	assert_int_equal(stage.opened, 0);
	spokei_world_run(&stage.world, stage.world.now_ns + 1000 * MS);
	assert_int_equal(stage.refused, 2);
	assert_int_equal(stage.opened, 1);
	tear_down(&stage);
}
