/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses JSON into packed values: a loop over the tokens, which packs each value when it has been
 * read. It needs no memory but that of the packed values.
 */
#include "core/json/build.h"
#include "core/json/keys.h"
#include "core/json/scan.h"

#include <spoke/json.h>

/* A map with its pairs as arrays takes two levels of JSON per level of values. */
#define OPEN_MAX (2u * SPOKE_VALUE_DEPTH_MAX)

_Static_assert(SPOKE_VALUE_DEPTH_MAX == 128, "an error message contains this number");

enum open {
	OPEN_ARRAY,
	OPEN_MAP,
	OPEN_PAIRS, /* the array of a {"$map": [...]} ... */
	OPEN_PAIR,  /* ... and one in it */
	OPEN_TYPED, /* the array of a {"$typed": ["type", value]} */
};

struct level {
	enum open open;
	unsigned left;                /* of a PAIR or TYPED: values still missing */
	size_t at;                    /* place in the builder; of a PAIR: that of its key */
	struct spokei_json_keys keys; /* of a MAP or PAIRS */
};

struct reader {
	struct spokei_json_scan scan;
	unsigned depth;       /* how many levels are open ... */
	unsigned value_depth; /* ... and how many of them are arrays or maps of the value */
	struct level levels[OPEN_MAX];
};

static char *fail(struct reader *reader, char *at, const char *what)
{
	return spokei_json_fail_at(&reader->scan, at, SPOKE_ESYNTAX, what);
}

/* The functions below return the place where the next value begins; or, if the outermost one has
 * ended, its end; or NULL after an error. */

/* --- before a value */

/* Notes the key of a pair, before its value. */
static char *end_pair_key(struct reader *reader, struct level *level, char *at)
{
	const struct spoke_builder *builder = reader->scan.builder;
	struct level *pairs = level - 1;

	if (builder->error)
		return at; /* the caller of all these functions looks */
	if (level->at > UINT32_MAX)
		return spokei_json_fail_at(&reader->scan, at, SPOKE_ETOOLARGE,
					   spoke_strerror(SPOKE_ETOOLARGE));
	if (!spokei_json_keys_add(&pairs->keys, builder, level->at))
		return fail(reader, at, "the $map has this key already");
	return at;
}

/* Checks that a value may stand here, in an array that is part of a special form. */
static SPOKEI_NOINLINE char *want_special(struct reader *reader, char *at)
{
	struct level *level = &reader->levels[reader->depth - 1];

	if (level->open == OPEN_PAIRS && *at != '[')
		return fail(reader, at, "a $map must contain arrays of two values");
	if (level->open == OPEN_TYPED && level->left-- == 0)
		return fail(reader, at, "a $typed must have one value after its type");
	if (level->open == OPEN_PAIR && level->left-- == 0)
		return fail(reader, at, "a pair of a $map must have two values");
	if (level->open == OPEN_PAIR && level->left == 0)
		return end_pair_key(reader, level, at);
	return at;
}

static char *unexpected_end(struct reader *reader, char *at)
{
	return fail(reader, at, "unexpected end inside an array or object");
}

/* Reads a key and its colon. */
static SPOKEI_NOINLINE char *want_key(struct reader *reader, struct level *level, char *at)
{
	struct spoke_builder *builder = reader->scan.builder;
	const char *end = reader->scan.end;
	size_t place = builder->len;
	char *text;
	size_t len;

	if (*at != '"')
		return fail(reader, at, "expected a key in double quotes");
	at = spokei_json_take_string(&reader->scan, at + 1, &text, &len);
	if (at == NULL)
		return NULL;
	spokei_build_text(builder, text, len, end);
	if (SPOKEI_UNLIKELY(builder->error != 0 || place > UINT32_MAX)) {
		return spokei_json_fail_at(&reader->scan, at,
					   builder->error ? builder->error : SPOKE_ETOOLARGE,
					   spoke_strerror(builder->error ? builder->error
									 : SPOKE_ETOOLARGE));
	}
	if (SPOKEI_UNLIKELY(at == end || *at != ':')) {
		at = spokei_json_skip(at, end);
		if (at == end || *at != ':')
			return fail(reader, at, "expected a colon");
	}
	if (!spokei_json_keys_add(&level->keys, builder, place))
		return fail(reader, at, "the object has this key already");
	at = spokei_json_skip(at + 1, end);
	return at == end ? unexpected_end(reader, at) : at;
}

