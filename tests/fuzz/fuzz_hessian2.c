/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the reader and the writer of Hessian 2. The first byte selects the part of a message and
 * whether cycles are allowed. Values that are read must be valid, and need memory in bounds. Values
 * that can be written must read back equal.
 */
#include "core/value/validator.h"
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"
#include "tests/transport/codec/bodies.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)1 << 18)
#define SMALL (BYTES_MAX / 8) /* bytes of values that cannot exceed a limit of the writer */
#define CYCLES 0x80u

/* Reads a copy that ends with its allocation, so that a sanitizer detects overruns. */
static int read_copy(const struct spoke_value_limits *limits, enum spokei_codec_part part,
		     const unsigned char *body, size_t len, struct spokei_buffer *scratch,
		     struct spoke_span *ret)
{
	unsigned char *copy = malloc(len > 0 ? len : 1);
	int error;

	demand(copy != NULL, "there is memory");
	if (len > 0)
		memcpy(copy, body, len);
	error = body_read(&spokei_codec_hessian2, limits, part, (struct spoke_span){ copy, len },
			  scratch, ret);
	free(copy);
	return error;
}

static bool is_known(int error)
{
	return error == SPOKE_ETRUNCATED || error == SPOKE_ETRAILING || error == SPOKE_ECORRUPT ||
	       error == SPOKE_EDEPTH || error == SPOKE_ETOOLARGE || error == SPOKE_ECYCLE;
}

/* Returns whether the values are those of a message: a marker with its values, or five texts,
 * arguments and attachments. */
static bool is_message(enum spokei_codec_part part, struct spoke_span values)
{
	static const size_t counts[] = { 3, 2, 1, 4, 3, 2 };
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value value = { 0 };
	uint32_t marker = UINT32_MAX;
	size_t count = 0;

	while (spoke_cursor_next(&cursor, &value)) {
		enum spoke_value_type type = spoke_value_type(value);

		if (count == 0 && part == SPOKEI_CODEC_REPLY &&
		    spoke_value_u32(value, &marker) != 0)
			return false;
		if (count < 5 && part == SPOKEI_CODEC_REQUEST && type != SPOKE_VALUE_STR)
			return false;
		count++;
	}
	if (part == SPOKEI_CODEC_REPLY)
		return marker < 6 && count == counts[marker];
	return part == SPOKEI_CODEC_TEXT || count > 5;
}

/* Returns whether values that were read may not be writable: a declared type of a request may not
 * fit its argument, and the output of long values may exceed the buffer. */
static bool may_fail(enum spokei_codec_part part, struct spoke_span values, int error)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(values);
	struct spoke_value value = { 0 };
	struct spoke_span types;

	if (error == SPOKE_EDEPTH || error == SPOKE_ETOOLARGE)
		return values.len > SMALL;
	for (unsigned i = 0; i < 5; i++)
		if (!spoke_cursor_next(&cursor, &value))
			return false;
	return error == SPOKE_EUNSUPPORTED && part == SPOKEI_CODEC_REQUEST &&
	       spoke_value_str(value, &types) == 0 && types.len > 0;
}

/* Writes the values and reads what was written. Returns whether they could be written. */
static bool go_way(const struct spoke_value_limits *limits, enum spokei_codec_part part,
		   struct spoke_span values, struct spokei_buffer *scratch, struct spoke_span *ret)
{
	struct spokei_buffer out;
	int error;

	spokei_buffer_init(&out, scratch->env, 2 * BYTES_MAX);
	error = body_write(&spokei_codec_hessian2, part, values, &out);
	demand(error == 0 || may_fail(part, values, error), "values that were read can be written");
	if (error == 0)
		demand(read_copy(limits, part, spokei_buffer_data(&out), spokei_buffer_len(&out),
				 scratch, ret) == 0,
		       "a written body can be read");
	spokei_buffer_fini(&out);
	return error == 0;
}

/* Returns whether there may be a value that is written in another form. An object of more than 15
 * pairs is written as a map if its class is not named as in Java. A list of open length is written
 * with its length, so that its head becomes shorter. A reference to the exception of a reply has a
 * copy of the object, to which the exception is not equal. */
static bool may_change(enum spokei_codec_part part, struct spoke_span values)
{
	const unsigned char *at = values.data;

	if (part == SPOKEI_CODEC_REPLY && *at % 3 == 0)
		return true;
	for (size_t left = values.len; left > 4; left--, at++)
		if ((at[0] == 0xde && (at[1] > 0 || at[2] > 15)) ||
		    (at[0] == 0xdd && at[1] == 0 && at[2] == 0))
			return true;
	return false;
}

/* Checks that the values, written and read again, are the same. The types of a request may turn an
 * argument into another value, and then again one that referred to it, which becomes a copy. */
static void check_way(const struct spoke_value_limits *limits, enum spokei_codec_part part,
		      struct spoke_span values, const struct spoke_env *env)
{
	struct spokei_buffer scratch[3];
	unsigned changes = part == SPOKEI_CODEC_REQUEST ? 2 : may_change(part, values);
	struct spoke_span again;
	bool written;

	for (size_t i = 0; i < 3; i++)
		spokei_buffer_init(&scratch[i], env, 4 * BYTES_MAX);
	written = go_way(limits, part, values, &scratch[0], &again);
	for (unsigned i = 1; written && i <= changes; i++) {
		values = again;
		written = go_way(limits, part, values, &scratch[i], &again);
	}
	demand(!written ||
		       (again.len == values.len && memcmp(again.data, values.data, again.len) == 0),
	       "a written body has the same values");
	for (size_t i = 0; i < 3; i++)
		spokei_buffer_fini(&scratch[i]);
}

FUZZ(hessian2)
{
	static const enum spokei_codec_part parts[] = { SPOKEI_CODEC_REQUEST, SPOKEI_CODEC_REPLY,
							SPOKEI_CODEC_TEXT };
	struct spoke_value_limits limits = { 0 };
	enum spokei_codec_part part;
	struct spoke_cursor cursor;
	struct spokei_buffer scratch;
	struct spoke_span values;
	struct memory memory;
	int error;

	if (size == 0)
		return 0;
	limits.cycles = (data[0] & CYCLES) != 0;
	part = parts[(data[0] & ~CYCLES) % 3];
	memory_init(&memory);
	spokei_buffer_init(&scratch, &memory.env, BYTES_MAX);
	error = read_copy(&limits, part, data + 1, size - 1, &scratch, &values);
	demand(memory.bytes <= BYTES_MAX + BYTES_MAX / 4, "memory is bounded");
	if (error == 0) {
		demand(spoke_values_check(values.data, values.len, &limits, &cursor, NULL) == 0,
		       "values that were read are valid");
		if (is_message(part, values))
			check_way(&limits, part, values, &memory.env);
	} else {
		demand(is_known(error), "the error is a documented one");
		demand(spokei_buffer_len(&scratch) == 0, "an error leaves no values");
	}
	spokei_buffer_fini(&scratch);
	demand(memory.bytes == 0, "no memory leaks");
	return 0;
}
