/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads values into variables. First every value is checked against its target, then all variables
 * are written, so that a failure changes none of them.
 */
#include <spoke/read.h>

#include "core/memory/buffer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define SHOWN_MAX 48u /* bytes of a peer's content in a sentence, with the NUL */

struct spoke_reader spoke_reader_values(struct spoke_cursor values, const char *noun)
{
	return (struct spoke_reader){ .values = values, .noun = noun };
}

struct spoke_reader spoke_reader_of(struct spoke_value value)
{
	return (struct spoke_reader){
		.values = { value.data, value.data + value.len, value.len > 0 },
	};
}

/* --- one value */

static int64_t int_max(size_t size)
{
	return size >= sizeof(int64_t) ? INT64_MAX : (INT64_C(1) << (8 * size - 1)) - 1;
}

static uint64_t uint_max(size_t size)
{
	return size >= sizeof(uint64_t) ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
}

/* Writes the low bytes of a number into an integer of `size` bytes. */
static int store(void *to, size_t size, uint64_t number)
{
	const uint8_t as8 = (uint8_t)number;
	const uint16_t as16 = (uint16_t)number;
	const uint32_t as32 = (uint32_t)number;

	switch (size) {
	case sizeof(as8):
		memcpy(to, &as8, size);
		return SPOKE_OK;
	case sizeof(as16):
		memcpy(to, &as16, size);
		return SPOKE_OK;
	case sizeof(as32):
		memcpy(to, &as32, size);
		return SPOKE_OK;
	case sizeof(number):
		memcpy(to, &number, size);
		return SPOKE_OK;
	default:
		return SPOKE_EINVAL;
	}
}

static int read_int(const struct spoke_into *into, struct spoke_value value, void *to)
{
	int64_t number;
	int error = spoke_value_i64(value, &number);

	if (error)
		return error;
	if (number > int_max(into->size) || number < -int_max(into->size) - 1)
		return SPOKE_ERANGE;
	return store(to, into->size, (uint64_t)number);
}

static int read_uint(const struct spoke_into *into, struct spoke_value value, void *to)
{
	uint64_t number;
	int error = spoke_value_u64(value, &number);

	if (error)
		return error;
	return number > uint_max(into->size) ? SPOKE_ERANGE : store(to, into->size, number);
}

static int read_float(const struct spoke_into *into, struct spoke_value value, void *to)
{
	double number;
	float small;
	int error = spoke_value_double(value, &number);

	if (error)
		return error;
	if (into->size == sizeof(number)) {
		memcpy(to, &number, sizeof(number));
		return SPOKE_OK;
	}
	small = (float)number;
	if (isinf(small) && !isinf(number))
		return SPOKE_ERANGE;
	memcpy(to, &small, sizeof(small));
	return SPOKE_OK;
}

/* Checks a text that is copied with a NUL. `to` is NULL if it is only checked. */
static int read_text(const struct spoke_into *into, struct spoke_value value, char *to)
{
	struct spoke_span text;
	int error = spoke_value_str(value, &text);

	if (error)
		return error;
	if (text.len >= into->size || (text.len > 0 && memchr(text.data, '\0', text.len)))
		return SPOKE_ERANGE;
	if (to == NULL)
		return SPOKE_OK;
	if (text.len > 0)
		memcpy(to, text.data, text.len);
	to[text.len] = '\0';
	return SPOKE_OK;
}

/* Room for every kind of target but TEXT. */
union scratch {
	bool flag;
	uint64_t number;
	double real;
	struct spoke_span span;
	struct spoke_value value;
};

/* Reads a value into `to`, which is a scratch if the value is only checked. */
static int read_into(const struct spoke_into *into, struct spoke_value value, void *to)
{
	switch (into->kind) {
	case SPOKE_INTO_BOOL:
		return spoke_value_bool(value, to);
	case SPOKE_INTO_INT:
		return read_int(into, value, to);
	case SPOKE_INTO_UINT:
		return read_uint(into, value, to);
	case SPOKE_INTO_FLOAT:
		return read_float(into, value, to);
	case SPOKE_INTO_SPAN:
		return spoke_value_str(value, to);
	case SPOKE_INTO_BYTES:
		return spoke_value_bytes(value, to);
	case SPOKE_INTO_TEXT:
		return read_text(into, value, to);
	case SPOKE_INTO_VALUE:
		memcpy(to, &value, sizeof(value));
		return SPOKE_OK;
	case SPOKE_INTO_SKIP:
		return SPOKE_OK;
	case SPOKE_INTO_MAP:
	default:
		return SPOKE_EINVAL;
	}
}

/* Returns whether the variable stays as it is. */
static bool stays(const struct spoke_into *into, struct spoke_value value)
{
	return into->optional && (value.len == 0 || spoke_value_is_nil(value));
}

