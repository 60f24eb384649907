/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints values as text for logs and people: printable ASCII in one line, at most `size` bytes.
 * Stateless; any thread.
 */
#include <spoke/value.h>

#include "timer/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TOKEN_MAX 80 /* bytes of a printed number or date */

#define DAY 86400
#define YEAR_0 INT64_C(-62167219200) /* in seconds since 1970 */
#define YEAR_10000 INT64_C(253402300800)

static const char ellipsis[] = "...";

/* An output text with a maximum. Each piece is written completely or not at all. */
struct out {
	char *text;
	size_t len;
	size_t safe; /* length up to which the dots still fit */
	size_t size;
	bool full;
};

/* An open container. */
struct level {
	struct spoke_cursor rest;
	size_t written; /* values written so far */
	bool is_map;
};

static void put(struct out *out, const char *piece, size_t len)
{
	if (out->full || len >= out->size - out->len) {
		out->full = true;
		return;
	}
	memcpy(out->text + out->len, piece, len);
	out->len += len;
	if (out->size - out->len >= sizeof(ellipsis))
		out->safe = out->len;
}

static void put_text(struct out *out, const char *text)
{
	put(out, text, strlen(text));
}

static size_t finish(struct out *out)
{
	if (out->full && out->size >= sizeof(ellipsis)) {
		memcpy(out->text + out->safe, ellipsis, sizeof(ellipsis) - 1);
		out->len = out->safe + sizeof(ellipsis) - 1;
	}
	out->text[out->len] = '\0';
	return out->len;
}

static void put_str(struct out *out, struct spoke_span content)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = content.data;

	put(out, "\"", 1);
	for (size_t i = 0; i < content.len && !out->full; i++) {
		char escaped[4] = { '\\', 'x', digits[bytes[i] >> 4], digits[bytes[i] & 0xf] };

		if (bytes[i] == '"' || bytes[i] == '\\') {
			escaped[1] = (char)bytes[i];
			put(out, escaped, 2);
		} else if (bytes[i] >= 0x20 && bytes[i] < 0x7f) {
			escaped[0] = (char)bytes[i];
			put(out, escaped, 1);
		} else {
			put(out, escaped, sizeof(escaped));
		}
	}
	put(out, "\"", 1);
}

static void put_hex(struct out *out, struct spoke_span content)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = content.data;

	for (size_t i = 0; i < content.len && !out->full; i++) {
		char pair[2] = { digits[bytes[i] >> 4], digits[bytes[i] & 0xf] };

		put(out, pair, sizeof(pair));
	}
	put(out, ")", 1);
}

/* Prints a double so that a point, an exponent or a letter distinguishes it from an integer. */
static void put_double(struct out *out, double number)
{
	char text[TOKEN_MAX];

	(void)snprintf(text, sizeof(text), "%.15g", number);
	put_text(out, text);
	if (text[strspn(text, "-0123456789")] == '\0')
		put_text(out, ".0");
}

static void put_int(struct out *out, struct spoke_value value)
{
	char text[TOKEN_MAX];
	int64_t number;
	uint64_t large;

	if (spoke_value_i64(value, &number) == 0)
		(void)snprintf(text, sizeof(text), "%" PRId64, number);
	else if (spoke_value_u64(value, &large) == 0)
		(void)snprintf(text, sizeof(text), "%" PRIu64, large);
	else
		(void)snprintf(text, sizeof(text), "?");
	put_text(out, text);
}

/* Converts days since 1970 to a date of the Gregorian calendar. A year of this computation begins
 * in March, so that the leap day is its last day. */
static void date_from_days(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	int64_t since = days + 719468; /* days since March 1 of year 0 */
	int64_t era = (since >= 0 ? since : since - 146096) / 146097;
	int64_t rest = since - era * 146097;
	int64_t year = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
	int64_t day = rest - (365 * year + year / 4 - year / 100);
	int64_t month = (5 * day + 2) / 153;

	*ret_day = (int)(day - (153 * month + 2) / 5 + 1);
	*ret_month = (int)(month < 10 ? month + 3 : month - 9);
	*ret_year = (int)(year + era * 400 + (*ret_month <= 2));
}

