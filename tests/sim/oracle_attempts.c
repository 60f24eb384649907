/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the attempts of a call: their number, addresses, times and attachments. Attempts that were
 * not written are invisible to the oracle; they cannot have been run.
 */
#include "tests/sim/journals.h"

#include <spoke/stats.h>

#include <inttypes.h>

#define STEP_NS (100 * MS)
#define WINDOW 100u /* steps of 0.1 s: 10 s */
#define FREE_RETRIES 100u
#define CALLS_PER_RETRY 5u

static const struct sim_calls_plan *plan_of(const struct sim_call *call)
{
	return &call->by->plan->calls;
}

/* --- time */

uint64_t sim_answer_ns(const struct sim_call *call)
{
	uint64_t ticket_ns = sim_plan_ticket_ns(plan_of(call), call->timeout_ns);

	return plan_of(call)->policy == SIM_FAILBACK && ticket_ns < call->timeout_ns
		       ? ticket_ns
		       : call->timeout_ns;
}

/* --- S6 */

static unsigned writes_max(const struct sim_call *call)
{
	switch (plan_of(call)->policy) {
	case SIM_FAILOVER:
	case SIM_FAILBACK:
		return plan_of(call)->retries + 1;
	case SIM_FORKING:
		return plan_of(call)->forks;
	case SIM_BROADCAST:
		return call->by->process.world->plan->provider_count;
	case SIM_FAILFAST:
	case SIM_FAILSAFE:
	case SIM_AVAILABLE:
	case SIM_POLICIES:
		break;
	}
	return 1;
}

/* Returns whether a request that may have run must not be sent again to another place. */
static bool may_run_once(const struct sim_call *call)
{
	return !plan_of(call)->idempotent &&
	       (plan_of(call)->policy == SIM_FAILOVER || plan_of(call)->once);
}

/* Requests of earlier processes may run late. */
static unsigned runs_max(const struct sim_call *call)
{
	return may_run_once(call) && !call->lax
		       ? 1
		       : writes_max(call) * (call->lax ? 1u + call->lives : 1u);
}

static void check_writes(struct sim_world *world, const struct sim_call *call)
{
	unsigned number = (unsigned)sim_number(world, call);

	if (call->writes > writes_max(call) * (call->recounted ? 1u + call->lives : 1u))
		sim_violation(world, SIM_S6, "call %u is written %u times, limit %u", number,
			      call->writes, writes_max(call));
	/* A request that was written may have been run, unless it was refused. */
	if (call->writes > 1 && may_run_once(call) && !call->lax &&
	    call->refusals + 1 < call->writes - call->marked && !call->murky && !world->tampered) {
		sim_violation(world, plan_of(call)->once ? SIM_S64 : SIM_S6,
			      "call %u is written %u times and was refused %u times, but may run "
			      "only once",
			      number, call->writes, call->refusals);
	}
}

void sim_attempt_runs(const struct sim_provider *provider, struct sim_call *call)
{
	struct sim_world *world = call->by->process.world;

	/* The first request may arrive when its repeat is forgotten, after its connection has been
	 * given up. */
	if (call->marked > 0 && sim_repeat_forgotten(provider, call))
		return;
	/* Flipped bits may have turned an answer into a refusal. */
	if (++call->runs > runs_max(call) && (call->runs > writes_max(call) || !world->tampered))
		sim_violation(world, runs_max(call) == 1 && plan_of(call)->once ? SIM_S64 : SIM_S6,
			      "call %u is run %u times, limit %u",
			      (unsigned)sim_number(world, call), call->runs, runs_max(call));
}

/* --- S25 */

/* Returns whether there is a usable provider that has not received the call. */
static bool is_another_well(const struct sim_call *call)
{
	const struct sim_world *world = call->by->process.world;

	for (unsigned i = 0; i < world->plan->provider_count; i++) {
		const struct sim_stream *last = call->by->last[i];
		const struct sim_end *end = last ? &last->ends[0] : NULL;

		if (!(call->places & 1u << i) && end && end->fd >= 0 && end->told && !end->ended &&
		    !end->suspected && !end->on_probation && !end->read_only &&
		    !end->readonly_seen && end->stood_ns < sim_now(&call->by->process) &&
		    end->well_ns < sim_now(&call->by->process) && end->read_ns > end->since_ns)
			return true;
	}
	return false;
}

/*
 * Checks that a call is not written to the same provider again. Failover may do so only if no other
 * provider is usable. Forking and broadcast must never do so. Failback tickets may return to a
 * provider.
 */
static void check_place(struct sim_world *world, const struct sim_call *call, unsigned place)
{
	const struct sim_calls_plan *plan = plan_of(call);

	if (!(call->places & 1u << place) || plan->policy == SIM_FAILBACK ||
	    call->by->plan->registry)
		return;
	if (plan->policy == SIM_FAILOVER &&
	    (call->refused_ns != world->virt.now_ns || call->by->several ||
	     plan->eject_failures > 0 || plan->endpoint_actives > 0 || !is_another_well(call)))
		return;
	sim_violation(world, SIM_S25, "call %u is written to provider %u again",
		      (unsigned)sim_number(world, call), place);
}

/* --- S26 */

/* Checks that no other call has the id. Of two ids with the same place the older one is forgotten.
 */
