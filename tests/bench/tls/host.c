/* SPDX-License-Identifier: Apache-2.0 */
/* Services of the system, and the provider, which is a process of its own; see bench.h. */
#include "tests/bench/tls/bench.h"
#include "tests/support/echo_handler.h"

#include <spoke/engine.h>
#include <spoke/error.h>
#include <spoke/tls.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- functions that the parts of the benchmark of TLS share */

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

/* --- the provider, a process of its own */

static uint16_t serve_at(struct spoke_engine *engine, const struct spoke_tls_options *tls)
{
	static const struct spoke_service_options service = { .name = "demo.EchoService" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo_handler };
	struct spoke_provider_options options = { .tls = tls,
						  .connections_per_peer_max = 100000,
						  .connections_max = 100000 };
	struct spoke_provider *provider;
	char text[TEXT];

	bench_must("provider", spoke_provider_new(engine, &options, &provider));
	bench_must("service", spoke_provider_add(provider, &service, &handler, 1));
	bench_must("listen", spoke_provider_listen(provider, "dubbo://127.0.0.1:0"));
	if (spoke_provider_address(provider, 0, text, sizeof(text)) == 0)
		bench_die("the provider listens nowhere");
	return (uint16_t)strtoul(strrchr(text, ':') + 1, NULL, 10);
}

static void serve(int out)
{
	struct spoke_tls_options tls = { .cert = bench_path("provider.pem"),
					 .key = bench_path("provider.key"),
					 .handshakes_max = 65536,
					 .handshakes_per_peer_max = 65536,
					 .handshake_timeout_ns = UINT64_C(60000000000) };
	struct spoke_tls_options mutual = tls;
	struct spoke_engine *engine;

	mutual.ca = bench_path("ca.pem");
	bench_must("engine", spoke_engine_new(NULL, &engine));
	bench_ports[PORT_PLAIN] = serve_at(engine, NULL);
	bench_ports[PORT_TLS] = serve_at(engine, &tls);
	bench_ports[PORT_MUTUAL] = serve_at(engine, &mutual);
	if (write(out, bench_ports, sizeof(bench_ports)) != sizeof(bench_ports))
		bench_die("the bench_ports are not told");
	bench_must("run", spoke_engine_run(engine));
}

void bench_start(void)
{
	int pipes[2];

	if (pipe(pipes))
		bench_die("no pipe");
	bench_server = fork();
	if (bench_server == 0) {
		bench_pin(0);
		serve(pipes[1]);
		_exit(0);
	}
	if (read(pipes[0], bench_ports, sizeof(bench_ports)) != sizeof(bench_ports))
		bench_die("the provider did not start");
}

double bench_server_cpu(void)
{
	return bench_cpu_of(bench_server);
}

/* Returns its resident memory, in bytes. */
double bench_server_memory(void)
{
	char name[64];
	unsigned long pages = 0;
	FILE *file;

	(void)snprintf(name, sizeof(name), "/proc/%d/statm", (int)bench_server);
	file = fopen(name, "r");
	if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
		bench_die("no figures of the provider");
	(void)fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void bench_end_server(void)
{
	(void)kill(bench_server, SIGKILL);
	(void)waitpid(bench_server, NULL, 0);
}
