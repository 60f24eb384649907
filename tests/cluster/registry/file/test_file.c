/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a registry: listed and published providers, and the notifications. */
#include "tests/cluster/registry/registryrig.h"
#include "tests/support/test.h"

#include "cluster/registry/registries.h"

#include <stdlib.h>
#include <string.h>

#define A "dubbo://10.0.0.1:20880/demo.Echo"
#define B "dubbo://10.0.0.2:20880/demo.Echo"
#define OTHER "dubbo://10.0.0.1:20880/demo.Other"

static struct rig *rig_with(void **state, unsigned members)
{
	struct rig *rig = *state;

	for (unsigned i = 0; i < members; i++)
		assert_int_equal(registryrig_open(&rig->members[i], &spokei_registry_file, RIG_URL),
				 0);
	return rig;
}

static void put(struct rig *rig, const char *text)
{
	spokei_vfiles_put(rig->files, RIG_PATH, text);
	registryrig_pass(rig, 25 * MS);
}

static void assert_file(struct rig *rig, const char *text)
{
	assert_string_equal(registryrig_text(rig), text);
}

FIXTURE(registryrig_set_up, registryrig_tear_down);

TEST(subscriber_gets_list_now_and_on_each_change)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, A "\n" OTHER "\n");
	registryrig_subscribe(one, 7, "demo.Echo");
	assert_int_equal(one->count, 0);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 7, 0);
	registryrig_assert_list(one, 7, A "\n");
	put(rig, A "\n" B "\n");
	registryrig_assert_list(one, 7, A "\n" B "\n");
	put(rig, "# nobody else\n" A "\n\n" B "\n" OTHER "\n");
	registryrig_assert_no_more(one);
	put(rig, "dubbo+unix:/run/echo.sock?interface=demo.Echo\n");
	registryrig_assert_list(one, 7, "dubbo+unix:/run/echo.sock?interface=demo.Echo\n");
	spokei_vfiles_remove(rig->files, RIG_PATH);
	registryrig_pass(rig, 25 * MS);
	registryrig_assert_list(one, 7, "");
	registryrig_pass(rig, 30 * SECOND);
	registryrig_assert_no_more(one);
}

TEST(wildcard_subscription_lists_service_names)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, A "\n" OTHER "\nnonsense\ndubbo://10.0.0.9:1\n");
	registryrig_subscribe(one, 7, "*");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 7, 0);
	registryrig_assert_list(one, 7, "consumer://any/demo.Echo\nconsumer://any/demo.Other\n");
	put(rig, "dubbo+unix:/run/echo.sock?interface=a%20b%26c\n");
	registryrig_assert_list(one, 7, "consumer://any/a%20b&c\n");
	registryrig_unwant(one, 8, 7);
	put(rig, A "\n");
	registryrig_assert_done(one, 8, 0);
	registryrig_assert_no_more(one);
}

TEST(missing_file_lists_no_provider)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, "");
	put(rig, A "\n");
	registryrig_assert_list(one, 1, A "\n");
}

TEST(each_subscription_gets_its_own_list)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, A "\n");
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, A "\n");
	registryrig_subscribe(one, 2, "demo.Other");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_list(one, 2, "");
	put(rig, A "\n" OTHER "\n");
	registryrig_assert_list(one, 2, OTHER "\n");
	registryrig_unwant(one, 3, 2);
	put(rig, B "\n");
	registryrig_assert_done(one, 3, 0);
	registryrig_assert_list(one, 1, B "\n");
	registryrig_assert_no_more(one);
}

TEST(lines_are_read_despite_blanks_and_comments)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, "\r\n\t" A " \r\n  # " OTHER "\n \n" B);
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, A "\n" B "\n");
}

TEST(invalid_lines_are_skipped_and_logged)
{
	static const char torn[] = A "\nnonsense\ndub\0bo://h/demo.Echo\n\xff\xfe\n" B "\ndubbo://";
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	size_t size = SPOKE_URL_MAX + 100;
	char *line = malloc(size + 1);

	spokei_vfiles_put_bytes(rig->files, RIG_PATH, torn, sizeof(torn) - 1);
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, A "\n" B "\n");
	assert_int_equal(1, registryrig_events(
				    one,
				    "registry file /run/providers, line 2, byte 0: a URL begins"));
	assert_int_equal(1, registryrig_events(one, "line 3, byte 3: a control byte"));
	assert_int_equal(1, registryrig_events(one, "line 4"));
	assert_int_equal(0, registryrig_events(one, "line 5"));
	assert_int_equal(1, registryrig_events(one, "line 6"));
	assert_non_null(line);
	memset(line, 'x', size);
	memcpy(line, A "?x=", strlen(A "?x="));
	line[size] = '\0';
	put(rig, line);
	registryrig_assert_list(one, 1, "");
	assert_int_equal(1,
			 registryrig_events(one,
					    "line 1, byte 65536: a URL has at most 65536 bytes"));
	free(line);
}

