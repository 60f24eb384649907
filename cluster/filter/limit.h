/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a method there may be: at a time, and a second. Judges only: time comes in. A
 * consumer has one for each of its methods (actives, per_second), a provider for each that it
 * serves (executes, per_second). Embedded in its owner; on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_FILTER_LIMIT_H
#define SPOKEI_CLUSTER_FILTER_LIMIT_H

#include "core/base/pace.h"
#include "timer/base.h"

#include <spoke/value.h>

/* Zero-initialised it allows everything. */
struct spokei_limit {
	uint32_t active;     /* taken, and not given back */
	uint32_t active_max; /* 0: as many as there come */
	/* A rate of 0: no limit. It holds what comes in a second, so as much may come at once. */
	struct spokei_bucket bucket;
	bool is_set; /* it limits something */
};

/* Which of the two is reached. */
enum spokei_limit_reached {
	SPOKEI_LIMIT_FREE,
	SPOKEI_LIMIT_ACTIVE,
	SPOKEI_LIMIT_RATE,
};

/* 0: no limit. */
void spokei_limit_init(struct spokei_limit *limit, uint32_t active_max, uint32_t per_second);

/* The same of one that is in use: what was taken stays so. A rate that stays as it is does not
 * begin anew. */
void spokei_limit_change(struct spokei_limit *limit, uint32_t active_max, uint32_t per_second);

/* Takes one, if there is one: FREE, and it has to be given back once. What is refused costs
 * nothing. */
static inline enum spokei_limit_reached spokei_limit_take(struct spokei_limit *limit,
							  uint64_t now_ns)
{
	if (limit->active_max > 0 && limit->active >= limit->active_max)
		return SPOKEI_LIMIT_ACTIVE;
	if (limit->bucket.rate > 0 && !spokei_bucket_take(&limit->bucket, 1, now_ns))
		return SPOKEI_LIMIT_RATE;
	limit->active++;
	return SPOKEI_LIMIT_FREE;
}

/* One is over. */
static inline void spokei_limit_give(struct spokei_limit *limit)
{
	SPOKE_ASSERT(limit->active > 0);
	limit->active--;
}

/* A sentence for what is reached, as "echo: executes=4 reached". `active_name` is the
 * key that sets how many, and with ".tps" that of the rate; the name is escaped. Returns the length
 * of the text. */
size_t spokei_limit_print(const struct spokei_limit *limit, enum spokei_limit_reached reached,
			  const char *active_name, struct spoke_span method, char *text,
			  size_t size);

#endif
