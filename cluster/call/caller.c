/* SPDX-License-Identifier: Apache-2.0 */
/* The set of a consumer's or provider's calls: its beginning, its limits and its end. */
#include "cluster/call/caller.h"

#include "cluster/call/call.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"

static uint32_t calls_max(uint32_t pending_max, uint32_t tickets)
{
	return pending_max < UINT32_MAX / 2 - tickets ? pending_max + tickets : UINT32_MAX / 2;
}

void spokei_caller_init(struct spokei_caller *caller, struct spokei_link *link, uint32_t tickets)
{
	struct spoke_engine *engine = link->engine;

	*caller = (struct spokei_caller){ .engine = engine, .link = link };
	spokei_list_init(&caller->methods);
	spokei_report_init(&caller->report, engine, tickets ? &caller->retry.tasks : NULL);
	spokei_slab_init_lasting(&caller->calls, engine->env, sizeof(struct spokei_call),
				 calls_max(link->limits.pending_max, tickets));
}

void spokei_caller_resize(struct spokei_caller *caller, uint32_t pending_max, uint32_t tickets)
{
	caller->calls.max = calls_max(pending_max, tickets);
}

void spokei_caller_fini(struct spokei_caller *caller)
{
	struct spokei_slab *calls = &caller->calls;

	spokei_task_drop(&caller->sweep);
	spokei_report_fini(&caller->report);
	for (uint32_t i = 0; i < calls->used; i++) {
		struct spokei_call *call = spokei_slab_at(calls, i);
		int status = spoke_wheel_detach(caller->engine->wheel,
						&call->attempt.pending.timer);

		SPOKE_ASSERT(status == SPOKE_WHEEL_OK);
	}
	spokei_slab_fini(calls);
	spokei_retry_blocks_fini(&caller->blocks, caller->engine->env);
}
