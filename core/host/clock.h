/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's clocks, in ns: two monotonic ones and the wall clock. The context is not used; any
 * thread.
 */
#ifndef SPOKEI_CORE_HOST_CLOCK_H
#define SPOKEI_CORE_HOST_CLOCK_H

#include <stdint.h>

/* The monotonic clock; it stops while the machine sleeps. */
uint64_t spokei_clock_now(void *ctx);

/* A coarse reading of the monotonic clock, at most SPOKE_COARSE_NS old. */
uint64_t spokei_clock_coarse(void *ctx);

/* The boot-time clock; it goes on while the machine sleeps. */
uint64_t spokei_clock_boot_now(void *ctx);

/* The wall clock, since 1970. */
uint64_t spokei_clock_wall(void *ctx);

#endif
