/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk: what is left of files when power fails, and each way in which it fails. */
#include "core/virtual/disk.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 200u
#define SECTOR SPOKEI_VDISK_SECTOR
#define PATH "/j/one"

struct rig {
	struct spokei_world world;
	struct spokei_world_process process;
	const struct spoke_files *files;
	int fd;
};

static struct rig rig;

static void begin(uint64_t seed)
{
	assert_true(spokei_world_init(&rig.world, seed));
	spokei_vfiles_harm(rig.world.files, seed, NULL);
	spokei_world_process_init(&rig.process, &rig.world);
	rig.files = rig.process.env.files;
	assert_int_equal(rig.files->open_log(&rig.process, PATH, true, &rig.fd), 0);
}

static void end(void)
{
	spokei_vnet_kill(&rig.process.user);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
}

static int write_at(uint64_t at, const void *bytes, size_t len)
{
	return rig.files->write_at(&rig.process, rig.fd, at, bytes, len);
}

static int sync_log(void)
{
	return rig.files->sync(&rig.process, rig.fd);
}

static void lose(void)
{
	spokei_vnet_kill(&rig.process.user);
	spokei_vfiles_lose(rig.world.files);
}

static const char *text(const char *path)
{
	return spokei_vfiles_get(rig.world.files, path);
}

static bool is_text(const char *path, const char *expected)
{
	const char *found = text(path);

	return found ? expected && strcmp(found, expected) == 0 : expected == NULL;
}

static size_t length(void)
{
	char *bytes = malloc(1u << 20);
	ssize_t len = rig.files->read(&rig.process, PATH, bytes, 1u << 20);

	free(bytes);
	return len > 0 ? (size_t)len : 0;
}

/* Makes the log a durable file with the text "old". */
static void make_durable(void)
{
	assert_int_equal(write_at(0, "old", 3), 0);
	assert_int_equal(sync_log(), 0);
	assert_int_equal(rig.files->sync_folder(&rig.process, "/j"), 0);
}

TEST(synced_write_survives_and_another_one_may_be_lost)
{
	unsigned kept = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		begin(seed);
		make_durable();
		assert_int_equal(write_at(0, "new", 3), 0);
		assert_true(is_text(PATH, "new"));
		lose();
		kept += is_text(PATH, "new");
		assert_true(is_text(PATH, "new") || is_text(PATH, "old"));
		end();
	}
	assert_in_range(kept, 1, SEEDS - 1);
}

TEST(unsynced_writes_are_torn_between_sectors_in_any_order)
{
	char bytes[3 * SECTOR];
	unsigned seen[8] = { 0 };

	memset(bytes, 'x', sizeof(bytes));
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		unsigned which = 0;

		begin(seed);
		assert_int_equal(rig.files->allocate(&rig.process, rig.fd, sizeof(bytes)), 0);
		make_durable();
		assert_int_equal(write_at(0, bytes, sizeof(bytes)), 0);
		lose();
		assert_int_equal(length(), sizeof(bytes));
		for (unsigned i = 0; i < 3; i++) {
			const char *sector = text(PATH) + (size_t)i * SECTOR;

			which |= sector[0] == 'x' ? 1u << i : 0;
			assert_int_equal(sector[SECTOR - 1] == 'x', sector[0] == 'x');
		}
		seen[which]++;
		end();
	}
	for (unsigned i = 0; i < 8; i++)
		assert_in_range(seen[i], 1, SEEDS);
}

TEST(later_of_two_writes_may_reach_the_disk_first)
{
	unsigned first = 0;
	unsigned second = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		begin(seed);
		make_durable();
		assert_int_equal(write_at(0, "1", 1), 0);
		assert_int_equal(write_at(0, "2", 1), 0);
		assert_true(is_text(PATH, "2ld"));
		lose();
		first += is_text(PATH, "1ld");
		second += is_text(PATH, "2ld");
		end();
	}
	assert_in_range(first, 1, SEEDS - 1);
	assert_in_range(second, 1, SEEDS - 1);
}

TEST(name_is_durable_only_after_sync_of_its_folder)
{
	unsigned made = 0;
	unsigned removed = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		begin(seed);
		assert_int_equal(write_at(0, "new", 3), 0);
		assert_int_equal(sync_log(), 0);
		assert_int_equal(rig.files->sync_folder(&rig.process, "/other"), 0);
		lose();
		made += is_text(PATH, "new");
		assert_true(is_text(PATH, "new") || is_text(PATH, NULL));
		end();

		begin(seed);
		make_durable();
		assert_int_equal(rig.files->remove(&rig.process, PATH), 0);
		assert_true(is_text(PATH, NULL));
		lose();
		removed += is_text(PATH, NULL);
		assert_true(is_text(PATH, "old") || is_text(PATH, NULL));
		end();

		begin(seed);
		make_durable();
		assert_int_equal(rig.files->remove(&rig.process, PATH), 0);
		assert_int_equal(rig.files->sync_folder(&rig.process, "/j"), 0);
		lose();
		assert_true(is_text(PATH, NULL));
		end();
	}
	assert_in_range(made, 1, SEEDS - 1);
	assert_in_range(removed, 1, SEEDS - 1);
}

