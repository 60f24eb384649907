/* SPDX-License-Identifier: Apache-2.0 */
/* The uses of a thing that may end: each is notified once, unless it has ended before. */
#include "core/engine/use.h"
#include "tests/support/test.h"

enum {
	USES = 4,
};

static struct spokei_use uses[USES];
static struct spokei_use *first;
static unsigned ended[USES];

static void note_over(struct spokei_use *use)
{
	assert_true(spokei_use_is_over(use));
	ended[use - uses]++;
}

STEP(set_up)
{
	first = NULL;
	for (unsigned i = 0; i < USES; i++) {
		uses[i] = (struct spokei_use){ .over = note_over };
		ended[i] = 0;
		spokei_uses_join(&first, &uses[i]);
	}
}

TEST(end_of_a_thing_notifies_each_use_once, .set_up = set_up, .tear_down = NULL)
{
	spokei_uses_end(&first);
	assert_null(first);
	spokei_uses_end(&first);
	for (unsigned i = 0; i < USES; i++) {
		assert_int_equal(ended[i], 1);
		spokei_use_end(&uses[i]);
		assert_int_equal(ended[i], 1);
	}
}

TEST(uses_that_have_ended_are_not_notified, .set_up = set_up, .tear_down = NULL)
{
	spokei_use_end(&uses[3]); /* the first in the list */
	spokei_use_end(&uses[1]);
	spokei_use_end(&uses[1]);
	spokei_use_end(&uses[0]);
	assert_false(spokei_use_is_over(&uses[2]));
	assert_true(spokei_use_is_over(&uses[1]));
	spokei_uses_end(&first);
	assert_int_equal(ended[0] + ended[1] + ended[3], 0);
	assert_int_equal(ended[2], 1);
}

TEST(use_may_begin_again_after_its_end, .set_up = set_up, .tear_down = NULL)
{
	spokei_use_end(&uses[2]);
	spokei_uses_join(&first, &uses[2]);
	spokei_uses_end(&first);
	assert_int_equal(ended[2], 1);
	spokei_uses_join(&first, &uses[2]);
	assert_ptr_equal(first, &uses[2]);
	spokei_use_end(&uses[2]);
	assert_null(first);
}