TEST(only_first_invalid_lines_are_logged)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n");
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	assert_int_equal(1, registryrig_events(one, "line 8"));
	assert_int_equal(1, registryrig_events(one, "line 9"));
	assert_int_equal(1, registryrig_events(one, "ignored, like all invalid lines after it"));
	assert_int_equal(0, registryrig_events(one, "line 10"));
	registryrig_pass(rig, 60 * SECOND);
	registryrig_subscribe(one, 2, "demo.Echo");
	registryrig_pass(rig, MS);
	assert_int_equal(1, registryrig_events(one, "line 8"));
	put(rig, "10\n");
	assert_int_equal(2, registryrig_events(one, "line 1, byte 0"));
}

TEST(oversized_file_changes_nothing_until_it_shrinks)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	size_t size = 1048577;
	char *text = malloc(size + 1);

	assert_non_null(text);
	memset(text, '\n', size);
	text[size] = '\0';
	put(rig, A "\n");
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, A "\n");
	put(rig, text);
	registryrig_assert_no_more(one);
	assert_int_equal(1, registryrig_events(one, "at most 1048576 bytes"));
	registryrig_subscribe(one, 2, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 2, SPOKE_ETOOLARGE);
	text[size - 1] = '\0';
	put(rig, text);
	registryrig_assert_list(one, 1, "");
	free(text);
}

TEST(publication_replaces_older_entry)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, "# ours\n" OTHER "\n" A "?pid=1\nnonsense\n" B "\n" A "?pid=2\n" A "?version=2\n" A
		 "?group=g\nmsgpack-rpc://10.0.0.1:20880/demo.Echo");
	registryrig_publish(one, 1, "demo.Echo", A "?pid=3");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	assert_file(rig, "# ours\n" OTHER "\n" A "?pid=3\nnonsense\n" B "\n" A "?version=2\n" A
			 "?group=g\nmsgpack-rpc://10.0.0.1:20880/demo.Echo\n");
	registryrig_publish(one, 2, "demo.New", "dubbo://10.0.0.1:1/demo.New");
	registryrig_unwant(one, 3, 1);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_done(one, 3, 0);
	assert_file(rig, "# ours\n" OTHER "\nnonsense\n" B "\n" A "?version=2\n" A
			 "?group=g\nmsgpack-rpc://10.0.0.1:20880/demo.Echo\n"
			 "dubbo://10.0.0.1:1/demo.New\n");
	registryrig_pass(rig, 30 * SECOND);
	registryrig_assert_no_more(one);
}

TEST(existing_entry_is_not_written_again)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, A "\n");
	for (uint64_t intent = 1; intent <= 2; intent++) {
		registryrig_publish(one, intent, "demo.Echo", A);
		registryrig_pass(rig, MS);
		registryrig_assert_done(one, intent, 0);
		assert_int_equal(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_REPLACE), 1);
	}
}

TEST(concurrent_publications_are_both_listed)
{
	struct rig *rig = rig_with(state, 2);
	struct rig_member *one = &rig->members[0];
	struct rig_member *two = &rig->members[1];
	const char *text;

	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_publish(one, 2, "demo.Echo", A);
	registryrig_publish(two, 3, "demo.Echo", B);
	registryrig_pass(rig, 100 * MS);
	text = registryrig_text(rig);
	assert_non_null(strstr(text, A "\n"));
	assert_non_null(strstr(text, B "\n"));
	assert_int_equal(strlen(text), strlen(A "\n" B "\n"));
	registryrig_assert_done(two, 3, 0);
	registryrig_assert_no_more(two);
	assert_string_equal(one->news[one->count - 1].list, text);
	registryrig_unwant(two, 4, 3);
	registryrig_pass(rig, 100 * MS);
	assert_file(rig, A "\n");
	assert_string_equal(one->news[one->count - 1].list, A "\n");
}

