/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token bucket and backoff. A bucket counts in billionths of a token, so a nanosecond always adds a
 * whole number and rounding errors do not accumulate. The largest burst is below 2^62 of these
 * units, and the rate is multiplied by at most the time that fills the bucket.
 */
#include "core/base/pace.h"

#include "timer/base.h"

#define TOKEN UINT64_C(1000000000)

static uint64_t divide_up(uint64_t value, uint64_t by)
{
	return value / by + (value % by != 0);
}

/* Returns the level of the bucket at `now_ns`. */
static uint64_t level_at(const struct spokei_bucket *bucket, uint64_t now_ns)
{
	uint64_t missing = bucket->burst * TOKEN - bucket->level;
	uint64_t elapsed = now_ns > bucket->seen_ns ? now_ns - bucket->seen_ns : 0;

	if (bucket->rate == 0)
		return bucket->level;
	if (elapsed >= divide_up(missing, bucket->rate))
		return bucket->burst * TOKEN;
	return bucket->level + elapsed * bucket->rate;
}

struct spokei_bucket spokei_bucket_make(uint32_t rate, uint32_t burst, uint64_t now_ns)
{
	return (struct spokei_bucket){
		.level = burst * TOKEN,
		.seen_ns = now_ns,
		.rate = rate,
		.burst = burst,
	};
}

bool spokei_bucket_take(struct spokei_bucket *bucket, uint32_t count, uint64_t now_ns)
{
	bucket->level = level_at(bucket, now_ns);
	if (now_ns > bucket->seen_ns)
		bucket->seen_ns = now_ns;
	SPOKE_ASSERT(bucket->level <= bucket->burst * TOKEN);
	if (bucket->level < count * TOKEN)
		return false;
	bucket->level -= count * TOKEN;
	return true;
}

uint64_t spokei_bucket_next(const struct spokei_bucket *bucket, uint32_t count, uint64_t now_ns)
{
	uint64_t wanted = count * TOKEN;
	uint64_t level = level_at(bucket, now_ns);
	uint64_t from_ns = now_ns > bucket->seen_ns ? now_ns : bucket->seen_ns;
	uint64_t wait_ns;

	if (level >= wanted)
		return now_ns;
	if (count > bucket->burst || bucket->rate == 0)
		return SPOKEI_PACE_NEVER;
	wait_ns = divide_up(wanted - level, bucket->rate);
	return wait_ns < SPOKEI_PACE_NEVER - from_ns ? from_ns + wait_ns : SPOKEI_PACE_NEVER;
}

/* Returns three fifths of a pause, rounded up: its growth. */
static uint64_t growth_of(uint64_t pause)
{
	return pause / 5 * 3 + (pause % 5 * 3 + 4) / 5;
}

uint64_t spokei_backoff_pause(const struct spokei_backoff *backoff, uint32_t attempt, uint64_t dice)
{
	uint64_t cap = backoff->cap_ns;
	uint64_t pause = backoff->first_ns < cap ? backoff->first_ns : cap;
	uint64_t fifth;

	SPOKE_ASSERT(cap <= UINT64_C(1) << 62);
	/* From 1 ns this takes fewer than 100 steps to any cap; 0 stays 0. */
	for (uint32_t i = 0; i < attempt && pause > 0 && pause < cap; i++) {
		uint64_t growth = growth_of(pause);

		pause = growth < cap - pause ? pause + growth : cap;
	}
	fifth = pause / 5;
	return pause - fifth + dice % (2 * fifth + 1);
}
