/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values recorded from real peers: each body is validated, read with a cursor, packed again and
 * compared byte by byte.
 */
#include "core/value/validator.h"
#include "tests/core/memory.h"
#include "tests/core/value/rebuild.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 8192
#define DUBBO_HEADER 16

static unsigned digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	assert_non_null(at);
	return (unsigned)(at - digits);
}

/* Decodes the last column of a line to bytes. */
static size_t last_column(char *line, unsigned char *bytes)
{
	const char *hex = strrchr(line, '\t');
	size_t len = 0;

	line[strcspn(line, "\n")] = '\0';
	assert_non_null(hex);
	for (hex++; *hex; hex += 2)
		bytes[len++] = (unsigned char)(digit(hex[0]) << 4 | digit(hex[1]));
	return len;
}

static FILE *open_golden(const char *path)
{
	char line[LINE_MAX_BYTES];
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	return file;
}

static void rebuilds_to_itself(const unsigned char *bytes, size_t len)
{
	struct memory memory;
	struct spoke_builder builder;
	struct spoke_cursor values;
	struct spoke_span span;

	memory_init(&memory);
	spoke_builder_init(&builder, &memory.env, NULL);
	assert_int_equal(spoke_values_check(bytes, len, NULL, &values, NULL), 0);
	assert_null(rebuild(&builder, values));
	assert_int_equal(spoke_builder_finish(&builder, &span), 0);
	assert_int_equal(span.len, len);
	assert_memory_equal(span.data, bytes, len);
	spoke_builder_fini(&builder);
	assert_int_equal(memory.bytes, 0);
}

TEST(java_bodies_are_read_and_rebuilt_byte_for_byte)
{
	FILE *file = open_golden(TESTS_GOLDEN "/dubbo-frames.tsv");
	char line[LINE_MAX_BYTES];
	unsigned char bytes[LINE_MAX_BYTES] = { 0 };
	int count = 0;

	while (fgets(line, sizeof(line), file)) {
		size_t len = last_column(line, bytes);

		assert_true(len > DUBBO_HEADER);
		if ((bytes[2] & 0x1f) != 27)
			continue;
		rebuilds_to_itself(bytes + DUBBO_HEADER, len - DUBBO_HEADER);
		count++;
	}
	assert_int_equal(count, 131);
	(void)fclose(file);
}

TEST(neovim_message_is_one_value_of_stream)
{
	static const struct spoke_value_limits limits = { .depth_max = 32,
							  .items_max = 65536,
							  .object_bytes_max = 4194304,
							  .bytes_max = 8388608 };
	FILE *file = open_golden(TESTS_GOLDEN "/msgpack-rpc.tsv");
	char line[LINE_MAX_BYTES];
	unsigned char bytes[LINE_MAX_BYTES] = { 0 };
	int count = 0;

	while (fgets(line, sizeof(line), file)) {
		struct spokei_validator validator;
		size_t len;

		if (strstr(line, "EOF"))
			continue;
		len = last_column(line, bytes);
		assert_true(len > 0);
		spokei_validator_start_stream(&validator, &limits);
		if (bytes[0] == 0xc1) { /* an invalid body, recorded on purpose */
			assert_int_equal(spokei_validate(&validator, bytes, len), SPOKE_ECORRUPT);
			continue;
		}
		for (size_t at = 0; at + 1 < len; at++)
			assert_int_equal(spokei_validate(&validator, bytes + at, 1),
					 SPOKEI_VALIDATOR_MORE);
		assert_int_equal(spokei_validate(&validator, bytes + len - 1, 1), 0);
		rebuilds_to_itself(bytes, len);
		count++;
	}
	assert_int_equal(count, 38);
	(void)fclose(file);
}
