/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: handles, their generations, limits, and failed allocations. */
#include "core/memory/slab.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

struct cell {
	uint64_t content[3];
};

TEST(handle_finds_cell_until_given_back)
{
	struct memory memory;
	struct spokei_slab slab;
	uint64_t handles[1000];

	memory_init(&memory);
	spokei_slab_init(&slab, &memory.env, sizeof(struct cell), 1000);
	for (uint64_t i = 0; i < 1000; i++) {
		void *cell;

		assert_int_equal(spokei_slab_take(&slab, &cell, &handles[i]), SPOKE_OK);
		assert_true(handles[i] != 0);
		assert_int_equal((uintptr_t)cell % 16, 0);
		((struct cell *)cell)->content[2] = i;
	}
	for (uint64_t i = 0; i < 1000; i++) {
		struct cell *cell = spokei_slab_get(&slab, handles[i]);

		assert_non_null(cell);
		assert_int_equal(cell->content[0], 0);
		assert_int_equal(cell->content[2], i);
	}
	for (uint64_t i = 0; i < 1000; i++)
		spokei_slab_give(&slab, handles[(i * 7) % 1000]);
	for (uint64_t i = 0; i < 1000; i++)
		assert_null(spokei_slab_get(&slab, handles[i]));
	spokei_slab_fini(&slab);
	assert_int_equal(memory.bytes, 0);
}

TEST(stale_handle_never_reaches_next_owner)
{
	struct memory memory;
	struct spokei_slab slab;
	uint64_t old;
	uint64_t next;
	void *cell;

	memory_init(&memory);
	spokei_slab_init(&slab, &memory.env, sizeof(struct cell), 4);
	assert_int_equal(spokei_slab_take(&slab, &cell, &old), SPOKE_OK);
	for (int i = 0; i < 1000; i++) {
		spokei_slab_give(&slab, old);
		assert_int_equal(spokei_slab_take(&slab, &cell, &next), SPOKE_OK);
		assert_int_equal((uint32_t)old, (uint32_t)next); /* the cell freed last is reused */
		assert_null(spokei_slab_get(&slab, old));
		assert_ptr_equal(spokei_slab_get(&slab, next), cell);
		old = next;
	}
	spokei_slab_give(&slab, old);
	spokei_slab_fini(&slab);
}

TEST(unknown_handle_finds_nothing)
{
	struct memory memory;
	struct spokei_slab slab;
	uint64_t handle;
	void *cell;

	memory_init(&memory);
	spokei_slab_init(&slab, &memory.env, 1, 100);
	assert_null(spokei_slab_get(&slab, 0));
	assert_null(spokei_slab_get(&slab, UINT64_MAX));
	assert_int_equal(spokei_slab_take(&slab, &cell, &handle), SPOKE_OK);
	assert_null(spokei_slab_get(&slab, 0));
	assert_null(spokei_slab_get(&slab, handle + 1));
	assert_null(spokei_slab_get(&slab, handle + 64));
	assert_null(spokei_slab_get(&slab, handle + (UINT64_C(1) << 32)));
	assert_null(spokei_slab_get(&slab, handle + (UINT64_C(2) << 32)));
	spokei_slab_give(&slab, handle);
	spokei_slab_fini(&slab);
}

TEST(slab_maximum_is_exact)
{
	struct memory memory;
	struct spokei_slab slab;
	uint64_t handles[3];
	uint64_t none = 77;
	void *cell;

	memory_init(&memory);
	spokei_slab_init(&slab, &memory.env, 8, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(spokei_slab_take(&slab, &cell, &handles[i]), SPOKE_OK);
	assert_int_equal(spokei_slab_take(&slab, &cell, &none), SPOKE_ELIMIT);
	slab.max = 2;
	assert_int_equal(spokei_slab_take(&slab, &cell, &none), SPOKE_ELIMIT);
	assert_int_equal(none, 77);
	slab.max = 3;
	spokei_slab_give(&slab, handles[1]);
	assert_int_equal(spokei_slab_take(&slab, &cell, &handles[1]), SPOKE_OK);
	for (int i = 0; i < 3; i++)
		spokei_slab_give(&slab, handles[i]);
	spokei_slab_fini(&slab);
}

TEST(cells_never_move)
{
	struct memory memory;
	struct spokei_slab slab;
	uint64_t handles[2000];
	void *first;
	void *cell;

	memory_init(&memory);
	spokei_slab_init(&slab, &memory.env, sizeof(struct cell), 2000);
	assert_int_equal(spokei_slab_take(&slab, &first, &handles[0]), SPOKE_OK);
	for (int i = 1; i < 2000; i++)
		assert_int_equal(spokei_slab_take(&slab, &cell, &handles[i]), SPOKE_OK);
	assert_ptr_equal(spokei_slab_get(&slab, handles[0]), first);
	for (int i = 0; i < 2000; i++)
		spokei_slab_give(&slab, handles[i]);
	spokei_slab_fini(&slab);
}

TEST(slab_stays_intact_after_enomem)
{
	for (unsigned fail_at = 1;; fail_at++) {
		struct memory memory;
		struct spokei_slab slab;
		uint64_t handles[600];
		unsigned taken = 0;
		int failed = 0;

		memory_init(&memory);
		memory.fail_at = fail_at;
		spokei_slab_init(&slab, &memory.env, sizeof(struct cell), 600);
		while (taken < 600) {
			void *cell;
			int error = spokei_slab_take(&slab, &cell, &handles[taken]);

			if (error == SPOKE_OK) {
				taken++;
				continue;
			}
			assert_int_equal(error, SPOKE_ENOMEM);
			failed++;
		}
		for (unsigned i = 0; i < taken; i++)
			spokei_slab_give(&slab, handles[i]);
		spokei_slab_fini(&slab);
		assert_int_equal(memory.bytes, 0);
		if (failed == 0)
			break;
		assert_int_equal(failed, 1);
	}
}
