/* SPDX-License-Identifier: Apache-2.0 */
/* The ZooKeeper registry with a real server: publishing, withdrawing and listing of providers. */
#include "tests/integration/zoorig.h"

#include <stdio.h>
#include <string.h>

/* --- publishing */

static void published_node_matches_dubbo_layout(void **state)
{
	FILE *file = fopen(TESTS_GOLDEN "/zookeeper.tsv", "re");
	static char line[4 * URL_SIZE];
	unsigned rows = 0;

	(void)state;
	assert_non_null(file);
	zoorig_open("");
	assert_non_null(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file)) {
		char *url = strchr(line, '\t') + 1;
		char *path = strchr(url, '\t') + 1;
		char *data = strchr(path, '\t') + 1;
		uint64_t intent;

		url[-1] = path[-1] = data[-1] = '\0';
		intent = zoorig_publish(line, url);
		assert_int_equal(zoorig_end(intent), 0);
		assert_int_equal(stranger_owner_of(path), zoorig_session());
		assert_int_equal(stranger_count("/dubbo/spoke.interop.EchoService/providers"), 1);
		assert_int_equal(zoorig_end(zoorig_withdraw(intent)), 0);
		rows++;
	}
	(void)fclose(file);
	assert_int_equal(rows, 4);
	assert_int_equal(stranger_owner_of("/dubbo/spoke.interop.EchoService/providers"), 0);
	assert_string_equal(stranger_list("/dubbo"), LIST("spoke.interop.EchoService"));
}

static void the_data_of_a_node_is_an_address(void **state)
{
	char data[64];

	(void)state;
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_int_equal(stranger_data(NODE_A, data, sizeof(data)), ZOK);
	assert_string_equal(data, "10.0.0.1");
}

static void path_and_group_of_the_url_say_where(void **state)
{
	(void)state;
	zoorig_open("/elsewhere/deep?group=team&session=5s");
	assert_int_equal(zoorig_end(zoorig_publish("a b/c", URL_A)), 0);
	assert_string_equal(stranger_list("/elsewhere/deep/team"), LIST("a+b%2Fc"));
	assert_string_equal(stranger_list("/elsewhere/deep/team/a+b%2Fc/providers"), LIST(LEAF_A));
}

static void withdrawn_publication_is_removed_and_others_stay(void **state)
{
	uint64_t one;
	uint64_t other;

	(void)state;
	zoorig_open("");
	one = zoorig_publish(SERVICE, URL_A);
	other = zoorig_publish(SERVICE, URL_B);
	assert_int_equal(zoorig_end(other), 0);
	assert_int_equal(zoorig_end(one), 0);
	assert_int_equal(zoorig_end(zoorig_withdraw(one)), 0);
	assert_string_equal(stranger_list(FOLDER), LIST(LEAF_B));
	assert_int_equal(zoorig_lost(one), 1);
	assert_int_equal(zoorig_end(zoorig_withdraw(one)), 0);
	assert_int_equal(zoorig_end(zoorig_withdraw(4711)), 0);
}

static void publication_withdrawn_before_it_is_done_is_removed(void **state)
{
	uint64_t intent;
	uint64_t end;

	(void)state;
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_B)), 0);
	intent = zoorig_publish(SERVICE, URL_A);
	end = zoorig_withdraw(intent);
	assert_int_equal(zoorig_end(end), 0);
	assert_false(zoorig_has_ended(intent));
	assert_string_equal(stranger_list(FOLDER), LIST(LEAF_B));
}

static void a_url_that_is_none_is_refused_by_its_end(void **state)
{
	(void)state;
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, "no url")), SPOKE_ESYNTAX);
	assert_int_equal(zoorig_end(zoorig_publish("..", URL_A)), SPOKE_EINVAL);
}

/* --- nodes of former sessions */

static void node_left_by_a_former_session_is_taken_over(void **state)
{
	uint64_t intent;

	(void)state;
	stranger_makes_folder();
	stranger_leaves_behind(NODE_A);
	zoorig_open("");
	intent = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(intent), 0);
	assert_string_equal(stranger_list(FOLDER), LIST(LEAF_A));
	assert_int_equal(stranger_owner_of(NODE_A), zoorig_session());
	assert_int_equal(zoorig_lost(intent), 1);
}

