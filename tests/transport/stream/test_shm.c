/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams over shared memory face each other without a connection: the handshake, bells, the
 * end, and peers that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "transport/stream/shm/parts.h"

#include <spoke/engine.h>

#define PLACE "unix:/run/x.sock"

enum {
	STEPS = 100,
};

struct pair {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spokei_stream sides[2]; /* that connects, that has accepted */
};

static void ignore_ready(struct spoke_watch *watch, unsigned io)
{
	(void)watch;
	(void)io;
}

static int set_up(void **state)
{
	static struct pair pair;
	struct spoke_engine_options options = { .env = &pair.faulty.env };
	const struct spoke_env *env = &pair.faulty.env;
	struct spoke_address address;
	int listener;
	int fds[2];

	memset(&pair, 0, sizeof(pair));
	assert_true(spokei_world_init(&pair.world, 3));
	spokei_world_process_init(&pair.process, &pair.world);
	spokei_faults_init(&pair.faulty, &pair.process.env);
	assert_int_equal(spoke_engine_new(&options, &pair.engine), 0);
	assert_int_equal(env->net->parse(env->ctx, PLACE, &address), 0);
	assert_int_equal(env->net->listen(env->ctx, &address, 1, &listener), 0);
	(void)env->net->connect(env->ctx, &address, &fds[0]);
	spokei_world_run(&pair.world, pair.world.now_ns + 1);
	assert_int_equal(env->net->finish(env->ctx, fds[0]), 0);
	assert_int_equal(env->net->accept(env->ctx, listener, &fds[1], &address), 0);
	env->net->close(env->ctx, listener);
	for (unsigned i = 0; i < 2; i++) {
		spokei_stream_init(&pair.sides[i], pair.engine, &spokei_stream_shm, fds[i],
				   ignore_ready);
		pair.sides[i].accepted = i == 1;
		pair.sides[i].ring_bits = SPOKEI_SHM_BITS_MIN;
	}
	*state = &pair;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *pair = *state;

	spokei_stream_close(&pair->sides[0]);
	spokei_stream_close(&pair->sides[1]);
	spoke_engine_free(pair->engine);
	assert_int_equal(pair->faulty.blocks, 0);
	assert_int_equal(pair->faulty.fds, 0);
	assert_int_equal(pair->faulty.shares, 0);
	assert_int_equal(pair->process.user.shares, 0);
	spokei_world_process_fini(&pair->process);
	spokei_world_fini(&pair->world);
	return 0;
}

static void open_both(struct pair *pair)
{
	int status[2] = { SPOKEI_STREAM_MORE, SPOKEI_STREAM_MORE };
	unsigned calls = 0;

	while (status[0] || status[1]) {
		for (unsigned i = 0; i < 2; i++)
			if (status[i])
				status[i] = spokei_stream_shm.open(&pair->sides[i]);
		assert_in_range(status[0], 0, SPOKEI_STREAM_MORE);
		assert_in_range(status[1], 0, SPOKEI_STREAM_MORE);
		assert_in_range(++calls, 1, STEPS);
	}
}

static struct spokei_shm_link *link_of(struct pair *pair, unsigned side)
{
	return pair->sides[side].state;
}

static ssize_t write_to(struct pair *pair, unsigned side, size_t len)
{
	static unsigned char bytes[8192];
	struct iovec part = { bytes, len };

	return spokei_stream_shm.write(&pair->sides[side], &part, 1);
}

static ssize_t read_from(struct pair *pair, unsigned side, size_t len)
{
	static unsigned char bytes[8192];

	return spokei_stream_shm.read(&pair->sides[side], bytes, len);
}

/* Has both sides wait for these events, and sleep. */
static void sleep_both(struct pair *pair, unsigned first, unsigned second)
{
	(void)spokei_stream_shm.wants(&pair->sides[0], first);
	(void)spokei_stream_shm.wants(&pair->sides[1], second);
	assert_false(spokei_sources_lull(pair->engine));
}

static bool is_rung(struct pair *pair, unsigned side)
{
	return spokei_vnet_ready(pair->world.net, pair->sides[side].watch.fd) & SPOKE_IO_READ;
}

