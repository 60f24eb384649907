/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses JSON into packed values: a loop over the tokens, which packs each value when it has been
 * read. It needs no memory but that of the packed values.
 *
 * Keys of an object or a $map: the packed keys are the only copy; their offsets are noted in the
 * text of the object itself, from its bracket on. That text has been read, and each member of it
 * has more bytes than the offset of its key. A few keys are compared as they come; more are sorted
 * when the object ends, by a heap, whose time has a bound for any keys: n log n comparisons. A heap
 * jumps from key to key, so very many keys are first parted by their hashes, into heaps that fit a
 * processor's cache.
 */
#include "core/base/siphash.h"
#include "core/json/json.h"
#include "core/json/scan.h"
#include "core/text/encoding.h"
#include "core/value/builder.h"
#include "core/value/encode.h"
#include "core/value/shape.h"

#include <math.h>
#include <string.h>

/* A map with its pairs as arrays takes two levels of JSON per level of values. */
#define OPEN_MAX (2u * SPOKE_VALUE_DEPTH_MAX)

_Static_assert(SPOKE_VALUE_DEPTH_MAX == 128, "an error message contains this number");

#define KEYS_FEW 16u /* keys that are compared at once */
#define PART_BITS 11u
#define PARTS (1u << PART_BITS)
#define PARTED_MIN 16384u /* keys */
#define BUILD_TEXT 64u    /* bytes of a text that is copied without a call */

/* Packs a text; `end` is the end of the readable bytes after it. */
static inline void build_text(struct spoke_builder *builder, const char *text, size_t len,
			      const char *end)
{
	unsigned char *at = spokei_builder_room(builder, SPOKEI_ENCODE_MAX + BUILD_TEXT);

	if (SPOKEI_UNLIKELY(at == NULL || len > BUILD_TEXT || (size_t)(end - text) < BUILD_TEXT)) {
		spoke_pack_str(builder, text, len);
		return;
	}
	*at = (unsigned char)(0xa0 | len);
	if (len >= 32) {
		*at++ = 0xd9;
		*at = (unsigned char)len;
	}
	at++;
	/* Copies more than the text, in few steps of a constant size. */
	memcpy(at, text, 16);
	if (len > 16) {
		memcpy(at + 16, text + 16, 16);
		if (len > 32)
			memcpy(at + 32, text + 32, 32);
	}
	spokei_builder_take(builder, at + len);
}

/* --- keys that are repeated */

struct keys {
	char *offsets;  /* 4 bytes for each key: its offset among the packed bytes */
	uint32_t count; /* keys so far */
};

static uint32_t offset_at(const char *offsets, size_t i)
{
	uint32_t offset;

	memcpy(&offset, offsets + i * sizeof(offset), sizeof(offset));
	return offset;
}

static void set_offset(char *offsets, size_t i, uint32_t offset)
{
	memcpy(offsets + i * sizeof(offset), &offset, sizeof(offset));
}

/* Adds the key that was packed last, at this offset, after its colon has been read. Returns false
 * if one of the few keys before it is the same. */
static bool add_key(struct keys *keys, const struct spoke_builder *builder, size_t at)
{
	const unsigned char *key = builder->bytes + at;
	size_t len = builder->len - at;
	uint32_t least = keys->count > KEYS_FEW ? keys->count - KEYS_FEW : 0;

	/* The head of a value contains its length, so equal bytes are equal values. */
	for (uint32_t i = keys->count; i > least; i--) {
		const unsigned char *other = builder->bytes + offset_at(keys->offsets, i - 1);

		if (*other == *key && other[len - 1] == key[len - 1] &&
		    memcmp(other, key, len) == 0)
			return false;
	}
	set_offset(keys->offsets, keys->count++, (uint32_t)at);
	return true;
}

/* Returns the bytes of a key; that of a $map may be an array or a map. */
static inline size_t len_of(const unsigned char *key, const unsigned char *end)
{
	size_t len = spokei_shape_len(key, end);

	return len > 0 ? len : (size_t)(spokei_shape_skip(key, end) - key);
}

/* Compares two keys, by length first: any order will do. */
static int compare(const struct spoke_builder *builder, uint32_t a, uint32_t b)
{
	const unsigned char *end = builder->bytes + builder->len;
	size_t a_len = len_of(builder->bytes + a, end);
	size_t b_len = len_of(builder->bytes + b, end);

	if (a_len != b_len)
		return a_len < b_len ? -1 : 1;
	return memcmp(builder->bytes + a, builder->bytes + b, a_len);
}