static void nodes_of_former_sessions_are_removed(void **state)
{
	static const char old[] = FOLDER "/dubbo%3A%2F%2F10.0.0.1%3A20880%2Fdemo.Echo%3Fgroup%3Dg"
					 "%26timestamp%3D0%26version%3D1.0";
	static const char other_group[] = FOLDER
		"/dubbo%3A%2F%2F10.0.0.1%3A20880%2Fdemo.Echo%3Fversion%3D1.0";
	static const char by_hand[] = FOLDER "/dubbo%3A%2F%2F10.0.0.1%3A20880%2Fdemo.Echo%3Fgroup"
					     "%3Dg%26static%3Dtrue%26version%3D1.0";
	int64_t owner;

	(void)state;
	stranger_makes_folder();
	stranger_leaves_behind(old);
	stranger_leaves_behind(other_group);
	stranger_leaves_behind(NODE_B);
	stranger_leaves_behind(FOLDER "/%zz");
	assert_int_equal(stranger_create(by_hand, "", ZOO_PERSISTENT), ZOK);
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_int_equal(stranger_owner(old, &owner), ZNONODE);
	assert_int_equal(stranger_owner(other_group, &owner), ZOK);
	assert_int_equal(stranger_owner(by_hand, &owner), ZOK);
	assert_int_equal(stranger_owner(NODE_B, &owner), ZOK);
	assert_int_equal(stranger_count(FOLDER), 5);
	assert_true(zoorig_said("an older entry of the same provider was removed"));
}

static void two_publications_of_one_session_are_independent(void **state)
{
	uint64_t first;

	(void)state;
	zoorig_open("");
	first = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(first), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A "&weight=2")), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_int_equal(stranger_count(FOLDER), 2);
	assert_int_equal(zoorig_lost(first), 1);
}

/* --- subscribing */

/* A provider of Dubbo 3 that registers instances only is found by no consumer of services. */
static void instances_of_applications_explain_an_empty_list(void **state)
{
	uint64_t intent;

	(void)state;
	zoorig_open("");
	intent = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(intent), 0);
	zoorig_until(zoorig_count(NOTE_LIST, intent) == 1);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_false(zoorig_said("register-mode"));
	zoorig_close();

	assert_int_equal(stranger_create("/services", "", ZOO_PERSISTENT), ZOK);
	assert_int_equal(stranger_create("/services/shop", "", ZOO_PERSISTENT), ZOK);
	zoorig_open("");
	intent = zoorig_subscribe("demo.Other");
	assert_int_equal(zoorig_end(intent), 0);
	zoorig_until(
		zoorig_said("registry: /dubbo/demo.Other/providers is empty, but /services has 1 "
			    "applications of Dubbo 3; set register-mode=interface or all"));
	/* The list is still watched. */
	assert_int_equal(zoorig_end(zoorig_publish("demo.Other", URL_A)), 0);
	zoorig_until(strcmp(zoorig_list(intent), LIST(URL_A)) == 0);
	assert_int_equal(stranger_delete("/services/shop"), ZOK);
	assert_int_equal(stranger_delete("/services"), ZOK);
}

static void list_is_reported_again_when_it_changes(void **state)
{
	uint64_t intent;

	(void)state;
	zoorig_open("");
	intent = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(intent), 0);
	zoorig_until(strcmp(zoorig_list(intent), "") == 0);
	assert_int_equal(stranger_owner_of(FOLDER), 0);
	assert_int_equal(stranger_create(NODE_B, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(intent), LIST(URL_B)) == 0);
	assert_int_equal(stranger_create(NODE_A, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(intent), LIST(URL_A "\n" URL_B)) == 0);
	assert_int_equal(stranger_delete(NODE_B), ZOK);
	zoorig_until(strcmp(zoorig_list(intent), LIST(URL_A)) == 0);
	stranger_clears("/dubbo");
	zoorig_until(strcmp(zoorig_list(intent), "") == 0);
	stranger_makes_folder();
	assert_int_equal(stranger_create(NODE_A, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(intent), LIST(URL_A)) == 0);
	assert_int_equal(zoorig_lost(intent), 1);
}

