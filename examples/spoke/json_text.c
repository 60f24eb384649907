/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, base64, and dates. */
#include "examples/spoke/json_text.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t utf8_next(const unsigned char *bytes, size_t len)
{
	unsigned char first = bytes[0];
	size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (!size || size > len || first > 0xf4)
		return 0;
	for (size_t i = 1; i < size; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than needed, a surrogate, or beyond U+10FFFF. */
	if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) ||
	    (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f))
		return 0;
	return size;
}

bool utf8_is(const unsigned char *bytes, size_t len)
{
	size_t size;

	for (size_t at = 0; at < len; at += size) {
		size = utf8_next(bytes + at, len - at);
		if (!size)
			return false;
	}
	return true;
}

size_t utf8_write(uint32_t character, char *out)
{
	size_t size = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
	static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = size; i-- > 1; character >>= 6)
		out[i] = (char)(0x80 | (character & 0x3f));
	out[0] = (char)(marks[size] | character);
	return size;
}

bool base64_read(char *text, size_t len, size_t *ret_len)
{
	uint32_t bits = 0;
	unsigned held = 0;
	size_t written = 0;
	size_t padded = len;

	while (len && text[len - 1] == '=' && padded - len < 2)
		len--;
	if (len % 4 == 1 || (padded != len && padded % 4 != 0))
		return false;
	for (size_t i = 0; i < len; i++) {
		const char *letter = text[i] ? strchr(letters, text[i]) : NULL;

		if (!letter)
			return false;
		bits = bits << 6 | (uint32_t)(letter - letters);
		held += 6;
		if (held >= 8) {
			held -= 8;
			text[written++] = (char)(unsigned char)(bits >> held);
			bits &= (1u << held) - 1;
		}
	}
	*ret_len = written;
	return bits == 0;
}

void base64_write(const unsigned char *bytes, size_t len, char out[4])
{
	uint32_t bits = (uint32_t)bytes[0] << 16;

	if (len > 1)
		bits |= (uint32_t)bytes[1] << 8;
	if (len > 2)
		bits |= bytes[2];
	for (unsigned i = 0; i < 4; i++)
		out[i] = i > len ? '=' : letters[bits >> (18 - 6 * i) & 0x3f];
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

static bool take_byte(const char **at, const char *end, char c)
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

	if (!take_digits(at, end, 4, 0, 9999, &year) || !take_byte(at, end, '-') ||
	    !take_digits(at, end, 2, 1, 12, &month) || !take_byte(at, end, '-') ||
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
	if (!take_byte(at, end, '.'))
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
	if (*at == end || take_byte(at, end, 'Z'))
		return true;
	if (!take_byte(at, end, sign < 0 ? '-' : '+') || !take_digits(at, end, 2, 0, 23, &hours) ||
	    !take_byte(at, end, ':') || !take_digits(at, end, 2, 0, 59, &minutes))
		return false;
	*ret_seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

bool date_read(const char *text, size_t len, int64_t *ret_seconds, uint32_t *ret_ns)
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
		if (!take_byte(&text, end, 'T') || !take_digits(&text, end, 2, 0, 23, &hour) ||
		    !take_byte(&text, end, ':') || !take_digits(&text, end, 2, 0, 59, &minute) ||
		    !take_byte(&text, end, ':') || !take_digits(&text, end, 2, 0, 59, &second) ||
		    !take_fraction(&text, end, ret_ns) || !take_zone(&text, end, &zone))
			return false;
	}
	*ret_seconds = days * 86400 + (int64_t)hour * 3600 + (int64_t)minute * 60 + second - zone;
	return text == end;
}
