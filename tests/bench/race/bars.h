/* SPDX-License-Identifier: Apache-2.0 */
/* Bars as SVG, inside a page that has the styles. */
#ifndef BENCH_BARS_H
#define BENCH_BARS_H

#include "view.h"

#include <stdio.h>

/* Draws the calls/s of all peers in a pattern. */
void bars_draw(FILE *out, const struct view *view);

/* Draws spoke's share of the limit in each pattern. */
void bars_draw_shares(FILE *out, const struct view *views, uint32_t count);

#endif
