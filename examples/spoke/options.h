/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of a verb, by a table of its options, from which its help is made too:
 *
 *     enum { TIMEOUT, NOTIFY };
 *     static const struct option_row rows[] = {
 *             [TIMEOUT] = { "timeout", 0, "TIME", "gives up after it (1s)" },
 *             [NOTIFY] = { "notify", 'n', NULL, "wants no answer" },
 *     };
 *     static const struct usage usage = { "call", "URL SERVICE.METHOD [JSON...]", "...", rows,
 *                                         sizeof(rows) / sizeof(rows[0]), "spoke call ..." };
 *     struct options options = options_of(&usage, argc, argv);
 *     int row;
 *
 *     while ((row = options_next(&options)) >= 0)
 *             if (row == TIMEOUT && !options_duration(&options, 0, &timeout_ns))
 *                     return VERB_USAGE;
 *     if (row == OPTIONS_STOP)
 *             return options.end;
 *
 * Every verb has --help and --plain besides. "--name=value", "--name value", "-n value", "-nvalue";
 * options and operands in any order; "--" ends the options, "-" and "-5" are operands. What is
 * wrong is said here, as "spoke call: --timeout=5x: not a duration; write a number and a unit, as
 * 250ms".
 */
#ifndef COMMAND_OPTIONS_H
#define COMMAND_OPTIONS_H

#include "examples/spoke/verbs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option_row {
	const char *name;     /* without the dashes */
	char letter;          /* a short form, 0: none */
	const char *value;    /* what has to follow, as "TIME"; NULL: nothing */
	const char *sentence; /* what it does; a default in parentheses */
};

struct usage {
	const char *verb;
	const char *operands;          /* as "URL [JSON...]" */
	const char *about;             /* what the verb does: lines, without the last newline */
	const struct option_row *rows; /* at most OPTIONS_ROWS_MAX */
	size_t count;
	const char *examples; /* lines, without the last newline; NULL: none */
};

#define OPTIONS_ROWS_MAX 40u

/* What options_next() says but for rows. */
#define OPTIONS_DONE (-1) /* `operands` are what is left */
#define OPTIONS_STOP                                                                               \
	(-2) /* the verb ends with `end`: help was asked for, or something is wrong                \
	      */

struct options {
	const struct usage *usage;
	int argc;
	char **argv;
	int at;      /* the argument looked at next */
	char *flags; /* what follows in a bundle of letters, as "v" of "-nv"; else NULL */
	const struct option_row *row; /* the option of the last options_next() ... */
	char *value;                  /* ... and what follows it, NULL: nothing does */
	int end;                      /* of enum verb_end */
	char **operands;              /* argv + 1: gathered in the front of it */
	int operand_count;
};

struct options options_of(const struct usage *usage, int argc, char **argv);

/* The number of the next option's row, or one of the above. */
int options_next(struct options *options);

/*
 * The value of the last option as what it should be. If it is not one, or out of range, that is
 * said, and false returned. Durations ("250ms", "1.5s", "2m") are of ns, sizes ("8MiB", "512") of
 * bytes; `max` 0: no maximum; shares ("0.1", "10%") go from 0 to 1.
 */
bool options_duration(const struct options *options, uint64_t max, uint64_t *ret_ns);
bool options_count(const struct options *options, uint64_t min, uint64_t max, uint64_t *ret_count);
bool options_size(const struct options *options, uint64_t max, uint64_t *ret_bytes);
bool options_share(const struct options *options, double *ret_share);

/* A number with a decimal point. */
bool options_number(const struct options *options, double min, double max, double *ret_number);

/* Says "spoke VERB: --name=value: ..." of the last option; returns VERB_USAGE. */
int options_wrong(const struct options *options, const char *what);

/* Says `what`, as "which service?", and how to get help; returns VERB_USAGE. */
int options_lacking(const struct options *options, const char *what);

/* Prints the help of a verb. */
void options_help(const struct usage *usage);

/* The one of several names that is nearest to a wrong one; NULL: none is near. */
const char *options_nearest(const char *wrong, const char *(*name)(const void *arg, size_t index),
			    const void *arg);

#endif
