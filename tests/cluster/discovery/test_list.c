/* SPDX-License-Identifier: Apache-2.0 */
/* A keeper's subscription: the provider lists of a registry. */
#include "tests/cluster/discovery/keeperrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#define HEAD "# providers of demo.Echo\n"

static const struct spokei_keeper_options cached = { .cache = "cache" };

FIXTURE(keeperrig_set_up, keeperrig_tear_down);

TEST(callback_gets_each_changed_list)
{
	keeperrig_keep(NULL);
	fakereg_add(ECHO, PLACE);
	keeperrig_subscribe();
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.count, 1);
	assert_string_equal(keeperrig.first, PLACE);
	fakereg_add(ECHO, OTHER);
	fakereg_add("demo.Other", "dubbo://127.0.0.1:1/demo.Other");
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.count, 2);
	fakereg_remove(ECHO, PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.count, 1);
	assert_string_equal(keeperrig.first, OTHER);
}

TEST(empty_lists_are_passed_on)
{
	keeperrig_keep(NULL);
	keeperrig_subscribe();
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.lists, 1);
	assert_int_equal(keeperrig.count, 0);
	fakereg_add(ECHO, PLACE);
	keeperrig_pass(10 * MS);
	fakereg_remove(ECHO, PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.lists, 3);
	assert_int_equal(keeperrig.count, 0);
}

TEST(lost_subscription_is_repeated)
{
	keeperrig_keep(NULL);
	keeperrig_subscribe();
	keeperrig_pass(10 * SECOND);
	fakereg_lose_all();
	fakereg_add(ECHO, PLACE);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg.subscribes, 2);
	assert_int_equal(keeperrig.count, 1);
	fakereg_add(ECHO, OTHER);
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.count, 2);
}

TEST(failed_subscription_is_retried)
{
	fakereg.fails = SPOKE_ECONNECT;
	fakereg_add(ECHO, PLACE);
	keeperrig_keep(NULL);
	keeperrig_subscribe();
	keeperrig_pass(60 * SECOND);
	assert_int_equal(keeperrig.lists, 0);
	fakereg.fails = 0;
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(keeperrig.count, 1);
	assert_int_equal(keeperrig_events("cannot subscribe to demo.Echo"), 1);
}

TEST(list_callback_can_free_keeper)
{
	keeperrig.in_list = keeperrig_free;
	keeperrig_keep(&cached);
	fakereg_add(ECHO, PLACE);
	keeperrig_subscribe();
	keeperrig_publish(OTHER);
	keeperrig_pass(SECOND);
	assert_int_equal(keeperrig.lists, 1);
	assert_null(keeperrig.keeper);
	assert_int_equal(fakereg.closes, 1);
	fakereg_add(ECHO, OTHER);
	keeperrig_pass(SECOND);
	assert_int_equal(keeperrig.lists, 1);
}

TEST(cached_list_callback_can_free_keeper)
{
	keeperrig.in_list = keeperrig_free;
	keeperrig_write_file(HEAD PLACE "\n");
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_pass(SECOND);
	assert_int_equal(keeperrig.lists, 1);
	assert_int_equal(fakereg.closes, 1);
}

TEST(freed_keeper_makes_no_callbacks)
{
	keeperrig_write_file(HEAD PLACE "\n");
	fakereg_add(ECHO, PLACE);
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_free();
	keeperrig_pass(SECOND);
	assert_int_equal(keeperrig.lists, 0);
	assert_int_equal(fakereg.closes, 1);
}

TEST(list_that_hits_enomem_is_requested_again)
{
	fakereg_add(ECHO, PLACE);
	fakereg_add(ECHO, OTHER);
	for (unsigned nth = 1; nth <= 6; nth++) {
		keeperrig_keep(&cached);
		keeperrig_subscribe();
		keeperrig_pass(10 * MS);
		assert_int_equal(keeperrig.count, 2);
		spokei_faults_fail(&keeperrig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		fakereg_add(ECHO, "dubbo://127.0.0.1:1/demo.Echo");
		keeperrig_pass(RETRY_NS * 12 / 10 + 20 * MS);
		assert_int_equal(keeperrig.count, 3);
		spokei_faults_heal(&keeperrig.faulty);
		fakereg_remove(ECHO, "dubbo://127.0.0.1:1/demo.Echo");
		keeperrig_free();
		keeperrig_pass(SECOND);
		keeperrig.count = 0;
	}
	assert_true(keeperrig_events("cannot take the list of") > 0);
	assert_int_equal(keeperrig_events("cannot take the list of"),
			 keeperrig_events(": recovered"));
}

TEST(cached_list_is_dropped_after_registry_list)
{
	keeperrig.list_error = SPOKE_ENOMEM;
	keeperrig_write_file(HEAD PLACE "\n");
	fakereg.delay_ns = 100 * MS;
	fakereg_add(ECHO, OTHER);
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_pass(50 * MS);
	assert_int_equal(keeperrig.lists, 1);
	keeperrig.list_error = 0;
	keeperrig_pass(30 * SECOND);
	assert_int_equal(keeperrig.lists, 2);
	assert_string_equal(keeperrig.first, OTHER);
}

TEST(list_that_hits_enomem_is_retried_after_retry_period)
{
	fakereg.hastes = true;
	fakereg.hides = true;
	fakereg_add(ECHO, PLACE);
	keeperrig_keep(NULL);
	keeperrig_subscribe();
	spokei_faults_fail(&keeperrig.faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, true);
	keeperrig_pass(30 * SECOND);
	assert_in_range(fakereg.subscribes, 5, 9);
	spokei_faults_heal(&keeperrig.faulty);
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(keeperrig.count, 1);
	assert_int_equal(keeperrig_events(": recovered"), 1);
}

TEST(refused_list_is_passed_on_again)
{
	keeperrig.list_error = SPOKE_ENOMEM;
	keeperrig_write_file(HEAD PLACE "\n");
	fakereg.fails = SPOKE_ECONNECT;
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_pass(30 * SECOND);
	assert_in_range(keeperrig.lists, 5, 8);
	keeperrig.list_error = 0;
	keeperrig_pass(RETRY_NS * 12 / 10);
	keeperrig.lists = 0;
	keeperrig_pass(30 * SECOND);
	assert_int_equal(keeperrig.lists, 0); /* the list was accepted */
	fakereg.fails = 0;
	fakereg_add(ECHO, OTHER);
	keeperrig.list_error = SPOKE_ENOMEM;
	keeperrig_pass(30 * SECOND);
	assert_in_range(keeperrig.lists, 4, 8);
	keeperrig.list_error = SPOKE_ELIMIT; /* some URLs were rejected */
	keeperrig_pass(RETRY_NS * 12 / 10);
	keeperrig.lists = 0;
	keeperrig_pass(30 * SECOND);
	assert_int_equal(keeperrig.lists, 0);
}