/* `value` is { 0 } if there is none, which is the error `missing`. */
static int check_one(const struct spoke_into *into, struct spoke_value value, int missing)
{
	union scratch scratch;

	if (into->to == NULL && into->kind != SPOKE_INTO_SKIP)
		return SPOKE_EINVAL;
	if (stays(into, value))
		return SPOKE_OK;
	if (value.len == 0)
		return missing;
	return read_into(into, value, into->kind == SPOKE_INTO_TEXT ? NULL : &scratch);
}

static void write_one(const struct spoke_into *into, struct spoke_value value)
{
	if (!stays(into, value))
		(void)read_into(into, value, into->to);
}

/* --- many values */

static int fail(struct spoke_reader *reader, int error, size_t index,
		const struct spoke_into *wanted, struct spoke_value came)
{
	reader->error = error;
	reader->index = index;
	reader->wanted = *wanted;
	reader->came = came;
	reader->surplus = false;
	return error;
}

static int fail_surplus(struct spoke_reader *reader, int error, size_t index,
			struct spoke_value key)
{
	static const struct spoke_into none = { .kind = SPOKE_INTO_SKIP };

	(void)fail(reader, error, index, &none, key);
	reader->surplus = true;
	return error;
}

static struct spoke_value next_of(struct spoke_cursor *cursor)
{
	struct spoke_value value = { NULL, 0 };

	return spoke_cursor_next(cursor, &value) ? value : (struct spoke_value){ NULL, 0 };
}

int spoke_read(struct spoke_reader *reader, const struct spoke_into *into, size_t count)
{
	struct spoke_cursor cursor = reader->values;
	struct spoke_value value;

	for (size_t i = 0; i < count; i++) {
		int error;

		value = next_of(&cursor);
		error = check_one(&into[i], value, SPOKE_ETRUNCATED);
		if (error)
			return fail(reader, error, i + 1, &into[i], value);
	}
	if (!reader->lenient && cursor.left > 0 && cursor.at != cursor.end)
		return fail_surplus(reader, SPOKE_ETRAILING, count,
				    (struct spoke_value){ NULL, 0 });
	for (size_t i = 0; i < count; i++)
		write_one(&into[i], next_of(&reader->values));
	reader->error = SPOKE_OK;
	return SPOKE_OK;
}

/* --- maps */

static size_t find_key(struct spoke_value key, const struct spoke_into *into, size_t count)
{
	struct spoke_span text;
	size_t i = 0;

	if (spoke_value_str(key, &text))
		return count;
	while (i < count &&
	       !(strlen(into[i].key) == text.len && memcmp(into[i].key, text.data, text.len) == 0))
		i++;
	return i;
}

/* Returns whether the pair after which no others follow is the class of a Java object. */
static bool is_class(struct spoke_value map, const struct spoke_cursor *rest,
		     struct spoke_value key)
{
	struct spoke_span name;
	struct spoke_span text;

	return rest->left == 0 && spoke_value_str(key, &text) == 0 && text.len == 5 &&
	       memcmp(text.data, "class", 5) == 0 && spoke_value_class(map, &name) == 0;
}

/* Finds the values of the keys. */
static int find_values(struct spoke_reader *reader, struct spoke_value map,
		       const struct spoke_into *into, size_t count, struct spoke_value *found)
{
	struct spoke_cursor pairs = { 0 };
	struct spoke_value value;
	struct spoke_value key;

	(void)!spoke_cursor_map(map, &pairs);
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		size_t at = find_key(key, into, count);

		if (at < count && found[at].len == 0)
			found[at] = value;
		else if (!reader->lenient && at < count)
			return fail_surplus(reader, SPOKE_EEXIST, 1, key);
		else if (!reader->lenient && !is_class(map, &pairs, key))
			return fail_surplus(reader, SPOKE_ETRAILING, 1, key);
	}
	return SPOKE_OK;
}

int spoke_read_map(struct spoke_reader *reader, const struct spoke_into *into, size_t count)
{
	static const struct spoke_into wanted = { .kind = SPOKE_INTO_MAP };
	struct spoke_value found[SPOKE_ARGS_MAX] = { { NULL, 0 } };
	struct spoke_cursor cursor = reader->values;
	struct spoke_value map = next_of(&cursor);
	int error;

	if (map.len == 0)
		return fail(reader, SPOKE_ETRUNCATED, 1, &wanted, map);
	if (spoke_value_type(map) != SPOKE_VALUE_MAP)
		return fail(reader, SPOKE_ETYPE, 1, &wanted, map);
	for (size_t i = 0; i < count; i++)
		if (count > SPOKE_ARGS_MAX || into[i].key == NULL)
			return fail(reader, SPOKE_EINVAL, 1, &into[i], map);
	error = find_values(reader, map, into, count, found);
	for (size_t i = 0; i < count && error == 0; i++) {
		error = check_one(&into[i], found[i], SPOKE_ENOENT);
		if (error)
			return fail(reader, error, 1, &into[i], found[i]);
	}
	if (error)
		return error;
	for (size_t i = 0; i < count; i++)
		write_one(&into[i], found[i]);
	reader->values = cursor;
	reader->error = SPOKE_OK;
	return SPOKE_OK;
}

