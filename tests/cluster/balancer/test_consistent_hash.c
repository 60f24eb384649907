/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash ring: each key maps to the same place as in Dubbo. A separate program computed the
 * expected places from Dubbo's ConsistentHashLoadBalancer with another MD5.
 */
#include "tests/cluster/balancer/balancerrig.h"
#include "tests/support/test.h"

#include "core/text/md5.h"

#include <stdio.h>
#include <string.h>

static struct balancerrig rig;

static size_t pick_number_of(struct balancerrig *of, unsigned number)
{
	char key[32];

	(void)snprintf(key, sizeof(key), "key %u", number);
	return balancerrig_pick_by(of, key, strlen(key));
}

static size_t pick_number(unsigned number)
{
	return pick_number_of(&rig, number);
}

TEST(md5_matches_rfc_1321)
{
	static const struct {
		const char *text;
		const char *digest;
	} cases[] = {
		{ "", "d41d8cd98f00b204e9800998ecf8427e" },
		{ "a", "0cc175b9c0f1b6a831c399e269772661" },
		{ "abc", "900150983cd24fb0d6963f7d28e17f72" },
		{ "message digest", "f96b697d7cb7938d525a2f31aaf161d0" },
		{ "abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b" },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		  "d174ab98d277d9f5a5611c2c9f419d9f" },
		{ "1234567890123456789012345678901234567890123456789012345678901234567890123456789"
		  "0",
		  "57edf4a22be3c955ac49da2e2107b67a" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spokei_md5 md5 = spokei_md5(cases[i].text, strlen(cases[i].text));
		char digest[33];

		for (unsigned n = 0; n < 16; n++)
			(void)snprintf(digest + (size_t)2 * n, 3, "%02x",
				       (unsigned)(md5.words[n / 4] >> (n % 4 * 8) & 0xff));
		assert_string_equal(digest, cases[i].digest);
	}
}

/* Compares the first word of the MD5 of `len` times "a", for all ways in which a text ends in a
 * block. */
TEST(md5_handles_block_boundaries)
{
	static const struct {
		size_t len;
		uint32_t word;
	} cases[] = {
		{ 54, 0x0b9eedec },   { 55, 0xb67217ef },  { 56, 0xc78a0c3b },  { 57, 0x6d902b65 },
		{ 63, 0xf32165b0 },   { 64, 0xd4424801 },  { 65, 0x5ea443c7 },  { 119, 0x73d07b8a },
		{ 120, 0xccc0615f },  { 127, 0xe1060402 }, { 128, 0x3b6810e5 }, { 129, 0x1cdc25b3 },
		{ 1000, 0xdc45beca },
	};
	static char text[1000];

	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(spokei_md5(text, cases[i].len).words[0], cases[i].word);
}

