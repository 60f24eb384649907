/* SPDX-License-Identifier: Apache-2.0 */
/* The registry in ZooKeeper at a real server, which is killed and comes back, forgets the session,
 * and is meddled with. */
#include "tests/integration/zoorig.h"

#include <spoke/host.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE "demo.Echo"
#define FOLDER "/dubbo/demo.Echo/providers"
#define URL_A "dubbo://10.0.0.1:20880/demo.Echo?group=g&timestamp=1&version=1.0"
#define LEAF_A                                                                                     \
	"dubbo%3A%2F%2F10.0.0.1%3A20880%2Fdemo.Echo%3Fgroup%3Dg%26timestamp%3D1%26version%3D1.0"
#define NODE_A FOLDER "/" LEAF_A
#define URL_B "dubbo://10.0.0.2:20880/demo.Echo"
#define LEAF_B "dubbo%3A%2F%2F10.0.0.2%3A20880%2Fdemo.Echo"
#define NODE_B FOLDER "/" LEAF_B
#define LIST(text) (text "\n")

static void stranger_makes_folder(void)
{
	(void)stranger_create("/dubbo", "", ZOO_PERSISTENT);
	(void)stranger_create("/dubbo/demo.Echo", "", ZOO_PERSISTENT);
	(void)stranger_create(FOLDER, "", ZOO_PERSISTENT);
}

static int64_t our_session(void)
{
	return zoo_client_id(rig.theirs)->client_id;
}

static int64_t owner_of(const char *path)
{
	int64_t owner = -1;

	assert_int_equal(stranger_owner(path, &owner), ZOK);
	return owner;
}

/* --- publishing */

static void what_is_published_is_as_dubbo_has_it(void **state)
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
		assert_int_equal(owner_of(path), our_session());
		assert_int_equal(stranger_count("/dubbo/spoke.interop.EchoService/providers"), 1);
		assert_int_equal(zoorig_end(zoorig_withdraw(intent)), 0);
		rows++;
	}
	(void)fclose(file);
	assert_int_equal(rows, 4);
	assert_int_equal(owner_of("/dubbo/spoke.interop.EchoService/providers"), 0);
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

static void what_is_withdrawn_is_gone_and_the_rest_stays(void **state)
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

static void what_is_withdrawn_before_it_is_done_is_gone_too(void **state)
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

/* --- former selves */

static void a_node_of_the_same_name_that_a_former_self_left_is_taken_over(void **state)
{
	uint64_t intent;

	(void)state;
	stranger_makes_folder();
	stranger_leaves_behind(NODE_A);
	zoorig_open("");
	intent = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(intent), 0);
	assert_string_equal(stranger_list(FOLDER), LIST(LEAF_A));
	assert_int_equal(owner_of(NODE_A), our_session());
	assert_int_equal(zoorig_lost(intent), 1);
}

static void nodes_of_former_selves_with_another_time_are_removed(void **state)
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

static void two_of_one_session_leave_each_other_alone(void **state)
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

static void a_list_is_told_and_told_again_when_it_changes(void **state)
{
	uint64_t intent;

	(void)state;
	zoorig_open("");
	intent = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(intent), 0);
	zoorig_until(strcmp(zoorig_list(intent), "") == 0);
	assert_int_equal(owner_of(FOLDER), 0);
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

static void who_has_unsubscribed_hears_nothing_more(void **state)
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
	assert_true(zoorig_said("a service has 10001 providers; the first 10000 count"));
}

/* --- what happens behind its back */

static void a_node_that_somebody_removes_is_told_as_lost(void **state)
{
	uint64_t intent;

	(void)state;
	zoorig_open("");
	intent = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(intent), 0);
	assert_int_equal(stranger_write(NODE_A, "x"), ZOK);
	assert_int_equal(stranger_write(NODE_A, "y"), ZOK);
	assert_int_equal(stranger_delete(NODE_A), ZOK);
	zoorig_until(zoorig_lost(intent) != 1);
	assert_int_equal(zoorig_lost(intent), SPOKE_ENOENT);
	intent = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(intent), 0);
	assert_string_equal(stranger_list(FOLDER), LIST(LEAF_A));
	stranger_clears("/dubbo");
	zoorig_until(zoorig_lost(intent) == SPOKE_ENOENT);
}

