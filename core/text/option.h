/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options as text: a row says what an option is called, which kind of value it takes, and its
 * range. All arithmetic is on integers: a text is exactly its value, or an error with a sentence.
 * Pure; any thread.
 */
#ifndef SPOKEI_CORE_TEXT_OPTION_H
#define SPOKEI_CORE_TEXT_OPTION_H

#include <spoke/value.h>

/* bytes of a sentence with key and value, which are escaped and cut to fit */
#define SPOKEI_OPTION_WHY_MAX 256u

enum spokei_option_kind {
	SPOKEI_OPTION_DURATION, /* ns; e.g. "250ms", "1.5s"; units h m s ms us ns */
	SPOKEI_OPTION_DELAY,    /* a duration, or a percentile of durations; e.g. "p95" */
	SPOKEI_OPTION_SPIN,     /* a duration, "auto" (0) or "off" (SPOKEI_OPTION_OFF) */
	SPOKEI_OPTION_SIZE,     /* bytes; e.g. "512", "64KiB"; units B KiB MiB GiB */
	SPOKEI_OPTION_COUNT,    /* e.g. "8" */
	SPOKEI_OPTION_CAP,      /* a count, or "auto" (SPOKEI_OPTION_CAP_AUTO) */
	SPOKEI_OPTION_BOOL,     /* 0 or 1; true false on off yes no 1 0 */
	SPOKEI_OPTION_NAME,     /* one of `names`; the value is its number */
	SPOKEI_OPTION_TEXT,     /* printable; the value is its length */
	SPOKEI_OPTION_LIST,     /* texts separated by commas; the value is their number */
};

#define SPOKEI_OPTION_OFF UINT64_MAX
#define SPOKEI_OPTION_CAP_AUTO (UINT32_MAX - UINT64_C(1))

/* The value of a DELAY that is a percentile, 1 to 99. */
#define SPOKEI_OPTION_PERCENTILE(percent) (UINT64_MAX - 100 + (uint64_t)(percent))

/* Returns the percentile of a DELAY; 0: it is a duration. */
static inline unsigned spokei_option_percentile(uint64_t value)
{
	return value > SPOKEI_OPTION_PERCENTILE(0) && value < SPOKEI_OPTION_PERCENTILE(100)
		       ? (unsigned)(value - SPOKEI_OPTION_PERCENTILE(0))
		       : 0;
}

/* Returns whether the value has a text of its own, and is not in the range of the kind's numbers.
 */
bool spokei_option_is_word(enum spokei_option_kind kind, uint64_t value);

/* A row of a table of options. Numbers are in the kind's unit. */
struct spokei_option {
	const char *name;
	enum spokei_option_kind kind;
	uint64_t min;
	uint64_t max;
	uint64_t preset;      /* the default */
	const char *sentence; /* the purpose of the option */
	bool or_none;         /* 0 is a value too, whichever `min` is set, and needs no unit */
	const char *(*names)(unsigned index); /* of NAME: names by number, NULL after the last */
};

/*
 * Reads a value. `bare_ms`: a duration may be a bare number in milliseconds, as in a URL of Dubbo.
 * Returns 0, ESYNTAX (not a value of the kind), ERANGE (not between min and max) or EINVAL (none of
 * the names). After an error *ret_value is unchanged, and `why` (of `size` bytes) explains the
 * error and the remedy, e.g. "timeout=5x: not a duration; write a number and a unit, e.g. 250ms or
 * 1.5s".
 */
SPOKE_MUST_USE int spokei_option_parse(const struct spokei_option *option, const char *text,
				       bool bare_ms, uint64_t *ret_value, char *why, size_t size);

/* The same; `why` omits key and value. */
SPOKE_MUST_USE int spokei_option_read(const struct spokei_option *option, const char *text,
				      bool bare_ms, uint64_t *ret_value, char *why, size_t size);

/* Returns the next value of a list, without blanks around it. `*at` begins as the list. */
bool spokei_option_item(const char **at, struct spoke_span *ret);

/* Writes all names, e.g. "failback, failover or failfast". */
void spokei_option_list_names(const char *(*name)(unsigned index), char *out, size_t size);

/* Writes a value so that reading it gives the same value, in the largest exact unit. */
void spokei_option_print(enum spokei_option_kind kind, uint64_t value, char *out, size_t size);

/* Writes the largest value, for people: a long duration in whole hours. */
void spokei_option_print_max(const struct spokei_option *option, char *out, size_t size);

/* Finds the name that a misspelt one may stand for: returns the most similar one, within three
 * letters; NULL: none. `name_at` returns names by number, NULL for numbers to skip; at most 48
 * bytes each. */
const char *spokei_option_nearest_name(const char *name,
				       const char *(*name_at)(const void *of, size_t i),
				       const void *of, size_t count);

#endif
