/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a listening unix socket: how its path is taken and given back. The socket of a dead
 * listener, which refuses to connect, is replaced. Any other file at the path is left alone, and
 * the path counts as in use. If two processes start on one path at the same moment, one of them
 * gets an error. A listener remembers device and inode of its file and removes the file on close if
 * it is still there; a forked child that closes its copy does not.
 *
 * A list of the process behind a mutex; any thread.
 */
#ifndef SPOKEI_CORE_HOST_SOCKFILE_H
#define SPOKEI_CORE_HOST_SOCKFILE_H

#include <stddef.h>
#include <stdint.h>

#define SPOKEI_SOCKFILE_UMASK UINT32_MAX /* as the umask of the process says */

/* Binds `fd` to the path and listens. The path is not empty, ends with a NUL and fits a socket
 * address. `mode`: the permission bits of the file, which never has more than these. Returns 0 or a
 * negative errno; after an error `fd` may be bound and can only be closed.
 */
int spokei_sockfile_listen(int fd, const char *path, int backlog, uint32_t mode);

/* Gives back the path of a descriptor, if it has one. Call it before any descriptor is closed. */
void spokei_sockfile_closing(int fd);

#endif
