/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for one another. */
#ifndef SPOKEI_CORE_HOST_THREADS_H
#define SPOKEI_CORE_HOST_THREADS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* --- parkers
 *
 * A parker: a place where one thread waits until another thread wakes it; embedded in its owner.
 * It costs one system call on each side, and none if there is nothing to wait for or to wake;
 * several threads are woken by one call. A forked child must not use the parkers of its parent. */

struct spokei_parker {
	_Atomic(uint32_t) state;
	uint32_t bit;              /* tells the threads of a room apart */
	_Atomic(uint32_t) *ticker; /* the room's counter, on which threads wait */
};

void spokei_parker_init(struct spokei_parker *parker);

/* Waits for an unpark, which may have come before, or until `deadline_ns` of CLOCK_MONOTONIC;
 * UINT64_MAX: without a deadline. Returns 0 or -ETIMEDOUT. After 0 the parker may be freed at once.
 */
int spokei_park(struct spokei_parker *parker, uint64_t deadline_ns);

/* Makes park() return, now or the next time; several calls before one park count as one. Any
 * thread. */
void spokei_unpark(struct spokei_parker *parker);

/* The same for several parkers. */
struct spokei_unparking {
	_Atomic(uint32_t) *ticker;
	uint32_t bits;
};

void spokei_unpark_one_of(struct spokei_unparking *several, struct spokei_parker *parker);
void spokei_unpark_end(struct spokei_unparking *several);

#endif
