/* SPDX-License-Identifier: Apache-2.0 */
/* Providers that are instances of applications, as a consumer joins them with those by interface.
 */
#include "tests/cluster/consumer/subscriptionrig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAPPING ECHO "/mapping"
#define NAME(name) "consumer://any/" name
#define INSTANCE(port, revision)                                                                   \
	"dubbo://10.0.0.1:" port "?dubbo.metadata.revision=" revision                              \
	"&dubbo.metadata.storage-type=remote&timestamp=1"
#define METADATA "dubbo://0.0.0.0/" ECHO "?weight=7"
#define MINUTE (60 * SECOND)

static int set_up(void **state)
{
	int error = subscriptionrig_set_up(state);

	subscriptionrig.kind = &fakereg_with_instances;
	return error;
}

FIXTURE(set_up, subscriptionrig_tear_down);

static void add(const char *service, const char *url)
{
	fakereg_add(service, url);
	subscriptionrig_pass(SOON_NS);
}

static void take_away(const char *service, const char *url)
{
	fakereg_remove(service, url);
	subscriptionrig_pass(SOON_NS);
}

TEST(instances_become_providers_once_their_metadata_are_there)
{
	subscriptionrig_consume(NULL);
	add(MAPPING, NAME("shop"));
	add("shop/instances", INSTANCE("1", "r1"));
	assert_int_equal(subscriptionrig_endpoints(), 0);
	add("shop/r1/metadata", METADATA);
	assert_int_equal(subscriptionrig_endpoints(), 1);
	add("shop/instances", INSTANCE("2", "r1"));
	assert_int_equal(subscriptionrig_endpoints(), 2);
	take_away("shop/instances", INSTANCE("1", "r1"));
	assert_int_equal(subscriptionrig_endpoints(), 1);
}

TEST(instance_that_changes_its_revision_stays)
{
	subscriptionrig_consume(NULL);
	add(MAPPING, NAME("shop"));
	add("shop/r1/metadata", METADATA);
	add("shop/instances", INSTANCE("1", "r1"));
	add("shop/instances", INSTANCE("3", "r1"));
	assert_int_equal(subscriptionrig_endpoints(), 2);
	add("shop/r2/metadata", METADATA);
	fakereg_remove("shop/instances", INSTANCE("1", "r1"));
	add("shop/instances", INSTANCE("1", "r2"));
	assert_int_equal(subscriptionrig_endpoints(), 2);
	/* Metadata of another service. */
	add("shop/r3/metadata", "dubbo://0.0.0.0/demo.Other");
	fakereg_remove("shop/instances", INSTANCE("1", "r2"));
	add("shop/instances", INSTANCE("1", "r3"));
	assert_int_equal(subscriptionrig_endpoints(), 1);
}

TEST(provider_of_both_lists_is_one)
{
	subscriptionrig_consume(NULL);
	add(ECHO, "dubbo://10.0.0.1:1/" ECHO "?timestamp=1");
	add(ECHO, "dubbo://10.0.0.1:9/" ECHO "?timestamp=1");
	assert_int_equal(subscriptionrig_endpoints(), 2);
	add(MAPPING, NAME("shop"));
	add("shop/r1/metadata", METADATA);
	add("shop/instances", INSTANCE("1", "r1"));
	assert_int_equal(subscriptionrig_endpoints(), 2);
	add("shop/instances", INSTANCE("2", "r1"));
	assert_int_equal(subscriptionrig_endpoints(), 3);
	take_away(ECHO, "dubbo://10.0.0.1:1/" ECHO "?timestamp=1");
	assert_int_equal(subscriptionrig_endpoints(), 3);
}

TEST(application_is_followed_while_it_has_instances)
{
	subscriptionrig_consume(NULL);
	add(MAPPING, NAME("shop"));
	add("shop/r1/metadata", METADATA);
	add("shop/instances", INSTANCE("1", "r1"));
	add(ECHO, "dubbo://10.0.0.1:9/" ECHO);
	take_away(MAPPING, NAME("shop"));
	assert_int_equal(subscriptionrig_endpoints(), 2);
	take_away("shop/instances", INSTANCE("1", "r1"));
	assert_int_equal(subscriptionrig_endpoints(), 1);
	add("shop/instances", INSTANCE("1", "r1"));
	assert_int_equal(subscriptionrig_endpoints(), 1);
	add(MAPPING, NAME("shop"));
	assert_int_equal(subscriptionrig_endpoints(), 2);
}

TEST(there_is_a_limit_of_applications)
{
	char text[64];

	subscriptionrig_consume(NULL);
	for (unsigned i = 0; i < 70; i++) {
		(void)snprintf(text, sizeof(text), NAME("a%u"), i);
		fakereg_add(MAPPING, text);
	}
	subscriptionrig_pass(SECOND);
	fakereg_add("a0/r1/metadata", METADATA);
	fakereg_add("a69/r1/metadata", METADATA "&warmup=1");
	fakereg_add("a0/instances", INSTANCE("1", "r1"));
	fakereg_add("a69/instances", INSTANCE("2", "r1"));
	subscriptionrig_pass(SECOND);
	assert_int_equal(subscriptionrig_endpoints(), 1);
}

TEST(any_memory_may_be_missing)
{
	bool failed = true;

	fakereg_add(MAPPING, NAME("shop"));
	fakereg_add("shop/r1/metadata", METADATA);
	fakereg_add("shop/instances", INSTANCE("1", "r1"));
	fakereg_add("shop/instances",
		    "dubbo://10.0.0.1:2?dubbo.metadata.revision=r2"); /* asks in vain */
	fakereg_add(ECHO, "dubbo://10.0.0.1:9/" ECHO);
	for (uint64_t i = 1; failed; i++) {
		uint64_t before = subscriptionrig.faulty.failed[SPOKEI_FAULTS_MEMORY];

		spokei_faults_fail(&subscriptionrig.faulty, SPOKEI_FAULTS_MEMORY, i, -ENOMEM,
				   false);
		if (subscriptionrig_try_consumer(NULL) == 0)
			subscriptionrig_pass(12 * SECOND);
		failed = subscriptionrig.faulty.failed[SPOKEI_FAULTS_MEMORY] > before;
		spokei_faults_heal(&subscriptionrig.faulty);
		if (subscriptionrig.consumer) {
			subscriptionrig_pass(MINUTE);
			assert_int_equal(subscriptionrig_endpoints(), 2);
		}
		subscriptionrig_free_consumer();
		subscriptionrig_pass(MINUTE);
	}
	assert_true(subscriptionrig.faulty.failed[SPOKEI_FAULTS_MEMORY] > 50);
}
