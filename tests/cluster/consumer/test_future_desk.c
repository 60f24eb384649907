/* SPDX-License-Identifier: Apache-2.0 */
/* The desk: the queue through which futures of other threads reach their consumer. */
#include "futurerig.h"
#include "tests/support/test.h"

#include "core/engine/desk.h"

#include <spoke/host.h>

struct stand {
	struct spoke_env env;
	unsigned forks;
	struct spoke_engine *engine;
	_Atomic(struct spokei_desk *) place;
	struct spokei_desk *desk;
};

static void set_up(struct stand *stand)
{
	struct spoke_engine_options options = { .env = &stand->env };

	*stand = (struct stand){ .env = *spoke_host_env() };
	stand->env.forks = &stand->forks;
	assert_int_equal(spoke_engine_new(&options, &stand->engine), SPOKE_OK);
	stand->desk = spokei_desk_get(&stand->place, stand->engine);
	assert_non_null(stand->desk);
}

static void tear_down(struct stand *stand)
{
	spokei_desk_drop(stand->desk);
	spokei_desk_drop(atomic_load(&stand->place));
	spoke_engine_free(stand->engine);
}

TEST(all_futures_share_one_desk)
{
	struct stand stand;
	struct spokei_desk *again;

	set_up(&stand);
	again = spokei_desk_get(&stand.place, stand.engine);
	assert_ptr_equal(again, stand.desk);
	spokei_desk_drop(again);
	spokei_desk_drop(NULL);
	tear_down(&stand);
}

TEST(desk_closes_after_last_thread_has_left)
{
	struct stand stand;

	set_up(&stand);
	assert_true(spokei_desk_enter(stand.desk));
	assert_true(spokei_desk_enter(stand.desk));
	assert_false(spokei_desk_close(stand.desk));
	assert_true(spokei_desk_closed(stand.desk));
	assert_false(spokei_desk_enter(stand.desk));
	spokei_desk_leave(stand.desk);
	assert_false(spokei_desk_close(stand.desk));
	spokei_desk_leave(stand.desk);
	assert_true(spokei_desk_close(stand.desk));
	assert_false(spokei_desk_enter(stand.desk));
	assert_true(spokei_desk_close(NULL));
	tear_down(&stand);
}

TEST(closing_thread_counts_as_engine_thread)
{
	struct stand stand;

	set_up(&stand);
	assert_false(spokei_desk_here(stand.desk));
	assert_true(spokei_desk_close(stand.desk));
	assert_true(spokei_desk_here(stand.desk));
	tear_down(&stand);
}

TEST(desk_of_forked_child_waits_for_no_thread)
{
	struct stand stand;

	set_up(&stand);
	assert_true(spokei_desk_enter(stand.desk));
	assert_false(spokei_desk_forked(stand.desk));
	stand.forks++;
	assert_true(spokei_desk_forked(stand.desk));
	assert_true(spokei_desk_close(stand.desk));
	tear_down(&stand);
}
