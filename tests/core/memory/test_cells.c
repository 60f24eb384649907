/* SPDX-License-Identifier: Apache-2.0 */
/* Cells for long-lived objects lie in blocks; blocks that are empty are freed. */
#include "core/base/env.h"
#include "core/memory/cells.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <string.h>

#define SIZE 40u /* bytes of a cell */
#define CELLS 50 /* more than one block holds */

/* Makes cells and takes the first cell, which has an allocation of its own. */
static void *begin(struct memory *memory, struct spokei_cells *cells)
{
	void *first;

	memory_init(memory);
	spokei_cells_init(cells, &memory->env, SIZE);
	first = spokei_cells_take(cells);
	assert_non_null(first);
	return first;
}

static void end(const struct memory *memory, struct spokei_cells *cells, void *first)
{
	spokei_cells_give(cells, first);
	assert_int_equal(memory->bytes, 0);
	spokei_cells_fini(cells);
}

TEST(cells_are_zero_aligned_and_apart)
{
	static const unsigned char zeros[SIZE];
	struct memory memory;
	struct spokei_cells cells;
	unsigned char *taken[CELLS];

	memory_init(&memory);
	spokei_cells_init(&cells, &memory.env, SIZE);
	for (int i = 0; i < CELLS; i++) {
		taken[i] = spokei_cells_take(&cells);
		assert_non_null(taken[i]);
		assert_int_equal((uintptr_t)taken[i] % (2 * sizeof(void *)), 0);
		assert_memory_equal(taken[i], zeros, SIZE);
		memset(taken[i], i + 1, SIZE);
	}
	for (int i = 0; i < CELLS; i++)
		for (unsigned j = 0; j < SIZE; j++)
			assert_int_equal(taken[i][j], i + 1);
	/* The first cell has an allocation of its own. */
	assert_int_equal(memory.asked,
			 1 + (CELLS - 1 + SPOKEI_CELLS_BLOCK - 1) / SPOKEI_CELLS_BLOCK);
	for (int i = 0; i < CELLS; i++)
		spokei_cells_give(&cells, taken[i]);
	assert_int_equal(memory.bytes, 0);
}

TEST(the_one_given_back_last_is_taken_next_and_zero)
{
	static const unsigned char zeros[SIZE];
	struct memory memory;
	struct spokei_cells cells;
	void *lone;
	unsigned char *first;
	unsigned char *second;

	lone = begin(&memory, &cells);
	first = spokei_cells_take(&cells);
	second = spokei_cells_take(&cells);
	assert_non_null(first);
	assert_non_null(second);
	memset(first, 1, SIZE);
	spokei_cells_give(&cells, first);
	assert_ptr_equal(spokei_cells_take(&cells), first);
	assert_memory_equal(first, zeros, SIZE);
	spokei_cells_give(&cells, first);
	spokei_cells_give(&cells, second);
	end(&memory, &cells, lone);
}

/* Fills three blocks. The first and the last keep one cell each, the middle one loses one cell,
 * which is taken again first. */
TEST(blocks_become_empty_and_are_given_back)
{
	struct memory memory;
	struct spokei_cells cells;
	void *lone;
	void *taken[3 * SPOKEI_CELLS_BLOCK];
	size_t block;
	size_t alone;

	lone = begin(&memory, &cells);
	alone = memory.bytes;
	for (unsigned i = 0; i < 3 * SPOKEI_CELLS_BLOCK; i++) {
		taken[i] = spokei_cells_take(&cells);
		assert_non_null(taken[i]);
	}
	block = (memory.bytes - alone) / 3;
	for (unsigned i = 1; i < SPOKEI_CELLS_BLOCK; i++) {
		spokei_cells_give(&cells, taken[i]);
		spokei_cells_give(&cells, taken[2 * SPOKEI_CELLS_BLOCK + i]);
	}
	spokei_cells_give(&cells, taken[SPOKEI_CELLS_BLOCK]); /* now the fullest block */
	assert_ptr_equal(spokei_cells_take(&cells), taken[SPOKEI_CELLS_BLOCK]);
	assert_int_equal(memory.bytes, alone + 3 * block);
	spokei_cells_give(&cells, taken[0]);
	assert_int_equal(memory.bytes, alone + 2 * block);
	spokei_cells_give(&cells, taken[2 * SPOKEI_CELLS_BLOCK]);
	assert_int_equal(memory.bytes, alone + block);
	for (unsigned i = 0; i < SPOKEI_CELLS_BLOCK; i++)
		spokei_cells_give(&cells, taken[SPOKEI_CELLS_BLOCK + i]);
	end(&memory, &cells, lone);
}

TEST(they_may_be_used_again_after_all_were_given_back)
{
	struct memory memory;
	struct spokei_cells cells;

	memory_init(&memory);
	spokei_cells_init(&cells, &memory.env, SIZE);
	for (int i = 0; i < 3; i++) {
		void *cell = spokei_cells_take(&cells);

		assert_non_null(cell);
		spokei_cells_give(&cells, cell);
		assert_int_equal(memory.bytes, 0);
	}
}

TEST(without_memory_those_that_stand_stay)
{
	struct memory memory;
	struct spokei_cells cells;
	void *lone;
	void *taken[SPOKEI_CELLS_BLOCK];

	lone = begin(&memory, &cells);
	memory.fail_at = memory.asked + 1;
	assert_null(spokei_cells_take(&cells));
	for (unsigned i = 0; i < SPOKEI_CELLS_BLOCK; i++) {
		taken[i] = spokei_cells_take(&cells);
		assert_non_null(taken[i]);
	}
	memory.fail_at = memory.asked + 1;
	assert_null(spokei_cells_take(&cells));
	spokei_cells_give(&cells, taken[2]);
	assert_ptr_equal(spokei_cells_take(&cells), taken[2]);
	for (unsigned i = 0; i < SPOKEI_CELLS_BLOCK; i++)
		spokei_cells_give(&cells, taken[i]);
	end(&memory, &cells, lone);
}
