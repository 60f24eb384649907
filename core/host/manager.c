/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the service manager: a socket for each, because they are rare. */
#define _GNU_SOURCE
#include "core/host/manager.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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
