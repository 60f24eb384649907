/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts texts to values and back. A number is read digit by digit into 64 bits with overflow
 * checked; a unit multiplies it. Decimals (durations only) count a tenth of the digit before, and
 * may not go beyond whole nanoseconds.
 */
#include "core/text/option.h"

#include "timer/base.h"

#include "core/base/log.h"
#include "core/base/span.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_MAX 64u /* bytes of a key or value in a sentence, with the NUL */
#define BARE_SHOWN 24u /* bytes of a number without its unit */
#define BARE_UNIT_NS UINT64_C(1000000)

/* The outcome of reading a text; converted to errors at the end. */
enum outcome {
	READ,
	READ_NOTHING, /* not a value of the kind */
	READ_BARE,    /* a number without its unit */
	READ_TOO_LARGE,
	READ_TOO_FINE,
};

struct unit {
	const char *name;
	uint64_t value;
};

/* Largest first. */
static const struct unit duration_units[] = {
	{ "h", UINT64_C(3600000000000) },
	{ "m", UINT64_C(60000000000) },
	{ "s", UINT64_C(1000000000) },
	{ "ms", UINT64_C(1000000) },
	{ "us", UINT64_C(1000) },
	{ "ns", 1 },
	{ NULL, 0 },
};

static const struct unit size_units[] = {
	{ "GiB", UINT64_C(1) << 30 },
	{ "MiB", UINT64_C(1) << 20 },
	{ "KiB", UINT64_C(1) << 10 },
	{ "B", 1 },
	{ NULL, 0 },
};

static const struct unit no_units[] = {
	{ NULL, 0 },
};

static const char *const right_text[] = {
	[SPOKEI_OPTION_DURATION] = "not a duration; write a number and a unit, e.g. 250ms or 1.5s",
	[SPOKEI_OPTION_SPIN] = "neither a duration nor auto or off; write e.g. 50us",
	[SPOKEI_OPTION_DELAY] = "neither a duration nor a percentile; write e.g. 20ms or p95",
	[SPOKEI_OPTION_SIZE] =
		"not a size; write bytes, or a number and a unit, e.g. 64KiB or 8MiB",
	[SPOKEI_OPTION_COUNT] = "not a count; write a whole number, e.g. 8",
	[SPOKEI_OPTION_CAP] = "neither a count nor auto; write a whole number, e.g. 8",
	[SPOKEI_OPTION_BOOL] = "neither yes nor no; write true or false",
	[SPOKEI_OPTION_NAME] = "not known",
	[SPOKEI_OPTION_TEXT] = "not a text; write printable characters",
	[SPOKEI_OPTION_LIST] = "not a list; write values separated by commas, e.g. one, two",
};

static const char fine_text[] = "finer than a nanosecond; write fewer decimals";

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Adds `count` times `unit`. Returns false if 64 bits cannot hold it. */
static bool add_times(uint64_t *value, uint64_t count, uint64_t unit)
{
	if (unit > 0 && count > (UINT64_MAX - *value) / unit)
		return false;
	*value += count * unit;
	return true;
}

/* Returns the unit of this name; NULL: none. */
static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++) {
		if (strcmp(units->name, name) == 0)
			return units;
	}
	return NULL;
}

/* Reads digits and moves *text after them. */
static enum outcome read_number(const char **text, uint64_t *ret_number)
{
	enum outcome outcome = READ;
	uint64_t number = 0;
	const char *at = *text;

	if (!is_digit(*at))
		return READ_NOTHING;
	for (; is_digit(*at); at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (number > (UINT64_MAX - digit) / 10)
			outcome = READ_TOO_LARGE;
		else
			number = number * 10 + digit;
	}
	*text = at;
	*ret_number = number;
	return outcome;
}

/* Adds the decimals ("5" in "1.5s") of a unit. */
static enum outcome add_decimals(const char *digits, size_t len, uint64_t unit, uint64_t *value)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t digit = (uint64_t)(digits[i] - '0');

		/* After the last whole nanosecond only zeros are allowed. */
		if (unit % 10 != 0)
			unit = 0;
		unit /= 10;
		if (unit == 0 && digit != 0)
			return READ_TOO_FINE;
		if (!add_times(value, digit, unit))
			return READ_TOO_LARGE;
	}
	return READ;
}

/* Reads a number, decimals if allowed, and a unit. `bare` is the multiplier of a number without a
 * unit; 0: a unit is required. */
