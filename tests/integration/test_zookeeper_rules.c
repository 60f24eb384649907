/* SPDX-License-Identifier: Apache-2.0 */
/* Rules in a real ZooKeeper, where Dubbo 2.7 and later keep them. */
#include "tests/integration/zoorig.h"
#include "tests/support/test.h"

#include <spoke/registry.h>

#include <string.h>

#define RULE "/dubbo/config/dubbo/demo.Echo::.configurators"

static uint64_t watch_rule(void)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_watch("demo.Echo::", ".configurators");
	assert_int_equal(zoorig_end(number), 0);
	return number;
}

static void make_folders(void)
{
	assert_int_equal(zoostranger_create("/dubbo", "", 0), 0);
	assert_int_equal(zoostranger_create("/dubbo/config", "", 0), 0);
	assert_int_equal(zoostranger_create("/dubbo/config/dubbo", "", 0), 0);
}

static bool lists(uint64_t number, const char *list)
{
	return strcmp(zoorig_list(number), list) == 0;
}

NEEDS(zooserver_absent);
GROUP(zoorig_set_up_all, zoorig_tear_down_all);
FIXTURE(zoorig_set_up, zoorig_tear_down);

TEST(rule_is_told_as_it_is_made_changed_and_removed)
{
	uint64_t number = watch_rule();

	zoorig_until(lists(number, ""));
	make_folders();
	assert_int_equal(zoostranger_create(RULE, "key: a", 0), 0);
	zoorig_until(lists(number, LIST("key: a")));
	assert_int_equal(zoostranger_write(RULE, "key: b"), 0);
	zoorig_until(lists(number, LIST("key: b")));
	assert_int_equal(zoostranger_delete(RULE), 0);
	zoorig_until(lists(number, ""));
	assert_int_equal(zoostranger_create(RULE, "key: c", 0), 0);
	zoorig_until(lists(number, LIST("key: c")));
	zoorig_close();
}

TEST(rule_that_exists_is_read_at_once)
{
	uint64_t number;

	make_folders();
	assert_int_equal(zoostranger_create(RULE, "key: a", 0), 0);
	number = watch_rule();
	zoorig_until(lists(number, LIST("key: a")));
	zoorig_close();
}

TEST(watch_of_a_rule_creates_no_node)
{
	(void)watch_rule();
	assert_string_equal(zoostranger_list("/dubbo"), "(none)");
	zoorig_close();
}

TEST(rule_is_read_again_after_a_lost_connection)
{
	uint64_t number = watch_rule();

	zooserver_kill();
	zoorig_until(zoorig_said("connection lost"));
	zooserver_revive();
	zooserver_wait();
	make_folders();
	assert_int_equal(zoostranger_create(RULE, "key: a", 0), 0);
	zoorig_until(lists(number, LIST("key: a")));
	zoorig_close();
}
