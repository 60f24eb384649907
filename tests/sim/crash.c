/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product may also fail an assertion, crash or never return: then the same is said as of a
 * violation, and the program dies as it would have. What is called in a handler need not be safe
 * there: a second failure, or the watch, ends it at once.
 */
#define _XOPEN_SOURCE 700
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

/* Of the runtime of sanitizers, where there is one. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void sanitizer_ends(void)
{
	sim_report("a sanitizer ends the program");
}

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
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(sanitizer_ends);
}

void sim_crash_watch(uint64_t seconds)
{
	const struct itimerval watch = { .it_value = { .tv_sec = (time_t)seconds } };

	(void)setitimer(ITIMER_REAL, &watch, NULL);
}