static void a_write_rings_a_peer_that_sleeps_once(void **state)
{
	struct pair *pair = *state;

	open_both(pair);
	sleep_both(pair, SPOKE_IO_READ, SPOKE_IO_READ);
	assert_false(is_rung(pair, 1));
	assert_int_equal(write_to(pair, 0, 10), 10);
	assert_true(is_rung(pair, 1));
	assert_int_equal(write_to(pair, 0, 10), 10);
	assert_int_equal(read_from(pair, 1, 100), 20);
	assert_false(is_rung(pair, 1)); /* one bell, which the read has taken */
	assert_int_equal(write_to(pair, 0, 10), 10);
	assert_false(is_rung(pair, 1)); /* it is awake */
	assert_false(is_rung(pair, 0));
}

static void bytes_that_come_while_a_side_falls_asleep_keep_it_awake(void **state)
{
	struct pair *pair = *state;
	struct spokei_shm_link *link;

	open_both(pair);
	link = link_of(pair, 1);
	(void)spokei_stream_shm.wants(&pair->sides[1], SPOKE_IO_READ);
	assert_int_equal(write_to(pair, 0, 10), 10);
	assert_false(link->source.sleep(&link->source));
	assert_int_equal(write_to(pair, 0, 10), 10);
	assert_false(is_rung(pair, 1));
}

static void a_writer_that_waits_for_room_is_rung_when_there_is_enough(void **state)
{
	struct pair *pair = *state;

	open_both(pair);
	assert_int_equal(write_to(pair, 0, 8192), 4096);
	assert_int_equal(write_to(pair, 0, 1), -EAGAIN);
	sleep_both(pair, SPOKE_IO_READ | SPOKE_IO_WRITE, 0);
	assert_int_equal(read_from(pair, 1, 1023), 1023);
	assert_false(is_rung(pair, 0));
	assert_int_equal(read_from(pair, 1, 1), 1);
	assert_true(is_rung(pair, 0));
	assert_int_equal(write_to(pair, 0, 8192), 1024);
}

static void a_side_that_waits_for_nothing_is_not_rung(void **state)
{
	struct pair *pair = *state;

	open_both(pair);
	sleep_both(pair, SPOKE_IO_READ, 0);
	assert_int_equal(write_to(pair, 0, 10), 10);
	assert_false(is_rung(pair, 1));
	/* It looks once it waits again. */
	(void)spokei_stream_shm.wants(&pair->sides[1], SPOKE_IO_READ);
	assert_true(spokei_sources_lull(pair->engine));
}

static void the_end_comes_behind_the_last_bytes(void **state)
{
	struct pair *pair = *state;

	open_both(pair);
	sleep_both(pair, SPOKE_IO_READ, SPOKE_IO_READ);
	assert_int_equal(write_to(pair, 0, 10), 10);
	assert_int_equal(spokei_stream_shm.shut(&pair->sides[0]), 0);
	assert_int_equal(read_from(pair, 1, 100), 10);
	assert_int_equal(spokei_stream_shm.pending(&pair->sides[1]), 1);
	assert_int_equal(read_from(pair, 1, 100), 0);
	assert_int_equal(spokei_stream_shm.pending(&pair->sides[1]), 0);
	assert_int_equal(write_to(pair, 1, 10), 10); /* the other direction is open */
	assert_int_equal(read_from(pair, 0, 100), 10);
}

static void bytes_of_a_peer_that_is_gone_are_still_read(void **state)
{
	struct pair *pair = *state;

	open_both(pair);
	assert_int_equal(write_to(pair, 0, 10), 10);
	spokei_stream_close(&pair->sides[0]);
	spokei_world_run(&pair->world, pair->world.now_ns + 1);
	assert_int_equal(read_from(pair, 1, 100), 10);
	assert_int_equal(read_from(pair, 1, 100), 0);
	assert_int_equal(write_to(pair, 1, 10), -EPIPE);
}

static void an_impossible_counter_ends_the_stream(void **state)
{
	struct pair *pair = *state;

	open_both(pair);
	atomic_store(&link_of(pair, 1)->in.words->put, 4097);
	assert_int_equal(spokei_stream_shm.pending(&pair->sides[1]), 1);
	assert_int_equal(read_from(pair, 1, 100), -EPROTO);
	assert_non_null(strstr(spokei_stream_why(&pair->sides[1]), "impossible"));
	assert_int_equal(write_to(pair, 1, 1), -EPROTO);
}

