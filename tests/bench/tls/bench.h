/* SPDX-License-Identifier: Apache-2.0 */
/* TLS beside plain connections: the parts of the benchmark for one another. */
#ifndef BENCH_TLS_BENCH_H
#define BENCH_TLS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	ROUNDS = 9,
	ROUND_MS = 400,
	SEATS = 64,
	LINKS = 1000,
	HANDSHAKES = 1000,
	TEXT = 256,
};

/* What the provider speaks at each of its ports. */
enum port {
	PORT_PLAIN,
	PORT_TLS,
	PORT_MUTUAL,
	PORTS,
};

/* What is known of a connection that is weighed. */
enum state {
	STATE_MUTE,
	STATE_BYTE,
	STATE_HELLO,
	STATE_OPEN,
};

extern char bench_folder[TEXT]; /* of the certificates */
extern uint16_t bench_ports[PORTS];
extern pid_t bench_server;

/* --- host.c */

_Noreturn void bench_die(const char *why);

/* Dies unless the error is 0. */
void bench_must(const char *what, int error);

/* Returns the path of a file in the folder, valid for some calls. */
const char *bench_path(const char *name);

double bench_now(void);     /* seconds */
double bench_own_cpu(void); /* CPU time of this process, in seconds */
void bench_rest(long ms);
void bench_pin(int core);
double bench_median(double *values, size_t count);

/* --- server.c: the provider, a process of its own */

void bench_start(void);
void bench_end_server(void);
double bench_server_cpu(void);    /* seconds */
double bench_server_memory(void); /* resident bytes */

/* --- calls.c */

/* Prints the figures of calls over plain connections and over TLS. */
void bench_calls(const char *figure, size_t len, unsigned depth);

/* --- links.c: connections without spoke, and the library alone */

/* Prints how many handshakes a core of the provider does in a second. */
void bench_handshakes(const char *figure, enum port port);

/* Prints the same of the library over memory, and the CPU time of the records of a call. */
void bench_library(void);
void bench_records(void);

/* Prints the memory that the provider has for a connection in this state. */
void bench_weigh(const char *figure, enum port port, enum state state);

#endif
