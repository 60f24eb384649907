/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real processes under test: live_provider and live_consumer (programs/), started, told what to do,
 * frozen, killed, and listened to. What they say comes in lines; a test waits for a line, with the
 * patience of a busy machine, and never for a time. Whatever runs at the end of a test is killed
 * and reaped.
 */
#ifndef TESTS_INTEGRATION_RIG_H
#define TESTS_INTEGRATION_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/types.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

#define RIG_LINE_SIZE 512u
#define RIG_LINES_MAX (1u << 20) /* also of those who are asked for counters for a minute */

/* A line that a process has said. */
struct rig_line {
	uint64_t at_ns; /* of the clock that all processes share */
	char *text;
};

struct rig_process {
	struct rig_process *next; /* of all of the test */
	const char *name;         /* for people */
	pid_t pid;                /* 0: it has ended */
	int status;               /* then, as waitpid() gives it */
	int to;
	int from;
	char part[RIG_LINE_SIZE]; /* of a line that is not whole yet */
	size_t part_len;
	struct rig_line *lines; /* all that it said */
	size_t line_count;
	size_t heard; /* lines that rig_wait() has passed */
};

/* A test of the rig: cmocka_unit_test_setup_teardown() with these. */
#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, rig_set_up, rig_tear_down)
int rig_set_up(void **state);
int rig_tear_down(void **state);

/* The environment variable ROW: only tests whose name it matches are run. */
const char *rig_filter(void);

uint64_t rig_now(void);

/* A time that is a part of what a test does, as how long a process is frozen. At least so long. */
void rig_sleep(uint64_t ns);

/* Starts a program with arguments (NULL at the end), in the network of another process if `netns`
 * is not NULL. */
struct rig_process *rig_start(const char *program, const struct rig_process *netns,
			      const char *const *arguments);

/* A process that does nothing but to have a network of its own, which is gone with those in it. */
struct rig_process *rig_netns(void);

/* A wire between two networks, which both have as interface "harsh" then. */
struct rig_wire {
	uint64_t delay_ns;
	uint64_t jitter_ns; /* up to so much more: packets overtake each other */
	unsigned lost_permille;
	unsigned doubled_permille;
};
struct rig_process *rig_wire(const struct rig_process *here, const struct rig_process *there,
			     const struct rig_wire *how);

/* The two programs, with their arguments in one text, with spaces between; printf(). */
struct rig_process *rig_provider(const struct rig_process *netns, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
struct rig_process *rig_consumer(const struct rig_process *netns, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* live_caller, a consumer of many. */
struct rig_process *rig_caller(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A provider and a consumer on whose wall the clock goes astray. */
struct rig_process *rig_astray_provider(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
struct rig_process *rig_astray_consumer(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Where a provider says that it listens, as "127.0.0.1:20880"; waits for it. */
const char *rig_address(struct rig_process *provider);

/* Tells a process something; printf(). */
void rig_tell(struct rig_process *process, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Waits for the next line, behind the last one that was waited for, that matches (fnmatch()). The
 * test fails when it does not come, or the process ends before. */
const struct rig_line *rig_wait(struct rig_process *process, const char *pattern);

/* How many of all lines up to now match; and of those between two times. */
size_t rig_count(struct rig_process *process, const char *pattern);
size_t rig_count_between(struct rig_process *process, const char *pattern, uint64_t from_ns,
			 uint64_t to_ns);

/* From here on rig_wait() looks at what is yet to come. */
void rig_skip(struct rig_process *process);

/* The present value of a counter of the process, asked for. */
uint64_t rig_stat(struct rig_process *process, const char *name);

/* Waits until a counter is at least so much. */
void rig_until_stat(struct rig_process *process, const char *name, uint64_t least);

/* Asks a process until it answers so; the answer begins with the question. */
void rig_until(struct rig_process *process, const char *question, const char *answer);

/* Waits until so many endpoints of a consumer are connected. */
void rig_until_ready(struct rig_process *consumer, unsigned count);

/* The table of the consumer's calls, when they all have ended. */
struct rig_table {
	unsigned taken;
	unsigned ok;
	unsigned wrong;
	unsigned timeouts;
	unsigned lost;
	unsigned refused;
	unsigned other;
	unsigned twice;
	unsigned not_taken;
};
struct rig_table rig_table(struct rig_process *consumer);

/* It makes no more calls, and all that were taken have ended once, with a right answer or none. */
struct rig_table assert_all_ended_once(struct rig_process *consumer);

/* A call of "echo" is answered. */
void assert_call_works(struct rig_process *consumer);

/* Frozen: the kernel goes on for it. Both return when it is so. */
void rig_freeze(struct rig_process *process);
void rig_thaw(struct rig_process *process);

void rig_signal(struct rig_process *process, int signal);

/* SIGKILL, and reaped. */
void rig_kill(struct rig_process *process);

/* Waits until it has ended by itself; returns the status it exits with, -1: by a signal. */
int rig_end(struct rig_process *process);

/* It is told to end and does, with 0: nothing was wrong inside, and nothing leaked. */
void assert_ends_well(struct rig_process *process);

/* How many descriptors a process has open. */
size_t rig_descriptors(const struct rig_process *process);

/* Runs a command of the system (printf(), with spaces between its arguments) to its end, in the
 * network of another process if `netns` is not NULL. Returns the status it exits with. */
int rig_run(const struct rig_process *netns, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
