/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets. Every function is one system call where possible. A call that a signal interrupts is
 * repeated, except connect, which goes on by itself, and close, which is done.
 */
#define _GNU_SOURCE
#include "core/host/host.h"

#include "core/base/address.h"
#include "core/host/local.h"
#include "core/host/manager.h"
#include "timer/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

enum {
	KEEP_MAX_S = 32767, /* the largest value that Linux accepts */
	PROBES_MIN = 2,
	PROBES_MAX = 4,
};

/* An address in the form that system calls expect: aligned. */
union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
	struct sockaddr_storage storage;
};

/* Returns the family, or AF_UNSPEC if these bytes are no address of ours. */
static int load(const struct spoke_address *address, union any_address *ret_at)
{
	*ret_at = (union any_address){ .storage = { .ss_family = AF_UNSPEC } };
	if (address->len < sizeof(sa_family_t) || address->len > sizeof(address->bytes))
		return AF_UNSPEC;
	memcpy(ret_at, address->bytes, address->len);
	switch (ret_at->any.sa_family) {
	case AF_INET:
		return address->len == sizeof(ret_at->v4) ? AF_INET : AF_UNSPEC;
	case AF_INET6:
		return address->len == sizeof(ret_at->v6) ? AF_INET6 : AF_UNSPEC;
	case AF_UNIX:
		return address->len > offsetof(struct sockaddr_un, sun_path) ? AF_UNIX : AF_UNSPEC;
	default:
		return AF_UNSPEC;
	}
}

static void store(const union any_address *at, socklen_t len, struct spoke_address *ret_address)
{
	if (len > sizeof(ret_address->bytes))
		len = sizeof(ret_address->bytes);
	*ret_address = (struct spoke_address){ .len = len };
	memcpy(ret_address->bytes, at, len);
}

static int set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0 ? 0 : -errno;
}

static int open_socket(int family, int *ret_fd)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error = fd < 0 ? -errno : 0;

	if (error)
		return error;
	if (family != AF_UNIX)
		error = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (error) {
		(void)close(fd);
		return error;
	}
	*ret_fd = fd;
	return 0;
}

static int net_connect(void *ctx, const struct spoke_address *to, int *ret_fd)
{
	union any_address at;
	int family = load(to, &at);
	int fd = -1;
	int error;

	(void)ctx;
	if (family == AF_UNSPEC)
		return -EAFNOSUPPORT;
	error = open_socket(family, &fd);
	if (error)
		return error;
	if (connect(fd, &at.any, to->len) != 0)
		error = errno == EINTR ? -EINPROGRESS : -errno;
	if (error && error != -EINPROGRESS) {
		(void)close(fd);
		return error;
	}
	*ret_fd = fd;
	return error;
}

static int net_finish(void *ctx, int fd)
{
	union any_address peer;
	socklen_t len = sizeof(peer);
	socklen_t error_len = sizeof(int);
	int error = 0;

	(void)ctx;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len) != 0)
		return -errno;
	if (error)
		return -error;
	if (getpeername(fd, &peer.any, &len) != 0)
		return errno == ENOTCONN ? -EINPROGRESS : -errno;
	return 0;
}

static int listen_unix(int fd, const union any_address *at, socklen_t len, int backlog)
{
	if (at->local.sun_path[0] != '\0')
		return spokei_sockfile_listen(fd, at->local.sun_path, backlog,
					      SPOKEI_SOCKFILE_UMASK);
	if (bind(fd, &at->any, len) != 0 || listen(fd, backlog) != 0)
		return -errno;
	return 0;
}

/* Accepted sockets inherit TCP_NODELAY from here. */
static int listen_tcp(int fd, const union any_address *at, socklen_t len, int backlog, bool shared)
{
	int error = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);

	if (!error && shared)
		error = set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (!error && at->any.sa_family == AF_INET6)
		error = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (error)
		return error;
	if (bind(fd, &at->any, len) != 0 || listen(fd, backlog) != 0)
		return -errno;
	return 0;
}

static int listen_at(const struct spoke_address *where, int backlog, bool shared, int *ret_fd)
{
	union any_address at;
	int family = load(where, &at);
	int fd = -1;
	int error;

	if (family == AF_UNSPEC)
		return -EAFNOSUPPORT;
	if (family == AF_UNIX && shared)
		return -EOPNOTSUPP;
	error = open_socket(family, &fd);
	if (error)
		return error;
	if (family == AF_UNIX)
		error = listen_unix(fd, &at, where->len, backlog);
	else
		error = listen_tcp(fd, &at, where->len, backlog, shared);
	if (error) {
		(void)close(fd);
		return error;
	}
	*ret_fd = fd;
	return 0;
}

