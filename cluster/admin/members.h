/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumers and the providers of an engine, for whoever shows them: one after the other, as
 * they were made. Good until the engine does anything more; on its thread.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_MEMBERS_H
#define SPOKEI_CLUSTER_ADMIN_MEMBERS_H

#include "cluster/consumer/parts.h"
#include "cluster/provider/provider.h"

/* The one behind `before`, or the first, for NULL; NULL: there is none. */
const struct spoke_consumer *spokei_members_consumer(const struct spoke_engine *engine,
						     const struct spoke_consumer *before);
const struct spoke_provider *spokei_members_provider(const struct spoke_engine *engine,
						     const struct spoke_provider *before);

/* Calls that are under way, without those that wait as tickets. */
static inline size_t spokei_members_calls(const struct spoke_consumer *consumer)
{
	size_t calls = consumer->caller.calls.count;
	size_t tickets = consumer->caller.retry.tasks;

	return calls > tickets ? calls - tickets : 0;
}

/* The next ticket that a consumer has, as far as it was looked for. */
struct spokei_due {
	const struct spokei_retry_state *retry;
	uint64_t in_ns; /* until its next attempt; 0 while one is under way, or cannot begin */
};

/*
 * The tickets that are due next, the first one first, at most `max`. Of those that wait only the
 * first few thousand are looked at: they wait in the order in which their pauses began, which is
 * that in which they end, unless the pauses differ. Returns how many it found.
 */
size_t spokei_members_due(const struct spoke_consumer *consumer, struct spokei_due *dues,
			  size_t max);

#endif
