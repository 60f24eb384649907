/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a listening unix socket: how its path is taken, and given back. The socket of a dead
 * listener is replaced; it is known by refusing to connect. Anything else at the path is left alone
 * and the path is in use. Of two processes that start on one path in the same moment one is told
 * so. Whoever listens remembers the file it made (device and inode), and removes it when it closes
 * if that is what still lies there; a forked child that closes its copy does not.
 *
 * A list of the process behind a mutex; any thread.
 */
#ifndef SPOKEI_CORE_HOST_SOCKFILE_H
#define SPOKEI_CORE_HOST_SOCKFILE_H

#include <stddef.h>

/* Binds `fd` to the path, which is not empty, ends with a NUL and fits a socket address, and
 * listens. 0 or a negative errno; then `fd` may be bound and is good for nothing but close. */
int spokei_sockfile_listen(int fd, const char *path, int backlog);

/* To be called before any descriptor is closed: gives back its path, if it has one. */
void spokei_sockfile_closing(int fd);

#endif
