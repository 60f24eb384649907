/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What floods do to the provider. Its longest turn is the CPU time of the loop's thread between two
 * waits, of which this program has a function of its own. A flood begins while the provider is
 * stopped, so it finds all at once.
 */
#include "tests/bench/tls/bench.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	FLOOD_BYTES = 262144,
	FLOODERS = 32, /* handshakes that are under way */
	HELLO_MAX = 4096,
	LIVE_ROUNDS = 15,
	FLOODS = 3, /* of a kind, of which the median counts */
};

/* Shared by the processes. */
static struct turns {
	volatile bool on;
	volatile double longest; /* seconds of CPU */
	volatile unsigned handshakes;
} * turns;

/* --- turns */

void bench_turns_share(void)
{
	void *memory = mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		bench_die("no shared memory");
	turns = memory;
}

/* Returns the seconds of CPU of this thread. */
static double thread_cpu(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The loop's function: notes the turn that has ended. */
__attribute__((visibility("default"))) int epoll_wait(int fd, struct epoll_event *events, int max,
						      int timeout)
{
	static double begun;
	bool on = turns && turns->on;
	int count;

	if (on && begun > 0) {
		double took = thread_cpu() - begun;

		if (took > turns->longest)
			turns->longest = took;
	}
	count = (int)syscall(SYS_epoll_wait, fd, events, max, timeout);
	begun = on ? thread_cpu() : 0;
	return count;
}

static void stop_server(void)
{
	bench_rest(50);
	(void)kill(bench_server, SIGSTOP);
	bench_rest(50);
	turns->longest = 0;
	turns->on = true;
}

/* Returns the milliseconds of the longest turn since stop_server(). */
static double end_turns(void)
{
	turns->on = false;
	return turns->longest * 1e3;
}

static void print_longest(const char *figure, double *longest)
{
	printf("%s\t\t%.2f\t\n", figure, bench_median(longest, FLOODS));
	(void)fflush(stdout);
}

/* --- 1,000 handshakes at once */

/* Takes what has come. Returns false at the end. */
static bool take(SSL *ssl, int fd)
{
	char bytes[16384];
	ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got == 0)
		return false;
	if (got > 0)
		(void)BIO_write(SSL_get_rbio(ssl), bytes, (int)got);
	return true;
}

/* Makes one that reads from memory, and writes to the descriptor. */
static SSL *make_client(SSL_CTX *context, int fd)
{
	SSL *ssl = SSL_new(context);

	if (ssl == NULL)
		bench_die("no memory");
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new_socket(fd, BIO_NOCLOSE));
	SSL_set_connect_state(ssl);
	BIO_set_mem_eof_return(SSL_get_rbio(ssl), -1);
	return ssl;
}

static double crowd(SSL_CTX *context, enum port port)
{
	static int fds[HANDSHAKES];
	static SSL *ssls[HANDSHAKES];
	unsigned done = 0;
	double longest;

	stop_server();
	for (unsigned i = 0; i < HANDSHAKES; i++) {
		fds[i] = bench_dial(port);
		ssls[i] = make_client(context, fds[i]);
		(void)SSL_do_handshake(ssls[i]);
	}
	(void)kill(bench_server, SIGCONT);
	while (done < HANDSHAKES) {
		done = 0;
		for (unsigned i = 0; i < HANDSHAKES; i++) {
			if (!SSL_is_init_finished(ssls[i])) {
				if (!take(ssls[i], fds[i]))
					bench_die("a handshake of the crowd was refused");
				(void)SSL_do_handshake(ssls[i]);
			}
			done += SSL_is_init_finished(ssls[i]) ? 1 : 0;
		}
		bench_rest(1);
	}
	bench_rest(100);
	longest = end_turns();
	for (unsigned i = 0; i < HANDSHAKES; i++) {
		SSL_free(ssls[i]);
		(void)close(fds[i]);
	}
	return longest;
}

void bench_crowd(const char *figure, enum port port)
{
	SSL_CTX *context = bench_client_context(port == PORT_MUTUAL);
	double longest[FLOODS];

	for (unsigned i = 0; i < FLOODS; i++)
		longest[i] = crowd(context, port);
	print_longest(figure, longest);
	SSL_CTX_free(context);
}

/* --- changes of keys */

