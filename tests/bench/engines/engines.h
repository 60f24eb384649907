/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark of several engines in one process, and of blocking calls. For each measurement a
 * provider's process and a consumer's process are started; they count calls in memory shared with
 * the benchmark. Threads that echo without spoke show the cost of the kernel.
 */
#ifndef BENCH_ENGINES_H
#define BENCH_ENGINES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ENGINES_MAX 8u
#define SEATS_MAX 16u /* calling threads */
#define PAYLOAD 32u   /* bytes */

/* One measurement. */
struct plan {
	const char *name;
	bool is_unix;
	bool takes_turns;     /* the first engine hands connections over, not the kernel */
	bool is_raw;          /* threads on bare epoll instead of engines, see raw.c */
	bool is_pinned;       /* the provider to core 0, the consumer to core 1 */
	bool blocks;          /* `outstanding` threads make blocking calls */
	unsigned engines;     /* of the provider's process, and of the consumer's */
	unsigned connections; /* of each of the consumer's engines */
	unsigned outstanding; /* calls on each connection */
	char path[64];        /* of the unix socket */
};

/* Counters of one thread; other threads only read them. */
struct seat {
	_Alignas(64) _Atomic(uint64_t) calls;
	_Atomic(uint64_t) failed;
};

/* Returns the number of context switches of a process, voluntary and involuntary. */
uint64_t switches_of(pid_t pid);

struct board {
	struct seat candidates[SEATS_MAX];
};

/* Arguments of a child process. */
struct part {
	const struct plan *plan;
	struct board *board;
};

/* Runs the provider's process: writes its address (128 bytes), and serves until it is killed. */
void play_provider(void *arg, int in, int out);

/* Runs the consumer's process: reads the address, writes a byte when it has started, and calls
 * until it is killed. */
void play_consumer(void *arg, int in, int out);

/* Do the same without spoke. */
void play_raw_provider(void *arg, int in, int out);
void play_raw_consumer(void *arg, int in, int out);

#define PLACE_SIZE 128u

static inline void seat_grow(_Atomic(uint64_t) *count, uint64_t by)
{
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + by,
			      memory_order_relaxed);
}

static inline void seat_count(struct seat *seat, bool good)
{
	seat_grow(good ? &seat->calls : &seat->failed, 1);
}

#endif
