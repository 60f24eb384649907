/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the real environment, for one another: its tables, the machine's clocks, and how
 * often the process was forked. Any thread.
 */
#ifndef SPOKEI_CORE_HOST_HOST_H
#define SPOKEI_CORE_HOST_HOST_H

#include <spoke/env.h>

#include <stddef.h>
#include <stdint.h>

/* --- clocks
 *
 * The machine's clocks, in ns: two monotonic ones and the wall clock. The context is not used; any
 * thread. */

/* The monotonic clock; it stops while the machine sleeps. */
uint64_t spokei_clock_now(void *ctx);

/* --- forks
 *
 * Counts how often this process was forked from another one since the environment was made. A
 * child of a bare clone() or vfork() is not noticed. */

/* From 1 on. The value changes only in a child, while it has a single thread; any thread reads it.
 */
extern unsigned spokei_forks;

/* --- tables of the environment */

extern const struct spoke_files spokei_host_files;
extern const struct spoke_loop spokei_host_loop;
extern const struct spoke_manager spokei_host_manager;
extern const struct spoke_net spokei_host_net;
extern const struct spoke_signals spokei_host_signals;
extern const struct spoke_threads spokei_host_threads;

/* --- sockets that a service manager has opened
 *
 * They are passed to this process by environment variables. Each is taken once. Any thread. */

/* Finds a socket by its name, without regard to case, or by the number of its descriptor. Returns
 * as passed() of struct spoke_net; the address is the socket's. */
SPOKE_MUST_USE int spokei_passed_find(const char *name, struct spoke_address *ret_address);

/* Takes the first socket with this address, which no other call gets then. Returns its descriptor,
 * non-blocking and not inherited by other programs, or -ENOENT. */
SPOKE_MUST_USE int spokei_passed_take(const struct spoke_address *address);

#endif
