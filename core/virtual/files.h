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
 * before anything happens. */
void spokei_vfiles_fail(struct spokei_vfiles *files, enum spokei_vfiles_call call, unsigned times,
			int error);

/* Behaves like a network file system: changes are not reported. */
void spokei_vfiles_mute(struct spokei_vfiles *files, bool mute);

/* Returns how many calls of this kind there were, including the failed ones. */
unsigned spokei_vfiles_calls(const struct spokei_vfiles *files, enum spokei_vfiles_call call);

#endif
