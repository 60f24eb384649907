/* SPDX-License-Identifier: Apache-2.0 */
/* Least-squares and Theil-Sen slopes of samples. */
#include "slope.h"

#include <math.h>
#include <stdlib.h>

bool series_init(struct series *series, size_t max)
{
	*series = (struct series){
		.times = calloc(max, sizeof(double)),
		.values = calloc(max, sizeof(double)),
		.max = max,
	};
	return series->times && series->values;
}

void series_fini(struct series *series)
{
	free(series->times);
	free(series->values);
}

void series_add(struct series *series, double time, double value)
{
	if (series->count == series->max)
		return;
	series->times[series->count] = time;
	series->values[series->count++] = value;
}

double slope_plain(const struct series *series)
{
	double count = (double)series->count;
	double time = 0;
	double value = 0;
	double above = 0;
	double below = 0;

	for (size_t i = 0; i < series->count; i++) {
		time += series->times[i] / count;
		value += series->values[i] / count;
	}
	for (size_t i = 0; i < series->count; i++) {
		above += (series->times[i] - time) * (series->values[i] - value);
		below += (series->times[i] - time) * (series->times[i] - time);
	}
	return below > 0 ? above / below : 0;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Returns the number of pairs on either side of the median (Kendall). */
static struct slope_range range_of(const double *slopes, size_t pairs, double count)
{
	double half = 1.96 / 2 * sqrt(count * (count - 1) * (2 * count + 5) / 18);
	double low = (double)pairs / 2 - half;
	double high = (double)pairs / 2 + half;

	return (struct slope_range){
		slopes[low > 0 ? (size_t)low : 0],
		slopes[high < (double)pairs - 1 ? (size_t)high : pairs - 1],
	};
}

double slope_median(const struct series *series, struct slope_range *ret_range)
{
	size_t count = series->count < 2 ? 0 : series->count * (series->count - 1) / 2;
	double *slopes = calloc(count ? count : 1, sizeof(double));
	double median = 0;
	size_t at = 0;

	*ret_range = (struct slope_range){ 0 };
	for (size_t i = 0; slopes && i < series->count; i++)
		for (size_t j = i + 1; j < series->count; j++)
			slopes[at++] = (series->values[j] - series->values[i]) /
				       (series->times[j] - series->times[i]);
	if (at > 0) {
		qsort(slopes, at, sizeof(double), compare);
		median = at % 2 ? slopes[at / 2] : (slopes[at / 2 - 1] + slopes[at / 2]) / 2;
		*ret_range = range_of(slopes, at, (double)series->count);
	}
	free(slopes);
	return median;
}
