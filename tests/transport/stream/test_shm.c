/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams over shared memory face each other without a connection: the handshake, the end,
 * and peers that lie. */
#include "tests/support/test.h"
#include "tests/transport/stream/shmrig.h"

#include <string.h>

FIXTURE(shmrig_set_up, shmrig_tear_down);

SHM_TEST(the_end_comes_behind_the_last_bytes)
{
	shmrig_open(pair);
	shmrig_sleep(pair, SPOKE_IO_READ, SPOKE_IO_READ);
	assert_int_equal(shmrig_write(pair, 0, 10), 10);
	assert_int_equal(spokei_stream_shm.shut(&pair->sides[0]), 0);
	assert_int_equal(shmrig_read(pair, 1, 100), 10);
	assert_int_equal(spokei_stream_shm.pending(&pair->sides[1]), 1);
	assert_int_equal(shmrig_read(pair, 1, 100), 0);
	assert_int_equal(spokei_stream_shm.pending(&pair->sides[1]), 0);
	assert_int_equal(shmrig_write(pair, 1, 10), 10); /* the other direction is open */
	assert_int_equal(shmrig_read(pair, 0, 100), 10);
}

SHM_TEST(bytes_of_a_peer_that_is_gone_are_still_read)
{
	shmrig_open(pair);
	assert_int_equal(shmrig_write(pair, 0, 10), 10);
	spokei_stream_close(&pair->sides[0]);
	spokei_world_run(&pair->world, pair->world.now_ns + 1);
	assert_int_equal(shmrig_read(pair, 1, 100), 10);
	assert_int_equal(shmrig_read(pair, 1, 100), 0);
	assert_int_equal(shmrig_write(pair, 1, 10), -EPIPE);
}

SHM_TEST(an_impossible_counter_ends_the_stream)
{
	shmrig_open(pair);
	atomic_store(&shmrig_link(pair, 1)->in.words->put, 4097);
	assert_int_equal(spokei_stream_shm.pending(&pair->sides[1]), 1);
	assert_int_equal(shmrig_read(pair, 1, 100), -EPROTO);
	assert_non_null(strstr(spokei_stream_why(&pair->sides[1]), "impossible"));
	assert_int_equal(shmrig_write(pair, 1, 1), -EPROTO);
}

SHM_TEST(progress_is_what_the_ring_has_taken)
{
	shmrig_open(pair);
	assert_int_equal(shmrig_write(pair, 0, 8192), 4096);
	assert_int_equal(spokei_stream_shm.passed(&pair->sides[0]), 4096);
	assert_int_equal(spokei_stream_shm.unsent(&pair->sides[0]), 4096);
	assert_int_equal(shmrig_read(pair, 1, 96), 96);
	assert_int_equal(spokei_stream_shm.unsent(&pair->sides[0]), 4000);
}

SHM_TEST(bytes_that_the_peer_has_not_taken_are_queued)
{
	const struct spokei_stream *writer = &pair->sides[0];

	shmrig_open(pair);
	assert_false(spokei_stream_shm.queues(writer, 1));
	assert_int_equal(shmrig_write(pair, 0, 1000), 1000);
	assert_true(spokei_stream_shm.queues(writer, 1000));
	assert_false(spokei_stream_shm.queues(writer, 1001));
	assert_int_equal(shmrig_read(pair, 1, 600), 600);
	assert_false(spokei_stream_shm.queues(writer, 401));
	assert_true(spokei_stream_shm.queues(writer, 400));
	assert_false(spokei_stream_shm.queues(&pair->sides[1], 1));
}

SHM_TEST(an_impossible_counter_is_found_when_bytes_are_counted)
{
	const struct spokei_stream *writer = &pair->sides[0];

	shmrig_open(pair);
	assert_int_equal(shmrig_write(pair, 0, 1000), 1000);
	atomic_store(&shmrig_link(pair, 0)->out.words->taken, 1001);
	assert_false(spokei_stream_shm.queues(writer, 1));
	assert_int_equal(shmrig_write(pair, 0, 1), -EPROTO);
	assert_int_equal(shmrig_read(pair, 0, 1), -EPROTO);
	assert_non_null(strstr(spokei_stream_why(writer), "impossible"));
}

/* Sends a hello of its own, with memory of that size; 0: without. */
static int open_after(struct shmrig *pair, const unsigned char *hello, size_t len, size_t size)
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

TEST(a_hello_that_lies_is_refused)
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
		struct shmrig *pair;

		if (i > 0)
			assert_int_equal(shmrig_set_up(state), 0);
		pair = *state;
		assert_int_equal(open_after(pair, cases[i].hello, cases[i].len, cases[i].size),
				 -EPROTO);
		assert_int_equal(pair->sides[1].fault, cases[i].fault);
		assert_non_null(spokei_stream_why(&pair->sides[1]));
		assert_null(pair->sides[1].state);
		if (i + 1 < sizeof(cases) / sizeof(cases[0]))
			assert_int_equal(shmrig_tear_down(state), 0);
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

SHM_TEST(memory_is_not_to_blame_for_a_peer_that_has_closed)
{
	static const struct {
		int status;
		enum spokei_shm_fault fault;
	} cases[] = {
		{ -EPIPE, SPOKEI_SHM_NO_ANSWER },
		{ -ECONNRESET, SPOKEI_SHM_NO_ANSWER },
		{ -ENOMEM, SPOKEI_SHM_CANNOT_MAKE },
	};
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

SHM_TEST(a_silent_peer_costs_no_memory)
{
	size_t blocks = pair->faulty.blocks;

	assert_int_equal(spokei_stream_shm.open(&pair->sides[1]), SPOKEI_STREAM_MORE);
	assert_int_equal(pair->faulty.blocks, blocks);
	assert_null(pair->sides[1].state);
}
