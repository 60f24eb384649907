/* SPDX-License-Identifier: Apache-2.0 */
/* Prints and checks the counts of all processes. */
#ifndef DEMO_SUMS_H
#define DEMO_SUMS_H

#include "examples/demo/plan.h"

#include <stdbool.h>

/* Prints the table and an error for each wrong count. Returns whether all counts are right. */
bool sums_show(const struct plan *plan);

#endif
