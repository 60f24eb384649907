/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a registry, with failures of the disk and of allocations. */
#include "tests/cluster/registry/registryrig.h"
#include "tests/support/test.h"

#include "cluster/registry/registries.h"

#include <errno.h>
#include <string.h>

#define A "dubbo://10.0.0.1:20880/demo.Echo"
#define B "dubbo://10.0.0.2:20880/demo.Echo"

static struct rig_member *rig_one(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(registryrig_open(&rig->members[0], &spokei_registry_file, RIG_URL), 0);
	return &rig->members[0];
}

static void put(struct rig *rig, const char *text)
{
	spokei_vfiles_put(rig->files, RIG_PATH, text);
	registryrig_pass(rig, 25 * MS);
}

/* --- the disk */

FIXTURE(registryrig_set_up, registryrig_tear_down);

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

TEST(registry_survives_enomem_anywhere)
{
	struct rig *rig = *state;
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
