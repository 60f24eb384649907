/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of the tests with real processes have in common. A program says what happens on
 * stdout, a line each, which begins with the time (ns, monotonic); it is told what to do on stdin,
 * a line each: a word and up to two numbers. At the end of stdin it ends. They use the public
 * headers alone.
 */
#ifndef TESTS_INTEGRATION_PROGRAMS_LIVE_H
#define TESTS_INTEGRATION_PROGRAMS_LIVE_H

#include <spoke/engine.h>
#include <spoke/link.h>

#include <stdbool.h>
#include <stdint.h>

#define LIVE_SERVICE "demo.EchoService"
#define LIVE_NS_PER_MS UINT64_C(1000000)

/* What a program was told. */
struct live_command {
	const char *word;
	uint64_t first;
	uint64_t second;
};

/* A line, in one piece; any thread. */
void live_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The argument "name=value", NULL: it was not given. */
const char *live_argument(char **argv, const char *name);
uint64_t live_number(char **argv, const char *name, uint64_t preset);

/* The same in milliseconds, as ns; "off" is SPOKE_OFF, and 0 (the default of the library) where it
 * was not given. */
uint64_t live_time(char **argv, const char *name);

/* Of the option `changed`: says what became of a connection. */
void live_changed(void *arg, const struct spoke_link_event *event);

/*
 * Runs the engine while another thread listens: obey(arg, command) is called on the engine's thread
 * for what is not understood by all, which is
 *     block MS      the engine's thread sleeps
 *     stats         says all counters that are not 0, and "end" behind them
 *     cpu           says how many ns of CPU time the process has used
 *     drain MS      drains the engine; so does SIGTERM, with the time that is given here
 *     quit          stops
 * Returns what spoke_engine_run() does.
 */
int live_run(struct spoke_engine *engine, uint64_t drain_ns,
	     void (*obey)(void *arg, const struct live_command *command), void *arg);

#endif