static void unsubscribed_listener_gets_no_further_lists(void **state)
{
	uint64_t one;
	uint64_t other;
	size_t heard;

	(void)state;
	zoorig_open("");
	one = zoorig_subscribe(SERVICE);
	other = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(one), 0);
	assert_int_equal(zoorig_end(other), 0);
	assert_int_equal(zoorig_end(zoorig_unsubscribe(one)), 0);
	heard = zoorig_count(NOTE_LIST, one);
	assert_int_equal(stranger_create(NODE_A, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(other), LIST(URL_A)) == 0);
	assert_int_equal(zoorig_count(NOTE_LIST, one), heard);
	assert_int_equal(zoorig_end(zoorig_unsubscribe(4711)), 0);
}

static void names_that_are_no_urls_are_passed_over(void **state)
{
	uint64_t intent;

	(void)state;
	stranger_makes_folder();
	assert_int_equal(stranger_create(FOLDER "/%zz", "", ZOO_EPHEMERAL), ZOK);
	assert_int_equal(stranger_create(FOLDER "/a%00b", "", ZOO_EPHEMERAL), ZOK);
	assert_int_equal(stranger_create(NODE_A, "", ZOO_EPHEMERAL), ZOK);
	zoorig_open("");
	intent = zoorig_subscribe(SERVICE);
	zoorig_until(strcmp(zoorig_list(intent), LIST(URL_A)) == 0);
	assert_true(zoorig_said("no encoded URL: %zz"));
	assert_true(zoorig_said("no encoded URL: a%00b"));
}

static void of_all_services_their_names_are_told(void **state)
{
	uint64_t intent;

	(void)state;
	stranger_makes_folder();
	assert_int_equal(stranger_create("/dubbo/a%20b", "", 0), ZOK);
	assert_int_equal(stranger_create("/dubbo/config", "", 0), ZOK);
	assert_int_equal(stranger_create("/dubbo/%zz", "", 0), ZOK);
	zoorig_open("");
	intent = zoorig_subscribe("*");
	zoorig_until(strstr(zoorig_list(intent), LIST("consumer://any/" SERVICE)) != NULL);
	assert_non_null(strstr(zoorig_list(intent), LIST("consumer://any/a%20b")));
	assert_null(strstr(zoorig_list(intent), "config"));
	assert_true(zoorig_said("no encoded URL: %zz"));
	assert_int_equal(stranger_create("/dubbo/c", "", 0), ZOK);
	zoorig_until(strstr(zoorig_list(intent), LIST("consumer://any/c")) != NULL);
	assert_non_null(strstr(zoorig_list(intent), LIST("consumer://any/a%20b")));
}

/* Each byte is escaped, so the names are three times as long. */
static void services_of_any_names_are_told(void **state)
{
	char path[64];
	uint64_t intent;

	(void)state;
	stranger_makes_folder();
	for (int i = 0; i < 64; i++) {
		(void)snprintf(path, sizeof(path), "/dubbo/\xc3%c", 0x80 + i);
		assert_int_equal(stranger_create(path, "", 0), ZOK);
	}
	zoorig_open("");
	intent = zoorig_subscribe("*");
	zoorig_until(zoorig_count(NOTE_LIST, intent) > 0);
	assert_int_equal(rig.notes[rig.note_count - 1].count, 65);
	for (int i = 0; i < 64; i++) {
		(void)snprintf(path, sizeof(path), LIST("consumer://any/%%C3%%%X"), 0x80 + i);
		assert_non_null(strstr(zoorig_list(intent), path));
	}
}

static void of_too_many_providers_the_first_count(void **state)
{
	uint64_t intent;

	(void)state;
	stranger_makes_folder();
	stranger_create_many(FOLDER "/dubbo%3A%2F%2F10.0.0.1%3A", 10001);
	zoorig_open("");
	intent = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(intent), 0);
	zoorig_until(zoorig_count(NOTE_LIST, intent) > 0);
	assert_int_equal(rig.notes[rig.note_count - 1].count, 10000);
	assert_true(zoorig_said("a service has 10001 providers; only the first 10000 are used"));
}