/* Lets the key at `at` sink to its place in a heap of `count` keys. */
static void sink(const struct spoke_builder *builder, char *offsets, size_t at, size_t count)
{
	uint32_t key = offset_at(offsets, at);

	for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
		child += child + 1 < count && compare(builder, offset_at(offsets, child),
						      offset_at(offsets, child + 1)) < 0;
		if (compare(builder, key, offset_at(offsets, child)) >= 0)
			break;
		set_offset(offsets, at, offset_at(offsets, child));
		at = child;
	}
	set_offset(offsets, at, key);
}

static void sort(const struct spoke_builder *builder, char *offsets, size_t count)
{
	for (size_t at = count / 2; at-- > 0;)
		sink(builder, offsets, at, count);
	while (count-- > 1) {
		uint32_t greatest = offset_at(offsets, 0);

		set_offset(offsets, 0, offset_at(offsets, count));
		set_offset(offsets, count, greatest);
		sink(builder, offsets, 0, count);
	}
}

/* Returns how many keys, from the first one on, are each greater than the key before. */
static size_t count_ascending(const struct spoke_builder *builder, const char *offsets,
			      size_t count)
{
	size_t i = 1;

	while (i < count && compare(builder, offset_at(offsets, i - 1), offset_at(offsets, i)) < 0)
		i++;
	return i;
}

/* Sorts keys, and returns whether one is repeated. */
static bool repeat(const struct spoke_builder *builder, char *offsets, size_t count)
{
	if (count < 2)
		return false;
	sort(builder, offsets, count);
	return count_ascending(builder, offsets, count) < count;
}

/* Returns the part to which a key belongs. */
static uint32_t part_of(const struct spoke_builder *builder, const uint64_t hash_key[2],
			uint32_t offset)
{
	const unsigned char *key = builder->bytes + offset;
	size_t len = len_of(key, builder->bytes + builder->len);

	return (uint32_t)(spokei_siphash(hash_key, key, len) >> (64 - PART_BITS));
}

/* Moves the keys of each part together, and writes the ends of the parts. */
static void part(const struct spoke_builder *builder, const uint64_t hash_key[2], char *offsets,
		 uint32_t count, uint32_t ends[PARTS])
{
	uint32_t next[PARTS] = { 0 };
	uint32_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		next[part_of(builder, hash_key, offset_at(offsets, i))]++;
	for (uint32_t i = 0; i < PARTS; i++) {
		ends[i] = sum + next[i];
		next[i] = sum;
		sum = ends[i];
	}
	for (uint32_t i = 0; i < PARTS; i++) {
		while (next[i] < ends[i]) {
			uint32_t offset = offset_at(offsets, next[i]);
			uint32_t home = part_of(builder, hash_key, offset);

			set_offset(offsets, next[i], offset_at(offsets, next[home]));
			set_offset(offsets, next[home]++, offset);
		}
	}
}

static SPOKEI_NOINLINE bool repeat_in_parts(const struct spoke_builder *builder,
					    const struct spoke_env *env, char *offsets,
					    uint32_t count)
{
	uint32_t ends[PARTS];
	uint64_t hash_key[2];
	uint32_t at = 0;

	env->dice(env->ctx, hash_key, sizeof(hash_key));
	part(builder, hash_key, offsets, count, ends);
	for (uint32_t i = 0; i < PARTS; i++) {
		if (repeat(builder, offsets + (size_t)at * sizeof(uint32_t), ends[i] - at))
			return true;
		at = ends[i];
	}
	return false;
}

/* Returns whether a key is repeated in an object that has ended. Sorts the offsets. */
static bool repeats(struct keys *keys, const struct spoke_builder *builder)
{
	const struct spoke_env *env = builder->buffer ? builder->buffer->env : builder->env;

	if (keys->count <= KEYS_FEW + 1 ||
	    count_ascending(builder, keys->offsets, keys->count) == keys->count)
		return false;
	/* A builder in memory of its caller has no random numbers for the key of the hash. */
	if (keys->count < PARTED_MIN || env == NULL)
		return repeat(builder, keys->offsets, keys->count);
	return repeat_in_parts(builder, env, keys->offsets, keys->count);
}

/* --- dates */

