/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the report of the race with recorded results. */
#include "page.h"
#include "recorded.h"
#include "tests/bench/common/markup.h"
#include "tests/bench/rpc/report.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_MAX 262144

static char folder[] = "/tmp/spoke-page-XXXXXX";
static char record_path[64];
static char page_path[64];
static char page[PAGE_MAX];

/* Each pattern has peers with three repetitions. grpc of the first has no repetition, nng a wide
 * spread; in the second the hypervisor took time from zeromq. */
static const char recorded[] =
	"fact\tMachine\ta <b>& \"c\"\n"
	"fact\tPriority\treal-time\n"
	"rep\t32B-1x64\tspoke\t-\t1000000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\tspoke\t-\t1010000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\tspoke\t-\t990000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\tnng\t-\t100000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\tnng\t-\t150000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\tnng\t-\t200000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"failed\t32B-1x64\tgrpc\n"
	"rep\t32B-1x64\tcapnp\t-\t100000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\tcapnp\t-\t101000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\tcapnp\t-\t99000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\traw-epoll\t-l\t2000000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\traw-epoll\t-l\t2000000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\t32B-1x64\traw-epoll\t-l\t2000000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\tunix-32B-64x1\tspoke\t-\t300000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\tunix-32B-64x1\tzeromq\t-\t100000\t20\t40\t1\t0.5\t0.1\t0.1\t0.2\n"
	"rep\tunix-32B-64x1\traw-epoll\t-l\t400000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n"
	"rep\tunix-32B-64x1\traw-libev\t-l\t390000\t20\t40\t1\t0.5\t0.1\t0.1\t0\n";

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void read_page(void)
{
	FILE *file = fopen(page_path, "re");
	size_t len;

	assert_non_null(file);
	len = fread(page, 1, sizeof(page) - 1, file);
	page[len] = '\0';
	(void)fclose(file);
}

static int write_page(void **state)
{
	struct recorded_facts facts;

	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	(void)snprintf(record_path, sizeof(record_path), "%s/record", folder);
	(void)snprintf(page_path, sizeof(page_path), "%s/page.html", folder);
	write_file(record_path, recorded);
	assert_int_equal(recorded_load(record_path, &facts), 0);
	assert_true(page_write(page_path, &facts));
	read_page();
	return 0;
}

static int remove_page(void **state)
{
	(void)state;
	(void)unlink(record_path);
	(void)unlink(page_path);
	return rmdir(folder);
}

GROUP(write_page, remove_page);

static unsigned count(const char *words)
{
	unsigned times = 0;

	for (const char *at = page; (at = strstr(at, words)) != NULL; at++)
		times++;
	return times;
}

TEST(title_states_the_conclusion)
{
	assert_int_equal(count("<h1>spoke reaches 50 to 75 % of the best bare echo, and makes 10.0 "
			       "to 10 times the calls of other libraries</h1>"),
			 1);
}

TEST(each_pattern_has_bars_and_a_limit)
{
	assert_int_equal(count("<h3>32B-1x64</h3>"), 1);
	assert_int_equal(count("<h3>unix-32B-64x1</h3>"), 1);
	assert_int_equal(count("limit: raw-epoll<"), 2);
	assert_int_equal(count("<svg "), 3);
	assert_int_equal(count("</svg>"), 3);
	/* One for each row with repetitions, and one for each share. */
	assert_int_equal(count("class=\"whisker\""), 8 + 2);
}

TEST(disturbed_bars_are_grey_with_a_reason)
{
	assert_int_equal(count("<rect class=\"grey\""), 2);
	assert_int_equal(count(">spread 33 %<"), 2); /* at the bar and in the table */
	assert_int_equal(count(">steal<"), 2);
	assert_int_equal(count(">failed<"), 2);
	assert_int_equal(count("<rect class=\"library\""), 1);
}

TEST(text_from_outside_is_escaped)
{
	assert_int_equal(count("a &lt;b&gt;&amp; &quot;c&quot;"), 2);
	assert_int_equal(count("<b>"), 0);
}

TEST(page_has_no_missing_numbers)
{
	assert_int_equal(count(">nan"), 0);
	assert_int_equal(count("=\"nan"), 0);
	assert_int_equal(count("inf "), 0);
	assert_int_equal(count("-nan"), 0);
}

TEST(page_needs_no_other_files)
{
	assert_int_equal(count("<script"), 0);
	assert_int_equal(count("<link"), 0);
	assert_int_equal(count("src="), 0);
	assert_int_equal(count("http"), 0);
}

TEST(saved_measurements_are_read_again)
{
	struct recorded_facts facts;
	const struct report_row *row;

	assert_int_equal(recorded_load(record_path, &facts), 0);
	assert_true(recorded_save(record_path, &facts));
	/* The rows have each repetition twice by now: the file was read twice. */
	row = report_find("32B-1x64", "spoke");
	assert_int_equal(row->reps, 6);
	assert_int_equal(recorded_load(record_path, &facts), 0);
	assert_int_equal(row->reps, 12);
	assert_float_equal(row->samples[REPORT_CALLS_PER_S][10], 1010000, 1);
	assert_true(report_find("32B-1x64", "raw-epoll")->is_limit);
	assert_int_equal(facts.count, 2);
	assert_string_equal(facts.facts[1].value, "real-time");
}

TEST(load_returns_the_number_of_an_invalid_line)
{
	struct recorded_facts facts;

	write_file(record_path, "fact\tMachine\tx\nrep\t32B-1x64\tspoke\t-\t1000000\n");
	assert_int_equal(recorded_load(record_path, &facts), 2);
	write_file(record_path, "rep\ta\tb\t-\t1\t2\t3\t4\t5\t6\t7\tx\n");
	assert_int_equal(recorded_load(record_path, &facts), 1);
	assert_int_equal(recorded_load("/nonexistent/file", &facts), -1);
}

TEST(numbers_have_three_digits_and_a_unit)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = { { 0.5, "0.50" },      { 12, "12" },        { 999, "999" },
		      { 1000, "1.00 k" },   { 15400, "15.4 k" }, { 999400, "999 k" },
		      { 999600, "1.00 M" }, { 2.8e6, "2.80 M" } };
	char text[24];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		markup_number(text, sizeof(text), cases[i].value);
		assert_string_equal(text, cases[i].text);
	}
}
