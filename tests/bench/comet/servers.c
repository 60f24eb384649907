/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of the benchmark of comet: gateways of spoke, and the floor; see comet.h. */
#include "comet.h"

#include <spoke/comet.h>
#include <spoke/provider.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* --- A gateway of spoke with one engine, as a program would write it */

#define RATE_MAX 1000000u /* connections a second: a storm is not spread */
/* Returns the port at the end of an address. */
static uint16_t port_of(const char *address)
{
	const char *colon = strrchr(address, ':');

	return (uint16_t)strtoul(colon ? colon + 1 : "", NULL, 10);
}

void gateway_play(void *arg, int in, int out)
{
	const struct gateway_plan *plan = arg;
	const struct in_addr host = { plan->host };
	struct spoke_comet_options options = {
		.query_user = true,
		.keepalive_ns = plan->keepalive_ns,
		.life_ns = 24 * 3600 * SECOND, /* longer than any measurement */
		.accept_rate = RATE_MAX,
		.connections_max = plan->conns_max,
		.connections_per_peer_max = plan->conns_max,
	};
	struct place place = { .host = plan->host };
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct spoke_comet *comet;
	char ip[INET_ADDRSTRLEN];
	char text[128];

	(void)prctl(PR_SET_NAME, "comet-gateway");
	(void)in;
	(void)inet_ntop(AF_INET, &host, ip, sizeof(ip));
	(void)snprintf(text, sizeof(text), "%s:0", ip);
	options.listen = text;
	must("engine", spoke_engine_new(NULL, &engine));
	must("comet", spoke_comet_new(engine, &options, &comet));
	must("provider", spoke_provider_new(engine, NULL, &provider));
	must("service", spoke_comet_serve(comet, provider));
	(void)snprintf(text, sizeof(text), "dubbo://%s:0", ip);
	must("listen", spoke_provider_listen(provider, text));
	if (spoke_comet_address(comet, 0, text, sizeof(text)) == 0)
		die("the gateway does not listen");
	place.http = port_of(text);
	if (spoke_provider_address(provider, 0, text, sizeof(text)) == 0)
		die("the provider does not listen");
	place.rpc = port_of(text);
	write_all(out, &place, sizeof(place));
	must("run", spoke_engine_run(engine));
}

/* --- records the bytes that a gateway of spoke answers, so that the floor sends the same */

/* Sends a request, and reads up to the end of the first event with an id. */
static size_t ask(const struct place *place, char *bytes, size_t size)
{
	static const char request[] = "GET /spoke/events?user=u000000 HTTP/1.1\r\n"
				      "Host: localhost\r\n"
				      "Accept: text/event-stream\r\n\r\n";
	const struct timeval patience = { .tv_sec = 5 };
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(place->http),
					.sin_addr.s_addr = place->host };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t len = 0;
	const char *id = NULL;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)))
		die("cannot connect to the gateway: errno %d", errno);
	write_all(fd, request, sizeof(request) - 1);
	while (id == NULL || strstr(id, "\n\n") == NULL) {
		ssize_t got = recv(fd, bytes + len, size - 1 - len, 0);

		if (got <= 0)
			die("no event in the gateway's first %zu bytes", len);
		len += (size_t)got;
		bytes[len] = '\0';
		id = strstr(bytes, "\nid: ");
	}
	(void)close(fd);
	return len;
}

size_t answer_record(char *bytes, size_t size)
{
	struct gateway_plan plan = { .host = htonl(INADDR_LOOPBACK),
				     .conns_max = 10,
				     .keepalive_ns = 25 * SECOND };
	struct helper gateway;
	struct place place;
	size_t len;

	helper_start(&gateway, gateway_play, &plan);
	helper_hear(&gateway, NULL, &place, sizeof(place));
	len = ask(&place, bytes, size);
	helper_end(&gateway);
	return len;
}

/*
 * --- the floor: a bare server on epoll. It answers each request with fixed bytes, and writes
 * each event to each connection, one system call each. No limits, no queues, no timers but one
 */

#define EVENTS 256
#define BACKLOG 4096
#define FDS 20000u
#define USERS 1000000u
#define ROUNDS 100u /* a keepalive interval has so many rounds of writing */
/* What a descriptor is. */
enum role {
	LISTENER,
	RPC_LISTENER,
	TIMER,
	FRESH,
	STREAM,
	COMMANDS
};

struct floor {
	const struct gateway_plan *plan;
	int epoll;
	int listeners[2]; /* LISTENER, RPC_LISTENER */
	uint8_t roles[FDS];
	int by_user[USERS];
	int streams[FDS];
	unsigned slots[FDS]; /* where a descriptor is in streams */
	unsigned count;
	unsigned next;  /* stream of the next keepalive */
	uint64_t epoch; /* of ids, as in the answer */
	uint64_t number;
};

static void watch(const struct floor *floor, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };

	if (epoll_ctl(floor->epoll, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl: errno %d", errno);
}

static uint16_t listen_at(struct floor *floor, enum role role)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = floor->plan->host };
	socklen_t len = sizeof(at);
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	/* Accepted sockets inherit the option. */
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&at, len) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		die("cannot listen: errno %d", errno);
	floor->roles[fd] = role;
	floor->listeners[role] = fd;
	watch(floor, fd);
	return ntohs(at.sin_port);
}

