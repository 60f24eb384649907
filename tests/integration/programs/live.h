/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common part of the programs for tests with real processes. A program prints events to stdout, one
 * per line, which begins with the time (ns, monotonic). It reads commands from stdin, one per line:
 * a word and up to two numbers. At the end of stdin the program ends. The programs use only public
 * headers.
 */
#ifndef TESTS_INTEGRATION_PROGRAMS_LIVE_H
#define TESTS_INTEGRATION_PROGRAMS_LIVE_H

#include <spoke/engine.h>
#include <spoke/link.h>

#include <stdbool.h>
#include <stdint.h>

#define LIVE_SERVICE "demo.EchoService"
#define LIVE_NS_PER_MS UINT64_C(1000000)

/* A command from stdin. */
struct live_command {
	const char *word;
	uint64_t first;
	uint64_t second;
};

/* Prints a line with one write; any thread. */
void live_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the value of the argument "name=value", or NULL. */
const char *live_argument(char **argv, const char *name);
uint64_t live_number(char **argv, const char *name, uint64_t preset);

/* Returns such a value in milliseconds, converted to ns: SPOKE_OFF for "off", and 0 (the library's
 * default) if the argument is missing. */
uint64_t live_time(char **argv, const char *name);

/* Callback of the option `changed`: prints link events. */
void live_changed(void *arg, const struct spoke_link_event *event);

/*
 * Runs the engine while another thread reads commands. obey(arg, command) is called on the engine's
 * thread for commands other than these:
 *     block MS      the engine's thread sleeps
 *     stats         prints all counters that are not 0, and then "end"
 *     cpu           prints the CPU time of the process in ns
 *     drain MS      drains the engine; SIGTERM does so with the time limit given here
 *     quit          stops
 * Returns the result of spoke_engine_run().
 */
int live_run(struct spoke_engine *engine, uint64_t drain_ns,
	     void (*obey)(void *arg, const struct live_command *command), void *arg);

#endif
