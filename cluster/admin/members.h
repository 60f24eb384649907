/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the consumers, providers, leases and gateways of an engine, in the order in which they were
 * made, and the next tickets of a consumer. Results are valid until the engine runs on; on its
 * thread.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_MEMBERS_H
#define SPOKEI_CLUSTER_ADMIN_MEMBERS_H

#include <stddef.h>
#include <stdint.h>

struct spoke_comet;
struct spoke_consumer;
struct spoke_engine;
struct spoke_leases;
struct spoke_method;
struct spoke_provider;
struct spokei_call_settings;
struct spokei_retry_state;

/* Returns the member after `before`, or the first one for NULL; NULL: there is none. */
const struct spoke_consumer *spokei_members_consumer(const struct spoke_engine *engine,
						     const struct spoke_consumer *before);
const struct spoke_provider *spokei_members_provider(const struct spoke_engine *engine,
						     const struct spoke_provider *before);
struct spoke_leases *spokei_members_leases(const struct spoke_engine *engine,
					   struct spoke_leases *before);
const struct spoke_comet *spokei_members_comet(const struct spoke_engine *engine,
					       const struct spoke_comet *before);

/* Returns the next method of a consumer after `before`, NULL: the first one, that has another
 * policy or balancer than the consumer; NULL: there is none among the methods that are searched. */
const struct spoke_method *spokei_members_method_apart(const struct spoke_consumer *consumer,
						       const struct spoke_method *before);

/* Returns the name of the balancer that picks for these settings; "": none does. */
const char *spokei_members_balancer(const struct spokei_call_settings *settings);

/* Returns the number of calls in flight, without those that wait as tickets. */
size_t spokei_members_calls(const struct spoke_consumer *consumer);

/* A ticket, and the time until its next attempt. */
struct spokei_due {
	const struct spokei_retry_state *retry;
	uint64_t in_ns; /* 0 while an attempt is under way, or cannot begin */
};

/*
 * Finds at most `max` tickets that are due next, the earliest first; returns their number. Only the
 * first few thousand waiting tickets are searched. They wait in the order in which their pauses
 * began, which is also the order in which the pauses end unless their lengths differ.
 */
size_t spokei_members_due(const struct spoke_consumer *consumer, struct spokei_due *dues,
			  size_t max);

#endif