static void accept_some(struct floor *floor, int listener)
{
	bool is_http = floor->roles[listener] == LISTENER;

	for (int i = 0; i < EVENTS; i++) {
		int fd = accept4(listener, NULL, NULL,
				 is_http ? SOCK_CLOEXEC | SOCK_NONBLOCK : SOCK_CLOEXEC);

		if (fd < 0 || fd >= (int)FDS)
			return;
		floor->roles[fd] = is_http ? FRESH : COMMANDS;
		watch(floor, fd);
	}
}

/* --- streams */

/* A write that is not taken whole is not continued: the floor keeps nothing. */
static void put(int fd, const char *bytes, size_t len)
{
	if (send(fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len && errno != EAGAIN &&
	    errno != EPIPE && errno != ECONNRESET)
		die("send: errno %d", errno);
}

static void answer(struct floor *floor, int fd)
{
	char bytes[2048];
	ssize_t got = recv(fd, bytes, sizeof(bytes) - 1, 0);
	const char *user;

	if (got <= 0) {
		(void)close(fd);
		return;
	}
	bytes[got] = '\0';
	user = strstr(bytes, "user=u");
	if (user == NULL || strstr(bytes, "\r\n\r\n") == NULL)
		die("a request came in parts");
	floor->by_user[strtoul(user + 6, NULL, 10) % USERS] = fd;
	floor->roles[fd] = STREAM;
	floor->slots[fd] = floor->count;
	floor->streams[floor->count++] = fd;
	put(fd, floor->plan->answer, floor->plan->answer_len);
}

static void end(struct floor *floor, int fd)
{
	int last = floor->streams[--floor->count];

	floor->streams[floor->slots[fd]] = last;
	floor->slots[last] = floor->slots[fd];
	(void)close(fd);
}

static void keep_alive(struct floor *floor, int timer)
{
	uint64_t times = 0;
	unsigned some = floor->count / ROUNDS + 1;

	if (read(timer, &times, sizeof(times)) != (ssize_t)sizeof(times))
		return;
	for (unsigned i = 0; i < some && floor->next < floor->count; i++)
		put(floor->streams[floor->next++], ":\n\n", 3);
	if (floor->next >= floor->count)
		floor->next = 0;
}

/* --- commands */

static void send_event(struct floor *floor, const struct floor_command *command,
		       const char *payload)
{
	char event[PAYLOAD_MAX + 256];
	int len = snprintf(event, sizeof(event), "id: %016llx.%llu\nevent: offer\ndata: %.*s\n\n",
			   (unsigned long long)floor->epoch, (unsigned long long)++floor->number,
			   (int)command->len, payload);

	if (command->user != FLOOR_ALL) {
		put(floor->by_user[command->user % USERS], event, (size_t)len);
		return;
	}
	for (unsigned i = 0; i < floor->count; i++)
		put(floor->streams[i], event, (size_t)len);
}

/* Obeys all commands that have arrived, each of which is answered by a byte. Senders write commands
 * whole, so the rest of a command may be waited for. */
static void obey(struct floor *floor, int fd)
{
	struct floor_command command;
	char payload[PAYLOAD_MAX];
	ssize_t got;

	while ((got = recv(fd, &command, sizeof(command), MSG_DONTWAIT)) > 0) {
		if (got != (ssize_t)sizeof(command) || command.len > sizeof(payload) ||
		    recv(fd, payload, command.len, MSG_WAITALL) != (ssize_t)command.len)
			die("a command came in parts");
		send_event(floor, &command, payload);
		put(fd, "d", 1);
	}
	if (got == 0)
		(void)close(fd);
}

/* --- the process */

static void start_timer(struct floor *floor)
{
	uint64_t round_ns = floor->plan->keepalive_ns / ROUNDS;
	const struct timespec round = { (time_t)(round_ns / SECOND), (long)(round_ns % SECOND) };
	const struct itimerspec times = { round, round };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &times, NULL))
		die("no timer: errno %d", errno);
	floor->roles[fd] = TIMER;
	watch(floor, fd);
}

/* Ids go on from that of the answer, if it has one. */
static void read_id(struct floor *floor)
{
	const char *id = strstr(floor->plan->answer, "\nid: ");
	char *dot;

	if (id == NULL)
		return;
	floor->epoch = strtoull(id + 5, &dot, 16);
	floor->number = *dot == '.' ? strtoull(dot + 1, NULL, 10) : 0;
}

static void serve(struct floor *floor, int fd)
{
	char byte;

	switch ((enum role)floor->roles[fd]) {
	case LISTENER:
	case RPC_LISTENER:
		accept_some(floor, fd);
		break;
	case TIMER:
		keep_alive(floor, fd);
		break;
	case FRESH:
		answer(floor, fd);
		break;
	case STREAM:
		if (recv(fd, &byte, 1, 0) <= 0)
			end(floor, fd);
		break;
	case COMMANDS:
		obey(floor, fd);
		break;
	}
}

void floor_play(void *arg, int in, int out)
{
	static struct floor floor;
	struct epoll_event events[EVENTS];
	struct place place;

	(void)prctl(PR_SET_NAME, "comet-floor");
	(void)in;
	floor.plan = arg;
	floor.epoll = epoll_create1(EPOLL_CLOEXEC);
	place.host = floor.plan->host;
	place.http = listen_at(&floor, LISTENER);
	place.rpc = listen_at(&floor, RPC_LISTENER);
	read_id(&floor);
	start_timer(&floor);
	write_all(out, &place, sizeof(place));
	for (;;) {
		int count = epoll_wait(floor.epoll, events, EVENTS, -1);

		for (int i = 0; i < count; i++)
			serve(&floor, events[i].data.fd);
	}
}
