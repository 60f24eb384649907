/* SPDX-License-Identifier: Apache-2.0 */
/* How a call ended, printed. */
#ifndef COMMAND_ANSWER_H
#define COMMAND_ANSWER_H

#include <spoke/consumer.h>

/* The whole result as JSON, on stdout; `end` is what the verb ends with. */
void answer_print_json(const struct spoke_result *result, int end);

/* Who was asked, and when, on stderr. */
void answer_print_verbose(const struct spoke_consumer *consumer, const struct spoke_result *result);

#endif
