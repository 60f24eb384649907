/* SPDX-License-Identifier: Apache-2.0 */
/* A child process with many connections that send little, without any code of spoke. */
#include "memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOSTS 16u /* source addresses */
#define HEAD 16u

/* A heartbeat, and echo("hello"); ids and lengths are filled in. */
static const unsigned char heartbeat[] = "\xda\xbb\xfb\0\0\0\0\0\0\0\0\1\0\0\0\1\xc0";
static const unsigned char request[] = "\xda\xbb\xdb\0\0\0\0\0\0\0\0\2\0\0\0\0"
				       "\245"
				       "2.0.2\260" SERVICE
				       "\2450.0.0\244echo\262Ljava/lang/String;\245hello\200";

static int connect_from(unsigned host, uint16_t port)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("client: no connection: errno %d", errno);
	return fd;
}

static void send_both(int fd)
{
	unsigned char bytes[sizeof(heartbeat) + sizeof(request)];
	size_t len = sizeof(heartbeat) - 1;

	memcpy(bytes, heartbeat, len);
	memcpy(bytes + len, request, sizeof(request) - 1);
	bytes[len + HEAD - 1] = (unsigned char)(sizeof(request) - 1 - HEAD);
	write_all(fd, bytes, len + sizeof(request) - 1);
}

static void read_answer(int fd)
{
	unsigned char bytes[256];
	size_t len;

	read_all(fd, bytes, HEAD);
	len = (size_t)bytes[14] << 8 | bytes[15];
	if (bytes[0] != 0xda || bytes[3] != 20 || len > sizeof(bytes))
		die("client: unexpected answer: status %u", bytes[3]);
	read_all(fd, bytes, len);
}

void crowd_play(void *arg, int in, int out)
{
	const struct quota *quota = arg;
	int *fds = calloc(quota->conns, sizeof(*fds));
	uint16_t port;
	char what;

	if (fds == NULL)
		die("client: no memory");
	read_all(in, &port, sizeof(port));
	for (;;) {
		read_all(in, &what, 1);
		for (unsigned i = 0; i < quota->conns && what == 'c'; i++)
			fds[i] = connect_from(quota->first_host + i % HOSTS, port);
		for (unsigned i = 0; i < quota->conns && what == 's'; i++)
			send_both(fds[i]);
		for (unsigned i = 0; i < 2 * quota->conns && what == 's'; i++)
			read_answer(fds[i / 2]);
		write_all(out, &what, 1);
	}
}