static void progress_is_what_the_ring_has_taken(void **state)
{
	struct pair *pair = *state;

	open_both(pair);
	assert_int_equal(write_to(pair, 0, 8192), 4096);
	assert_int_equal(spokei_stream_shm.passed(&pair->sides[0]), 4096);
	assert_int_equal(spokei_stream_shm.unsent(&pair->sides[0]), 4096);
	assert_int_equal(read_from(pair, 1, 96), 96);
	assert_int_equal(spokei_stream_shm.unsent(&pair->sides[0]), 4000);
}

static void bytes_that_the_peer_has_not_taken_are_queued(void **state)
{
	struct pair *pair = *state;
	const struct spokei_stream *writer = &pair->sides[0];

	open_both(pair);
	assert_false(spokei_stream_shm.queues(writer, 1));
	assert_int_equal(write_to(pair, 0, 1000), 1000);
	assert_true(spokei_stream_shm.queues(writer, 1000));
	assert_false(spokei_stream_shm.queues(writer, 1001));
	assert_int_equal(read_from(pair, 1, 600), 600);
	assert_false(spokei_stream_shm.queues(writer, 401));
	assert_true(spokei_stream_shm.queues(writer, 400));
	assert_false(spokei_stream_shm.queues(&pair->sides[1], 1));
}

static void an_impossible_counter_is_found_when_bytes_are_counted(void **state)
{
	struct pair *pair = *state;
	const struct spokei_stream *writer = &pair->sides[0];

	open_both(pair);
	assert_int_equal(write_to(pair, 0, 1000), 1000);
	atomic_store(&link_of(pair, 0)->out.words->taken, 1001);
	assert_false(spokei_stream_shm.queues(writer, 1));
	assert_int_equal(write_to(pair, 0, 1), -EPROTO);
	assert_int_equal(read_from(pair, 0, 1), -EPROTO);
	assert_non_null(strstr(spokei_stream_why(writer), "impossible"));
}

static void a_writer_that_waits_for_few_bytes_is_woken_then_only(void **state)
{
	struct pair *pair = *state;
	struct spokei_shm_link *link;

	open_both(pair);
	link = link_of(pair, 0);
	assert_int_equal(write_to(pair, 0, 3000), 3000);
	pair->sides[0].low = 500;
	sleep_both(pair, SPOKE_IO_WRITE, 0);
	assert_int_equal(read_from(pair, 1, 2499), 2499);
	assert_true(is_rung(pair, 0)); /* the peer does not know the number */
	(void)spokei_stream_shm.flush(&pair->sides[0]);
	assert_false(link->source.has(&link->source));
	assert_int_equal(read_from(pair, 1, 1), 1);
	assert_true(link->source.has(&link->source));
	/* It looks again when it may wait for fewer. */
	pair->sides[0].low = 400;
	sleep_both(pair, SPOKE_IO_WRITE, 0);
	pair->sides[0].low = SIZE_MAX;
	(void)spokei_stream_shm.wants(&pair->sides[0], SPOKE_IO_WRITE);
	assert_true(spokei_sources_lull(pair->engine));
}

/* Sends a hello of its own, with memory of that size; 0: without. */
static int open_after(struct pair *pair, const unsigned char *hello, size_t len, size_t size)
{
	const struct spoke_env *env = &pair->faulty.env;
	unsigned char bytes[16] = { 0 };
	struct iovec part = { bytes, len };
	struct spoke_shared shared = { NULL, 0 };
	int status;

	memcpy(bytes, hello, len < 6 ? len : 6);
	if (size > 0) {
		assert_int_equal(env->net->share(env->ctx, pair->sides[0].watch.fd, &part, size,
						 &shared),
				 0);
	} else {
		assert_int_equal(env->net->write(env->ctx, pair->sides[0].watch.fd, &part, 1), len);
	}
	spokei_world_run(&pair->world, pair->world.now_ns + 1);
	status = spokei_stream_shm.open(&pair->sides[1]);
	if (shared.memory)
		env->net->unshare(env->ctx, &shared);
	return status;
}

