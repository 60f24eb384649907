/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crowd of browsers on bare epoll: connects, asks for events as Chromium does, reads what comes.
 */
#include "comet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 256
#define WINDOW 512u     /* requests without an answer: less than a backlog */
#define OPEN_AT_ONCE 8u /* connections, before answers are read */
#define READ_MAX 65536u
#define SMALL_BUFFER 4096
#define NAP_MIN_NS (MS / 4)
#define NAP_MAX_NS (2 * MS)
#define ORDERS UINT32_MAX /* the index of the pipe with orders */

struct crowd {
	const struct crowd_plan *plan;
	int epoll;
	int in;
	int out;
	int *fds;
	struct reader *readers;
	unsigned opened;
	unsigned wanted; /* connections: plan->conns once they were ordered */
	uint64_t before; /* answers before this order */
	uint64_t nap_ns;
	bool sleeps; /* in epoll_wait() */
	struct place place;
	char request[1024];
	size_t request_len;
	size_t head_len; /* without the last id and the empty line */
	size_t user_at;  /* where the name of the user is in the request */
};

/* --- connecting */

/* Prepares the request, some 500 bytes as in Chromium. */
static void write_request(struct crowd *crowd)
{
	const struct in_addr host = { crowd->place.host };
	char text[INET_ADDRSTRLEN];
	int len;

	(void)inet_ntop(AF_INET, &host, text, sizeof(text));
	len = snprintf(crowd->request, sizeof(crowd->request),
		       "GET /spoke/events?user=u000000 HTTP/1.1\r\n"
		       "Host: %s:%u\r\n"
		       "Connection: keep-alive\r\n"
		       "sec-ch-ua-platform: \"Linux\"\r\n"
		       "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, "
		       "like Gecko) Chrome/156.0.0.0 Safari/537.36\r\n"
		       "Accept: text/event-stream\r\n"
		       "Cache-Control: no-cache\r\n"
		       "sec-ch-ua-mobile: ?0\r\n"
		       "Sec-Fetch-Site: same-origin\r\n"
		       "Sec-Fetch-Mode: cors\r\n"
		       "Sec-Fetch-Dest: empty\r\n"
		       "Referer: http://%s:%u/\r\n"
		       "Accept-Encoding: gzip, deflate, br, zstd\r\n"
		       "Accept-Language: en-US,en;q=0.9\r\n",
		       text, crowd->place.http, text, crowd->place.http);
	crowd->head_len = (size_t)len;
	crowd->user_at = strlen("GET /spoke/events?user=u");
}

static void name_user(struct crowd *crowd, unsigned user)
{
	for (size_t i = USER_LEN - 1; i > 0; i--) {
		crowd->request[crowd->user_at + i - 1] = (char)('0' + user % 10);
		user /= 10;
	}
}

/* A page that comes back sends the last id; what it reads begins anew. */
static void add_last_id(struct crowd *crowd, struct reader *reader)
{
	crowd->request_len = crowd->head_len;
	if (reader->has_id)
		crowd->request_len += (size_t)snprintf(crowd->request + crowd->head_len,
						       sizeof(crowd->request) - crowd->head_len,
						       "Last-Event-ID: %s\r\n", reader->id);
	memcpy(crowd->request + crowd->request_len, "\r\n", 2);
	crowd->request_len += 2;
	*reader = (struct reader){ 0 };
}

static bool is_mute(const struct crowd *crowd, unsigned index)
{
	return crowd->plan->mute_every > 0 && index % crowd->plan->mute_every == 0;
}

/* A blocking connect() is over at once on loopback; later reads do not block. */
static int open_socket(const struct crowd *crowd, unsigned index)
{
	const int on = 1;
	const int small = SMALL_BUFFER;
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(crowd->place.http),
				  .sin_addr.s_addr = crowd->place.host };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	from.sin_addr.s_addr = htonl(ntohl(crowd->plan->source) + index / SOURCE_MAX);
	if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&from, sizeof(from)))
		die("socket %u: errno %d", index, errno);
	if (is_mute(crowd, index) && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)))
		die("cannot set SO_RCVBUF: errno %d", errno);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("connection %u: errno %d", index, errno);
	return fd;
}

