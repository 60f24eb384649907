/* SPDX-License-Identifier: Apache-2.0 */
/* Plots of the measured values of a curve. */
#ifndef BENCH_DRAW_H
#define BENCH_DRAW_H

#include "curve.h"

/* Returns the name of a point in the report (report.h); never freed. */
const char *draw_pattern(const struct curve *curve, uint32_t point);

/* Draws the values of a curve to a file named after it; creates the directory if it is missing.
 * Returns whether the file was written. */
bool draw_curve(const struct curve *curve, const char *folder);

#endif
