/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a registry: the lines of processes that have ended go, and no others. */
#include "tests/cluster/registry/registryrig.h"

#include "cluster/registry/file/file.h"

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
		assert_int_equal(rig_open(&rig->members[i], &spokei_registry_file, RIG_URL), 0);
	return rig;
}

static void put(struct rig *rig, const char *text)
{
	spokei_vfiles_put(rig->files, RIG_PATH, text);
	rig_pass(rig, 25 * MS);
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
	assert_int_equal(rig_subscribe(one, 1, "demo.Echo"), 0);
	rig_pass(rig, MS);
	rig_assert_done(one, 1, 0);
	rig_assert_list(one, 1, list);
}

static void line_of_ended_process_is_unlisted_and_removed(void **state)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	let_live(rig, true);
	put(rig, "# ours\n" MARKED "\n" B "\n");
	subscribe(rig, one, A "\n" B "\n");
	rig_pass(rig, 30 * SECOND);
	rig_assert_no_more(one);
	let_live(rig, false);
	rig_pass(rig, 10 * SECOND);
	rig_assert_list(one, 1, B "\n");
	assert_string_equal(text_of(rig), "# ours\n" B "\n");
	assert_int_equal(1, rig_events(one, "removed the lines of processes that have ended: 1"));
	rig_pass(rig, 30 * SECOND);
	rig_assert_no_more(one);
	assert_int_equal(one->faulty.fds, 1);
	assert_true(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_SWEEP) > 0);
}

static void publisher_removes_lines_of_ended_processes(void **state)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, MARKED "\n" B "?lock=" MARK "\n");
	assert_int_equal(rig_publish(one, 1, "demo.Other", OTHER), 0);
	rig_pass(rig, MS);
	rig_assert_done(one, 1, 0);
	assert_string_equal(rig_text(rig), OTHER "\n");
	assert_int_equal(1, rig_events(one, "that have ended: 2"));
	assert_int_equal(1, rig_events(one, "for the processes of this machine only"));
}

static void line_without_mark_stays(void **state)
{
	static const char text[] = A "\n" B "?pid=1&lock=0123\n" B "?version=1&lock=" MARK "0\n" B
				     "?version=2&lock=0123456789ABCDEF\n" B "?version=3&xlock=" MARK
				     "\nlock=" MARK "\n";
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, text);
	assert_int_equal(rig_subscribe(one, 1, "demo.None"), 0);
	assert_int_equal(rig_publish(one, 2, "demo.Other", OTHER), 0);
	rig_pass(rig, 60 * SECOND);
	assert_memory_equal(text_of(rig), text, sizeof(text) - 1);
}

static void process_that_may_live_is_not_removed(void **state)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, MARKED "\n");
	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_IS_LOCKED, 1000, -EACCES);
	subscribe(rig, one, A "\n");
	rig_pass(rig, 60 * SECOND);
	rig_assert_no_more(one);
	assert_string_equal(text_of(rig), MARKED "\n");
}

static void reader_without_permission_leaves_lines_out_quietly(void **state)
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
	rig_pass(rig, 60 * SECOND);
	rig_assert_list(one, 1, B "\n");
	rig_assert_no_more(one);
	assert_string_equal(text_of(rig), MARKED "\n" B "\n");
	assert_int_equal(0, rig_events(one, "cannot be"));
	assert_true(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_READ) < reads + 20);
	let_live(rig, true);
	rig_pass(rig, 10 * SECOND);
	rig_assert_list(one, 1, A "\n" B "\n");
}

static void foreign_lock_does_not_disturb_readers(void **state)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	put(rig, MARKED "\n" B "\n");
	spokei_vfiles_hold(rig->files, RIG_PATH, true);
	subscribe(rig, one, B "\n");
	rig_pass(rig, 9 * SECOND);
	assert_int_equal(0, rig_events(one, "locked by another process"));
	assert_string_equal(text_of(rig), MARKED "\n" B "\n");
	spokei_vfiles_hold(rig->files, RIG_PATH, false);
	rig_pass(rig, 2 * SECOND);
	assert_string_equal(text_of(rig), B "\n");
	rig_assert_no_more(one);
}

static void mark_is_held_while_something_is_published(void **state)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	char path[80];

	assert_int_equal(rig_publish(one, 1, "demo.Echo", A), 0);
	assert_int_equal(rig_publish(one, 2, "demo.Other", OTHER "?weight=1"), 0);
	rig_pass(rig, MS);
	(void)snprintf(path, sizeof(path), "%s", first_mark(rig));
	assert_true(is_held(rig, path));
	assert_non_null(strstr(text_of(rig), OTHER "?weight=1&lock="));
	assert_int_equal(rig_withdraw(one, 3, 1), 0);
	rig_pass(rig, MS);
	assert_string_equal(first_mark(rig), path);
	assert_true(is_held(rig, path));
	assert_int_equal(rig_withdraw(one, 4, 2), 0);
	rig_pass(rig, 25 * MS);
	assert_string_equal(text_of(rig), "");
	assert_false(is_held(rig, path));
}

static void closed_registry_loses_its_lines(void **state)
{
	struct rig *rig = rig_with(state, 2);
	struct rig_member *one = &rig->members[0];
	struct rig_member *two = &rig->members[1];

	assert_int_equal(rig_publish(one, 1, "demo.Echo", A), 0);
	rig_pass(rig, MS);
	subscribe(rig, two, A "\n");
	rig_close(one);
	rig_pass(rig, 10 * SECOND);
	rig_assert_list(two, 1, "");
	assert_string_equal(text_of(rig), "");
}

