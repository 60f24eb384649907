/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The titles of a plot: sentences that state its conclusion, made of the measured medians. If the
 * bars of the first and the last point overlap, nothing has changed.
 */
#ifndef BENCH_SAY_H
#define BENCH_SAY_H

#include "curve.h"
#include "svg.h"

/* Write the title of a panel with this many points: calls/s; CPU time per call; the same beyond raw
 * libev's; calls/s divided by raw libev's. */
void say_calls(struct svg_panel *panel, const struct curve *curve, uint32_t points);
void say_time(struct svg_panel *panel, const struct curve *curve, uint32_t points);
void say_cost(struct svg_panel *panel, const struct curve *curve, uint32_t points);
void say_ratio(struct svg_panel *panel, const struct curve *curve, uint32_t points);

/* Writes the title and the conditions of a plot. Its panel `time` has the CPU time per call, with
 * the reference first; it depends less than the calls/s on other processes of the machine. */
void say_whole(struct svg_plot *plot, const struct svg_panel *time, const struct curve *curve,
	       uint32_t reps);

#endif
