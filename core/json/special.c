/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the objects that stand for values without a JSON form. */
#include "core/json/scan.h"
#include "core/text/base64.h"
#include "core/text/date.h"

#include <math.h>
#include <string.h>

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
	if (!spokei_date_read(text, len, &seconds, &ns))
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

bool spokei_json_pass_key(struct spokei_json_scan *scan, const char *key, char c)
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

bool spokei_json_special(struct spokei_json_scan *scan)
{
	char *at = scan->at;
	bool is_str = spokei_json_pass_key(scan, "\"$str\"", '"');
	bool taken = false;

	if (is_str || spokei_json_pass_key(scan, "\"$bin\"", '"')) {
		if (is_whole(scan))
			taken = take_base64(scan, is_str);
	} else if (spokei_json_pass_key(scan, "\"$float\"", '"')) {
		if (is_whole(scan))
			taken = take_float(scan);
	} else if (spokei_json_pass_key(scan, "\"$date\"", '"')) {
		if (is_whole(scan))
			taken = take_date(scan);
	} else if (pass_long(scan)) {
		taken = take_long(scan);
	} else if (spokei_json_pass_key(scan, "\"$ext\"", '[')) {
		taken = take_ext(scan);
	}
	if (taken && !spokei_json_pass(scan, '}'))
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"a $ext or $long must be the only key of its object");
	if (!taken && !scan->error)
		scan->at = at;
	return taken;
}
