/* SPDX-License-Identifier: Apache-2.0 */
/* TLS beside plain connections: the parts of the benchmark for one another. */
#ifndef BENCH_TLS_BENCH_H
#define BENCH_TLS_BENCH_H

#include <openssl/ssl.h>

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
	LATENCIES = 100000,
	REDIS_ROUNDS = 5,
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
double bench_cpu_of(pid_t process);
void bench_rest(long ms);
void bench_pin(int core);
double bench_median(double *values, size_t count);

/* Makes the two ends of a TCP connection, without delay. */
void bench_socket_pair(int ret_fds[2]);

/* --- server.c: the provider, a process of its own */

void bench_start(void);
void bench_end_server(void);
double bench_server_cpu(void);    /* seconds */
double bench_server_memory(void); /* resident bytes */

/* --- calls.c */

/* Prints the figures of calls over plain connections and over TLS, and of the raw echoes. */
void bench_calls(const char *figure, size_t len, unsigned depth);

/* Calls over TLS whose times are taken. */
struct bench_load;

struct bench_load *bench_load_new(size_t len);

/* Returns the 99th percentile of a round with so many calls in flight, at most SEATS, in seconds.
 */
double bench_load_p99(struct bench_load *load, unsigned depth);

/* Returns the calls per second of a round, and the seconds of CPU of both sides for one. */
double bench_load_rate(struct bench_load *load, unsigned depth, double *ret_cpu);
void bench_load_free(struct bench_load *load);

/* --- raw.c: an echo on bare sockets */

struct bench_raw;

struct bench_raw *bench_raw_open(bool secure);

/* Returns echoes per second of a round: `depth` of `len` bytes each go in one write. */
double bench_raw_rate(struct bench_raw *raw, size_t len, unsigned depth);
double bench_raw_cpu(const struct bench_raw *raw); /* seconds of both sides */
void bench_raw_close(struct bench_raw *raw);

/* --- links.c: connections without spoke, and the library alone */

SSL_CTX *bench_client_context(bool shows_certificate);
SSL_CTX *bench_server_context(void);
int bench_dial(enum port port);

/* Prints how many handshakes a core of the provider does in a second. */
void bench_handshakes(const char *figure, enum port port);

/* Prints the same of the library over memory, and the CPU time of the records of a call. */
void bench_library(bool mutual);
void bench_records(void);

/* Prints the memory that the provider has for a connection in this state. */
void bench_weigh(const char *figure, enum port port, enum state state);

/* --- floods.c */

/* Before the provider starts. */
void bench_turns_share(void);

/* Print the longest turn that 1,000 handshakes at once, or a connection's changes of keys cause. */
void bench_crowd(const char *figure, enum port port);
void bench_updates(const char *figure, bool asks);

/* Prints the 99th percentile of calls without and with a flood of handshakes. */
void bench_live(const char *figure, unsigned depth);

#endif
