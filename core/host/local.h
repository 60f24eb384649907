/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of struct spoke_net for unix sockets alone. Any thread. */
#ifndef SPOKEI_CORE_HOST_LOCAL_H
#define SPOKEI_CORE_HOST_LOCAL_H

#include <spoke/env.h>

#include <stddef.h>
#include <stdint.h>

/* --- sockets
 *
 * The user of the peer, and the mode of the file. */

/* Is credentials() of the table. */
int spokei_local_credentials(void *ctx, int fd, uint32_t *ret_uid, uint32_t *ret_gid,
			     int32_t *ret_pid);

/* Is listen_mode() of the table. A socket that a service manager has passed keeps its own mode. */
int spokei_local_listen(void *ctx, const struct spoke_address *where, int backlog, uint32_t mode,
			int *ret_fd);

/* --- shared memory
 *
 * Memory that is shared with a process at the other end of a unix socket. */

/* As share(), shared() and unshare() of struct spoke_net. */
int spokei_shared_give(void *ctx, int fd, const struct iovec *bytes, size_t size,
		       struct spoke_shared *ret);
ssize_t spokei_shared_take(void *ctx, int fd, const struct iovec *bytes, size_t size_max,
			   struct spoke_shared *ret);
void spokei_shared_drop(void *ctx, struct spoke_shared *shared);

/* --- the file of a listener
 *
 * The file of a listening unix socket: how its path is taken and given back. The socket of a dead
 * listener, which refuses to connect, is replaced. Any other file at the path is left alone, and
 * the path counts as in use. If two processes start on one path at the same moment, one of them
 * gets an error. A listener remembers device and inode of its file and removes the file on close
 * if it is still there; a forked child that closes its copy does not.
 *
 * A list of the process behind a mutex; any thread. */

#define SPOKEI_SOCKFILE_UMASK UINT32_MAX /* as the umask of the process says */

/* Binds `fd` to the path and listens. The path is not empty, ends with a NUL and fits a socket
 * address. `mode`: the permission bits of the file, which never has more than these. Returns 0 or a
 * negative errno; after an error `fd` may be bound and can only be closed.
 */
int spokei_sockfile_listen(int fd, const char *path, int backlog, uint32_t mode);

/* Gives back the path of a descriptor, if it has one. Call it before any descriptor is closed. */
void spokei_sockfile_closing(int fd);

#endif
