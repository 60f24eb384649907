/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS beside plain connections, in one run: calls on one core, handshakes, and the memory of a
 * provider. `bench_tls <folder>`: the folder has ca.pem, provider.pem, provider.key, consumer.pem
 * and consumer.key. Prints TSV: figure, plain, tls, ratio.
 */
#include "tests/bench/tls/bench.h"

#include <stdio.h>
#include <stdlib.h>

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

/* A number weighs connections, in a process that has freed no memory before. */
int main(int argc, char **argv)
{
	unsigned long which = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (argc < 2 || which >= sizeof(weights) / sizeof(weights[0]))
		bench_die("usage: bench_tls FOLDER [0 to 5]");
	(void)snprintf(bench_folder, sizeof(bench_folder), "%s", argv[1]);
	bench_start();
	if (argc == 3) {
		bench_pin(1);
		bench_weigh(weights[which].figure, weights[which].port, weights[which].state);
		bench_end_server();
		return 0;
	}
	bench_pin(0);
	printf("figure\tplain\ttls\tratio\n");
	bench_calls("64B-1x1", 64, 1);
	bench_records();
	bench_calls("64B-1x64", 64, SEATS);
	bench_calls("64KiB-1x1", 65536, 1);
	bench_pin(1);
	bench_handshakes("handshakes/s of a core", PORT_TLS);
	bench_library();
	bench_handshakes("... with both certificates", PORT_MUTUAL);
	bench_end_server();
	return 0;
}
