/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of calls: a tag and bytes of a known pattern. */
#include "load.h"

#include <string.h>

#define PAGE 4096u
#define SHIFTS 4096u /* start offsets in the pattern */

static uint64_t pattern[(LOAD_LEN_MAX + SHIFTS) / sizeof(uint64_t) + 1];

void load_init(void)
{
	struct sim_dice dice = sim_dice_make(1);

	for (size_t i = 0; i < sizeof(pattern) / sizeof(pattern[0]); i++)
		pattern[i] = sim_throw(&dice);
}

void load_touch(void)
{
	const volatile unsigned char *byte = (const volatile unsigned char *)pattern;

	for (size_t i = 0; i < sizeof(pattern); i += PAGE)
		(void)byte[i];
}

static const unsigned char *begin_of(uint64_t tag)
{
	return (const unsigned char *)pattern + tag * 31 % SHIFTS;
}

size_t load_len(struct sim_dice *dice, size_t most)
{
	static const struct {
		unsigned permyriad; /* of the calls */
		uint32_t least;
		uint32_t most;
	} sizes[] = {
		{ 500, 0, 0 },        { 6000, 1, 64 },        { 2500, 65, 1024 },
		{ 800, 1025, 16384 }, { 190, 16385, 131072 }, { 10, 131073, LOAD_LEN_MAX },
	};
	unsigned pick = (unsigned)(sim_throw(dice) % 10000);
	unsigned i = 0;
	size_t len;

	while (pick >= sizes[i].permyriad)
		pick -= sizes[i++].permyriad;
	len = sizes[i].most ? sim_magnitude(dice, sizes[i].least, sizes[i].most) : 0;
	return len < most ? len : most;
}

void load_pack(struct spoke_builder *builder, uint64_t tag, size_t len)
{
	spoke_pack_array(builder, 2);
	spoke_pack_u64(builder, tag);
	spoke_pack_bin(builder, begin_of(tag), len);
}

bool load_is(struct spoke_value value, uint64_t tag, size_t len)
{
	struct spoke_cursor cursor;
	struct spoke_value first;
	struct spoke_value second;
	struct spoke_span bytes;
	uint64_t number;

	return !spoke_cursor_array(value, &cursor) && spoke_cursor_next(&cursor, &first) &&
	       spoke_cursor_next(&cursor, &second) && !spoke_value_u64(first, &number) &&
	       number == tag && !spoke_value_bin(second, &bytes) && bytes.len == len &&
	       memcmp(bytes.data, begin_of(tag), len) == 0;
}

uint64_t load_tag(struct spoke_value value)
{
	struct spoke_cursor cursor;
	struct spoke_value first;
	uint64_t tag;

	if (spoke_cursor_array(value, &cursor) || !spoke_cursor_next(&cursor, &first) ||
	    spoke_value_u64(first, &tag))
		return 0;
	return tag;
}
