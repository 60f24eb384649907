/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager: messages to it, and the sockets that it has passed to this process. */
#define _GNU_SOURCE
#include "core/host/host.h"

#include <spoke/env.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- messages
 *
 * Messages to the service manager: a socket for each, because they are rare. */

#define US UINT64_C(1000) /* ns */

/* Safe unless another thread changes the environment meanwhile. */
static const char *variable(const char *name)
{
	return getenv(name); /* NOLINT(concurrency-mt-unsafe) */
}

/* Reads the address. Returns its length, or a negative errno. */
static int read_address(const char *text, struct sockaddr_un *ret_at)
{
	size_t len = text ? strlen(text) : 0;

	if (len < 2 || (text[0] != '/' && text[0] != '@'))
		return -ENOENT;
	if (len >= sizeof(ret_at->sun_path))
		return -ENAMETOOLONG;
	*ret_at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret_at->sun_path, text, len);
	if (text[0] == '@')
		ret_at->sun_path[0] = '\0'; /* no NUL at the end: it would be part of the name */
	else
		len++;
	return (int)(offsetof(struct sockaddr_un, sun_path) + len);
}

static int send_error(int error)
{
	switch (error) {
	case EWOULDBLOCK:
	case ENOBUFS:
	case EINTR:
		return -EAGAIN;
	case ENOENT:
	case ECONNREFUSED:
		return -ENOENT;
	default:
		return -error;
	}
}

static int notify(void *ctx, const char *text)
{
	struct sockaddr_un at;
	int len = read_address(variable("NOTIFY_SOCKET"), &at);
	int error = 0;
	int fd;

	(void)ctx;
	if (len < 0)
		return len;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&at, (socklen_t)len) <
	    0)
		error = send_error(errno);
	(void)close(fd);
	return error;
}

/* Reads a positive number that fits when it is multiplied; 0: the text has none. */
static uint64_t number_of(const char *text)
{
	uint64_t number = 0;

	if (text == NULL)
		return 0;
	for (; *text >= '0' && *text <= '9'; text++) {
		number = number * 10 + (uint64_t)(*text - '0');
		if (number > UINT64_MAX / US / 100)
			return 0;
	}
	return *text == '\0' ? number : 0;
}

static uint64_t watchdog(void *ctx)
{
	const char *process = variable("WATCHDOG_PID");

	(void)ctx;
	if (process && number_of(process) != (uint64_t)getpid())
		return 0;
	return number_of(variable("WATCHDOG_USEC")) * US;
}

const struct spoke_manager spokei_host_manager = {
	.notify = notify,
	.watchdog = watchdog,
};

/* --- sockets
 *
 * Sockets that a service manager has opened, and passed to this process. */

#define PASSED_MAX 256u /* descriptors; further ones are ignored */

enum {
	FIRST = 3, /* descriptor */
	DECIMAL = 10,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool taken[PASSED_MAX]; /* guarded by the lock */

/* Returns the number in a text, or -1. */
static long count_of(const char *text)
{
	char *end = NULL;
	long number = -1;

	if (text == NULL || *text < '0' || *text > '9')
		return -1;
	errno = 0;
	number = strtol(text, &end, DECIMAL);
	return *end == '\0' && errno == 0 ? number : -1;
}

/* Returns how many descriptors were passed to this very process. */
static unsigned count_passed(void)
{
	long count = count_of(variable("LISTEN_FDS"));

	if (count <= 0 || count_of(variable("LISTEN_PID")) != (long)getpid())
		return 0;
	return count < (long)PASSED_MAX ? (unsigned)count : PASSED_MAX;
}

/* Returns whether the names, separated by colons, have this one at an index. */
static bool is_named(unsigned index, const char *name)
{
	const char *at = variable("LISTEN_FDNAMES");
	size_t len;

	for (; at && index > 0; index--) {
		at = strchr(at, ':');
		at = at ? at + 1 : NULL;
	}
	if (at == NULL)
		return false;
	len = strcspn(at, ":");
	return len == strlen(name) && len > 0 && strncasecmp(at, name, len) == 0;
}

static bool has_option(int fd, int option, int value)
{
	int found = 0;
	socklen_t len = sizeof(found);

	return getsockopt(fd, SOL_SOCKET, option, &found, &len) == 0 && found == value;
}

/* Writes the address of a listening stream socket. */
static int look_at(int fd, struct spoke_address *ret_address)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	if (!has_option(fd, SO_TYPE, SOCK_STREAM) || !has_option(fd, SO_ACCEPTCONN, 1) ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0 || len > sizeof(ret_address->bytes))
		return -ENOTSOCK;
	*ret_address = (struct spoke_address){ .len = len };
	memcpy(ret_address->bytes, &at, len);
	return 0;
}

int spokei_passed_find(const char *name, struct spoke_address *ret_address)
{
	unsigned count = count_passed();
	long number = count_of(name);
	int error = -ENOENT;

	if (count == 0)
		return -ENOENT; /* a forked child leaves the lock alone */
	(void)pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < count && error == -ENOENT; i++)
		if (!taken[i] && is_named(i, name))
			error = look_at(FIRST + (int)i, ret_address);
	if (error == -ENOENT && number >= FIRST && number < FIRST + (long)count &&
	    !taken[number - FIRST])
		error = look_at((int)number, ret_address);
	(void)pthread_mutex_unlock(&lock);
	return error;
}

static bool is_at(int fd, const struct spoke_address *address)
{
	struct spoke_address own;

	return look_at(fd, &own) == 0 && own.len == address->len &&
	       memcmp(own.bytes, address->bytes, own.len) == 0;
}

/* Gives the descriptor the properties of one that this process has opened. */
static int adopt(int fd)
{
	const int on = 1;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return -errno;
	/* Only TCP has it. Accepted sockets inherit it. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

int spokei_passed_take(const struct spoke_address *address)
{
	unsigned count = count_passed();
	int fd = -ENOENT;

	if (count == 0)
		return -ENOENT;
	(void)pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < count && fd == -ENOENT; i++) {
		if (taken[i] || !is_at(FIRST + (int)i, address))
			continue;
		taken[i] = true;
		fd = adopt(FIRST + (int)i);
	}
	(void)pthread_mutex_unlock(&lock);
	return fd;
}