/* Goes on after a bracket or a comma. */
static inline char *want(struct reader *reader, char *at)
{
	struct level *level = &reader->levels[reader->depth - 1];

	at = spokei_json_skip(at, reader->scan.end);
	if (SPOKEI_UNLIKELY(at == reader->scan.end))
		return unexpected_end(reader, at);
	if (level->open == OPEN_MAP)
		return want_key(reader, level, at);
	return level->open == OPEN_ARRAY ? at : want_special(reader, at);
}

/* --- after a value */

/* Ends a special form at its brackets. */
static char *close_special(struct reader *reader, const struct level *level, char *at)
{
	if (level->open == OPEN_PAIR && level->left > 0)
		return fail(reader, at, "a pair of a $map must have two values");
	if (level->open == OPEN_PAIR)
		return at;
	at = spokei_json_skip(at, reader->scan.end);
	if (at == reader->scan.end || *at != '}') {
		return fail(reader, at,
			    level->open == OPEN_PAIRS
				    ? "a $map must be the only key of its object"
				    : "a $typed must be the only key of its object");
	}
	return at + 1;
}

/* Ends the innermost level. Returns the place after its bracket. */
static SPOKEI_NOINLINE char *close_level(struct reader *reader, char *at)
{
	struct level *level = &reader->levels[reader->depth - 1];
	bool is_map = level->open == OPEN_MAP;

	if (*at != (is_map ? '}' : ']'))
		return fail(reader, at, is_map ? "expected a comma or }" : "expected a comma or ]");
	if ((is_map || level->open == OPEN_PAIRS) &&
	    spokei_json_keys_repeat(&level->keys, reader->scan.builder))
		return fail(reader, at,
			    is_map ? "the object has a key twice" : "the $map has a key twice");
	at++;
	if (level->open > OPEN_MAP && (at = close_special(reader, level, at)) == NULL)
		return NULL;
	reader->depth--;
	if (level->open != OPEN_PAIR && level->open != OPEN_TYPED)
		spokei_builder_close(reader->scan.builder, level->at);
	reader->value_depth -= level->open != OPEN_PAIR;
	return at;
}

/* Goes on after a value: closes the levels that end here, and passes the comma. */
static inline char *next(struct reader *reader, char *at)
{
	while (reader->depth > 0) {
		at = spokei_json_skip(at, reader->scan.end);
		if (SPOKEI_UNLIKELY(at == reader->scan.end))
			return unexpected_end(reader, at);
		if (*at == ',')
			return want(reader, at + 1);
		at = close_level(reader, at);
		if (at == NULL)
			return NULL;
	}
	return at;
}

/* --- arrays and objects */

/* Opens a level after its bracket; `place` is that of its array or map in the builder. */
static char *push(struct reader *reader, char *at, enum open open, size_t place)
{
	struct level *level = &reader->levels[reader->depth];
	bool is_value = open != OPEN_PAIR;

	if (reader->depth == OPEN_MAX || reader->value_depth + is_value > SPOKE_VALUE_DEPTH_MAX)
		return spokei_json_fail_at(&reader->scan, at, SPOKE_EDEPTH,
					   "nested too deeply; at most 128 levels");
	level->open = open;
	level->left = open == OPEN_TYPED ? 1 : 2;
	level->at = place;
	level->keys = (struct spokei_json_keys){ .places = at - 1 };
	reader->depth++;
	reader->value_depth += is_value;
	at = spokei_json_skip(at, reader->scan.end);
	if (at < reader->scan.end && *at == (open == OPEN_MAP ? '}' : ']') && open < OPEN_PAIR) {
		at = close_level(reader, at);
		return at ? next(reader, at) : NULL;
	}
	return want(reader, at);
}

/* Reads the type after {"$typed": [" and the comma; the value must follow. */
static char *open_typed(struct reader *reader)
{
	struct spokei_json_scan *scan = &reader->scan;
	char *text;
	size_t len;
	char c;

	if (!spokei_json_string(scan, &text, &len))
		return NULL;
	text[len] = '\0'; /* the string is decoded in place, and its quote has been read */
	if (!spokei_json_pass(scan, ',') || ((c = spokei_json_peek(scan)) != '[' && c != '{') ||
	    strlen(text) != len)
		return fail(reader, scan->at,
			    "a $typed must have the form [\"java.util.HashSet\", [...]]");
	spoke_pack_typed(scan->builder, text);
	return push(reader, scan->at, OPEN_TYPED, 0);
}

