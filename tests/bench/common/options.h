/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to a benchmark on its command line: a table of words, and where each of them goes.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of the three places is not NULL; the last two take the word that follows. */
struct option_row {
	const char *word;  /* "--reps" */
	bool *flag;        /* becomes true */
	uint64_t *number;  /* becomes one from min to max */
	const char **text; /* becomes one that is not empty, borrowed from argv */
	uint64_t min;
	uint64_t max;
};

/* Reads all words; whoever is not said stays as it is. Ends the program by options_refuse() when
 * one is no option or has no right value. */
void options_read(int argc, char **argv, const struct option_row *options, size_t count,
		  const char *usage);

/* Says on stderr how the program is used, behind its name, and ends it. */
_Noreturn void options_refuse(const char *usage);

#endif
