/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the benchmark: medians of the floor and of spoke, and their ratio. */
#include "comet.h"

#include <stdio.h>
#include <stdlib.h>

static bool missed;

void figure_add(struct figure *figure, enum kind kind, double value)
{
	if (figure->count[kind] < REPS_MAX)
		figure->values[kind][figure->count[kind]++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const struct figure *figure, enum kind kind)
{
	double sorted[REPS_MAX];
	unsigned count = figure->count[kind];

	for (unsigned i = 0; i < count; i++)
		sorted[i] = figure->values[kind][i];
	qsort(sorted, count, sizeof(sorted[0]), compare);
	if (count == 0)
		return 0;
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static void print_value(double value, bool is_there)
{
	if (is_there)
		printf("%.*f\t", value < 10 ? 3 : value < 1000 ? 1 : 0, value);
	else
		printf("-\t");
}

static bool is_missed(const struct figure *figure, double target)
{
	double value = median(figure, SPOKE);

	return figure->count[SPOKE] > 0 && target > 0 &&
	       (figure->is_more ? value < target : value > target);
}

static void print_target(const struct figure *figure, double target, const char *end)
{
	if (target > 0)
		printf("%s %g%s%s", figure->is_more ? ">=" : "<=", target,
		       is_missed(figure, target) ? " missed" : "", end);
	else
		printf("-%s", end);
}

void figures_begin(void)
{
	printf("figure\tfloor\tspoke\tratio\tunit\tfirst bar\tgoal\n");
}

void figure_print(const struct figure *figure)
{
	double low = median(figure, FLOOR);
	double value = median(figure, SPOKE);

	printf("%s\t", figure->name);
	print_value(low, figure->count[FLOOR] > 0);
	print_value(value, figure->count[SPOKE] > 0);
	print_value(low > 0 ? value / low : 0, low > 0 && figure->count[SPOKE] > 0);
	printf("%s\t", figure->unit);
	print_target(figure, figure->bar, "\t");
	print_target(figure, figure->goal, "\n");
	(void)fflush(stdout);
	missed |= is_missed(figure, figure->bar);
}

bool figures_are_good(void)
{
	return !missed;
}
