/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ZooKeeper registry with a real server: publishing, withdrawing, listing, rules, faults of
 * the server.
 */
#include "tests/integration/zoorig.h"
#include "tests/support/test.h"

#include <spoke/host.h>
#include <spoke/registry.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * --- the ZooKeeper registry with a real server: publishing, withdrawing and listing of
 * providers
 */

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

TEST(ten_thousand_providers_are_listed)
{
	uint64_t number;

	zoostranger_makes_folder();
	zoostranger_create_many(FOLDER "/dubbo%3A%2F%2F10.0.0.1%3A", 10001);
	zoorig_open("");
	number = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(number), 0);
	zoorig_until(zoorig_count(NOTE_LIST, number) > 0);
	assert_int_equal(rig.notes[rig.note_count - 1].count, 10001);
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

/* --- rules in a real ZooKeeper, where Dubbo 2.7 and later keep them */

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

/*
 * --- the ZooKeeper registry with a real server that is killed and restarted, ends the session,
 * and whose nodes are changed by another client; also start and end of the registry
 */

/* --- changes by another client */

TEST(removed_node_is_reported_as_lost)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(number), 0);
	assert_int_equal(zoostranger_write(NODE_A, "x"), ZOK);
	assert_int_equal(zoostranger_write(NODE_A, "y"), ZOK);
	assert_int_equal(zoostranger_delete(NODE_A), ZOK);
	zoorig_until(zoorig_lost(number) != 1);
	assert_int_equal(zoorig_lost(number), SPOKE_ENOENT);
	number = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(number), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_A));
	zoostranger_clears("/dubbo");
	zoorig_until(zoorig_lost(number) == SPOKE_ENOENT);
}

TEST(killed_and_restarted_server_keeps_all_nodes)
{
	uint64_t entry;
	uint64_t listing;
	size_t heard;
	int64_t session;

	zoorig_open("");
	entry = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(entry), 0);
	listing = zoorig_subscribe(SERVICE);
	zoorig_until(strcmp(zoorig_list(listing), LIST(URL_A)) == 0);
	session = zoorig_session();
	heard = zoorig_count(NOTE_LIST, listing);
	zooserver_kill();
	zoorig_until(zoorig_said("connection lost"));
	zooserver_revive();
	zoorig_until(zoorig_count(NOTE_LIST, listing) > heard);
	assert_string_equal(zoorig_list(listing), LIST(URL_A));
	assert_int_equal(zoorig_session(), session);
	assert_int_equal(zoostranger_owner_of(NODE_A), session);
	assert_int_equal(zoostranger_create(NODE_B, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(listing), LIST(URL_A "\n" URL_B)) == 0);
	assert_int_equal(zoorig_lost(listing), 1);
	assert_int_equal(zoorig_lost(entry), 1);
	assert_int_equal(zoostranger_delete(NODE_A), ZOK);
	zoorig_until(zoorig_lost(entry) == SPOKE_ENOENT);
}

TEST(expired_session_is_reported_and_replaced)
{
	uint64_t entry;
	uint64_t listing;
	int64_t session;

	zoorig_open("");
	entry = zoorig_publish(SERVICE, URL_A);
	listing = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(entry), 0);
	assert_int_equal(zoorig_end(listing), 0);
	session = zoorig_session();
	zoostranger_ends_session();
	zoorig_until(zoorig_lost(entry) != 1);
	assert_int_equal(zoorig_lost(entry), SPOKE_ELOST);
	assert_int_equal(zoorig_lost(listing), SPOKE_ELOST);
	entry = zoorig_publish(SERVICE, URL_A);
	listing = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(entry), 0);
	zoorig_until(strcmp(zoorig_list(listing), LIST(URL_A)) == 0);
	assert_true(zoorig_session() != session);
	assert_int_equal(zoostranger_owner_of(NODE_A), zoorig_session());
	assert_int_equal(zoorig_lost(entry), 1);
	zoorig_until(__atomic_load_n(&rig.closed, __ATOMIC_SEQ_CST) == 1);
	assert_true(__atomic_load_n(&rig.closed_by, __ATOMIC_SEQ_CST) !=
		    spoke_host_env()->threads->self(NULL));
}

