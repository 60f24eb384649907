/* SPDX-License-Identifier: Apache-2.0 */
/* Redis over TLS with its own benchmark, in turn with calls: the server has core 0, the client 1.
 */
#include "tests/bench/tls/bench.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* One program with several names, of which its tools have some. */
#define SERVER "redis-server"
#define TOOL "redis-check-rdb"

enum {
	TRIES = 250, /* until it listens */
	TRY_MS = 20,
	REQUESTS = 30000,
};

/* Returns a port that was free a moment ago, because redis cannot choose one. */
static uint16_t find_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) ||
	    getsockname(fd, (struct sockaddr *)&at, &len))
		bench_die("no port");
	(void)close(fd);
	return ntohs(at.sin_port);
}

static void become(const char *program, const char *port)
{
	(void)execlp(program, SERVER, "--port", "0", "--tls-port", port, "--bind", "127.0.0.1",
		     "--tls-cert-file", bench_path("provider.pem"), "--tls-key-file",
		     bench_path("provider.key"), "--tls-ca-cert-file", bench_path("ca.pem"),
		     "--tls-auth-clients", "no", "--tls-protocols", "TLSv1.3", "--save", "",
		     "--appendonly", "no", "--logfile", "/dev/null", NULL);
}

static pid_t start(uint16_t port)
{
	pid_t server = fork();
	char text[8];

	if (server != 0)
		return server;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	bench_pin(0);
	(void)snprintf(text, sizeof(text), "%u", port);
	become(SERVER, text);
	become(TOOL, text);
	_exit(127);
}

/* Returns whether it listens, which it does not if it is not installed. */
static bool wait_for(uint16_t port, pid_t server)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned i = 0; i < TRIES && waitpid(server, NULL, WNOHANG) == 0; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		int result = connect(fd, (struct sockaddr *)&at, sizeof(at));

		(void)close(fd);
		if (result == 0)
			return true;
		bench_rest(TRY_MS);
	}
	return false;
}

/* Returns the CPU time of the server, and of its clients that have ended, in seconds. */
static double cpu_of(pid_t server)
{
	struct rusage used;

	(void)getrusage(RUSAGE_CHILDREN, &used);
	return bench_cpu_of(server) + (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* Returns its requests per second; 0: it has said nothing. */
static double ask(uint16_t port)
{
	char command[4 * TEXT];
	char line[TEXT];
	double rate = 0;
	FILE *said;

	(void)snprintf(command, sizeof(command),
		       "redis-benchmark --tls --cacert %s -p %u -c 1 -P %u -d 64 -n %u -t get "
		       "--csv 2>&1",
		       bench_path("ca.pem"), port, (unsigned)SEATS, (unsigned)REQUESTS);
	said = popen(command, "r"); /* NOLINT(cert-env33-c): nothing in it is from outside */
	while (said && fgets(line, sizeof(line), said))
		if (strncmp(line, "\"GET\",\"", 7) == 0)
			rate = strtod(line + 7, NULL);
	if (said)
		(void)pclose(said);
	return rate;
}

void bench_redis(void)
{
	uint16_t port = find_port();
	pid_t server = start(port);
	struct bench_load *load;
	double rates[2][REDIS_ROUNDS];
	double cpus[2][REDIS_ROUNDS];
	double ratios[2][REDIS_ROUNDS];

	if (!wait_for(port, server) || ask(port) <= 0) {
		(void)fprintf(stderr, "bench_tls: redis with TLS is not installed\n");
		(void)kill(server, SIGKILL);
		return;
	}
	load = bench_load_new(64);
	(void)bench_load_rate(load, SEATS, &cpus[1][0]);
	for (unsigned round = 0; round < REDIS_ROUNDS; round++) {
		double cpu = cpu_of(server);

		rates[0][round] = ask(port);
		cpus[0][round] = (cpu_of(server) - cpu) / REQUESTS * 1e6;
		rates[1][round] = bench_load_rate(load, SEATS, &cpus[1][round]);
		cpus[1][round] *= 1e6;
		ratios[0][round] = rates[1][round] / rates[0][round];
		ratios[1][round] = cpus[0][round] / cpus[1][round];
	}
	printf("calls/s 64B-1x64, two cores: redis-benchmark --tls, spoke\t%.0f\t%.0f\t%.2f\n",
	       bench_median(rates[0], REDIS_ROUNDS), bench_median(rates[1], REDIS_ROUNDS),
	       bench_median(ratios[0], REDIS_ROUNDS));
	printf("us of CPU of both sides\t%.2f\t%.2f\t%.2f\n", bench_median(cpus[0], REDIS_ROUNDS),
	       bench_median(cpus[1], REDIS_ROUNDS), bench_median(ratios[1], REDIS_ROUNDS));
	(void)fflush(stdout);
	bench_load_free(load);
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
}
