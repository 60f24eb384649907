/* SPDX-License-Identifier: Apache-2.0 */
/* The ZooKeeper registry with a real server: publishing, withdrawing and listing of providers. */
#include "tests/integration/zoorig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/* --- publishing */

NEEDS(zooserver_absent);
GROUP(zoorig_set_up_all, zoorig_tear_down_all);
FIXTURE(zoorig_set_up, zoorig_tear_down);

TEST(published_node_matches_dubbo_layout)
{
	FILE *file = fopen(TESTS_GOLDEN "/zookeeper.tsv", "re");
	static char line[4 * URL_SIZE];
	unsigned rows = 0;

	assert_non_null(file);
	zoorig_open("");
	assert_non_null(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file)) {
		char *url = strchr(line, '\t') + 1;
		char *path = strchr(url, '\t') + 1;
		char *data = strchr(path, '\t') + 1;
		uint64_t number;

		url[-1] = path[-1] = data[-1] = '\0';
		number = zoorig_publish(line, url);
		assert_int_equal(zoorig_end(number), 0);
		assert_int_equal(zoostranger_owner_of(path), zoorig_session());
		assert_int_equal(zoostranger_count("/dubbo/spoke.interop.EchoService/providers"),
				 1);
		assert_int_equal(zoorig_end(zoorig_unwant(number)), 0);
		rows++;
	}
	(void)fclose(file);
	assert_int_equal(rows, 4);
	assert_int_equal(zoostranger_owner_of("/dubbo/spoke.interop.EchoService/providers"), 0);
	assert_string_equal(zoostranger_list("/dubbo"), LIST("spoke.interop.EchoService"));
}

TEST(the_data_of_a_node_is_an_address)
{
	char data[64];

	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_int_equal(zoostranger_data(NODE_A, data, sizeof(data)), ZOK);
	assert_string_equal(data, "10.0.0.1");
}

TEST(path_and_group_of_the_url_say_where)
{
	zoorig_open("/elsewhere/deep?group=team&session=5s");
	assert_int_equal(zoorig_end(zoorig_publish("a b/c", URL_A)), 0);
	assert_string_equal(zoostranger_list("/elsewhere/deep/team"), LIST("a+b%2Fc"));
	assert_string_equal(zoostranger_list("/elsewhere/deep/team/a+b%2Fc/providers"),
			    LIST(LEAF_A));
}

TEST(withdrawn_publication_is_removed_and_others_stay)
{
	uint64_t one;
	uint64_t other;

	zoorig_open("");
	one = zoorig_publish(SERVICE, URL_A);
	other = zoorig_publish(SERVICE, URL_B);
	assert_int_equal(zoorig_end(other), 0);
	assert_int_equal(zoorig_end(one), 0);
	assert_int_equal(zoorig_end(zoorig_unwant(one)), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_B));
	assert_int_equal(zoorig_lost(one), 1);
}

TEST(publication_withdrawn_before_it_is_done_is_removed)
{
	uint64_t number;
	uint64_t end;

	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_B)), 0);
	number = zoorig_publish(SERVICE, URL_A);
	end = zoorig_unwant(number);
	assert_int_equal(zoorig_end(end), 0);
	assert_false(zoorig_has_ended(number));
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_B));
}

TEST(service_that_is_no_path_is_refused)
{
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish("*", URL_A)), SPOKE_EINVAL);
	assert_int_equal(zoorig_end(zoorig_publish("..", URL_A)), SPOKE_EINVAL);
}

/* --- nodes of former sessions */

TEST(node_left_by_a_former_session_is_taken_over)
{
	uint64_t number;

	zoostranger_makes_folder();
	zoostranger_leaves_behind(NODE_A);
	zoorig_open("");
	number = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(number), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_A));
	assert_int_equal(zoostranger_owner_of(NODE_A), zoorig_session());
	assert_int_equal(zoorig_lost(number), 1);
}

TEST(nodes_of_former_sessions_are_removed)
{
	static const char old[] = FOLDER "/dubbo%3A%2F%2F10.0.0.1%3A20880%2Fdemo.Echo%3Fgroup%3Dg"
					 "%26timestamp%3D0%26version%3D1.0";
	static const char other_group[] = FOLDER
		"/dubbo%3A%2F%2F10.0.0.1%3A20880%2Fdemo.Echo%3Fversion%3D1.0";
	static const char by_hand[] = FOLDER "/dubbo%3A%2F%2F10.0.0.1%3A20880%2Fdemo.Echo%3Fgroup"
					     "%3Dg%26static%3Dtrue%26version%3D1.0";
	int64_t owner;

	zoostranger_makes_folder();
	zoostranger_leaves_behind(old);
	zoostranger_leaves_behind(other_group);
	zoostranger_leaves_behind(NODE_B);
	zoostranger_leaves_behind(FOLDER "/%zz");
	assert_int_equal(zoostranger_create(by_hand, "", ZOO_PERSISTENT), ZOK);
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_int_equal(zoostranger_owner(old, &owner), ZNONODE);
	assert_int_equal(zoostranger_owner(other_group, &owner), ZOK);
	assert_int_equal(zoostranger_owner(by_hand, &owner), ZOK);
	assert_int_equal(zoostranger_owner(NODE_B, &owner), ZOK);
	assert_int_equal(zoostranger_count(FOLDER), 5);
	assert_true(zoorig_said("an older entry of the same provider was removed"));
}