static void a_server_that_is_killed_and_comes_back_loses_nothing(void **state)
{
	uint64_t entry;
	uint64_t listing;
	size_t heard;
	int64_t session;

	(void)state;
	zoorig_open("");
	entry = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(entry), 0);
	listing = zoorig_subscribe(SERVICE);
	zoorig_until(strcmp(zoorig_list(listing), LIST(URL_A)) == 0);
	session = our_session();
	heard = zoorig_count(NOTE_LIST, listing);
	zooserver_kill();
	zoorig_until(zoorig_said("lost the connection"));
	zooserver_revive();
	zoorig_until(zoorig_count(NOTE_LIST, listing) > heard);
	assert_string_equal(zoorig_list(listing), LIST(URL_A));
	assert_int_equal(our_session(), session);
	assert_int_equal(owner_of(NODE_A), session);
	assert_int_equal(stranger_create(NODE_B, "", ZOO_EPHEMERAL), ZOK);
	zoorig_until(strcmp(zoorig_list(listing), LIST(URL_A "\n" URL_B)) == 0);
	assert_int_equal(zoorig_count(NOTE_LOST, 0), 0);
	assert_int_equal(zoorig_lost(entry), 1);
	assert_int_equal(stranger_delete(NODE_A), ZOK);
	zoorig_until(zoorig_lost(entry) == SPOKE_ENOENT);
}

static void a_session_that_is_over_is_told_once_and_another_one_begun(void **state)
{
	uint64_t entry;
	uint64_t listing;
	int64_t session;

	(void)state;
	zoorig_open("");
	entry = zoorig_publish(SERVICE, URL_A);
	listing = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(entry), 0);
	assert_int_equal(zoorig_end(listing), 0);
	session = our_session();
	stranger_ends_session();
	zoorig_until(zoorig_lost(0) != 1);
	assert_int_equal(zoorig_lost(0), SPOKE_ELOST);
	entry = zoorig_publish(SERVICE, URL_A);
	listing = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(entry), 0);
	zoorig_until(strcmp(zoorig_list(listing), LIST(URL_A)) == 0);
	assert_true(our_session() != session);
	assert_int_equal(owner_of(NODE_A), our_session());
	assert_int_equal(zoorig_count(NOTE_LOST, 0), 1);
	assert_int_equal(rig.closed, 1);
	assert_true(rig.closed_by != spoke_host_env()->threads->self(NULL));
}

/* --- nobody there */

static void without_a_server_all_ends_as_unavailable(void **state)
{
	uint64_t entry;
	uint64_t listing;
	uint64_t end;

	(void)state;
	assert_int_equal(zoorig_open_url("zookeeper://127.0.0.1:1?backup=[::1]:1"), 0);
	entry = zoorig_publish(SERVICE, URL_B);
	end = zoorig_withdraw(entry);
	entry = zoorig_publish(SERVICE, URL_A);
	listing = zoorig_subscribe(SERVICE);
	assert_int_equal(zoorig_end(entry), SPOKE_EUNAVAILABLE);
	assert_int_equal(zoorig_end(listing), SPOKE_EUNAVAILABLE);
	assert_int_equal(zoorig_end(end), SPOKE_EUNAVAILABLE);
}

static void what_is_under_way_as_the_server_dies_ends(void **state)
{
	uint64_t intents[20];

	(void)state;
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_B)), 0);
	for (unsigned i = 0; i < 20; i++)
		intents[i] = i % 2 ? zoorig_publish(SERVICE, URL_A) : zoorig_subscribe(SERVICE);
	zooserver_kill();
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(zoorig_end(intents[i]), SPOKE_ELOST);
	zooserver_revive();
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
}

/* --- where the servers are */

