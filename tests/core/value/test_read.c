/* SPDX-License-Identifier: Apache-2.0 */
/* SPOKE_READ() and SPOKE_READ_MAP(): targets of every type, sentences, limits, hostile values. */
#include "tests/support/test.h"

#include <spoke/read.h>

#include <stdlib.h>
#include <string.h>

static unsigned char memory[4096];

static struct spoke_cursor pack(struct spoke_args args)
{
	struct spoke_builder builder;
	struct spoke_cursor cursor;
	struct spoke_span values;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_args(&builder, args);
	assert_int_equal(spoke_builder_finish(&builder, &values), 0);
	assert_int_equal(spoke_values_check(values.data, values.len, NULL, &cursor, NULL), 0);
	return cursor;
}

static struct spoke_reader reader_of(struct spoke_args args)
{
	return spoke_reader_values(pack(args), "argument");
}

static void assert_why(const struct spoke_reader *reader, const char *expected)
{
	char text[256];

	assert_int_equal(spoke_reader_why(reader, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

/* Asserts that reading one value into one target fails with this error and sentence. */
#define ASSERT_FAILS(arg, target, error, sentence)                                                 \
	do {                                                                                       \
		struct spoke_reader failing = reader_of(SPOKE_ARGS(arg));                          \
                                                                                                   \
		assert_int_equal(SPOKE_READ(&failing, target), error);                             \
		assert_why(&failing, sentence);                                                    \
	} while (0)

TEST(each_type_of_target_takes_its_value)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(true, INT8_MIN, INT16_MAX, -3, 4L,
							  INT64_MIN, 255, 65535, 5U, 6UL,
							  UINT64_MAX));
	bool flag = false;
	signed char tiny = 0;
	short small = 0;
	int number = 0;
	long big = 0;
	long long huge = 0;
	unsigned char utiny = 0;
	unsigned short usmall = 0;
	unsigned unumber = 0;
	unsigned long ubig = 0;
	unsigned long long uhuge = 0;

	assert_int_equal(SPOKE_READ(&reader, &flag, &tiny, &small, &number, &big, &huge, &utiny,
				    &usmall, &unumber, &ubig, &uhuge),
			 0);
	assert_true(flag);
	assert_int_equal(tiny, INT8_MIN);
	assert_int_equal(small, INT16_MAX);
	assert_int_equal(number, -3);
	assert_int_equal(big, 4);
	assert_true(huge == INT64_MIN);
	assert_int_equal(utiny, 255);
	assert_int_equal(usmall, 65535);
	assert_int_equal(unumber, 5);
	assert_int_equal(ubig, 6);
	assert_true(uhuge == UINT64_MAX);
	assert_why(&reader, "");
}

TEST(real_text_bytes_and_values_are_read)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(0.5, 2, "in place", "copied",
							  SPOKE_BIN("\x00\x01", 2), "as bytes",
							  SPOKE_LIST(1, 2), SPOKE_NIL));
	double real = 0;
	float small = 0;
	struct spoke_span span = { NULL, 0 };
	struct spoke_span bytes = { NULL, 0 };
	struct spoke_span text_bytes = { NULL, 0 };
	struct spoke_value value = { NULL, 0 };
	char text[7] = "";
	size_t len = 0;

	assert_int_equal(SPOKE_READ(&reader, &real, &small, &span, SPOKE_TEXT(text),
				    SPOKE_BYTES(&bytes), SPOKE_BYTES(&text_bytes), &value,
				    SPOKE_SKIP),
			 0);
	assert_true(real > 0.4 && real < 0.6);
	assert_true((double)small > 1.9 && (double)small < 2.1);
	assert_int_equal(span.len, 8);
	assert_string_equal(text, "copied");
	assert_int_equal(bytes.len, 2);
	assert_int_equal(text_bytes.len, 8);
	assert_int_equal(spoke_value_array_len(value, &len), 0);
	assert_int_equal(len, 2);
}

