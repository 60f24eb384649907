/* SPDX-License-Identifier: Apache-2.0 */
/* What a soak says: a line now and then, and a table with the verdicts at the end. */
#ifndef TESTS_SOAK_REPORT_H
#define TESTS_SOAK_REPORT_H

#include "acts.h"
#include "gauge.h"

#define GAUGES 2u /* a provider and a consumer */

/* How it stands; `rest`: at a rest. */
void report_line(const struct gauge *gauges, bool rest);

/* The table, on stdout, and in the plan's file. True: every target was reached. */
bool report_end(const struct acts *acts, const struct gauge *gauges);

#endif