TEST(foreign_lock_is_awaited_until_timeout)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	spokei_vfiles_hold(rig->files, RIG_PATH, true);
	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, SECOND);
	registryrig_assert_no_more(one);
	spokei_vfiles_hold(rig->files, RIG_PATH, false);
	registryrig_pass(rig, 25 * MS);
	registryrig_assert_done(one, 1, 0);
	spokei_vfiles_hold(rig->files, RIG_PATH, true);
	registryrig_publish(one, 2, "demo.Other", OTHER);
	registryrig_unwant(one, 3, 1);
	registryrig_pass(rig, 1900 * MS);
	registryrig_assert_no_more(one);
	registryrig_pass(rig, 300 * MS);
	registryrig_assert_done(one, 2, SPOKE_EUNAVAILABLE);
	registryrig_assert_done(one, 3, SPOKE_EUNAVAILABLE);
	assert_int_equal(1, registryrig_events(one, "locked by another process"));
	assert_file(rig, A "\n");
	registryrig_publish(one, 4, "demo.Other", OTHER);
	registryrig_pass(rig, 1900 * MS);
	registryrig_assert_no_more(one);
	registryrig_pass(rig, 300 * MS);
	registryrig_assert_done(one, 4, SPOKE_EUNAVAILABLE);
}

TEST(each_unix_socket_is_a_provider)
{
	static const char first[] = "dubbo+unix:/run/1.sock?interface=demo.Echo";
	static const char second[] = "dubbo+unix:/run/2.sock?interface=demo.Echo";
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	registryrig_publish(one, 1, "demo.Echo", first);
	registryrig_publish(one, 2, "demo.Echo", second);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_done(one, 2, 0);
	assert_file(rig, "dubbo+unix:/run/1.sock?interface=demo.Echo\n"
			 "dubbo+unix:/run/2.sock?interface=demo.Echo\n");
}

TEST(removed_line_is_reported_lost_once)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_publish(one, 2, "demo.Other", OTHER);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_done(one, 2, 0);
	/* Another program has set a weight. */
	put(rig, OTHER "\n" A "?weight=7\n");
	registryrig_assert_no_more(one);
	put(rig, OTHER "\n" B "\n");
	registryrig_assert_lost(one, 1);
	registryrig_publish(one, 3, "demo.Echo", A);
	registryrig_unwant(one, 4, 1);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 4, 0);
	registryrig_assert_done(one, 3, 0);
	assert_file(rig, OTHER "\n" B "\n" A "\n");
	spokei_vfiles_remove(rig->files, RIG_PATH);
	registryrig_pass(rig, 25 * MS);
	registryrig_assert_lost(one, 2);
	registryrig_assert_lost(one, 3);
	registryrig_pass(rig, 30 * SECOND);
	registryrig_assert_no_more(one);
}

/* The two may have the same text; either may be withdrawn, before or after the second is written.
 */
TEST(provider_stays_until_both_publications_are_withdrawn)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	uint64_t intent = 0;

	for (unsigned i = 0; i < 8; i++) {
		const uint64_t first = intent + 1;
		const char *again = i & 1 ? A "?weight=2" : A "?weight=1";
		unsigned which = i >> 1 & 1;

		registryrig_publish(one, first, "demo.Echo", A "?weight=1");
		registryrig_pass(rig, MS);
		registryrig_publish(one, first + 1, "demo.Echo", again);
		if (i & 4)
			registryrig_pass(rig, MS);
		registryrig_unwant(one, first + 2, first + which);
		registryrig_pass(rig, 30 * SECOND);
		assert_int_equal(strncmp(registryrig_text(rig), again,
					 which ? strlen(A) : strlen(again)),
				 0);
		registryrig_unwant(one, first + 3, first + 1 - which);
		registryrig_pass(rig, MS);
		assert_file(rig, "");
		intent += 4;
	}
}

TEST(entry_unwanted_before_it_was_begun_leaves_no_trace)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_unwant(one, 2, 1);
	registryrig_publish(one, 3, "demo.Echo", A);
	registryrig_unwant(one, 4, 3);
	registryrig_pass(rig, SECOND);
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_done(one, 4, 0);
	registryrig_assert_no_more(one);
	assert_null(spokei_vfiles_get(rig->files, RIG_PATH));
}

TEST(url_without_the_service_is_not_published)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, OTHER "\n");
	registryrig_publish(one, 2, "demo.Echo", OTHER);
	registryrig_assert_done(one, 2, SPOKE_EINVAL);
	assert_int_equal(registryrig_events(one, "must name its service"), 1);
	registryrig_unwant(one, 3, 2);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 3, 0);
	registryrig_assert_no_more(one);
	assert_file(rig, OTHER "\n");
}

TEST(invalid_registry_url_is_rejected_with_message)
{
	struct rig *rig = *state;
	struct rig_member *one = &rig->members[0];

	assert_int_equal(registryrig_open(one, &spokei_registry_file, "file://h/run/providers"),
			 SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(one->engine), "file:///run/spoke/providers"));
	assert_int_equal(registryrig_open(one, &spokei_registry_file, "file+unix:/run/x"),
			 SPOKE_EINVAL);
	assert_null(one->registry);
}
