/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the environment that fails on demand. */
#include "core/virtual/faults.h"

#include "timer/base.h"

static ssize_t files_read(void *ctx, const char *path, void *bytes, size_t size)
{
	struct spokei_faults *faulty = ctx;
	int error = spokei_faults_check(faulty, SPOKEI_FAULTS_FILE_READ);

	return error ? error : faulty->inner->files->read(faulty->inner->ctx, path, bytes, size);
}

static int files_replace(void *ctx, const char *path, const void *bytes, size_t len,
			 bool is_private)
{
	struct spokei_faults *faulty = ctx;
	int error = spokei_faults_check(faulty, SPOKEI_FAULTS_FILE_REPLACE);

	return error ? error
		     : faulty->inner->files->replace(faulty->inner->ctx, path, bytes, len,
						     is_private);
}

static int files_append(void *ctx, const char *path, const void *bytes, size_t len)
{
	struct spokei_faults *faulty = ctx;
	int error = spokei_faults_check(faulty, SPOKEI_FAULTS_FILE_APPEND);

	return error ? error : faulty->inner->files->append(faulty->inner->ctx, path, bytes, len);
}

static int files_watch(void *ctx, const char *path, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	int error = spokei_faults_check(faulty, SPOKEI_FAULTS_FILE_WATCH);

	if (!error) {
		error = faulty->inner->files->watch(faulty->inner->ctx, path, ret_fd);
		faulty->fds += !error;
	}
	return error;
}

static bool files_changed(void *ctx, int fd)
{
	const struct spoke_env *inner = ((struct spokei_faults *)ctx)->inner;

	return inner->files->changed(inner->ctx, fd);
}

static void files_unwatch(void *ctx, int fd)
{
	struct spokei_faults *faulty = ctx;

	SPOKE_ASSERT(faulty->fds > 0);
	faulty->fds--;
	faulty->inner->files->unwatch(faulty->inner->ctx, fd);
}

static int files_lock(void *ctx, const char *path, int *ret_fd)
{
	struct spokei_faults *faulty = ctx;
	int error = spokei_faults_check(faulty, SPOKEI_FAULTS_FILE_LOCK);

	if (!error) {
		error = faulty->inner->files->lock(faulty->inner->ctx, path, ret_fd);
		faulty->fds += !error;
	}
	return error;
}

static void files_unlock(void *ctx, int fd)
{
	struct spokei_faults *faulty = ctx;

	SPOKE_ASSERT(faulty->fds > 0);
	faulty->fds--;
	faulty->inner->files->unlock(faulty->inner->ctx, fd);
}

static int files_is_locked(void *ctx, const char *path)
{
	struct spokei_faults *faulty = ctx;
	int error = spokei_faults_check(faulty, SPOKEI_FAULTS_FILE_IS_LOCKED);

	return error ? error : faulty->inner->files->is_locked(faulty->inner->ctx, path);
}

static void files_drop(void *ctx, const char *path, int fd)
{
	struct spokei_faults *faulty = ctx;

	SPOKE_ASSERT(faulty->fds > 0);
	faulty->fds--;
	faulty->inner->files->drop(faulty->inner->ctx, path, fd);
}

static int files_sweep(void *ctx, const char *path)
{
	struct spokei_faults *faulty = ctx;
	int error = spokei_faults_check(faulty, SPOKEI_FAULTS_FILE_SWEEP);

	return error ? error : faulty->inner->files->sweep(faulty->inner->ctx, path);
}

static ssize_t files_read_secret(void *ctx, const char *path, void *bytes, size_t size)
{
	struct spokei_faults *faulty = ctx;
	int error = spokei_faults_check(faulty, SPOKEI_FAULTS_FILE_READ);

	return error ? error
		     : faulty->inner->files->read_secret(faulty->inner->ctx, path, bytes, size);
}

const struct spoke_files spokei_faults_files = {
	.read = files_read,
	.replace = files_replace,
	.append = files_append,
	.watch = files_watch,
	.changed = files_changed,
	.unwatch = files_unwatch,
	.lock = files_lock,
	.unlock = files_unlock,
	.is_locked = files_is_locked,
	.drop = files_drop,
	.sweep = files_sweep,
	.read_secret = files_read_secret,
};