/* Opens an object whose first key begins with a dollar. */
static char *open_marked(struct reader *reader, char *at)
{
	struct spokei_json_scan *scan = &reader->scan;

	scan->at = at;
	if (spokei_json_pass_key(scan, "\"$typed\"", '[')) {
		if (spokei_json_pass(scan, '"'))
			return open_typed(reader);
		scan->at = at;
	}
	if (spokei_json_pass_key(scan, "\"$map\"", '['))
		return push(reader, scan->at, OPEN_PAIRS, spokei_builder_open(scan->builder, true));
	if (spokei_json_special(scan))
		return next(reader, scan->at);
	if (scan->error)
		return NULL;
	return push(reader, at, OPEN_MAP, spokei_builder_open(scan->builder, true));
}

static char *open_object(struct reader *reader, char *at)
{
	const char *key = spokei_json_skip(at, reader->scan.end);

	if (reader->scan.end - key > 1 && key[0] == '"' && key[1] == '$')
		return open_marked(reader, at);
	return push(reader, at, OPEN_MAP, spokei_builder_open(reader->scan.builder, true));
}

static char *open_array(struct reader *reader, char *at)
{
	if (reader->depth > 0 && reader->levels[reader->depth - 1].open == OPEN_PAIRS)
		return push(reader, at, OPEN_PAIR, reader->scan.builder->len);
	return push(reader, at, OPEN_ARRAY, spokei_builder_open(reader->scan.builder, false));
}

/* --- values */

static char *read_string(struct reader *reader, char *at)
{
	char *text;
	size_t len;

	at = spokei_json_take_string(&reader->scan, at, &text, &len);
	if (SPOKEI_LIKELY(at != NULL))
		spokei_build_text(reader->scan.builder, text, len, reader->scan.end);
	return at;
}

/* Reads the value that begins here, or its first bracket, and goes on to the next. */
static char *read_value(struct reader *reader, char *at)
{
	switch (*at) {
	case '{':
		return open_object(reader, at + 1);
	case '[':
		return open_array(reader, at + 1);
	case '"':
		at = read_string(reader, at + 1);
		break;
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		at = spokei_json_take_number(&reader->scan, at);
		break;
	default:
		at = spokei_json_take_word(&reader->scan, at);
	}
	return SPOKEI_LIKELY(at != NULL) ? next(reader, at) : NULL;
}

/* Reads a value with all that is in it. Returns its end, or NULL after an error. */
static char *read_whole(struct reader *reader, char *at)
{
	const struct spoke_builder *builder = reader->scan.builder;

	do {
		at = read_value(reader, at);
		if (SPOKEI_UNLIKELY(builder->error != 0))
			return spokei_json_fail_at(&reader->scan, at ? at : reader->scan.at,
						   builder->error, spoke_strerror(builder->error));
	} while (at != NULL && reader->depth > 0);
	if (at != NULL && at < reader->scan.end && !spokei_json_is_space(*at))
		return fail(reader, at, "unexpected text after the value");
	return at;
}

int spoke_json_read(char *text, size_t len, struct spoke_builder *builder, size_t *ret_count,
		    struct spoke_json_error *ret_error)
{
	struct reader reader;
	size_t count = 0;
	char *end = text + len;
	char *at;

	reader.scan = (struct spokei_json_scan){ text, text, end, builder, SPOKE_OK, NULL };
	reader.depth = reader.value_depth = 0;
	at = spokei_json_skip(text, end);
	while (at < end) {
		at = read_whole(&reader, at);
		if (at == NULL)
			break;
		count++;
		reader.scan.at = at = spokei_json_skip(at, end);
	}
	if (!reader.scan.error && builder->error)
		(void)spokei_json_fail(&reader.scan, builder->error,
				       spoke_strerror(builder->error));
	ret_error->at = (size_t)(reader.scan.at - text);
	ret_error->what = reader.scan.what;
	*ret_count = count;
	return reader.scan.error;
}
