/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo on bare sockets, plain or over the library with a BIO of its own: the limit for calls.
 * Each turn waits for the descriptor, receives once, makes one record of all bytes, and sends once.
 */
#include "tests/bench/tls/bench.h"

#include <openssl/ssl.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ROOM = 262144,
	RECORD = 16384,
};

/* One side of a connection. */
struct side {
	int fd;
	int epoll;
	SSL *ssl; /* NULL: plain */
	char *received;
	size_t received_len;
	size_t taken; /* of the received bytes */
	char *made;   /* records to send */
	size_t made_len;
	char *bytes; /* plaintext */
};

/* --- the BIO */

static int raw_write(BIO *bio, const char *bytes, int len)
{
	struct side *side = BIO_get_data(bio);

	if ((size_t)len > ROOM - side->made_len)
		return -1;
	memcpy(side->made + side->made_len, bytes, (size_t)len);
	side->made_len += (size_t)len;
	return len;
}

static int raw_read(BIO *bio, char *bytes, int len)
{
	struct side *side = BIO_get_data(bio);
	size_t left = side->received_len - side->taken;
	size_t count = left < (size_t)len ? left : (size_t)len;

	BIO_clear_retry_flags(bio);
	if (count == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(bytes, side->received + side->taken, count);
	side->taken += count;
	return (int)count;
}

static long raw_control(BIO *bio, int command, long number, void *arg)
{
	(void)bio;
	(void)number;
	(void)arg;
	return command == BIO_CTRL_FLUSH;
}

static void join(struct side *side)
{
	static BIO_METHOD *method;
	BIO *bio;

	if (method == NULL) {
		method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "raw");
		if (method == NULL)
			bench_die("no memory");
		(void)BIO_meth_set_write(method, raw_write);
		(void)BIO_meth_set_read(method, raw_read);
		(void)BIO_meth_set_ctrl(method, raw_control);
	}
	bio = BIO_new(method);
	if (bio == NULL)
		bench_die("no memory");
	BIO_set_data(bio, side);
	BIO_set_init(bio, 1);
	SSL_set_bio(side->ssl, bio, bio);
}

/* --- bytes */

static void send_all(struct side *side, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(side->fd, bytes, len, MSG_NOSIGNAL);

		if (sent <= 0)
			bench_die("the raw echo cannot send");
		bytes += sent;
		len -= (size_t)sent;
	}
}

/* Sends what the library has made. */
static void push(struct side *side)
{
	send_all(side, side->made, side->made_len);
	side->made_len = 0;
}

/* Waits, and receives. Returns false at the end. */
static bool pull(struct side *side, char *bytes, size_t room, size_t *ret_len)
{
	struct epoll_event event;
	ssize_t got;

	if (epoll_wait(side->epoll, &event, 1, -1) != 1)
		bench_die("the raw echo cannot wait");
	got = recv(side->fd, bytes, room, 0);
	if (got <= 0)
		return false;
	*ret_len = (size_t)got;
	return true;
}

static void put(struct side *side, size_t len)
{
	if (side->ssl == NULL) {
		send_all(side, side->bytes, len);
		return;
	}
	for (size_t at = 0; at < len;) {
		size_t took;

		if (SSL_write_ex(side->ssl, side->bytes + at, len - at < RECORD ? len - at : RECORD,
				 &took) != 1)
			bench_die("the raw echo cannot write");
		at += took;
	}
	push(side);
}

/* Returns how many bytes a turn has brought; 0: the end. */
static size_t get(struct side *side)
{
	size_t len = 0;

	if (side->ssl == NULL)
		return pull(side, side->bytes, ROOM, &len) ? len : 0;
	while (len == 0) {
		size_t got;

		side->taken = 0;
		side->received_len = 0;
		if (!pull(side, side->received, ROOM - RECORD, &side->received_len))
			return 0;
		while ((side->taken < side->received_len || SSL_pending(side->ssl) > 0) &&
		       SSL_read_ex(side->ssl, side->bytes + len, ROOM - len, &got) == 1)
			len += got;
	}
	return len;
}

/* --- the sides */

static struct side make_side(int fd, SSL_CTX *context)
{
	struct side side = { .fd = fd, .epoll = epoll_create1(0), .bytes = calloc(1, ROOM) };
	struct epoll_event event = { .events = EPOLLIN };

	side.received = malloc(ROOM);
	side.made = malloc(ROOM);
	if (side.epoll < 0 || side.bytes == NULL || side.received == NULL || side.made == NULL ||
	    epoll_ctl(side.epoll, EPOLL_CTL_ADD, fd, &event))
		bench_die("no raw echo");
	if (context)
		side.ssl = SSL_new(context);
	return side;
}

static void shake(struct side *side)
{
	if (side->ssl == NULL)
		return;
	join(side);
	for (;;) {
		int result = SSL_do_handshake(side->ssl);

		push(side);
		if (result == 1)
			return;
		side->taken = 0;
		side->received_len = 0;
		if (!pull(side, side->received, ROOM, &side->received_len))
			bench_die("no raw handshake");
	}
}

static void serve(int fd, SSL_CTX *context)
{
	struct side side = make_side(fd, context);
	size_t len;

	if (side.ssl)
		SSL_set_accept_state(side.ssl);
	shake(&side);
	while ((len = get(&side)) > 0)
		put(&side, len);
}

/* A server process, and this side of the connection to it. */
struct bench_raw {
	struct side side;
	pid_t server;
};

struct bench_raw *bench_raw_open(bool secure)
{
	struct bench_raw *raw = calloc(1, sizeof(*raw));
	int fds[2];

	if (raw == NULL)
		bench_die("no memory");
	bench_socket_pair(fds);
	raw->server = fork();
	if (raw->server == 0) {
		(void)close(fds[0]);
		serve(fds[1], secure ? bench_server_context() : NULL);
		_exit(0);
	}
	(void)close(fds[1]);
	raw->side = make_side(fds[0], secure ? bench_client_context(false) : NULL);
	if (raw->side.ssl)
		SSL_set_connect_state(raw->side.ssl);
	shake(&raw->side);
	return raw;
}

double bench_raw_rate(struct bench_raw *raw, size_t len, unsigned depth)
{
	double begun = bench_now();
	double until = begun + ROUND_MS / 1e3;
	uint64_t echoes = 0;

	while (bench_now() < until) {
		put(&raw->side, len * depth);
		for (size_t back = 0; back < len * depth;) {
			size_t got = get(&raw->side);

			if (got == 0)
				bench_die("the raw echo has ended");
			back += got;
		}
		echoes += depth;
	}
	return (double)echoes / (bench_now() - begun);
}

double bench_raw_cpu(const struct bench_raw *raw)
{
	return bench_own_cpu() + bench_cpu_of(raw->server);
}

void bench_raw_close(struct bench_raw *raw)
{
	(void)close(raw->side.fd);
	(void)close(raw->side.epoll);
	(void)kill(raw->server, SIGKILL);
	(void)waitpid(raw->server, NULL, 0);
	SSL_free(raw->side.ssl);
	free(raw->side.bytes);
	free(raw->side.received);
	free(raw->side.made);
	free(raw);
}