/* Reads exactly `count` digits, a number from `min` to `max`, and moves past them. */
static bool take_digits(const char **at, const char *end, int count, int min, int max, int *ret)
{
	*ret = 0;
	for (; count > 0; count--, ++*at) {
		if (*at == end || **at < '0' || **at > '9')
			return false;
		*ret = *ret * 10 + (**at - '0');
	}
	return *ret >= min && *ret <= max;
}

static bool take_char(const char **at, const char *end, char c)
{
	if (*at == end || **at != c)
		return false;
	++*at;
	return true;
}

/* Returns the days from 1970 to a date of the Gregorian calendar. A year of this computation begins
 * in March, so that the leap day is its last day. */
static int64_t days_of(int year, int month, int day)
{
	int64_t from = year - (month <= 2) + 400; /* not negative */
	int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return from * 365 + from / 4 - from / 100 + from / 400 + in_year - 719468 - 146097;
}

static bool take_day(const char **at, const char *end, int64_t *ret_days)
{
	static const int lengths[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year;
	int month;
	int day;

	if (!take_digits(at, end, 4, 0, 9999, &year) || !take_char(at, end, '-') ||
	    !take_digits(at, end, 2, 1, 12, &month) || !take_char(at, end, '-') ||
	    !take_digits(at, end, 2, 1, lengths[month - 1], &day))
		return false;
	if (month == 2 && day == 29 && (year % 4 != 0 || (year % 100 == 0 && year % 400 != 0)))
		return false;
	*ret_days = days_of(year, month, day);
	return true;
}

/* Reads up to nine digits after a point. */
static bool take_fraction(const char **at, const char *end, uint32_t *ret_ns)
{
	uint32_t unit = 100000000;
	int digit;

	*ret_ns = 0;
	if (!take_char(at, end, '.'))
		return true;
	do {
		if (!take_digits(at, end, 1, 0, 9, &digit))
			return false;
		*ret_ns += (uint32_t)digit * unit;
		unit /= 10;
	} while (*at < end && **at >= '0' && **at <= '9' && unit > 0);
	return true;
}

/* Reads a time zone as seconds to subtract. */
static bool take_zone(const char **at, const char *end, int *ret_seconds)
{
	int sign = *at < end && **at == '-' ? -1 : 1;
	int hours;
	int minutes;

	*ret_seconds = 0;
	if (*at == end || take_char(at, end, 'Z'))
		return true;
	if (!take_char(at, end, sign < 0 ? '-' : '+') || !take_digits(at, end, 2, 0, 23, &hours) ||
	    !take_char(at, end, ':') || !take_digits(at, end, 2, 0, 59, &minutes))
		return false;
	*ret_seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

/* Reads a date (RFC 3339), e.g. "2024-05-01", "2024-05-01T12:00:00.123Z" or
 * "2024-05-01T12:00:00+02:00", as seconds and nanoseconds since 1970. Returns false if it is
 * invalid.
 */
static bool read_date(const char *text, size_t len, int64_t *ret_seconds, uint32_t *ret_ns)
{
	const char *end = text + len;
	int64_t days;
	int hour = 0;
	int minute = 0;
	int second = 0;
	int zone = 0;

	*ret_ns = 0;
	if (!take_day(&text, end, &days))
		return false;
	if (text < end) {
		if (!take_char(&text, end, 'T') || !take_digits(&text, end, 2, 0, 23, &hour) ||
		    !take_char(&text, end, ':') || !take_digits(&text, end, 2, 0, 59, &minute) ||
		    !take_char(&text, end, ':') || !take_digits(&text, end, 2, 0, 59, &second) ||
		    !take_fraction(&text, end, ret_ns) || !take_zone(&text, end, &zone))
			return false;
	}
	*ret_seconds = days * 86400 + (int64_t)hour * 3600 + (int64_t)minute * 60 + second - zone;
	return text == end;
}

/* --- objects that stand for values without a JSON form */

/* {"$bin": "base64"}, {"$str": "base64"}: decodes the string after the colon. */
static bool take_base64(struct spokei_json_scan *scan, bool is_str)
{
	char *text;
	size_t len;

	if (!spokei_json_string(scan, &text, &len))
		return false;
	if (!spokei_base64_read(text, len, &len))
		return spokei_json_fail(scan, SPOKE_ESYNTAX, "the string is not base64");
	if (is_str)
		spoke_pack_str(scan->builder, text, len);
	else
		spoke_pack_bin(scan->builder, text, len);
	return true;
}

static bool take_float(struct spokei_json_scan *scan)
{
	char *text;
	size_t len;

	if (!spokei_json_string(scan, &text, &len))
		return false;
	if (len == 3 && memcmp(text, "nan", 3) == 0)
		spoke_pack_double(scan->builder, (double)NAN);
	else if (len == 3 && memcmp(text, "inf", 3) == 0)
		spoke_pack_double(scan->builder, (double)INFINITY);
	else if (len == 4 && memcmp(text, "-inf", 4) == 0)
		spoke_pack_double(scan->builder, (double)-INFINITY);
	else
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"a $float must be \"nan\", \"inf\" or \"-inf\"");
	return true;
}

static bool take_ext(struct spokei_json_scan *scan)
{
	static const char form[] = "a $ext must have the form [5, \"base64\"]";
	char *at = scan->at;
	int64_t type;
	char *text;
	size_t len;

	if (spokei_json_integer(scan, &type) || type < INT8_MIN || type > INT8_MAX) {
		scan->at = at;
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"the type of a $ext must be from -128 to 127");
	}
	if (!spokei_json_pass(scan, ',') || !spokei_json_pass(scan, '"'))
		return spokei_json_fail(scan, SPOKE_ESYNTAX, form);
	if (!spokei_json_string(scan, &text, &len))
		return false;
	if (!spokei_base64_read(text, len, &len))
		return spokei_json_fail(scan, SPOKE_ESYNTAX, "the string is not base64");
	if (!spokei_json_pass(scan, ']'))
		return spokei_json_fail(scan, SPOKE_ESYNTAX, form);
	spoke_pack_ext(scan->builder, (int8_t)type, text, len);
	return true;
}

