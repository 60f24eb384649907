/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory: as the real ones, shared by the processes of a world, and they fail on demand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/virtual/files.h"
#include "core/virtual/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rig {
	struct virtual_world world;
	struct virtual_process one;
	struct virtual_process two;
	struct memfiles *files;
};

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL || !virtual_world_init(&rig->world, 7))
		return -1;
	virtual_process_init(&rig->one, &rig->world);
	virtual_process_init(&rig->two, &rig->world);
	rig->files = rig->world.files;
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig->one.user.fds + rig->two.user.fds, 0);
	virtual_process_fini(&rig->one);
	virtual_process_fini(&rig->two);
	virtual_world_fini(&rig->world);
	free(rig);
	return 0;
}

static void what_one_process_writes_another_one_reads(void **state)
{
	struct rig *rig = *state;
	const struct spoke_files *files = rig->one.env.files;
	char bytes[8];

	assert_int_equal(files->read(&rig->two, "a", bytes, sizeof(bytes)), -ENOENT);
	assert_null(memfiles_get(rig->files, "a"));
	assert_int_equal(files->append(&rig->one, "a", "one", 3), 0);
	assert_int_equal(files->append(&rig->two, "a", "two", 3), 0);
	assert_int_equal(files->read(&rig->two, "a", bytes, 6), 6);
	assert_memory_equal(bytes, "onetwo", 6);
	assert_int_equal(files->read(&rig->two, "a", bytes, 5), -EFBIG);
	assert_int_equal(files->replace(&rig->two, "a", "three", 5), 0);
	assert_string_equal(memfiles_get(rig->files, "a"), "three");
	assert_int_equal(files->read(&rig->two, "b", bytes, sizeof(bytes)), -ENOENT);
	memfiles_remove(rig->files, "a");
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), -ENOENT);
}

static void who_watches_a_file_is_told_of_that_one_alone(void **state)
{
	struct rig *rig = *state;
	const struct spoke_files *files = rig->one.env.files;
	int fd;
	int gone;

	assert_int_equal(files->watch(&rig->one, "a", &fd), 0);
	assert_int_equal(files->watch(&rig->two, "a", &gone), 0);
	memnet_kill(&rig->two.user);
	memfiles_put(rig->files, "b", "text");
	assert_int_equal(memnet_ready(rig->world.net, fd), 0);
	assert_false(files->changed(&rig->one, fd));
	memfiles_put(rig->files, "a", "text");
	assert_int_equal(memnet_ready(rig->world.net, fd), SPOKE_IO_READ);
	assert_true(files->changed(&rig->one, fd));
	assert_int_equal(memnet_ready(rig->world.net, fd), 0);
	assert_false(files->changed(&rig->one, fd));
	memfiles_remove(rig->files, "a");
	assert_true(files->changed(&rig->one, fd));
	memfiles_mute(rig->files, true);
	memfiles_put(rig->files, "a", "text");
	assert_false(files->changed(&rig->one, fd));
	files->unwatch(&rig->one, fd);
}

static void a_lock_keeps_others_out_until_it_is_given_back(void **state)
{
	struct rig *rig = *state;
	const struct spoke_files *files = rig->one.env.files;
	int fd;
	int other;

	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	assert_int_equal(files->lock(&rig->two, "a", &other), -EAGAIN);
	assert_int_equal(files->lock(&rig->two, "b", &other), 0);
	files->unlock(&rig->two, other);
	files->unlock(&rig->one, fd);
	assert_int_equal(files->lock(&rig->two, "a", &other), 0);
	memnet_kill(&rig->two.user);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	files->unlock(&rig->one, fd);
	memfiles_hold(rig->files, "a", true);
	assert_int_equal(files->lock(&rig->one, "a", &fd), -EAGAIN);
	memfiles_hold(rig->files, "a", false);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	files->unlock(&rig->one, fd);
}

static void any_call_fails_as_often_as_it_shall(void **state)
{
	struct rig *rig = *state;
	const struct spoke_files *files = rig->one.env.files;
	char bytes[8];
	int fd;

	memfiles_put(rig->files, "a", "old");
	for (enum memfiles_call call = 0; call < MEMFILES_CALLS; call++)
		memfiles_fail(rig->files, call, 1, -EIO);
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), -EIO);
	assert_int_equal(files->replace(&rig->one, "a", "new", 3), -EIO);
	assert_int_equal(files->append(&rig->one, "a", "new", 3), -EIO);
	assert_int_equal(files->watch(&rig->one, "a", &fd), -EIO);
	assert_int_equal(files->lock(&rig->one, "a", &fd), -EIO);
	assert_string_equal(memfiles_get(rig->files, "a"), "old");
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), 3);
	assert_int_equal(memfiles_calls(rig->files, MEMFILES_READ), 2);
	assert_int_equal(memfiles_calls(rig->files, MEMFILES_LOCK), 1);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(what_one_process_writes_another_one_reads),
		CASE(who_watches_a_file_is_told_of_that_one_alone),
		CASE(a_lock_keeps_others_out_until_it_is_given_back),
		CASE(any_call_fails_as_often_as_it_shall),
	};

	return cmocka_run_group_tests_name("memfiles", tests, NULL, NULL);
}
