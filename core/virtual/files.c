/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory, with watches, locks and faults, on a simulated disk. */
#include "core/virtual/files.h"

#include "core/virtual/disk.h"
#include "core/virtual/net_parts.h"
#include "timer/base.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A descriptor of a process; the process may be gone. */
struct holder {
	struct holder *next;
	struct spokei_vnet_user *user;  /* NULL: none */
	struct spokei_vdisk_file *file; /* of open_log() */
	int fd;
};

struct memfile {
	struct memfile *next;
	char *path;
	struct spokei_vdisk_file *file;    /* NULL: the file does not exist */
	struct spokei_vdisk_file *durable; /* the file that has this name on the disk */
	bool exposed;                      /* others than its owner may read it */
	bool held;                         /* locked by a process outside the world */
	struct holder lock;                /* ... or by this holder */
	struct holder *watches;
};

struct spokei_vfiles {
	struct spokei_vnet *net;
	struct memfile *first;
	struct spokei_vdisk_file *contents; /* all of them */
	struct holder *logs;
	struct spokei_vfiles_harm harm;
	uint64_t dice;
	uint64_t room;  /* bytes of the disk */
	unsigned steps; /* that the disk still makes */
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

/* --- contents */

static struct spokei_vdisk_file *make_content(struct spokei_vfiles *files)
{
	struct spokei_vdisk_file *made = spokei_vdisk_new();

	made->next = files->contents;
	files->contents = made;
	return made;
}

static void hold(struct spokei_vdisk_file **ret, struct spokei_vdisk_file *content)
{
	if (content)
		content->holders++;
	*ret = content;
}

static void let_go(struct spokei_vfiles *files, struct spokei_vdisk_file **held)
{
	struct spokei_vdisk_file **link = &files->contents;
	struct spokei_vdisk_file *content = *held;

	*held = NULL;
	if (content == NULL || --content->holders > 0)
		return;
	while (*link != content)
		link = &(*link)->next;
	*link = content->next;
	spokei_vdisk_free(content);
}

/* Gives a name to a content, or removes the name: NULL. */
static void name_content(struct spokei_vfiles *files, struct memfile *file,
			 struct spokei_vdisk_file *content)
{
	struct spokei_vdisk_file *before = file->file;

	hold(&file->file, content);
	let_go(files, &before);
	tell(files, file);
}

static void make_name_durable(struct spokei_vfiles *files, struct memfile *file)
{
	struct spokei_vdisk_file *before = file->durable;

	hold(&file->durable, file->file);
	let_go(files, &before);
}

/* Returns whether the disk has room for so many bytes more. */
static bool has_room(const struct spokei_vfiles *files, size_t more)
{
	uint64_t used = more;

	for (const struct spokei_vdisk_file *at = files->contents; at; at = at->next)
		used += at->seen.len;
	return used <= files->room;
}

/* Writes a file from outside of the world. */
static void write_file(struct spokei_vfiles *files, struct memfile *file, const void *bytes,
		       size_t len)
{
	struct spokei_vdisk_file *content = make_content(files);

	spokei_vdisk_write(content, 0, bytes, len);
	spokei_vdisk_sync(content);
	name_content(files, file, content);
	make_name_durable(files, file);
}

static struct spokei_vfiles *files_of(void *ctx)
{
	return ((struct spokei_vnet_user *)ctx)->files;
}

/* Returns true once in `times`, by the dice; 0: never. */
static bool is_once_in(struct spokei_vfiles *files, unsigned times)
{
	return times > 0 && spokei_vdisk_dice(&files->dice) % times == 0;
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

/* Returns whether the disk makes another step. */
static bool makes_step(struct spokei_vfiles *files)
{
	if (files->steps == 0)
		return false;
	files->steps -= files->steps != UINT_MAX;
	return true;
}

/* --- the table of functions */

/* Lets the calling thread wait for the disk: that of a pool, or the loop's. */
static void delay(void *ctx)
{
	struct spokei_vnet_user *user = ctx;
	struct spokei_vfiles *files = user->files;

	if (user->delay && is_once_in(files, files->harm.sync_is_slow))
		user->delay(user, files->harm.slow_ns);
}

static ssize_t files_read(void *ctx, const char *path, void *bytes, size_t size)
{
	struct spokei_vfiles *files = files_of(ctx);
	const struct memfile *file = find_file(files, path);
	int error = check_fault(files, SPOKEI_VFILES_READ);
	size_t len;

	if (error)
		return error;
	if (file == NULL || file->file == NULL)
		return -ENOENT;
	len = file->file->seen.len;
	memcpy(bytes, file->file->seen.bytes, len < size ? len : size);
	return len > size ? -EFBIG : (ssize_t)len;
}

static ssize_t files_read_secret(void *ctx, const char *path, void *bytes, size_t size)
{
	const struct memfile *file = find_file(files_of(ctx), path);

	if (file && file->file && file->exposed)
		return -EPERM;
	return files_read(ctx, path, bytes, size);
}

/* Makes all steps of the real one; the name of its temporary file is not seen. */
static int files_replace(void *ctx, const char *path, const void *bytes, size_t len,
			 bool is_private)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct memfile *file = make_file(files, path);
	struct spokei_vdisk_file *content;
	int error = check_fault(files, SPOKEI_VFILES_REPLACE);

	(void)is_private;
	if (!error && !has_room(files, len))
		error = -ENOSPC;
	if (!error && !makes_step(files))
		error = -EIO;
	if (error)
		return error;
	hold(&content, make_content(files));
	spokei_vdisk_write(content, 0, bytes, len);
	if (makes_step(files))
		spokei_vdisk_sync(content);
	else
		error = -EIO;
	if (!error && makes_step(files))
		name_content(files, file, content);
	else
		error = -EIO;
	if (!error && makes_step(files))
		make_name_durable(files, file);
	let_go(files, &content);
	delay(ctx);
	return error;
}

static int files_append(void *ctx, const char *path, const void *bytes, size_t len)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct memfile *file = make_file(files, path);
	int error = check_fault(files, SPOKEI_VFILES_APPEND);