/* --- categories */

#define CONSUMER "consumer://0.0.0.0/" SERVICE "?category=consumers&id=1"
#define CONSUMERS "/dubbo/" SERVICE "/consumers"
#define CONFIGURATORS "/dubbo/" SERVICE "/configurators"
#define RULE_LEAF "override%3A%2F%2F0.0.0.0%2Fdemo.Echo%3Fweight%3D5"

static void consumer_is_published_with_the_address_of_this_machine(void **state)
{
	uint64_t intent;
	uint64_t other;

	(void)state;
	zoorig_open("");
	intent = zoorig_publish(SERVICE, CONSUMER);
	assert_int_equal(zoorig_end(intent), 0);
	assert_string_equal(stranger_list(CONSUMERS),
			    LIST("consumer%3A%2F%2F127.0.0.1%2Fdemo.Echo%3Fcategory%3Dconsumers"
				 "%26id%3D1"));
	other = zoorig_publish(SERVICE, "consumer://0.0.0.0/" SERVICE "?category=consumers&id=2");
	assert_int_equal(zoorig_end(other), 0);
	assert_int_equal(stranger_count(CONSUMERS), 2);
	assert_int_equal(zoorig_end(zoorig_withdraw(intent)), 0);
	assert_int_equal(stranger_count(CONSUMERS), 1);
	assert_int_equal(zoorig_end(zoorig_withdraw(other)), 0);
	assert_int_equal(stranger_count(CONSUMERS), 0);
}

static void configurators_are_listed_and_watched(void **state)
{
	const uint64_t intent = ++rig.intents;

	(void)state;
	zoorig_open("");
	assert_int_equal(spokei_registry_zookeeper.watch(rig.registry, intent, SERVICE,
							 "configurators"),
			 0);
	assert_int_equal(zoorig_end(intent), 0);
	zoorig_until(zoorig_count(NOTE_LIST, intent) > 0);
	assert_string_equal(zoorig_list(intent), "");
	zoorig_forget();
	assert_int_equal(stranger_create(CONFIGURATORS "/" RULE_LEAF, "", 0), ZOK);
	zoorig_until(zoorig_count(NOTE_LIST, intent) > 0);
	assert_string_equal(zoorig_list(intent), LIST("override://0.0.0.0/demo.Echo?weight=5"));
	zoorig_forget();
	assert_int_equal(stranger_delete(CONFIGURATORS "/" RULE_LEAF), ZOK);
	zoorig_until(zoorig_count(NOTE_LIST, intent) > 0);
	assert_string_equal(zoorig_list(intent), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZOORIG_TEST(published_node_matches_dubbo_layout),
		ZOORIG_TEST(the_data_of_a_node_is_an_address),
		ZOORIG_TEST(path_and_group_of_the_url_say_where),
		ZOORIG_TEST(withdrawn_publication_is_removed_and_others_stay),
		ZOORIG_TEST(publication_withdrawn_before_it_is_done_is_removed),
		ZOORIG_TEST(a_url_that_is_none_is_refused_by_its_end),
		ZOORIG_TEST(node_left_by_a_former_session_is_taken_over),
		ZOORIG_TEST(nodes_of_former_sessions_are_removed),
		ZOORIG_TEST(two_publications_of_one_session_are_independent),
		ZOORIG_TEST(list_is_reported_again_when_it_changes),
		ZOORIG_TEST(instances_of_applications_explain_an_empty_list),
		ZOORIG_TEST(unsubscribed_listener_gets_no_further_lists),
		ZOORIG_TEST(names_that_are_no_urls_are_passed_over),
		ZOORIG_TEST(of_all_services_their_names_are_told),
		ZOORIG_TEST(services_of_any_names_are_told),
		ZOORIG_TEST(of_too_many_providers_the_first_count),
		ZOORIG_TEST(consumer_is_published_with_the_address_of_this_machine),
		ZOORIG_TEST(configurators_are_listed_and_watched),
	};

	return zoorig_run(tests, sizeof(tests) / sizeof(tests[0]));
}
