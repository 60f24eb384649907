/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a registry: its writes, which a thread of the pool makes while the engine goes on. */
#include "tests/cluster/registry/registryrig.h"
#include "tests/support/test.h"

#include "cluster/registry/registries.h"

#include <errno.h>
#include <stdio.h>
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

static void assert_file(struct rig *rig, const char *text)
{
	assert_string_equal(registryrig_text(rig), text);
}

static const char *text_of(const struct rig *rig)
{
	return spokei_vfiles_get(rig->files, RIG_PATH);
}

static bool is_held(struct rig *rig, const char *path)
{
	const struct spoke_env *env = &rig->members[1].process.env;

	return env->files->is_locked(env->ctx, path) == 1;
}

/* Returns whether a process lives that wrote the first line of the file. */
static bool is_marked(struct rig *rig)
{
	char path[80];
	const char *at = strstr(text_of(rig), "lock=");

	assert_non_null(at);
	(void)snprintf(path, sizeof(path), RIG_PATH ".%.16s", at + 5);
	return is_held(rig, path);
}

FIXTURE(registryrig_set_up, registryrig_tear_down);

/* Lets the pool begin the works that wait, or keeps them waiting. */
static void hold_pool(struct rig *rig, struct rig_member *one, bool held)
{
	one->process.pool_is_busy = held;
	one->process.env.loop->wake(one->process.loop);
	registryrig_pass(rig, MS);
}

TEST(slow_disk_holds_up_no_turn)
{
	const struct spokei_vfiles_harm harm = { .sync_is_slow = 1, .slow_ns = SECOND };
	struct rig *rig = rig_with(state, 2);
	struct rig_member *one = &rig->members[0];
	struct rig_member *two = &rig->members[1];

	spokei_vfiles_harm(rig->files, 1, &harm);
	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, SECOND / 2);
	registryrig_publish(two, 2, "demo.Echo", B);
	registryrig_pass(rig, SECOND / 4);
	registryrig_assert_no_more(one);
	assert_true(is_held(rig, RIG_PATH));
	registryrig_pass(rig, SECOND / 2);
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_no_more(two);
	registryrig_pass(rig, SECOND);
	registryrig_assert_done(two, 2, 0);
	assert_file(rig, A "\n" B "\n");
	assert_int_equal(one->process.held_until_ns + two->process.held_until_ns, 0);
	spokei_vfiles_harm(rig->files, 1, NULL);
}

TEST(change_that_comes_during_a_write_is_written_next)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	hold_pool(rig, one, true);
	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_publish(one, 2, "demo.Echo", B);
	registryrig_pass(rig, MS);
	registryrig_unwant(one, 3, 1);
	registryrig_publish(one, 4, "demo.Other", OTHER);
	registryrig_pass(rig, SECOND);
	registryrig_assert_no_more(one);
	hold_pool(rig, one, false);
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_done(one, 3, 0);
	registryrig_assert_done(one, 4, 0);
	registryrig_assert_no_more(one);
	assert_file(rig, B "\n" OTHER "\n");
	assert_int_equal(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_REPLACE), 2);
	assert_false(is_held(rig, RIG_PATH));
}

TEST(provider_withdrawn_during_a_failed_write_is_gone)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	hold_pool(rig, one, true);
	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, MS);
	registryrig_unwant(one, 2, 1);
	registryrig_pass(rig, MS);
	registryrig_assert_no_more(one);
	spokei_vfiles_fail(rig->files, SPOKEI_VFILES_REPLACE, 1, -EROFS);
	hold_pool(rig, one, false);
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_no_more(one);
	assert_null(text_of(rig));
	assert_false(is_held(rig, RIG_PATH));
	assert_int_equal(registryrig_events(one, "cannot be replaced"), 1);
}

TEST(provider_wanted_again_during_its_removal_is_published)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, MS);
	registryrig_assert_done(one, 1, 0);
	hold_pool(rig, one, true);
	registryrig_unwant(one, 2, 1);
	registryrig_pass(rig, MS);
	registryrig_publish(one, 3, "demo.Echo", A);
	hold_pool(rig, one, false);
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_done(one, 3, 0);
	assert_file(rig, A "\n");
	assert_true(is_marked(rig));
}

TEST(write_goes_on_after_the_close_of_its_registry)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	hold_pool(rig, one, true);
	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, MS);
	registryrig_close(one);
	registryrig_pass(rig, SECOND);
	assert_true(is_held(rig, RIG_PATH));
	hold_pool(rig, one, false);
	assert_file(rig, A "\n");
	assert_false(is_held(rig, RIG_PATH));
	assert_false(is_marked(rig));
}

TEST(write_that_has_not_begun_ends_with_the_engine)
{
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];

	hold_pool(rig, one, true);
	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, MS);
	registryrig_close(one);
	spoke_engine_free(one->engine);
	one->engine = NULL;
	assert_null(text_of(rig));
	assert_false(is_held(rig, RIG_PATH));
}

static void no_work(struct spoke_work *work)
{
	(void)work;
}

TEST(full_pool_is_asked_for_2_s)
{
	static struct spoke_work other = { .run = no_work, .done = no_work };
	struct rig *rig = rig_with(state, 1);
	struct rig_member *one = &rig->members[0];
	const struct spoke_loop *loop = one->process.env.loop;

	hold_pool(rig, one, true);
	loop->pool_limit(one->process.loop, 1, 1);
	assert_int_equal(loop->offload(one->process.loop, &other), 0);
	registryrig_publish(one, 1, "demo.Echo", A);
	registryrig_pass(rig, SECOND);
	registryrig_assert_no_more(one);
	assert_false(is_held(rig, RIG_PATH));
	registryrig_pass(rig, SECOND + 100 * MS);
	registryrig_assert_done(one, 1, SPOKE_EUNAVAILABLE);
	assert_int_equal(registryrig_events(one, "the pool has been full for 2 s"), 1);
	hold_pool(rig, one, false);
	assert_null(text_of(rig));
}
