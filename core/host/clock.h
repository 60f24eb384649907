/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's clocks, in ns: two that only go on, and the one on the wall. The context is not
 * used; any thread.
 */
#ifndef SPOKEI_CORE_HOST_CLOCK_H
#define SPOKEI_CORE_HOST_CLOCK_H

#include <stdint.h>

/* Stands still while the machine sleeps. */
uint64_t spokei_clock_now(void *ctx);

/* The same as of at most SPOKE_COARSE_NS ago. */
uint64_t spokei_clock_coarse(void *ctx);

/* Goes on meanwhile. */
uint64_t spokei_clock_boot_now(void *ctx);

/* Since 1970. */
uint64_t spokei_clock_wall(void *ctx);

#endif
