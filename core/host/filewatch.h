/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches files by inotify. The folder of each file is watched, because the file may be replaced or
 * may not exist yet. Changes behind a folder that is a symbolic link, and changes made on other
 * machines, are not seen. When the folder is removed or moved, the watch reports that once and sees
 * nothing more.
 *
 * A list of the process behind a mutex; any thread. The context is not used.
 */
#ifndef SPOKEI_CORE_HOST_FILEWATCH_H
#define SPOKEI_CORE_HOST_FILEWATCH_H

#include <stdbool.h>
#include <stddef.h>

/* As in struct spoke_files. -ENOENT: the folder does not exist; -EINVAL: the path names no file;
 * -EMFILE, -ENOSPC: a limit of the system is reached. */
int spokei_filewatch_open(void *ctx, const char *path, int *ret_fd);
bool spokei_filewatch_changed(void *ctx, int fd);
void spokei_filewatch_close(void *ctx, int fd);

/* Writes the folder of a path. Returns the name in it, or NULL if the folder does not fit. */
const char *spokei_filewatch_folder(const char *path, char *folder, size_t size);

#endif
