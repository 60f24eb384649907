/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory, with watches, locks and faults. */
#include "core/virtual/files.h"

#include "core/virtual/net_parts.h"
#include "timer/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A descriptor of a process; the process may be gone. */
struct holder {
	struct holder *next;
	struct spokei_vnet_user *user; /* NULL: none */
	int fd;
};

struct memfile {
	struct memfile *next;
	char *path;
	char *bytes; /* ended by a NUL; NULL: the file does not exist */
	size_t len;
	bool exposed;       /* others than its owner may read it */
	bool held;          /* locked by a process outside the world */
	struct holder lock; /* ... or by this holder */
	struct holder *watches;
};

struct spokei_vfiles {
	struct spokei_vnet *net;
	struct memfile *first;
	bool muted;
	int errors[SPOKEI_VFILES_CALLS];
	unsigned failing[SPOKEI_VFILES_CALLS];
	unsigned calls[SPOKEI_VFILES_CALLS];
};

/* Compares addresses; the user may be gone. */
static bool is_open(const struct spokei_vfiles *files, const struct holder *holder)
{
	const struct spokei_vwire_socket *socket;

	if (holder->user == NULL)
		return false;
	socket = files->net->fds[holder->fd];
	return socket && socket->user == holder->user && socket->kind == SPOKEI_VWIRE_SPARE;
}

static struct memfile *find_file(const struct spokei_vfiles *files, const char *path)
{
	struct memfile *file = files->first;

	while (file && strcmp(file->path, path) != 0)
		file = file->next;
	return file;
}

static struct memfile *make_file(struct spokei_vfiles *files, const char *path)
{
	struct memfile *file = find_file(files, path);
	size_t size = strlen(path) + 1;

	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	SPOKE_ASSERT(file != NULL);
	file->path = malloc(size);
	SPOKE_ASSERT(file->path != NULL);
	memcpy(file->path, path, size);
	file->next = files->first;
	files->first = file;
	return file;
}

static void tell(const struct spokei_vfiles *files, const struct memfile *file)
{
	if (files->muted)
		return;
	for (const struct holder *watch = file->watches; watch; watch = watch->next)
		if (is_open(files, watch))
			(void)spokei_vnet_ring(files->net, watch->fd, true);
}

/* Writes bytes in place of those from `at` on. */
static void write_file(struct spokei_vfiles *files, struct memfile *file, size_t at,
		       const void *bytes, size_t len)
{
	char *grown = realloc(file->bytes, at + len + 1);

	SPOKE_ASSERT(grown != NULL);
	file->bytes = grown;
	if (len > 0)
		memcpy(grown + at, bytes, len);
	file->len = at + len;
	grown[file->len] = '\0';
	tell(files, file);
}

static struct spokei_vfiles *files_of(void *ctx)
{
	return ((struct spokei_vnet_user *)ctx)->files;
}

/* Returns 0, or the error that this call shall have. */
static int check_fault(struct spokei_vfiles *files, enum spokei_vfiles_call call)
{
	files->calls[call]++;
	if (files->failing[call] == 0)
		return 0;
	files->failing[call]--;
	return files->errors[call];
}

/* --- the table of functions */

static ssize_t files_read(void *ctx, const char *path, void *bytes, size_t size)
{
	struct spokei_vfiles *files = files_of(ctx);
	const struct memfile *file = find_file(files, path);
	int error = check_fault(files, SPOKEI_VFILES_READ);

	if (error)
		return error;
	if (file == NULL || file->bytes == NULL)
		return -ENOENT;
	memcpy(bytes, file->bytes, file->len < size ? file->len : size);
	return file->len > size ? -EFBIG : (ssize_t)file->len;
}

static ssize_t files_read_secret(void *ctx, const char *path, void *bytes, size_t size)
{
	const struct memfile *file = find_file(files_of(ctx), path);

	if (file && file->bytes && file->exposed)
		return -EPERM;
	return files_read(ctx, path, bytes, size);
}

static int files_replace(void *ctx, const char *path, const void *bytes, size_t len,
			 bool is_private)
{
	struct spokei_vfiles *files = files_of(ctx);
	int error = check_fault(files, SPOKEI_VFILES_REPLACE);

	(void)is_private;
	if (!error)
		write_file(files, make_file(files, path), 0, bytes, len);
	return error;
}

static int files_append(void *ctx, const char *path, const void *bytes, size_t len)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct memfile *file = make_file(files, path);
	int error = check_fault(files, SPOKEI_VFILES_APPEND);

	if (!error && len > 0)
		write_file(files, file, file->bytes ? file->len : 0, bytes, len);
	return error;
}

static int files_watch(void *ctx, const char *path, int *ret_fd)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct memfile *file = make_file(files, path);
	struct holder *watch;
	int error = check_fault(files, SPOKEI_VFILES_WATCH);

	if (!error)
		error = spokei_vnet_table.spare(ctx, ret_fd);
	if (error)
		return error;
	watch = calloc(1, sizeof(*watch));
	SPOKE_ASSERT(watch != NULL);
	*watch = (struct holder){ .next = file->watches, .user = ctx, .fd = *ret_fd };
	file->watches = watch;
	return 0;
}

