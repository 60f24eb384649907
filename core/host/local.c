/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: the user of the peer, and listening with a mode. */
#define _GNU_SOURCE
#include "core/host/local.h"

#include "core/host/sockfile.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int spokei_local_credentials(void *ctx, int fd, uint32_t *ret_uid, uint32_t *ret_gid,
			     int32_t *ret_pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	(void)ctx;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return -errno;
	/* The system gives this to sockets without a peer on this machine. */
	if (peer.uid == (uid_t)-1)
		return -EOPNOTSUPP;
	*ret_uid = peer.uid;
	*ret_gid = peer.gid;
	*ret_pid = peer.pid;
	return 0;
}

/* Reads the path of an address, which ends with a NUL. Returns whether it has one. */
static bool read_path(const struct spoke_address *where, struct sockaddr_un *ret_at)
{
	*ret_at = (struct sockaddr_un){ .sun_family = AF_UNSPEC };
	if (where->len <= offsetof(struct sockaddr_un, sun_path) || where->len > sizeof(*ret_at))
		return false;
	memcpy(ret_at, where->bytes, where->len);
	return ret_at->sun_family == AF_UNIX && ret_at->sun_path[0] != '\0';
}

int spokei_local_listen(void *ctx, const struct spoke_address *where, int backlog, uint32_t mode,
			int *ret_fd)
{
	struct sockaddr_un at;
	int error;
	int fd;

	(void)ctx;
	if (!read_path(where, &at))
		return -EOPNOTSUPP;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	error = spokei_sockfile_listen(fd, at.sun_path, backlog, mode);
	if (error)
		(void)close(fd);
	else
		*ret_fd = fd;
	return error;
}
