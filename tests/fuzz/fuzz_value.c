/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the reading of values: all getters, cursors and the printer, on validated and on arbitrary
 * bytes. A valid value must be accepted when it is built again, contain the same, and be its own
 * canonical form.
 */
#include "tests/core/memory.h"
#include "tests/core/value/rebuild.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 2000 /* read per input, because the time is quadratic */

static void want(bool holds, const char *what)
{
	if (!holds) {
		(void)fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}
#define WANT(condition) want((condition), #condition)

/* Reads both ends of a span, so that a sanitizer reports an invalid one. */
static void touch(struct spoke_span span)
{
	const unsigned char *bytes = span.data;

	if (span.len > 0)
		WANT(bytes[0] + bytes[span.len - 1] >= 0);
}

static void print_at_all_sizes(struct spoke_value value)
{
	char *text;

	for (size_t size = 1; size < 200; size += 1 + size / 3) {
		text = malloc(size);
		WANT(text != NULL);
		WANT(spoke_value_print(value, text, size) < size);
		WANT(strlen(text) < size);
		for (const char *at = text; *at; at++)
			WANT(*at >= 0x20 && *at < 0x7f);
		free(text);
	}
}

/* Calls every getter; exactly those of the value's type must succeed. */
static void read_by_all_getters(struct spoke_value value)
{
	struct spoke_span span;
	struct spoke_value found;
	double number;
	int64_t i64;
	uint64_t u64;
	int8_t ext_type;
	uint32_t ns;
	bool truth;
	size_t len;
	int answers = spoke_value_is_nil(value);

	answers += spoke_value_bool(value, &truth) == 0;
	answers += spoke_value_i64(value, &i64) == 0 || spoke_value_u64(value, &u64) == 0;
	answers += spoke_value_type(value) == SPOKE_VALUE_DOUBLE &&
		   spoke_value_double(value, &number) == 0;
	answers += spoke_value_array_len(value, &len) == 0;
	answers += spoke_value_map_len(value, &len) == 0;
	if (spoke_value_bytes(value, &span) == 0) {
		answers++;
		touch(span);
	}
	if (spoke_value_ext(value, &ext_type, &span) == 0) {
		answers += spoke_value_type(value) == SPOKE_VALUE_EXT;
		touch(span);
		if (spoke_value_time(value, &i64, &ns) == 0)
			WANT(ext_type == -1 && ns < 1000000000);
	}
	WANT(answers <= 1);
	if (spoke_value_class(value, &span) == 0) {
		WANT(spoke_value_array_len(value, &len) == 0 ||
		     spoke_value_map_len(value, &len) == 0);
		touch(span);
	}
	if (spoke_value_get(value, "k", &found) == 0)
		touch((struct spoke_span){ found.data, found.len });
}

#define LEVELS (SPOKE_VALUE_DEPTH_MAX + 1)

/* Reads bytes at any depth, also inside exts. A validated value is not too deep. */
static void read_all(const uint8_t *data, size_t size, bool valid)
{
	struct spoke_cursor levels[LEVELS] = { spoke_cursor_bytes(
		(struct spoke_span){ data, size }) };
	size_t depth = 0;
	struct spoke_value value;

	for (int count = 0; count < VALUES_MAX; count++) {
		while (!spoke_cursor_next(&levels[depth], &value))
			if (depth-- == 0)
				return;
		WANT(value.data >= data && value.data + value.len <= data + size);
		WANT(value.len > 0);
		read_by_all_getters(value);
		if (depth == LEVELS - 1)
			WANT(!valid || (spoke_value_type(value) != SPOKE_VALUE_ARRAY &&
					spoke_value_type(value) != SPOKE_VALUE_MAP));
		else if (spoke_cursor_array(value, &levels[depth + 1]) == 0 ||
			 spoke_cursor_map(value, &levels[depth + 1]) == 0)
			depth++;
	}
}

static struct spoke_span build(struct spoke_builder *builder, struct memory *memory,
			       struct spoke_cursor values)
{
	struct spoke_span span = { NULL, 0 };

	memory_init(memory);
	spoke_builder_init(builder, &memory->env, NULL);
	WANT(rebuild(builder, values) == NULL);
	WANT(spoke_builder_finish(builder, &span) == 0);
	return span;
}

static void rebuild_twice(struct spoke_cursor values, size_t size, size_t count)
{
	struct memory memories[2];
	struct spoke_builder builders[2];
	struct spoke_span first = build(&builders[0], &memories[0], values);
	struct spoke_span second;
	struct spoke_cursor again;
	size_t count_again;

	WANT(first.len <= size);
	WANT(spoke_values_check(first.data, first.len, NULL, &again, &count_again) == 0);
	WANT(count == count_again);
	second = build(&builders[1], &memories[1], again);
	WANT(first.len == second.len);
	WANT(first.len == 0 || memcmp(first.data, second.data, first.len) == 0);
	spoke_builder_reset(&builders[1]);
	spoke_pack_raw(&builders[1], first);
	WANT(spoke_builder_finish(&builders[1], &second) == 0);
	WANT(first.len == second.len);
	spoke_builder_fini(&builders[0]);
	spoke_builder_fini(&builders[1]);
	WANT(memories[0].bytes == 0 && memories[1].bytes == 0);
}

FUZZ(value)
{
	struct spoke_value whole = { data, size };
	struct spoke_cursor values;
	size_t count;
	bool valid;

	read_by_all_getters(whole);
	print_at_all_sizes(whole);
	valid = spoke_values_check(data, size, NULL, &values, &count) == 0;
	read_all(data, size, valid);
	if (valid)
		rebuild_twice(values, size, count);
	return 0;
}