TEST(sentence_names_argument_and_both_types)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS("a", "b", true));
	struct spoke_span name;
	bool flag;
	int count;

	assert_int_equal(SPOKE_READ(&reader, &name, &count, &flag), SPOKE_ETYPE);
	assert_why(&reader, "argument 2: integer wanted, text came");
	ASSERT_FAILS(1, &flag, SPOKE_ETYPE, "argument 1: bool wanted, integer came");
	ASSERT_FAILS(0.5, &count, SPOKE_ETYPE, "argument 1: integer wanted, real came");
	ASSERT_FAILS(SPOKE_NIL, &name, SPOKE_ETYPE, "argument 1: text wanted, nil came");
	ASSERT_FAILS(SPOKE_LIST(1), SPOKE_BYTES(&name), SPOKE_ETYPE,
		     "argument 1: bytes wanted, list came");
	ASSERT_FAILS(SPOKE_MAP("a", 1), &name, SPOKE_ETYPE, "argument 1: text wanted, map came");
	ASSERT_FAILS(SPOKE_BIN("a", 1), &name, SPOKE_ETYPE, "argument 1: text wanted, bytes came");
}

TEST(integer_must_fit_its_variable)
{
	signed char tiny;
	unsigned char utiny;
	short small;
	unsigned short usmall;
	int number;
	unsigned unumber;
	long long huge;
	unsigned long long uhuge;

	ASSERT_FAILS(128, &tiny, SPOKE_ERANGE,
		     "argument 1: integer from -128 to 127 wanted, 128 came");
	ASSERT_FAILS(-129, &tiny, SPOKE_ERANGE,
		     "argument 1: integer from -128 to 127 wanted, -129 came");
	ASSERT_FAILS(256, &utiny, SPOKE_ERANGE,
		     "argument 1: integer from 0 to 255 wanted, 256 came");
	ASSERT_FAILS(-1, &utiny, SPOKE_ERANGE, "argument 1: integer from 0 to 255 wanted, -1 came");
	ASSERT_FAILS(32768, &small, SPOKE_ERANGE,
		     "argument 1: integer from -32768 to 32767 wanted, 32768 came");
	ASSERT_FAILS(65536, &usmall, SPOKE_ERANGE,
		     "argument 1: integer from 0 to 65535 wanted, 65536 came");
	ASSERT_FAILS(INT64_C(2147483648), &number, SPOKE_ERANGE,
		     "argument 1: integer from -2147483648 to 2147483647 wanted, 2147483648 came");
	ASSERT_FAILS(INT64_C(4294967296), &unumber, SPOKE_ERANGE,
		     "argument 1: integer from 0 to 4294967295 wanted, 4294967296 came");
	ASSERT_FAILS(UINT64_MAX, &huge, SPOKE_ERANGE,
		     "argument 1: integer from -9223372036854775808 to 9223372036854775807 "
		     "wanted, 18446744073709551615 came");
	ASSERT_FAILS(INT64_MIN, &uhuge, SPOKE_ERANGE,
		     "argument 1: integer from 0 to 18446744073709551615 wanted, "
		     "-9223372036854775808 came");
}

TEST(real_must_fit_its_variable)
{
	float small;
	double real;

	ASSERT_FAILS(1e300, &small, SPOKE_ERANGE,
		     "argument 1: number that fits 4 bytes wanted, 1e+300 came");
	ASSERT_FAILS(INT64_MAX, &real, SPOKE_ERANGE,
		     "argument 1: number that fits 8 bytes wanted, 9223372036854775807 came");
}

TEST(text_must_fit_its_buffer)
{
	const struct spoke_span nul = { "a\0b", 3 };
	char text[4];

	ASSERT_FAILS("four", SPOKE_TEXT(text), SPOKE_ERANGE,
		     "argument 1: text of at most 3 bytes wanted, 4 bytes came");
	ASSERT_FAILS(nul, SPOKE_TEXT(text), SPOKE_ERANGE,
		     "argument 1: text without NUL wanted, \"a\\x00b\" came");
}