static enum outcome read_measure(const char *text, const struct unit *units, bool decimals,
				 uint64_t bare, uint64_t *ret_value)
{
	const struct unit none = { "", bare };
	const struct unit *unit;
	const char *digits = NULL;
	size_t digits_len = 0;
	uint64_t number;
	uint64_t value = 0;
	enum outcome outcome = read_number(&text, &number);

	if (outcome == READ_NOTHING)
		return outcome;
	if (decimals && *text == '.') {
		digits = ++text;
		while (is_digit(*text))
			text++;
		digits_len = (size_t)(text - digits);
		if (digits_len == 0)
			return READ_NOTHING;
	}
	unit = *text == '\0' && digits == NULL && bare > 0 ? &none : find_unit(units, text);
	if (unit == NULL)
		return *text == '\0' ? READ_BARE : READ_NOTHING;
	if (outcome != READ)
		return outcome;
	if (!add_times(&value, number, unit->value))
		return READ_TOO_LARGE;
	outcome = add_decimals(digits, digits_len, unit->value, &value);
	*ret_value = value;
	return outcome;
}

/* Reads "p1" to "p99". */
static enum outcome read_percentile(const char *text, uint64_t *ret_value)
{
	uint64_t percent;

	text++;
	if (read_number(&text, &percent) != READ || *text != '\0' || percent < 1 || percent > 99)
		return READ_NOTHING;
	*ret_value = SPOKEI_OPTION_PERCENTILE(percent);
	return READ;
}

static enum outcome read_bool(const char *text, uint64_t *ret_value)
{
	static const struct unit words[] = {
		{ "true", 1 }, { "false", 0 }, { "on", 1 }, { "off", 0 }, { "yes", 1 },
		{ "no", 0 },   { "1", 1 },     { "0", 0 },  { NULL, 0 },
	};
	const struct unit *word = find_unit(words, text);

	if (word == NULL)
		return READ_NOTHING;
	*ret_value = word->value;
	return READ;
}

/* Returns the length if all bytes are printable, UTF-8 included. */
static enum outcome read_text(const char *text, uint64_t *ret_len)
{
	size_t len = 0;

	for (; text[len]; len++)
		if ((unsigned char)text[len] < ' ' || text[len] == 0x7f)
			return READ_NOTHING;
	*ret_len = len;
	return READ;
}

/* Counts the items between the commas; none may be empty. */
static enum outcome read_list(const char *text, uint64_t *ret_count)
{
	struct spoke_span item;
	uint64_t count = 0;

	if (read_text(text, ret_count) != READ)
		return READ_NOTHING;
	for (const char *at = text; spokei_option_item(&at, &item); count++)
		if (item.len == 0)
			return READ_NOTHING;
	*ret_count = count;
	return READ;
}

static enum outcome read_name(const char *(*name)(unsigned index), const char *text,
			      uint64_t *ret_index)
{
	for (unsigned i = 0; name(i); i++) {
		if (strcmp(name(i), text) == 0) {
			*ret_index = i;
			return READ;
		}
	}
	return READ_NOTHING;
}

/* A duration of zero, in whichever unit, is "off": as a value, 0 is "auto". */
static enum outcome read_spin(const char *text, bool bare_ms, uint64_t *ret_value)
{
	enum outcome outcome;

	*ret_value = SPOKEI_OPTION_OFF;
	if (strcmp(text, "off") == 0 || strcmp(text, "0") == 0)
		return READ;
	*ret_value = 0;
	if (strcmp(text, "auto") == 0)
		return READ;
	outcome = read_measure(text, duration_units, true, bare_ms ? BARE_UNIT_NS : 0, ret_value);
	if (outcome == READ && *ret_value == SPOKEI_OPTION_OFF)
		return READ_TOO_LARGE;
	if (outcome == READ && *ret_value == 0)
		*ret_value = SPOKEI_OPTION_OFF;
	return outcome;
}

/* The number that stands for "auto" is too large for a count. */
static enum outcome read_cap(const char *text, uint64_t *ret_value)
{
	enum outcome outcome;

	*ret_value = SPOKEI_OPTION_CAP_AUTO;
	if (strcmp(text, "auto") == 0)
		return READ;
	outcome = read_measure(text, no_units, false, 1, ret_value);
	return outcome == READ && *ret_value == SPOKEI_OPTION_CAP_AUTO ? READ_TOO_LARGE : outcome;
}