static void line_of_living_process_survives_other_publishers(void **state)
{
	struct rig *rig = rig_with(state, 2);
	struct rig_member *one = &rig->members[0];
	struct rig_member *two = &rig->members[1];

	assert_int_equal(rig_publish(one, 1, "demo.Echo", A), 0);
	rig_pass(rig, MS);
	assert_int_equal(rig_publish(two, 1, "demo.Echo", B), 0);
	rig_pass(rig, 60 * SECOND);
	assert_string_equal(rig_text(rig), A "\n" B "\n");
	rig_assert_done(one, 1, 0);
	rig_assert_no_more(one);
}

static void mark_whose_file_was_removed_is_taken_again(void **state)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	char path[80];

	assert_int_equal(rig_publish(one, 1, "demo.Echo", A), 0);
	rig_pass(rig, MS);
	rig_assert_done(one, 1, 0);
	(void)snprintf(path, sizeof(path), "%s", first_mark(rig));
	spokei_vfiles_break(rig->files, path);
	assert_int_equal(rig_publish(one, 2, "demo.Other", OTHER), 0);
	rig_pass(rig, MS);
	rig_assert_done(one, 2, 0);
	assert_string_equal(rig_text(rig), A "\n" OTHER "\n");
	assert_true(is_held(rig, path));
	/* A registry that only waits notices by its next look. */
	spokei_vfiles_break(rig->files, path);
	rig_pass(rig, 10 * SECOND);
	rig_assert_lost(one, 1);
	rig_assert_lost(one, 2);
	assert_int_equal(rig_publish(one, 3, "demo.Echo", A), 0);
	rig_pass(rig, 30 * SECOND);
	rig_assert_done(one, 3, 0);
	rig_assert_no_more(one);
	assert_true(is_held(rig, first_mark(rig)));
}

static void mark_that_cannot_be_locked_fails_publication(void **state)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	spokei_faults_fail(&one->faulty, SPOKEI_FAULTS_FILE_LOCK, 2, -EMFILE, false);
	assert_int_equal(rig_publish(one, 1, "demo.Echo", A), 0);
	rig_pass(rig, MS);
	rig_assert_done(one, 1, SPOKE_ESYSTEM);
	assert_int_equal(1, rig_events(one, "cannot be marked: "));
	assert_int_equal(1, rig_events(one, strerror(EMFILE)));
	assert_null(text_of(rig));
	assert_int_equal(one->faulty.fds, 0);
	assert_int_equal(rig_publish(one, 2, "demo.Echo", A), 0);
	rig_pass(rig, MS);
	rig_assert_done(one, 2, 0);
	assert_true(is_held(rig, first_mark(rig)));
}

static void listed_urls_are_without_marks(void **state)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	let_live(rig, true);
	put(rig, MARKED "\n");
	subscribe(rig, one, A "\n");
	put(rig, MARKED "&a=1\n");
	rig_assert_list(one, 1, A "?a=1\n");
	put(rig, A "?a=1&lock=" MARK "&b=2\n");
	rig_assert_list(one, 1, A "?a=1&b=2\n");
	put(rig, A "?a=1&b=2&lock=" MARK "\n");
	rig_assert_no_more(one);
}

static void longest_url_is_published_without_mark(void **state)
{
	static char url[SPOKE_URL_MAX + 1];
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	memset(url, 'x', sizeof(url) - 1);
	memcpy(url, A "?x=", strlen(A "?x="));
	assert_int_equal(rig_publish(one, 1, "demo.Echo", url), 0);
	rig_pass(rig, 30 * SECOND);
	rig_assert_done(one, 1, 0);
	rig_assert_no_more(one);
	assert_int_equal(strlen(text_of(rig)), SPOKE_URL_MAX + 1);
	url[SPOKE_URL_MAX - 22] = '\0';
	assert_int_equal(rig_publish(one, 2, "demo.Echo", url), 0);
	rig_pass(rig, 30 * SECOND);
	rig_assert_done(one, 2, 0);
	rig_assert_no_more(one);
	assert_true(is_held(rig, first_mark(rig)));
}

static void many_processes_are_told_apart(void **state)
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
	rig_pass(rig, SECOND);
	assert_string_equal(rig_text(rig), "dubbo://10.0.0.1:1100/demo.Echo\n");
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, rig_set_up, rig_tear_down)
	const struct CMUnitTest tests[] = {
		CASE(line_of_ended_process_is_unlisted_and_removed),
		CASE(publisher_removes_lines_of_ended_processes),
		CASE(line_without_mark_stays),
		CASE(process_that_may_live_is_not_removed),
		CASE(reader_without_permission_leaves_lines_out_quietly),
		CASE(foreign_lock_does_not_disturb_readers),
		CASE(mark_is_held_while_something_is_published),
		CASE(closed_registry_loses_its_lines),
		CASE(line_of_living_process_survives_other_publishers),
		CASE(mark_whose_file_was_removed_is_taken_again),
		CASE(mark_that_cannot_be_locked_fails_publication),
		CASE(listed_urls_are_without_marks),
		CASE(longest_url_is_published_without_mark),
		CASE(many_processes_are_told_apart),
	};

	return cmocka_run_group_tests_name("registry_file_marks", tests, NULL, NULL);
}
