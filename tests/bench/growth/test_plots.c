/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the plots of the benchmark of growth with made-up figures. */
#include "draw.h"
#include "tests/support/test.h"

#include "tests/bench/rpc/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPS 5

static char folder[] = "/tmp/spoke-plots-XXXXXX";
static char drawn[65536];

/* Adds repetitions whose calls/s are `per_s` and up to 20 % less and more. */
static void measure(const struct curve *curve, uint32_t point, uint32_t runner, double per_s,
		    double cpu_us)
{
	static const double share[REPS] = { 1.2, 0.9, 1, 0.8, 1.1 };

	for (unsigned i = 0; i < REPS; i++) {
		struct rpc_report report = {
			.calls = (uint64_t)(per_s * share[i]),
			.elapsed_ns = 1000000000,
			.server_cpu_ns = (uint64_t)(per_s * share[i] * cpu_us * 1e3),
		};

		report_add(draw_pattern(curve, point), curve->runners[runner].name, &report);
	}
}

/* Draws a curve of two runners, from the figures of spoke at its points; raw makes 1 M calls/s. */
static const char *draw(const char *name, const double *per_s, const double *cpu_us)
{
	const struct curve *curve = curve_find(name);
	char path[128];
	FILE *file;
	size_t len;

	for (uint32_t i = 0; i < curve->size_count; i++) {
		measure(curve, i, 0, 1e6, 1);
		for (uint32_t j = 1; j < curve->runner_count; j++)
			measure(curve, i, j, per_s[i], cpu_us[i]);
	}
	assert_true(draw_curve(curve, folder));
	(void)snprintf(path, sizeof(path), "%s/%s.svg", folder, name);
	file = fopen(path, "re");
	assert_non_null(file);
	len = fread(drawn, 1, sizeof(drawn) - 1, file);
	drawn[len] = '\0';
	(void)fclose(file);
	(void)unlink(path);
	return drawn;
}

static void expect(const char *words)
{
	if (strstr(drawn, words) == NULL)
		fail_msg("the plot lacks \"%s\": %s", words, drawn);
}

static unsigned count(const char *words)
{
	unsigned times = 0;

	for (const char *at = drawn; (at = strstr(at, words)) != NULL; at++)
		times++;
	return times;
}

TEST(titles_state_the_conclusion)
{
	static const double per_s[] = { 8e5, 8e5, 8e5, 8e5, 4e5 };
	static const double cpu_us[] = { 1.5, 1.5, 1.5, 1.5, 3 };

	draw("connections", per_s, cpu_us);
	expect(">3.0 times raw-libev's CPU time with 10,000 connections, 1.5 with 1<");
	expect("Points are medians of 5 runs, bars their quartiles.");
	expect(">spoke makes 50 % fewer calls/s at the end of the axis, raw-libev as many<");
	expect(">A call takes 1.5 to 3.0 \302\265s of CPU time, with raw-libev 1.0 \302\265s<");
	expect(">spoke adds 0.5 to 2.0 \302\265s of CPU time to a call<");
	expect(">spoke makes 40 to 80 % of raw-libev's calls/s<");
}

/* The quartiles of the first and the last point overlap. */
TEST(no_change_is_stated_as_such)
{
	static const double per_s[] = { 8e5, 7e5, 8e5, 8e5, 7.9e5 };
	static const double cpu_us[] = { 2, 2, 2, 2, 2 };

	draw("pending", per_s, cpu_us);
	expect(">spoke makes as many calls/s at the end of the axis, raw-libev as many<");
	expect(">spoke adds 1.0 \302\265s of CPU time to a call<");
}

/* Of the four panels only the one of calls/s spans more than a decade. */
TEST(axis_of_decades_is_logarithmic)
{
	static const double per_s[] = { 9e5, 5e5, 2e5, 1e5, 5e4 };
	static const double cpu_us[] = { 2, 2, 2, 2, 2 };

	draw("failback", per_s, cpu_us);
	expect(">calls/s (logarithmic)<");
	expect(">10k<");
	expect(">100k<");
	expect(">1M<");
	assert_int_equal(count("(logarithmic)"), 2); /* with the ratio to raw libev */
	expect("94 % fewer");
}

static void expect_spread(const double *samples, uint32_t number, double low, double middle,
			  double high)
{
	struct report_spread spread = report_spread(samples, number);

	assert_float_equal(spread.low, low, 1e-9);
	assert_float_equal(spread.middle, middle, 1e-9);
	assert_float_equal(spread.high, high, 1e-9);
}

/* The quartiles of 0.8, 0.9, 1, 1.1 and 1.2 M are 0.9 and 1.1 M. */
TEST(bars_show_the_quartiles)
{
	static const double samples[] = { 1.2, 0.9, 1, 0.8, 1.1 };
	static const double two[] = { 3, 1 };

	expect_spread(samples, REPS, 0.9, 1, 1.1);
	expect_spread(two, 2, 1.5, 2, 2.5);
	expect_spread(two, 1, 3, 3, 3);
}

TEST(every_point_has_a_bar)
{
	static const double per_s[] = { 8e5, 8e5, 8e5, 8e5, 8e5 };
	static const double cpu_us[] = { 2, 2, 2, 2, 2 };

	draw("endpoints", per_s, cpu_us);
	assert_int_equal(count("class=\"spread\""), 5 * (7 + 7 + 6 + 6));
	expect(">2.0 times raw-libev's CPU time with 100 endpoints of one consumer, 2.0 with 1<");
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

GROUP(make_folder, remove_folder);