/* --- unreachable server */

TEST(without_a_server_all_ends_as_unavailable)
{
	uint64_t entry;
	uint64_t listing;
	uint64_t end;

	assert_int_equal(zoorig_open_url("zookeeper://127.0.0.1:1?backup=[::1]:1"), 0);
	entry = zoorig_publish(SERVICE, URL_B);
	end = zoorig_unwant(entry);
	entry = zoorig_publish(SERVICE, URL_A);
	listing = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(entry), SPOKE_EUNAVAILABLE);
	assert_int_equal(zoorig_end(listing), SPOKE_EUNAVAILABLE);
	assert_int_equal(zoorig_end(end), 0); /* nothing was requested yet */
	assert_true(zoorig_said(
		"registry zookeeper 127.0.0.1:1: no server answers: Connection refused"));
}

TEST(requests_in_flight_end_when_the_server_dies)
{
	uint64_t numbers[20];

	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_B)), 0);
	/* A frozen server cannot answer before it is killed. */
	zooserver_freeze();
	for (unsigned i = 0; i < 20; i++)
		numbers[i] = i % 2 ? zoorig_publish(SERVICE, URL_A) : zoorig_subscribe(SERVICE);
	zooserver_kill();
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(zoorig_end(numbers[i]), SPOKE_ELOST);
	zooserver_revive();
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_A "\n" LEAF_B));
}

/* The server has created the node, but the next request failed. The test is repeated if that
 * request was faster than the kill. */
static uint64_t fail_to_publish(const char *url, const char *node)
{
	for (unsigned tries = 0; tries < 20; tries++) {
		uint64_t number = zoorig_publish(SERVICE, url);
		int64_t owner;
		int error;

		while (zoostranger_owner(node, &owner) != ZOK)
			continue;
		zooserver_kill();
		error = zoorig_end(number);
		if (error == SPOKE_ELOST)
			return number;
		assert_int_equal(error, 0);
		zooserver_revive();
		assert_int_equal(zoorig_end(zoorig_unwant(number)), 0);
	}
	fail_msg("the node was always published before the server could be killed");
	return 0;
}

TEST(uncertain_node_is_removed_unless_it_is_wanted)
{
	uint64_t number;

	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_B)), 0);
	number = fail_to_publish(URL_A, NODE_A);
	zooserver_revive();
	assert_int_equal(zoorig_end(zoorig_unwant(number)), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_B));
	(void)fail_to_publish(URL_A, NODE_A);
	zooserver_revive();
	number = zoorig_publish(SERVICE, URL_A); /* there is no connection before the next turn */
	assert_int_equal(zoorig_end(number), 0);
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_A "\n" LEAF_B));
	assert_int_equal(zoorig_lost(number), 1);
}

/* The server may reject requests just after its start. */
TEST(mute_server_is_retried)
{
	const struct spoke_env *env = spoke_host_env();
	struct spoke_address at;
	char text[64];
	char url[96];
	int listener;
	int fds[2] = { -1, -1 };

	assert_int_equal(env->net->parse(env->ctx, "127.0.0.1:0", &at), 0);
	assert_int_equal(env->net->listen(env->ctx, &at, 8, &listener), 0);
	assert_int_equal(env->net->local(env->ctx, listener, &at), 0);
	env->net->print(env->ctx, &at, text, sizeof(text));
	(void)snprintf(url, sizeof(url), "zookeeper://%s?session=1h", text);
	assert_int_equal(zoorig_open_url(url), 0);
	for (unsigned i = 0; i < 2; i++)
		zoorig_until(env->net->accept(env->ctx, listener, &fds[i], &at) == 0);
	zoorig_close();
	env->net->close(env->ctx, fds[0]);
	env->net->close(env->ctx, fds[1]);
	env->net->close(env->ctx, listener);
}