TEST(number_of_values_must_match)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(1, 2));
	int a = 0;
	int b = 0;
	int c = 0;

	assert_int_equal(SPOKE_READ(&reader, &a, &b, &c), SPOKE_ETRUNCATED);
	assert_why(&reader, "argument 3: integer wanted, none came");
	assert_int_equal(SPOKE_READ(&reader, &a), SPOKE_ETRAILING);
	assert_why(&reader, "1 argument wanted, more came");
	assert_int_equal(a, 0);
	assert_int_equal(SPOKE_READ(&reader, &a, &b), 0);
	assert_int_equal(SPOKE_READ(&reader, &a), SPOKE_ETRUNCATED);
}

TEST(lenient_reader_goes_on_after_a_read)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(1, 2, 3));
	int a = 0;
	int b = 0;

	reader.lenient = true;
	assert_int_equal(SPOKE_READ(&reader, &a), 0);
	assert_int_equal(SPOKE_READ(&reader, &b), 0);
	assert_int_equal(a, 1);
	assert_int_equal(b, 2);
}

TEST(failure_changes_no_variable_and_no_position)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(7, "text", true));
	char text[8] = "before";
	int number = 1;

	assert_int_equal(SPOKE_READ(&reader, &number, SPOKE_TEXT(text), &number), SPOKE_ETYPE);
	assert_int_equal(number, 1);
	assert_string_equal(text, "before");
	assert_int_equal(SPOKE_READ(&reader, &number, SPOKE_TEXT(text), SPOKE_SKIP), 0);
	assert_int_equal(number, 7);
}

TEST(optional_target_stays_without_a_value)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(SPOKE_NIL));
	int a = 5;
	int b = 6;

	assert_int_equal(SPOKE_READ(&reader, SPOKE_OPTIONAL(&a), SPOKE_OPTIONAL(&b)), 0);
	assert_int_equal(a, 5);
	assert_int_equal(b, 6);
	ASSERT_FAILS("x", SPOKE_OPTIONAL(&a), SPOKE_ETYPE, "argument 1: integer wanted, text came");
}

TEST(single_value_has_no_number)
{
	struct spoke_cursor cursor = pack(SPOKE_ARGS("x"));
	struct spoke_reader reader;
	struct spoke_value value;
	int number;

	assert_true(spoke_cursor_next(&cursor, &value));
	reader = spoke_reader_of(value);
	assert_int_equal(SPOKE_READ(&reader, &number), SPOKE_ETYPE);
	assert_why(&reader, "integer wanted, text came");
	reader = spoke_reader_of((struct spoke_value){ NULL, 0 });
	assert_int_equal(SPOKE_READ(&reader, &number), SPOKE_ETRUNCATED);
	assert_why(&reader, "integer wanted, none came");
}

TEST(target_that_is_null_is_invalid)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(1));
	int *nothing = NULL;

	assert_int_equal(SPOKE_READ(&reader, nothing), SPOKE_EINVAL);
	assert_why(&reader, "argument 1: the target of the program is not valid");
}

/* --- maps */

TEST(map_is_read_by_its_keys)
{
	struct spoke_reader reader = reader_of(
		SPOKE_ARGS(SPOKE_MAP("age", 42, "name", "Ann", "extra", SPOKE_NIL), 5));
	struct spoke_span name = { NULL, 0 };
	uint8_t age = 0;
	int left = 1;
	int next = 0;

	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name, "age", &age, "extra",
					SPOKE_OPTIONAL(&left), "absent", SPOKE_OPTIONAL(&left)),
			 0);
	assert_int_equal(name.len, 3);
	assert_int_equal(age, 42);
	assert_int_equal(left, 1);
	assert_int_equal(SPOKE_READ(&reader, &next), 0);
	assert_int_equal(next, 5);
}

TEST(sentence_names_the_key)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(SPOKE_MAP("age", "x", "name", "Ann")));
	struct spoke_span name;
	uint8_t age;

	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name, "age", &age), SPOKE_ETYPE);
	assert_why(&reader, "argument 1, key \"age\": integer wanted, text came");
	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name, "age", &name, "more", &age),
			 SPOKE_ENOENT);
	assert_why(&reader, "argument 1, key \"more\": integer wanted, none came");
	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name), SPOKE_ETRAILING);
	assert_why(&reader, "argument 1, key \"age\": it is not known");
	reader = reader_of(SPOKE_ARGS(1));
	assert_int_equal(SPOKE_READ_MAP(&reader, "name", &name), SPOKE_ETYPE);
	assert_why(&reader, "argument 1: map wanted, integer came");
}

