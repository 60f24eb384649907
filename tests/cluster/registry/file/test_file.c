/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file as a registry: listed and published providers; failures of the disk and of allocations;
 * the lines of processes that have ended, which go, and no others.
 */
#include "tests/cluster/registry/registryrig.h"
#include "tests/support/test.h"

#include "cluster/registry/registries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A "dubbo://10.0.0.1:20880/demo.Echo"
#define B "dubbo://10.0.0.2:20880/demo.Echo"
#define OTHER "dubbo://10.0.0.1:20880/demo.Other"
#define MARK "0123456789abcdef"
#define MARKED A "?lock=" MARK

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

static struct rig_member *rig_one(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(registryrig_open(&rig->members[0], &spokei_registry_file, RIG_URL), 0);
	return &rig->members[0];
}

static const char *text_of(const struct rig *rig)
{
	return spokei_vfiles_get(rig->files, RIG_PATH);
}

/* Lets a process outside of the rig live or end. */
static void let_live(struct rig *rig, bool lives)
{
	spokei_vfiles_hold(rig->files, RIG_PATH "." MARK, lives);
}

/* Returns the path of the first mark in the file, valid until the next call. */
static const char *first_mark(const struct rig *rig)
{
	static char path[80];
	const char *at = strstr(text_of(rig), "lock=");

	assert_non_null(at);
	(void)snprintf(path, sizeof(path), RIG_PATH ".%.16s", at + 5);
	return path;
}

static bool is_held(struct rig *rig, const char *path)
{
	const struct spoke_env *env = &rig->members[1].process.env;

	return env->files->is_locked(env->ctx, path) == 1;
}

static void subscribe(struct rig *rig, struct rig_member *one, const char *list)
{
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, list);
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

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

RIG_TEST(invalid_registry_url_is_rejected_with_message)
{
	struct rig_member *one = &rig->members[0];

	assert_int_equal(registryrig_open(one, &spokei_registry_file, "file://h/run/providers"),
			 SPOKE_EINVAL);
	assert_non_null(strstr(spoke_engine_why(one->engine), "file:///run/spoke/providers"));
	assert_int_equal(registryrig_open(one, &spokei_registry_file, "file+unix:/run/x"),
			 SPOKE_EINVAL);
	assert_null(one->registry);
}

/* --- the disk */

TEST(unreadable_file_fails_first_and_later_changes_nothing)
{
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);

	put(rig, A "\n");
	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_READ, 1, -EACCES);
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, SPOKE_ESYSTEM);
	registryrig_assert_no_more(one);
	assert_int_equal(
		1,
		registryrig_events(one, "registry file /run/providers cannot be read: Permission"));
	assert_int_equal(1, registryrig_events(one, "allow this process to read"));
	registryrig_subscribe(one, 2, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_list(one, 2, A "\n");
	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_READ, 3, -EIO);
	put(rig, B "\n");
	registryrig_assert_no_more(one);
	registryrig_pass(rig, 4 * SECOND);
	registryrig_assert_list(one, 2, B "\n");
	registryrig_assert_no_more(one);
}

TEST(unwritable_file_fails_request)
{
	static const enum spokei_vfiles_call calls[] = { SPOKEI_VFILES_LOCK, SPOKEI_VFILES_READ,
							 SPOKEI_VFILES_REPLACE };
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);

	put(rig, B "\n");
	for (unsigned i = 0; i < 3; i++) {
		spokei_vfiles_fail(rig->files, calls[i], 1, -EROFS);
		registryrig_publish(one, 10 + i, "demo.Echo", A);
		registryrig_pass(rig, MS);
		registryrig_assert_done(one, 10 + i, SPOKE_ESYSTEM);
		assert_string_equal(spokei_vfiles_get(rig->files, RIG_PATH), B "\n");
		assert_int_equal(one->faulty.fds, 0);
	}
	assert_int_equal(1, registryrig_events(one, "cannot be locked: Read-only"));
	assert_int_equal(1, registryrig_events(one, "cannot be replaced: Read-only"));
	registryrig_publish(one, 20, "demo.Echo", A);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 20, 0);
	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_REPLACE, 1, -ENOSPC);
	registryrig_unwant(one, 21, 20);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 21, SPOKE_ESYSTEM);
	registryrig_pass(rig, SECOND);
	registryrig_assert_no_more(one);
	assert_int_equal(one->faulty.fds, 0);
}