/* Fills `bytes` with KeyUpdates. Returns how many bytes. */
static size_t make_updates(SSL *ssl, char *bytes, int kind)
{
	BIO *out = BIO_new(BIO_s_mem());
	size_t len = 0;

	if (out == NULL)
		bench_die("no memory");
	SSL_set0_wbio(ssl, out);
	while (len < FLOOD_BYTES - 64) {
		int got;

		if (SSL_key_update(ssl, kind) != 1 || SSL_do_handshake(ssl) != 1)
			bench_die("no change of keys");
		got = BIO_read(out, bytes + len, (int)(FLOOD_BYTES - len));
		if (got <= 0)
			bench_die("a change of keys has no bytes");
		len += (size_t)got;
	}
	return len;
}

static double update(SSL_CTX *context, int kind)
{
	static char bytes[FLOOD_BYTES];
	int fd = bench_dial(PORT_TLS);
	SSL *ssl = SSL_new(context);
	size_t len;
	size_t sent = 0;

	if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || SSL_connect(ssl) != 1)
		bench_die("no handshake");
	len = make_updates(ssl, bytes, kind);
	stop_server();
	while (sent < len) {
		ssize_t took = send(fd, bytes + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (took < 0 && errno == EAGAIN && kill(bench_server, SIGCONT) == 0) {
			bench_rest(1);
			continue;
		}
		if (took < 0) /* the provider has closed the connection */
			break;
		sent += (size_t)took;
	}
	(void)kill(bench_server, SIGCONT);
	bench_rest(300);
	SSL_free(ssl);
	(void)close(fd);
	return end_turns();
}

void bench_updates(const char *figure, bool asks)
{
	int kind = asks ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED;
	SSL_CTX *context = bench_client_context(false);
	double longest[FLOODS];

	for (unsigned i = 0; i < FLOODS; i++)
		longest[i] = update(context, kind);
	print_longest(figure, longest);
	SSL_CTX_free(context);
}

/* --- live calls meanwhile */

/* Reads a ClientHello that can be sent again and again: the provider's part costs the same. */
static size_t read_hello(char *hello)
{
	SSL_CTX *context = bench_client_context(false);
	SSL *ssl = SSL_new(context);
	BIO *out = BIO_new(BIO_s_mem());
	int len;

	if (ssl == NULL || out == NULL)
		bench_die("no memory");
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	SSL_set_connect_state(ssl);
	(void)SSL_do_handshake(ssl);
	len = BIO_read(out, hello, HELLO_MAX);
	SSL_free(ssl);
	SSL_CTX_free(context);
	if (len <= 0)
		bench_die("no ClientHello");
	return (size_t)len;
}

/* Begins handshakes as fast as the provider answers. */
static _Noreturn void flood(void)
{
	char hello[HELLO_MAX];
	size_t len = read_hello(hello);
	int fds[FLOODERS];

	for (unsigned i = 0; i < FLOODERS; i++)
		fds[i] = -1;
	for (unsigned i = 0;; i = (i + 1) % FLOODERS) {
		char byte;

		if (fds[i] >= 0) {
			turns->handshakes += recv(fds[i], &byte, 1, 0) == 1;
			(void)close(fds[i]);
		}
		fds[i] = bench_dial(PORT_TLS);
		if (send(fds[i], hello, len, MSG_NOSIGNAL) < 0)
			bench_die("the flood cannot send");
	}
}

static pid_t begin_flood(void)
{
	pid_t child = fork();

	if (child == 0)
		flood();
	return child;
}

static void end_flood(pid_t child)
{
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
}

void bench_live(const char *figure, unsigned depth)
{
	struct bench_load *load = bench_load_new(64);
	double values[2][LIVE_ROUNDS];
	double ratios[LIVE_ROUNDS];
	double flood_s = 0;

	(void)bench_load_p99(load, depth);
	turns->handshakes = 0;
	for (unsigned round = 0; round < LIVE_ROUNDS; round++) {
		double begun;
		pid_t child;

		values[0][round] = bench_load_p99(load, depth) * 1e6;
		child = begin_flood();
		bench_rest(50);
		begun = bench_now();
		values[1][round] = bench_load_p99(load, depth) * 1e6;
		flood_s += bench_now() - begun + 0.05;
		end_flood(child);
		bench_rest(50);
		ratios[round] = values[1][round] / values[0][round];
	}
	printf("p99 of live calls %s, us: alone, under a flood\t%.0f\t%.0f\t%.1f\n", figure,
	       bench_median(values[0], LIVE_ROUNDS), bench_median(values[1], LIVE_ROUNDS),
	       bench_median(ratios, LIVE_ROUNDS));
	printf("... handshakes/s of the flood\t\t%.0f\t\n", turns->handshakes / flood_s);
	(void)fflush(stdout);
	bench_load_free(load);
}
