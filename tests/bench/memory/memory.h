/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of waiting connections and calls: bytes, and CPU time of other calls. Every figure is
 * one row on stdout.
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

/* Prints a message to stderr and ends the program, so that an invalid measurement reports nothing.
 */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program with the message of an error, if there is one. */
void must(const char *what, int error);

/* Return the monotonic time, and the CPU time of this process. */
uint64_t now_ns(void);
uint64_t cpu_ns(void);

/* Return the resident pages of this process, and the bytes in use in malloc(). */
struct usage {
	uint64_t resident;
	uint64_t handed_out;
};
struct usage usage_now(void);

/* Prints a row: figure, value, unit, target. 0 means no target; a larger value misses it. */
void report(const char *figure, double value, const char *unit, double target);

/* Returns whether all targets were reached. */
bool report_is_good(void);

/* A child process that runs play(arg, in, out) and is killed with this one. It receives commands as
 * bytes from `in` and answers with bytes to `out`. */
struct helper {
	pid_t pid;
	int to;   /* for writing */
	int from; /* for reading; non-blocking */
};
void helper_start(struct helper *helper, void (*play)(void *arg, int in, int out), void *arg);
void helper_tell(const struct helper *helper, const void *bytes, size_t len);

/* Reads `len` bytes, and waits for them; runs `engine` meanwhile if it is not NULL. */
void helper_hear(const struct helper *helper, struct spoke_engine *engine, void *bytes, size_t len);
void helper_end(struct helper *helper);

/* Read or write all bytes, or die(). */
void read_all(int fd, void *bytes, size_t len);
void write_all(int fd, const void *bytes, size_t len);

/* --- a child process: half of the connections of measure_idle() */

struct quota {
	unsigned conns;
	unsigned first_host; /* last byte of its first source address */
};

#endif