TEST(two_publications_of_one_session_are_independent)
{
	uint64_t first;

	zoorig_open("");
	first = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(first), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A "&weight=2")), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_int_equal(zoostranger_count(FOLDER), 2);
	assert_int_equal(zoorig_lost(first), 1);
}

/* --- subscribing */

/* A provider of Dubbo 3 that registers instances only is found by no consumer of services. */
TEST(instances_of_applications_explain_an_empty_list)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(number), 0);
	zoorig_until(zoorig_count(NOTE_LIST, number) == 1);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_false(zoorig_said("register-mode"));
	zoorig_close();

	assert_int_equal(zoostranger_create("/services", "", ZOO_PERSISTENT), ZOK);
	assert_int_equal(zoostranger_create("/services/shop", "", ZOO_PERSISTENT), ZOK);
	zoorig_open("");
	number = zoorig_subscribe("demo.Other");
	assert_int_equal(zoorig_end(number), 0);
	zoorig_until(
		zoorig_said("registry: /dubbo/demo.Other/providers is empty, but /services has 1 "
			    "applications of Dubbo 3; set register-mode=interface or all"));
	/* The list is still watched. */
	assert_int_equal(zoorig_end(zoorig_publish("demo.Other", URL_A)), 0);
	zoorig_until(strcmp(zoorig_list(number), LIST(URL_A)) == 0);
	assert_int_equal(zoostranger_delete("/services/shop"), ZOK);
	assert_int_equal(zoostranger_delete("/services"), ZOK);
}

TEST(list_is_reported_again_when_it_changes)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(number), 0);
	zoorig_until(strcmp(zoorig_list(number), "") == 0);
	assert_int_equal(zoostranger_owner_of(FOLDER), 0);
	assert_int_equal(zoostranger_create(NODE_B, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(number), LIST(URL_B)) == 0);
	assert_int_equal(zoostranger_create(NODE_A, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(number), LIST(URL_A "\n" URL_B)) == 0);
	assert_int_equal(zoostranger_delete(NODE_B), ZOK);
	zoorig_until(strcmp(zoorig_list(number), LIST(URL_A)) == 0);
	zoostranger_clears("/dubbo");
	zoorig_until(strcmp(zoorig_list(number), "") == 0);
	zoostranger_makes_folder();
	assert_int_equal(zoostranger_create(NODE_A, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(number), LIST(URL_A)) == 0);
	assert_int_equal(zoorig_lost(number), 1);
}

TEST(unsubscribed_listener_gets_no_further_lists)
{
	uint64_t one;
	uint64_t other;
	size_t heard;

	zoorig_open("");
	one = zoorig_subscribe(SERVICE);
	other = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(one), 0);
	assert_int_equal(zoorig_end(other), 0);
	assert_int_equal(zoorig_end(zoorig_unwant(one)), 0);
	heard = zoorig_count(NOTE_LIST, one);
	assert_int_equal(zoostranger_create(NODE_A, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(other), LIST(URL_A)) == 0);
	assert_int_equal(zoorig_count(NOTE_LIST, one), heard);
}

TEST(names_that_are_no_urls_are_passed_over)
{
	uint64_t number;

	zoostranger_makes_folder();
	assert_int_equal(zoostranger_create(FOLDER "/%zz", "", ZOO_EPHEMERAL), ZOK);
	assert_int_equal(zoostranger_create(FOLDER "/a%00b", "", ZOO_EPHEMERAL), ZOK);
	assert_int_equal(zoostranger_create(NODE_A, "", ZOO_EPHEMERAL), ZOK);
	zoorig_open("");
	number = zoorig_subscribe(SERVICE);
	zoorig_until(strcmp(zoorig_list(number), LIST(URL_A)) == 0);
	assert_true(zoorig_said("no encoded URL: %zz"));
	assert_true(zoorig_said("no encoded URL: a%00b"));
}

