/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the arguments of a verb and prints its help, both from a table of options:
 *
 *     enum { TIMEOUT, NOTIFY };
 *     static const struct option_row rows[] = {
 *             [TIMEOUT] = { "timeout", 0, "TIME", "timeout of the call (default 1s)" },
 *             [NOTIFY] = { "notify", 'n', NULL, "expect no answer" },
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
 * Every verb also has --help and --plain. Syntax: "--name=value", "--name value", "-n value",
 * "-nvalue". A value that may be omitted needs the "=". Options and operands may be mixed; "--"
 * ends the options. "-" is an operand, and so is "-5", unless an option has that letter. The parser
 * prints errors itself, e.g. "spoke call: --timeout=5x: not a duration; write a number and a unit,
 * e.g. 250ms".
 */
#ifndef COMMAND_OPTIONS_H
#define COMMAND_OPTIONS_H

#include "examples/spoke/verbs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option_row {
	const char *name; /* without the dashes */
	char letter;      /* a short form, 0: none */
	/* Placeholder of the value, e.g. "TIME"; "[=TIME]": it may be omitted; NULL: no value. */
	const char *value;
	const char *sentence; /* help text, with the default in parentheses */
};

struct usage {
	const char *verb;
	const char *operands;          /* e.g. "URL [JSON...]" */
	const char *about;             /* description: lines, without the last newline */
	const struct option_row *rows; /* at most OPTIONS_ROWS_MAX */
	size_t count;
	const char *examples; /* lines, without the last newline; NULL: none */
};

#define OPTIONS_ROWS_MAX 40u

/* Results of options_next() other than row numbers. */
#define OPTIONS_DONE (-1) /* all options are parsed; see `operands` */
#define OPTIONS_STOP (-2) /* the verb ends with `end`, after help or an error */

struct options {
	const struct usage *usage;
	int argc;
	char **argv;
	int at;      /* index of the next argument */
	char *flags; /* rest of a bundle of letters, e.g. "v" of "-nv"; else NULL */
	const struct option_row *row; /* the option of the last options_next() ... */
	char *value;                  /* ... and its value, or NULL */
	int end;                      /* of enum verb_end */
	char **operands;              /* argv + 1: moved to its front */
	int operand_count;
	int dashes; /* operands before "--"; -1: there is no "--" */
};

struct options options_of(const struct usage *usage, int argc, char **argv);

/* Returns the row of the next option, or one of the above. */
int options_next(struct options *options);

/*
 * Convert the value of the last option. If the value is invalid or out of range, they print an
 * error and return false. Durations ("250ms", "1.5s", "2m") are in ns, sizes ("8MiB", "512") in
 * bytes; `max` 0: no maximum. Shares ("0.1", "10%") are from 0 to 1.
 */
bool options_duration(const struct options *options, uint64_t max, uint64_t *ret_ns);

/* Same for a heartbeat interval; 0 is SPOKE_OFF. */
bool options_heartbeat(const struct options *options, uint64_t *ret_ns);

/* The same for a timeout, which must not be 0. */
bool options_timeout(const struct options *options, uint64_t *ret_ns);

/* Reads a number of retries; 0 becomes SPOKE_NONE. */
bool options_retries(const struct options *options, uint32_t *ret_retries);
bool options_count(const struct options *options, uint64_t min, uint64_t max, uint64_t *ret_count);
bool options_size(const struct options *options, uint64_t max, uint64_t *ret_bytes);
bool options_share(const struct options *options, double *ret_share);

/* Converts a duration with a unit, of an option or elsewhere. Returns false for other texts. */
bool options_read_duration(const char *text, uint64_t *ret_ns);

/* Converts a decimal number. */
bool options_number(const struct options *options, double min, double max, double *ret_number);

/* Prints "spoke VERB: --name=value: ..." for the last option; returns VERB_USAGE. */
int options_wrong(const struct options *options, const char *what);

/* Prints `what`, e.g. "URL missing", and a hint to --help; returns VERB_USAGE. */
int options_lacking(const struct options *options, const char *what);

/* Prints the help of a verb. */
void options_help(const struct usage *usage);

/* Returns the name nearest to a wrong one; NULL: none is near. */
const char *options_nearest(const char *wrong, const char *(*name)(const void *arg, size_t index),
			    const void *arg);

#endif