	if (error || len == 0)
		return error;
	if (!has_room(files, len))
		return -ENOSPC;
	if (!makes_step(files))
		return -EIO;
	if (file->file == NULL)
		name_content(files, file, make_content(files));
	spokei_vdisk_write(file->file, file->file->seen.len, bytes, len);
	tell(files, file);
	return 0;
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

/* --- logs */

static bool is_in_folder(const struct memfile *file, const char *folder)
{
	size_t len = strlen(folder);
	const char *slash = strrchr(file->path, '/');

	return slash && (size_t)(slash - file->path) == len &&
	       strncmp(file->path, folder, len) == 0;
}

static int files_open_log(void *ctx, const char *path, bool is_new, int *ret_fd)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct memfile *file = make_file(files, path);
	struct holder *log;
	int error = check_fault(files, SPOKEI_VFILES_OPEN_LOG);

	if (!error && is_new == (file->file != NULL))
		error = is_new ? -EEXIST : -ENOENT;
	if (!error && is_new && !makes_step(files))
		error = -EIO;
	if (!error)
		error = spokei_vnet_table.spare(ctx, ret_fd);
	if (error)
		return error;
	if (is_new)
		name_content(files, file, make_content(files));
	log = calloc(1, sizeof(*log));
	SPOKE_ASSERT(log != NULL);
	*log = (struct holder){ .next = files->logs, .user = ctx, .fd = *ret_fd };
	hold(&log->file, file->file);
	files->logs = log;
	return 0;
}

/* Forgets logs whose descriptors are closed. */
static void sweep_logs(struct spokei_vfiles *files, bool all)
{
	struct holder **link = &files->logs;

	while (*link) {
		struct holder *log = *link;

		if (!all && is_open(files, log)) {
			link = &log->next;
			continue;
		}
		*link = log->next;
		let_go(files, &log->file);
		free(log);
	}
}

/* Returns the content of an open log. */
static struct spokei_vdisk_file *log_of(void *ctx, int fd)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct holder *log;

	sweep_logs(files, false);
	log = files->logs;
	while (log && (log->user != ctx || log->fd != fd))
		log = log->next;
	SPOKE_ASSERT(log != NULL);
	return log->file;
}

/* Writes bytes, or zeros up to `end`. A write that fails has written its beginning. */
static int write_log(void *ctx, struct spokei_vdisk_file *log, size_t at, const void *bytes,
		     size_t len, int error)
{
	struct spokei_vfiles *files = files_of(ctx);
	size_t end = at + len;

	if (!makes_step(files))
		return -EIO;
	if (!error && end > log->seen.len && !has_room(files, end - log->seen.len))
		error = -ENOSPC;
	if (!error && is_once_in(files, files->harm.write_fails))
		error = -EIO;
	if (error == -ENOSPC && end > log->seen.len)
		len = at < log->seen.len ? log->seen.len - at : 0;
	else if (error)
		len = spokei_vdisk_dice(&files->dice) % (len + 1);
	if (len > 0)
		spokei_vdisk_write(log, at, bytes, len);
	return error;
}

static int files_write_at(void *ctx, int fd, uint64_t at, const void *bytes, size_t len)
{
	struct spokei_vfiles *files = files_of(ctx);

	return write_log(ctx, log_of(ctx, fd), (size_t)at, bytes, len,
			 check_fault(files, SPOKEI_VFILES_WRITE_AT));
}

static int files_allocate(void *ctx, int fd, uint64_t size)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct spokei_vdisk_file *log = log_of(ctx, fd);
	int error = check_fault(files, SPOKEI_VFILES_ALLOCATE);

	if (error || size <= log->seen.len)
		return error;
	return write_log(ctx, log, log->seen.len, NULL, (size_t)size - log->seen.len, 0);
}

