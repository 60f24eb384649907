/* SPDX-License-Identifier: Apache-2.0 */
/* The rings of shared memory, with honest and hostile peers. */
#include "tests/support/test.h"
#include "transport/stream/shm/ring.h"

#include <string.h>

enum {
	SIZE = 4096
};

/* Both sides of one memory. */
static struct {
	_Alignas(4096) unsigned char memory[SPOKEI_RING_AT + 2 * SIZE];
	struct spokei_ring_in in[2];
	struct spokei_ring_out out[2];
} pair;

static struct spokei_ring_front *front(void)
{
	return (struct spokei_ring_front *)(void *)pair.memory;
}

STEP(set_up)
{
	memset(pair.memory, 0, sizeof(pair.memory));
	for (unsigned i = 0; i < 2; i++)
		spokei_ring_attach(pair.memory, SIZE, i == 1, &pair.in[i], &pair.out[i]);
}

FIXTURE(set_up, NULL);

static ssize_t write_bytes(unsigned side, const void *bytes, size_t len)
{
	unsigned char copy[2 * SIZE];
	struct iovec part = { copy, len };

	memcpy(copy, bytes, len);
	return spokei_ring_write(&pair.out[side], &part, 1);
}

/* Starts both counters of a ring just below their end. */
static void wind_to(uint32_t count)
{
	atomic_store(&front()->rings[0].put, count);
	atomic_store(&front()->rings[0].taken, count);
	pair.out[0].put = pair.out[0].taken = count;
	pair.in[1].taken = count;
}

TEST(bytes_come_out_as_they_went_in_around_both_ends)
{
	unsigned char sent[300];
	unsigned char got[300];
	unsigned char next = 0;

	wind_to(UINT32_MAX - 1000);
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned j = 0; j < sizeof(sent); j++)
			sent[j] = next++;
		assert_int_equal(write_bytes(0, sent, sizeof(sent)), sizeof(sent));
		assert_int_equal(spokei_ring_len(&pair.in[1]), sizeof(sent));
		assert_int_equal(spokei_ring_read(&pair.in[1], got, sizeof(got)), sizeof(sent));
		assert_memory_equal(got, sent, sizeof(sent));
	}
	assert_int_equal(spokei_ring_read(&pair.in[1], got, sizeof(got)), 0);
}

TEST(the_two_rings_are_apart)
{
	char got[8];

	assert_int_equal(write_bytes(0, "ab", 2), 2);
	assert_int_equal(write_bytes(1, "cde", 3), 3);
	assert_int_equal(spokei_ring_read(&pair.in[0], got, sizeof(got)), 3);
	assert_memory_equal(got, "cde", 3);
	assert_int_equal(spokei_ring_read(&pair.in[1], got, sizeof(got)), 2);
	assert_memory_equal(got, "ab", 2);
}

TEST(a_full_ring_takes_what_fits_and_then_nothing)
{
	unsigned char bytes[2 * SIZE] = { 1 };
	struct iovec parts[] = { { bytes, 100 }, { bytes, SIZE }, { bytes, 5 } };

	assert_int_equal(spokei_ring_write(&pair.out[0], parts, 3), SIZE);
	assert_int_equal(spokei_ring_write(&pair.out[0], parts, 3), -EAGAIN);
	assert_int_equal(spokei_ring_unread(&pair.out[0]), SIZE);
	assert_int_equal(spokei_ring_read(&pair.in[1], bytes, 10), 10);
	assert_int_equal(spokei_ring_write(&pair.out[0], parts, 3), 10);
}

TEST(an_impossible_count_of_the_writer_is_an_error)
{
	static const uint32_t wrong[] = { SIZE + 1, UINT32_MAX, UINT32_MAX - SIZE, 1u << 31 };
	unsigned char bytes[SIZE];

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		atomic_store(&front()->rings[0].put, wrong[i]);
		assert_int_equal(spokei_ring_len(&pair.in[1]), -EPROTO);
		assert_int_equal(spokei_ring_read(&pair.in[1], bytes, sizeof(bytes)), -EPROTO);
	}
	atomic_store(&front()->rings[0].put, SIZE);
	assert_int_equal(spokei_ring_read(&pair.in[1], bytes, sizeof(bytes)), SIZE);
}