static int net_listen(void *ctx, const struct spoke_address *where, int backlog, int *ret_fd)
{
	int passed = spokei_passed_take(where);

	(void)ctx;
	if (passed == -ENOENT)
		return listen_at(where, backlog, false, ret_fd);
	if (passed < 0)
		return passed;
	*ret_fd = passed;
	return 0;
}

static int net_passed(void *ctx, const char *name, struct spoke_address *ret_address)
{
	(void)ctx;
	return spokei_passed_find(name, ret_address);
}

static int net_listen_shared(void *ctx, const struct spoke_address *where, int backlog, int *ret_fd)
{
	(void)ctx;
	return listen_at(where, backlog, true, ret_fd);
}

/* Linux reports errors of a connection in the backlog here: that connection is gone, the next may
 * be fine. */
static int accept_error(int error)
{
	switch (error) {
	case ENETDOWN:
	case EPROTO:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
	case EPERM:
		return -ECONNABORTED;
	default:
		return -error;
	}
}

static int net_accept(void *ctx, int fd, int *ret_fd, struct spoke_address *ret_peer)
{
	union any_address peer;
	socklen_t len;
	int accepted;

	(void)ctx;
	do {
		len = sizeof(peer);
		accepted = accept4(fd, &peer.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (accepted < 0 && errno == EINTR);
	if (accepted < 0)
		return accept_error(errno);
	*ret_fd = accepted;
	store(&peer, len, ret_peer);
	return 0;
}

static ssize_t net_read(void *ctx, int fd, void *bytes, size_t len)
{
	ssize_t got;

	(void)ctx;
	do
		got = recv(fd, bytes, len, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static ssize_t net_write(void *ctx, int fd, const struct iovec *parts, int count)
{
	/* The system does not change the parts; only its struct is not const. */
	union {
		const struct iovec *given;
		struct iovec *taken;
	} cast = { .given = parts };
	struct msghdr message = { .msg_iov = cast.taken };
	ssize_t written;

	(void)ctx;
	SPOKE_ASSERT(count > 0);
	message.msg_iovlen = (size_t)(count < IOV_MAX ? count : IOV_MAX);
	/* One part needs no message struct, which the system would have to copy first. */
	do
		written = count == 1 ? send(fd, parts->iov_base, parts->iov_len, MSG_NOSIGNAL)
				     : sendmsg(fd, &message, MSG_NOSIGNAL);
	while (written < 0 && errno == EINTR);
	return written < 0 ? -errno : written;
}

static int net_shut(void *ctx, int fd)
{
	(void)ctx;
	return shutdown(fd, SHUT_WR) == 0 ? 0 : -errno;
}

static int net_spare(void *ctx, int *ret_fd)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)ctx;
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static void net_close(void *ctx, int fd)
{
	int result;

	(void)ctx;
	spokei_sockfile_closing(fd);
	result = close(fd);
	SPOKE_ASSERT(result == 0 || errno != EBADF);
}

static int net_local(void *ctx, int fd, struct spoke_address *ret_address)
{
	union any_address at;
	socklen_t len = sizeof(at);

	(void)ctx;
	if (getsockname(fd, &at.any, &len) != 0)
		return -errno;
	store(&at, len, ret_address);
	return 0;
}

static int net_peer(void *ctx, int fd, struct spoke_address *ret_address)
{
	union any_address at;
	socklen_t len = sizeof(at);

	(void)ctx;
	if (getpeername(fd, &at.any, &len) != 0)
		return -errno;
	store(&at, len, ret_address);
	return 0;
}

static int net_parse(void *ctx, const char *text, struct spoke_address *ret_address)
{
	(void)ctx;
	return spokei_address_parse(text, ret_address);
}

static void net_print(void *ctx, const struct spoke_address *address, char *text, size_t size)
{
	(void)ctx;
	spokei_address_print(address, text, size);
}

static int resolve_error(int error)
{
	switch (error) {
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return errno ? -errno : -EIO;
	case EAI_NONAME:
	case EAI_NODATA:
		return -ENOENT;
	default:
		return -EIO;
	}
}

/* In the system's order (RFC 6724), which prefers reachable addresses. */
static int net_resolve(void *ctx, const char *host, uint16_t port, struct spoke_address *ret,
		       int max)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int count = 0;
	int error;

	(void)ctx;
	error = getaddrinfo(host, NULL, &hints, &found);
	if (error)
		return resolve_error(error);
	for (const struct addrinfo *one = found; one && count < max; one = one->ai_next) {
		union any_address at;

		if (one->ai_addrlen > sizeof(at))
			continue;
		memcpy(&at, one->ai_addr, one->ai_addrlen);
		if (one->ai_family == AF_INET)
			at.v4.sin_port = htons(port);
		else if (one->ai_family == AF_INET6)
			at.v6.sin6_port = htons(port);
		else
			continue;
		store(&at, one->ai_addrlen, &ret[count++]);
	}
	freeaddrinfo(found);
	return count > 0 ? count : -ENOENT;
}

/* Converts `ns` to units, rounded up, within the range of the system; 0 stays 0. */
static int in_units(uint64_t ns, uint64_t unit_ns, int max)
{
	uint64_t count = ns / unit_ns + (ns % unit_ns != 0);

	return count < (uint64_t)max ? (int)count : max;
}

/* Like set_option(), but an option that the system does not know is skipped. */
static int set_tcp_option(int fd, int option, int value)
{
	int error = set_option(fd, IPPROTO_TCP, option, value);

	return error == -ENOPROTOOPT ? 0 : error;
}

/* Sends the first keepalive probe after `idle_s`, then 2 to 4 more in about the same time: one lost
 * probe is not a dead peer. */
static int keep_alive(int fd, int idle_s)
{
	int count = idle_s < PROBES_MIN ? PROBES_MIN : idle_s;
	int error;

	if (count > PROBES_MAX)
		count = PROBES_MAX;
	error = set_tcp_option(fd, TCP_KEEPIDLE, idle_s);
	if (!error)
		error = set_tcp_option(fd, TCP_KEEPINTVL, idle_s < count ? 1 : idle_s / count);
	if (!error)
		error = set_tcp_option(fd, TCP_KEEPCNT, count);
	return error;
}

/* If both are set, Linux uses the time without an answer and ignores the number of probes. */
static int net_guard(void *ctx, int fd, uint64_t unanswered_ns, uint64_t keepalive_ns)
{
	int keep_s = in_units(keepalive_ns, NS_PER_S, KEEP_MAX_S);
	int protocol = 0;
	socklen_t len = sizeof(protocol);
	int error;

	(void)ctx;
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) != 0)
		return -errno;
	if (protocol != IPPROTO_TCP)
		return 0;
	error = set_tcp_option(fd, TCP_USER_TIMEOUT, in_units(unanswered_ns, NS_PER_MS, INT_MAX));
	if (!error && keep_s > 0)
		error = keep_alive(fd, keep_s);
	return error ? error : set_option(fd, SOL_SOCKET, SO_KEEPALIVE, keep_s > 0);
}

static ssize_t net_unsent(void *ctx, int fd)
{
	int count = 0;

	(void)ctx;
	return ioctl(fd, SIOCOUTQ, &count) == 0 ? count : -errno;
}

static int net_send_buffer(void *ctx, int fd, uint32_t bytes)
{
	(void)ctx;
	return set_option(fd, SOL_SOCKET, SO_SNDBUF, bytes < INT_MAX ? (int)bytes : INT_MAX);
}

const struct spoke_net spokei_host_net = {
	.connect = net_connect,
	.finish = net_finish,
	.listen = net_listen,
	.accept = net_accept,
	.read = net_read,
	.write = net_write,
	.shut = net_shut,
	.close = net_close,
	.spare = net_spare,
	.local = net_local,
	.peer = net_peer,
	.parse = net_parse,
	.print = net_print,
	.resolve = net_resolve,
	.guard = net_guard,
	.unsent = net_unsent,
	.listen_shared = net_listen_shared,
	.passed = net_passed,
	.send_buffer = net_send_buffer,
	.credentials = spokei_local_credentials,
	.listen_mode = spokei_local_listen,
	.share = spokei_shared_give,
	.shared = spokei_shared_take,
	.unshare = spokei_shared_drop,
};
