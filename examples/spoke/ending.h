/* SPDX-License-Identifier: Apache-2.0 */
/* How a verb ends: errors of the library as exit codes, and sentences about what went wrong. */
#ifndef COMMAND_ENDING_H
#define COMMAND_ENDING_H

#include "examples/spoke/verbs.h"

/* The exit code, of enum verb_end, for an error of <spoke/error.h>. */
int ending_of(int error);

/* Says "spoke VERB: ..." on stderr, as one line, and returns `end`. */
__attribute__((format(printf, 3, 4))) int ending_say(int end, const char *verb, const char *format,
						     ...);

/* Flushes stdout, and returns `end`; or VERB_REMOTE after a sentence, if what was printed could not
 * be written. A reader that has gone away (`spoke ls | head -1`) is no error. */
int ending_flush(int end, const char *verb);

#endif