TEST(of_all_services_their_names_are_told)
{
	uint64_t number;

	zoostranger_makes_folder();
	assert_int_equal(zoostranger_create("/dubbo/a%20b", "", 0), ZOK);
	assert_int_equal(zoostranger_create("/dubbo/config", "", 0), ZOK);
	assert_int_equal(zoostranger_create("/dubbo/%zz", "", 0), ZOK);
	zoorig_open("");
	number = zoorig_subscribe("*");
	zoorig_until(strstr(zoorig_list(number), LIST("consumer://any/" SERVICE)) != NULL);
	assert_non_null(strstr(zoorig_list(number), LIST("consumer://any/a%20b")));
	assert_null(strstr(zoorig_list(number), "config"));
	assert_true(zoorig_said("no encoded URL: %zz"));
	assert_int_equal(zoostranger_create("/dubbo/c", "", 0), ZOK);
	zoorig_until(strstr(zoorig_list(number), LIST("consumer://any/c")) != NULL);
	assert_non_null(strstr(zoorig_list(number), LIST("consumer://any/a%20b")));
}

/* Each byte is escaped, so the names are three times as long. */
TEST(services_of_any_names_are_told)
{
	char path[64];
	uint64_t number;

	zoostranger_makes_folder();
	for (int i = 0; i < 64; i++) {
		(void)snprintf(path, sizeof(path), "/dubbo/\xc3%c", 0x80 + i);
		assert_int_equal(zoostranger_create(path, "", 0), ZOK);
	}
	zoorig_open("");
	number = zoorig_subscribe("*");
	zoorig_until(zoorig_count(NOTE_LIST, number) > 0);
	assert_int_equal(rig.notes[rig.note_count - 1].count, 65);
	for (int i = 0; i < 64; i++) {
		(void)snprintf(path, sizeof(path), LIST("consumer://any/%%C3%%%X"), 0x80 + i);
		assert_non_null(strstr(zoorig_list(number), path));
	}
}

TEST(of_too_many_providers_the_first_count)
{
	uint64_t number;

	zoostranger_makes_folder();
	zoostranger_create_many(FOLDER "/dubbo%3A%2F%2F10.0.0.1%3A", 10001);
	zoorig_open("");
	number = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(number), 0);
	zoorig_until(zoorig_count(NOTE_LIST, number) > 0);
	assert_int_equal(rig.notes[rig.note_count - 1].count, 10000);
	assert_true(zoorig_said("a service has 10001 providers; only the first 10000 are used"));
}

/* --- categories */

#define CONSUMER "consumer://0.0.0.0/" SERVICE "?category=consumers&id=1"
#define CONSUMERS "/dubbo/" SERVICE "/consumers"
#define CONFIGURATORS "/dubbo/" SERVICE "/configurators"
#define RULE_LEAF "override%3A%2F%2F0.0.0.0%2Fdemo.Echo%3Fweight%3D5"

TEST(consumer_is_published_with_the_address_of_this_machine)
{
	uint64_t number;
	uint64_t other;

	zoorig_open("");
	number = zoorig_publish(SERVICE, CONSUMER);
	assert_int_equal(zoorig_end(number), 0);
	assert_string_equal(zoostranger_list(CONSUMERS),
			    LIST("consumer%3A%2F%2F127.0.0.1%2Fdemo.Echo%3Fcategory%3Dconsumers"
				 "%26id%3D1"));
	other = zoorig_publish(SERVICE, "consumer://0.0.0.0/" SERVICE "?category=consumers&id=2");
	assert_int_equal(zoorig_end(other), 0);
	assert_int_equal(zoostranger_count(CONSUMERS), 2);
	assert_int_equal(zoorig_end(zoorig_unwant(number)), 0);
	assert_int_equal(zoostranger_count(CONSUMERS), 1);
	assert_int_equal(zoorig_end(zoorig_unwant(other)), 0);
	assert_int_equal(zoostranger_count(CONSUMERS), 0);
}

TEST(configurators_are_listed_and_watched)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_watch(SERVICE, SPOKE_REGISTRY_CONFIGURATORS);
	assert_int_equal(zoorig_end(number), 0);
	zoorig_until(zoorig_count(NOTE_LIST, number) > 0);
	assert_string_equal(zoorig_list(number), "");
	zoorig_forget();
	assert_int_equal(zoostranger_create(CONFIGURATORS "/" RULE_LEAF, "", 0), ZOK);
	zoorig_until(zoorig_count(NOTE_LIST, number) > 0);
	assert_string_equal(zoorig_list(number), LIST("override://0.0.0.0/demo.Echo?weight=5"));
	zoorig_forget();
	assert_int_equal(zoostranger_delete(CONFIGURATORS "/" RULE_LEAF), ZOK);
	zoorig_until(zoorig_count(NOTE_LIST, number) > 0);
	assert_string_equal(zoorig_list(number), "");
}