/* Prints a timestamp from year 0 to 9999. Returns false for all other values. */
static bool put_time(struct out *out, struct spoke_value value)
{
	int64_t seconds;
	uint32_t ns;
	char text[TOKEN_MAX];
	int year;
	int month;
	int day;
	int left;

	if (spoke_value_time(value, &seconds, &ns) != 0 || seconds < YEAR_0 ||
	    seconds >= YEAR_10000)
		return false;
	left = (int)((seconds - YEAR_0) % DAY);
	date_from_days((seconds - left) / DAY, &year, &month, &day);
	(void)snprintf(text, sizeof(text), "date(%04d-%02d-%02dT%02d:%02d:%02d", year, month, day,
		       left / 3600, left / 60 % 60, left % 60);
	put_text(out, text);
	(void)snprintf(text, sizeof(text), ".%09" PRIu32, ns);
	text[ns == 0 ? 0 : ns % 1000000 == 0 ? 4 : ns % 1000 == 0 ? 7 : 10] = '\0';
	put_text(out, text);
	put_text(out, "Z)");
	return true;
}

/* Prints a value that is not a container. */
static void put_scalar(struct out *out, struct spoke_value value)
{
	char head[TOKEN_MAX];
	struct spoke_span content;
	double number;
	int8_t type;
	bool truth;

	if (spoke_value_is_nil(value)) {
		put_text(out, "null");
	} else if (spoke_value_bool(value, &truth) == 0) {
		put_text(out, truth ? "true" : "false");
	} else if (spoke_value_type(value) == SPOKE_VALUE_INT) {
		put_int(out, value);
	} else if (spoke_value_double(value, &number) == 0) {
		put_double(out, number);
	} else if (spoke_value_str(value, &content) == 0) {
		put_str(out, content);
	} else if (spoke_value_bin(value, &content) == 0) {
		put_text(out, "bin(");
		put_hex(out, content);
	} else if (put_time(out, value)) {
		return;
	} else if (spoke_value_ext(value, &type, &content) == 0) {
		(void)snprintf(head, sizeof(head), "ext(%d, ", type);
		put_text(out, head);
		put_hex(out, content);
	} else { /* a container that is too deep, or a value that cannot be read */
		put_text(out, spoke_value_type(value) == SPOKE_VALUE_NONE ? "?" : ellipsis);
	}
}

/* Prints a scalar, or the beginning of a container. Returns true and the level for a container. */
static bool begin_value(struct out *out, struct spoke_value value, struct level *ret_level)
{
	struct level level = { .is_map = false };

	if (spoke_cursor_array(value, &level.rest) == 0) {
		put(out, "[", 1);
	} else if (spoke_cursor_map(value, &level.rest) == 0) {
		level.is_map = true;
		put(out, "{", 1);
	} else {
		put_scalar(out, value);
		return false;
	}
	*ret_level = level;
	return true;
}

/* Prints the separator before the next value of a container. */
static void put_separator(struct out *out, struct level *level)
{
	if (level->is_map && level->written % 2 == 1)
		put(out, ": ", 2);
	else if (level->written > 0)
		put(out, ", ", 2);
	level->written++;
}

size_t spoke_value_print(struct spoke_value value, char *text, size_t size)
{
	struct out out = { .text = text, .size = size };
	struct level levels[SPOKE_VALUE_DEPTH_MAX];
	size_t depth;

	if (size == 0)
		return 0;
	depth = begin_value(&out, value, &levels[0]);
	while (depth > 0 && !out.full) {
		struct level *level = &levels[depth - 1];

		if (!spoke_cursor_next(&level->rest, &value)) {
			put(&out, level->is_map ? "}" : "]", 1);
			depth--;
			continue;
		}
		put_separator(&out, level);
		if (depth == SPOKE_VALUE_DEPTH_MAX)
			put_scalar(&out, value);
		else
			depth += begin_value(&out, value, level + 1);
	}
	return finish(&out);
}
