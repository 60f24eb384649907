/* SPDX-License-Identifier: Apache-2.0 */
/* TLS next to plain connections: what is measured, in its order. */
#include "core/text/range.h"
#include "core/text/secret.h"
#include "tests/bench/tls/bench.h"
#include "transport/listen/rules.h"

#include <spoke/host.h>

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

/* --- tokens of requests, and lists of addresses */

enum {
	CHECKS = 20000,
	ENTRIES = 64,
	ENTRY_TEXT = 24,
};

static void print(const char *figure, double *rounds)
{
	printf("%s\t\t%.3f\t\n", figure, bench_median(rounds, ROUNDS));
}

/* A UUID, the usual token, which is the second of two. */
static void bench_token(void)
{
	static const char list[] = "1b4e28ba-2fa1-11d2-883f-0016d3cca427,"
				   "6fa459ea-ee8a-3ca4-894e-db77e160355e";
	struct spoke_span token = { strchr(list, ',') + 1, 36 };
	struct spokei_tokens tokens = { .count = 0 };
	double rounds[ROUNDS];
	unsigned right = 0;

	if (spokei_tokens_read_list(&tokens, list, NULL))
		bench_die("no tokens");
	for (unsigned round = 0; round < ROUNDS; round++) {
		double begun = bench_own_cpu();

		for (unsigned i = 0; i < CHECKS; i++)
			right += spokei_tokens_has(&tokens, token);
		rounds[round] = (bench_own_cpu() - begun) / CHECKS * 1e6;
	}
	if (right != ROUNDS * CHECKS)
		bench_die("a token is refused");
	print("token check, us", rounds);
}

/* The peer is in the last of the ranges. */
static void bench_list(void)
{
	const struct spoke_env *env = spoke_host_env();
	char list[ENTRIES * ENTRY_TEXT] = "";
	struct spokei_rules_of of = { .allow_from = list };
	struct spokei_machine machine;
	struct spokei_rules *rules;
	char why[SPOKEI_RULES_WHY];
	double rounds[ROUNDS];
	unsigned admitted = 0;

	for (unsigned i = 0; i < ENTRIES; i++)
		(void)snprintf(list + strlen(list), ENTRY_TEXT, "%s10.%u.0.0/16", i > 0 ? "," : "",
			       i);
	bench_must("rules", spokei_rules_new(env, &of, &rules, why));
	if (!spokei_machine_read((struct spoke_span){ "10.63.1.2", 9 }, &machine))
		bench_die("no address");
	for (unsigned round = 0; round < ROUNDS; round++) {
		double begun = bench_own_cpu();

		for (unsigned i = 0; i < CHECKS; i++)
			admitted += spokei_rules_judge(rules, &machine) == SPOKEI_RULES_ADMIT;
		rounds[round] = (bench_own_cpu() - begun) / CHECKS * 1e6;
	}
	if (admitted != ROUNDS * CHECKS)
		bench_die("an address is refused");
	print("allow list of 64, us", rounds);
	spokei_rules_free(env, rules);
}

/*
 * --- redis over TLS with its own benchmark, in turn with calls: the server has core 0, the
 * client 1
 */

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

/* Prints the calls per second of redis over TLS, and of spoke. */
static void bench_redis(void)
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

/*
 * --- TLS beside plain connections, in one run: calls on one core, handshakes, and the memory
 * of a provider. `bench_tls <folder> <part>`: the folder has ca.pem, provider.pem,
 * provider.key, consumer.pem and consumer.key. Prints TSV: figure, plain, tls, ratio
 */

static const struct {
	const char *figure;
	enum port port;
	enum state state;
} weights[] = {
	{ "bytes of a plain connection", PORT_PLAIN, STATE_MUTE },
	{ "bytes of a silent one", PORT_TLS, STATE_MUTE },
	{ "... that sent a byte", PORT_TLS, STATE_BYTE },
	{ "... that sent a ClientHello", PORT_TLS, STATE_HELLO },
	{ "bytes of an open one", PORT_TLS, STATE_OPEN },
	{ "... with both certificates", PORT_MUTUAL, STATE_OPEN },
};

static void calls_single(void)
{
	bench_calls("64B-1x1", 64, 1);
	bench_records();
}

static void calls_many(void)
{
	bench_calls("64B-1x64", 64, SEATS);
}

static void calls_long(void)
{
	bench_calls("64KiB-1x1", 65536, 1);
}

static void handshakes(void)
{
	bench_pin(1);
	bench_handshakes("handshakes/s of a core", PORT_TLS);
	bench_library(false);
	bench_handshakes("... with both certificates", PORT_MUTUAL);
	bench_library(true);
}

static void floods(void)
{
	bench_pin(1);
	bench_crowd("longest turn of 1,000 handshakes at once, ms", PORT_TLS);
	bench_crowd("... with both certificates, ms", PORT_MUTUAL);
	bench_updates("longest turn of 256 KiB of KeyUpdates, ms", false);
	bench_updates("... that ask for an answer, ms", true);
}

static void live(void)
{
	bench_pin(1);
	bench_live("1x1", 1);
	bench_live("1x64", SEATS);
}

static void redis(void)
{
	bench_pin(1);
	bench_redis();
}

static void judge(void)
{
	bench_token();
	bench_list();
}

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "1x1", calls_single },      { "1x64", calls_many }, { "64KiB", calls_long },
	{ "handshakes", handshakes }, { "floods", floods },   { "live", live },
	{ "redis", redis },           { "judge", judge },
};

static void run_part(const char *name)
{
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(parts[i].name, name) == 0) {
			bench_pin(0);
			parts[i].run();
			return;
		}
	}
	bench_die("there is no such part");
}

/* A number weighs connections, in a process that has freed no memory before. */
int main(int argc, char **argv)
{
	unsigned long which;
	char *end;

	if (argc != 3)
		bench_die("usage: bench_tls FOLDER PART");
	(void)snprintf(bench_folder, sizeof(bench_folder), "%s", argv[1]);
	bench_turns_share();
	bench_start();
	which = strtoul(argv[2], &end, 10);
	if (*end == '\0' && which < sizeof(weights) / sizeof(weights[0])) {
		bench_pin(1);
		bench_weigh(weights[which].figure, weights[which].port, weights[which].state);
	} else {
		run_part(argv[2]);
	}
	bench_end_server();
	return 0;
}