/* --- addresses of the servers */

TEST(server_names_are_resolved_and_all_servers_are_tried)
{
	char url[128];

	(void)snprintf(url, sizeof(url),
		       "zookeeper://127.0.0.1:1?backup=nowhere.invalid,localhost:%u",
		       (unsigned)zooserver_port());
	assert_int_equal(zoorig_open_url(url), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_true(rig.faulty.calls[SPOKEI_FAULTS_RESOLVE] >= 2);
}

TEST(unresolvable_names_are_retried)
{
	char url[128];

	(void)snprintf(url, sizeof(url), "zookeeper://localhost:%u", (unsigned)zooserver_port());
	spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_RESOLVE, 1, -ENOENT, false);
	assert_int_equal(zoorig_open_url(url), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_true(zoorig_said("cannot resolve any server name"));
}

/* --- end of the registry */

TEST(a_session_is_closed_on_another_thread)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(number), 0);
	(void)zoorig_publish(SERVICE, URL_B);
	(void)zoorig_subscribe(SERVICE);
	zoorig_close();
	zoorig_until(__atomic_load_n(&rig.closed, __ATOMIC_SEQ_CST) == 1);
	assert_true(rig.closed_by != spoke_host_env()->threads->self(NULL));
	zoorig_until(zoostranger_count(FOLDER) == 0);
}

static int no_offload(void *loop, struct spoke_work *work)
{
	(void)loop;
	(void)work;
	return -EAGAIN;
}

TEST(without_a_thread_the_connection_is_cut)
{
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	rig.faulty.loop.offload = no_offload;
	zoorig_close();
	assert_int_equal(rig.closed, 1);
	assert_int_equal(rig.closed_by, spoke_host_env()->threads->self(NULL));
	assert_string_equal(zoostranger_list(FOLDER), LIST(LEAF_A));
}

TEST(an_engine_that_ends_takes_it_along)
{
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	zoorig_close();
	spoke_engine_free(rig.engine);
	rig.engine = NULL;
	assert_int_equal(rig.closed, 1);
	assert_int_equal(rig.faulty.blocks, 0);
}

TEST(urls_that_make_no_sense_are_refused)
{
	static const struct {
		const char *url;
		int error;
		const char *words;
	} rows[] = {
		{ "zookeeper://me:secret@h", SPOKE_EUNSUPPORTED, "users and passwords" },
		{ "zookeeper://h?backup=i:0", SPOKE_ESYNTAX, "server 1 has no port" },
		{ "zookeeper://h?backup=i,:9", SPOKE_EINVAL, "invalid host name" },
		{ "zookeeper://h?session=1y", SPOKE_ESYNTAX, "session" },
		{ "zookeeper://h?session=1", SPOKE_ERANGE, "session" },
		{ "zookeeper://h?group=a//b", SPOKE_EINVAL, "invalid path" },
		{ "zookeeper://h/..", SPOKE_EINVAL, "invalid path" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(zoorig_open_url(rows[i].url), rows[i].error);
		assert_true(zoorig_said(rows[i].words));
	}
}

TEST(any_memory_may_be_missing)
{
	uint64_t failed = 1;
	uint64_t nth = 1;

	for (; failed; nth++) {
		uint64_t before = rig.faulty.failed[SPOKEI_FAULTS_MEMORY];

		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		if (zoorig_try_open() == 0) {
			uint64_t entry = zoorig_publish(SERVICE, URL_A);
			uint64_t listing = zoorig_subscribe(SERVICE);

			zoorig_until(zoorig_has_ended(entry) && zoorig_has_ended(listing));
			(void)zoorig_end(zoorig_unwant(entry));
			spokei_faults_heal(&rig.faulty);
			zoorig_close();
		}
		spokei_faults_heal(&rig.faulty);
		failed = rig.faulty.failed[SPOKEI_FAULTS_MEMORY] - before;
		zoorig_forget();
	}
	assert_true(nth > 10);
}
