/* SPDX-License-Identifier: Apache-2.0 */
/* A curve's figures as a plot. */
#ifndef BENCH_DRAW_H
#define BENCH_DRAW_H

#include "curve.h"

/* The name under which the figures of a point are kept (report.h); lasts. */
const char *draw_pattern(const struct curve *curve, uint32_t point);

/* Draws all that was measured of a curve, to a file of its name in the folder, which is made if it
 * is not there. Returns whether it was written. */
bool draw_curve(const struct curve *curve, const char *folder);

#endif
