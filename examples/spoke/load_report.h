/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a load: as lines for people and pipes, or as one line of JSON. */
#ifndef COMMAND_LOAD_REPORT_H
#define COMMAND_LOAD_REPORT_H

#include "examples/spoke/load.h"
#include "examples/spoke/verbs.h"

void load_report_text(const struct load *load);
void load_report_json(const struct load *load);

/* One line for while it runs. */
void load_report_progress(const struct load *load);

/* How the verb ends: by what is furthest from an answer. */
int load_report_end(const struct load *load);

#endif
