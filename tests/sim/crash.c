/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product may also fail an assertion, crash or never return: then the same is said as of a
 * violation, and the program dies as it would have. What is called in a handler need not be safe
 * there: a second failure, or the watch, ends it at once.
 */
#define _GNU_SOURCE
#include "tests/sim/sim.h"

#include <signal.h>
#include <sys/time.h>

#define STACK_BYTES 65536 /* of the handler; the other one may be used up */

static const struct {
	int number;
	const char *what;
} deadly[] = {
	{ SIGABRT, "the program aborts (SIGABRT)" }, { SIGSEGV, "the program crashes (SIGSEGV)" },
	{ SIGBUS, "the program crashes (SIGBUS)" },  { SIGFPE, "the program crashes (SIGFPE)" },
	{ SIGILL, "the program crashes (SIGILL)" },  { SIGALRM, "the seed does not end (SIGALRM)" },
};

#define DEADLY (sizeof(deadly) / sizeof(deadly[0]))

static struct sigaction before[DEADLY]; /* a sanitizer's, or the system's */

/* Sanitizers ask for these: what they find aborts the program. */
/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return "abort_on_error=1";
}

const char *__ubsan_default_options(void)
{
	return "abort_on_error=1";
}
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

/* The signal is blocked while it is handled; the one raised is delivered where the first one was,
 * to who was there before. */
static void die(int number)
{
	const char *what = "";

	for (unsigned i = 0; i < DEADLY; i++) {
		(void)sigaction(deadly[i].number, &before[i], NULL);
		if (deadly[i].number == number)
			what = deadly[i].what;
	}
	sim_report(what);
	(void)raise(number);
}

void sim_crash_begin(void)
{
	static char stack[STACK_BYTES];
	const stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = die, .sa_flags = SA_ONSTACK };

	(void)sigemptyset(&action.sa_mask);
	(void)sigaltstack(&own, NULL);
	for (unsigned i = 0; i < DEADLY; i++)
		(void)sigaction(deadly[i].number, &action, &before[i]);
}

void sim_crash_watch(uint64_t seconds)
{
	const struct itimerval watch = { .it_value = { .tv_sec = (time_t)seconds } };

	(void)setitimer(ITIMER_REAL, &watch, NULL);
}
