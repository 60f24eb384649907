/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 4-ary min-heap of timers, the structure to beat: cells of 16 bytes carry the deadline, so that
 * sifting never follows a pointer to compare; the four children of a cell share one cache line; a
 * timer knows its cell, so that cancelling and moving cost O(log n). Not thread-safe.
 */
#ifndef BENCH_HEAP4_H
#define BENCH_HEAP4_H

#include <stddef.h>
#include <stdint.h>

#define HEAP4_NEVER UINT64_MAX

struct heap4_timer;

typedef void (*heap4_due_fn)(struct heap4_timer *timer);

struct heap4_timer {
	size_t at;        /* its cell; 0: not armed */
	heap4_due_fn due; /* called when the timer fires, already out of the heap */
};

struct heap4_cell {
	uint64_t key;              /* deadline */
	struct heap4_timer *timer; /* whose `at` is this cell */
};

struct heap4 {
	struct heap4_cell *cells; /* 64-byte aligned; the root is cell 3, cells 0 to 2 stay empty */
	size_t end;               /* one past the last cell in use */
};

/* Bytes for at most `count` timers. */
size_t heap4_size(size_t count);

/* Makes an empty heap in `memory` (borrowed while the heap is used; 64-byte aligned). */
void heap4_init(struct heap4 *heap, void *memory);

void heap4_add(struct heap4 *heap, struct heap4_timer *timer, uint64_t key);
void heap4_remove(struct heap4 *heap, struct heap4_timer *timer);
void heap4_move(struct heap4 *heap, struct heap4_timer *timer, uint64_t key);

/* Fires everything due at `now`. */
void heap4_expire(struct heap4 *heap, uint64_t now);

/* The earliest deadline, or HEAP4_NEVER. */
uint64_t heap4_next(const struct heap4 *heap);

#endif
