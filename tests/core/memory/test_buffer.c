/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer: bytes in, bytes out, and its use of memory. */
#include "core/memory/buffer.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

struct fixture {
	struct memory memory;
	struct spokei_buffer buffer;
};

static struct fixture fixture;

static struct spokei_buffer *setup(size_t max)
{
	memory_init(&fixture.memory);
	spokei_buffer_init(&fixture.buffer, &fixture.memory.env, max);
	return &fixture.buffer;
}

/* Returns the n-th byte of an endless pattern in which no two parts look alike. */
static unsigned char byte_at(size_t n)
{
	return (unsigned char)(n * 31 + (n >> 8) * 7);
}

static void append_row(struct spokei_buffer *buffer, size_t from, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = byte_at(from + i);

		assert_int_equal(spokei_buffer_append(buffer, &byte, 1), 0);
	}
}

static void assert_row(const struct spokei_buffer *buffer, size_t from, size_t len)
{
	assert_int_equal(spokei_buffer_len(buffer), len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(spokei_buffer_data(buffer)[i], byte_at(from + i));
}

TEST(new_buffer_holds_no_memory)
{
	struct spokei_buffer *buffer = setup(100);

	assert_int_equal(spokei_buffer_len(buffer), 0);
	spokei_buffer_consume(buffer, 5);
	spokei_buffer_truncate(buffer, 0);
	assert_int_equal(spokei_buffer_append(buffer, NULL, 0), 0);
	assert_int_equal(fixture.memory.asked, 0);
	spokei_buffer_fini(buffer);
}

TEST(buffer_returns_bytes_in_order)
{
	struct spokei_buffer *buffer = setup(100000);
	size_t in = 0;
	size_t out = 0;

	for (size_t round = 0; round < 300; round++) {
		append_row(buffer, in, round * 7 % 211);
		in += round * 7 % 211;
		assert_row(buffer, out, in - out);
		spokei_buffer_consume(buffer, (in - out) * (round % 5) / 4);
		out += (in - out) * (round % 5) / 4;
		assert_row(buffer, out, in - out);
	}
	spokei_buffer_fini(buffer);
	assert_int_equal(fixture.memory.bytes, 0);
}

TEST(buffer_grows_with_content_in_few_steps)
{
	struct spokei_buffer *buffer = setup(1u << 20);

	append_row(buffer, 0, 1);
	assert_true(fixture.memory.bytes <= 512);
	append_row(buffer, 1, 65535);
	assert_true(fixture.memory.bytes <= 131072);
	assert_true(fixture.memory.asked <= 9);
	assert_row(buffer, 0, 65536);
	spokei_buffer_fini(buffer);
}

TEST(moving_queue_needs_memory_for_its_length_only)
{
	struct spokei_buffer *buffer = setup(1u << 20);

	append_row(buffer, 0, 1000);
	for (size_t i = 0; i < 20000; i++) {
		append_row(buffer, 1000 + i, 1);
		spokei_buffer_consume(buffer, 1);
	}
	assert_row(buffer, 20000, 1000);
	assert_true(fixture.memory.bytes <= 4096);
	spokei_buffer_fini(buffer);
}

TEST(queue_near_capacity_grows_instead_of_moving)
{
	struct spokei_buffer *buffer = setup(1u << 20);

	append_row(buffer, 0, 500);
	assert_int_equal(fixture.memory.bytes, 512);
	spokei_buffer_consume(buffer, 10);
	append_row(buffer, 500, 20);
	assert_true(fixture.memory.bytes > 512);
	assert_row(buffer, 10, 510);
	spokei_buffer_fini(buffer);
}

TEST(full_buffer_moves_content_when_memory_fails)
{
	struct spokei_buffer *buffer = setup(1u << 20);

	append_row(buffer, 0, 500);
	spokei_buffer_consume(buffer, 10);
	fixture.memory.fail_at = fixture.memory.asked + 1;
	append_row(buffer, 500, 20);
	assert_row(buffer, 10, 510);
	spokei_buffer_fini(buffer);
}

TEST(buffer_maximum_is_exact)
{
	struct spokei_buffer *buffer = setup(1000);

	append_row(buffer, 0, 1000);
	assert_int_equal(spokei_buffer_append(buffer, "x", 1), SPOKE_ETOOLARGE);
	assert_null(spokei_buffer_reserve(buffer, 1));
	assert_null(spokei_buffer_reserve(buffer, SIZE_MAX));
	assert_int_equal(spokei_buffer_append(buffer, "x", SIZE_MAX), SPOKE_ETOOLARGE);
	assert_row(buffer, 0, 1000);
	spokei_buffer_consume(buffer, 1);
	append_row(buffer, 1000, 1);
	assert_row(buffer, 1, 1000);
	spokei_buffer_fini(buffer);
}

TEST(huge_maximum_does_not_overflow)
{
	struct spokei_buffer *buffer = setup(SIZE_MAX);

	append_row(buffer, 0, 700);
	fixture.memory.fail_at = fixture.memory.asked + 1;
	assert_null(spokei_buffer_reserve(buffer, SIZE_MAX - 700));
	assert_null(spokei_buffer_reserve(buffer, SIZE_MAX - 699));
	assert_row(buffer, 0, 700);
	spokei_buffer_fini(buffer);
}

TEST(empty_buffer_frees_large_memory_and_keeps_small)
{
	struct spokei_buffer *buffer = setup(1u << 20);

	append_row(buffer, 0, 300000);
	spokei_buffer_consume(buffer, 299999);
	assert_true(fixture.memory.bytes >= 300000);
	spokei_buffer_consume(buffer, 299999);
	assert_int_equal(fixture.memory.bytes, 0);
	append_row(buffer, 0, 1000);
	spokei_buffer_truncate(buffer, 0);
	assert_in_range(fixture.memory.bytes, 1000, 16384);
	spokei_buffer_fini(buffer);
	assert_int_equal(fixture.memory.bytes, 0);
}

TEST(reserved_bytes_count_after_commit)
{
	struct spokei_buffer *buffer = setup(1000);
	unsigned char *room;

	append_row(buffer, 0, 10);
	room = spokei_buffer_reserve(buffer, 900);
	assert_non_null(room);
	assert_row(buffer, 0, 10);
	for (size_t i = 0; i < 900; i++)
		room[i] = byte_at(10 + i);
	spokei_buffer_commit(buffer, 400);
	assert_row(buffer, 0, 410);
	spokei_buffer_truncate(buffer, 500);
	assert_row(buffer, 0, 410);
	spokei_buffer_truncate(buffer, 300);
	assert_row(buffer, 0, 300);
	spokei_buffer_fini(buffer);
}

TEST(failed_growth_keeps_content)
{
	for (unsigned fail_at = 1; fail_at < 8; fail_at++) {
		struct spokei_buffer *buffer = setup(1u << 20);
		size_t held = 0;
		int result = 0;

		fixture.memory.fail_at = fail_at;
		while (result == 0) {
			unsigned char byte = byte_at(held);

			result = spokei_buffer_append(buffer, &byte, 1);
			held += result == 0;
		}
		assert_int_equal(result, SPOKE_ENOMEM);
		assert_row(buffer, 0, held);
		append_row(buffer, held, 1000);
		assert_row(buffer, 0, held + 1000);
		spokei_buffer_fini(buffer);
		assert_int_equal(fixture.memory.bytes, 0);
	}
}
