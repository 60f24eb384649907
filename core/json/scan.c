/* SPDX-License-Identifier: Apache-2.0 */
/* Scans the tokens of JSON: strings, words and numbers. */
#include "core/json/scan.h"

#include "core/json/number.h"
#include "core/text/encoding.h"
#include "core/value/builder.h"
#include "core/value/encode.h"

#include <math.h>
#include <string.h>

#define EXPONENT_MAX 100000 /* larger exponents count as this one */

bool spokei_json_fail(struct spokei_json_scan *scan, int error, const char *what)
{
	if (!scan->error) {
		scan->error = error;
		scan->what = what;
	}
	return false;
}

char *spokei_json_fail_at(struct spokei_json_scan *scan, char *at, int error, const char *what)
{
	scan->at = at;
	(void)spokei_json_fail(scan, error, what);
	return NULL;
}

bool spokei_json_pass_word(struct spokei_json_scan *scan, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
		return false;
	scan->at += len;
	return true;
}

/* --- strings */

static bool read_hex(struct spokei_json_scan *scan, uint32_t *ret)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < 4; i++) {
		int digit = spokei_hex_value(spokei_json_here(scan));

		if (digit < 0)
			return spokei_json_fail(scan, SPOKE_ESYNTAX,
						"expected four hex digits after \\u");
		number = number << 4 | (uint32_t)digit;
		scan->at++;
	}
	*ret = number;
	return true;
}

/* Reads the digits after "\u". */
static bool read_unicode(struct spokei_json_scan *scan, uint32_t *ret)
{
	uint32_t low;

	if (!read_hex(scan, ret))
		return false;
	if (*ret >= 0xdc00 && *ret < 0xe000)
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"second half of a surrogate pair without the first");
	if (*ret < 0xd800 || *ret >= 0xdc00)
		return true;
	if (!spokei_json_pass_word(scan, "\\u"))
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"first half of a surrogate pair without the second");
	if (!read_hex(scan, &low))
		return false;
	if (low < 0xdc00 || low >= 0xe000)
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"first half of a surrogate pair without the second");
	*ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
	return true;
}

/* Decodes the escape after a backslash to `out`, which precedes it. */
static bool read_escape(struct spokei_json_scan *scan, char **out)
{
	static const char names[] = "\"\\/bfnrt";
	static const char bytes[] = "\"\\/\b\f\n\r\t";
	char c = spokei_json_here(scan);
	const char *name = c ? strchr(names, c) : NULL;
	uint32_t character;

	if (name) {
		scan->at++;
		*(*out)++ = bytes[name - names];
		return true;
	}
	if (c != 'u')
		return spokei_json_fail(scan, SPOKE_ESYNTAX,
					"invalid escape; write \\\\ for a backslash");
	scan->at++;
	if (!read_unicode(scan, &character))
		return false;
	*out += spokei_utf8_write(character, *out);
	return true;
}

/* Skips a character that is neither plain nor an escape. Returns NULL at an invalid one. */
static char *skip_character(struct spokei_json_scan *scan, char *at)
{
	const unsigned char *here = (const unsigned char *)at;
	size_t size = spokei_utf8_len(here, (size_t)(scan->end - at));

	if (*here < 0x20)
		return spokei_json_fail_at(
			scan, at, SPOKE_ESYNTAX,
			"control character in a string; write an escape, e.g. \\n");
	if (size == 0)
		return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX,
					   "invalid UTF-8; write bytes as {\"$bin\": \"base64\"}");
	return at + size;
}

/* Moves text back over the room that escapes leave. Short runs are frequent. */
static inline char *move_back(char *out, const char *from, size_t len)
{
	if (out == from)
		return out + len;
	if (len <= 8) {
		for (size_t i = 0; i < len; i++)
			out[i] = from[i];
	} else {
		memmove(out, from, len);
	}
	return out + len;
}

