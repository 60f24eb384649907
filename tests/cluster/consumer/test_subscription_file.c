/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers that find providers through a file or a fixed list. */
#include "tests/cluster/consumer/subscriptionrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

#define PATH "/run/providers"

static int set_up(void **state)
{
	if (subscriptionrig_set_up(state))
		return -1;
	subscriptionrig.registry = "file://" PATH;
	subscriptionrig.kind = NULL;
	return 0;
}

FIXTURE(set_up, subscriptionrig_tear_down);

static struct spokei_vfiles *files(void)
{
	return subscriptionrig.world.files;
}

/* Returns the number of lines of the file that contain the words. */
static unsigned lines(const char *words)
{
	const char *at = spokei_vfiles_get(files(), PATH);
	unsigned count = 0;

	for (; at && (at = strstr(at, words)); at += strlen(words))
		count++;
	return count;
}

TEST(providers_and_consumers_meet_by_file)
{
	subscriptionrig_consume(NULL);
	subscriptionrig_provide(0);
	subscriptionrig_pass(SECOND);
	assert_int_equal(lines("dubbo://127.0.0.1:20880/"), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
	subscriptionrig_provide(1);
	subscriptionrig_pass(SECOND);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
	subscriptionrig_end_provider(0);
	subscriptionrig_pass(SECOND);
	assert_int_equal(lines("dubbo://127.0.0.1:20880/"), 0);
	assert_int_equal(subscriptionrig_endpoints(), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
	assert_int_equal(subscriptionrig.served[1], 1);
}

TEST(removed_provider_is_in_file_again_once)
{
	subscriptionrig_provide(0);
	subscriptionrig_provide(1);
	subscriptionrig_consume(NULL);
	for (int i = 0; i < 3; i++) {
		subscriptionrig_pass(10 * SECOND);
		spokei_vfiles_put(files(), PATH, i ? "" : "nonsense\n");
		if (i == 2)
			spokei_vfiles_remove(files(), PATH);
		subscriptionrig_pass(RETRY_MAX_NS + SECOND);
		assert_int_equal(lines("dubbo://127.0.0.1:20880/"), 1);
		assert_int_equal(lines("dubbo://127.0.0.1:20881/"), 1);
		assert_int_equal(spoke_provider_registered(subscriptionrig.providers[0], NULL), 1);
		assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
		assert_int_equal(subscriptionrig_try_call(), 0);
	}
}

TEST(failed_write_of_file_is_retried)
{
	spokei_vfiles_fail(files(), SPOKEI_VFILES_REPLACE, 4, -ENOSPC);
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SECOND);
	assert_int_equal(lines("dubbo://"), 0);
	subscriptionrig_pass(5 * RETRY_MAX_NS);
	assert_int_equal(lines("dubbo://"), 1);
	assert_int_equal(subscriptionrig_try_call(), 0);
}

TEST(foreign_lines_of_file_are_taken)
{
	subscriptionrig_provide(0);
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SECOND);
	spokei_vfiles_put(files(), PATH,
			  "dubbo://127.0.0.1:20882/demo.Echo\n"
			  "dubbo://127.0.0.1:20880/demo.Echo?weight=1\n");
	subscriptionrig_pass(SECOND);
	assert_int_equal(subscriptionrig_endpoints(), 2);
}

TEST(static_registry_has_fixed_list)
{
	subscriptionrig_provide(0);
	subscriptionrig_provide(1);
	subscriptionrig.registry = "static://127.0.0.1:20880?backup=127.0.0.1:20881";
	subscriptionrig_consume(NULL);
	subscriptionrig_pass(SECOND);
	assert_int_equal(spoke_consumer_ready(subscriptionrig.consumer), 2);
	assert_int_equal(subscriptionrig_try_call(), 0);
}
