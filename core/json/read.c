/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON into packed values. */
#include "core/json/keys.h"
#include "core/json/scan.h"
#include "core/text/base64.h"
#include "core/text/date.h"
#include "core/value/builder.h"

#include <spoke/json.h>

#include <math.h>
#include <string.h>

/* A map with its pairs as arrays takes two levels of JSON per level of values. */
#define OPEN_MAX (2u * SPOKE_VALUE_DEPTH_MAX)

_Static_assert(SPOKE_VALUE_DEPTH_MAX == 128, "an error message contains this number");

static const char has_key[] = "the object has this key already";

enum open {
	OPEN_ARRAY,
	OPEN_MAP,
	OPEN_PAIRS, /* the array of a {"$map": [...]} ... */
	OPEN_PAIR,  /* ... and one in it */
	OPEN_TYPED, /* the array of a {"$typed": ["type", value]} */
};

enum want {
	WANT_VALUE,
	WANT_VALUE_OR_END,
	WANT_KEY,
	WANT_KEY_OR_END,
	WANT_COMMA_OR_END,
};

struct reader {
	struct spokei_json_scan scan;
	enum open open[OPEN_MAX];
	size_t at[OPEN_MAX];          /* ... place in the builder */
	unsigned pair_left[OPEN_MAX]; /* of an OPEN_PAIR or OPEN_TYPED: values still missing */
	unsigned depth;               /* how many are open ... */
	unsigned value_depth;         /* ... and how many of them are arrays or maps of the value */
	enum want want;
	struct spokei_json_keys keys;
};

/* --- values without a JSON form */

/* {"$bin": "base64"}, {"$str": "base64"}: decodes the string after the colon. */
static bool take_base64(struct reader *reader, bool is_str)
{
	char *text;
	size_t len;

	if (!spokei_json_string(&reader->scan, &text, &len))
		return false;
	if (!spokei_base64_read(text, len, &len))
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX, "the string is not base64");
	if (is_str)
		spoke_pack_str(reader->scan.builder, text, len);
	else
		spoke_pack_bin(reader->scan.builder, text, len);
	return true;
}

static bool take_float(struct reader *reader)
{
	char *text;
	size_t len;

	if (!spokei_json_string(&reader->scan, &text, &len))
		return false;
	if (len == 3 && memcmp(text, "nan", 3) == 0)
		spoke_pack_double(reader->scan.builder, (double)NAN);
	else if (len == 3 && memcmp(text, "inf", 3) == 0)
		spoke_pack_double(reader->scan.builder, (double)INFINITY);
	else if (len == 4 && memcmp(text, "-inf", 4) == 0)
		spoke_pack_double(reader->scan.builder, (double)-INFINITY);
	else
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
					"a $float must be \"nan\", \"inf\" or \"-inf\"");
	return true;
}

static bool take_ext(struct reader *reader)
{
	static const char form[] = "a $ext must have the form [5, \"base64\"]";
	size_t at = reader->scan.at;
	int64_t type;
	char *text;
	size_t len;

	if (spokei_json_integer(&reader->scan, &type) || type < INT8_MIN || type > INT8_MAX) {
		reader->scan.at = at;
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
					"the type of a $ext must be from -128 to 127");
	}
	if (!spokei_json_pass(&reader->scan, ',') || !spokei_json_pass(&reader->scan, '"'))
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX, form);
	if (!spokei_json_string(&reader->scan, &text, &len))
		return false;
	if (!spokei_base64_read(text, len, &len))
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX, "the string is not base64");
	if (!spokei_json_pass(&reader->scan, ']'))
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX, form);
	spoke_pack_ext(reader->scan.builder, (int8_t)type, text, len);
	return true;
}

static bool take_date(struct reader *reader)
{
	int64_t seconds;
	uint32_t ns;
	char *text;
	size_t len;

	if (!spokei_json_string(&reader->scan, &text, &len))
		return false;
	if (!spokei_date_read(text, len, &seconds, &ns))
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
					"a $date must be e.g. \"2024-05-01T12:00:00.123Z\"");
	spoke_pack_time(reader->scan.builder, seconds, ns);
	return true;
}

static bool take_long(struct reader *reader)
{
	size_t at = reader->scan.at;
	int64_t number;
	int error = spokei_json_integer(&reader->scan, &number);

	if (error) {
		reader->scan.at = at;
		return spokei_json_fail(&reader->scan, error,
					"a $long must be an integer of 64 bits");
	}
	spoke_pack_long(reader->scan.builder, number);
	return true;
}

/* Skips this key and its colon, if the object begins with them. */
static bool pass_name(struct reader *reader, const char *key)
{
	spokei_json_space(&reader->scan);
	return spokei_json_pass_word(&reader->scan, key) && spokei_json_pass(&reader->scan, ':');
}

/* Skips this key and this byte, if the object begins with them. */
static bool pass_key(struct reader *reader, const char *key, char c)
{
	size_t at = reader->scan.at;

	if (pass_name(reader, key) && spokei_json_pass(&reader->scan, c))
		return true;
	reader->scan.at = at;
	return false;
}

