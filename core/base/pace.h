/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often and how soon: a token bucket, and the growing pauses between attempts. Judges only:
 * time and dice are parameters, and the arithmetic is of whole numbers, so that equal questions
 * have equal answers. A bucket belongs to one object, on its thread; pauses are pure functions.
 */
#ifndef SPOKEI_CORE_BASE_PACE_H
#define SPOKEI_CORE_BASE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_PACE_NEVER UINT64_MAX

/* Holds at most `burst` tokens and gains `rate` a second. */
struct spokei_bucket {
	uint64_t level;   /* in billionths of a token: rate gives that many per nanosecond */
	uint64_t seen_ns; /* the level is the one of this time */
	uint32_t rate;    /* tokens per second; 0: it is never filled again */
	uint32_t burst;   /* tokens it can hold */
};

/* A bucket that is full at `now_ns`. */
struct spokei_bucket spokei_bucket_make(uint32_t rate, uint32_t burst, uint64_t now_ns);

/* Takes `count` tokens, all or none, and says which. A time before the last one gains nothing. */
bool spokei_bucket_take(struct spokei_bucket *bucket, uint32_t count, uint64_t now_ns);

/*
 * The first time, not before `now_ns`, at which a take of `count` tokens succeeds if nobody takes
 * any before. SPOKEI_PACE_NEVER when there can never be so many.
 */
uint64_t spokei_bucket_next(const struct spokei_bucket *bucket, uint32_t count, uint64_t now_ns);

/* Pauses that begin at `first_ns` and grow by the factor 1.6 up to `cap_ns`. */
struct spokei_backoff {
	uint64_t first_ns;
	uint64_t cap_ns; /* at most 2^62; a smaller one than first_ns is the first pause already */
};

/*
 * The pause before attempt number `attempt`, which is 0 for the first repetition. `dice` is a
 * random number of 64 bits: it spreads the pause evenly over 20 % less to 20 % more, beyond the cap
 * too, so that those who wait at the cap do not all come at the same time.
 */
uint64_t spokei_backoff_pause(const struct spokei_backoff *backoff, uint32_t attempt,
			      uint64_t dice);

#endif
