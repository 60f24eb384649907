/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, hash maps and slabs. */
#include "core/memory/buffer.h"
#include "core/memory/map.h"
#include "core/memory/slab.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the buffer: bytes in, bytes out, and its use of memory */

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
	assert_true(fixture.memory.asked <= 11);
	assert_row(buffer, 0, 65536);
	spokei_buffer_fini(buffer);
}

TEST(buffer_that_is_fitted_has_no_memory_behind_its_content)
{
	struct spokei_buffer *buffer = setup(1000);

	spokei_buffer_fit(buffer);
	assert_int_equal(fixture.memory.bytes, 0);
	append_row(buffer, 0, 130);
	spokei_buffer_consume(buffer, 10);
	spokei_buffer_fit(buffer);
	assert_int_equal(fixture.memory.bytes, 130);
	append_row(buffer, 130, 700);
	assert_row(buffer, 10, 820);
	spokei_buffer_fini(buffer);
	assert_int_equal(fixture.memory.bytes, 0);
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

/* --- the hash map: insertion, look-up, removal, and failed allocations */

enum {
	MANY = 500
};

static char keys[MANY][24];

static void make_keys(void)
{
	for (int i = 0; i < MANY; i++)
		(void)snprintf(keys[i], sizeof(keys[i]), "service-%d", i);
}

static unsigned char dice_byte = 0x5a;

/* Returns the same numbers each time. */
static void same_dice(void *ctx, void *bytes, size_t len)
{
	(void)ctx;
	memset(bytes, dice_byte, len);
}

static void make_map(struct memory *memory, struct spokei_map *map)
{
	memory_init(memory);
	memory->env.dice = same_dice;
	spokei_map_init(map, &memory->env);
}

static int add(struct spokei_map *map, int i)
{
	return spokei_map_add(map, keys[i], strlen(keys[i]), keys[i]);
}

static void *get(const struct spokei_map *map, int i)
{
	return spokei_map_get(map, keys[i], strlen(keys[i]));
}

TEST(map_finds_key_until_removed)
{
	struct memory memory;
	struct spokei_map map;

	make_keys();
	make_map(&memory, &map);
	assert_null(get(&map, 0));
	assert_null(spokei_map_remove(&map, keys[0], strlen(keys[0])));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(add(&map, i), SPOKE_OK);
	for (int i = 0; i < MANY; i++) {
		assert_ptr_equal(get(&map, i), keys[i]);
		assert_int_equal(add(&map, i), SPOKE_EEXIST);
	}
	/* Each removal may have to close a gap for other keys. */
	for (int gone = 0; gone < MANY; gone++) {
		int i = (gone * 7) % MANY;

		assert_ptr_equal(spokei_map_remove(&map, keys[i], strlen(keys[i])), keys[i]);
		assert_null(get(&map, i));
		for (int later = gone + 1; later < MANY; later += 13)
			assert_ptr_equal(get(&map, (later * 7) % MANY), keys[(later * 7) % MANY]);
	}
	assert_int_equal(map.count, 0);
	spokei_map_fini(&map);
	assert_int_equal(memory.bytes, 0);
}

TEST(map_keys_are_bytes_with_length)
{
	struct memory memory;
	struct spokei_map map;
	char one[] = "a\0b";
	char other[] = "a\0c";

	make_map(&memory, &map);
	assert_int_equal(spokei_map_add(&map, one, 3, one), SPOKE_OK);
	assert_null(spokei_map_get(&map, other, 3));
	assert_null(spokei_map_get(&map, one, 2));
	assert_null(spokei_map_get(&map, one, 0));
	assert_int_equal(spokei_map_add(&map, one, 0, other), SPOKE_OK);
	assert_ptr_equal(spokei_map_get(&map, "", 0), other);
	assert_ptr_equal(spokei_map_get(&map, "a\0b", 3), one);
	spokei_map_fini(&map);
}

TEST(map_each_visits_each_value_once)
{
	struct memory memory;
	struct spokei_map map;
	bool seen[MANY] = { false };
	size_t place = 0;
	int visited = 0;
	char *value;

	make_keys();
	make_map(&memory, &map);
	assert_null(spokei_map_each(&map, &place));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(add(&map, i), SPOKE_OK);
	place = 0;
	while ((value = spokei_map_each(&map, &place))) {
		size_t i = (size_t)(value - keys[0]) / sizeof(keys[0]);

		assert_false(seen[i]);
		seen[i] = true;
		visited++;
	}
	assert_int_equal(visited, MANY);
	spokei_map_fini(&map);
}

TEST(map_stays_intact_after_enomem)
{
	make_keys();
	for (unsigned fail_at = 1;; fail_at++) {
		struct memory memory;
		struct spokei_map map;
		int failed = 0;

		make_map(&memory, &map);
		memory.fail_at = fail_at;
		for (int i = 0; i < 100; i++) {
			int error = add(&map, i);

			if (error == SPOKE_ENOMEM) {
				failed++;
				error = add(&map, i);
			}
			assert_int_equal(error, SPOKE_OK);
			for (int j = 0; j <= i; j++)
				assert_ptr_equal(get(&map, j), keys[j]);
		}
		spokei_map_fini(&map);
		assert_int_equal(memory.bytes, 0);
		if (failed == 0)
			break;
		assert_int_equal(failed, 1);
	}
}

static void *get_number(const struct spokei_map *map, const uint32_t *number)
{
	return spokei_map_get(map, number, sizeof(*number));
}

TEST(map_that_grows_in_steps_keeps_every_entry)
{
	enum {
		NUMBERS = 30000
	};
	uint32_t *numbers = calloc(NUMBERS, sizeof(*numbers));
	struct memory memory;
	struct spokei_map map;
	bool cleared = false;
	bool moved = false;

	assert_non_null(numbers);
	make_map(&memory, &map);
	for (uint32_t i = 0; i < NUMBERS; i++) {
		uint32_t gone = i / 3;
		uint32_t kept = gone + 1 + (i * 7919) % (i - gone + 1);
		size_t place = 0;
		size_t visited = 0;

		numbers[i] = i;
		assert_int_equal(spokei_map_add(&map, &numbers[i], sizeof(i), &numbers[i]),
				 SPOKE_OK);
		cleared |= map.later != NULL;
		moved |= map.old != NULL;
		kept = kept < i ? kept : i;
		assert_ptr_equal(get_number(&map, &numbers[i]), &numbers[i]);
		assert_ptr_equal(get_number(&map, &numbers[kept]), &numbers[kept]);
		assert_int_equal(spokei_map_add(&map, &numbers[kept], sizeof(i), &map),
				 SPOKE_EEXIST);
		if (i % 3 == 2) {
			assert_ptr_equal(spokei_map_remove(&map, &numbers[gone], sizeof(i)),
					 &numbers[gone]);
			assert_null(get_number(&map, &numbers[gone]));
		}
		while (i % 1009 == 0 && spokei_map_each(&map, &place))
			visited++;
		assert_int_equal(visited, i % 1009 == 0 ? map.count : 0);
	}
	assert_int_equal(map.count, NUMBERS - NUMBERS / 3);
	assert_true(cleared && moved);
	spokei_map_fini(&map);
	assert_int_equal(memory.bytes, 0);
	free(numbers);
}

static uint64_t fnv(const char *text, size_t len)
{
	/* Seeded by same_dice(). */
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ UINT64_C(0x0101010101010101) * dice_byte;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Returns the length of the longest run of entries in use: the longest search for a key. */
static size_t longest_run(const struct spokei_map *map)
{
	size_t longest = 0;
	size_t run = 0;

	for (size_t i = 0; i < map->room; i++) {
		run = map->entries[i].key ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* Each block takes FNV-1a from any state with the same low byte to one next state, which has that
 * low byte too. So 2^13 names of 13 blocks have one hash, whatever the seed's other bytes are. */
TEST(map_spreads_names_that_collide_in_fnv)
{
	static const char blocks[2][14] = { "f45i4I92Ioonw", "e$9_6A90Ix6Qw" };
	enum {
		BLOCKS = 13,
		NAMES = 1 << BLOCKS,
		LEN = BLOCKS * 13
	};
	char(*names)[LEN] = calloc(NAMES, LEN);
	struct memory memory;
	struct spokei_map map;

	assert_non_null(names);
	make_map(&memory, &map);
	for (unsigned i = 0; i < NAMES; i++) {
		for (unsigned block = 0; block < BLOCKS; block++)
			memcpy(names[i] + (size_t)13 * block, blocks[i >> block & 1], 13);
		assert_int_equal(fnv(names[i], LEN), fnv(names[0], LEN));
		assert_int_equal(spokei_map_add(&map, names[i], LEN, names[i]), SPOKE_OK);
	}
	assert_in_range(longest_run(&map), 1, NAMES / 16);
	spokei_map_fini(&map);
	free(names);
}

/* Writes the first entries in their order in the table. */
static void list_values(unsigned char dice, void *ret_values[MANY])
{
	struct memory memory;
	struct spokei_map map;
	size_t place = 0;

	dice_byte = dice;
	make_map(&memory, &map);
	dice_byte = 0x5a;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(add(&map, i), SPOKE_OK);
	for (int i = 0; i < MANY; i++)
		ret_values[i] = spokei_map_each(&map, &place);
	spokei_map_fini(&map);
}

TEST(maps_with_other_random_numbers_have_other_orders)
{
	void *one[MANY];
	void *same[MANY];
	void *other[MANY];

	make_keys();
	list_values(1, one);
	list_values(1, same);
	list_values(2, other);
	assert_memory_equal(one, same, sizeof(one));
	assert_memory_not_equal(one, other, sizeof(one));
}

/* --- slabs: handles, their generations, limits, and failed allocations */

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
