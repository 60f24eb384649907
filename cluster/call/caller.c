/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/call/caller.h"

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

static bool is_under_way(const struct spokei_slab *calls, const struct spokei_call *call)
{
	return spokei_slab_get(calls, call->handle) == call && !(call->retry && call->retry->told);
}

void spokei_caller_limit(struct spoke_method *method, uint32_t active_max, uint32_t per_second)
{
	const struct spokei_slab *calls = &method->caller->calls;
	bool was_set = method->limit.is_set;

	spokei_limit_change(&method->limit, active_max, per_second);
	if (was_set || !method->limit.is_set)
		return;
	for (uint32_t i = 0; i < calls->used; i++) {
		struct spokei_call *call = spokei_slab_at(calls, i);

		if (call->method != method || call->limited || !is_under_way(calls, call))
			continue;
		call->limited = true;
		method->limit.active++;
	}
}

static void free_methods(struct spokei_caller *caller)
{
	while (!spokei_list_empty(&caller->methods)) {
		struct spoke_method *method = spoke_container_of(caller->methods.next,
								 struct spoke_method, node);

		spokei_list_remove(&method->node);
		spokei_buffer_fini(&method->prefix.bytes);
		spokei_buffer_fini(&method->which);
		spokei_balancer_state_fini(&method->own_balancer_state, caller->engine->env);
		spokei_free(caller->engine->env, method, 1, method->size);
	}
}

void spokei_caller_fini(struct spokei_caller *caller)
{
	struct spokei_slab *calls = &caller->calls;

	spokei_task_drop(&caller->sweep);
	spokei_report_fini(&caller->report);
	free_methods(caller);
	for (uint32_t i = 0; i < calls->used; i++) {
		struct spokei_call *call = spokei_slab_at(calls, i);
		int status = spoke_wheel_detach(caller->engine->wheel,
						&call->attempt.pending.timer);

		SPOKE_ASSERT(status == SPOKE_WHEEL_OK);
	}
	spokei_slab_fini(calls);
	spokei_retry_state_blocks_fini(&caller->blocks, caller->engine->env);
}