char *spokei_json_decode(struct spokei_json_scan *scan, char *start, char *at, char **ret_text,
			 size_t *ret_len)
{
	char *out = start;
	char *run = start;

	for (;;) {
		while (at < scan->end && *at != '"' && *at != '\\') {
			at = skip_character(scan, at);
			if (at == NULL)
				return NULL;
			at += spokei_json_plain(at, (size_t)(scan->end - at));
		}
		out = move_back(out, run, (size_t)(at - run));
		if (at == scan->end)
			return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX, "unterminated string");
		if (*at == '"')
			break;
		scan->at = at + 1;
		if (!read_escape(scan, &out))
			return NULL;
		run = at = scan->at;
		at += spokei_json_plain(at, (size_t)(scan->end - at));
	}
	*ret_text = start;
	*ret_len = (size_t)(out - start);
	return at + 1;
}

bool spokei_json_string(struct spokei_json_scan *scan, char **ret_text, size_t *ret_len)
{
	char *end = spokei_json_take_string(scan, scan->at, ret_text, ret_len);

	if (end)
		scan->at = end;
	return end != NULL;
}

/* --- words */

char *spokei_json_take_word(struct spokei_json_scan *scan, char *at)
{
	scan->at = at;
	if (spokei_json_pass_word(scan, "null"))
		spoke_pack_nil(scan->builder);
	else if (spokei_json_pass_word(scan, "true"))
		spoke_pack_bool(scan->builder, true);
	else if (spokei_json_pass_word(scan, "false"))
		spoke_pack_bool(scan->builder, false);
	else
		return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX,
					   "not a JSON value; write strings in double quotes");
	return scan->at;
}

/* --- numbers: frequent ones are packed without a call where there is ample room */

static inline void build_natural(struct spoke_builder *builder, uint64_t number)
{
	unsigned char *at = spokei_builder_room(builder, SPOKEI_ENCODE_MAX);

	if (SPOKEI_LIKELY(at != NULL))
		spokei_builder_take(builder, spokei_encode_u64(at, number));
	else
		spoke_pack_u64(builder, number);
}

static inline void build_negative(struct spoke_builder *builder, int64_t number)
{
	unsigned char *at = spokei_builder_room(builder, SPOKEI_ENCODE_MAX);

	if (SPOKEI_LIKELY(at != NULL))
		spokei_builder_take(builder, spokei_encode_i64(at, number));
	else
		spoke_pack_i64(builder, number);
}

