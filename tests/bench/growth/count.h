/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts spoke's instructions per call at each point of the curves, for both sides together. Both
 * run in one process, so that the number of frames per turn does not depend on timing. callgrind's
 * counts have no noise and exclude the kernel. Needs valgrind.
 */
#ifndef BENCH_COUNT_H
#define BENCH_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Counts all curves, or the curve `name`, each point in a process of its own, and prints TSV.
 * Returns whether all points were counted. */
bool count_curves(const char *only, bool is_quick);

/* Main program of that process: counts the calls at one point. Returns the exit status. */
int count_point(const char *curve, const char *size, const char *runner);

#define COUNT_POINT "--count"

#endif
