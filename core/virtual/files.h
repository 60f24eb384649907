/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in memory that implement struct spoke_files, shared by the processes of a virtual world: a
 * path is a name and no more, there are no folders. Watches and locks are spare descriptors of the
 * network, so that they count as such and loops can wait for them; a process that is killed loses
 * them.
 */
#ifndef SPOKEI_CORE_VIRTUAL_FILES_H
#define SPOKEI_CORE_VIRTUAL_FILES_H

#include <spoke/env.h>

struct memfiles;
struct memnet;

/* The ctx of an environment with this table begins with a struct memnet_user. */
extern const struct spoke_files memfiles_table;

/* What can fail. */
enum memfiles_call {
	MEMFILES_READ,
	MEMFILES_REPLACE,
	MEMFILES_APPEND,
	MEMFILES_WATCH,
	MEMFILES_LOCK,
	MEMFILES_CALLS,
};

/* The files of a world with that network, borrowed; NULL without memory. */
struct memfiles *memfiles_new(struct memnet *net);
void memfiles_free(struct memfiles *files);

/* Somebody outside writes a file, removes it. Who watches it is told. */
void memfiles_put(struct memfiles *files, const char *path, const char *text);
void memfiles_put_bytes(struct memfiles *files, const char *path, const void *bytes, size_t len);
void memfiles_remove(struct memfiles *files, const char *path);

/* What is in a file, with a NUL behind; NULL: there is none. Good until it changes. */
const char *memfiles_get(const struct memfiles *files, const char *path);

/* Somebody outside locks it and keeps the lock, or gives it back. */
void memfiles_hold(struct memfiles *files, const char *path, bool held);

/* The next `times` calls of this kind, of any process and any file, fail with a negative errno
 * before anything happens. */
void memfiles_fail(struct memfiles *files, enum memfiles_call call, unsigned times, int error);

/* As on a file system of the network: changes are not told. */
void memfiles_mute(struct memfiles *files, bool mute);

/* How many calls of this kind there were, the failed ones included. */
unsigned memfiles_calls(const struct memfiles *files, enum memfiles_call call);

#endif