/* Skips the key "$long", if a number follows. */
static bool pass_long(struct reader *reader)
{
	size_t at = reader->scan.at;
	char c;

	if (pass_name(reader, "\"$long\"")) {
		c = spokei_json_peek(&reader->scan);
		if (c == '-' || (c >= '0' && c <= '9'))
			return true;
	}
	reader->scan.at = at;
	return false;
}

/* Does the object end after the string that follows? */
static bool is_whole(const struct reader *reader)
{
	size_t at = reader->scan.at;

	while (at < reader->scan.len && reader->scan.text[at] != '"')
		at += reader->scan.text[at] == '\\' ? 2 : 1;
	for (at++; at < reader->scan.len && spokei_json_is_space(reader->scan.text[at]); at++)
		;
	return at < reader->scan.len && reader->scan.text[at] == '}';
}

/* Reads the rest of a "$..." object. Returns false if the object is a map or an error. */
static bool read_special(struct reader *reader)
{
	size_t at = reader->scan.at;
	bool is_str = pass_key(reader, "\"$str\"", '"');
	bool taken = false;

	if (is_str || pass_key(reader, "\"$bin\"", '"')) {
		if (is_whole(reader))
			taken = take_base64(reader, is_str);
	} else if (pass_key(reader, "\"$float\"", '"')) {
		if (is_whole(reader))
			taken = take_float(reader);
	} else if (pass_key(reader, "\"$date\"", '"')) {
		if (is_whole(reader))
			taken = take_date(reader);
	} else if (pass_long(reader)) {
		taken = take_long(reader);
	} else if (pass_key(reader, "\"$ext\"", '[')) {
		taken = take_ext(reader);
	}
	if (taken && !spokei_json_pass(&reader->scan, '}'))
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
					"a $ext or $long must be the only key of its object");
	if (!taken && !reader->scan.error)
		reader->scan.at = at;
	return taken;
}

/* --- arrays and maps */

/* Opens a level; `at` is the place of its array or map in the builder. */
static bool push(struct reader *reader, enum open open, enum want want, size_t at)
{
	bool is_value = open != OPEN_PAIR;

	if (reader->depth == OPEN_MAX || reader->value_depth + is_value > SPOKE_VALUE_DEPTH_MAX)
		return spokei_json_fail(&reader->scan, SPOKE_EDEPTH,
					"nested too deeply; at most 128 levels");
	reader->at[reader->depth] = at;
	reader->pair_left[reader->depth] = 2;
	reader->open[reader->depth++] = open;
	reader->value_depth += is_value;
	reader->want = want;
	return true;
}

/* Reads the type after {"$typed": [" and the comma; the value must follow. */
static bool open_typed(struct reader *reader)
{
	char *text;
	size_t len;
	char c;

	if (!spokei_json_string(&reader->scan, &text, &len))
		return false;
	text[len] = '\0'; /* the string is decoded in place, and its quote has been read */
	if (!spokei_json_pass(&reader->scan, ',') ||
	    ((c = spokei_json_peek(&reader->scan)) != '[' && c != '{') || strlen(text) != len)
		return spokei_json_fail(
			&reader->scan, SPOKE_ESYNTAX,
			"a $typed must have the form [\"java.util.HashSet\", [...]]");
	spoke_pack_typed(reader->scan.builder, text);
	if (!push(reader, OPEN_TYPED, WANT_VALUE, 0))
		return false;
	reader->pair_left[reader->depth - 1] = 1;
	return true;
}

static bool open_object(struct reader *reader)
{
	size_t at = reader->scan.at;

	if (pass_key(reader, "\"$typed\"", '[')) {
		if (spokei_json_pass(&reader->scan, '"'))
			return open_typed(reader);
		reader->scan.at = at;
	}
	if (pass_key(reader, "\"$map\"", '[')) {
		return push(reader, OPEN_PAIRS, WANT_VALUE_OR_END,
			    spokei_builder_open(reader->scan.builder, true));
	}
	if (read_special(reader)) {
		reader->want = WANT_COMMA_OR_END;
		return true;
	}
	if (reader->scan.error)
		return false;
	return push(reader, OPEN_MAP, WANT_KEY_OR_END,
		    spokei_builder_open(reader->scan.builder, true));
}

static bool open_array(struct reader *reader)
{
	if (reader->depth && reader->open[reader->depth - 1] == OPEN_PAIRS)
		return push(reader, OPEN_PAIR, WANT_VALUE, 0);
	return push(reader, OPEN_ARRAY, WANT_VALUE_OR_END,
		    spokei_builder_open(reader->scan.builder, false));
}

