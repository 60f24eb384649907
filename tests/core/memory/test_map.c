/* SPDX-License-Identifier: Apache-2.0 */
/* The hash map: insertion, look-up, removal, and failed allocations. */
#include "core/memory/map.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