static void check_unique(struct sim_world *world, const struct sim_call *call)
{
	uint32_t *place = &world->ids[call->id % SIM_IDS];
	const struct sim_call *other = *place ? &world->calls[*place - 1] : call;

	if (other != call && other->id == call->id && other->hash == call->hash)
		sim_violation(world, SIM_S26, "calls %u and %u have the same id", (unsigned)*place,
			      (unsigned)sim_number(world, call));
	*place = (uint32_t)sim_number(world, call);
}

static void check_id(struct sim_world *world, struct sim_call *call, const struct sim_frame *frame)
{
	if (frame->call_id == 0)
		return;
	if (call->id && (call->id != frame->call_id || call->hash != frame->call_hash))
		sim_violation(world, SIM_S26, "call %u carries a different id, %" PRIx64,
			      (unsigned)sim_number(world, call), frame->call_id);
	call->id = frame->call_id;
	call->hash = frame->call_hash;
	check_unique(world, call);
}

static void check_numbers(struct sim_world *world, struct sim_call *call,
			  const struct sim_frame *frame)
{
	unsigned number = (unsigned)sim_number(world, call);

	check_id(world, call, frame);
	if (plan_of(call)->policy != SIM_FAILBACK) {
		if (frame->attempt)
			sim_violation(world, SIM_S26, "call %u carries attempt number %u", number,
				      frame->attempt);
		return;
	}
	if (frame->call_id == 0)
		sim_violation(world, SIM_S26, "call %u carries no id", number);
	/* The numbers need not rise: an attempt that waits to be written may be overtaken when its
	 * timeout has expired. */
	if (frame->attempt == 0 || frame->attempt > plan_of(call)->retries + 1 ||
	    call->attempts & 1u << frame->attempt)
		sim_violation(world, SIM_S26,
			      "call %u carries attempt number %u of %u; numbers seen: %x", number,
			      frame->attempt, plan_of(call)->retries + 1, call->attempts);
	call->id = frame->call_id;
	call->attempts |= (uint8_t)(1u << frame->attempt);
}

/* --- S7 */

static void roll(struct sim_window *window, uint64_t step)
{
	if (step > window->step + SIM_BUCKETS)
		window->step = step - SIM_BUCKETS;
	while (window->step < step) {
		window->step++;
		window->calls[window->step % SIM_BUCKETS] = 0;
		window->retries[window->step % SIM_BUCKETS] = 0;
	}
}

static uint64_t sum(const uint32_t *of, uint64_t step, unsigned count)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < count && i <= step; i++)
		all += of[(step - i) % SIM_BUCKETS];
	return all;
}

/* Returns how many further attempts the engine has counted. */
static uint64_t further_attempts(const struct spoke_engine *engine)
{
	return spoke_stat_get(engine, SPOKE_STAT_RETRIES) +
	       spoke_stat_get(engine, SPOKE_STAT_HEDGES);
}

void sim_window_look(struct sim_consumer *consumer)
{
	struct sim_process *process = &consumer->process;
	struct sim_window *window = &consumer->window;
	uint64_t retries = further_attempts(process->engine);
	uint64_t step = spoke_engine_now(process->engine) / STEP_NS;
	uint64_t of_retries;
	uint64_t of_calls;

	if (retries == window->retries_seen)
		return;
	roll(window, step);
	window->retries[step % SIM_BUCKETS] += (uint32_t)(retries - window->retries_seen);
	process->world->counts.retries += retries - window->retries_seen;
	window->retries_seen = retries;
	of_retries = sum(window->retries, step, WINDOW);
	of_calls = sum(window->calls, window->step, SIM_BUCKETS - 1);
	if (of_retries * CALLS_PER_RETRY > of_calls + FREE_RETRIES * CALLS_PER_RETRY)
		sim_violation(process->world, SIM_S7,
			      "consumer %u made %llu further attempts for %llu calls in 10 s",
			      process->number, (unsigned long long)of_retries,
			      (unsigned long long)of_calls);
}

void sim_call_taken(struct sim_call *call)
{
	struct sim_consumer *consumer = call->by;
	struct sim_window *window = &consumer->window;
	uint64_t step = call->begun_ns / STEP_NS;

	roll(window, step);
	window->calls[window->step % SIM_BUCKETS]++;
	consumer->made++;
	consumer->waits++;
	consumer->process.world->counts.calls++;
}

/* Checks that the engine has counted each request that repeats a call. */
static void count_repeat(struct sim_call *call)
{
	struct sim_consumer *consumer = call->by;
	struct sim_world *world = consumer->process.world;

	if (call->writes == 1 || !sim_repeats(call))
		return;
	if (++consumer->repeats > further_attempts(consumer->process.engine))
		sim_violation(world, SIM_S7, "call %u is written again without being counted",
			      (unsigned)sim_number(world, call));
}

/* --- all checks of a written request */

void sim_attempt_written(struct sim_call *call, struct sim_stream *stream,
			 const struct sim_frame *frame)
{
	struct sim_world *world = stream->world;

	call->writes++;
	if (frame->repeat)
		call->marked++;
	check_writes(world, call);
	sim_book_written(call);
	sim_repeat_written(call, stream, frame);
	if (!frame->repeat)
		check_place(world, call, stream->place);
	check_numbers(world, call, frame);
	if (call->by->process.engine)
		count_repeat(call);
	call->places |= (uint8_t)(1u << stream->place);
	call->stream = stream;
	call->written_ns = world->virt.now_ns;
	call->answered = false;
}
