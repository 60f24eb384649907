/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches files by inotify: the folder of each is watched, for the file itself may be replaced, or
 * not be there yet. So a folder that is a link to another one, and changes on other machines, are
 * not seen; when the folder is removed or moved that is told, once, and the watch sees nothing
 * more.
 *
 * A list of the process behind a mutex; any thread. The context is not used.
 */
#ifndef SPOKEI_CORE_HOST_FILEWATCH_H
#define SPOKEI_CORE_HOST_FILEWATCH_H

#include <stdbool.h>
#include <stddef.h>

/* As in struct spoke_files. -ENOENT: the folder is not there; -EINVAL: the path names no file;
 * -EMFILE, -ENOSPC: a limit of the system is reached. */
int spokei_filewatch_open(void *ctx, const char *path, int *ret_fd);
bool spokei_filewatch_changed(void *ctx, int fd);
void spokei_filewatch_close(void *ctx, int fd);

/* Writes the folder of a path; returns the name in it, or NULL: the folder does not fit. */
const char *spokei_filewatch_folder(const char *path, char *folder, size_t size);

#endif