/* --- the sentence */

struct sentence {
	char *text;
	size_t size;
	size_t len;
};

SPOKEI_PRINTF(2, 3)
static void add(struct sentence *sentence, const char *format, ...)
{
	size_t room = sentence->size - sentence->len;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(sentence->text + sentence->len, room, format, args);
	va_end(args);
	if (len > 0)
		sentence->len += (size_t)len < room ? (size_t)len : room - 1;
}

static const char *kind_name(enum spoke_into_kind kind)
{
	static const char *const names[] = {
		[SPOKE_INTO_BOOL] = "bool",    [SPOKE_INTO_INT] = "integer",
		[SPOKE_INTO_UINT] = "integer", [SPOKE_INTO_FLOAT] = "number",
		[SPOKE_INTO_SPAN] = "text",    [SPOKE_INTO_TEXT] = "text",
		[SPOKE_INTO_BYTES] = "bytes",  [SPOKE_INTO_VALUE] = "value",
		[SPOKE_INTO_SKIP] = "value",   [SPOKE_INTO_MAP] = "map",
	};

	return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "value";
}

static const char *type_name(struct spoke_value value)
{
	static const char *const names[] = {
		[SPOKE_VALUE_NONE] = "none",   [SPOKE_VALUE_NIL] = "nil",
		[SPOKE_VALUE_BOOL] = "bool",   [SPOKE_VALUE_INT] = "integer",
		[SPOKE_VALUE_DOUBLE] = "real", [SPOKE_VALUE_STR] = "text",
		[SPOKE_VALUE_BIN] = "bytes",   [SPOKE_VALUE_ARRAY] = "list",
		[SPOKE_VALUE_MAP] = "map",     [SPOKE_VALUE_EXT] = "extension",
	};

	return names[spoke_value_type(value)];
}

static void add_range(struct sentence *sentence, const struct spoke_reader *reader)
{
	const struct spoke_into *wanted = &reader->wanted;
	char shown[SHOWN_MAX];
	struct spoke_span text;

	(void)spoke_value_print(reader->came, shown, sizeof(shown));
	if (wanted->kind == SPOKE_INTO_INT)
		add(sentence, "integer from %lld to %lld wanted, %s came",
		    (long long)-int_max(wanted->size) - 1, (long long)int_max(wanted->size), shown);
	else if (wanted->kind == SPOKE_INTO_UINT)
		add(sentence, "integer from 0 to %llu wanted, %s came",
		    (unsigned long long)uint_max(wanted->size), shown);
	else if (wanted->kind == SPOKE_INTO_FLOAT)
		add(sentence, "number that fits %zu bytes wanted, %s came", wanted->size, shown);
	else if (spoke_value_str(reader->came, &text) == 0 && text.len >= wanted->size)
		add(sentence, "text of at most %zu bytes wanted, %zu bytes came",
		    wanted->size ? wanted->size - 1 : 0, text.len);
	else
		add(sentence, "text without NUL wanted, %s came", shown);
}

/* Adds the number of a value. A single value has none. */
static void add_place(struct sentence *sentence, const struct spoke_reader *reader)
{
	const struct spoke_into *wanted = &reader->wanted;
	const char *after = wanted->key || reader->surplus ? ", " : ": ";

	if (reader->noun || reader->index > 1)
		add(sentence, "%s %zu%s", reader->noun ? reader->noun : "value", reader->index,
		    after);
	if (wanted->key)
		add(sentence, "key \"%s\": ", wanted->key);
}

static void add_surplus(struct sentence *sentence, const struct spoke_reader *reader)
{
	const char *noun = reader->noun ? reader->noun : "value";
	char shown[SHOWN_MAX];

	if (reader->came.len == 0) {
		add(sentence, "%zu %s%s wanted, more came", reader->index, noun,
		    reader->index == 1 ? "" : "s");
		return;
	}
	(void)spoke_value_print(reader->came, shown, sizeof(shown));
	add_place(sentence, reader);
	add(sentence, "key %s: %s", shown,
	    reader->error == SPOKE_EEXIST ? "it came twice" : "it is not known");
}

size_t spoke_reader_why(const struct spoke_reader *reader, char *text, size_t size)
{
	struct sentence sentence = { .text = text, .size = size };

	if (size == 0)
		return 0;
	text[0] = '\0';
	if (reader->error == SPOKE_OK)
		return 0;
	if (reader->surplus) {
		add_surplus(&sentence, reader);
		return sentence.len;
	}
	add_place(&sentence, reader);
	if (reader->error == SPOKE_ERANGE)
		add_range(&sentence, reader);
	else if (reader->error == SPOKE_EINVAL)
		add(&sentence, "the target of the program is not valid");
	else
		add(&sentence, "%s wanted, %s came", kind_name(reader->wanted.kind),
		    type_name(reader->came));
	return sentence.len;
}
