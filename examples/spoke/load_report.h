/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the result of a load run, as text or as one line of JSON. */
#ifndef COMMAND_LOAD_REPORT_H
#define COMMAND_LOAD_REPORT_H

#include "examples/spoke/load.h"
#include "examples/spoke/verbs.h"

void load_report_text(const struct load *load);
void load_report_json(const struct load *load);

/* Prints one line of progress during the run. */
void load_report_progress(const struct load *load);

/* Returns the exit code of the verb for the worst error. */
int load_report_end(const struct load *load);

#endif
