/* SPDX-License-Identifier: Apache-2.0 */
/* The uses of a lease: each is notified once, unless it has ended before. */
#include "cluster/lease/use.h"
#include "tests/support/test.h"

enum {
	USES = 4,
};

static struct spokei_lease_use uses[USES];
static struct spokei_lease_use *first;
static unsigned ended[USES];

static void note_over(struct spokei_lease_use *use)
{
	assert_true(spokei_lease_use_is_over(use));
	ended[use - uses]++;
}

static int set_up(void **state)
{
	(void)state;
	first = NULL;
	for (unsigned i = 0; i < USES; i++) {
		uses[i] = (struct spokei_lease_use){ .over = note_over };
		ended[i] = 0;
		spokei_lease_use_join(&first, &uses[i]);
	}
	return 0;
}

FIXTURE(set_up, NULL);

TEST(end_of_lease_notifies_each_use_once)
{
	spokei_lease_uses_end(&first);
	assert_null(first);
	spokei_lease_uses_end(&first);
	for (unsigned i = 0; i < USES; i++) {
		assert_int_equal(ended[i], 1);
		spokei_lease_use_end(&uses[i]);
		assert_int_equal(ended[i], 1);
	}
}

TEST(uses_that_have_ended_are_not_notified)
{
	spokei_lease_use_end(&uses[3]); /* the first in the list */
	spokei_lease_use_end(&uses[1]);
	spokei_lease_use_end(&uses[1]);
	spokei_lease_use_end(&uses[0]);
	assert_false(spokei_lease_use_is_over(&uses[2]));
	assert_true(spokei_lease_use_is_over(&uses[1]));
	spokei_lease_uses_end(&first);
	assert_int_equal(ended[0] + ended[1] + ended[3], 0);
	assert_int_equal(ended[2], 1);
}

TEST(use_may_begin_again_after_its_end)
{
	spokei_lease_use_end(&uses[2]);
	spokei_lease_use_join(&first, &uses[2]);
	spokei_lease_uses_end(&first);
	assert_int_equal(ended[2], 1);
	spokei_lease_use_join(&first, &uses[2]);
	assert_ptr_equal(first, &uses[2]);
	spokei_lease_use_end(&uses[2]);
	assert_null(first);
}