TEST(full_file_rejects_publications)
{
	static char text[1048576 - 40];
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);

	memset(text, '\n', sizeof(text) - 1);
	spokei_vfiles_put(rig->files, RIG_PATH, text);
	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_publish(one, 2, "e", "dubbo://h/e");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, SPOKE_ETOOLARGE);
	registryrig_assert_done(one, 2, 0);
	assert_int_equal(1, registryrig_events(one, "is full"));
	assert_int_equal(strlen(spokei_vfiles_get(rig->files, RIG_PATH)), sizeof(text) - 1 + 34);
}

TEST(changes_are_seen_within_1_s_without_watch)
{
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);

	put(rig, A "\n");
	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_WATCH, 2, -EMFILE);
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, A "\n");
	put(rig, "");
	registryrig_assert_no_more(one);
	registryrig_pass(rig, SECOND);
	registryrig_assert_list(one, 1, "");
	/* The third attempt succeeds. */
	registryrig_pass(rig, SECOND);
	put(rig, B "\n");
	registryrig_assert_list(one, 1, B "\n");
}

TEST(missing_folder_is_reported_once_and_found_when_it_comes)
{
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);

	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_WATCH, 5, -ENOENT);
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, 4 * SECOND);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, "");
	assert_int_equal(registryrig_events(
				 one,
				 "cannot be read: No such file or directory; create its directory"),
			 1);
	registryrig_pass(rig, 2 * SECOND);
	put(rig, A "\n");
	registryrig_assert_list(one, 1, A "\n");
	assert_int_equal(registryrig_events(one, "create its directory"), 1);
}

TEST(unreported_changes_are_seen_within_10_s)
{
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);

	put(rig, A "\n");
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, A "\n");
	spokei_vfiles_mute(rig->files, true);
	put(rig, B "\n");
	registryrig_pass(rig, 5 * SECOND);
	registryrig_assert_no_more(one);
	registryrig_pass(rig, 5 * SECOND);
	registryrig_assert_list(one, 1, B "\n");
}

TEST(missing_file_is_polled_every_second)
{
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);

	spokei_vfiles_mute(rig->files, true);
	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_pass(rig, 5 * SECOND);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, "");
	put(rig, A "\n");
	registryrig_pass(rig, SECOND);
	registryrig_assert_list(one, 1, A "\n");
}

TEST(file_is_not_polled_without_requests)
{
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);
	unsigned reads;

	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_publish(one, 2, "demo.Echo", A);
	registryrig_pass(rig, 10 * MS);
	assert_int_equal(one->faulty.fds, 2); /* the watch and the mark */
	registryrig_unwant(one, 3, 1);
	registryrig_unwant(one, 4, 2);
	registryrig_pass(rig, 10 * MS);
	assert_int_equal(one->faulty.fds, 0);
	reads = spokei_vfiles_calls(rig->files, SPOKEI_VFILES_READ);
	put(rig, B "\n");
	registryrig_pass(rig, 60 * SECOND);
	assert_int_equal(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_READ), reads);
}

/* --- its user */

TEST(close_drops_pending_results)
{
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);

	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_publish(one, 2, "demo.Echo", A);
	registryrig_close(one);
	registryrig_pass(rig, SECOND);
	registryrig_assert_no_more(one);
	assert_null(spokei_vfiles_get(rig->files, RIG_PATH));
}

TEST(change_before_withdrawal_is_not_reported)
{
	struct rig *rig = *state;
	struct rig_member *one = rig_one(state);

	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_publish(one, 2, "demo.Echo", A);
	registryrig_pass(rig, 10 * MS);
	one->count = 0;
	spokei_vfiles_put(rig->files, RIG_PATH, B "\n");
	registryrig_pass(rig, 10 * MS);
	/* The file has changed but has not been read yet. */
	registryrig_unwant(one, 3, 1);
	registryrig_unwant(one, 4, 2);
	registryrig_pass(rig, SECOND);
	registryrig_assert_done(one, 3, 0);
	registryrig_assert_done(one, 4, 0);
	registryrig_assert_no_more(one);
	assert_string_equal(spokei_vfiles_get(rig->files, RIG_PATH), B "\n");
}