static void open_one(struct crowd *crowd)
{
	unsigned index = crowd->opened++;
	struct epoll_event event = { .events = EPOLLIN, .data = { .u32 = index } };
	int fd = open_socket(crowd, index);

	name_user(crowd, crowd->plan->first_user + index);
	add_last_id(crowd, &crowd->readers[index]);
	if (send(fd, crowd->request, crowd->request_len, MSG_NOSIGNAL) !=
	    (ssize_t)crowd->request_len)
		die("request %u: errno %d", index, errno);
	if (epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl: errno %d", errno);
	crowd->fds[index] = fd;
}

/* Opens further connections while few requests are unanswered; returns whether more are to come. */
static bool open_some(struct crowd *crowd)
{
	for (unsigned i = 0; i < OPEN_AT_ONCE && crowd->opened < crowd->wanted; i++) {
		if (crowd->opened + crowd->before - atomic_load(&crowd->plan->tally->ready) >=
		    WINDOW)
			return false;
		open_one(crowd);
	}
	return crowd->opened < crowd->wanted;
}

/* --- reading */

static void read_one(struct crowd *crowd, unsigned index)
{
	static char bytes[READ_MAX];
	ssize_t got = recv(crowd->fds[index], bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got > 0) {
		reader_take(&crowd->readers[index], crowd->plan, bytes, (size_t)got);
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		(void)atomic_fetch_add(&crowd->plan->tally->closed, 1);
		(void)close(crowd->fds[index]);
		crowd->fds[index] = -1;
	}
}

/* --- orders */

static void mute(struct crowd *crowd)
{
	for (unsigned i = 0; i < crowd->opened; i++)
		if (is_mute(crowd, i) && crowd->fds[i] >= 0 &&
		    epoll_ctl(crowd->epoll, EPOLL_CTL_DEL, crowd->fds[i], NULL))
			die("epoll_ctl: errno %d", errno);
}

/* Resets leave no connections in TIME_WAIT. */
static void close_all(struct crowd *crowd)
{
	const struct linger reset = { .l_onoff = 1, .l_linger = 0 };

	for (unsigned i = 0; i < crowd->opened; i++) {
		if (crowd->fds[i] < 0)
			continue;
		(void)setsockopt(crowd->fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		(void)close(crowd->fds[i]);
		crowd->fds[i] = -1;
	}
}

static void obey(struct crowd *crowd)
{
	char what;

	read_all(crowd->in, &what, 1);
	if (what == CROWD_CONNECT) {
		read_all(crowd->in, &crowd->place, sizeof(crowd->place));
		write_request(crowd);
		crowd->wanted = crowd->plan->conns;
		crowd->opened = 0;
		crowd->before = atomic_load(&crowd->plan->tally->ready);
		return;
	}
	if (what == CROWD_MUTE)
		mute(crowd);
	else if (what == CROWD_SLEEP)
		crowd->sleeps = true;
	else
		close_all(crowd);
	write_all(crowd->out, "d", 1);
}

/* --- the process */

/* The listeners measure latency, so a busy crowd must not delay them. */
static void choose_priority(const struct crowd_plan *plan)
{
	const struct sched_param first = { .sched_priority = 1 };

	if (plan->is_first && sched_setscheduler(0, SCHED_FIFO, &first))
		(void)fprintf(stderr, "comet: no SCHED_FIFO; latencies contain those of a busy "
				      "core\n");
}

/*
 * Waits for events. A crowd naps instead of sleeping in epoll_wait(): otherwise each event that is
 * sent while it sleeps costs the server the wake-up of a process on another core, as much as the
 * rest of the write. Browsers on other machines cost a server nothing like it. Listeners are woken,
 * because they measure latency.
 */
static int wait_for(struct crowd *crowd, struct epoll_event *events, bool has_more)
{
	int count = epoll_wait(crowd->epoll, events, EVENTS, crowd->sleeps && !has_more ? -1 : 0);

	if (count > 0 || has_more) {
		crowd->nap_ns = NAP_MIN_NS;
		return count;
	}
	pause_ns(crowd->nap_ns);
	if (crowd->nap_ns < NAP_MAX_NS)
		crowd->nap_ns *= 2;
	return 0;
}

void visitors_play(void *arg, int in, int out)
{
	struct crowd crowd = { .plan = arg, .in = in, .out = out };
	struct epoll_event events[EVENTS] = { { .events = EPOLLIN, .data = { .u32 = ORDERS } } };
	bool has_more = false;

	(void)prctl(PR_SET_NAME, "comet-crowd");
	crowd.epoll = epoll_create1(EPOLL_CLOEXEC);
	crowd.fds = calloc(crowd.plan->conns, sizeof(int));
	crowd.readers = calloc(crowd.plan->conns, sizeof(struct reader));
	if (crowd.epoll < 0 || crowd.fds == NULL || crowd.readers == NULL ||
	    epoll_ctl(crowd.epoll, EPOLL_CTL_ADD, in, &events[0]))
		die("no epoll or memory: errno %d", errno);
	choose_priority(crowd.plan);
	crowd.sleeps = crowd.plan->is_first;
	for (;;) {
		int count = wait_for(&crowd, events, has_more);

		for (int i = 0; i < count; i++) {
			if (events[i].data.u32 == ORDERS)
				obey(&crowd);
			else if (crowd.fds[events[i].data.u32] >= 0)
				read_one(&crowd, events[i].data.u32);
		}
		has_more = open_some(&crowd);
	}
}
