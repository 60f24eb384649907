/* SPDX-License-Identifier: Apache-2.0 */
/* Bells over shared memory: a side that sleeps is rung once there is something for it. */
#include "tests/support/test.h"
#include "tests/transport/stream/shmrig.h"

#include "tests/transport/dice.h"

FIXTURE(shmrig_set_up, shmrig_tear_down);

SHM_TEST(a_write_rings_a_peer_that_sleeps_once)
{
	shmrig_open(pair);
	shmrig_sleep(pair, SPOKE_IO_READ, SPOKE_IO_READ);
	assert_false(shmrig_is_rung(pair, 1));
	assert_int_equal(shmrig_write(pair, 0, 10), 10);
	assert_true(shmrig_is_rung(pair, 1));
	assert_int_equal(shmrig_write(pair, 0, 10), 10);
	assert_int_equal(shmrig_read(pair, 1, 100), 20);
	assert_false(shmrig_is_rung(pair, 1)); /* one bell, which the read has taken */
	assert_int_equal(shmrig_write(pair, 0, 10), 10);
	assert_false(shmrig_is_rung(pair, 1)); /* it is awake */
	assert_false(shmrig_is_rung(pair, 0));
}

SHM_TEST(bytes_that_come_while_a_side_falls_asleep_keep_it_awake)
{
	struct spokei_shm_link *link;

	shmrig_open(pair);
	link = shmrig_link(pair, 1);
	(void)spokei_stream_shm.wants(&pair->sides[1], SPOKE_IO_READ);
	assert_int_equal(shmrig_write(pair, 0, 10), 10);
	assert_false(link->source.sleep(&link->source));
	assert_int_equal(shmrig_write(pair, 0, 10), 10);
	assert_false(shmrig_is_rung(pair, 1));
}

SHM_TEST(a_writer_that_waits_for_room_is_rung_when_there_is_enough)
{
	shmrig_open(pair);
	assert_int_equal(shmrig_write(pair, 0, 8192), 4096);
	assert_int_equal(shmrig_write(pair, 0, 1), -EAGAIN);
	shmrig_sleep(pair, SPOKE_IO_READ | SPOKE_IO_WRITE, 0);
	assert_int_equal(shmrig_read(pair, 1, 1023), 1023);
	assert_false(shmrig_is_rung(pair, 0));
	assert_int_equal(shmrig_read(pair, 1, 1), 1);
	assert_true(shmrig_is_rung(pair, 0));
	assert_int_equal(shmrig_write(pair, 0, 8192), 1024);
}

SHM_TEST(a_side_that_waits_for_nothing_is_not_rung)
{
	shmrig_open(pair);
	shmrig_sleep(pair, SPOKE_IO_READ, 0);
	assert_int_equal(shmrig_write(pair, 0, 10), 10);
	assert_false(shmrig_is_rung(pair, 1));
	/* It looks once it waits again. */
	(void)spokei_stream_shm.wants(&pair->sides[1], SPOKE_IO_READ);
	assert_true(spokei_sources_sleep(pair->engine));
}

SHM_TEST(a_writer_that_waits_for_few_bytes_is_woken_then_only)
{
	struct spokei_shm_link *link;

	shmrig_open(pair);
	link = shmrig_link(pair, 0);
	assert_int_equal(shmrig_write(pair, 0, 3000), 3000);
	pair->sides[0].low = 500;
	shmrig_sleep(pair, SPOKE_IO_WRITE, 0);
	assert_int_equal(shmrig_read(pair, 1, 2499), 2499);
	assert_true(shmrig_is_rung(pair, 0)); /* the peer does not know the number */
	(void)spokei_stream_shm.flush(&pair->sides[0]);
	assert_false(link->source.has(&link->source));
	assert_int_equal(shmrig_read(pair, 1, 1), 1);
	assert_true(link->source.has(&link->source));
	/* It looks again when it may wait for fewer. */
	pair->sides[0].low = 400;
	shmrig_sleep(pair, SPOKE_IO_WRITE, 0);
	pair->sides[0].low = SIZE_MAX;
	(void)spokei_stream_shm.wants(&pair->sides[0], SPOKE_IO_WRITE);
	assert_true(spokei_sources_sleep(pair->engine));
}

/* --- any order of steps */

/* One of the calls that a connection makes, at one of the sides. */
static void take_step(struct shmrig *pair, uint64_t *dice, bool shut[2])
{
	static const unsigned wants[] = { SPOKE_IO_READ, SPOKE_IO_WRITE,
					  SPOKE_IO_READ | SPOKE_IO_WRITE, 0 };
	size_t side = dice_below(dice, 2);

	switch (dice_below(dice, 8)) {
	case 0:
	case 1:
		if (!shut[side])
			(void)shmrig_write(pair, side,
					   1 + dice_below(dice, dice_below(dice, 2) ? 20 : 8000));
		break;
	case 2:
	case 3:
		(void)shmrig_read(pair, side,
				  1 + dice_below(dice, dice_below(dice, 2) ? 20 : 8000));
		break;
	case 4:
		pair->sides[side].low = dice_below(dice, 2) ? SIZE_MAX : dice_below(dice, 4096);
		(void)spokei_stream_shm.wants(&pair->sides[side],
					      wants[dice_below(dice, dice_below(dice, 2) ? 2 : 4)]);
		break;
	case 5:
		(void)spokei_stream_shm.flush(&pair->sides[side]);
		break;
	case 6:
		(void)spokei_sources_sleep(pair->engine);
		break;
	default:
		if (dice_below(dice, 20) == 0 && !shut[side])
			shut[side] = spokei_stream_shm.shut(&pair->sides[side]) == 0;
	}
}

/* Returns the sides that sleep although there is something for them. The loop looks at a source
 * that is awake, or its descriptor is ready. */
static unsigned check_sides(struct shmrig *pair)
{
	unsigned asleep = 0;

	for (unsigned side = 0; side < 2; side++) {
		struct spokei_source *source = &shmrig_link(pair, side)->source;

		if (source->node.next || !source->has(source))
			continue;
		asleep++;
		assert_true(shmrig_is_rung(pair, side));
	}
	return asleep;
}

TEST(a_side_that_has_something_is_awake_or_rung, .bare = true)
{
	unsigned asleep = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		bool shut[2] = { false, false };
		uint64_t dice = seed;
		void *pair;

		(void)shmrig_set_up(&pair);
		shmrig_open(pair);
		for (unsigned i = 0; i < 300; i++) {
			take_step(pair, &dice, shut);
			asleep += check_sides(pair);
		}
		(void)shmrig_tear_down(&pair);
	}
	assert_true(asleep > 1000);
}
