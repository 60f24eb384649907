/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in memory that implement struct spoke_files, shared by the processes of a virtual world. A
 * path is only a name; there are no folders. Watches and locks are spare descriptors of the
 * network, so they count as descriptors and loops can wait for them. A process that is killed loses
 * them; watches do not report that.
 */
#ifndef SPOKEI_CORE_VIRTUAL_FILES_H
#define SPOKEI_CORE_VIRTUAL_FILES_H

#include <spoke/env.h>

struct spokei_vfiles;
struct spokei_vnet;

/* The context of an environment with this table begins with a struct spokei_vnet_user. */
extern const struct spoke_files spokei_vfiles_table;

/* The calls that can fail. */
enum spokei_vfiles_call {
	SPOKEI_VFILES_READ,
	SPOKEI_VFILES_REPLACE,
	SPOKEI_VFILES_APPEND,
	SPOKEI_VFILES_WATCH,
	SPOKEI_VFILES_LOCK,
	SPOKEI_VFILES_IS_LOCKED,
	SPOKEI_VFILES_SWEEP,
	SPOKEI_VFILES_OPEN_LOG,
	SPOKEI_VFILES_WRITE_AT,
	SPOKEI_VFILES_ALLOCATE,
	SPOKEI_VFILES_SYNC,
	SPOKEI_VFILES_SYNC_FOLDER,
	SPOKEI_VFILES_LIST,
	SPOKEI_VFILES_REMOVE,
	SPOKEI_VFILES_CALLS,
};

/* Makes the files of a world with that network, borrowed; NULL without memory. */
struct spokei_vfiles *spokei_vfiles_new(struct spokei_vnet *net);
void spokei_vfiles_free(struct spokei_vfiles *files);

/* Writes or removes a file from outside the world. Its watches are notified. */
void spokei_vfiles_put(struct spokei_vfiles *files, const char *path, const char *text);
void spokei_vfiles_put_bytes(struct spokei_vfiles *files, const char *path, const void *bytes,
			     size_t len);
void spokei_vfiles_remove(struct spokei_vfiles *files, const char *path);

/* Lets others than its owner read a file, or not. */
void spokei_vfiles_expose(struct spokei_vfiles *files, const char *path, bool exposed);

/* Returns the content of a file, ended by a NUL; NULL: no such file. Valid until it changes. */
const char *spokei_vfiles_get(const struct spokei_vfiles *files, const char *path);

/* Locks a file from outside the world and keeps the lock, or gives it back. */
void spokei_vfiles_hold(struct spokei_vfiles *files, const char *path, bool held);

/* Takes a lock from its holder, which keeps the descriptor: the lock's file was removed. */
void spokei_vfiles_break(struct spokei_vfiles *files, const char *path);

/* The next `times` calls of this kind, of any process and any file, fail with a negative errno
 * before anything happens; but a write may have written its beginning, and a sync may have brought
 * some writes to the disk and forgets the others. */
void spokei_vfiles_fail(struct spokei_vfiles *files, enum spokei_vfiles_call call, unsigned times,
			int error);

/* Behaves like a network file system: changes are not reported. */
void spokei_vfiles_mute(struct spokei_vfiles *files, bool mute);

/* Returns how many calls of this kind there were, including the failed ones. */
unsigned spokei_vfiles_calls(const struct spokei_vfiles *files, enum spokei_vfiles_call call);

/* --- the disk
 *
 * Files are on one disk, which loses unsynced writes when power fails: see disk.h. A name, and its
 * removal, is durable after a sync of its folder, and may be before. replace() does all of that
 * itself. Locks and watches are not on the disk. */

/* Failures by the disk's own random numbers: each happens once in so many calls; 0: never. */
struct spokei_vfiles_harm {
	unsigned write_fails;  /* -EIO, after a part was written */
	unsigned sync_fails;   /* -EIO; some writes are lost, and the next sync succeeds */
	unsigned sync_is_slow; /* replace(), sync() and sync_folder() take slow_ns longer */
	uint64_t slow_ns;      /* on a thread of the pool; a loop is held up */
};

/* Seeds the random numbers of the disk, and begins with these failures; NULL: none. */
void spokei_vfiles_harm(struct spokei_vfiles *files, uint64_t seed,
			const struct spokei_vfiles_harm *harm);

/* Sets the size of the disk: -ENOSPC beyond it. Without limit by default. */
void spokei_vfiles_room(struct spokei_vfiles *files, uint64_t bytes);

/* The disk makes this many more steps (a write, an allocation, a sync, a change of a name) and then
 * fails each with -EIO, unchanged: the machine ends there. */
void spokei_vfiles_cut(struct spokei_vfiles *files, unsigned steps);

/* Returns whether the disk makes no more steps. */
bool spokei_vfiles_is_cut(const struct spokei_vfiles *files);

/* Power fails and comes back: unsynced changes are kept, lost or torn, and the disk works again.
 * The processes must have ended. */
void spokei_vfiles_lose(struct spokei_vfiles *files);

/* Flips a bit of a file. */
void spokei_vfiles_flip(struct spokei_vfiles *files, const char *path, size_t bit);

#endif
