/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams of the tests face each other without a connection: each slot keeps its contract. */
#include <string.h>

#include "core/virtual/faults.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "tests/transport/stream/strange.h"

#include <spoke/engine.h>
#include <spoke/value.h>

#define PLACE "127.0.0.1:20880"

enum {
	BYTES = 20000,
	STEPS = 200,
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

STEP(set_up)
{
	static struct pair pair;
	int fds[2];

	memset(&pair, 0, sizeof(pair));
	scene_open(&pair.world, 3);
	pair.engine = scene_engine(&pair.world, &pair.process, &pair.faulty, NULL);
	scene_pair(&pair.world, &pair.faulty.env, PLACE, fds);
	for (unsigned i = 0; i < 2; i++) {
		spokei_stream_init(&pair.sides[i], pair.engine, &strange_stream, fds[i],
				   ignore_ready);
		pair.sides[i].accepted = i == 1;
	}
	*state = &pair;
}

STEP(tear_down)
{
	struct pair *pair = *state;

	spokei_stream_close(&pair->sides[0]);
	spokei_stream_close(&pair->sides[1]);
	scene_leave(&pair->process, &pair->faulty, &pair->engine);
	spokei_world_fini(&pair->world);
}

#define PAIR_TEST(...) TEST_WITH(struct pair *pair, *state, __VA_ARGS__)

FIXTURE(set_up, tear_down);

/* Returns how many times the connecting side was called until both were open. */
static unsigned open_both(struct pair *pair)
{
	int status[2] = { SPOKEI_STREAM_MORE, SPOKEI_STREAM_MORE };
	unsigned calls = 0;

	while (status[0] || status[1]) {
		for (unsigned i = 0; i < 2; i++)
			if (status[i])
				status[i] = strange_stream.open(&pair->sides[i]);
		assert_in_range(status[0], 0, SPOKEI_STREAM_MORE);
		assert_in_range(status[1], 0, SPOKEI_STREAM_MORE);
		assert_in_range(++calls, 1, STEPS);
	}
	return calls;
}

PAIR_TEST(stream_is_open_after_three_round_trips)
{
	assert_in_range(open_both(pair), STRANGE_ROUND_TRIPS, 2 * STRANGE_ROUND_TRIPS);
}

PAIR_TEST(bytes_arrive_in_order_through_small_frames)
{
	static unsigned char sent[BYTES];
	static unsigned char came[BYTES];
	size_t done = 0;
	size_t got = 0;

	(void)open_both(pair);
	for (size_t i = 0; i < BYTES; i++)
		sent[i] = (unsigned char)(i * 7);
	for (unsigned step = 0; got < BYTES && step < STEPS; step++) {
		struct iovec part = { sent + done, BYTES - done };
		ssize_t wrote = strange_stream.write(&pair->sides[0], &part, 1);
		ssize_t read = strange_stream.read(&pair->sides[1], came + got, BYTES - got);

		done += wrote > 0 ? (size_t)wrote : 0;
		got += read > 0 ? (size_t)read : 0;
		(void)strange_stream.flush(&pair->sides[0]);
		(void)strange_stream.flush(&pair->sides[1]);
	}
	assert_int_equal(got, BYTES);
	assert_memory_equal(came, sent, BYTES);
}

PAIR_TEST(writing_waits_for_a_read_when_the_peer_has_to_consent)
{
	static unsigned char bytes[BYTES];
	struct iovec part = { bytes, BYTES };

	(void)open_both(pair);
	for (unsigned step = 0; step < STEPS; step++) {
		(void)strange_stream.write(&pair->sides[0], &part, 1);
		(void)strange_stream.flush(&pair->sides[0]);
	}
	assert_int_equal(strange_stream.wants(&pair->sides[0], SPOKE_IO_WRITE), SPOKE_IO_READ);
}

PAIR_TEST(peer_of_a_strange_stream_has_a_name_and_a_socket_has_none)
{
	const struct spoke_span *names = NULL;
	struct spokei_stream socket = { .kind = &spokei_stream_socket };

	(void)open_both(pair);
	assert_int_equal(spokei_stream_names(&pair->sides[1], &names), 1);
	assert_int_equal(names[0].len, strlen(STRANGE_NAME));
	assert_memory_equal(names[0].data, STRANGE_NAME, names[0].len);
	assert_int_equal(spokei_stream_names(&socket, &names), 0);
	assert_int_equal(spokei_stream_pending(&socket), 0);
}
