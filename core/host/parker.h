/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place for one thread to wait at until another calls it, embedded in its owner. It costs a
 * system call on each side, and none when nobody has to wait or to be woken; several threads are
 * woken by one. In a forked child it is to be forgotten.
 */
#ifndef SPOKEI_CORE_HOST_PARKER_H
#define SPOKEI_CORE_HOST_PARKER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct spokei_parker {
	_Atomic(uint32_t) state;
	uint32_t bit;              /* those who wait in one room are told apart by it */
	_Atomic(uint32_t) *ticker; /* of its room: what threads wait at */
};

void spokei_parker_init(struct spokei_parker *parker);

/* Waits for an unpark, which may have come before, or until `deadline_ns` of CLOCK_MONOTONIC,
 * UINT64_MAX: for ever. Returns 0, or -ETIMEDOUT. After 0 the parker may be freed at once. */
int spokei_park(struct spokei_parker *parker, uint64_t deadline_ns);

/* Lets park() return, now or the next time; several before one park count as one. Any thread. */
void spokei_unpark(struct spokei_parker *parker);

/* The same, of several. */
struct spokei_unparking {
	_Atomic(uint32_t) *ticker;
	uint32_t bits;
};
void spokei_unpark_one_of(struct spokei_unparking *several, struct spokei_parker *parker);
void spokei_unpark_end(struct spokei_unparking *several);

#endif
