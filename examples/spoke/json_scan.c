/* SPDX-License-Identifier: Apache-2.0 */
/* Scans the tokens of JSON: white space, strings, numbers, words. */
#include "examples/spoke/json_scan.h"

#include "examples/spoke/json_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool scan_fail(struct scan *scan, int error, const char *what)
{
	if (!scan->error) {
		scan->error = error;
		scan->what = what;
	}
	return false;
}

bool scan_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void scan_space(struct scan *scan)
{
	while (scan->at < scan->len && scan_is_space(scan->text[scan->at]))
		scan->at++;
}

/* Returns the next byte that is not white space; NUL at the end. */
char scan_peek(struct scan *scan)
{
	scan_space(scan);
	return scan->text[scan->at];
}

/* Skips the next byte if it is this one. */
bool scan_pass(struct scan *scan, char c)
{
	if (scan->at >= scan->len || scan_peek(scan) != c)
		return false;
	scan->at++;
	return true;
}

/* --- strings */

static bool read_hex(struct scan *scan, uint32_t *ret)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < 4; i++) {
		char c = scan->text[scan->at];
		uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
				 : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
				 : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
							: 16;

		if (digit == 16)
			return scan_fail(scan, SPOKE_ESYNTAX, "expected four hex digits after \\u");
		number = number << 4 | digit;
		scan->at++;
	}
	*ret = number;
	return true;
}

/* Reads the digits after "\u". */
static bool read_unicode(struct scan *scan, uint32_t *ret)
{
	uint32_t low;

	if (!read_hex(scan, ret))
		return false;
	if (*ret >= 0xdc00 && *ret < 0xe000)
		return scan_fail(scan, SPOKE_ESYNTAX,
				 "second half of a surrogate pair without the first");
	if (*ret < 0xd800 || *ret >= 0xdc00)
		return true;
	if (scan->text[scan->at] != '\\' || scan->text[scan->at + 1] != 'u')
		return scan_fail(scan, SPOKE_ESYNTAX,
				 "first half of a surrogate pair without the second");
	scan->at += 2;
	if (!read_hex(scan, &low))
		return false;
	if (low < 0xdc00 || low >= 0xe000)
		return scan_fail(scan, SPOKE_ESYNTAX,
				 "first half of a surrogate pair without the second");
	*ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
	return true;
}

/* Decodes the escape after a backslash to `out`, which precedes it. */
static bool read_escape(struct scan *scan, char **out)
{
	static const char names[] = "\"\\/bfnrt";
	static const char bytes[] = "\"\\/\b\f\n\r\t";
	char c = scan->text[scan->at];
	const char *name = c ? strchr(names, c) : NULL;
	uint32_t character;

	if (name) {
		scan->at++;
		*(*out)++ = bytes[name - names];
		return true;
	}
	if (c != 'u')
		return scan_fail(scan, SPOKE_ESYNTAX, "invalid escape; write \\\\ for a backslash");
	scan->at++;
	if (!read_unicode(scan, &character))
		return false;
	*out += utf8_write(character, *out);
	return true;
}

/* Decodes the rest of a string in place. */
bool scan_string(struct scan *scan, char **ret_text, size_t *ret_len)
{
	char *start = scan->text + scan->at;
	char *out = start;

	while (scan->at < scan->len) {
		const unsigned char *here = (unsigned char *)scan->text + scan->at;
		size_t size;

		if (*here == '"') {
			scan->at++;
			*ret_text = start;
			*ret_len = (size_t)(out - start);
			return true;
		}
		if (*here < 0x20)
			return scan_fail(
				scan, SPOKE_ESYNTAX,
				"control character in a string; write an escape, e.g. \\n");
		if (*here == '\\') {
			scan->at++;
			if (!read_escape(scan, &out))
				return false;
			continue;
		}
		size = utf8_next(here, scan->len - scan->at);
		if (!size)
			return scan_fail(scan, SPOKE_ESYNTAX,
					 "invalid UTF-8; write bytes as {\"$bin\": \"base64\"}");
		memmove(out, here, size);
		out += size;
		scan->at += size;
	}
	return scan_fail(scan, SPOKE_ESYNTAX, "unterminated string");
}

/* --- numbers and words */

static size_t digits_at(const char *text)
{
	return strspn(text, "0123456789");
}

static bool read_integer(struct scan *scan, const char *text)
{
	bool negative = *text == '-';
	unsigned long long size;

	errno = 0;
	size = strtoull(text + negative, NULL, 10);
	if (errno || (negative && size > (unsigned long long)INT64_MAX + 1))
		return scan_fail(scan, SPOKE_ERANGE,
				 "integer exceeds 64 bits; append .0 for a float");
	if (!negative)
		spoke_pack_u64(scan->builder, size);
	else
		spoke_pack_i64(scan->builder, size ? -(int64_t)(size - 1) - 1 : 0);
	return true;
}

bool scan_number(struct scan *scan)
{
	const char *text = scan->text + scan->at;
	const char *end = text + (*text == '-');
	size_t digits = digits_at(end);
	bool exact = true;
	double number;

	if (!digits || (*end == '0' && digits > 1))
		return scan_fail(scan, SPOKE_ESYNTAX,
				 digits ? "leading 0 in a number" : "not a JSON value");
	end += digits;
	if (*end == '.') {
		exact = false;
		digits = digits_at(++end);
		end += digits;
	}
	if (digits && (*end == 'e' || *end == 'E')) {
		exact = false;
		end += end[1] == '+' || end[1] == '-' ? 2 : 1;
		digits = digits_at(end);
		end += digits;
	}
	if (!digits) {
		scan->at = (size_t)(end - scan->text);
		return scan_fail(scan, SPOKE_ESYNTAX, "expected a digit");
	}
	if (exact) {
		if (!read_integer(scan, text))
			return false;
	} else {
		number = strtod(text, NULL);
		if (!isfinite(number))
			return scan_fail(scan, SPOKE_ERANGE,
					 "number exceeds the range of a double");
		spoke_pack_double(scan->builder, number);
	}
	scan->at = (size_t)(end - scan->text);
	return true;
}

bool scan_word(struct scan *scan)
{
	const char *text = scan->text + scan->at;

	if (strncmp(text, "null", 4) == 0)
		spoke_pack_nil(scan->builder);
	else if (strncmp(text, "true", 4) == 0)
		spoke_pack_bool(scan->builder, true);
	else if (strncmp(text, "false", 5) == 0)
		spoke_pack_bool(scan->builder, false);
	else
		return scan_fail(scan, SPOKE_ESYNTAX,
				 "not a JSON value; write strings in double quotes");
	scan->at += *text == 'f' ? 5 : 4;
	return true;
}
