/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads an HTTP server with POSTs of a JSON document, on bare epoll: a number of connections, with
 * a number of requests in flight on each. Prints the responses per second.
 *
 *     bench_http_client PORT CONNECTIONS DEPTH MILLISECONDS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1024u
#define DEPTH_MAX 256u
#define IN_SIZE 65536u
#define BODY                                                                                       \
	"[{\"id\":12345,\"name\":\"a name of some "                                                \
	"length\",\"price\":19.95,\"tags\":[\"a\",\"b\"]}]"
#define WARM_MS 300u

struct connection {
	int fd;
	size_t len; /* bytes of `in` */
	char in[IN_SIZE];
};

static char request[512];
static size_t request_len;
static char batch[DEPTH_MAX * sizeof(request)]; /* DEPTH_MAX requests */
static struct connection connections[CONNECTIONS_MAX];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void send_requests(int fd, size_t count)
{
	const char *at = batch;
	size_t left = count * request_len;

	while (left > 0) {
		ssize_t put = send(fd, at, left, MSG_NOSIGNAL);

		if (put < 0 && errno != EINTR)
			die("send");
		if (put > 0) {
			at += put;
			left -= (size_t)put;
		}
	}
}

/* Returns the bytes of the response that begins here; 0: it is incomplete. */
static size_t response_len(const char *text, size_t len)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4);
	const char *length;
	size_t all;

	if (end == NULL)
		return 0;
	length = memmem(text, (size_t)(end - text), "Content-Length:", 15);
	if (len < 12 || memcmp(text + 9, "200", 3) != 0 || length == NULL) {
		(void)fprintf(stderr, "a response is wrong: %.*s\n", (int)len, text);
		exit(1);
	}
	all = (size_t)(end - text) + 4 + strtoul(length + 15, NULL, 10);
	return all <= len ? all : 0;
}

/* Reads once; sends as many requests as responses have come. Returns their number. */
static size_t serve(struct connection *connection)
{
	ssize_t got = recv(connection->fd, connection->in + connection->len,
			   sizeof(connection->in) - connection->len, 0);
	size_t count = 0;
	size_t at = 0;
	size_t len;

	if (got <= 0)
		die("recv");
	connection->len += (size_t)got;
	while ((len = response_len(connection->in + at, connection->len - at)) > 0) {
		at += len;
		count++;
	}
	memmove(connection->in, connection->in + at, connection->len - at);
	connection->len -= at;
	send_requests(connection->fd, count);
	return count;
}

static void start(int epoll, struct connection *connection, uint16_t port, size_t depth)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };
	int one = 1;

	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("connect");
	(void)setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event) < 0)
		die("epoll_ctl");
	send_requests(connection->fd, depth);
}

static size_t run(int epoll, uint64_t until_ms)
{
	struct epoll_event events[64];
	size_t count = 0;

	while (now_ms() < until_ms) {
		int ready = epoll_wait(epoll, events, 64, 1000);

		for (int i = 0; i < ready; i++)
			count += serve(events[i].data.ptr);
	}
	return count;
}

int main(int argc, char **argv)
{
	unsigned long numbers[4] = { 0 };
	uint64_t begin_ms;
	size_t warm;
	size_t count;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	for (int i = 1; i < argc && i < 5; i++)
		numbers[i - 1] = strtoul(argv[i], NULL, 10);
	if (argc != 5 || numbers[1] > CONNECTIONS_MAX || numbers[2] > DEPTH_MAX || epoll < 0) {
		(void)fprintf(stderr, "usage: %s PORT CONNECTIONS DEPTH MILLISECONDS\n", argv[0]);
		return 2;
	}
	request_len =
		(size_t)snprintf(request, sizeof(request),
				 "POST /demo.EchoService/echo HTTP/1.1\r\n"
				 "Host: 127.0.0.1:%lu\r\nUser-Agent: bench\r\nAccept: */*\r\n"
				 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
				 "%s",
				 numbers[0], strlen(BODY), BODY);
	for (size_t i = 0; i < DEPTH_MAX; i++)
		memcpy(batch + i * request_len, request, request_len);
	for (size_t i = 0; i < numbers[1]; i++)
		start(epoll, &connections[i], (uint16_t)numbers[0], numbers[2]);
	warm = run(epoll, now_ms() + WARM_MS);
	begin_ms = now_ms();
	count = run(epoll, begin_ms + numbers[3]);
	printf("%.0f %zu\n", (double)count * 1000 / (double)(now_ms() - begin_ms), warm + count);
	return 0;
}
