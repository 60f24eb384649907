/* SPDX-License-Identifier: Apache-2.0 */
/* The load of the benchmark of comet: crowds of browsers, and pushers; see comet.h. */
#include "comet.h"

#include <spoke/consumer.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* --- reads answers of gateways line by line: the head, then events (SSE) */

/* Adds one to a counter that only this process writes. */
static void count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static bool begins(const char *line, size_t len, const char *with)
{
	size_t wanted = strlen(with);

	return len >= wanted && memcmp(line, with, wanted) == 0;
}

static void take_head(struct reader *reader, const struct crowd_plan *plan, const char *line,
		      size_t len)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (!reader->has_status) {
		reader->has_status = true;
		if (!begins(line, len, "HTTP/1.1 200"))
			count(&plan->tally->wrong);
	} else if (len == 0) {
		reader->has_head = true;
		count(&plan->tally->ready);
	}
}

/* Ids are epoch.number; numbers increase, and the epoch stays the same. The first id is that of the
 * event "hello", after which events follow. */
static void take_id(struct reader *reader, const struct crowd_plan *plan, const char *text)
{
	char *dot = NULL;
	uint64_t epoch = strtoull(text, &dot, 16);
	uint64_t number = *dot == '.' ? strtoull(dot + 1, NULL, 10) : 0;

	if (*dot != '.' || (reader->has_id && (epoch != reader->epoch || number <= reader->number)))
		count(&plan->tally->wrong);
	reader->has_id = true;
	(void)snprintf(reader->id, sizeof(reader->id), "%.39s", text);
	reader->epoch = epoch;
	reader->number = number;
}

static void add_sample(struct board *board, uint64_t sent_ns)
{
	uint64_t at = atomic_fetch_add(&board->samples, 1);

	if (at < SAMPLES_MAX)
		board->ns[at] = now_ns() - sent_ns;
}

/* The data of events that were pushed begins with its kind. */
static void take_data(struct reader *reader, const struct crowd_plan *plan, const char *text)
{
	reader->kind = (uint8_t)*text;
	if (*text == KIND_ONE)
		add_sample(plan->board, strtoull(text + 1, NULL, 10));
}

static void end_event(struct reader *reader, const struct crowd_plan *plan)
{
	if (reader->kind == KIND_ALL)
		count(&plan->tally->broadcasts);
	else if (reader->kind == KIND_ONE)
		count(&plan->tally->pushes);
	reader->kind = 0;
}

/* Takes a line, which ends with a NUL. */
static void take_line(struct reader *reader, const struct crowd_plan *plan, const char *line,
		      size_t len)
{
	if (!reader->has_head)
		take_head(reader, plan, line, len);
	else if (len == 0)
		end_event(reader, plan);
	else if (*line == ':')
		count(&plan->tally->comments);
	else if (begins(line, len, "data: "))
		take_data(reader, plan, line + 6);
	else if (begins(line, len, "id: "))
		take_id(reader, plan, line + 4);
	else if (begins(line, len, "event: lost"))
		count(&plan->tally->lost);
	else if (begins(line, len, "event: reconnect") || begins(line, len, "event: closed"))
		count(&plan->tally->reconnects);
}

/* Keeps the beginning of an unfinished line. */
static void keep(struct reader *reader, const char *bytes, size_t len)
{
	size_t room = sizeof(reader->carry) - 1 - reader->carried;

	if (len > room)
		len = room;
	memcpy(reader->carry + reader->carried, bytes, len);
	reader->carried = (uint8_t)(reader->carried + len);
}

/* Reads bytes of a connection and counts what they contain. */
static void reader_take(struct reader *reader, const struct crowd_plan *plan, const char *bytes,
			size_t len)
{
	char line[sizeof(reader->carry)];

	while (len > 0) {
		const char *end = memchr(bytes, '\n', len);
		size_t part = end ? (size_t)(end - bytes) : len;
		size_t used;

		if (end == NULL || reader->carried > 0)
			keep(reader, bytes, part);
		if (end == NULL)
			return;
		used = part < sizeof(line) - 1 ? part : sizeof(line) - 1;
		if (reader->carried > 0) {
			used = reader->carried;
			memcpy(line, reader->carry, used);
			reader->carried = 0;
		} else {
			memcpy(line, bytes, used);
		}
		line[used] = '\0';
		take_line(reader, plan, line, used);
		bytes += part + 1;
		len -= part + 1;
	}
}

/*
 * --- A crowd of browsers on bare epoll: connects, asks for events as Chromium does, reads what
 * comes
 */

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

/* --- pushes events at a steady rate, by calls of spoke.Comet or by commands to the floor */

struct pusher {
	const struct pusher_plan *plan;
	int fd; /* to the floor */
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	struct spoke_method *push;
	struct spoke_method *push_all;
	uint64_t asked;
	uint64_t answered;
};

/* Writes the data of an event: its kind, the time, and more bytes up to the size. */
static void payload_write(char *payload, size_t size, char kind)
{
	int len = snprintf(payload, size, "%c%0*llu ", kind, (int)STAMP_DIGITS,
			   (unsigned long long)now_ns());

	memset(payload + len, 'x', size - 1 - (size_t)len);
	payload[size - 1] = '\0';
}

/* --- the floor */

