/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes and error messages of verbs. */
#ifndef COMMAND_ENDING_H
#define COMMAND_ENDING_H

#include <spoke/engine.h>
#include <spoke/link.h>
#include <spoke/value.h>

#include "examples/spoke/verbs.h"

#include <stdbool.h>

/* Prints "spoke VERB: ..." as one line on stderr and returns `end`. */
__attribute__((format(printf, 3, 4))) int ending_say(int end, const char *verb, const char *format,
						     ...);

/* Makes an engine for a verb that prints its own errors: it logs only what the options or the
 * variable SPOKE_LOG ask for. Returns the error of spoke_engine_new(). */
int ending_quiet_engine(const struct spoke_engine_options *options,
			struct spoke_engine **ret_engine);

/* Flushes stdout and returns whether all output has been written. Keeps the first error for
 * ending_flush(). */
bool ending_show(void);

/* Flushes stdout and returns `end`, or prints an error and returns VERB_REMOTE if the output cannot
 * be written. A closed pipe (`spoke ls | head -1`) is not an error. */
int ending_flush(int end, const char *verb);

/* Returns why a link has changed, for people; "": for no reason. */
const char *ending_reason(const struct spoke_link_event *event);

/* Writes why there was no connection: the reason of a link's event; else the text of a result,
 * without the place in front of it; else the error itself. */
void ending_cause(const char *reason, struct spoke_span text, int error, char *out, size_t size);

#endif
