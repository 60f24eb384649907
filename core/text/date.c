/* SPDX-License-Identifier: Apache-2.0 */
/* Reads dates. */
#include "core/text/date.h"

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

bool spokei_date_read(const char *text, size_t len, int64_t *ret_seconds, uint32_t *ret_ns)
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
