/* SPDX-License-Identifier: Apache-2.0 */
/* In-memory files: shared by the processes of a world, like real files, with failures on demand. */
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rig {
	struct spokei_world world;
	struct spokei_world_process one;
	struct spokei_world_process two;
	struct spokei_vfiles *files;
};

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL || !spokei_world_init(&rig->world, 7))
		return -1;
	spokei_world_process_init(&rig->one, &rig->world);
	spokei_world_process_init(&rig->two, &rig->world);
	rig->files = rig->world.files;
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig->one.user.fds + rig->two.user.fds, 0);
	spokei_world_process_fini(&rig->one);
	spokei_world_process_fini(&rig->two);
	spokei_world_fini(&rig->world);
	free(rig);
	return 0;
}

FIXTURE(set_up, tear_down);

TEST(file_written_by_one_process_is_read_by_another)
{
	struct rig *rig = *state;
	const struct spoke_files *files = rig->one.env.files;
	char bytes[8];

	assert_int_equal(files->read(&rig->two, "a", bytes, sizeof(bytes)), -ENOENT);
	assert_null(spokei_vfiles_get(rig->files, "a"));
	assert_int_equal(files->append(&rig->one, "a", "one", 3), 0);
	assert_int_equal(files->append(&rig->two, "a", "two", 3), 0);
	assert_int_equal(files->read(&rig->two, "a", bytes, 6), 6);
	assert_memory_equal(bytes, "onetwo", 6);
	assert_int_equal(files->read(&rig->two, "a", bytes, 5), -EFBIG);
	assert_int_equal(files->replace(&rig->two, "a", "three", 5, false), 0);
	assert_string_equal(spokei_vfiles_get(rig->files, "a"), "three");
	assert_int_equal(files->read(&rig->two, "b", bytes, sizeof(bytes)), -ENOENT);
	spokei_vfiles_remove(rig->files, "a");
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), -ENOENT);
}

TEST(exposed_file_is_no_secret)
{
	struct rig *rig = *state;
	const struct spoke_files *files = rig->one.env.files;
	char bytes[8];

	assert_int_equal(files->read_secret(&rig->one, "a", bytes, sizeof(bytes)), -ENOENT);
	spokei_vfiles_put(rig->files, "a", "secret");
	assert_int_equal(files->read_secret(&rig->one, "a", bytes, sizeof(bytes)), 6);
	spokei_vfiles_expose(rig->files, "a", true);
	assert_int_equal(files->read_secret(&rig->one, "a", bytes, sizeof(bytes)), -EPERM);
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), 6);
}

TEST(file_watch_reports_only_its_own_file)
{
	struct rig *rig = *state;
	const struct spoke_files *files = rig->one.env.files;
	int fd;
	int gone;

	assert_int_equal(files->watch(&rig->one, "a", &fd), 0);
	assert_int_equal(files->watch(&rig->two, "a", &gone), 0);
	spokei_vnet_kill(&rig->two.user);
	spokei_vfiles_put(rig->files, "b", "text");
	assert_int_equal(spokei_vnet_ready(rig->world.net, fd), 0);
	assert_false(files->changed(&rig->one, fd));
	spokei_vfiles_put(rig->files, "a", "text");
	assert_int_equal(spokei_vnet_ready(rig->world.net, fd), SPOKE_IO_READ);
	assert_true(files->changed(&rig->one, fd));
	assert_int_equal(spokei_vnet_ready(rig->world.net, fd), 0);
	assert_false(files->changed(&rig->one, fd));
	spokei_vfiles_remove(rig->files, "a");
	assert_true(files->changed(&rig->one, fd));
	spokei_vfiles_mute(rig->files, true);
	spokei_vfiles_put(rig->files, "a", "text");
	assert_false(files->changed(&rig->one, fd));
	files->unwatch(&rig->one, fd);
}

TEST(a_lock_keeps_others_out_until_it_is_given_back)
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
	spokei_vnet_kill(&rig->two.user);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	files->unlock(&rig->one, fd);
	spokei_vfiles_hold(rig->files, "a", true);
	assert_int_equal(files->lock(&rig->one, "a", &fd), -EAGAIN);
	spokei_vfiles_hold(rig->files, "a", false);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	files->unlock(&rig->one, fd);
}

TEST(lock_is_seen_by_others_until_its_holder_ends)
{
	struct rig *rig = *state;
	const struct spoke_files *files = rig->one.env.files;
	int fd;

	assert_int_equal(files->is_locked(&rig->one, "a"), 0);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	assert_int_equal(files->is_locked(&rig->one, "a"), 1);
	assert_int_equal(files->is_locked(&rig->two, "a"), 1);
	assert_int_equal(files->is_locked(&rig->two, "b"), 0);
	files->drop(&rig->one, "a", fd);
	assert_int_equal(files->is_locked(&rig->two, "a"), 0);
	assert_int_equal(files->lock(&rig->two, "a", &fd), 0);
	spokei_vnet_kill(&rig->two.user);
	assert_int_equal(files->is_locked(&rig->one, "a"), 0);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	spokei_vfiles_break(rig->files, "a");
	assert_int_equal(files->is_locked(&rig->one, "a"), 0);
	files->unlock(&rig->one, fd);
}

TEST(any_call_fails_as_often_as_it_shall)
{
	struct rig *rig = *state;
	const struct spoke_files *files = rig->one.env.files;
	char bytes[8];
	int fd;

	spokei_vfiles_put(rig->files, "a", "old");
	for (enum spokei_vfiles_call call = 0; call < SPOKEI_VFILES_CALLS; call++)
		spokei_vfiles_fail(rig->files, call, 1, -EIO);
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), -EIO);
	assert_int_equal(files->replace(&rig->one, "a", "new", 3, false), -EIO);
	assert_int_equal(files->append(&rig->one, "a", "new", 3), -EIO);
	assert_int_equal(files->watch(&rig->one, "a", &fd), -EIO);
	assert_int_equal(files->lock(&rig->one, "a", &fd), -EIO);
	assert_int_equal(files->is_locked(&rig->one, "a"), -EIO);
	assert_int_equal(files->sweep(&rig->one, "a"), -EIO);
	assert_string_equal(spokei_vfiles_get(rig->files, "a"), "old");
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), 3);
	assert_int_equal(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_READ), 2);
	assert_int_equal(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_LOCK), 1);
}