TEST(consistent_hash_maps_keys_as_dubbo)
{
	static const struct {
		size_t count;
		size_t places[20]; /* of the keys "key 0" to "key 19" */
	} cases[] = {
		{ 1, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
		{ 3, { 2, 2, 0, 2, 2, 1, 1, 0, 2, 2, 1, 2, 0, 0, 1, 0, 0, 1, 0, 1 } },
		{ 10, { 2, 6, 9, 5, 7, 5, 9, 9, 5, 9, 4, 4, 0, 7, 1, 6, 8, 3, 0, 8 } },
		{ 100, { 49, 87, 17, 30, 52, 80, 9,  83, 5,  64,
			 23, 65, 40, 59, 47, 34, 76, 83, 55, 39 } },
		{ 1000, { 605, 539, 849, 712, 764, 544, 335, 931, 397, 176,
			  783, 65,  324, 185, 927, 354, 956, 116, 939, 222 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		balancerrig_begin(&rig, &spoke_balancer_consistent_hash, cases[i].count);
		for (unsigned key = 0; key < 20; key++)
			assert_int_equal(pick_number(key), cases[i].places[key]);
		balancerrig_end(&rig);
	}
}

TEST(many_consistent_hash_maps_keys_as_dubbo)
{
	static const struct {
		size_t count;
		uint64_t sum; /* of (number + 1) * place over 10,000 keys */
	} cases[] = {
		{ 3, 49195731 }, { 10, 223626424 }, { 100, 2480417750 }, { 1000, 24878859266 }
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t sum = 0;

		balancerrig_begin(&rig, &spoke_balancer_consistent_hash, cases[i].count);
		for (unsigned key = 0; key < 10000; key++)
			sum += (uint64_t)(key + 1) * pick_number(key);
		assert_int_equal(sum, cases[i].sum);
		balancerrig_end(&rig);
	}
}

TEST(keys_of_any_length_and_past_last_point_map)
{
	char key[1000];

	memset(key, 'a', sizeof(key));
	balancerrig_begin(&rig, &spoke_balancer_consistent_hash, 3);
	assert_int_equal(balancerrig_pick_by(&rig, NULL, 0), 0);
	assert_int_equal(balancerrig_pick_by(&rig, key, 55), 0);
	assert_int_equal(balancerrig_pick_by(&rig, key, 56), 0);
	assert_int_equal(balancerrig_pick_by(&rig, key, 64), 1);
	assert_int_equal(balancerrig_pick_by(&rig, key, 1000), 2);
	assert_int_equal(pick_number(1441), 2); /* wraps to the first point of the ring */
	balancerrig_end(&rig);
}

TEST(places_of_same_name_share_points)
{
	static const size_t from[] = { 0, 1, 1, 2 };
	static const size_t now[] = { 0, 2, 3 }; /* the later place wins */

	balancerrig_begin(&rig, &spoke_balancer_consistent_hash, 4);
	balancerrig_rename(&rig, from, 4);
	for (unsigned key = 0; key < 1000; key++) {
		size_t place = pick_number(key);

		rig.able[2] = 0;
		balancerrig_changed(&rig);
		if (place == now[1])
			assert_int_equal(pick_number(key), 1);
		else
			assert_int_equal(pick_number(key), place);
		rig.able[2] = 1;
		balancerrig_changed(&rig);
		assert_true(place == now[0] || place == now[1] || place == now[2]);
	}
	balancerrig_end(&rig);
}

/* Removes a place and reorders the others: only the keys of the removed place move. */
TEST(removed_place_moves_only_its_own_keys)
{
	static size_t before[10000];
	size_t from[9];
	unsigned moved = 0;

	balancerrig_begin(&rig, &spoke_balancer_consistent_hash, 10);
	for (unsigned key = 0; key < 10000; key++)
		before[key] = pick_number(key);
	for (size_t i = 0; i < 9; i++)
		from[i] = 9 - i; /* without place 0 */
	balancerrig_rename(&rig, from, 9);
	for (unsigned key = 0; key < 10000; key++) {
		size_t now = from[pick_number(key)];

		assert_true(now == before[key] || before[key] == 0);
		moved += before[key] == 0;
	}
	assert_in_range(moved, 700, 1300);
	balancerrig_end(&rig);
}

/* The keys move to the same places, whether a place is unlisted, unable or already tried. */
TEST(unable_place_is_treated_like_removed_one)
{
	static const size_t from[] = { 0, 1, 3, 4 };
	static size_t expected[2000];
	static const size_t tried[] = { 2 };

	balancerrig_begin(&rig, &spoke_balancer_consistent_hash, 5);
	balancerrig_rename(&rig, from, 4);
	for (unsigned key = 0; key < 2000; key++)
		expected[key] = from[pick_number(key)];
	balancerrig_end(&rig);

	balancerrig_begin(&rig, &spoke_balancer_consistent_hash, 5);
	rig.choice.tried = tried;
	rig.choice.tried_count = 1;
	for (unsigned key = 0; key < 2000; key++)
		assert_int_equal(pick_number(key), expected[key]);
	rig.choice.tried_count = 0;
	rig.able[2] = 0;
	balancerrig_changed(&rig);
	for (unsigned key = 0; key < 2000; key++)
		assert_int_equal(pick_number(key), expected[key]);
	balancerrig_end(&rig);
}

/* 160 points per place are even within some tens of percent; the ring must not be worse. */
TEST(keys_are_spread_over_all_places)
{
	static uint32_t counts[100];

	balancerrig_begin(&rig, &spoke_balancer_consistent_hash, 100);
	for (unsigned key = 0; key < 100000; key++)
		counts[pick_number(key)]++;
	for (size_t i = 0; i < 100; i++)
		assert_in_range(counts[i], 700, 1400);
	balancerrig_end(&rig);
}

#define PLACES 40u
#define NAMES 60u

/* Adds a place, removes one, to which the last one moves, or gives one another name. */
static void change_places(uint64_t *seed, char (*names)[24])
{
	size_t last = rig.candidates.count - 1;
	size_t place = dice_roll(seed) % rig.candidates.count;
	const char *name = names[dice_roll(seed) % NAMES];

	switch (dice_roll(seed) % 3) {
	case 0:
		balancerrig_place(&rig, place, name);
		break;
	case 1:
		if (rig.candidates.count == PLACES)
			break;
		rig.candidates.count++;
		balancerrig_place(&rig, last + 1, name);
		break;
	default:
		if (rig.candidates.count == 1)
			break;
		rig.candidates.count--;
		balancerrig_place(&rig, last, rig.names[last]);
		balancerrig_place(&rig, place, rig.names[last]);
		break;
	}
}

/* A ring that has followed changes is the same as one of the same places that was made anew. */
TEST(changed_ring_equals_one_made_anew)
{
	static struct balancerrig anew;
	static char names[NAMES][24];
	uint64_t seed = 12;

	for (unsigned i = 0; i < NAMES; i++)
		(void)snprintf(names[i], sizeof(names[i]), "10.0.0.%u:20880", i);
	balancerrig_begin(&rig, &spoke_balancer_consistent_hash, PLACES);
	for (unsigned round = 0; round < 300; round++) {
		for (uint64_t i = dice_roll(&seed) % 5; i > 0; i--)
			change_places(&seed, names);
		balancerrig_begin(&anew, &spoke_balancer_consistent_hash, rig.candidates.count);
		memcpy(anew.names, rig.names, sizeof(anew.names));
		for (unsigned key = 0; key < 100; key++)
			assert_int_equal(pick_number(key + round),
					 pick_number_of(&anew, key + round));
		balancerrig_end(&anew);
	}
	balancerrig_end(&rig);
}
