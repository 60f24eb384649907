/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What connections and calls cost while they wait: bytes, and time of others. Every figure is one
 * row on stdout.
 */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define SERVICE "demo.EchoService"

struct spoke_engine;

/* A sentence to stderr, and the end: what measured something else must not report. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends with the sentence of an error, if it is one. */
void must(const char *what, int error);

/* Monotonic; and CPU time of this process. */
uint64_t now_ns(void);
uint64_t cpu_ns(void);

/* What this process uses: pages in memory, and bytes that malloc() has handed out. */
struct usage {
	uint64_t resident;
	uint64_t handed_out;
};
struct usage usage_now(void);

/* A row: figure, value, unit, target. A target of 0 is none; above it is missed. */
void report(const char *figure, double value, const char *unit, double target);

/* Were all targets reached? */
bool report_is_good(void);

/* A process of its own that runs play(arg, in, out), ended with this one. It is told by bytes in
 * `in` and tells by bytes in `out`. */
struct helper {
	pid_t pid;
	int to;   /* write here */
	int from; /* read here; does not block */
};
void helper_start(struct helper *helper, void (*play)(void *arg, int in, int out), void *arg);
void helper_tell(const struct helper *helper, const void *bytes, size_t len);

/* Takes `len` bytes, waited for; while `engine` is not NULL it turns. */
void helper_hear(const struct helper *helper, struct spoke_engine *engine, void *bytes, size_t len);
void helper_end(struct helper *helper);

/* All or nothing, or die(). */
void read_all(int fd, void *bytes, size_t len);
void write_all(int fd, const void *bytes, size_t len);

/* --- what is measured */

void measure_sizes(void);
void measure_idle(unsigned conns);
void measure_pending(unsigned few, unsigned many, unsigned calls);

/* --- a helper: half of the connections of measure_idle() */

struct quota {
	unsigned conns;
	unsigned first_host; /* the last byte of the addresses it calls from: this one and more */
};

/*
 * Hears a port (uint16_t); then, each answered by one byte when it is done: 'c' connects all, 's'
 * has each of them send a heartbeat and a call and read both answers.
 */
void crowd_play(void *arg, int in, int out);

#endif