static int files_sync(void *ctx, int fd)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct spokei_vdisk_file *log = log_of(ctx, fd);
	int error = check_fault(files, SPOKEI_VFILES_SYNC);

	if (!makes_step(files))
		return -EIO;
	if (!error && is_once_in(files, files->harm.sync_fails))
		error = -EIO;
	if (error)
		spokei_vdisk_sync_badly(log, &files->dice);
	else
		spokei_vdisk_sync(log);
	delay(ctx);
	return error;
}

static int files_sync_folder(void *ctx, const char *folder)
{
	struct spokei_vfiles *files = files_of(ctx);
	int error = check_fault(files, SPOKEI_VFILES_SYNC_FOLDER);

	if (!error && !makes_step(files))
		error = -EIO;
	if (!error && is_once_in(files, files->harm.sync_fails))
		error = -EIO;
	for (struct memfile *file = files->first; !error && file; file = file->next)
		if (is_in_folder(file, folder))
			make_name_durable(files, file);
	delay(ctx);
	return error;
}

static ssize_t files_list(void *ctx, const char *folder, char *names, size_t size)
{
	struct spokei_vfiles *files = files_of(ctx);
	size_t len = 0;
	int error = check_fault(files, SPOKEI_VFILES_LIST);

	for (struct memfile *file = files->first; !error && file; file = file->next) {
		const char *name = file->path + strlen(folder) + 1;

		if (file->file == NULL || !is_in_folder(file, folder))
			continue;
		if (strlen(name) + 1 > size - len)
			return -EFBIG;
		memcpy(names + len, name, strlen(name) + 1);
		len += strlen(name) + 1;
	}
	return error ? error : (ssize_t)len;
}

static int files_remove(void *ctx, const char *path)
{
	struct spokei_vfiles *files = files_of(ctx);
	struct memfile *file = find_file(files, path);
	int error = check_fault(files, SPOKEI_VFILES_REMOVE);

	if (!error && (file == NULL || file->file == NULL))
		error = -ENOENT;
	if (!error && !makes_step(files))
		error = -EIO;
	if (!error)
		name_content(files, file, NULL);
	return error;
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
	.open_log = files_open_log,
	.write_at = files_write_at,
	.allocate = files_allocate,
	.sync = files_sync,
	.sync_folder = files_sync_folder,
	.list = files_list,
	.remove = files_remove,
};

/* --- for tests */

struct spokei_vfiles *spokei_vfiles_new(struct spokei_vnet *net)
{
	struct spokei_vfiles *files = calloc(1, sizeof(*files));

	if (files)
		*files = (struct spokei_vfiles){
			.net = net, .dice = 1, .room = UINT64_MAX, .steps = UINT_MAX
		};
	return files;
}

void spokei_vfiles_free(struct spokei_vfiles *files)
{
	if (files)
		sweep_logs(files, true);
	while (files && files->first) {
		struct memfile *file = files->first;

		files->first = file->next;
		while (file->watches)
			(void)drop_watch(file, file->watches->user, file->watches->fd);
		let_go(files, &file->file);
		let_go(files, &file->durable);
		free(file->path);
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
	write_file(files, make_file(files, path), bytes, len);
}

void spokei_vfiles_remove(struct spokei_vfiles *files, const char *path)
{
	struct memfile *file = make_file(files, path);

	name_content(files, file, NULL);
	make_name_durable(files, file);
}

const char *spokei_vfiles_get(const struct spokei_vfiles *files, const char *path)
{
	const struct memfile *file = find_file(files, path);

	return file && file->file ? file->file->seen.bytes : NULL;
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

/* --- harm to the disk */

void spokei_vfiles_harm(struct spokei_vfiles *files, uint64_t seed,
			const struct spokei_vfiles_harm *harm)
{
	files->dice = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	files->harm = harm ? *harm : (struct spokei_vfiles_harm){ 0 };
}

void spokei_vfiles_room(struct spokei_vfiles *files, uint64_t bytes)
{
	files->room = bytes;
}

void spokei_vfiles_cut(struct spokei_vfiles *files, unsigned steps)
{
	files->steps = steps;
}

bool spokei_vfiles_is_cut(const struct spokei_vfiles *files)
{
	return files->steps == 0;
}

void spokei_vfiles_lose(struct spokei_vfiles *files)
{
	sweep_logs(files, true);
	for (struct memfile *file = files->first; file; file = file->next) {
		if (file->file != file->durable && spokei_vdisk_dice(&files->dice) % 2 == 0) {
			make_name_durable(files, file);
		} else if (file->file != file->durable) {
			name_content(files, file, file->durable);
		}
	}
	for (struct spokei_vdisk_file *at = files->contents; at; at = at->next)
		spokei_vdisk_lose(at, &files->dice);
	files->steps = UINT_MAX;
}

void spokei_vfiles_flip(struct spokei_vfiles *files, const char *path, size_t bit)
{
	struct memfile *found = find_file(files, path);

	SPOKE_ASSERT(found != NULL);
	spokei_vdisk_flip(found->file, bit);
}
