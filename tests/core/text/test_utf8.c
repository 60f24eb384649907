/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, and names that are similar. */
#include "core/text/encoding.h"
#include "core/text/option.h"
#include "tests/support/test.h"

#include <string.h>

/* --- UTF-8: every character, sequences of three bytes, and texts that come in pieces */

static bool is_surrogate(uint32_t character)
{
	return character >= 0xd800 && character <= 0xdfff;
}

/* Checks a text whole, and byte by byte. */
static size_t valid_bytes(const unsigned char *bytes, size_t len, bool *ret_may_end)
{
	struct spokei_utf8_run whole = { 0 };
	struct spokei_utf8_run single = { 0 };
	size_t valid = spokei_utf8_run(&whole, bytes, len);
	size_t at = 0;

	while (at < len && spokei_utf8_run(&single, bytes + at, 1) == 1)
		at++;
	assert_int_equal(at, valid);
	*ret_may_end = spokei_utf8_may_end(&whole);
	assert_int_equal(spokei_utf8_may_end(&single), *ret_may_end);
	return valid;
}

TEST(every_character_but_surrogates_is_valid)
{
	unsigned char bytes[4];
	bool may_end;

	for (uint32_t character = 0; character <= 0x10ffff; character++) {
		size_t len = spokei_utf8_write(character, (char *)bytes);
		bool is_valid = valid_bytes(bytes, len, &may_end) == len && may_end;

		assert_int_equal(spokei_utf8_len(bytes, len) == len, !is_surrogate(character));
		assert_int_equal(is_valid, !is_surrogate(character));
	}
}

/* How many of these bytes begin a valid text: by decoding the definition of Unicode, table 3-7. */
static size_t decode(const unsigned char *bytes, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800 };
	size_t at = 0;

	while (at < len) {
		size_t size = bytes[at] < 0x80       ? 1
			      : bytes[at] >> 5 == 6  ? 2
			      : bytes[at] >> 4 == 14 ? 3
						     : 0;
		uint32_t character = size ? bytes[at] & (0xffu >> size) : 0;

		if (size == 0 || at + size > len)
			return at;
		for (size_t i = 1; i < size; i++) {
			if (bytes[at + i] >> 6 != 2)
				return at;
			character = character << 6 | (bytes[at + i] & 0x3fu);
		}
		if (size > 1 && (character < least[size] || is_surrogate(character)))
			return at;
		at += size;
	}
	return at;
}

TEST(three_bytes_are_valid_as_decoding_says)
{
	bool may_end;

	for (uint32_t word = 0; word < 1u << 24; word += word >> 23 ? 61 : 7) {
		const unsigned char bytes[3] = { (unsigned char)(word >> 16),
						 (unsigned char)(word >> 8), (unsigned char)word };
		bool is_valid = valid_bytes(bytes, 3, &may_end) == 3 && may_end;

		/* decode() knows no characters of four bytes: three of them are incomplete. */
		assert_int_equal(is_valid, decode(bytes, 3) == 3);
	}
}

TEST(first_impossible_byte_ends_a_run)
{
	static const struct {
		const char *text;
		size_t valid;
	} rows[] = {
		{ "\x80", 0 },
		{ "a\xbf", 1 },
		{ "\xc0\xaf", 0 },
		{ "\xc1\xbf", 0 },
		{ "\xe0\x80\xaf", 1 },
		{ "\xe0\x9f\xbf", 1 },
		{ "\xed\xa0\x80", 1 },
		{ "\xf0\x80\x80\xaf", 1 },
		{ "\xf0\x8f\xbf", 1 },
		{ "\xf4\x90\x80\x80", 1 },
		{ "\xf5\x80", 0 },
		{ "\xfe", 0 },
		{ "\xff", 0 },
		{ "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xff", 11 },
		{ "\xe2\x82z", 2 },
		{ "\xf0\x90\x8dz", 3 },
		{ "12345678\xff", 8 },
		{ "1234567\xc3\xa4"
		  "12345678\x80",
		  17 },
	};
	bool may_end;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(valid_bytes((const unsigned char *)rows[i].text,
					     strlen(rows[i].text), &may_end),
				 rows[i].valid);
}

TEST(bad_byte_is_found_at_every_place)
{
	unsigned char bytes[24];
	bool may_end;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		memset(bytes, 'a', sizeof(bytes));
		bytes[i] = 0xff;
		assert_int_equal(valid_bytes(bytes, sizeof(bytes), &may_end), i);
	}
}

TEST(cut_character_may_not_end)
{
	static const char *const rows[] = { "\xc3", "\xe2\x82", "a\xf0\x9f\x98", "\xf4" };
	bool may_end;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(valid_bytes((const unsigned char *)rows[i], strlen(rows[i]),
					     &may_end),
				 strlen(rows[i]));
		assert_false(may_end);
	}
}

/* --- finding the known name that is most similar to a misspelt one */

static const char *const names[] = {
	"timeout", "heartbeat", "retries", NULL, "retry.period", "tcp"
};

#define COUNT (sizeof(names) / sizeof(names[0]))

static const char *name_at(const void *of, size_t i)
{
	assert_ptr_equal(of, names);
	return names[i];
}

TEST(nearest_name_is_found)
{
	static const struct {
		const char *name;
		const char *nearest;
	} cases[] = {
		{ "timeuot", "timeout" },
		{ "timeouts", "timeout" },
		{ "Timeout", "timeout" },
		{ "hartbet", "heartbeat" },
		{ "retry", NULL },
		{ "retrys", "retries" },
		{ "retry_period", "retry.period" },
		{ "tcq", "tcp" },
		{ "udp", NULL },
		{ "x", NULL },
		{ "", NULL },
		{ "frobnicate", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *nearest = spokei_option_nearest_name(cases[i].name, name_at, names,
								 COUNT);

		if (cases[i].nearest)
			assert_string_equal(nearest, cases[i].nearest);
		else
			assert_null(nearest);
	}
}

TEST(long_name_has_no_nearest_name)
{
	char name[3000];

	memset(name, 't', sizeof(name));
	for (size_t len = 40; len < sizeof(name); len++) {
		name[len] = '\0';
		assert_null(spokei_option_nearest_name(name, name_at, names, COUNT));
		name[len] = 't';
	}
}