/* --- memory */

/* Repeats a request until it succeeds. Returns its number. */
static uint64_t insist(struct rig *rig, struct rig_member *one, bool publishes, uint64_t *last)
{
	for (unsigned tries = 0; tries < 10; tries++) {
		uint64_t number = ++*last;

		if (publishes)
			registryrig_publish(one, number, "demo.Echo", A);
		else
			registryrig_subscribe(one, number, "demo.Echo");
		registryrig_pass(rig, 30 * MS);
		for (unsigned i = 0; i < one->count; i++)
			if (one->news[i].kind == RIG_DONE && one->news[i].number == number &&
			    one->news[i].error == 0)
				return number;
	}
	fail_msg("it is not done after all");
	return 0;
}

static const char *last_list(const struct rig_member *one)
{
	for (unsigned i = one->count; i > 0; i--)
		if (one->news[i - 1].kind == RIG_LIST)
			return one->news[i - 1].list;
	return NULL;
}

static bool was_lost(const struct rig_member *one, uint64_t number)
{
	for (unsigned i = 0; i < one->count; i++)
		if (one->news[i].kind == RIG_LOST && one->news[i].number == number)
			return true;
	return false;
}

/* Whichever allocation fails, every request succeeds in the end and nothing leaks. */
static void play_without_memory(struct rig *rig, struct rig_member *one, uint64_t nth)
{
	uint64_t last = 0;
	uint64_t published;

	spokei_vfiles_put(rig->files, RIG_PATH, B "\n");
	one->count = 0;
	spokei_faults_fail(&one->faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
	if (registryrig_open(one, &spokei_registry_file, RIG_URL) != 0) {
		one->registry = NULL;
		assert_int_equal(registryrig_open(one, &spokei_registry_file, RIG_URL), 0);
	}
	(void)insist(rig, one, false, &last);
	published = insist(rig, one, true, &last);
	registryrig_pass(rig, 2 * SECOND);
	assert_string_equal(registryrig_text(rig), B "\n" A "\n");
	assert_string_equal(last_list(one), B "\n" A "\n");
	spokei_vfiles_put(rig->files, RIG_PATH, B "\n");
	registryrig_pass(rig, 12 * SECOND);
	assert_true(was_lost(one, published));
	assert_string_equal(last_list(one), B "\n");
	published = insist(rig, one, true, &last);
	registryrig_unwant(one, ++last, published);
	registryrig_pass(rig, 2 * SECOND);
	registryrig_close(one);
	registryrig_pass(rig, MS);
	spokei_faults_heal(&one->faulty);
}

RIG_TEST(registry_survives_enomem_anywhere)
{
	struct rig_member *one = &rig->members[0];
	size_t blocks = one->faulty.blocks;
	uint64_t nth = 0;
	uint64_t before;

	do {
		before = one->faulty.failed[SPOKEI_FAULTS_MEMORY];
		play_without_memory(rig, one, ++nth);
		assert_int_equal(one->faulty.blocks, blocks);
		assert_int_equal(one->faulty.fds, 0);
	} while (one->faulty.failed[SPOKEI_FAULTS_MEMORY] > before);
	assert_true(nth > 30);
}

/* --- processes that have ended */

TEST(line_of_ended_process_is_unlisted_and_removed)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	let_live(rig, true);
	put(rig, "# ours\n" MARKED "\n" B "\n");
	subscribe(rig, one, A "\n" B "\n");
	registryrig_pass(rig, 30 * SECOND);
	registryrig_assert_no_more(one);
	let_live(rig, false);
	registryrig_pass(rig, 10 * SECOND);
	registryrig_assert_list(one, 1, B "\n");
	assert_string_equal(text_of(rig), "# ours\n" B "\n");
	assert_int_equal(1,
			 registryrig_events(one,
					    "removed the lines of processes that have ended: 1"));
	registryrig_pass(rig, 30 * SECOND);
	registryrig_assert_no_more(one);
	assert_int_equal(one->faulty.fds, 1);
	assert_true(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_SWEEP) > 0);
}