static void names_are_resolved_and_other_servers_tried(void **state)
{
	char url[128];

	(void)state;
	(void)snprintf(url, sizeof(url),
		       "zookeeper://127.0.0.1:1?backup=nowhere.invalid,localhost:%u",
		       (unsigned)zooserver_port());
	assert_int_equal(zoorig_open_url(url), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_true(rig.faulty.calls[FAULTY_RESOLVE] >= 2);
}

static void names_that_cannot_be_resolved_are_tried_again(void **state)
{
	char url[128];

	(void)state;
	(void)snprintf(url, sizeof(url), "zookeeper://localhost:%u", (unsigned)zooserver_port());
	faulty_fail(&rig.faulty, FAULTY_RESOLVE, 1, -ENOENT, false);
	assert_int_equal(zoorig_open_url(url), 0);
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	assert_true(zoorig_said("none of its servers' names could be resolved"));
}

/* --- the end */

static void a_session_is_closed_on_another_thread(void **state)
{
	uint64_t intent;

	(void)state;
	zoorig_open("");
	intent = zoorig_publish(SERVICE, URL_A);
	assert_int_equal(zoorig_end(intent), 0);
	(void)zoorig_publish(SERVICE, URL_B);
	(void)zoorig_subscribe(SERVICE);
	zoorig_close();
	zoorig_until(__atomic_load_n(&rig.closed, __ATOMIC_SEQ_CST) == 1);
	assert_true(rig.closed_by != spoke_host_env()->threads->self(NULL));
	zoorig_until(stranger_count(FOLDER) == 0);
}

static int no_offload(void *loop, struct spoke_work *work)
{
	(void)loop;
	(void)work;
	return -EAGAIN;
}

static void without_a_thread_the_connection_is_cut(void **state)
{
	(void)state;
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	rig.faulty.loop.offload = no_offload;
	zoorig_close();
	assert_int_equal(rig.closed, 1);
	assert_int_equal(rig.closed_by, spoke_host_env()->threads->self(NULL));
	assert_string_equal(stranger_list(FOLDER), LIST(LEAF_A));
}

static void an_engine_that_ends_takes_it_along(void **state)
{
	(void)state;
	zoorig_open("");
	assert_int_equal(zoorig_end(zoorig_publish(SERVICE, URL_A)), 0);
	zoorig_close();
	spoke_engine_free(rig.engine);
	rig.engine = NULL;
	assert_int_equal(rig.closed, 1);
	assert_int_equal(rig.faulty.blocks, 0);
}

static void urls_that_make_no_sense_are_refused(void **state)
{
	static const struct {
		const char *url;
		int error;
		const char *words;
	} rows[] = {
		{ "zookeeper://me:secret@h", SPOKE_EUNSUPPORTED, "users and passwords" },
		{ "zookeeper://h?backup=i:0", SPOKE_ESYNTAX, "server 1 has no port" },
		{ "zookeeper://h?backup=i,:9", SPOKE_EINVAL, "not the name of a host" },
		{ "zookeeper://h?session=1y", SPOKE_ESYNTAX, "session" },
		{ "zookeeper://h?session=1", SPOKE_ERANGE, "session" },
		{ "zookeeper://h?group=a//b", SPOKE_EINVAL, "make no path" },
		{ "zookeeper://h/..", SPOKE_EINVAL, "make no path" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(zoorig_open_url(rows[i].url), rows[i].error);
		assert_true(zoorig_said(rows[i].words));
	}
}

static void any_memory_may_be_missing(void **state)
{
	uint64_t failed = 1;
	uint64_t nth = 1;

	(void)state;
	for (; failed; nth++) {
		uint64_t before = rig.faulty.failed[FAULTY_MEMORY];
		uint64_t entry = 0;
		uint64_t listing = 0;

		faulty_fail(&rig.faulty, FAULTY_MEMORY, nth, -ENOMEM, false);
		if (zoorig_try_open() == 0) {
			entry = zoorig_try_publish(SERVICE, URL_A);
			listing = zoorig_try_subscribe(SERVICE);
			zoorig_until(entry == 0 || zoorig_has_ended(entry));
			zoorig_until(listing == 0 || zoorig_has_ended(listing));
			entry = entry ? zoorig_try_withdraw(entry) : 0;
			zoorig_until(entry == 0 || zoorig_has_ended(entry));
			faulty_heal(&rig.faulty);
			zoorig_close();
		}
		faulty_heal(&rig.faulty);
		failed = rig.faulty.failed[FAULTY_MEMORY] - before;
		zoorig_forget();
	}
	assert_true(nth > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZOO_TEST(what_is_published_is_as_dubbo_has_it),
		ZOO_TEST(the_data_of_a_node_is_an_address),
		ZOO_TEST(path_and_group_of_the_url_say_where),
		ZOO_TEST(what_is_withdrawn_is_gone_and_the_rest_stays),
		ZOO_TEST(what_is_withdrawn_before_it_is_done_is_gone_too),
		ZOO_TEST(a_url_that_is_none_is_refused_by_its_end),
		ZOO_TEST(a_node_of_the_same_name_that_a_former_self_left_is_taken_over),
		ZOO_TEST(nodes_of_former_selves_with_another_time_are_removed),
		ZOO_TEST(two_of_one_session_leave_each_other_alone),
		ZOO_TEST(a_list_is_told_and_told_again_when_it_changes),
		ZOO_TEST(who_has_unsubscribed_hears_nothing_more),
		ZOO_TEST(names_that_are_no_urls_are_passed_over),
		ZOO_TEST(of_too_many_providers_the_first_count),
		ZOO_TEST(a_node_that_somebody_removes_is_told_as_lost),
		ZOO_TEST(a_server_that_is_killed_and_comes_back_loses_nothing),
		ZOO_TEST(a_session_that_is_over_is_told_once_and_another_one_begun),
		ZOO_TEST(without_a_server_all_ends_as_unavailable),
		ZOO_TEST(what_is_under_way_as_the_server_dies_ends),
		ZOO_TEST(names_are_resolved_and_other_servers_tried),
		ZOO_TEST(names_that_cannot_be_resolved_are_tried_again),
		ZOO_TEST(a_session_is_closed_on_another_thread),
		ZOO_TEST(without_a_thread_the_connection_is_cut),
		ZOO_TEST(an_engine_that_ends_takes_it_along),
		ZOO_TEST(urls_that_make_no_sense_are_refused),
		ZOO_TEST(any_memory_may_be_missing),
	};

	if (!zooserver_there_is())
		return 77;
	cmocka_set_test_filter(getenv("ROW")); // NOLINT(concurrency-mt-unsafe): one thread
	return cmocka_run_group_tests(tests, zoorig_set_up_all, zoorig_tear_down_all);
}