TEST(an_impossible_count_of_the_reader_is_an_error)
{
	unsigned char bytes[SIZE] = { 0 };

	assert_int_equal(write_bytes(0, bytes, SIZE), SIZE);
	atomic_store(&front()->rings[0].taken, SIZE + 1);
	assert_int_equal(write_bytes(0, bytes, 1), -EPROTO);
	assert_int_equal(spokei_ring_unread(&pair.out[0]), -EPROTO);
	atomic_store(&front()->rings[0].taken, UINT32_MAX);
	assert_int_equal(write_bytes(0, bytes, 1), -EPROTO);
}

/* The writer goes by its copy, and refuses as soon as it needs a new one. */
TEST(an_impossible_count_of_the_reader_gives_no_room)
{
	unsigned char bytes[SIZE] = { 0 };

	assert_int_equal(write_bytes(0, bytes, 100), 100);
	atomic_store(&front()->rings[0].taken, SIZE + 1);
	assert_int_equal(write_bytes(0, bytes, SIZE - 100), SIZE - 100);
	assert_int_equal(write_bytes(0, bytes, 1), -EPROTO);
	assert_int_equal(spokei_ring_look(&pair.out[0]), -EPROTO);
	assert_int_equal(write_bytes(0, bytes, SIZE), -EPROTO);
	assert_int_equal(pair.out[0].put, SIZE);
	atomic_store(&front()->rings[0].taken, 100);
	assert_int_equal(write_bytes(0, bytes, SIZE), 100);
}

TEST(a_count_that_goes_back_gives_no_byte_twice)
{
	unsigned char bytes[16];

	assert_int_equal(write_bytes(0, "0123456789", 10), 10);
	assert_int_equal(spokei_ring_read(&pair.in[1], bytes, sizeof(bytes)), 10);
	atomic_store(&front()->rings[0].put, 5);
	assert_int_equal(spokei_ring_read(&pair.in[1], bytes, sizeof(bytes)), -EPROTO);
}

TEST(a_side_that_sleeps_is_woken_once_and_for_its_bits)
{
	struct spokei_ring_sleep *asleep = &front()->asleep[1];

	assert_false(spokei_ring_wakes(asleep, SPOKEI_RING_BYTES));
	spokei_ring_sleep(asleep, SPOKEI_RING_BYTES);
	assert_false(spokei_ring_wakes(asleep, SPOKEI_RING_ROOM));
	assert_true(spokei_ring_wakes(asleep, SPOKEI_RING_BYTES));
	assert_false(spokei_ring_wakes(asleep, SPOKEI_RING_BYTES));
	spokei_ring_sleep(asleep, SPOKEI_RING_BYTES | SPOKEI_RING_ROOM);
	spokei_ring_wake(asleep);
	assert_false(spokei_ring_wakes(asleep, SPOKEI_RING_ROOM));
}

TEST(the_end_is_seen_after_the_last_bytes)
{
	char got[8];

	assert_int_equal(write_bytes(0, "ab", 2), 2);
	spokei_ring_end(&pair.out[0]);
	assert_true(spokei_ring_ended(&pair.in[1]));
	assert_false(spokei_ring_ended(&pair.in[0]));
	assert_int_equal(spokei_ring_read(&pair.in[1], got, sizeof(got)), 2);
	assert_int_equal(spokei_ring_read(&pair.in[1], got, sizeof(got)), 0);
}

/* The words and their places are those of SHARED_MEMORY.md. */
TEST(the_layout_is_the_documented_one, .bare = true)
{
	assert_int_equal(offsetof(struct spokei_ring_front, rings[0].put), 0);
	assert_int_equal(offsetof(struct spokei_ring_front, rings[0].ended), 4);
	assert_int_equal(offsetof(struct spokei_ring_front, rings[0].taken), 128);
	assert_int_equal(offsetof(struct spokei_ring_front, rings[1].put), 256);
	assert_int_equal(offsetof(struct spokei_ring_front, rings[1].taken), 384);
	assert_int_equal(offsetof(struct spokei_ring_front, asleep[0]), 512);
	assert_int_equal(offsetof(struct spokei_ring_front, asleep[1]), 640);
	assert_int_equal(spokei_ring_memory(SIZE), 4096 + 2 * SIZE);
}
