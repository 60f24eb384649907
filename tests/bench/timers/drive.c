/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a wheel in real time; see drive.h. The timerfd is set to the wheel's next expiry, but only
 * if that has become earlier or the last setting has passed. Moving a timer to a later time
 * therefore costs no system call, and at most one idle wake-up.
 */
#include "drive.h"

#include "host.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

struct drive {
	struct spoke_wheel *wheel;
	int epoll;
	int timer;        /* timerfd */
	uint64_t wake_ns; /* time to which it is set; SPOKE_WHEEL_NEVER: none */
};

static void watch(const struct drive *drive, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };

	if (epoll_ctl(drive->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		host_die("epoll_ctl failed");
}

static void set_wake(struct drive *drive, uint64_t next_ns)
{
	struct itimerspec at = {
		.it_value = {
			.tv_sec = (time_t)(next_ns / SECOND_NS),
			.tv_nsec = (long)(next_ns % SECOND_NS),
		},
	};

	if (next_ns >= drive->wake_ns)
		return;
	if (timerfd_settime(drive->timer, TFD_TIMER_ABSTIME, &at, NULL) != 0)
		host_die("cannot set the timerfd");
	drive->wake_ns = next_ns;
}

/* Waits; returns whether to stop. */
static bool wait_for(struct drive *drive, int stop_fd, int timeout_ms)
{
	struct epoll_event events[2];
	int count = epoll_wait(drive->epoll, events, 2, timeout_ms);
	bool stop = false;

	for (int i = 0; i < count; i++) {
		uint64_t times;

		if (events[i].data.fd == stop_fd)
			stop = true;
		else if (read(drive->timer, &times, sizeof(times)) == sizeof(times))
			drive->wake_ns = SPOKE_WHEEL_NEVER;
	}
	return stop;
}

void drive_until(struct spoke_wheel *wheel, int stop_fd)
{
	struct drive drive = {
		.wheel = wheel,
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		.wake_ns = SPOKE_WHEEL_NEVER,
	};
	bool more = false;

	if (drive.epoll < 0 || drive.timer < 0)
		host_die("no descriptors");
	watch(&drive, drive.timer);
	watch(&drive, stop_fd);
	do {
		if (!more)
			set_wake(&drive, spoke_wheel_next(wheel));
		if (wait_for(&drive, stop_fd, more ? 0 : -1))
			break;
		more = spoke_wheel_advance(wheel, host_real_ns(), 0) == SPOKE_WHEEL_MORE;
	} while (true);
	(void)close(drive.timer);
	(void)close(drive.epoll);
}
