/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest loop that gives a wheel real time: an absolute timerfd and epoll. */
#ifndef BENCH_DRIVE_H
#define BENCH_DRIVE_H

#include <spoke/wheel.h>

/* Turns the wheel (whose clock is CLOCK_MONOTONIC) until `stop_fd` becomes readable. */
void drive_until(struct spoke_wheel *wheel, int stop_fd);

#endif
