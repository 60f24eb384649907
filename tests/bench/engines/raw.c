/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw echo: threads on bare epoll instead of engines. Its frames are as long as those of
 * spoke's calls and contain only zeros. It has as many connections and calls, and one listening
 * socket per thread where spoke has one per engine. One read, all complete frames, one write. It
 * shows what two threads cost in the kernel.
 */
#include "engines.h"

#include "tests/bench/memory/memory.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes of a call with 32 bytes and of its answer, including the headers. */
#define REQUEST 117u
#define ANSWER 51u
#define CALLS_MAX 64u /* on a connection */
#define EVENTS_MAX 64

/* The state of a thread. */
struct looper {
	int epoll;
	int listener;      /* of the provider */
	struct seat *seat; /* counters of calls; NULL: this thread answers */
};

/* A connection; also used for the listening socket, without buffers. */
struct pipe {
	int fd;
	size_t got; /* bytes of the incomplete frame */
};

static void check(const char *what, int result)
{
	if (result < 0)
		die("raw echo: %s", what);
}

static void watch(const struct looper *looper, int fd)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));
	struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = pipe } };

	if (pipe == NULL)
		die("raw echo: memory");
	pipe->fd = fd;
	check("epoll", epoll_ctl(looper->epoll, EPOLL_CTL_ADD, fd, &event));
}

static void send_now(int fd)
{
	const int yes = 1;

	check("no delay", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)));
}

static void send_frames(int fd, size_t len)
{
	static const char frames[CALLS_MAX * REQUEST];
	ssize_t sent;

	if (len > sizeof(frames))
		die("raw echo: too many calls at a time");
	/* Frames this small are written whole. An error appears on the next read. */
	sent = send(fd, frames, len, MSG_NOSIGNAL);
	if (sent >= 0 && (size_t)sent < len)
		die("raw echo: short write");
}

/* The consumer is killed first. */
static void leave(const struct looper *looper, struct pipe *pipe)
{
	if (looper->seat)
		die("raw echo: the provider has closed a connection");
	(void)close(pipe->fd);
	free(pipe);
}

/* Handles all complete frames, and keeps the beginning of the next one. */
static void serve(const struct looper *looper, struct pipe *pipe)
{
	static _Thread_local char bytes[65536];
	size_t frame = looper->seat ? ANSWER : REQUEST;
	ssize_t got = recv(pipe->fd, bytes, sizeof(bytes), 0);
	size_t frames;

	if (got <= 0) {
		leave(looper, pipe);
		return;
	}
	frames = (pipe->got + (size_t)got) / frame;
	pipe->got = (pipe->got + (size_t)got) % frame;
	if (frames == 0)
		return;
	if (looper->seat)
		seat_grow(&looper->seat->calls, frames);
	send_frames(pipe->fd, frames * (looper->seat ? REQUEST : ANSWER));
}

static void take(const struct looper *looper)
{
	int fd = accept4(looper->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	send_now(fd);
	watch(looper, fd);
}

static void *loop(void *arg)
{
	const struct looper *looper = arg;
	struct epoll_event events[EVENTS_MAX];

	for (;;) {
		int count = epoll_wait(looper->epoll, events, EVENTS_MAX, -1);

		for (int i = 0; i < count; i++) {
			struct pipe *pipe = events[i].data.ptr;

			if (pipe->fd == looper->listener)
				take(looper);
			else
				serve(looper, pipe);
		}
	}
	return NULL;
}

static void start(struct looper *loopers, unsigned count)
{
	pthread_t thread;

	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, loop, &loopers[i]))
			die("raw echo: no thread");
}

static int open_socket(int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	check("socket", fd);
	return fd;
}

/* Opens listening sockets. All use the port of the first one, which is written to `at`. */
static int listen_with_others(struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	const int yes = 1;
	int fd = open_socket(SOCK_NONBLOCK);

	check("port", setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)));
	check("bind", bind(fd, (const struct sockaddr *)at, sizeof(*at)));
	check("listen", listen(fd, SOMAXCONN));
	check("port", getsockname(fd, (struct sockaddr *)at, &len));
	return fd;
}

void play_raw_provider(void *arg, int in, int out)
{
	const struct plan *plan = ((const struct part *)arg)->plan;
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct looper loopers[ENGINES_MAX] = { 0 };
	char place[PLACE_SIZE] = "";
	char never;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned i = 0; i < plan->engines; i++) {
		loopers[i].epoll = epoll_create1(EPOLL_CLOEXEC);
		check("epoll", loopers[i].epoll);
		loopers[i].listener = listen_with_others(&at);
		watch(&loopers[i], loopers[i].listener);
	}
	start(loopers, plan->engines);
	memcpy(place, &at, sizeof(at));
	write_all(out, place, sizeof(place));
	read_all(in, &never, 1);
}

static void begin_looper(const struct plan *plan, const struct sockaddr_in *at,
			 struct looper *looper)
{
	looper->epoll = epoll_create1(EPOLL_CLOEXEC);
	check("epoll", looper->epoll);
	looper->listener = -1;
	for (unsigned i = 0; i < plan->connections; i++) {
		int fd = open_socket(0);

		check("connect", connect(fd, (const struct sockaddr *)at, sizeof(*at)));
		send_now(fd);
		watch(looper, fd);
		send_frames(fd, (size_t)plan->outstanding * REQUEST);
	}
}

void play_raw_consumer(void *arg, int in, int out)
{
	const struct part *part = arg;
	struct looper loopers[ENGINES_MAX] = { 0 };
	struct sockaddr_in at;
	char place[PLACE_SIZE];
	char never;

	read_all(in, place, sizeof(place));
	memcpy(&at, place, sizeof(at));
	for (unsigned i = 0; i < part->plan->engines; i++) {
		loopers[i].seat = &part->board->candidates[i];
		begin_looper(part->plan, &at, &loopers[i]);
	}
	start(loopers, part->plan->engines);
	write_all(out, "r", 1);
	read_all(in, &never, 1);
}