static enum outcome read_value(const struct spokei_option *option, const char *text, bool bare_ms,
			       uint64_t *ret_value)
{
	switch (option->kind) {
	case SPOKEI_OPTION_DURATION:
		return read_measure(text, duration_units, true, bare_ms ? BARE_UNIT_NS : 0,
				    ret_value);
	case SPOKEI_OPTION_DELAY:
		if (*text == 'p')
			return read_percentile(text, ret_value);
		return read_measure(text, duration_units, true, bare_ms ? BARE_UNIT_NS : 0,
				    ret_value);
	case SPOKEI_OPTION_SPIN:
		return read_spin(text, bare_ms, ret_value);
	case SPOKEI_OPTION_SIZE:
		return read_measure(text, size_units, false, 1, ret_value);
	case SPOKEI_OPTION_CAP:
		return read_cap(text, ret_value);
	case SPOKEI_OPTION_COUNT:
		return read_measure(text, no_units, false, 1, ret_value);
	case SPOKEI_OPTION_BOOL:
		return read_bool(text, ret_value);
	case SPOKEI_OPTION_NAME:
		return read_name(option->names, text, ret_value);
	case SPOKEI_OPTION_TEXT:
		return read_text(text, ret_value);
	case SPOKEI_OPTION_LIST:
		return read_list(text, ret_value);
	}
	return READ_NOTHING;
}

/* Writes "key=value: ", escaped and cut. Returns how many bytes of `why` it takes. */
static size_t begin_sentence(const char *key, const char *value, char *why, size_t size)
{
	char quoted_key[QUOTED_MAX];
	char quoted_value[QUOTED_MAX];
	int len;

	(void)spokei_log_escape(quoted_key, sizeof(quoted_key), key, strlen(key));
	(void)spokei_log_escape(quoted_value, sizeof(quoted_value), value, strlen(value));
	len = snprintf(why, size, "%s=%s: ", quoted_key, quoted_value);
	return len > 0 && (size_t)len < size ? (size_t)len : size;
}

bool spokei_option_item(const char **at, struct spoke_span *ret)
{
	const char *begin = *at;
	const char *end;

	if (begin == NULL)
		return false;
	end = begin + strcspn(begin, ",");
	*at = *end ? end + 1 : NULL;
	*ret = spokei_span_trim(spokei_span(begin, (size_t)(end - begin)));
	return true;
}

void spokei_option_list_names(const char *(*name)(unsigned index), char *out, size_t size)
{
	size_t used = 0;

	*out = '\0';
	for (unsigned i = 0; name(i) && used < size; i++) {
		const char *before = i == 0 ? "" : name(i + 1) ? ", " : " or ";
		int len = snprintf(out + used, size - used, "%s%s", before, name(i));

		used += len > 0 ? (size_t)len : 0;
	}
}

/* Writes the range, and whether "none" is allowed, too. */
static void explain_range(const struct spokei_option *option, bool small, char *why, size_t size)
{
	char min[32];
	char max[32];

	if (option->kind == SPOKEI_OPTION_TEXT) {
		(void)snprintf(why, size,
			       small ? "there is nothing; write a text"
				     : "too long; it has at most %u bytes",
			       (unsigned)option->max);
		return;
	}
	if (option->kind == SPOKEI_OPTION_LIST) {
		(void)snprintf(why, size, "too long; it has at most %u values",
			       (unsigned)option->max);
		return;
	}
	spokei_option_print(option->kind, option->min, min, sizeof(min));
	spokei_option_print_max(option, max, sizeof(max));
	(void)snprintf(why, size, "too %s; it goes from %s to %s%s", small ? "small" : "large", min,
		       max, option->or_none ? ", or 0 for none" : "");
}

bool spokei_option_is_word(enum spokei_option_kind kind, uint64_t value)
{
	if (kind == SPOKEI_OPTION_SPIN)
		return value == 0 || value == SPOKEI_OPTION_OFF;
	if (kind == SPOKEI_OPTION_CAP)
		return value == SPOKEI_OPTION_CAP_AUTO;
	return kind == SPOKEI_OPTION_DELAY && spokei_option_percentile(value) > 0;
}

int spokei_option_read(const struct spokei_option *option, const char *text, bool bare_ms,
		       uint64_t *ret_value, char *why, size_t size)
{
	uint64_t value = 0;
	char names[SPOKEI_OPTION_WHY_MAX];
	enum outcome outcome = read_value(option, text, bare_ms, &value);

	SPOKE_ASSERT(option->kind == SPOKEI_OPTION_NAME || option->min <= option->max);
	/* Zero needs no unit. */
	if (outcome == READ_BARE && option->or_none && strcmp(text, "0") == 0) {
		outcome = READ;
		value = 0;
	}
	if (outcome == READ &&
	    (option->kind == SPOKEI_OPTION_NAME || (value >= option->min && value <= option->max) ||
	     spokei_option_is_word(option->kind, value) || (value == 0 && option->or_none))) {
		*ret_value = value;
		return SPOKE_OK;
	}
	if (option->kind == SPOKEI_OPTION_NAME) {
		spokei_option_list_names(option->names, names, sizeof(names));
		(void)snprintf(why, size, "not known; use %s", names);
		return SPOKE_EINVAL;
	}
	if (outcome == READ || outcome == READ_TOO_LARGE) {
		explain_range(option, outcome == READ && value < option->min, why, size);
		return SPOKE_ERANGE;
	}
	if (outcome == READ_BARE && strlen(text) < BARE_SHOWN)
		(void)snprintf(why, size, "a duration needs a unit; write %sms or %ss", text, text);
	else
		(void)snprintf(why, size, "%s",
			       outcome == READ_TOO_FINE ? fine_text : right_text[option->kind]);
	return SPOKE_ESYNTAX;
}