static inline void build_double(struct spoke_builder *builder, double number)
{
	unsigned char *at = spokei_builder_room(builder, SPOKEI_ENCODE_MAX);

	if (SPOKEI_LIKELY(at != NULL))
		spokei_builder_take(builder, spokei_encode_double(at, number));
	else
		spoke_pack_double(builder, number);
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Are all eight bytes digits? */
static inline bool are_digits(uint64_t eight)
{
	return (((eight + SPOKEI_EIGHT_OF(0x46)) | (eight - SPOKEI_EIGHT_OF('0'))) &
		SPOKEI_EIGHT_OF(0x80)) == 0;
}

/* Returns the number of eight digits: pairs first, then fours. */
static inline uint32_t number_of(uint64_t eight)
{
	eight -= SPOKEI_EIGHT_OF('0');
	eight = eight * 10 + (eight >> 8);
	return (uint32_t)((((eight & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064)) +
			   ((eight >> 16 & UINT64_C(0x000000ff000000ff)) *
			    UINT64_C(0x0000271000000001))) >>
			  32);
}

/* Appends the digits at `at`; returns their end. */
static inline char *take_digits(char *at, const char *end, struct spokei_decimal *decimal)
{
	char *start = at;
	uint64_t integer = decimal->integer;

	while (end - at >= 8) {
		uint64_t eight = spokei_eight(at);

		if (!are_digits(eight))
			break;
		integer = integer * 100000000 + number_of(eight);
		at += 8;
	}
	while (at < end && is_digit(*at))
		integer = integer * 10 + (uint64_t)(*at++ - '0');
	decimal->integer = integer;
	decimal->digits += (unsigned)(at - start < EXPONENT_MAX ? at - start : EXPONENT_MAX);
	return at;
}

/* Reads the exponent after "e". Returns its end, which is `at` if there is none. */
static char *take_exponent(char *at, const char *end, struct spokei_decimal *decimal)
{
	char *start = at;
	bool is_negative = at < end && *at == '-';
	int exponent = 0;

	if (at < end && (*at == '-' || *at == '+'))
		at++;
	if (at == end || !is_digit(*at))
		return start;
	for (; at < end && is_digit(*at); at++)
		if (exponent < EXPONENT_MAX)
			exponent = exponent * 10 + (*at - '0');
	decimal->exponent += is_negative ? -exponent : exponent;
	return at;
}

/* Packs a number with a point or an exponent; the text is without the sign. */
static bool pack_double(struct spokei_json_scan *scan, const char *text, size_t len,
			const struct spokei_decimal *decimal, bool is_negative)
{
	double number = 0;

	if (!spokei_decimal_to_double(decimal, text, len, &number))
		return spokei_json_fail(scan, SPOKE_ERANGE,
					"number has too many digits; at most 511 bytes");
	if (!isfinite(number))
		return spokei_json_fail(scan, SPOKE_ERANGE, "number exceeds the range of a double");
	build_double(scan->builder, is_negative ? -number : number);
	return true;
}

/* Does a number of digits fit into 64 bits? */
static bool fits(const char *text, const struct spokei_decimal *decimal)
{
	static const char max[] = "18446744073709551615";

	return decimal->digits <= SPOKEI_DECIMAL_SAFE ||
	       (decimal->digits == sizeof(max) - 1 && memcmp(text, max, sizeof(max) - 1) <= 0);
}

static bool pack_integer(struct spokei_json_scan *scan, const char *text,
			 const struct spokei_decimal *decimal, bool is_negative)
{
	uint64_t size = decimal->integer;

	if (!fits(text, decimal) || (is_negative && size > (uint64_t)INT64_MAX + 1))
		return spokei_json_fail(scan, SPOKE_ERANGE,
					"integer exceeds 64 bits; append .0 for a float");
	if (is_negative && size > 0)
		build_negative(scan->builder, -(int64_t)(size - 1) - 1);
	else
		build_natural(scan->builder, size);
	return true;
}

/* Reads the point and the exponent of a number. Returns the end, or NULL: a digit is missing. */
static char *take_rest(struct spokei_json_scan *scan, char *at, struct spokei_decimal *decimal)
{
	char *start;

	if (at < scan->end && *at == '.') {
		start = ++at;
		at = take_digits(at, scan->end, decimal);
		if (at == start)
			return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX, "expected a digit");
		decimal->exponent = at - start < EXPONENT_MAX ? -(int)(at - start) : -EXPONENT_MAX;
	}
	if (at < scan->end && (*at == 'e' || *at == 'E')) {
		start = ++at;
		at = take_exponent(at, scan->end, decimal);
		if (at == start) {
			at += at < scan->end && (*at == '-' || *at == '+');
			return spokei_json_fail_at(scan, at, SPOKE_ESYNTAX, "expected a digit");
		}
	}
	return at;
}

char *spokei_json_take_number(struct spokei_json_scan *scan, char *at)
{
	struct spokei_decimal decimal = { 0 };
	char *start = at;
	bool is_negative = *at == '-';
	char *first = at + is_negative;
	char *end = take_digits(first, scan->end, &decimal);
	bool is_packed;

	if (end == first || (*first == '0' && end - first > 1))
		return spokei_json_fail_at(scan, start, SPOKE_ESYNTAX,
					   end == first ? "not a JSON value"
							: "leading 0 in a number");
	scan->at = start;
	if (end < scan->end && (*end == '.' || *end == 'e' || *end == 'E')) {
		end = take_rest(scan, end, &decimal);
		is_packed = end &&
			    pack_double(scan, first, (size_t)(end - first), &decimal, is_negative);
	} else {
		is_packed = pack_integer(scan, first, &decimal, is_negative);
	}
	return is_packed ? end : NULL;
}

int spokei_json_integer(struct spokei_json_scan *scan, int64_t *ret)
{
	struct spokei_decimal decimal = { 0 };
	bool is_negative = spokei_json_peek(scan) == '-';
	char *first = scan->at + is_negative;
	char *end = take_digits(first, scan->end, &decimal);

	if (end == first || (*first == '0' && end - first > 1))
		return SPOKE_ESYNTAX;
	if (!fits(first, &decimal) || decimal.integer > (uint64_t)INT64_MAX + is_negative)
		return SPOKE_ERANGE;
	*ret = is_negative && decimal.integer ? -(int64_t)(decimal.integer - 1) - 1
					      : (int64_t)decimal.integer;
	scan->at = end;
	return SPOKE_OK;
}