TEST(failed_sync_forgets_writes_and_the_next_one_succeeds)
{
	unsigned lost = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		begin(seed);
		make_durable();
		assert_int_equal(write_at(0, "new", 3), 0);
		spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_SYNC, 1, -EIO);
		assert_int_equal(sync_log(), -EIO);
		assert_int_equal(sync_log(), 0);
		assert_true(is_text(PATH, "new"));
		lose();
		lost += is_text(PATH, "old");
		end();
	}
	assert_in_range(lost, 1, SEEDS - 1);
}

TEST(failed_write_has_written_any_part_of_its_beginning)
{
	unsigned seen[4] = { 0 };

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		unsigned len = 0;

		begin(seed);
		spokei_vfiles_fail(rig.world.files, SPOKEI_VFILES_WRITE_AT, 1, -EIO);
		assert_int_equal(write_at(0, "abc", 3), -EIO);
		len = (unsigned)length();
		assert_in_range(len, 0, 3);
		assert_memory_equal(text(PATH), "abc", len);
		seen[len]++;
		end();
	}
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(seen[i], 1, SEEDS);
}

TEST(full_disk_takes_writes_inside_allocated_room_only)
{
	int fd;

	begin(1);
	spokei_vfiles_room(rig.world.files, 1000);
	assert_int_equal(rig.files->allocate(&rig.process, rig.fd, 1001), -ENOSPC);
	assert_int_equal(rig.files->allocate(&rig.process, rig.fd, 1000), 0);
	assert_int_equal(length(), 1000);
	assert_int_equal(write_at(998, "ab", 2), 0);
	assert_int_equal(write_at(998, "xyz", 3), -ENOSPC);
	assert_memory_equal(text(PATH) + 998, "xy", 3);
	assert_int_equal(rig.files->append(&rig.process, "/j/two", "x", 1), -ENOSPC);
	assert_int_equal(rig.files->replace(&rig.process, "/j/two", "x", 1, true), -ENOSPC);
	assert_int_equal(rig.files->open_log(&rig.process, "/j/two", true, &fd), 0);
	assert_int_equal(rig.files->write_at(&rig.process, fd, 0, "x", 1), -ENOSPC);
	/* Room comes back with the last name and descriptor. */
	assert_int_equal(rig.files->remove(&rig.process, PATH), 0);
	assert_int_equal(rig.files->write_at(&rig.process, fd, 0, "x", 1), -ENOSPC);
	rig.process.env.net->close(&rig.process, rig.fd);
	assert_int_equal(rig.files->write_at(&rig.process, fd, 0, "x", 1), 0);
	end();
}

/* Returns the number of steps until the disk ended. */
static unsigned make_steps(unsigned cut)
{
	unsigned made = 0;

	spokei_vfiles_cut(rig.world.files, cut);
	made += rig.files->allocate(&rig.process, rig.fd, 8) == 0;
	made += write_at(0, "new", 3) == 0;
	made += sync_log() == 0;
	made += rig.files->sync_folder(&rig.process, "/j") == 0;
	made += rig.files->append(&rig.process, "/j/two", "2", 1) == 0;
	made += rig.files->remove(&rig.process, PATH) == 0;
	return made;
}

TEST(power_can_fail_before_each_step)
{
	for (unsigned cut = 0; cut <= 6; cut++) {
		begin(cut);
		assert_int_equal(make_steps(cut), cut);
		assert_true(spokei_vfiles_is_cut(rig.world.files));
		lose();
		assert_false(spokei_vfiles_is_cut(rig.world.files));
		if (cut == 4 || cut == 5)
			assert_memory_equal(text(PATH), "new\0\0\0\0", 8);
		if (cut < 5)
			assert_true(is_text("/j/two", NULL));
		end();
	}
}

TEST(replaced_file_is_the_old_or_the_new_one_wherever_power_fails)
{
	unsigned news = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		bool done;

		begin(seed);
		assert_int_equal(rig.files->replace(&rig.process, "/r", "old", 3, false), 0);
		spokei_vfiles_cut(rig.world.files, (unsigned)seed % 6);
		done = rig.files->replace(&rig.process, "/r", "newer", 5, false) == 0;
		lose();
		assert_true(is_text("/r", "newer") || (is_text("/r", "old")));
		if (seed % 6 >= 4)
			assert_true(done && is_text("/r", "newer"));
		news += is_text("/r", "newer") && seed % 6 == 3;
		end();
	}
	assert_in_range(news, 1, SEEDS / 6);
}

