/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options as text: one row says what an option is called, what kind of value it takes, and from
 * where to where. Arithmetic is of whole numbers throughout: a text is exactly its value or an
 * error with a sentence. Judges only; any thread.
 */
#ifndef SPOKEI_CORE_TEXT_OPTION_H
#define SPOKEI_CORE_TEXT_OPTION_H

#include <spoke/value.h>

/* A sentence with key and value, which are escaped and cut to fit. */
#define SPOKEI_OPTION_WHY_MAX 256u

enum spokei_option_kind {
	SPOKEI_OPTION_DURATION, /* ns; "250ms", "1.5s"; units h m s ms us ns */
	SPOKEI_OPTION_SIZE,     /* bytes; "512", "64KiB"; units B KiB MiB GiB */
	SPOKEI_OPTION_COUNT,    /* "8" */
	SPOKEI_OPTION_BOOL,     /* 0 or 1; true false on off yes no 1 0 */
	SPOKEI_OPTION_NAME,     /* one of `names`; its number */
	SPOKEI_OPTION_TEXT,     /* printable; the number is its length */
	SPOKEI_OPTION_LIST,     /* texts with commas between; how many */
};

/* One row of a table of options. Numbers are in the unit of the kind. */
struct spokei_option {
	const char *name;
	enum spokei_option_kind kind;
	uint64_t min;
	uint64_t max;
	uint64_t preset;      /* the value when nobody says one */
	const char *sentence; /* what it is for */
	bool or_none;         /* 0 is a value too, whatever `min` is, and needs no unit */
	const char *(*names)(unsigned index); /* of NAME: by their number, NULL after the last */
};

/*
 * Reads a value. `bare_ms`: a duration may be a bare number and means milliseconds then, as in a
 * URL of Dubbo. Returns 0, ESYNTAX (no value of the kind), ERANGE (not between min and max) or
 * EINVAL (none of the names); with an error *ret_value is left alone and `why` (of `size` bytes)
 * says what is wrong and what would be right, as "timeout=5x: not a duration; write a number and a
 * unit, as 250ms or 1.5s".
 */
SPOKE_MUST_USE int spokei_option_parse(const struct spokei_option *option, const char *text,
				       bool bare_ms, uint64_t *ret_value, char *why, size_t size);

/* The same; `why` has only what is wrong and what would be right. */
SPOKE_MUST_USE int spokei_option_read(const struct spokei_option *option, const char *text,
				      bool bare_ms, uint64_t *ret_value, char *why, size_t size);

/* The next value of a list, without blanks around it; `*at` begins as the list. */
bool spokei_option_item(const char **at, struct spoke_span *ret);

/* Writes all names, as "failback, failover or failfast". */
void spokei_option_list_names(const char *(*name)(unsigned index), char *out, size_t size);

/* Writes a value so that it is read as the same one, in the largest unit that is exact. */
void spokei_option_print(enum spokei_option_kind kind, uint64_t value, char *out, size_t size);

/* Writes the largest value, for people: of a long time the whole hours, however odd it is. */
void spokei_option_print_max(const struct spokei_option *option, char *out, size_t size);

#endif
