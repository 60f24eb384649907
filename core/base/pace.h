/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rate limiting and retry pauses: a token bucket, and exponential backoff. Pure: the caller passes
 * time and random numbers, and the arithmetic uses whole numbers, so equal arguments give equal
 * results. A bucket belongs to one object, on its thread; the functions for pauses may be called on
 * any thread.
 */
#ifndef SPOKEI_CORE_BASE_PACE_H
#define SPOKEI_CORE_BASE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_PACE_NEVER UINT64_MAX

/* A token bucket: at most `burst` tokens, refilled with `rate` tokens per second. */
struct spokei_bucket {
	uint64_t level;   /* in billionths of a token: `rate` of them are added per nanosecond */
	uint64_t seen_ns; /* the time of `level` */
	uint32_t rate;    /* tokens per second; 0: the bucket is never refilled */
	uint32_t burst;   /* maximum of tokens */
};

/* Returns a bucket that is full at `now_ns`. */
struct spokei_bucket spokei_bucket_make(uint32_t rate, uint32_t burst, uint64_t now_ns);

/* Takes `count` tokens, all or none, and returns whether it did. A time before the last one adds no
 * tokens. */
bool spokei_bucket_take(struct spokei_bucket *bucket, uint32_t count, uint64_t now_ns);

/*
 * Returns the first time, not before `now_ns`, at which taking `count` tokens succeeds if no others
 * are taken before; SPOKEI_PACE_NEVER if it never does.
 */
uint64_t spokei_bucket_next(const struct spokei_bucket *bucket, uint32_t count, uint64_t now_ns);

/* Exponential backoff: the first pause is `first_ns`, each further one is 1.6 times as long, at
 * most `cap_ns`. */
struct spokei_backoff {
	uint64_t first_ns;
	uint64_t cap_ns; /* at most 2^62; below first_ns, it is also the first pause */
};

/*
 * Returns the pause before attempt number `attempt`; 0 is the first retry. `dice` is a random
 * number of 64 bits. It spreads the pause evenly from 80 % to 120 %, also at the cap, so that
 * clients do not retry at the same time.
 */
uint64_t spokei_backoff_pause(const struct spokei_backoff *backoff, uint32_t attempt,
			      uint64_t dice);

#endif
