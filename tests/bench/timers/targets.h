/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of the wheel against its peers. */
#ifndef BENCH_TARGETS_H
#define BENCH_TARGETS_H

/* Prints to stderr, for each target, the measured value and the result. */
void targets_print(void);

#endif
