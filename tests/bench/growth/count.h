/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of spoke per call at each point of the curves, of both sides: in one process, so
 * that what one turn finds does not depend on who is faster. They are callgrind's, have no noise,
 * and leave the kernel out. Needs valgrind.
 */
#ifndef BENCH_COUNT_H
#define BENCH_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Counts all curves, or those of one name, each point in a process of its own, and prints TSV.
 * Returns whether all could be counted. */
bool count_curves(const char *only, bool is_quick);

/* That process: counts the calls at one point. Returns its status. */
int count_point(const char *curve, const char *size, const char *runner);

#define COUNT_POINT "--count"

#endif