static bool take_date(struct spokei_json_scan *scan)
{
	int64_t seconds;
	uint32_t ns;
	char *text;
	size_t len;

	if (!spokei_json_string(scan, &text, &len))
		return false;
	if (!read_date(text, len, &seconds, &ns))
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"a $date must be e.g. \"2024-05-01T12:00:00.123Z\"");
	spoke_pack_time(scan->builder, seconds, ns);
	return true;
}

static bool take_long(struct spokei_json_scan *scan)
{
	char *at = scan->at;
	int64_t number;
	int error = spokei_json_integer(scan, &number);

	if (error) {
		scan->at = at;
		return spokei_json_fail(scan, error, "a $long must be an integer of 64 bits");
	}
	spoke_pack_long(scan->builder, number);
	return true;
}

/* Skips this key and its colon, if the object begins with them. */
static bool pass_name(struct spokei_json_scan *scan, const char *key)
{
	spokei_json_space(scan);
	return spokei_json_pass_word(scan, key) && spokei_json_pass(scan, ':');
}

/* Skips this key and this byte, if an object begins with them. */
static bool pass_key(struct spokei_json_scan *scan, const char *key, char c)
{
	char *at = scan->at;

	if (pass_name(scan, key) && spokei_json_pass(scan, c))
		return true;
	scan->at = at;
	return false;
}

/* Skips the key "$long", if a number follows. */
static bool pass_long(struct spokei_json_scan *scan)
{
	char *at = scan->at;
	char c;

	if (pass_name(scan, "\"$long\"")) {
		c = spokei_json_peek(scan);
		if (c == '-' || (c >= '0' && c <= '9'))
			return true;
	}
	scan->at = at;
	return false;
}

/* Does the object end after the string that follows? */
static bool is_whole(const struct spokei_json_scan *scan)
{
	const char *at = scan->at;

	while (at < scan->end && *at != '"')
		at += *at == '\\' && scan->end - at > 1 ? 2 : 1;
	if (at < scan->end)
		at++;
	while (at < scan->end && spokei_json_is_space(*at))
		at++;
	return at < scan->end && *at == '}';
}

/* Reads the rest of a "$..." object that is neither $map nor $typed. Returns false if the object is
 * a map, and `at` is unchanged, or on an error. */
static bool take_special(struct spokei_json_scan *scan)
{
	char *at = scan->at;
	bool is_str = pass_key(scan, "\"$str\"", '"');
	bool taken = false;

	if (is_str || pass_key(scan, "\"$bin\"", '"')) {
		if (is_whole(scan))
			taken = take_base64(scan, is_str);
	} else if (pass_key(scan, "\"$float\"", '"')) {
		if (is_whole(scan))
			taken = take_float(scan);
	} else if (pass_key(scan, "\"$date\"", '"')) {
		if (is_whole(scan))
			taken = take_date(scan);
	} else if (pass_long(scan)) {
		taken = take_long(scan);
	} else if (pass_key(scan, "\"$ext\"", '[')) {
		taken = take_ext(scan);
	}
	if (taken && !spokei_json_pass(scan, '}'))
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"a $ext or $long must be the only key of its object");
	if (!taken && !scan->error)
		scan->at = at;
	return taken;
}

