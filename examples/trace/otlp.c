/* SPDX-License-Identifier: Apache-2.0 */
/* Sends spans to a collector by HTTP, from a thread with a queue. */
#define _POSIX_C_SOURCE 200809L

#include "otlp.h"

#include "otlp_json.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SPAN_MAX 8192u   /* bytes of a span's JSON; a longer one is dropped */
#define ANSWER_MAX 4096u /* bytes of an answer that are read */

/* A span as JSON, in the queue. */
struct waiting {
	struct waiting *next;
	size_t len;
	char json[];
};

struct otlp {
	struct otlp_options with;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t more;
	struct waiting *first;
	struct waiting **last;
	unsigned count;
	bool ending;
	struct otlp_counts counts;
};

/* --- the queue */

static bool enqueue(struct otlp *otlp, const struct otlp_text *text)
{
	struct waiting *waiting;

	if (text->full || otlp->count >= otlp->with.queue_max)
		return false;
	waiting = malloc(sizeof(*waiting) + text->len);
	if (waiting == NULL)
		return false;
	waiting->next = NULL;
	waiting->len = text->len;
	memcpy(waiting->json, text->at, text->len);
	*otlp->last = waiting;
	otlp->last = &waiting->next;
	otlp->count++;
	return true;
}

void otlp_span(void *arg, const struct spoke_trace_span *span)
{
	struct otlp *otlp = arg;
	char room[SPAN_MAX];
	struct otlp_text text = { .at = room, .size = sizeof(room) };

	otlp_put_span(&text, span);
	(void)pthread_mutex_lock(&otlp->lock);
	if (!enqueue(otlp, &text))
		otlp->counts.dropped++;
	if (otlp->count >= otlp->with.batch_max)
		(void)pthread_cond_signal(&otlp->more);
	(void)pthread_mutex_unlock(&otlp->lock);
}

/* Takes a batch from the queue; sets its length in bytes and its number of spans. */
static struct waiting *take_batch(struct otlp *otlp, size_t *ret_len, unsigned *ret_count)
{
	struct waiting *first = otlp->first;
	struct waiting **end = &otlp->first;

	*ret_len = 0;
	*ret_count = 0;
	while (*end && *ret_count < otlp->with.batch_max) {
		*ret_len += (*end)->len + 1;
		++*ret_count;
		end = &(*end)->next;
	}
	if (*ret_count == 0)
		return NULL;
	otlp->first = *end;
	*end = NULL;
	otlp->count -= *ret_count;
	if (otlp->first == NULL)
		otlp->last = &otlp->first;
	return first;
}

/* --- HTTP */

static int connect_to(const struct otlp_options *with)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const struct timeval wait = { .tv_sec = with->timeout_ms / 1000,
				      .tv_usec = with->timeout_ms % 1000 * 1000L };
	struct addrinfo *found = NULL;
	int fd = -1;

	if (getaddrinfo(with->host, with->port, &hints, &found))
		return -1;
	for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
		fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
		if (fd < 0)
			continue;
		/* On Linux the sending timeout also limits connect(). */
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
		if (connect(fd, at->ai_addr, at->ai_addrlen)) {
			(void)close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	return fd;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		bytes += sent;
		len -= (size_t)sent;
	}
	return true;
}

