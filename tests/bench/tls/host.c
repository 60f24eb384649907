/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the parts of the benchmark of TLS share. */
#include "tests/bench/tls/bench.h"

#include <spoke/error.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

char bench_folder[TEXT];
uint16_t bench_ports[PORTS];
pid_t bench_server;

_Noreturn void bench_die(const char *what)
{
	(void)fprintf(stderr, "bench_tls: %s\n", what);
	if (bench_server > 0)
		(void)kill(bench_server, SIGKILL);
	exit(1);
}

void bench_must(const char *what, int error)
{
	char text[TEXT];

	if (error == 0)
		return;
	(void)snprintf(text, sizeof(text), "%s: %s", what, spoke_strerror(error));
	bench_die(text);
}

const char *bench_path(const char *name)
{
	static char paths[8][2 * TEXT];
	static unsigned next;
	char *text = paths[next++ % 8];

	(void)snprintf(text, 2 * TEXT, "%s/%s", bench_folder, name);
	return text;
}

double bench_now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void bench_rest(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&time, NULL);
}

void bench_pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_size);
	return values[count / 2];
}

double bench_own_cpu(void)
{
	return bench_cpu_of(0);
}

double bench_cpu_of(pid_t process)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0)
		bench_die("no CPU time of a process");
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void bench_socket_pair(int ret_fds[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct sockaddr *address = (struct sockaddr *)&at;
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int one = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ret_fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || ret_fds[0] < 0 || bind(listener, address, len) || listen(listener, 1) ||
	    getsockname(listener, address, &len) || connect(ret_fds[0], address, len))
		bench_die("no connection");
	ret_fds[1] = accept(listener, NULL, NULL);
	if (ret_fds[1] < 0)
		bench_die("no connection");
	for (unsigned i = 0; i < 2; i++)
		(void)setsockopt(ret_fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)close(listener);
}
