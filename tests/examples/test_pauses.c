/* SPDX-License-Identifier: Apache-2.0 */
/* Which idle closes of the demo a lack of CPU explains. */
#include "examples/demo/cast.h"
#include "examples/demo/pauses.h"
#include "tests/support/test.h"

#define INTERVAL_NS (500 * MS)

static struct actor consumer;
static struct actor provider;
static struct actor other;

static void assert_counts(unsigned false_kills, unsigned starved)
{
	unsigned counted;

	assert_int_equal(pauses_count(INTERVAL_NS, &counted), false_kills);
	assert_int_equal(counted, starved);
}

TEST(close_is_starved_if_a_side_got_no_cpu_for_an_interval)
{
	assert_counts(0, 0);
	pauses_note_close(&consumer, &provider, 10000 * MS);
	assert_counts(1, 0);
	pauses_note(&other, 8000 * MS, 9900 * MS);
	pauses_note(&provider, 9300 * MS, 9700 * MS);   /* too short */
	pauses_note(&provider, 7000 * MS, 7900 * MS);   /* too early */
	pauses_note(&consumer, 10100 * MS, 11000 * MS); /* after the close */
	assert_counts(1, 0);
	pauses_note(&provider, 8500 * MS, 11000 * MS);
	assert_counts(0, 1);
	pauses_note_close(&provider, &consumer, 20000 * MS);
	assert_counts(1, 1);
	pauses_note(&provider, 19000 * MS, 19600 * MS);
	assert_counts(0, 2);
	pauses_note_close(&provider, NULL, 30000 * MS);
	assert_counts(1, 2);
	pauses_note(&other, 28000 * MS, 31000 * MS);
	assert_counts(0, 3);
}
