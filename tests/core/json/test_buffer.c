/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the inner face of JSON: printing into a buffer, and reading the arguments of a call. */
#include <stdio.h>
#include <stdlib.h>

#include "core/json/json.h"
#include "tests/core/memory.h"
#include "tests/support/test.h"

static struct memory memory;
static struct spokei_buffer buffer;

static void setup(size_t max)
{
	memory_init(&memory);
	spokei_buffer_init(&buffer, &memory.env, max);
}

static void teardown(void)
{
	spokei_buffer_fini(&buffer);
	assert_int_equal(memory.bytes, 0);
}

static void assert_content(const char *wanted)
{
	assert_int_equal(spokei_buffer_len(&buffer), strlen(wanted));
	if (*wanted)
		assert_memory_equal(spokei_buffer_data(&buffer), wanted, strlen(wanted));
}

/* Reads a copy of exactly the text's length, so that an overrun is detected. */
static int read_args(const char *text, struct spoke_span *args, size_t *count,
		     struct spoke_json_error *wrong)
{
	size_t len = strlen(text);
	char *copy = malloc(len > 0 ? len : 1);
	int error;

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, text, len);
	error = spokei_json_read_args(copy, len, NULL, &buffer, args, count, wrong);
	free(copy);
	return error;
}

static const struct {
	const char *text;
	const char *args; /* packed */
	size_t len;
	size_t count;
} documents[] = {
	{ "", "", 0, 0 },
	{ " \n", "", 0, 0 },
	{ "[]", "", 0, 0 },
	{ "[\"world\"]", "\xa5world", 6, 1 },
	{ " [1, [2], null]\n", "\x01\x91\x02\xc0", 4, 3 },
	{ "[[1,2]]", "\x92\x01\x02", 3, 1 },
	{ "\"world\"", "\xa5world", 6, 1 },
	{ "{\"a\":1}", "\x81\xa1\x61\x01", 4, 1 },
	{ "{\"$typed\":[\"T\",[1]]}", "\xc9\0\0\0\4H\xa1T\x91\x01", 10, 1 },
	{ "{\"$bin\":\"AA==\"}", "\xc4\x01\0", 3, 1 },
};

TEST(items_of_an_array_are_the_arguments)
{
	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		struct spoke_json_error wrong;
		struct spoke_span args;
		size_t count;

		setup(1000);
		assert_int_equal(spokei_buffer_append(&buffer, "before", 6), 0);
		assert_int_equal(read_args(documents[i].text, &args, &count, &wrong), 0);
		assert_int_equal(count, documents[i].count);
		assert_int_equal(args.len, documents[i].len);
		if (args.len > 0)
			assert_memory_equal(args.data, documents[i].args, args.len);
		assert_memory_equal(spokei_buffer_data(&buffer), "before", 6);
		teardown();
	}
}

TEST(two_documents_are_rejected)
{
	struct spoke_json_error wrong;
	struct spoke_span args;
	size_t count;

	setup(1000);
	assert_int_equal(spokei_buffer_append(&buffer, "before", 6), 0);
	assert_int_equal(read_args("[1] [2]", &args, &count, &wrong), SPOKE_ESYNTAX);
	assert_string_equal(wrong.what, "more than one value; write an array");
	assert_content("before");
	assert_int_equal(read_args("[1}", &args, &count, &wrong), SPOKE_ESYNTAX);
	assert_content("before");
	teardown();
}

static struct spoke_value value_of(const char *packed, size_t len)
{
	struct spoke_value value;

	assert_int_equal(spoke_value_check(packed, len, NULL, &value), 0);
	return value;
}

TEST(values_are_printed_after_the_content)
{
	setup(1000);
	assert_int_equal(spokei_buffer_append(&buffer, "HTTP ", 5), 0);
	assert_int_equal(spokei_json_append(&buffer, value_of("\x92\xa1\x61\x05", 4)), 0);
	assert_int_equal(spokei_json_append(&buffer, (struct spoke_value){ NULL, 0 }), 0);
	assert_int_equal(spokei_json_append_text(&buffer, "\"\xff", 2), 0);
	assert_content("HTTP [\"a\",5]null\"\\\"\\ufffd\"");
	teardown();
}

/* A text of 100 characters, which are 102 in JSON. */
static struct spoke_value long_text(char packed[102])
{
	memset(packed, 'x', 102);
	packed[0] = (char)(unsigned char)0xd9;
	packed[1] = 100;
	return value_of(packed, 102);
}

TEST(maximum_of_the_buffer_is_exact)
{
	char packed[102];

	for (size_t max = 3; max <= 120; max++) {
		int wanted = max < 3 + 102 ? SPOKE_ETOOLARGE : SPOKE_OK;

		setup(max);
		assert_int_equal(spokei_buffer_append(&buffer, "abc", 3), 0);
		assert_int_equal(spokei_json_append(&buffer, long_text(packed)), wanted);
		assert_int_equal(spokei_buffer_len(&buffer), wanted ? 3 : 105);
		spokei_buffer_truncate(&buffer, 3);
		assert_int_equal(spokei_json_append_text(&buffer, packed + 2, 100), wanted);
		assert_int_equal(spokei_buffer_len(&buffer), wanted ? 3 : 105);
		teardown();
	}
}

/* Reads and prints a document of a few kB, in which every kind of value occurs. */
static int convert(void)
{
	static const char item[] =
		"{\"a\":[1,-1.5e300,\"\\u00e4\"],\"b\":{\"$bin\":\"AAE=\"},\"c\":"
		"{\"$ext\":[5,\"AAE=\"]},\"d\":null}";
	char text[8192];
	struct spoke_json_error wrong;
	struct spoke_span args;
	size_t count;
	size_t len;
	int error;

	len = (size_t)snprintf(text, sizeof(text), "[");
	for (unsigned i = 0; i < 80; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? "," : "[",
					item);
	(void)snprintf(text + len, sizeof(text) - len, "]]");
	error = read_args(text, &args, &count, &wrong);
	if (!error) {
		struct spokei_buffer out;

		spokei_buffer_init(&out, &memory.env, SIZE_MAX / 2);
		error = spokei_json_append(&out, (struct spoke_value){ args.data, args.len });
		if (error)
			assert_int_equal(spokei_buffer_len(&out), 0);
		spokei_buffer_fini(&out);
	} else {
		assert_int_equal(spokei_buffer_len(&buffer), 0);
	}
	return error;
}

TEST(failure_of_any_allocation_is_enomem)
{
	unsigned fail_at = 0;
	int error;

	do {
		setup(SIZE_MAX / 2);
		memory.fail_at = ++fail_at;
		error = convert();
		if (memory.asked >= fail_at)
			assert_int_equal(error, SPOKE_ENOMEM);
		teardown();
	} while (error);
	assert_true(fail_at > 5);
}
