/* SPDX-License-Identifier: Apache-2.0 */
/* What was counted in all processes, and whether it adds up. */
#ifndef DEMO_SUMS_H
#define DEMO_SUMS_H

#include <stdbool.h>

/* Shows the table, and a sentence for each thing that does not add up. Returns whether all does. */
bool sums_show(void);

#endif
