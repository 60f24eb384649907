/* SPDX-License-Identifier: Apache-2.0 */
/* Small files: read whole up to a limit, replaced atomically. */
#define _GNU_SOURCE

#include "core/host/host.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder for each test. */
struct rig {
	char folder[64];
	char path[PATH_MAX];
};

STEP(set_up)
{
	static struct rig rig;

	memset(&rig, 0, sizeof(rig));
	folder_make(rig.folder);
	(void)snprintf(rig.path, sizeof(rig.path), "%s/file", rig.folder);
	*state = &rig;
}

STEP(tear_down)
{
	struct rig *rig = *state;

	folder_remove(rig->folder);
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

FIXTURE(set_up, tear_down);

/* Returns the number of entries in the folder. */
static int entries(const struct rig *rig)
{
	DIR *folder = opendir(rig->folder);
	int count = 0;

	assert_non_null(folder);
	for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
		count += entry->d_name[0] != '.';
	(void)closedir(folder);
	return count;
}

static int replace(const struct rig *rig, const char *text)
{
	return spokei_host_files.replace(NULL, rig->path, text, strlen(text), false);
}

static void assert_content(const struct rig *rig, const char *text)
{
	char bytes[200] = "";

	assert_int_equal(spokei_host_files.read(NULL, rig->path, bytes, sizeof(bytes)),
			 strlen(text));
	assert_memory_equal(bytes, text, strlen(text));
}

RIG_TEST(written_file_is_read_back)
{
	assert_int_equal(replace(rig, "one"), 0);
	assert_content(rig, "one");
	assert_int_equal(replace(rig, "another, and longer"), 0);
	assert_content(rig, "another, and longer");
	assert_int_equal(replace(rig, ""), 0);
	assert_content(rig, "");
	assert_int_equal(entries(rig), 1);
}

RIG_TEST(a_megabyte_goes_through_whole)
{
	enum {
		SIZE = 1 << 20
	};
	char *out = malloc(SIZE);
	char *back = malloc(SIZE + 1);

	assert_non_null(out);
	assert_non_null(back);
	for (int i = 0; i < SIZE; i++)
		out[i] = (char)(i * 7 + i / 251);
	assert_int_equal(spokei_host_files.replace(NULL, rig->path, out, SIZE, false), 0);
	assert_int_equal(spokei_host_files.read(NULL, rig->path, back, SIZE + 1), SIZE);
	assert_memory_equal(out, back, SIZE);
	free(out);
	free(back);
}

RIG_TEST(a_file_of_exactly_the_bound_is_read_and_one_byte_more_is_not)
{
	char bytes[8];

	assert_int_equal(replace(rig, "12345678"), 0);
	assert_int_equal(spokei_host_files.read(NULL, rig->path, bytes, 8), 8);
	assert_int_equal(spokei_host_files.read(NULL, rig->path, bytes, 7), -EFBIG);
	assert_int_equal(spokei_host_files.read(NULL, rig->path, bytes, 0), -EFBIG);
	assert_int_equal(replace(rig, ""), 0);
	assert_int_equal(spokei_host_files.read(NULL, rig->path, bytes, 0), 0);
}

RIG_TEST(reading_a_non_file_fails_without_blocking)
{
	char bytes[8];

	assert_int_equal(spokei_host_files.read(NULL, rig->path, bytes, 8), -ENOENT);
	assert_int_equal(spokei_host_files.read(NULL, rig->folder, bytes, 8), -EISDIR);
	assert_int_equal(mkfifo(rig->path, 0600), 0);
	assert_int_equal(spokei_host_files.read(NULL, rig->path, bytes, 8), -EINVAL);
	assert_int_equal(spokei_host_files.read(NULL, "/dev/null", bytes, 8), 0);
	assert_int_equal(spokei_host_files.read(NULL, "/dev/zero", bytes, 8), -EFBIG);
}

RIG_TEST(a_replaced_file_keeps_its_permissions)
{
	struct stat status;

	assert_int_equal(replace(rig, "one"), 0);
	assert_int_equal(chmod(rig->path, 0604), 0);
	assert_int_equal(replace(rig, "two"), 0);
	assert_int_equal(stat(rig->path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0604);
}

RIG_TEST(private_file_is_readable_by_owner_only)
{
	mode_t mask = umask(022);
	struct stat status;

	assert_int_equal(spokei_host_files.replace(NULL, rig->path, "one", 3, true), 0);
	(void)umask(mask);
	assert_int_equal(stat(rig->path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
}

RIG_TEST(a_reader_keeps_the_file_it_has_opened)
{
	char text[8] = "";
	FILE *old;

	assert_int_equal(replace(rig, "old"), 0);
	old = fopen(rig->path, "r");
	assert_non_null(old);
	assert_int_equal(replace(rig, "new"), 0);
	assert_int_equal(fread(text, 1, sizeof(text), old), 3);
	assert_string_equal(text, "old");
	(void)fclose(old);
	assert_content(rig, "new");
}

RIG_TEST(a_failed_rename_leaves_nothing_behind)
{
	assert_int_equal(mkdir(rig->path, 0700), 0);
	assert_int_equal(replace(rig, "text"), -EISDIR);
	assert_int_equal(entries(rig), 1);
}

RIG_TEST(a_failed_write_leaves_the_old_file_and_nothing_else)
{
	const struct rlimit none = { .rlim_cur = 4, .rlim_max = RLIM_INFINITY };
	struct rlimit before;

	assert_int_equal(replace(rig, "old"), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(replace(rig, "longer than four"), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_content(rig, "old");
	assert_int_equal(entries(rig), 1);
}

RIG_TEST(a_folder_that_is_missing_or_a_path_too_long_is_an_error)
{
	char path[PATH_MAX + 10];

	memset(path, 'x', sizeof(path));
	path[PATH_MAX - 3] = '\0';
	assert_int_equal(spokei_host_files.replace(NULL, path, "", 0, false), -ENAMETOOLONG);
	(void)snprintf(path, sizeof(path), "%s/no/file", rig->folder);
	assert_int_equal(spokei_host_files.replace(NULL, path, "", 0, false), -ENOENT);
	assert_int_equal(entries(rig), 0);
}

RIG_TEST(append_of_nothing_checks_the_path_and_creates_nothing)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/no/file", rig->folder);
	assert_int_equal(spokei_host_files.append(NULL, path, NULL, 0), -ENOENT);
	assert_int_equal(spokei_host_files.append(NULL, rig->folder, NULL, 0), -EISDIR);
	assert_int_equal(spokei_host_files.append(NULL, rig->path, NULL, 0), 0);
	assert_int_equal(entries(rig), 0);
	assert_int_equal(spokei_host_files.append(NULL, rig->path, "x", 1), 0);
	assert_int_equal(spokei_host_files.append(NULL, rig->path, NULL, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/file/file", rig->folder);
	assert_int_equal(spokei_host_files.append(NULL, path, NULL, 0), -ENOTDIR);
	assert_content(rig, "x");
	assert_int_equal(entries(rig), 1);
}

/* Tests may run as root, whose files may be shared with a group. */
RIG_TEST(secret_that_others_may_read_is_refused)
{
	static const struct {
		mode_t mode;
		bool roots; /* it belongs to root */
		bool fine;
	} rows[] = {
		{ 0600, false, true },  { 0400, false, true },  { 0640, false, false },
		{ 0604, false, false }, { 0620, false, false }, { 0644, false, false },
		{ 0600, true, true },   { 0640, true, true },   { 0440, true, true },
		{ 0660, true, false },  { 0644, true, false },  { 0641, true, false },
	};
	char bytes[8];

	assert_int_equal(replace(rig, "secret"), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].roots && geteuid() != 0)
			continue;
		if (geteuid() == 0)
			assert_int_equal(chown(rig->path, rows[i].roots ? 0 : 65534, (gid_t)-1), 0);
		assert_int_equal(chmod(rig->path, rows[i].mode), 0);
		assert_int_equal(spokei_host_files.read_secret(NULL, rig->path, bytes,
							       sizeof(bytes)),
				 rows[i].fine ? 6 : -EPERM);
	}
	assert_int_equal(spokei_host_files.read_secret(NULL, rig->folder, bytes, sizeof(bytes)),
			 -EISDIR);
	assert_int_equal(spokei_host_files.read_secret(NULL, "/nowhere/at/all", bytes, 1), -ENOENT);
}

/* --- logs */

static int open_log(const struct rig *rig, bool is_new)
{
	int fd = -1;
	int error = spokei_host_files.open_log(NULL, rig->path, is_new, &fd);

	return error ? error : fd;
}

RIG_TEST(log_is_made_once_for_its_owner_only)
{
	struct stat status;
	int fd;

	assert_int_equal(open_log(rig, false), -ENOENT);
	fd = open_log(rig, true);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(close(fd), 0);
	assert_int_equal(open_log(rig, true), -EEXIST);
	fd = open_log(rig, false);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(rig->path), 0);
	assert_int_equal(mkdir(rig->path, 0700), 0);
	assert_int_equal(open_log(rig, false), -EISDIR);
}

RIG_TEST(log_is_written_in_place_inside_allocated_room)
{
	const struct spoke_files *files = &spokei_host_files;
	struct stat status;
	char bytes[8193];
	int fd = open_log(rig, true);

	assert_true(fd >= 0);
	assert_int_equal(files->allocate(NULL, fd, 8192), 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_size, 8192);
	assert_true(status.st_blocks * 512 >= 8192);
	assert_int_equal(files->write_at(NULL, fd, 4096, "two", 3), 0);
	assert_int_equal(files->write_at(NULL, fd, 1, "one", 3), 0);
	assert_int_equal(files->allocate(NULL, fd, 100), 0);
	assert_int_equal(files->sync(NULL, fd), 0);
	assert_int_equal(files->read(NULL, rig->path, bytes, sizeof(bytes)), 8192);
	assert_memory_equal(bytes, "\0one\0", 5);
	assert_memory_equal(bytes + 4095, "\0two\0", 5);
	assert_int_equal(files->write_at(NULL, fd, UINT64_C(1) << 31, "x", 1), -EFBIG);
	assert_int_equal(files->write_at(NULL, fd, UINT64_MAX, "x", 1), -EFBIG);
	assert_int_equal(files->allocate(NULL, fd, UINT64_MAX), -EFBIG);
	assert_int_equal(close(fd), 0);
}

RIG_TEST(failed_write_to_a_log_is_told_with_its_errno)
{
	const struct spoke_files *files = &spokei_host_files;
	int fd = open_log(rig, true);
	int reader = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int pipes[2];

	assert_true(fd >= 0 && reader >= 0);
	assert_int_equal(files->write_at(NULL, reader, 0, "x", 1), -EBADF);
	assert_int_equal(files->sync(NULL, -1), -EBADF);
	assert_int_equal(files->allocate(NULL, -1, 1), -EBADF);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(files->sync(NULL, pipes[1]), -EINVAL);
	assert_int_equal(files->write_at(NULL, pipes[1], 0, "x", 1), -ESPIPE);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
	(void)close(reader);
	(void)close(fd);
}

RIG_TEST(files_of_a_folder_are_listed_and_removed)
{
	const struct spoke_files *files = &spokei_host_files;
	char path[PATH_MAX];
	char names[16];

	assert_int_equal(files->list(NULL, rig->folder, names, sizeof(names)), 0);
	assert_int_equal(replace(rig, "text"), 0);
	(void)snprintf(path, sizeof(path), "%s/folder", rig->folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(files->list(NULL, rig->folder, names, sizeof(names)), 5);
	assert_string_equal(names, "file");
	assert_int_equal(files->list(NULL, rig->folder, names, 4), -EFBIG);
	assert_int_equal(files->list(NULL, path, names, 0), 0);
	assert_int_equal(files->remove(NULL, rig->path), 0);
	assert_int_equal(files->remove(NULL, rig->path), -ENOENT);
	assert_int_equal(files->sync_folder(NULL, rig->folder), 0);
	assert_int_equal(files->list(NULL, rig->path, names, sizeof(names)), -ENOENT);
	assert_int_equal(files->sync_folder(NULL, rig->path), -ENOENT);
}
