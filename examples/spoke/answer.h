/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the result of a call. */
#ifndef COMMAND_ANSWER_H
#define COMMAND_ANSWER_H

#include <spoke/consumer.h>

/* Prints the whole result as JSON on stdout; `end` is the exit code of the verb. */
void answer_print_json(const struct spoke_result *result, int end);

/* Prints the exception of a failed call with its causes and the first lines of its stack on stderr,
 * if there is more than its message. */
void answer_print_exception(const struct spoke_result *result);

/* Prints a hint on stderr if the method may take other types than those of the arguments. */
void answer_print_hint(const struct spoke_result *result);

/* Prints the providers and times of the attempts on stderr. */
void answer_print_verbose(const struct spoke_consumer *consumer, const struct spoke_result *result);

#endif