static void floor_connect(struct pusher *pusher, const struct place *place)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(place->rpc),
					.sin_addr.s_addr = place->host };
	const int on = 1;

	pusher->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (pusher->fd < 0 || setsockopt(pusher->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    connect(pusher->fd, (const struct sockaddr *)&to, sizeof(to)))
		die("cannot connect: errno %d", errno);
}

static void floor_send(struct pusher *pusher, uint32_t user, const char *payload)
{
	struct floor_command command = { .user = user, .len = (uint32_t)strlen(payload) };
	char bytes[sizeof(command) + PAYLOAD_MAX];

	memcpy(bytes, &command, sizeof(command));
	memcpy(bytes + sizeof(command), payload, command.len);
	write_all(pusher->fd, bytes, sizeof(command) + command.len);
}

static void floor_turn(struct pusher *pusher, bool wait)
{
	char answers[1024];
	ssize_t got = recv(pusher->fd, answers, sizeof(answers), wait ? 0 : MSG_DONTWAIT);

	if (got == 0 || (got < 0 && errno != EAGAIN))
		die("the floor has closed: errno %d", errno);
	if (got > 0)
		pusher->answered += (uint64_t)got;
}

/* --- spoke */

static void spoke_connect(struct pusher *pusher, const struct place *place)
{
	struct spoke_consumer_options options = { .serialization = SPOKE_SERIALIZATION_MSGPACK,
						  .timeout_ns = 60 * SECOND };
	const struct in_addr host = { place->host };
	char text[INET_ADDRSTRLEN];
	char url[96];

	(void)inet_ntop(AF_INET, &host, text, sizeof(text));
	(void)snprintf(url, sizeof(url), "dubbo://%s:%u/spoke.Comet", text, place->rpc);
	options.url = url;
	must("engine", spoke_engine_new(NULL, &pusher->engine));
	must("consumer", spoke_consumer_new(pusher->engine, &options, &pusher->consumer));
	must("method", spoke_consumer_method(pusher->consumer, "push", NULL, &pusher->push));
	must("method",
	     spoke_consumer_method(pusher->consumer, "push_all", NULL, &pusher->push_all));
	while (spoke_consumer_ready(pusher->consumer) == 0)
		must("turn", spoke_engine_turn(pusher->engine, true));
}

static void answered(void *arg, const struct spoke_result *result)
{
	struct pusher *pusher = arg;

	pusher->answered++;
	if (result->error) {
		char text[256];

		(void)spoke_result_print(result, text, sizeof(text));
		if (atomic_fetch_add(&pusher->plan->board->failed, 1) == 0)
			(void)fprintf(stderr, "comet: a push failed: %s\n", text);
	}
}

static void spoke_send(struct pusher *pusher, uint32_t user, const char *payload)
{
	char name[USER_LEN + 8];

	if (user == FLOOR_ALL) {
		must("push_all", spoke_call_with(pusher->push_all, SPOKE_ARGS("offer", payload),
						 answered, pusher));
		return;
	}
	(void)snprintf(name, sizeof(name), "u%06u", user);
	must("push", spoke_call_with(pusher->push, SPOKE_ARGS((const char *)name, "offer", payload),
				     answered, pusher));
}

/* --- orders */

static void begin(struct pusher *pusher, const struct place *place)
{
	if (pusher->plan->kind == FLOOR && pusher->fd == 0)
		floor_connect(pusher, place);
	else if (pusher->plan->kind == SPOKE && pusher->engine == NULL)
		spoke_connect(pusher, place);
}

static void turn(struct pusher *pusher, bool wait)
{
	if (pusher->plan->kind == FLOOR)
		floor_turn(pusher, wait);
	else
		must("turn", spoke_engine_turn(pusher->engine, wait));
}

static void sleep_until(uint64_t ns)
{
	const struct timespec at = { (time_t)(ns / SECOND), (long)(ns % SECOND) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void pusher_obey(struct pusher *pusher, const struct pusher_order *order)
{
	uint64_t begun_ns = now_ns();
	char payload[PAYLOAD_MAX];

	for (uint32_t i = 0; i < order->count; i++) {
		uint32_t user = order->per_s > 0 ? i % order->users : FLOOR_ALL;

		if (order->per_s > 0)
			sleep_until(begun_ns + i * SECOND / order->per_s);
		payload_write(payload, order->size, user == FLOOR_ALL ? KIND_ALL : KIND_ONE);
		if (pusher->plan->kind == FLOOR)
			floor_send(pusher, user, payload);
		else
			spoke_send(pusher, user, payload);
		pusher->asked++;
		if (order->per_s > 0)
			turn(pusher, false);
	}
	while (pusher->answered < pusher->asked)
		turn(pusher, true);
}

void pusher_play(void *arg, int in, int out)
{
	const struct sched_param first = { .sched_priority = 1 };
	struct pusher pusher = { .plan = arg };
	struct pusher_order order;

	(void)prctl(PR_SET_NAME, "comet-pusher");
	/* Wakes up in time, also beside a busy crowd. Without the right to this latencies are
	 * larger. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	(void)sched_setscheduler(0, SCHED_FIFO, &first);
	for (;;) {
		read_all(in, &order, sizeof(order));
		begin(&pusher, &order.place);
		pusher_obey(&pusher, &order);
		write_all(out, "d", 1);
	}
}