/* --- levels of arrays and objects */

enum open {
	OPEN_ARRAY,
	OPEN_MAP,
	OPEN_PAIRS, /* the array of a {"$map": [...]} ... */
	OPEN_PAIR,  /* ... and one in it */
	OPEN_TYPED, /* the array of a {"$typed": ["type", value]} */
};

struct level {
	enum open open;
	unsigned left;    /* of a PAIR or TYPED: values still missing */
	size_t at;        /* offset in the builder; of a PAIR: that of its key */
	struct keys keys; /* of a MAP or PAIRS */
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
	if (!add_key(&pairs->keys, builder, level->at))
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
	size_t offset = builder->len;
	char *text;
	size_t len;

	if (*at != '"')
		return fail(reader, at, "expected a key in double quotes");
	at = spokei_json_take_string(&reader->scan, at + 1, &text, &len);
	if (at == NULL)
		return NULL;
	build_text(builder, text, len, end);
	if (SPOKEI_UNLIKELY(builder->error != 0 || offset > UINT32_MAX)) {
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
	if (!add_key(&level->keys, builder, offset))
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
	if ((is_map || level->open == OPEN_PAIRS) && repeats(&level->keys, reader->scan.builder))
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

/* Opens a level after its bracket; its array or map is at this offset in the builder. */
static char *push(struct reader *reader, char *at, enum open open, size_t offset)
{
	struct level *level = &reader->levels[reader->depth];
	bool is_value = open != OPEN_PAIR;

	if (reader->depth == OPEN_MAX || reader->value_depth + is_value > SPOKE_VALUE_DEPTH_MAX)
		return spokei_json_fail_at(&reader->scan, at, SPOKE_EDEPTH,
					   "nested too deeply; at most 128 levels");
	level->open = open;
	level->left = open == OPEN_TYPED ? 1 : 2;
	level->at = offset;
	level->keys = (struct keys){ .offsets = at - 1 };
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
	if (pass_key(scan, "\"$typed\"", '[')) {
		if (spokei_json_pass(scan, '"'))
			return open_typed(reader);
		scan->at = at;
	}
	if (pass_key(scan, "\"$map\"", '['))
		return push(reader, scan->at, OPEN_PAIRS, spokei_builder_open(scan->builder, true));
	if (take_special(scan))
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
		build_text(reader->scan.builder, text, len, reader->scan.end);
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

/* --- the arguments of a call */

/* Replaces a single array by its items. A typed array is an argument itself. */
static void open_list(struct spoke_span *args, size_t *count)
{
	const unsigned char *at = args->data;
	const struct spokei_shape *shape;

	if (*count != 1 || spokei_shapes[*at].each != 1)
		return;
	shape = &spokei_shapes[*at];
	*count = (size_t)spokei_shape_number(shape, at);
	*args = (struct spoke_span){ at + 1 + shape->width, args->len - 1 - shape->width };
}

/* Results and limits are the caller's; a struct would only be taken apart again. */
/* NOLINTNEXTLINE(readability-function-size) */
int spokei_json_read_args(char *text, size_t len, const struct spoke_value_limits *limits,
			  struct spokei_buffer *out, struct spoke_span *ret_args, size_t *ret_count,
			  struct spoke_json_error *ret_error)
{
	struct spoke_span args;
	struct spoke_builder builder;
	size_t count;
	int error;

	spokei_builder_init_buffer(&builder, out, limits);
	error = spoke_json_read(text, len, &builder, &count, ret_error);
	if (!error && count > 1) {
		error = SPOKE_ESYNTAX;
		*ret_error = (struct spoke_json_error){ len,
							"more than one value; write an array" };
	}
	if (error) {
		spokei_builder_drop(&builder);
		return error;
	}
	error = spoke_builder_finish(&builder, &args);
	SPOKE_ASSERT(error == SPOKE_OK);
	open_list(&args, &count);
	*ret_args = args;
	*ret_count = count;
	return SPOKE_OK;
}