static bool files_changed(void *ctx, int fd)
{
	return spokei_vnet_ring(((struct spokei_vnet_user *)ctx)->net, fd, false);
}

/* Removes the watch with this descriptor. */
static bool drop_watch(struct memfile *file, const void *user, int fd)
{
	struct holder **link = &file->watches;
	struct holder *watch;

	while (*link && ((*link)->user != user || (*link)->fd != fd))
		link = &(*link)->next;
	watch = *link;
	if (watch == NULL)
		return false;
	*link = watch->next;
	free(watch);
	return true;
}

static void files_unwatch(void *ctx, int fd)
{
	struct memfile *file = files_of(ctx)->first;

	while (file && !drop_watch(file, ctx, fd))
		file = file->next;
	SPOKE_ASSERT(file != NULL);
	spokei_vnet_table.close(ctx, fd);
}

static int files_lock(void *ctx, const char *path, int *ret_fd)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct memfile *file = make_file(files, path);
	int error = check_fault(files, SPOKEI_VFILES_LOCK);

	if (!error && (file->held || is_open(files, &file->lock)))
		error = -EAGAIN;
	if (!error)
		error = spokei_vnet_table.spare(ctx, ret_fd);
	if (!error)
		file->lock = (struct holder){ .user = ctx, .fd = *ret_fd };
	return error;
}

static void files_unlock(void *ctx, int fd)
{
	struct memfile *file = files_of(ctx)->first;

	while (file && (file->lock.user != ctx || file->lock.fd != fd))
		file = file->next;
	if (file) /* else the lock was broken */
		file->lock.user = NULL;
	spokei_vnet_table.close(ctx, fd);
}

static int files_is_locked(void *ctx, const char *path)
{
	struct spokei_vfiles *files = files_of(ctx);
	const struct memfile *file = find_file(files, path);
	int error = check_fault(files, SPOKEI_VFILES_IS_LOCKED);

	if (error)
		return error;
	return file && (file->held || is_open(files, &file->lock)) ? 1 : 0;
}

static void files_drop(void *ctx, const char *path, int fd)
{
	(void)path;
	files_unlock(ctx, fd);
}

/* Files here are never left half written, and locks have no files. */
static int files_sweep(void *ctx, const char *path)
{
	(void)path;
	return check_fault(files_of(ctx), SPOKEI_VFILES_SWEEP);
}

const struct spoke_files spokei_vfiles_table = {
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

/* --- for tests */

struct spokei_vfiles *spokei_vfiles_new(struct spokei_vnet *net)
{
	struct spokei_vfiles *files = calloc(1, sizeof(*files));

	if (files)
		files->net = net;
	return files;
}

void spokei_vfiles_free(struct spokei_vfiles *files)
{
	while (files && files->first) {
		struct memfile *file = files->first;

		files->first = file->next;
		while (file->watches)
			(void)drop_watch(file, file->watches->user, file->watches->fd);
		free(file->path);
		free(file->bytes);
		free(file);
	}
	free(files);
}

void spokei_vfiles_put(struct spokei_vfiles *files, const char *path, const char *text)
{
	spokei_vfiles_put_bytes(files, path, text, strlen(text));
}

void spokei_vfiles_put_bytes(struct spokei_vfiles *files, const char *path, const void *bytes,
			     size_t len)
{
	write_file(files, make_file(files, path), 0, bytes, len);
}

void spokei_vfiles_remove(struct spokei_vfiles *files, const char *path)
{
	struct memfile *file = make_file(files, path);

	free(file->bytes);
	file->bytes = NULL;
	file->len = 0;
	tell(files, file);
}

const char *spokei_vfiles_get(const struct spokei_vfiles *files, const char *path)
{
	const struct memfile *file = find_file(files, path);

	return file ? file->bytes : NULL;
}

void spokei_vfiles_expose(struct spokei_vfiles *files, const char *path, bool exposed)
{
	make_file(files, path)->exposed = exposed;
}

void spokei_vfiles_hold(struct spokei_vfiles *files, const char *path, bool held)
{
	make_file(files, path)->held = held;
}

void spokei_vfiles_break(struct spokei_vfiles *files, const char *path)
{
	make_file(files, path)->lock.user = NULL;
}

void spokei_vfiles_fail(struct spokei_vfiles *files, enum spokei_vfiles_call call, unsigned times,
			int error)
{
	SPOKE_ASSERT(error < 0);
	files->failing[call] = times;
	files->errors[call] = error;
}

void spokei_vfiles_mute(struct spokei_vfiles *files, bool mute)
{
	files->muted = mute;
}

unsigned spokei_vfiles_calls(const struct spokei_vfiles *files, enum spokei_vfiles_call call)
{
	return files->calls[call];
}
