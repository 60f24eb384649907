/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3: published vectors. */
#include "core/base/siphash.h"
#include "tests/support/test.h"

/* The key is 00 01 .. 0f, and a text of `len` bytes is 00 01 02 ..: the vectors of the authors'
 * program, here as the Rust library has them. */
TEST(siphash_1_3_gives_published_hashes)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} vectors[] = {
		{ 0, UINT64_C(0xabac0158050fc4dc) },  { 1, UINT64_C(0xc9f49bf37d57ca93) },
		{ 2, UINT64_C(0x82cb9b024dc7d44d) },  { 3, UINT64_C(0x8bf80ab8e7ddf7fb) },
		{ 4, UINT64_C(0xcf75576088d38328) },  { 5, UINT64_C(0xdef9d52f49533b67) },
		{ 6, UINT64_C(0xc50d2b50c59f22a7) },  { 7, UINT64_C(0xd3927d989bb11140) },
		{ 8, UINT64_C(0x369095118d299a8e) },  { 9, UINT64_C(0x25a48eb36c063de4) },
		{ 10, UINT64_C(0x79de85ee92ff097f) }, { 11, UINT64_C(0x70c118c1f94dc352) },
		{ 12, UINT64_C(0x78a384b157b4d9a2) }, { 13, UINT64_C(0x306f760c1229ffa7) },
		{ 14, UINT64_C(0x605aa111c0f95d34) }, { 15, UINT64_C(0xd320d86d2a519956) },
		{ 16, UINT64_C(0xcc4fdd1a7d908b66) }, { 63, UINT64_C(0x9d199062b7bbb3a8) },
	};
	static const uint64_t key[2] = { UINT64_C(0x0706050403020100),
					 UINT64_C(0x0f0e0d0c0b0a0908) };
	unsigned char text[1 + 63]; /* also without alignment */

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		for (size_t at = 0; at < 63; at++)
			text[i % 2 + at] = (unsigned char)at;
		assert_int_equal(spokei_siphash(key, text + i % 2, vectors[i].len),
				 vectors[i].hash);
	}
}

TEST(siphash_depends_on_both_halves_of_its_key)
{
	static const uint64_t keys[3][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 } };
	uint64_t hashes[3];

	for (unsigned i = 0; i < 3; i++)
		hashes[i] = spokei_siphash(keys[i], "service", 7);
	assert_int_not_equal(hashes[0], hashes[1]);
	assert_int_not_equal(hashes[0], hashes[2]);
	assert_int_not_equal(hashes[1], hashes[2]);
}
