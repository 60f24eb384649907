/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parks threads in rooms. A room is a futex whose counter ticks whenever one of its threads is
 * woken; each thread has a bit that says for which one. Parkers get rooms and bits in the order of
 * their creation, so threads that wait at the same time mostly share a room and hardly ever a bit.
 * If they do share one, the wrong thread wakes and waits again. Rooms are never freed, and a parker
 * whose token has been brought is not touched again, because its owner may be gone.
 */
#define _GNU_SOURCE
#include "core/host/parker.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define BITS 32u
#define ROOMS 64u
#define LINE 64 /* bytes of a cache line */

enum {
	EMPTY,
	TOKEN,  /* unparked and not yet parked */
	PARKED, /* a thread waits, or is about to */
};

static struct {
	_Alignas(LINE) _Atomic(uint32_t) ticker;
} rooms[ROOMS];

static _Atomic(uint32_t) made;

void spokei_parker_init(struct spokei_parker *parker)
{
	uint32_t number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);

	atomic_init(&parker->state, EMPTY);
	parker->bit = UINT32_C(1) << number % BITS;
	parker->ticker = &rooms[number / BITS % ROOMS].ticker;
}

/* Waits while the room has not ticked. Returns 0, or the errno for which the wait ended. */
static int wait_at(const struct spokei_parker *parker, uint32_t tick, uint64_t deadline_ns)
{
	struct timespec until = { .tv_sec = (time_t)(deadline_ns / NS_PER_S),
				  .tv_nsec = (long)(deadline_ns % NS_PER_S) };
	const struct timespec *end = deadline_ns == UINT64_MAX ? NULL : &until;

	if (syscall(SYS_futex, parker->ticker, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, tick, end,
		    NULL, parker->bit) == 0)
		return 0;
	return errno;
}

static bool change(struct spokei_parker *parker, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&parker->state, &from, to,
						       memory_order_acquire, memory_order_relaxed);
}

int spokei_park(struct spokei_parker *parker, uint64_t deadline_ns)
{
	for (;;) {
		/* Read before the token: an unpark after this makes the room tick. */
		uint32_t tick = atomic_load_explicit(parker->ticker, memory_order_acquire);

		if (change(parker, TOKEN, EMPTY))
			return 0;
		(void)change(parker, EMPTY, PARKED);
		if (atomic_load_explicit(&parker->state, memory_order_relaxed) == PARKED &&
		    wait_at(parker, tick, deadline_ns) == ETIMEDOUT &&
		    change(parker, PARKED, EMPTY))
			return -ETIMEDOUT;
	}
}

void spokei_unpark_one_of(struct spokei_unparking *several, struct spokei_parker *parker)
{
	_Atomic(uint32_t) *ticker = parker->ticker;
	uint32_t bit = parker->bit;

	if (atomic_exchange_explicit(&parker->state, TOKEN, memory_order_release) != PARKED)
		return;
	if (several->ticker != ticker)
		spokei_unpark_end(several);
	several->ticker = ticker;
	several->bits |= bit;
}

void spokei_unpark_end(struct spokei_unparking *several)
{
	_Atomic(uint32_t) *ticker = several->ticker;

	if (several->bits == 0)
		return;
	(void)atomic_fetch_add_explicit(ticker, 1, memory_order_release);
	(void)syscall(SYS_futex, ticker, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, INT_MAX, NULL,
		      NULL, several->bits);
	several->bits = 0;
}

void spokei_unpark(struct spokei_parker *parker)
{
	struct spokei_unparking one = { 0 };

	spokei_unpark_one_of(&one, parker);
	spokei_unpark_end(&one);
}