int spokei_option_parse(const struct spokei_option *option, const char *text, bool bare_ms,
			uint64_t *ret_value, char *why, size_t size)
{
	char reason[SPOKEI_OPTION_WHY_MAX];
	size_t used;
	int error = spokei_option_read(option, text, bare_ms, ret_value, reason, sizeof(reason));

	if (error == SPOKE_OK)
		return SPOKE_OK;
	used = begin_sentence(option->name, text, why, size);
	if (used < size)
		(void)snprintf(why + used, size - used, "%s", reason);
	return error;
}

static bool is_time(enum spokei_option_kind kind)
{
	return kind == SPOKEI_OPTION_DURATION || kind == SPOKEI_OPTION_DELAY ||
	       kind == SPOKEI_OPTION_SPIN;
}

void spokei_option_print(enum spokei_option_kind kind, uint64_t value, char *out, size_t size)
{
	const struct unit *unit = is_time(kind) ? duration_units : size_units;

	if (kind == SPOKEI_OPTION_DELAY && spokei_option_percentile(value)) {
		(void)snprintf(out, size, "p%u", spokei_option_percentile(value));
		return;
	}
	if (kind == SPOKEI_OPTION_SPIN && spokei_option_is_word(kind, value)) {
		(void)snprintf(out, size, "%s", value ? "off" : "auto");
		return;
	}
	if (kind == SPOKEI_OPTION_CAP && spokei_option_is_word(kind, value)) {
		(void)snprintf(out, size, "auto");
		return;
	}
	if (kind == SPOKEI_OPTION_BOOL) {
		(void)snprintf(out, size, "%s", value ? "true" : "false");
		return;
	}
	if (!is_time(kind) && kind != SPOKEI_OPTION_SIZE) {
		(void)snprintf(out, size, "%" PRIu64, value);
		return;
	}
	/* Zero is written in seconds, or in bytes. */
	if (value == 0) {
		(void)snprintf(out, size, "%s", is_time(kind) ? "0s" : "0B");
		return;
	}
	while (value % unit->value != 0)
		unit++;
	(void)snprintf(out, size, "%" PRIu64 "%s", value / unit->value, unit->name);
}

void spokei_option_print_max(const struct spokei_option *option, char *out, size_t size)
{
	const uint64_t hour = duration_units[0].value;

	if (is_time(option->kind) && option->max > 24 * hour)
		(void)snprintf(out, size, "%" PRIu64 "h", option->max / hour);
	else
		spokei_option_print(option->kind, option->max, out, size);
}

/* --- similar names */

#define NAME_BYTES_MAX 48u /* longer names are not compared */
#define DISTANCE_MAX 3u    /* largest distance that counts as similar */

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Returns how many letters must be added, dropped or exchanged to turn one name into the other,
 * ignoring case. The second name is at most NAME_BYTES_MAX long. */
static unsigned distance_between(const char *a, const char *b)
{
	unsigned row[NAME_BYTES_MAX + 1];
	size_t len = strlen(b);

	for (unsigned j = 0; j <= len; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1] != '\0'; i++) {
		unsigned corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			unsigned changed = corner +
					   (spokei_lower(a[i - 1]) != spokei_lower(b[j - 1]));

			corner = row[j];
			row[j] = smaller(changed, 1 + smaller(row[j], row[j - 1]));
		}
	}
	return row[len];
}

const char *spokei_option_nearest_name(const char *name,
				       const char *(*name_at)(const void *of, size_t i),
				       const void *of, size_t count)
{
	const char *nearest = NULL;
	size_t len = strlen(name);
	unsigned least = DISTANCE_MAX + 1;

	if (len > NAME_BYTES_MAX)
		return NULL;
	/* At most a third of the letters may differ, so that short names do not all resemble each
	 * other. */
	if (len / 3 < DISTANCE_MAX)
		least = (unsigned)len / 3 + 1;
	for (size_t i = 0; i < count; i++) {
		const char *other = name_at(of, i);
		unsigned distance;

		if (other == NULL)
			continue;
		SPOKE_ASSERT(strlen(other) <= NAME_BYTES_MAX);
		distance = distance_between(name, other);
		if (distance < least) {
			least = distance;
			nearest = other;
		}
	}
	return nearest;
}
