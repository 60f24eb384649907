/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a link keeps for the next output buffer: its amount, its use and its release. */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"
#include "transport/conn/link.h"

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
