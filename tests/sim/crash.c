/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports assertion failures, crashes and endless loops of the product like violations; then the
 * program dies from the original signal. The functions called in the handler are not all async-
 * signal-safe: a second failure or the time limit ends the program at once.
 */
#define _GNU_SOURCE
#include "tests/sim/sim.h"

#include <signal.h>
#include <sys/time.h>

#define STACK_BYTES 65536 /* of the handler; the normal stack may be exhausted */

static const struct {
	int number;
	const char *what;
} deadly[] = {
	{ SIGABRT, "the program aborts (SIGABRT)" }, { SIGSEGV, "the program crashes (SIGSEGV)" },
	{ SIGBUS, "the program crashes (SIGBUS)" },  { SIGFPE, "the program crashes (SIGFPE)" },
	{ SIGILL, "the program crashes (SIGILL)" },  { SIGPROF, "the seed does not end (SIGPROF)" },
};

#define DEADLY (sizeof(deadly) / sizeof(deadly[0]))

static struct sigaction before[DEADLY]; /* handlers of a sanitizer, or the default ones */

/* The sanitizers call these functions. Errors found by a sanitizer abort the program. */
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

/* Reports the signal and restores the previous handlers. The signal is blocked during its handler;
 * the raised one is delivered to the previous handler afterwards. */
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

/* CPU time, because a seed waits for nothing: other load of the machine does not end it. */
void sim_crash_watch(uint64_t seconds)
{
	const struct itimerval watch = { .it_value = { .tv_sec = (time_t)seconds } };

	(void)setitimer(ITIMER_PROF, &watch, NULL);
}
