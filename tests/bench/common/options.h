/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a benchmark: a table of options and the variables that they set. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exactly one of the three pointers is set; the last two kinds take the word that follows. */
struct option_row {
	const char *word;  /* "--reps" */
	bool *flag;        /* set to true */
	uint64_t *number;  /* set to a number from min to max */
	const char **text; /* set to a text that is not empty, borrowed from argv */
	uint64_t min;
	uint64_t max;
};

/* Reads all words; other variables keep their values. Ends the program by options_refuse() if a
 * word is no option or a value is invalid. */
void options_read(int argc, char **argv, const struct option_row *options, size_t count,
		  const char *usage);

/* Prints the usage to stderr, after the program's name, and ends the program. */
_Noreturn void options_refuse(const char *usage);

#endif
