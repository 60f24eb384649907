/* SPDX-License-Identifier: Apache-2.0 */
/* The table of pending calls while it grows in steps. */
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "transport/conn/pending.h"

#include <stdlib.h>

TEST(ring_that_grows_in_steps_keeps_every_call)
{
	enum {
		MANY = 20000
	};
	struct spokei_pending *calls = calloc(MANY, sizeof(*calls));
	struct spokei_pendings pendings;
	struct memory memory;
	bool grew = false;
	bool given;

	assert_non_null(calls);
	memory_init(&memory);
	spokei_pendings_init(&pendings, 1, UINT32_MAX, UINT32_MAX - 5000);
	for (size_t i = 0; i < MANY; i++) {
		size_t gone = i / 4;
		size_t kept = gone + 1 + (i * 7919) % (i - gone + 1);

		assert_int_equal(spokei_pendings_add(&pendings, &memory.env, &calls[i]), SPOKE_OK);
		grew |= pendings.grown != NULL;
		kept = kept < i ? kept : i;
		assert_ptr_equal(spokei_pendings_find(&pendings, calls[i].id, &given), &calls[i]);
		assert_ptr_equal(spokei_pendings_find(&pendings, calls[kept].id, &given),
				 &calls[kept]);
		if (i % 4 == 3) {
			spokei_pendings_remove(&pendings, &calls[gone]);
			assert_null(spokei_pendings_find(&pendings, calls[gone].id, &given));
			assert_true(given);
		}
		assert_int_equal(pendings.count, i + 1 - (i + 1) / 4);
	}
	assert_true(grew);
	for (size_t left = pendings.count; left > 0; left--)
		spokei_pendings_remove(&pendings, spokei_pendings_any(&pendings));
	assert_null(spokei_pendings_any(&pendings));
	spokei_pendings_fini(&pendings, &memory.env);
	assert_int_equal(memory.bytes, 0);
	free(calls);
}
