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

struct spokei_vfiles;
struct spokei_vnet;

/* The ctx of an environment with this table begins with a struct spokei_vnet_user. */
extern const struct spoke_files spokei_vfiles_table;

/* What can fail. */
enum spokei_vfiles_call {
	SPOKEI_VFILES_READ,
	SPOKEI_VFILES_REPLACE,
	SPOKEI_VFILES_APPEND,
	SPOKEI_VFILES_WATCH,
	SPOKEI_VFILES_LOCK,
	SPOKEI_VFILES_CALLS,
};

/* The files of a world with that network, borrowed; NULL without memory. */
struct spokei_vfiles *spokei_vfiles_new(struct spokei_vnet *net);
void spokei_vfiles_free(struct spokei_vfiles *files);

/* Somebody outside writes a file, removes it. Who watches it is told. */
void spokei_vfiles_put(struct spokei_vfiles *files, const char *path, const char *text);
void spokei_vfiles_put_bytes(struct spokei_vfiles *files, const char *path, const void *bytes,
			     size_t len);
void spokei_vfiles_remove(struct spokei_vfiles *files, const char *path);

/* What is in a file, with a NUL behind; NULL: there is none. Good until it changes. */
const char *spokei_vfiles_get(const struct spokei_vfiles *files, const char *path);

/* Somebody outside locks it and keeps the lock, or gives it back. */
void spokei_vfiles_hold(struct spokei_vfiles *files, const char *path, bool held);

/* The next `times` calls of this kind, of any process and any file, fail with a negative errno
 * before anything happens. */
void spokei_vfiles_fail(struct spokei_vfiles *files, enum spokei_vfiles_call call, unsigned times,
			int error);

/* As on a file system of the network: changes are not told. */
void spokei_vfiles_mute(struct spokei_vfiles *files, bool mute);

/* How many calls of this kind there were, the failed ones included. */
unsigned spokei_vfiles_calls(const struct spokei_vfiles *files, enum spokei_vfiles_call call);

#endif
