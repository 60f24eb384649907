/* SPDX-License-Identifier: Apache-2.0 */
/* The limits and memory that connections share. */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"

#include <string.h>

#define SPARE_MAX 262144u   /* bytes; larger ones are not kept */
#define SPARES_MAX 8388608u /* total bytes */
#define BUFFERS 40u         /* of the largest size: more than are kept */

struct rig {
	struct memory memory;
	struct spoke_engine engine; /* only its environment is used */
	struct spokei_link link;
};

static void set_up(struct rig *rig)
{
	*rig = (struct rig){ .link = { .engine = &rig->engine } };
	memory_init(&rig->memory);
	rig->engine.env = &rig->memory.env;
}

static void tear_down(struct rig *rig)
{
	spokei_link_drop_spares(&rig->link);
	assert_int_equal(rig->link.spare_bytes, 0);
	assert_int_equal(rig->memory.bytes, 0);
}

/* Returns an empty buffer with this capacity. */
static struct spokei_buffer emptied(struct rig *rig, size_t capacity)
{
	struct spokei_buffer buffer;

	spokei_buffer_init(&buffer, &rig->memory.env, 2 * SPARE_MAX);
	buffer.bytes = spokei_alloc(&rig->memory.env, 1, capacity);
	assert_non_null(buffer.bytes);
	buffer.capacity = capacity;
	return buffer;
}

static void keep(struct rig *rig, size_t capacity)
{
	struct spokei_buffer buffer = emptied(rig, capacity);

	spokei_link_return(&rig->link, &buffer);
	assert_null(buffer.bytes);
	assert_int_equal(buffer.capacity, 0);
}

/* Fills and empties an output buffer. */
static void use(struct rig *rig)
{
	struct spokei_buffer buffer;

	spokei_buffer_init(&buffer, &rig->memory.env, 2 * SPARE_MAX);
	spokei_link_lend(&rig->link, &buffer);
	spokei_link_return(&rig->link, &buffer);
}

TEST(kept_memory_is_bounded)
{
	struct rig rig;

	set_up(&rig);
	for (unsigned i = 1; i <= BUFFERS; i++) {
		size_t bytes = (size_t)i * SPARE_MAX;

		keep(&rig, SPARE_MAX);
		assert_int_equal(rig.link.spare_bytes, bytes < SPARES_MAX ? bytes : SPARES_MAX);
		assert_int_equal(rig.memory.bytes, rig.link.spare_bytes);
	}
	tear_down(&rig);
}

TEST(blocks_of_unusual_size_are_not_kept)
{
	struct rig rig;

	set_up(&rig);
	keep(&rig, SPARE_MAX + 1);
	keep(&rig, 1);
	assert_int_equal(rig.memory.bytes, 0);
	tear_down(&rig);
}

TEST(the_newest_is_lent_first)
{
	struct spokei_buffer buffer;
	struct rig rig;

	set_up(&rig);
	keep(&rig, 1000);
	keep(&rig, 2000);
	spokei_buffer_init(&buffer, &rig.memory.env, SPARE_MAX);
	spokei_link_lend(&rig.link, &buffer);
	assert_int_equal(buffer.capacity, 2000);
	assert_int_equal(rig.link.spare_bytes, 1000);
	spokei_link_return(&rig.link, &buffer);
	tear_down(&rig);
}

/* Heartbeats of one connection do not free memory that others, between two calls, need again. */
TEST(recently_lent_memory_is_kept)
{
	struct rig rig;

	set_up(&rig);
	use(&rig);
	keep(&rig, 1000);
	for (int i = 0; i < 3; i++) {
		spokei_link_slim(&rig.link);
		assert_int_equal(rig.link.spare_bytes, 1000);
		use(&rig);
	}
	spokei_link_slim(&rig.link);
	assert_int_equal(rig.link.spare_bytes, 1000);
	spokei_link_slim(&rig.link);
	assert_int_equal(rig.link.spare_bytes, 0);
	tear_down(&rig);
}

TEST(memory_in_demand_is_kept)
{
	struct rig rig;

	set_up(&rig);
	keep(&rig, 1000);
	rig.link.pending_count = 1;
	spokei_link_slim(&rig.link);
	rig.link.pending_count = 0;
	rig.link.serving_count = 1;
	spokei_link_slim(&rig.link);
	assert_int_equal(rig.link.spare_bytes, 1000);
	rig.link.serving_count = 0;
	spokei_link_slim(&rig.link);
	assert_int_equal(rig.link.spare_bytes, 0);
	tear_down(&rig);
}

/* --- The pool that allocates connections in blocks, and frees blocks that are empty */

#define SIZE 40u  /* bytes of a cell */
#define BERTHS 50 /* more than one block holds */

/* Makes a pool and takes the first cell, which has an allocation of its own. */
static void *begin(struct memory *memory, struct spokei_conn_pool *pool)
{
	void *first;

	memory_init(memory);
	spokei_conn_pool_init(pool, &memory->env, SIZE);
	first = spokei_conn_pool_take(pool);
	assert_non_null(first);
	return first;
}

static void end(const struct memory *memory, struct spokei_conn_pool *pool, void *first)
{
	spokei_conn_pool_give(pool, first);
	assert_int_equal(memory->bytes, 0);
	spokei_conn_pool_fini(pool);
}

