/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the access lists of providers: handlers run no call of a consumer that is shut out, or
 * whose certificate is not accepted any more, and no other consumer is refused.
 */
#include "tests/sim/oracle.h"

/* After this time a connection that is not allowed serves nothing. */
#define DRAIN_NS (400 * MS)

static bool is_barred(const struct sim_call *call)
{
	const struct sim_process *by = &call->by->process;
	const struct sim_secure_plan *plan = &by->world->plan->secure;

	return plan->access != SIM_ACCESS_FREE && plan->barred & 1u << (by->number - SIM_PROVIDERS);
}

void sim_access_runs(const struct sim_provider *provider, const struct sim_call *call,
		     const struct sim_stream *stream)
{
	const struct sim_process *process = &provider->process;
	struct sim_world *world = process->world;
	uint64_t now_ns = sim_now(process) - process->held_ns; /* time while frozen is none */
	unsigned number = (unsigned)sim_number(world, call);

	/* The time while a process is frozen inside a turn is over at once. */
	if (process->virt.held_until_ns > world->virt.now_ns)
		return;
	if (is_barred(call) && provider->shut_ns && now_ns > provider->shut_ns + DRAIN_NS)
		sim_violation(world, SIM_S17,
			      "p%u runs call %u, %.3f ms after it has shut its consumer out",
			      process->number, number, (double)(now_ns - provider->shut_ns) / 1e6);
	if (stream && provider->renewed_ns && stream->ends[0].first_wrote_ns < provider->told_ns &&
	    now_ns > provider->renewed_ns + DRAIN_NS)
		sim_violation(world, SIM_S17,
			      "p%u runs call %u of connection %u, %.3f ms after it accepts its "
			      "certificate no more",
			      process->number, number, stream->number,
			      (double)(now_ns - provider->renewed_ns) / 1e6);
}

bool sim_access_may_refuse(const struct sim_call *call)
{
	const struct sim_world *world = call->by->process.world;

	if (!is_barred(call) || world->shut_ns == 0)
		return false;
	if (world->open_ns == 0 || call->begun_ns <= world->open_ns)
		return true;
	for (unsigned i = 0; i < world->plan->provider_count; i++)
		if (world->providers[i].shut_ns) /* it has not read the new lists */
			return true;
	return false;
}

void sim_access_refused(const struct sim_call *call)
{
	struct sim_world *world = call->by->process.world;

	world->counts.forbidden++;
	if (!world->tampered && !call->fenced && !sim_access_may_refuse(call))
		sim_violation(world, SIM_S17, "call %u is refused, but its consumer is let in",
			      (unsigned)sim_number(world, call));
}
