/* SPDX-License-Identifier: Apache-2.0 */
/* How something grows with time. */
#ifndef TESTS_SOAK_SLOPE_H
#define TESTS_SOAK_SLOPE_H

#include <stdbool.h>
#include <stddef.h>

struct series {
	double *times; /* minutes */
	double *values;
	size_t count;
	size_t max;
};

/* False: no memory. */
bool series_init(struct series *series, size_t max);
void series_fini(struct series *series);

/* Beyond the maximum it is forgotten. */
void series_add(struct series *series, double time, double value);

/* Of least squares, by minute; 0 of fewer than two. */
double slope_plain(const struct series *series);

/* How sure a slope is: it lies between, in 95 of 100 cases, if the samples depend on time alone. */
struct slope_range {
	double low;
	double high;
};

/* The median of the slopes of all pairs (Theil and Sen): a few values that stand out, as one that a
 * rare coincidence drove up, do not turn it; what grows steadily does. */
double slope_median(const struct series *series, struct slope_range *ret_range);

#endif
