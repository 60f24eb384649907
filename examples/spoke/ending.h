/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes and error messages of verbs. */
#ifndef COMMAND_ENDING_H
#define COMMAND_ENDING_H

#include "examples/spoke/verbs.h"

/* Returns the exit code (enum verb_end) for an error of <spoke/error.h>. */
int ending_of(int error);

/* Prints "spoke VERB: ..." as one line on stderr and returns `end`. */
__attribute__((format(printf, 3, 4))) int ending_say(int end, const char *verb, const char *format,
						     ...);

/* Flushes stdout and returns `end`, or prints an error and returns VERB_REMOTE if the output cannot
 * be written. A closed pipe (`spoke ls | head -1`) is not an error. */
int ending_flush(int end, const char *verb);

#endif