/* Reads until the status line is complete. Returns the status; 0: there was none. */
static int read_status(int fd)
{
	char answer[ANSWER_MAX];
	const char *space;
	size_t len = 0;

	while (len < sizeof(answer) - 1) {
		ssize_t got = recv(fd, answer + len, sizeof(answer) - 1 - len, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		len += (size_t)got;
		answer[len] = '\0';
		if (strchr(answer, '\n'))
			break;
	}
	answer[len] = '\0';
	space = strncmp(answer, "HTTP/1.", 7) == 0 ? strchr(answer, ' ') : NULL;
	return space ? (int)strtol(space, NULL, 10) : 0;
}

/* Posts a body. Returns the status of the answer; 0: none. */
static int post(const struct otlp_options *with, const char *body, size_t len)
{
	char head[512];
	int head_len = snprintf(head, sizeof(head),
				"POST /v1/traces HTTP/1.1\r\nHost: %s:%s\r\n"
				"Content-Type: application/json\r\nContent-Length: %zu\r\n"
				"Connection: close\r\n\r\n",
				with->host, with->port, len);
	int status = 0;
	int fd;

	if (head_len < 0 || (size_t)head_len >= sizeof(head))
		return 0;
	fd = connect_to(with);
	if (fd < 0)
		return 0;
	if (send_all(fd, head, (size_t)head_len) && send_all(fd, body, len))
		status = read_status(fd);
	(void)close(fd);
	return status;
}

/* --- the thread */

/* Says whether the collector may take the same request later, as OTLP lists. */
static bool is_busy(int status)
{
	return status == 0 || status == 429 || (status >= 502 && status <= 504);
}

static int post_again(struct otlp *otlp, const char *body, size_t len)
{
	const struct timespec pause = { .tv_sec = otlp->with.period_ms / 1000,
					.tv_nsec = otlp->with.period_ms % 1000 * 1000000L };
	int status = post(&otlp->with, body, len);

	for (unsigned i = 1; i < otlp->with.attempts && is_busy(status); i++) {
		(void)nanosleep(&pause, NULL);
		status = post(&otlp->with, body, len);
	}
	return status;
}

static void note(struct otlp *otlp, int status, unsigned count)
{
	struct otlp_counts *counts = &otlp->counts;

	(void)pthread_mutex_lock(&otlp->lock);
	if (status / 100 == 2) {
		counts->sent += count;
	} else {
		counts->failed += count;
		if (status)
			(void)snprintf(counts->why, sizeof(counts->why), "status %d", status);
		else
			(void)snprintf(counts->why, sizeof(counts->why), "no answer from %s:%s",
				       otlp->with.host, otlp->with.port);
	}
	(void)pthread_mutex_unlock(&otlp->lock);
}

static void send_batch(struct otlp *otlp, struct waiting *batch, size_t len, unsigned count)
{
	struct otlp_text body = { .size = len + 1024 };

	body.at = malloc(body.size);
	if (body.at) {
		otlp_put(&body, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
		otlp_put_attribute(&body, "service.name", otlp->with.service,
				   strlen(otlp->with.service));
		otlp_end_list(&body);
		otlp_put(&body, "},\"scopeSpans\":[{\"scope\":{\"name\":\"spoke\"},\"spans\":[");
	}
	while (batch) {
		struct waiting *next = batch->next;

		if (body.at && !body.full) {
			memcpy(body.at + body.len, batch->json, batch->len);
			body.len += batch->len;
			body.at[body.len++] = ',';
		}
		free(batch);
		batch = next;
	}
	if (body.at) {
		otlp_end_list(&body);
		otlp_put(&body, "}]}]}");
	}
	note(otlp, body.at && !body.full ? post_again(otlp, body.at, body.len) : 0, count);
	free(body.at);
}

static void wait_for_batch(struct otlp *otlp)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += otlp->with.period_ms / 1000;
	until.tv_nsec += otlp->with.period_ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (!otlp->ending && otlp->count < otlp->with.batch_max)
		if (pthread_cond_timedwait(&otlp->more, &otlp->lock, &until))
			return;
}

static void *run(void *arg)
{
	struct otlp *otlp = arg;
	bool over = false;

	while (!over) {
		struct waiting *batch;
		unsigned count;
		size_t len;

		(void)pthread_mutex_lock(&otlp->lock);
		wait_for_batch(otlp);
		batch = take_batch(otlp, &len, &count);
		over = otlp->ending && otlp->first == NULL;
		(void)pthread_mutex_unlock(&otlp->lock);
		if (batch)
			send_batch(otlp, batch, len, count);
	}
	return NULL;
}

/* --- the exporter */

static void preset(struct otlp_options *with)
{
	with->host = with->host ? with->host : "127.0.0.1";
	with->port = with->port ? with->port : "4318";
	with->service = with->service ? with->service : "spoke";
	with->queue_max = with->queue_max ? with->queue_max : 2048;
	with->batch_max = with->batch_max ? with->batch_max : 512;
	with->period_ms = with->period_ms ? with->period_ms : 1000;
	with->timeout_ms = with->timeout_ms ? with->timeout_ms : 3000;
	with->attempts = with->attempts ? with->attempts : 3;
}

struct otlp *otlp_new(const struct otlp_options *options)
{
	struct otlp *otlp = calloc(1, sizeof(*otlp));
	pthread_condattr_t clock;

	if (otlp == NULL)
		return NULL;
	otlp->with = *options;
	preset(&otlp->with);
	otlp->last = &otlp->first;
	(void)pthread_mutex_init(&otlp->lock, NULL);
	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&otlp->more, &clock);
	(void)pthread_condattr_destroy(&clock);
	if (pthread_create(&otlp->thread, NULL, run, otlp) == 0)
		return otlp;
	(void)pthread_cond_destroy(&otlp->more);
	(void)pthread_mutex_destroy(&otlp->lock);
	free(otlp);
	return NULL;
}

void otlp_free(struct otlp *otlp, struct otlp_counts *ret_counts)
{
	if (otlp == NULL)
		return;
	(void)pthread_mutex_lock(&otlp->lock);
	otlp->ending = true;
	(void)pthread_cond_signal(&otlp->more);
	(void)pthread_mutex_unlock(&otlp->lock);
	(void)pthread_join(otlp->thread, NULL);
	if (ret_counts)
		*ret_counts = otlp->counts;
	(void)pthread_cond_destroy(&otlp->more);
	(void)pthread_mutex_destroy(&otlp->lock);
	free(otlp);
}
