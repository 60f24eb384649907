/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of emptied buffers, which is kept for the next one. */
#include "core/base/env.h"
#include "core/memory/buffer.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#define BUFFERS 40u /* of the largest size: more than are kept */

struct rig {
	struct memory memory;
	struct spokei_spares spares;
};

static void set_up(struct rig *rig)
{
	rig->spares = (struct spokei_spares){ 0 };
	memory_init(&rig->memory);
}

static void tear_down(struct rig *rig)
{
	spokei_spares_fini(&rig->spares, &rig->memory.env);
	assert_int_equal(rig->spares.bytes, 0);
	assert_int_equal(rig->memory.bytes, 0);
}

/* Returns an empty buffer with this capacity. */
static struct spokei_buffer emptied(struct rig *rig, size_t capacity)
{
	struct spokei_buffer buffer;

	spokei_buffer_init(&buffer, &rig->memory.env, 2 * SPOKEI_SPARE_MAX);
	buffer.bytes = spokei_alloc(&rig->memory.env, 1, capacity);
	assert_non_null(buffer.bytes);
	buffer.capacity = capacity;
	return buffer;
}

static void keep(struct rig *rig, size_t capacity)
{
	struct spokei_buffer buffer = emptied(rig, capacity);

	spokei_spares_return(&rig->spares, &buffer);
	assert_null(buffer.bytes);
	assert_int_equal(buffer.capacity, 0);
}

/* Fills and empties an output buffer. */
static void use(struct rig *rig)
{
	struct spokei_buffer buffer;

	spokei_buffer_init(&buffer, &rig->memory.env, 2 * SPOKEI_SPARE_MAX);
	spokei_spares_lend(&rig->spares, &buffer);
	spokei_spares_return(&rig->spares, &buffer);
}

static void slim(struct rig *rig, bool busy)
{
	spokei_spares_slim(&rig->spares, &rig->memory.env, busy);
}

TEST(kept_memory_is_bounded)
{
	struct rig rig;

	set_up(&rig);
	for (unsigned i = 1; i <= BUFFERS; i++) {
		size_t bytes = (size_t)i * SPOKEI_SPARE_MAX;

		keep(&rig, SPOKEI_SPARE_MAX);
		assert_int_equal(rig.spares.bytes,
				 bytes < SPOKEI_SPARES_MAX ? bytes : SPOKEI_SPARES_MAX);
		assert_int_equal(rig.memory.bytes, rig.spares.bytes);
	}
	tear_down(&rig);
}

TEST(blocks_of_unusual_size_are_not_kept)
{
	struct rig rig;

	set_up(&rig);
	keep(&rig, SPOKEI_SPARE_MAX + 1);
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
	spokei_buffer_init(&buffer, &rig.memory.env, SPOKEI_SPARE_MAX);
	spokei_spares_lend(&rig.spares, &buffer);
	assert_int_equal(buffer.capacity, 2000);
	assert_int_equal(rig.spares.bytes, 1000);
	spokei_spares_return(&rig.spares, &buffer);
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
		slim(&rig, false);
		assert_int_equal(rig.spares.bytes, 1000);
		use(&rig);
	}
	slim(&rig, false);
	assert_int_equal(rig.spares.bytes, 1000);
	slim(&rig, false);
	assert_int_equal(rig.spares.bytes, 0);
	tear_down(&rig);
}

TEST(memory_in_demand_is_kept)
{
	struct rig rig;

	set_up(&rig);
	keep(&rig, 1000);
	slim(&rig, true);
	slim(&rig, true);
	assert_int_equal(rig.spares.bytes, 1000);
	slim(&rig, false);
	assert_int_equal(rig.spares.bytes, 0);
	tear_down(&rig);
}