TEST(flipped_bit_is_on_the_disk_too)
{
	begin(1);
	make_durable();
	spokei_vfiles_flip(rig.world.files, PATH, 8 + 1);
	assert_true(is_text(PATH, "ond"));
	lose();
	assert_true(is_text(PATH, "ond"));
	end();
}

TEST(log_is_made_once_and_found_by_name)
{
	char names[16];
	int fd;

	begin(1);
	assert_int_equal(rig.files->open_log(&rig.process, PATH, true, &fd), -EEXIST);
	assert_int_equal(rig.files->open_log(&rig.process, "/j/two", false, &fd), -ENOENT);
	assert_int_equal(rig.files->open_log(&rig.process, PATH, false, &fd), 0);
	assert_int_equal(rig.files->write_at(&rig.process, fd, 0, "x", 1), 0);
	assert_true(is_text(PATH, "x"));
	spokei_vfiles_put(rig.world.files, "/j/two", "2");
	spokei_vfiles_put(rig.world.files, "/j/deep/er", "3");
	spokei_vfiles_put(rig.world.files, "/jj", "4");
	assert_int_equal(rig.files->list(&rig.process, "/j", names, sizeof(names)), 8);
	assert_memory_equal(names, "two\0one", 8);
	assert_int_equal(rig.files->list(&rig.process, "/j", names, 7), -EFBIG);
	assert_int_equal(rig.files->remove(&rig.process, "/j/no"), -ENOENT);
	assert_int_equal(rig.files->remove(&rig.process, PATH), 0);
	assert_int_equal(rig.files->list(&rig.process, "/j", names, sizeof(names)), 4);
	end();
}

TEST(harm_is_the_same_for_the_same_seed)
{
	const struct spokei_vfiles_harm harm = { .write_fails = 4, .sync_fails = 4 };
	uint64_t history[2] = { 0 };
	unsigned writes = 0;
	unsigned syncs = 0;

	for (unsigned turn = 0; turn < 2; turn++) {
		begin(1);
		spokei_vfiles_harm(rig.world.files, 5, &harm);
		for (unsigned i = 0; i < 30; i++) {
			bool failed = write_at(i, "x", 1) == -EIO;

			writes += failed;
			history[turn] = history[turn] << 1 | failed;
			failed = sync_log() == -EIO;
			syncs += failed;
			history[turn] = history[turn] << 1 | failed;
		}
		end();
	}
	assert_true(history[0] == history[1]);
	assert_in_range(writes, 2, 58);
	assert_in_range(syncs, 2, 58);
}

/* --- time */

static struct {
	struct spoke_work work;
	uint64_t done_ns;
} slow;

static void sync_in_pool(struct spoke_work *work)
{
	(void)work;
	assert_int_equal(sync_log(), 0);
}

static void note_done(struct spoke_work *work)
{
	(void)work;
	slow.done_ns = rig.world.now_ns;
}

TEST(slow_sync_holds_up_its_own_thread_only)
{
	const struct spokei_vfiles_harm harm = { .sync_is_slow = 1, .slow_ns = SECOND };
	struct spoke_engine *engine;
	uint64_t begun_ns;

	assert_true(spokei_world_init(&rig.world, 1));
	engine = scene_engine(&rig.world, &rig.process, NULL, NULL);
	rig.files = rig.process.env.files;
	assert_int_equal(rig.files->open_log(&rig.process, PATH, true, &rig.fd), 0);
	spokei_vfiles_harm(rig.world.files, 1, &harm);
	begun_ns = rig.world.now_ns;
	slow.work = (struct spoke_work){ .run = sync_in_pool, .done = note_done };
	slow.done_ns = 0;
	assert_int_equal(rig.process.env.loop->offload(rig.process.loop, &slow.work), 0);
	scene_pass(&rig.world, SECOND / 2);
	assert_int_equal(slow.done_ns, 0);
	assert_int_equal(rig.process.held_until_ns, 0);
	scene_pass(&rig.world, SECOND);
	assert_int_equal(slow.done_ns, begun_ns + SECOND);
	begun_ns = rig.world.now_ns;
	assert_int_equal(sync_log(), 0);
	assert_int_equal(rig.process.held_until_ns, begun_ns + SECOND);
	rig.process.env.net->close(&rig.process, rig.fd);
	scene_leave(&rig.process, NULL, &engine);
	spokei_world_fini(&rig.world);
}
