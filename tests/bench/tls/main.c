/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS beside plain connections, in one run: calls on one core, handshakes, and the memory of a
 * provider. `bench_tls <folder> <part>`: the folder has ca.pem, provider.pem, provider.key,
 * consumer.pem and consumer.key. Prints TSV: figure, plain, tls, ratio.
 */
#include "tests/bench/tls/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
