/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call, from spoke_call() to its callback. On the engine's thread.
 */
#ifndef SPOKEI_CALL_H
#define SPOKEI_CALL_H

#include "cluster/consumer_parts.h"

struct spokei_call {
	struct spokei_pending attempt;
	struct spoke_consumer *consumer;
	uint64_t handle;
	spoke_done done; /* may be NULL */
	void *arg;
	bool cancelled;            /* ends so, and soon */
	struct spokei_task cancel; /* on the engine's soon */
};

/* No call is under way any more: gives their memory back. */
void spokei_calls_fini(struct spoke_consumer *consumer);

#endif
