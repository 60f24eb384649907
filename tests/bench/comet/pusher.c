/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes events at a steady rate, by calls of spoke.Comet or by commands to the floor. */
#include "comet.h"

#include <spoke/consumer.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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

void payload_write(char *payload, size_t size, char kind)
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

static void obey(struct pusher *pusher, const struct pusher_order *order)
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
		obey(&pusher, &order);
		write_all(out, "d", 1);
	}
}