TEST(publisher_removes_lines_of_ended_processes)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, MARKED "\n" B "?lock=" MARK "\n");
	registryrig_publish(one, 1, "demo.Other", OTHER);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	assert_string_equal(registryrig_text(rig), OTHER "\n");
	assert_int_equal(1, registryrig_events(one, "that have ended: 2"));
	assert_int_equal(1, registryrig_events(one, "for the processes of this machine only"));
}

TEST(line_without_mark_stays)
{
	static const char text[] = A "\n" B "?pid=1&lock=0123\n" B "?version=1&lock=" MARK "0\n" B
				     "?version=2&lock=0123456789ABCDEF\n" B "?version=3&xlock=" MARK
				     "\nlock=" MARK "\n";
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, text);
	registryrig_subscribe(one, 1, "demo.None");
	registryrig_publish(one, 2, "demo.Other", OTHER);
	registryrig_pass(rig, 60 * SECOND);
	assert_memory_equal(text_of(rig), text, sizeof(text) - 1);
}

TEST(process_that_may_live_is_not_removed)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, MARKED "\n");
	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_IS_LOCKED, 1000, -EACCES);
	subscribe(rig, one, A "\n");
	registryrig_pass(rig, 60 * SECOND);
	registryrig_assert_no_more(one);
	assert_string_equal(text_of(rig), MARKED "\n");
}

TEST(reader_without_permission_leaves_lines_out_quietly)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	unsigned reads;

	let_live(rig, true);
	put(rig, MARKED "\n" B "\n");
	subscribe(rig, one, A "\n" B "\n");
	let_live(rig, false);
	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_LOCK, 1, -EACCES);
	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_REPLACE, 1000, -EACCES);
	reads = spokei_vfiles_calls(rig->files, SPOKEI_VFILES_READ);
	registryrig_pass(rig, 60 * SECOND);
	registryrig_assert_list(one, 1, B "\n");
	registryrig_assert_no_more(one);
	assert_string_equal(text_of(rig), MARKED "\n" B "\n");
	assert_int_equal(0, registryrig_events(one, "cannot be"));
	assert_true(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_READ) < reads + 20);
	let_live(rig, true);
	registryrig_pass(rig, 10 * SECOND);
	registryrig_assert_list(one, 1, A "\n" B "\n");
}

TEST(foreign_lock_does_not_disturb_readers)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, MARKED "\n" B "\n");
	spokei_vfiles_hold(rig->files, RIG_PATH, true);
	subscribe(rig, one, B "\n");
	registryrig_pass(rig, 9 * SECOND);
	assert_int_equal(0, registryrig_events(one, "locked by another process"));
	assert_string_equal(text_of(rig), MARKED "\n" B "\n");
	spokei_vfiles_hold(rig->files, RIG_PATH, false);
	registryrig_pass(rig, 2 * SECOND);
	assert_string_equal(text_of(rig), B "\n");
	registryrig_assert_no_more(one);
}

TEST(mark_is_held_while_something_is_published)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	char path[80];

	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_publish(one, 2, "demo.Other", OTHER "?weight=1");
	registryrig_pass(rig, MS);
	(void)snprintf(path, sizeof(path), "%s", first_mark(rig));
	assert_true(is_held(rig, path));
	assert_non_null(strstr(text_of(rig), OTHER "?weight=1&lock="));
	registryrig_unwant(one, 3, 1);
	registryrig_pass(rig, MS);
	assert_string_equal(first_mark(rig), path);
	assert_true(is_held(rig, path));
	registryrig_unwant(one, 4, 2);
	registryrig_pass(rig, 25 * MS);
	assert_string_equal(text_of(rig), "");
	assert_false(is_held(rig, path));
}

TEST(closed_registry_loses_its_lines)
{
	struct rig *rig = rig_with(state, 2);
	struct rig_member *one = &rig->members[0];
	struct rig_member *two = &rig->members[1];

	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, MS);
	subscribe(rig, two, A "\n");
	registryrig_close(one);
	registryrig_pass(rig, 10 * SECOND);
	registryrig_assert_list(two, 1, "");
	assert_string_equal(text_of(rig), "");
}

