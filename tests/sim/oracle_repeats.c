/* SPDX-License-Identifier: Apache-2.0 */
/* Checks repeats of calls at providers that remember requests: who runs them, where they go, and
 * that nobody forgets what it has to know. */
#include "tests/sim/oracle.h"

#include "cluster/provider/parts.h"
#include "cluster/serve/dedupe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static unsigned number_of(const struct sim_world *world, const struct sim_call *call)
{
	return (unsigned)sim_number(world, call);
}

/* --- S56 */

static bool has_key(struct spoke_value map, const char *key)
{
	struct spoke_value value;

	return map.len > 0 && spoke_value_get(map, key, &value) == SPOKE_OK;
}

bool sim_has_id(const struct spoke_request *request)
{
	return has_key(spoke_request_attachments(request), "spoke.id");
}

/* Returns whether the provider has run the call with an id since it started. */
static bool has_run(const struct sim_provider *provider, const struct sim_call *call)
{
	return call->ran[provider->process.number] == provider->starts;
}

/* Returns whether it surely remembers that. */
static bool remembers(const struct sim_provider *provider, const struct sim_call *call)
{
	uint64_t ran_ns = call->ran_ns[provider->process.number];

	return has_run(provider, call) && provider->plan->dedupe_max == 0 &&
	       sim_now(&provider->process) < ran_ns + provider->plan->dedupe_ns;
}

/* Returns whether the request has a mark that tells of the run. It contains a time of the
 * provider's clock, in ms, before the attempt that may have run; earlier ones, made before the
 * consumer knew the instance, may be repeated by their policy. */
static bool is_covered(const struct sim_provider *provider, const struct sim_call *call,
		       struct spoke_value attachments)
{
	struct spoke_value value;
	struct spoke_span text;
	char digits[32] = "";
	const char *dot;

	if (!has_key(attachments, "spoke.repeat") ||
	    spoke_value_get(attachments, "spoke.repeat", &value) || spoke_value_str(value, &text) ||
	    text.len >= sizeof(digits))
		return false;
	memcpy(digits, text.data, text.len);
	dot = strchr(digits, '.');
	return dot && call->ran_ns[provider->process.number] / MS >= strtoull(dot + 1, NULL, 16);
}

bool sim_repeat_forgotten(const struct sim_provider *provider, const struct sim_call *call)
{
	return has_run(provider, call) && !remembers(provider, call);
}

void sim_repeat_runs(struct sim_provider *provider, struct sim_call *call,
		     const struct spoke_request *request)
{
	struct sim_world *world = provider->process.world;
	struct spoke_value attachments = spoke_request_attachments(request);

	if (provider->plan->dedupe_ns == 0 || !has_key(attachments, "spoke.id") || world->tampered)
		return;
	if (remembers(provider, call) ||
	    (has_run(provider, call) && is_covered(provider, call, attachments)))
		sim_violation(world, SIM_S56, "call %u is run by p%u again", number_of(world, call),
			      provider->process.number);
	call->ran[provider->process.number] = provider->starts;
	call->ran_ns[provider->process.number] = sim_now(&provider->process);
}

/* --- S57 */

/* Returns whether the consumer knew the instance by this connection. A request that is queued
 * already may be overtaken by new names. */
static bool was_named(const struct sim_stream *stream, uint32_t instance)
{
	for (uint32_t i = 0; i < stream->name_count && i < SIM_NAMED; i++)
		if (stream->names[i] == instance)
			return true;
	return false;
}

void sim_repeat_written(struct sim_call *call, const struct sim_stream *stream,
			const struct sim_frame *frame)
{
	struct sim_world *world = stream->world;
	bool twice = call->by->plan->calls.idempotent;
	bool refused = call->refusals > call->refusals_then;
	/* An attempt whose bytes were stuck is written after later ones. */
	bool late = call->attempts >> frame->attempt != 0 && frame->attempt > 0;

	if (!late)
		call->refusals_then = call->refusals;
	/* Not checked; but it takes the place of the last request all the same. */
	if (stream->tampered || world->tampered) {
		if (!frame->repeat && !late)
			call->instance = 0;
		return;
	}
	/* The journal may know an instance of an earlier connection. */
	if (frame->repeat && (twice || (call->lives == 0 && !was_named(stream, frame->instance))))
		sim_violation(world, SIM_S57,
			      "call %u is repeated at instance %" PRIx32
			      " with the mark of %" PRIx32,
			      number_of(world, call), stream->instance, frame->instance);
	if (!frame->repeat && call->instance && !twice && !refused && !late && sim_repeats(call))
		sim_violation(world, SIM_S57, "call %u is repeated without a mark",
			      number_of(world, call));
	if (!frame->repeat && !late)
		call->instance = frame->call_id && stream->named_order &&
						 call->order > stream->named_order
					 ? stream->instance
					 : 0;
}

/* A request that was half written is seen by nobody. */
bool sim_may_be_bound(const struct sim_call *call)
{
	const struct sim_plan *plan = call->by->process.world->plan;

	for (unsigned i = 0; i < plan->provider_count; i++)
		if (plan->providers[i].dedupe_ns)
			return !call->by->plan->calls.idempotent;
	return false;
}

/* --- S58 */

bool sim_repeat_answered(const struct sim_provider *provider, const struct sim_call *call,
			 const struct sim_ask *ask, const struct sim_frame *frame)
{
	struct sim_world *world = provider->process.world;

	if (provider->plan->dedupe_ns == 0)
		return false;
	if (world->tampered)
		return true;
	/* The first request may be taken in after its repeat, in the same turn. */
	if (frame->unknown && remembers(provider, call) &&
	    call->ran_ns[provider->process.number] < ask->clock_ns)
		sim_violation(world, SIM_S58, "p%u does not know call %u, which it has run",
			      provider->process.number, number_of(world, call));
	return frame->unknown || has_run(provider, call);
}

/* --- memory */

void sim_repeats_turned(struct sim_provider *provider)
{
	size_t remembered = provider->provider ? provider->provider->dedupe->table.ids.count : 0;

	if (remembered < provider->remembered)
		provider->process.idle_wakes = 0;
	provider->remembered = remembered;
}