static bool close_open(struct reader *reader)
{
	enum open open = reader->open[reader->depth - 1];

	if (!spokei_json_pass(&reader->scan, open == OPEN_MAP ? '}' : ']'))
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
					open == OPEN_MAP ? "expected a comma or }"
							 : "expected a comma or ]");
	if (open == OPEN_PAIR && reader->pair_left[reader->depth - 1])
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
					"a pair of a $map must have two values");
	if ((open == OPEN_PAIRS || open == OPEN_TYPED) && !spokei_json_pass(&reader->scan, '}')) {
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
					open == OPEN_PAIRS
						? "a $map must be the only key of its object"
						: "a $typed must be the only key of its object");
	}
	if (open == OPEN_MAP) {
		const char *twice = spokei_json_keys_close(&reader->keys, reader->depth);

		if (twice) {
			reader->scan.at = (size_t)(twice - reader->scan.text);
			return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX, has_key);
		}
	}
	reader->depth--;
	if (open != OPEN_PAIR && open != OPEN_TYPED)
		spokei_builder_close(reader->scan.builder, reader->at[reader->depth]);
	reader->value_depth -= open != OPEN_PAIR;
	reader->want = WANT_COMMA_OR_END;
	return true;
}

static bool read_value(struct reader *reader)
{
	char c = spokei_json_peek(&reader->scan);
	char *text;
	size_t len;
	bool ok;

	if (reader->depth) {
		unsigned top = reader->depth - 1;

		if (reader->open[top] == OPEN_PAIRS && c != '[')
			return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
						"a $map must contain arrays of two values");
		if (reader->open[top] == OPEN_TYPED && reader->pair_left[top]-- == 0)
			return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
						"a $typed must have one value after its type");
		if (reader->open[top] == OPEN_PAIR && reader->pair_left[top]-- == 0)
			return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
						"a pair of a $map must have two values");
	}
	if (c == '{' || c == '[') {
		reader->scan.at++;
		return c == '{' ? open_object(reader) : open_array(reader);
	}
	if (c == '"') {
		reader->scan.at++;
		ok = spokei_json_string(&reader->scan, &text, &len);
		if (ok)
			spoke_pack_str(reader->scan.builder, text, len);
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		ok = spokei_json_number(&reader->scan);
	} else {
		ok = spokei_json_word(&reader->scan);
	}
	reader->want = WANT_COMMA_OR_END;
	return ok;
}

static bool read_key(struct reader *reader)
{
	char *text;
	size_t len;
	int error;

	if (!spokei_json_pass(&reader->scan, '"'))
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
					"expected a key in double quotes");
	if (!spokei_json_string(&reader->scan, &text, &len))
		return false;
	error = spokei_json_keys_add(&reader->keys, reader->depth, text, len);
	if (error == SPOKE_ENOMEM)
		return spokei_json_fail(&reader->scan, error,
					"out of memory for the keys of the object");
	if (error)
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX, has_key);
	spoke_pack_str(reader->scan.builder, text, len);
	if (!spokei_json_pass(&reader->scan, ':'))
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX, "expected a colon");
	reader->want = WANT_VALUE;
	return true;
}

static bool step(struct reader *reader)
{
	char c = spokei_json_peek(&reader->scan);
	bool is_map = reader->depth && reader->open[reader->depth - 1] == OPEN_MAP;

	if (reader->scan.builder->error)
		return spokei_json_fail(&reader->scan, reader->scan.builder->error,
					spoke_strerror(reader->scan.builder->error));
	if (reader->scan.at == reader->scan.len && reader->depth)
		return spokei_json_fail(&reader->scan, SPOKE_ESYNTAX,
					"unexpected end inside an array or object");
	switch (reader->want) {
	case WANT_VALUE_OR_END:
	case WANT_KEY_OR_END:
		if (c == (is_map ? '}' : ']'))
			return close_open(reader);
		return is_map ? read_key(reader) : read_value(reader);
	case WANT_COMMA_OR_END:
		if (!spokei_json_pass(&reader->scan, ','))
			return close_open(reader);
		reader->want = is_map ? WANT_KEY : WANT_VALUE;
		return true;
	case WANT_KEY:
		return read_key(reader);
	case WANT_VALUE:
	default:
		return read_value(reader);
	}
}

int spoke_json_read(char *text, size_t len, struct spoke_builder *builder, size_t *ret_count,
		    struct spoke_json_error *ret_error)
{
	struct reader reader;
	size_t count = 0;

	reader.scan = (struct spokei_json_scan){ .text = text, .len = len, .builder = builder };
	reader.depth = reader.value_depth = 0;
	spokei_json_keys_init(&reader.keys, builder->buffer ? builder->buffer->env : builder->env);
	while (spokei_json_space(&reader.scan), reader.scan.at < len) {
		reader.want = WANT_VALUE;
		do
			(void)step(&reader);
		while (!reader.scan.error && reader.depth);
		if (!reader.scan.error && reader.scan.at < len &&
		    !spokei_json_is_space(text[reader.scan.at]))
			(void)spokei_json_fail(&reader.scan, SPOKE_ESYNTAX,
					       "unexpected text after the value");
		if (reader.scan.error)
			break;
		count++;
	}
	if (!reader.scan.error && builder->error)
		(void)spokei_json_fail(&reader.scan, builder->error,
				       spoke_strerror(builder->error));
	spokei_json_keys_fini(&reader.keys);
	ret_error->at = reader.scan.at;
	ret_error->what = reader.scan.what;
	*ret_count = count;
	return reader.scan.error;
}
