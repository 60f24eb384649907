/* SPDX-License-Identifier: Apache-2.0 */
/* The pool that allocates connections in blocks, and frees blocks that are empty. */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"

#include <string.h>

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
