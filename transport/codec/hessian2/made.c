/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes scalars as the objects that Java's writer makes of some classes. The fields are those of
 * the class in Java.
 */
#include "transport/codec/hessian2/made.h"

#include "transport/codec/hessian2/heads.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool take_str(struct spokei_hessian2_writer *writer, struct spoke_span *ret)
{
	struct spoke_value value = spokei_hessian2_peek(writer);

	return spokei_hessian2_type(writer) == SPOKE_VALUE_STR &&
	       spoke_value_str(value, ret) == 0 && spokei_hessian2_take(writer, &value);
}

/* Opens an object of this class with the fields of a map; only the keys of the map count. Returns
 * false if it is too deep. */
static bool open_made(struct spokei_hessian2_writer *writer, struct spokei_hessian2_name name,
		      const char *pairs, size_t len, size_t fields)
{
	struct spokei_hessian2_class class = {
		.name = name,
		.pairs = { pairs, len },
		.fields = fields,
	};
	struct spoke_cursor cursor = spoke_cursor_bytes(class.pairs);
	struct spoke_value key;
	struct spoke_value value;

	for (size_t i = 0; spoke_cursor_next_pair(&cursor, &key, &value); i++)
		spokei_hessian2_keep_key(&class, i, key.data);

	if (!spokei_hessian2_open(writer, NULL))
		return false;
	spokei_hessian2_object_head(writer, &class);
	return true;
}

static const char value_field[] = "\xa5value\xc0";

bool spokei_hessian2_open_holder(struct spokei_hessian2_writer *writer,
				 struct spokei_hessian2_name name)
{
	return open_made(writer, name, value_field, sizeof(value_field) - 1, 1);
}

void spokei_hessian2_write_enum(struct spokei_hessian2_writer *writer,
				const struct spokei_hessian2_name *class)
{
	static const char pairs[] = "\xa4name\xc0";

	if (!open_made(writer, *class, pairs, sizeof(pairs) - 1, 1))
		return;
	spokei_hessian2_write_value(writer);
	spokei_hessian2_close(writer);
}

/* Prints the shortest text that names a double, with a point in any locale. */
static size_t print_double(double number, char *text, size_t size)
{
	int len = 0;

	for (int digits = 1; digits <= 17; digits++) {
		double read;

		len = snprintf(text, size, "%.*g", digits, number);
		read = strtod(text, NULL);
		if (!(read < number || read > number))
			break;
	}
	for (int i = 0; i < len; i++)
		if (strchr("0123456789+-e", text[i]) == NULL)
			text[i] = '.';
	return (size_t)len;
}

/* Prints a number as a decimal text. Returns 0 if the value is not a finite number. */
static size_t print_number(struct spoke_value value, unsigned type, char *text, size_t size)
{
	int64_t number;
	uint64_t large;
	double wide = 0;

	if (type == SPOKE_VALUE_INT && spoke_value_i64(value, &number) == 0)
		return (size_t)snprintf(text, size, "%" PRId64, number);
	if (type == SPOKE_VALUE_INT && spoke_value_u64(value, &large) == 0)
		return (size_t)snprintf(text, size, "%" PRIu64, large);
	if (type != SPOKE_VALUE_DOUBLE || spoke_value_double(value, &wide) != 0 || !isfinite(wide))
		return 0;
	return print_double(wide, text, size);
}

void spokei_hessian2_write_decimal(struct spokei_hessian2_writer *writer)
{
	unsigned type = spokei_hessian2_type(writer);
	struct spoke_value value = spokei_hessian2_peek(writer);
	struct spoke_span given = { 0 };
	char text[40];
	size_t len = print_number(value, type, text, sizeof(text));

	if (len == 0 && type != SPOKE_VALUE_STR) {
		spokei_hessian2_write_value(writer);
		return;
	}
	if (!spokei_hessian2_open_holder(writer, spokei_hessian2_literal("java.math.BigDecimal")))
		return;
	if (len > 0 && spokei_hessian2_take(writer, &value))
		spokei_hessian2_put_string(&writer->put, text, len);
	else if (take_str(writer, &given))
		spokei_hessian2_put_string(&writer->put, given.data, given.len);
	spokei_hessian2_close(writer);
}

/* Reads a decimal text as a sign and at most 64 bits. */
static bool read_digits(struct spoke_span text, bool *ret_negative, uint64_t *ret)
{
	const char *at = text.data;
	const char *end = at + text.len;

	*ret_negative = text.len > 0 && *at == '-';
	*ret = 0;
	if (text.len > 0 && (*at == '-' || *at == '+'))
		at++;
	if (at == end)
		return false;
	for (; at < end; at++)
		if (*at < '0' || *at > '9' || __builtin_mul_overflow(*ret, 10, ret) ||
		    __builtin_add_overflow(*ret, (uint64_t)(*at - '0'), ret))
			return false;
	return true;
}

void spokei_hessian2_write_big(struct spokei_hessian2_writer *writer)
{
	static const char pairs[] = "\xa6signum\xc0\xa3mag\xc0";
	struct spokei_hessian2_name words = { "int", 3, 1, true };
	struct spoke_value value = spokei_hessian2_peek(writer);
	unsigned type = spokei_hessian2_type(writer);
	struct spoke_span text;
	bool negative = false;
	uint64_t size = 0;
	int64_t number;

	if (type == SPOKE_VALUE_INT && spoke_value_i64(value, &number) == 0) {
		negative = number < 0;
		size = negative ? 0 - (uint64_t)number : (uint64_t)number;
	} else if (!(type == SPOKE_VALUE_INT && spoke_value_u64(value, &size) == 0) &&
		   !(type == SPOKE_VALUE_STR && spoke_value_str(value, &text) == 0 &&
		     read_digits(text, &negative, &size))) {
		spokei_hessian2_write_value(writer);
		return;
	}
	if (!spokei_hessian2_take(writer, &value) ||
	    !open_made(writer, spokei_hessian2_literal("java.math.BigInteger"), pairs,
		       sizeof(pairs) - 1, 2))
		return;
	spokei_hessian2_put_int(&writer->put, size == 0 ? 0 : negative ? -1 : 1);
	if (spokei_hessian2_open(writer, NULL)) {
		spokei_hessian2_list_head(writer, &words, size >> 32 ? 2 : size > 0);
		for (unsigned shift = 64; shift > 0; shift -= 32)
			if (size >> (shift - 32))
				spokei_hessian2_put_int(&writer->put,
							(int32_t)(uint32_t)(size >> (shift - 32)));
		spokei_hessian2_close(writer);
	}
	spokei_hessian2_close(writer);
}