TEST(berths_are_zero_aligned_and_apart)
{
	static const unsigned char zeros[SIZE];
	struct memory memory;
	struct spokei_conn_pool pool;
	unsigned char *taken[BERTHS];

	memory_init(&memory);
	spokei_conn_pool_init(&pool, &memory.env, SIZE);
	for (int i = 0; i < BERTHS; i++) {
		taken[i] = spokei_conn_pool_take(&pool);
		assert_non_null(taken[i]);
		assert_int_equal((uintptr_t)taken[i] % (2 * sizeof(void *)), 0);
		assert_memory_equal(taken[i], zeros, SIZE);
		memset(taken[i], i + 1, SIZE);
	}
	for (int i = 0; i < BERTHS; i++)
		for (unsigned j = 0; j < SIZE; j++)
			assert_int_equal(taken[i][j], i + 1);
	/* The first cell has an allocation of its own. */
	assert_int_equal(memory.asked,
			 1 + (BERTHS - 1 + SPOKEI_CONN_POOL_BLOCK - 1) / SPOKEI_CONN_POOL_BLOCK);
	for (int i = 0; i < BERTHS; i++)
		spokei_conn_pool_give(&pool, taken[i]);
	assert_int_equal(memory.bytes, 0);
}

TEST(the_one_given_back_last_is_taken_next_and_zero)
{
	static const unsigned char zeros[SIZE];
	struct memory memory;
	struct spokei_conn_pool pool;
	void *lone;
	unsigned char *first;
	unsigned char *second;

	lone = begin(&memory, &pool);
	first = spokei_conn_pool_take(&pool);
	second = spokei_conn_pool_take(&pool);
	assert_non_null(first);
	assert_non_null(second);
	memset(first, 1, SIZE);
	spokei_conn_pool_give(&pool, first);
	assert_ptr_equal(spokei_conn_pool_take(&pool), first);
	assert_memory_equal(first, zeros, SIZE);
	spokei_conn_pool_give(&pool, first);
	spokei_conn_pool_give(&pool, second);
	end(&memory, &pool, lone);
}

/* Fills three blocks. The first and the last keep one cell each, the middle one loses one cell,
 * which is taken again first. */
TEST(blocks_become_empty_and_are_given_back)
{
	struct memory memory;
	struct spokei_conn_pool pool;
	void *lone;
	void *taken[3 * SPOKEI_CONN_POOL_BLOCK];
	size_t block;
	size_t alone;

	lone = begin(&memory, &pool);
	alone = memory.bytes;
	for (unsigned i = 0; i < 3 * SPOKEI_CONN_POOL_BLOCK; i++) {
		taken[i] = spokei_conn_pool_take(&pool);
		assert_non_null(taken[i]);
	}
	block = (memory.bytes - alone) / 3;
	for (unsigned i = 1; i < SPOKEI_CONN_POOL_BLOCK; i++) {
		spokei_conn_pool_give(&pool, taken[i]);
		spokei_conn_pool_give(&pool, taken[2 * SPOKEI_CONN_POOL_BLOCK + i]);
	}
	spokei_conn_pool_give(&pool, taken[SPOKEI_CONN_POOL_BLOCK]); /* now the fullest block */
	assert_ptr_equal(spokei_conn_pool_take(&pool), taken[SPOKEI_CONN_POOL_BLOCK]);
	assert_int_equal(memory.bytes, alone + 3 * block);
	spokei_conn_pool_give(&pool, taken[0]);
	assert_int_equal(memory.bytes, alone + 2 * block);
	spokei_conn_pool_give(&pool, taken[2 * SPOKEI_CONN_POOL_BLOCK]);
	assert_int_equal(memory.bytes, alone + block);
	for (unsigned i = 0; i < SPOKEI_CONN_POOL_BLOCK; i++)
		spokei_conn_pool_give(&pool, taken[SPOKEI_CONN_POOL_BLOCK + i]);
	end(&memory, &pool, lone);
}

TEST(they_may_be_used_again_after_all_were_given_back)
{
	struct memory memory;
	struct spokei_conn_pool pool;

	memory_init(&memory);
	spokei_conn_pool_init(&pool, &memory.env, SIZE);
	for (int i = 0; i < 3; i++) {
		void *berth = spokei_conn_pool_take(&pool);

		assert_non_null(berth);
		spokei_conn_pool_give(&pool, berth);
		assert_int_equal(memory.bytes, 0);
	}
}

TEST(without_memory_those_that_stand_stay)
{
	struct memory memory;
	struct spokei_conn_pool pool;
	void *lone;
	void *taken[SPOKEI_CONN_POOL_BLOCK];

	lone = begin(&memory, &pool);
	memory.fail_at = memory.asked + 1;
	assert_null(spokei_conn_pool_take(&pool));
	for (unsigned i = 0; i < SPOKEI_CONN_POOL_BLOCK; i++) {
		taken[i] = spokei_conn_pool_take(&pool);
		assert_non_null(taken[i]);
	}
	memory.fail_at = memory.asked + 1;
	assert_null(spokei_conn_pool_take(&pool));
	spokei_conn_pool_give(&pool, taken[2]);
	assert_ptr_equal(spokei_conn_pool_take(&pool), taken[2]);
	for (unsigned i = 0; i < SPOKEI_CONN_POOL_BLOCK; i++)
		spokei_conn_pool_give(&pool, taken[i]);
	end(&memory, &pool, lone);
}
