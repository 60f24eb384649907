/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rig for tests with real processes: starts live_provider and live_consumer (programs/), sends
 * them commands, freezes and kills them, and reads their output. Their output consists of lines. A
 * test waits for a line, with a timeout for busy machines, and never for a time. At the end of a
 * test all its processes are killed and reaped.
 */
#ifndef TESTS_INTEGRATION_RIG_H
#define TESTS_INTEGRATION_RIG_H

#include "tests/support/test.h"

#include <sys/types.h>

#define RIG_LINE_SIZE 512u
#define RIG_LINES_MAX (1u << 20) /* enough even for a test that polls counters for a minute */

/* A line of output. */
struct rig_line {
	uint64_t at_ns; /* on CLOCK_MONOTONIC, which all processes share */
	char *text;
};

struct rig_process {
	struct rig_process *next; /* list of all processes of the test */
	const char *name;         /* for messages */
	pid_t pid;                /* 0: the process has ended */
	int status;               /* exit status, as from waitpid() */
	int to;
	int from;
	char part[RIG_LINE_SIZE]; /* an incomplete line */
	size_t part_len;
	struct rig_line *lines; /* all complete lines */
	size_t line_count;
	size_t heard; /* number of lines that rig_wait() has passed */
};

/* Set-up and tear-down of each test, for cmocka_unit_test_setup_teardown(). */
int rig_set_up(void **state);
int rig_tear_down(void **state);

uint64_t rig_now(void);

/* Sleeps at least this long. Only for times that are part of a test, e.g. the length of a freeze.
 */
void rig_sleep(uint64_t ns);

/* Starts a program with arguments (NULL at the end), in the network namespace of another process if
 * `netns` is not NULL. */
struct rig_process *rig_start(const char *program, const struct rig_process *netns,
			      const char *const *arguments);

/* Starts a process that does nothing but hold a network namespace. */
struct rig_process *rig_netns(void);

/* Creates a wire between two namespaces; in both of them the interface is named "harsh". */
struct rig_wire {
	uint64_t delay_ns;
	uint64_t jitter_ns; /* largest extra delay: packets overtake each other */
	unsigned lost_permille;
	unsigned doubled_permille;
};
struct rig_process *rig_wire(const struct rig_process *here, const struct rig_process *there,
			     const struct rig_wire *how);

/* Starts a program of programs/; the arguments are one text, separated by spaces; like printf(). */
struct rig_process *rig_program(const char *program, const struct rig_process *netns,
				const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A provider, a consumer, a consumer of many providers, a holder of leases. */
#define rig_provider(netns, ...) rig_program("live_provider", netns, __VA_ARGS__)
#define rig_consumer(netns, ...) rig_program("live_consumer", netns, __VA_ARGS__)
#define rig_caller(...) rig_program("live_caller", NULL, __VA_ARGS__)
#define rig_holder(...) rig_program("live_holder", NULL, __VA_ARGS__)

/* A provider and a consumer whose wall clock jumps. */
#define rig_astray_provider(...) rig_program("astray_provider", NULL, __VA_ARGS__)
#define rig_astray_consumer(...) rig_program("astray_consumer", NULL, __VA_ARGS__)

/* Waits until the provider listens; returns its address, e.g. "127.0.0.1:20880". */
const char *rig_address(struct rig_process *provider);

/* Sends a command to a process; like printf(). */
void rig_tell(struct rig_process *process, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Waits for the next line that matches (fnmatch()), after the last line that was waited for. The
 * test fails if the process ends first, or a timeout expires. */
const struct rig_line *rig_wait(struct rig_process *process, const char *pattern);

/* Returns the number that follows these words of a line. */
uint64_t rig_number(const char *text, const char *words);

/* Return the number of matching lines so far, and between two times. */
size_t rig_count(struct rig_process *process, const char *pattern);
size_t rig_count_between(struct rig_process *process, const char *pattern, uint64_t from_ns,
			 uint64_t to_ns);

/* Makes rig_wait() skip all lines up to now. */
void rig_skip(struct rig_process *process);

/* Asks the process for the present value of a counter. */
uint64_t rig_stat(struct rig_process *process, const char *name);

/* Waits until a counter is at least `value`. */
void rig_until_stat(struct rig_process *process, const char *name, uint64_t least);

/* Repeats a question until the process gives this answer; the answer begins with the question. */
void rig_until(struct rig_process *process, const char *question, const char *answer);

/* Waits until the consumer has this many connected endpoints. */
void rig_until_ready(struct rig_process *consumer, unsigned count);

/* Waits until the caller knows this many endpoints. */
void rig_until_endpoints(struct rig_process *caller, unsigned count);

/* Waits until all calls of the consumer have ended, and returns the counts of their results. */
struct rig_table {
	uint64_t taken;
	uint64_t ok;
	uint64_t wrong;
	uint64_t timeouts;
	uint64_t lost;
	uint64_t refused;
	uint64_t other;
	uint64_t twice;
	uint64_t not_taken;
};
struct rig_table rig_table(struct rig_process *consumer);

/* Stops the calls and checks that all accepted ones have ended once, with a correct answer or none.
 */
struct rig_table assert_all_ended_once(struct rig_process *consumer);

/* Makes a call of "echo" and checks its answer. */
void assert_call_works(struct rig_process *consumer);

/* Freeze and thaw a process with signals; both return when the change has taken effect. The kernel
 * still serves the sockets of a frozen process. */
void rig_freeze(struct rig_process *process);
void rig_thaw(struct rig_process *process);

/* Waits until a process has stopped itself with SIGSTOP; rig_thaw() lets it go on. */
void rig_until_stopped(struct rig_process *process);

void rig_signal(struct rig_process *process, int signal);

/* Kills the process with SIGKILL and reaps it. */
void rig_kill(struct rig_process *process);

/* Waits until the process ends by itself; returns its exit status, or -1 if a signal killed it. */
int rig_end(struct rig_process *process);

/* Ends the process with a command and checks that it exits with status 0: all its own checks passed
 * and nothing leaked. */
void assert_ends_well(struct rig_process *process);

/* Returns the number of open descriptors of a process. */
size_t rig_descriptors(const struct rig_process *process);

/* Runs a system command (printf(), arguments separated by spaces) to its end, in the network
 * namespace of another process if `netns` is not NULL. Returns its exit status. */
int rig_run(const struct rig_process *netns, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
