/* SPDX-License-Identifier: Apache-2.0 */
/* Output of a soak: a line now and then, and a table with the results at the end. */
#ifndef TESTS_SOAK_REPORT_H
#define TESTS_SOAK_REPORT_H

#include "acts.h"
#include "gauge.h"

#define GAUGES 2u /* a provider and a consumer */

/* Prints a line of progress; `rest`: taken during a rest. */
void report_line(const struct gauge *gauges, bool rest);

/* Prints the table to stdout and to the plan's file. Returns whether every target was reached. */
bool report_end(const struct acts *acts, const struct gauge *gauges);

#endif
