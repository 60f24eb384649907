/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches files by inotify. Each watch has an inotify descriptor of its own, so that no watch takes
 * the events of another; a list holds the names. In a forked child the descriptor is shared with
 * the parent: there it is closed, and nothing else is done with it.
 */
#define _GNU_SOURCE
#include "core/host/filewatch.h"

#include "core/host/filelock.h"
#include "timer/base.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
	NOTED = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_CLOSE_WRITE |
		IN_DELETE_SELF | IN_MOVE_SELF,
	ALL = IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF,
	READS_MAX = 16, /* reads of events in one go; further events wake the watch again */
};

struct filewatch {
	struct filewatch *next;
	int fd;
	char name[NAME_MAX + 1];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct filewatch *watches; /* guarded by the lock */

static void lock_up(void)
{
	(void)pthread_mutex_lock(&lock);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

/* A child must not inherit the lock held by a thread that does not exist there. */
static void watch_forks(void)
{
	(void)pthread_atfork(lock_up, unlock, unlock);
}

const char *spokei_filewatch_folder(const char *path, char *folder, size_t size)
{
	const char *slash = strrchr(path, '/');
	const char *from = slash ? path : ".";
	size_t len = slash && slash != path ? (size_t)(slash - path) : 1;

	if (len >= size)
		return NULL;
	memcpy(folder, from, len);
	folder[len] = '\0';
	return slash ? slash + 1 : path;
}

int spokei_filewatch_open(void *ctx, const char *path, int *ret_fd)
{
	char folder[PATH_MAX];
	const char *name = spokei_filewatch_folder(path, folder, sizeof(folder));
	struct filewatch *watch;
	int error;

	(void)ctx;
	if (name == NULL || strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	if (name[0] == '\0')
		return -EINVAL;
	(void)pthread_once(&once, watch_forks);
	watch = calloc(1, sizeof(*watch));
	if (watch == NULL)
		return -ENOMEM;
	memcpy(watch->name, name, strlen(name) + 1);
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->fd < 0) {
		error = -errno;
		goto err_after_calloc;
	}
	if (inotify_add_watch(watch->fd, folder, NOTED | IN_ONLYDIR) < 0) {
		error = -errno;
		goto err_after_init;
	}
	lock_up();
	watch->next = watches;
	watches = watch;
	unlock();
	*ret_fd = watch->fd;
	return 0;

err_after_init:
	(void)close(watch->fd);
err_after_calloc:
	free(watch);
	return error;
}

/* Returns whether the event is the end of a lock beside the file. The kernel closes the descriptors
 * of a process that dies. */
static bool is_end_of_mark(const struct filewatch *watch, const struct inotify_event *event,
			   const char *name)
{
	return event->len > 0 && (event->mask & (uint32_t)(IN_CLOSE_WRITE | IN_DELETE)) != 0 &&
	       spokei_filelock_is_mark(name, watch->name);
}

/* Returns whether one of these events is about the file. */
static bool is_told(const struct filewatch *watch, const char *bytes, size_t len)
{
	bool told = false;

	while (len >= sizeof(struct inotify_event)) {
		struct inotify_event event;
		size_t size;

		memcpy(&event, bytes, sizeof(event));
		size = sizeof(event) + event.len;
		SPOKE_ASSERT(size <= len);
		told = told || (event.mask & (uint32_t)ALL) != 0 ||
		       (event.len > 0 && strcmp(bytes + sizeof(event), watch->name) == 0) ||
		       is_end_of_mark(watch, &event, bytes + sizeof(event));
		bytes += size;
		len -= size;
	}
	return told;
}

bool spokei_filewatch_changed(void *ctx, int fd)
{
	char bytes[4096];
	struct filewatch *watch;
	bool changed = false;
	ssize_t got = 1;

	(void)ctx;
	lock_up();
	watch = watches;
	while (watch && watch->fd != fd)
		watch = watch->next;
	unlock();
	SPOKE_ASSERT(watch != NULL);
	for (int i = 0; i < READS_MAX && got > 0; i++) {
		got = read(fd, bytes, sizeof(bytes));
		if (got > 0)
			changed = is_told(watch, bytes, (size_t)got) || changed;
	}
	return changed;
}

void spokei_filewatch_close(void *ctx, int fd)
{
	struct filewatch **link = &watches;
	struct filewatch *watch;

	(void)ctx;
	lock_up();
	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	watch = *link;
	SPOKE_ASSERT(watch != NULL);
	*link = watch->next;
	unlock();
	(void)close(fd);
	free(watch);
}