static void a_hello_that_lies_is_refused(void **state)
{
	static const struct {
		unsigned char hello[6];
		size_t len;
		size_t size;
		enum spokei_shm_fault fault;
	} cases[] = {
		{ { 0xda, 0xbb, 0xc2, 0, 0, 0 }, 16, 0, SPOKEI_SHM_NO_HELLO },
		{ { 0xf5, 's', 'h', 'm', 2, 12 }, 16, 12288, SPOKEI_SHM_BAD_VERSION },
		{ { 0xf5, 's', 'h', 'm', 1, 12 }, 16, 0, SPOKEI_SHM_NO_MEMORY_SENT },
		{ { 0xf5, 's', 'h', 'm', 1, 12 }, 16, 12287, SPOKEI_SHM_BAD_SIZE },
		{ { 0xf5, 's', 'h', 'm', 1, 13 }, 16, 12288, SPOKEI_SHM_BAD_SIZE },
		{ { 0xf5, 's', 'h', 'm', 1, 11 }, 16, 8192, SPOKEI_SHM_BAD_SIZE },
		{ { 0xf5, 's', 'h', 'm', 1, 27 }, 16, 8192, SPOKEI_SHM_BAD_SIZE },
		{ { 0xf5, 's', 'h', 'm', 1, 255 }, 16, 8192, SPOKEI_SHM_BAD_SIZE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair *pair;

		if (i > 0)
			assert_int_equal(set_up(state), 0);
		pair = *state;
		assert_int_equal(open_after(pair, cases[i].hello, cases[i].len, cases[i].size),
				 -EPROTO);
		assert_int_equal(pair->sides[1].fault, cases[i].fault);
		assert_non_null(spokei_stream_why(&pair->sides[1]));
		assert_null(pair->sides[1].state);
		if (i + 1 < sizeof(cases) / sizeof(cases[0]))
			assert_int_equal(tear_down(state), 0);
	}
}

static int share_status;

static int share_in_vain(void *ctx, int fd, const struct iovec *bytes, size_t size,
			 struct spoke_shared *ret)
{
	(void)ctx;
	(void)fd;
	(void)bytes;
	(void)size;
	(void)ret;
	return share_status;
}

static void memory_is_not_to_blame_for_a_peer_that_has_closed(void **state)
{
	static const struct {
		int status;
		enum spokei_shm_fault fault;
	} cases[] = {
		{ -EPIPE, SPOKEI_SHM_NO_ANSWER },
		{ -ECONNRESET, SPOKEI_SHM_NO_ANSWER },
		{ -ENOMEM, SPOKEI_SHM_CANNOT_MAKE },
	};
	struct pair *pair = *state;
	const struct spoke_net *before = pair->faulty.env.net;
	struct spoke_net net = *before;

	net.share = share_in_vain;
	pair->faulty.env.net = &net;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		share_status = cases[i].status;
		assert_int_equal(spokei_stream_shm.open(&pair->sides[0]), share_status);
		assert_int_equal(pair->sides[0].fault, cases[i].fault);
	}
	pair->faulty.env.net = before;
}

static void a_silent_peer_costs_no_memory(void **state)
{
	struct pair *pair = *state;
	size_t blocks = pair->faulty.blocks;

	assert_int_equal(spokei_stream_shm.open(&pair->sides[1]), SPOKEI_STREAM_MORE);
	assert_int_equal(pair->faulty.blocks, blocks);
	assert_null(pair->sides[1].state);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_write_rings_a_peer_that_sleeps_once),
		TEST(bytes_that_come_while_a_side_falls_asleep_keep_it_awake),
		TEST(a_writer_that_waits_for_room_is_rung_when_there_is_enough),
		TEST(a_side_that_waits_for_nothing_is_not_rung),
		TEST(the_end_comes_behind_the_last_bytes),
		TEST(bytes_of_a_peer_that_is_gone_are_still_read),
		TEST(an_impossible_counter_ends_the_stream),
		TEST(progress_is_what_the_ring_has_taken),
		TEST(bytes_that_the_peer_has_not_taken_are_queued),
		TEST(an_impossible_counter_is_found_when_bytes_are_counted),
		TEST(a_writer_that_waits_for_few_bytes_is_woken_then_only),
		TEST(a_hello_that_lies_is_refused),
		TEST(memory_is_not_to_blame_for_a_peer_that_has_closed),
		TEST(a_silent_peer_costs_no_memory),
	};

	return cmocka_run_group_tests_name("streams over shared memory", tests, NULL, NULL);
}
