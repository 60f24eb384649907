/* SPDX-License-Identifier: Apache-2.0 */
/* Growth rates of measured values. */
#ifndef TESTS_SOAK_SLOPE_H
#define TESTS_SOAK_SLOPE_H

#include <stdbool.h>
#include <stddef.h>

struct series {
	double *times; /* in minutes */
	double *values;
	size_t count;
	size_t max;
};

/* Returns false if there is no memory. */
bool series_init(struct series *series, size_t max);
void series_fini(struct series *series);

/* Adds a sample; ignored if the series is full. */
void series_add(struct series *series, double time, double value);

/* Returns the least-squares slope per minute; 0 for fewer than two samples. */
double slope_plain(const struct series *series);

/* The 95 % confidence interval of a slope, if the samples depend on time only. */
struct slope_range {
	double low;
	double high;
};

/* Returns the median of the slopes of all pairs (Theil-Sen estimator). Single outliers do not
 * change it; steady growth does. */
double slope_median(const struct series *series, struct slope_range *ret_range);

#endif
