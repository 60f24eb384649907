/* SPDX-License-Identifier: Apache-2.0 */
/* Idle wake-ups and lateness; see realtime.h. */
#include "realtime.h"

#include "dice.h"
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define FAR_US UINT64_C(600000000)
#define GRACE_MS UINT64_C(200) /* after the last deadline, for late timers */

static struct bench_live live;
static int64_t *late_ns; /* by index of the timer */
static uint64_t fired;

static void note_late(uint64_t index)
{
	uint64_t deadline_ns = live.base_ns + live.delays_us[index] * 1000;

	late_ns[index] = (int64_t)(host_real_ns() - deadline_ns);
	fired++;
}

/* Runs the peer's loop with these delays; it ends after `span_ms`. */
static void run_loop(const struct bench_kit *kit, uint64_t n, const uint64_t *delays_us,
		     uint64_t span_ms)
{
	struct itimerspec span = {
		.it_value = {
			.tv_sec = (time_t)(span_ms / 1000),
			.tv_nsec = (long)(span_ms % 1000 * HOST_MS),
		},
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &span, NULL) != 0)
		host_die("no timerfd");
	live = (struct bench_live){
		.n = n, .delays_us = delays_us, .stop_fd = fd, .due = note_late
	};
	late_ns = host_memory(n, sizeof(*late_ns));
	fired = 0;
	kit->live(&live);
	(void)close(fd);
}

double realtime_idle(const struct bench_kit *kit, uint64_t span_ms)
{
	uint64_t delay_us = FAR_US;

	run_loop(kit, 1, &delay_us, span_ms);
	free(late_ns);
	if (fired != 0)
		host_die("a timer of ten minutes fired at once");
	if (live.wakeups == 0)
		host_die("a loop ended without waking up");
	return (double)(live.wakeups - 1);
}

static int compare(const void *a, const void *b)
{
	int64_t left;
	int64_t right;

	memcpy(&left, a, sizeof(left));
	memcpy(&right, b, sizeof(right));
	return (left > right) - (left < right);
}

static double in_ms(int64_t ns)
{
	return (double)ns / (double)HOST_MS;
}

struct realtime_lateness realtime_lateness(const struct bench_kit *kit, uint64_t n,
					   uint64_t span_ms)
{
	struct dice dice = { DICE_SEED };
	struct realtime_lateness result = { 0 };
	uint64_t *delays_us = host_memory(n, sizeof(*delays_us));

	for (uint64_t i = 0; i < n; i++)
		delays_us[i] = 1 + dice_below((uint32_t)dice_roll(&dice), (uint32_t)span_ms * 1000);
	run_loop(kit, n, delays_us, span_ms + GRACE_MS);
	if (fired != n)
		host_die("%llu of %llu timers fired in time", (unsigned long long)fired,
			 (unsigned long long)n);
	qsort(late_ns, n, sizeof(*late_ns), compare);
	result.p50_ms = in_ms(late_ns[n / 2]);
	result.p99_ms = in_ms(late_ns[n * 99 / 100]);
	result.max_ms = in_ms(late_ns[n - 1]);
	for (uint64_t i = 0; i < n; i++)
		result.early += late_ns[i] < 0 ? 1 : 0;
	free(delays_us);
	free(late_ns);
	return result;
}