TEST(lenient_reader_ignores_other_keys)
{
	struct spoke_reader reader = reader_of(
		SPOKE_ARGS(SPOKE_MAP("a", 1, 5, "number as key", "a", 2, "b", 3)));
	int a = 0;

	assert_int_equal(SPOKE_READ_MAP(&reader, "a", &a), SPOKE_ETRAILING);
	assert_why(&reader, "argument 1, key 5: it is not known");
	reader.lenient = true;
	assert_int_equal(SPOKE_READ_MAP(&reader, "a", &a), 0);
	assert_int_equal(a, 1);
}

TEST(repeated_key_is_an_error)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(SPOKE_MAP("a", 1, "a", 2)));
	int a = 0;

	assert_int_equal(SPOKE_READ_MAP(&reader, "a", &a), SPOKE_EEXIST);
	assert_why(&reader, "argument 1, key \"a\": it came twice");
	assert_int_equal(a, 0);
}

TEST(class_of_a_java_object_is_no_unknown_key)
{
	struct spoke_reader reader = reader_of(SPOKE_ARGS(SPOKE_MAP("x", 1, "class", "it.Point")));
	int x = 0;

	assert_int_equal(SPOKE_READ_MAP(&reader, "x", &x), 0);
	assert_int_equal(x, 1);
}

/* --- hostile values */

TEST(sentence_escapes_and_cuts_content)
{
	struct spoke_reader reader;
	char key[400];
	char text[256];
	int a;

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	key[0] = '\n';
	reader = reader_of(SPOKE_ARGS(SPOKE_MAP(key, 1)));
	assert_int_equal(SPOKE_READ_MAP(&reader, "a", &a), SPOKE_ETRAILING);
	assert_in_range(spoke_reader_why(&reader, text, sizeof(text)), 20, 100);
	assert_null(strchr(text, '\n'));
	for (size_t size = 0; size < 40; size++) {
		size_t len = spoke_reader_why(&reader, text, size);

		assert_true(size == 0 ? len == 0 : len < size && text[len] == '\0');
	}
}

/* Returns a random number below `below`, the same in every run (splitmix64). */
static unsigned roll(unsigned below)
{
	static uint64_t seed;
	uint64_t word = seed += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)((word ^ word >> 31) % below);
}

/* Values that are random, unchecked, and often cut. */
TEST(random_bytes_are_read_or_refused)
{
	unsigned read = 0;

	for (unsigned round = 0; round < 200000; round++) {
		size_t len = roll(24);
		unsigned char *bytes = malloc(len + 1);
		struct spoke_reader reader;
		struct spoke_value value = { NULL, 0 };
		struct spoke_span span;
		char text[8];
		char why[64];
		int16_t number;

		assert_non_null(bytes);
		for (size_t i = 0; i < len; i++)
			bytes[i] = (unsigned char)(roll(3) ? roll(256) : 0x80 + roll(0x60));
		/* The block ends with the bytes, so that a sanitizer detects an overrun. */
		bytes = realloc(bytes, len ? len : 1);
		reader = spoke_reader_values(spoke_cursor_bytes((struct spoke_span){ bytes, len }),
					     "argument");
		reader.lenient = round % 2;
		if (SPOKE_READ(&reader, &value) == 0)
			read++;
		else
			(void)spoke_reader_why(&reader, why, sizeof(why));
		if (SPOKE_READ(&reader, SPOKE_TEXT(text), &number, SPOKE_BYTES(&span)))
			(void)spoke_reader_why(&reader, why, sizeof(why));
		if (SPOKE_READ_MAP(&reader, "a", &number, "b", SPOKE_OPTIONAL(&span)))
			(void)spoke_reader_why(&reader, why, sizeof(why));
		free(bytes);
	}
	assert_in_range(read, 1000, 199000);
}