TEST(line_of_living_process_survives_other_publishers)
{
	struct rig *rig = rig_with(state, 2);
	struct rig_member *one = &rig->members[0];
	struct rig_member *two = &rig->members[1];

	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, MS);
	registryrig_publish(two, 1, "demo.Echo", B);
	registryrig_pass(rig, 60 * SECOND);
	assert_string_equal(registryrig_text(rig), A "\n" B "\n");
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_no_more(one);
}

TEST(mark_whose_file_was_removed_is_taken_again)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	char path[80];

	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	(void)snprintf(path, sizeof(path), "%s", first_mark(rig));
	spokei_vfiles_break(rig->files, path);
	registryrig_publish(one, 2, "demo.Other", OTHER);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 2, 0);
	assert_string_equal(registryrig_text(rig), A "\n" OTHER "\n");
	assert_true(is_held(rig, path));
	/* A registry that only waits notices by its next look. */
	spokei_vfiles_break(rig->files, path);
	registryrig_pass(rig, 10 * SECOND);
	registryrig_assert_lost(one, 1);
	registryrig_assert_lost(one, 2);
	registryrig_publish(one, 3, "demo.Echo", A);
	registryrig_pass(rig, 30 * SECOND);
	registryrig_assert_done(one, 3, 0);
	registryrig_assert_no_more(one);
	assert_true(is_held(rig, first_mark(rig)));
}

TEST(mark_that_cannot_be_locked_fails_publication)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	spokei_faults_fail(&one->faulty, SPOKEI_FAULTS_FILE_LOCK, 2, -EMFILE, false);
	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, SPOKE_ESYSTEM);
	assert_int_equal(1, registryrig_events(one, "cannot be marked: "));
	assert_int_equal(1, registryrig_events(one, strerror(EMFILE)));
	assert_null(text_of(rig));
	assert_int_equal(one->faulty.fds, 0);
	registryrig_publish(one, 2, "demo.Echo", A);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 2, 0);
	assert_true(is_held(rig, first_mark(rig)));
}

TEST(listed_urls_are_without_marks)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	let_live(rig, true);
	put(rig, MARKED "\n");
	subscribe(rig, one, A "\n");
	put(rig, MARKED "&a=1\n");
	registryrig_assert_list(one, 1, A "?a=1\n");
	put(rig, A "?a=1&lock=" MARK "&b=2\n");
	registryrig_assert_list(one, 1, A "?a=1&b=2\n");
	put(rig, A "?a=1&b=2&lock=" MARK "\n");
	registryrig_assert_no_more(one);
}

TEST(longest_url_is_published_without_mark)
{
	static char url[SPOKE_URL_MAX + 1];
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	memset(url, 'x', sizeof(url) - 1);
	memcpy(url, A "?x=", strlen(A "?x="));
	registryrig_publish(one, 1, "demo.Echo", url);
	registryrig_pass(rig, 30 * SECOND);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_no_more(one);
	assert_int_equal(strlen(text_of(rig)), SPOKE_URL_MAX + 1);
	url[SPOKE_URL_MAX - 22] = '\0';
	registryrig_publish(one, 2, "demo.Echo", url);
	registryrig_pass(rig, 30 * SECOND);
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_no_more(one);
	assert_true(is_held(rig, first_mark(rig)));
}

TEST(many_processes_are_told_apart)
{
	enum {
		LINES = 200
	};
	static char text[LINES * 80];
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	size_t len = 0;
	char path[80];

	for (unsigned i = 0; i < LINES; i++) {
		(void)snprintf(path, sizeof(path), RIG_PATH ".%016x", i);
		spokei_vfiles_hold(rig->files, path, i == LINES / 2);
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"dubbo://10.0.0.1:%u/demo.Echo?lock=%016x\n", 1000 + i, i);
	}
	put(rig, text);
	subscribe(rig, one, "dubbo://10.0.0.1:1100/demo.Echo\n");
	registryrig_pass(rig, SECOND);
	assert_string_equal(registryrig_text(rig), "dubbo://10.0.0.1:1100/demo.Echo\n");
}
