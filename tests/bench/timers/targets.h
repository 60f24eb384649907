/* SPDX-License-Identifier: Apache-2.0 */
/* What the wheel has set itself to reach against its peers. */
#ifndef BENCH_TARGETS_H
#define BENCH_TARGETS_H

/* Prints to stderr, for each target, what was measured and whether it was reached. */
void targets_print(void);

#endif
