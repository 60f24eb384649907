/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several engines in one process cost, and what calls that block do: a provider's process and
 * a consumer's, started anew for each measurement, which count on a board that they share with the
 * benchmark. Beside them threads that echo without spoke, for what the kernel takes.
 */
#ifndef BENCH_ENGINES_H
#define BENCH_ENGINES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ENGINES_MAX 8u
#define SEATS_MAX 16u /* threads that call */
#define PAYLOAD 32u   /* bytes */

/* One thing to be measured. */
struct plan {
	const char *name;
	bool is_unix;
	bool takes_turns;     /* connections are handed on, not shared out by the system */
	bool is_raw;          /* threads on bare epoll in place of engines, see raw.c */
	bool is_pinned;       /* the provider to core 0, the consumer to core 1 */
	bool blocks;          /* `outstanding` threads call, each waits for its answer */
	unsigned engines;     /* of the provider's process and of the consumer's */
	unsigned connections; /* of each of the consumer's engines */
	unsigned outstanding; /* calls on each connection */
	char path[64];        /* of the unix socket */
};

/* Where one thread counts; the others only read it. */
struct seat {
	_Alignas(64) _Atomic(uint64_t) calls;
	_Atomic(uint64_t) failed;
};

/* How often threads of a process were switched: waited, or were made to wait. */
uint64_t switches_of(pid_t pid);

struct board {
	struct seat candidates[SEATS_MAX];
};

/* What a helper is given. */
struct part {
	const struct plan *plan;
	struct board *board;
};

/* The provider's process: says where it listens (128 bytes), and serves until it is ended. */
void play_provider(void *arg, int in, int out);

/* The consumer's process: hears where, says a byte when it has begun, and calls until it is ended.
 */
void play_consumer(void *arg, int in, int out);

/* The same without spoke. */
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
