/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a registry: the lines of processes that have ended go, and no others. */
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

FIXTURE(registryrig_set_up, registryrig_tear_down);

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
