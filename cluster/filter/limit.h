/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits a method's concurrency and rate. Pure: the caller passes the time. A consumer has one for
 * each of its methods (actives, per_second), a provider for each method that it serves (executes,
 * per_second). Deadlines may limit the concurrency, too. Embedded in its owner; on the engine's
 * thread.
 */
#ifndef SPOKEI_CLUSTER_FILTER_LIMIT_H
#define SPOKEI_CLUSTER_FILTER_LIMIT_H

#include "core/base/pace.h"
#include "timer/base.h"

#include <spoke/value.h>

struct spokei_admission;

/* For the limit of concurrency: as many as can be answered in time. SPOKE_EXECUTES_AUTO. */
#define SPOKEI_LIMIT_AUTO 4294967294u

/* Zero-initialised: no limit. */
struct spokei_limit {
	bool is_set;         /* one of the two limits is not 0 */
	uint32_t active;     /* taken and not given back */
	uint32_t active_max; /* 0: no limit */
	/* A rate of 0: no limit. Holds the tokens of one second, so a burst may use all of them. */
	struct spokei_bucket bucket;
	struct spokei_admission *room;      /* memory for `admission`; NULL: there is none */
	struct spokei_admission *admission; /* decides by deadlines; NULL: none does */
};

/* Which limit is reached. */
enum spokei_limit_reached {
	SPOKEI_LIMIT_FREE,
	SPOKEI_LIMIT_ACTIVE,
	SPOKEI_LIMIT_RATE,
	SPOKEI_LIMIT_TIME, /* by the admission, which the owner asks */
};

/* Sets the limits; 0: no limit. */
void spokei_limit_init(struct spokei_limit *limit, uint32_t active_max, uint32_t per_second);

/* Changes the limits; with `room` that of concurrency may be AUTO. Taken ones stay taken. If the
 * rate does not change, its bucket is kept. */
void spokei_limit_change(struct spokei_limit *limit, uint32_t active_max, uint32_t per_second);

/* Takes one; if the result is FREE, the caller gives it back once. A refusal uses nothing up. */
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

/* Gives one back. */
static inline void spokei_limit_give(struct spokei_limit *limit)
{
	SPOKE_ASSERT(limit->active > 0);
	limit->active--;
}

/* Prints the limit that is reached, e.g. "echo: executes=4 reached". `active_name` is the key of
 * the concurrency limit; with ".tps" it is that of the rate. The name is escaped. Returns the
 * length of the text. */
size_t spokei_limit_print(const struct spokei_limit *limit, enum spokei_limit_reached reached,
			  const char *active_name, struct spoke_span method, char *text,
			  size_t size);

#endif
