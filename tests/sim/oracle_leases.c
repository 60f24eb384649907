/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks leases: what their users were told against what the store has run. The time that is left
 * of a lease is compared with the time to live of its key, by the store's own clock.
 */
#include "tests/sim/store.h"

#include "cluster/lease/parts.h"
#include "core/engine/engine.h"
#include "transport/wire/message.h"

#include <inttypes.h>
#include <string.h>

#define TICK_NS MS
#define SOON_NS (5 * TICK_NS)
#define ANSWER_NS (50 * MS) /* an ask is answered this long after its time at the latest */

static struct sim_world *world_of(const struct sim_worker *worker)
{
	return worker->by->process.world;
}

static unsigned consumer_of(const struct sim_worker *worker)
{
	return worker->by->process.number;
}

/* Returns whether the process was frozen in this turn: its clock is ahead. */
static bool has_stalled(const struct sim_process *process)
{
	return process->virt.held_until_ns > process->world->virt.now_ns;
}

static struct sim_grant *grant_of(const struct sim_worker *worker)
{
	return &world_of(worker)->store->grants[(worker->grant - 1) % SIM_GRANTS];
}

/* Returns whether the store may have lost the grant. */
static bool is_excused(const struct sim_worker *worker)
{
	const struct sim_grant *grant = grant_of(worker);

	return grant->lost || grant->failed_over;
}

/* --- S29, S31: the time that is left */

static void check_store(const struct sim_worker *worker, uint64_t left_ns)
{
	struct sim_world *world = world_of(worker);
	const struct sim_name *name = &world->store->names[worker->name];
	uint64_t ahead_ns = sim_now(&worker->by->process) - world->virt.now_ns;
	struct fakeredis_lock lock;

	if (!fakeredis_lock(world->store->primary, name->text, &lock))
		sim_violation(world, SIM_S29,
			      "consumer %u has %.3f ms left of name %u, which the store has not",
			      consumer_of(worker), (double)left_ns / 1e6, worker->name);
	if (strcmp(lock.holder, grant_of(worker)->holder) != 0)
		sim_violation(world, SIM_S29,
			      "consumer %u has %.3f ms left of name %u, of which the store has "
			      "another holder",
			      consumer_of(worker), (double)left_ns / 1e6, worker->name);
	if (left_ns + ahead_ns > (uint64_t)(lock.ttl_ms + 1) * MS)
		sim_violation(world, SIM_S31,
			      "consumer %u has %.3f ms left of name %u, the store %" PRId64 " ms",
			      consumer_of(worker), (double)(left_ns + ahead_ns) / 1e6, worker->name,
			      lock.ttl_ms);
}

static bool believes(const struct sim_worker *worker)
{
	return worker->holds && !has_stalled(&worker->by->process) && !is_excused(worker) &&
	       spoke_lease_left(worker->lease) > 0;
}

static void check_alone(const struct sim_worker *worker)
{
	struct sim_world *world = world_of(worker);

	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		for (unsigned j = 0; j < world->plan->leases.workers; j++) {
			const struct sim_worker *other = &world->consumers[i].workers[j];

			if (other != worker && other->name == worker->name && believes(other))
				sim_violation(world, SIM_S29,
					      "name %u is held by consumer %u and by consumer %u",
					      worker->name, consumer_of(worker),
					      consumer_of(other));
		}
	}
}

/* Returns the time left, checked. */
static uint64_t check_left(const struct sim_worker *worker)
{
	uint64_t left_ns = spoke_lease_left(worker->lease);

	if (left_ns == 0 || is_excused(worker))
		return left_ns;
	check_store(worker, left_ns);
	if (!has_stalled(&worker->by->process))
		check_alone(worker);
	return left_ns;
}

/* --- S32 */

/* Returns whether leases end for a reason that is not their time. */
static bool is_ending(const struct sim_process *process)
{
	return process->ending || process->draining ||
	       ((const struct sim_consumer *)process)->leases == NULL;
}

/* Returns whether a turn has begun at this time. What the simulator itself calls has its callbacks
 * before the next turn begins. */
static bool is_in_turn(const struct sim_process *process)
{
	return process->engine && process->virt.begun_ns == process->world->virt.now_ns;
}

void sim_leases_look(struct sim_process *process)
{
	struct sim_consumer *consumer = (struct sim_consumer *)process;

	if (process->world->store == NULL)
		return;
	for (unsigned i = 0; i < SIM_WORKERS; i++) {
		const struct sim_worker *worker = &consumer->workers[i];

		if (worker->holds && check_left(worker) == 0 && !has_stalled(process) &&
		    !is_ending(process) && is_in_turn(process))
			sim_violation(process->world, SIM_S32,
				      "consumer %u has a lease of name %u that is over, in a "
				      "callback",
				      process->number, worker->name);
	}
}

/* Notes the end of each lease. A turn may renew one, and the look after it may come when that is
 * over again. */
void sim_leases_turned(struct sim_consumer *consumer)
{
	for (unsigned i = 0; i < SIM_WORKERS; i++) {
		struct sim_worker *worker = &consumer->workers[i];
		uint64_t left_ns = worker->holds ? spoke_lease_left(worker->lease) : 0;

		if (left_ns > 0)
			worker->end_ns = world_of(worker)->virt.now_ns + left_ns;
	}
}

/* Checks between turns that a lease which is over was reported. */
static void check_soon(struct sim_worker *worker)
{
	struct sim_world *world = world_of(worker);
	uint64_t left_ns = check_left(worker);

	if (left_ns > 0)
		worker->end_ns = world->virt.now_ns + left_ns;
	/* A process that waits does not notice that the machine slept. */
	if (left_ns == 0 && worker->sleeps == world->sleeps && !is_ending(&worker->by->process) &&
	    worker->end_ns > 0 && world->virt.now_ns > worker->end_ns + SOON_NS)
		sim_violation(world, SIM_S32,
			      "the lease of name %u is over, and consumer %u does not know",
			      worker->name, consumer_of(worker));
}

/* --- S33 */

static void check_answered(const struct sim_worker *worker)
{
	const struct sim_process *process = &worker->by->process;
	struct sim_world *world = process->world;
	uint64_t until_ns = worker->asked_ns + worker->wait_ns + ANSWER_NS + process->held_ns -
			    worker->asked_held_ns;

	if (worker->wait_ns > 0 && worker->wait_ns != SPOKE_LEASE_FOREVER &&
	    world->virt.now_ns > until_ns)
		sim_violation(world, SIM_S33,
			      "the ask of consumer %u for name %u is not answered in its time",
			      process->number, worker->name);
}

void sim_leases_check(struct sim_world *world)
{
	if (world->store == NULL)
		return;
	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		struct sim_consumer *consumer = &world->consumers[i];

		if (consumer->process.engine == NULL || has_stalled(&consumer->process))
			continue;
		for (unsigned j = 0; j < SIM_WORKERS; j++) {
			if (consumer->workers[j].holds)
				check_soon(&consumer->workers[j]);
			if (consumer->workers[j].asks)
				check_answered(&consumer->workers[j]);
		}
	}
}

void sim_lease_asked(struct sim_worker *worker)
{
	struct sim_world *world = world_of(worker);

	worker->asked_ns = sim_now(&worker->by->process);
	worker->asked_held_ns = worker->by->process.held_ns;
	worker->sleeps = world->sleeps;
	worker->grant = 0;
	worker->end_ns = 0;
	worker->by->leases_seen[SIM_LEASES_ASKED]++;
	world->store->ask_count[consumer_of(worker) - SIM_PROVIDERS]++;
	world->counts.leases++;
}

/* Returns whether the answer is possible for such an ask. */
static bool is_possible(const struct sim_worker *worker, int error)
{
	const struct sim_world *world = world_of(worker);
	uint64_t passed_ns = sim_now(&worker->by->process) - worker->asked_ns;

	switch (error) {
	case SPOKE_OK:
		return !worker->cancelled;
	case SPOKE_ECANCELED:
		return worker->cancelled;
	case SPOKE_EBUSY:
	case SPOKE_EUNAVAILABLE:
		return worker->wait_ns == 0;
	case SPOKE_ETIMEOUT:
		return worker->wait_ns > 0 && worker->wait_ns != SPOKE_LEASE_FOREVER &&
		       (passed_ns >= worker->wait_ns || world->sleeps != worker->sleeps);
	case SPOKE_ECLOSED:
		return is_ending(&worker->by->process);
	case SPOKE_ENOMEM:
		return sim_plan_has(world->plan, SIM_MEMORY);
	default:
		return false;
	}
}

/* --- S30 */

/* Finds the grant of an answer. A store that has lost its numbers gives them again, to others. */
static void find_grant(struct sim_worker *worker, uint64_t fence)
{
	const struct spokei_lease *lease = spokei_slab_get(&worker->lease.leases->cells,
							   worker->lease.handle);
	char text[SPOKEI_LEASE_HOLDER];
	struct spoke_span holder = spokei_lease_holder(lease, text);
	struct sim_world *world = world_of(worker);
	struct sim_store *store = world->store;
	uint64_t first = store->grant_count > SIM_GRANTS ? store->grant_count - SIM_GRANTS : 0;

	for (uint64_t i = store->grant_count; i > first && worker->grant == 0; i--) {
		const struct sim_grant *grant = &store->grants[(i - 1) % SIM_GRANTS];

		if (grant->name == worker->name && grant->fence == fence &&
		    spokei_span_is(holder, grant->holder))
			worker->grant = i;
	}
	if (worker->grant == 0)
		sim_violation(world, SIM_S30,
			      "consumer %u holds name %u under number %" PRIu64
			      ", which the store has not given",
			      consumer_of(worker), worker->name, fence);
}

/* Returns whether another grant, of the primary before, has the same number: a worker does not say
 * which of the two it was told. */
static bool has_twin(const struct sim_worker *worker)
{
	const struct sim_store *store = world_of(worker)->store;
	uint64_t first = store->grant_count > SIM_GRANTS ? store->grant_count - SIM_GRANTS : 0;

	for (uint64_t i = worker->grant - 1; i > first; i--) {
		const struct sim_grant *grant = &store->grants[(i - 1) % SIM_GRANTS];

		if (grant->name == worker->name && grant->fence == worker->fence &&
		    grant->failed_over)
			return true;
	}
	return false;
}

/* Checks that numbers grow, apart from grants that may be lost. */
static void check_order(const struct sim_worker *worker)
{
	struct sim_world *world = world_of(worker);
	struct sim_name *name = &world->store->names[worker->name];

	if (grant_of(worker)->lost || grant_of(worker)->failed_over || has_twin(worker))
		return;
	if (worker->fence <= name->told)
		sim_violation(world, SIM_S30,
			      "consumer %u holds name %u under number %" PRIu64 " after %" PRIu64,
			      consumer_of(worker), worker->name, worker->fence, name->told);
	name->told = worker->fence;
}

void sim_lease_told(struct sim_worker *worker, const struct spoke_lease_answer *answer)
{
	struct sim_consumer *consumer = worker->by;
	struct sim_world *world = world_of(worker);

	if (!worker->asks || consumer->asking)
		sim_violation(world, SIM_S33, "the ask of consumer %u for name %u is answered %s",
			      consumer_of(worker), worker->name,
			      worker->asks ? "inside of it" : "twice");
	if (!is_possible(worker, answer->error))
		sim_violation(world, SIM_S33, "the ask of consumer %u for name %u ends with %s",
			      consumer_of(worker), worker->name, spoke_errname(answer->error));
	worker->asks = false;
	if (answer->error) {
		consumer->leases_seen[SIM_LEASES_FAILED]++;
		return;
	}
	consumer->leases_seen[SIM_LEASES_HELD]++;
	world->counts.held++;
	worker->holds = true;
	worker->fence = answer->fence;
	find_grant(worker, answer->fence);
	if (check_left(worker) == 0 && !has_stalled(&consumer->process))
		sim_violation(world, SIM_S32, "consumer %u is granted name %u when it is over",
			      consumer_of(worker), worker->name);
	check_order(worker);
}

void sim_lease_lost(struct sim_worker *worker, enum spoke_lease_loss why)
{
	struct sim_world *world = world_of(worker);
	const struct sim_name *name = &world->store->names[worker->name];
	struct fakeredis_lock lock;
	const char *wrong = NULL;

	if (!worker->holds)
		wrong = "although it does not hold it";
	else if (spoke_lease_left(worker->lease) > 0)
		wrong = "although time is left";
	else if (why == SPOKE_LEASE_CLOSED && !is_ending(&worker->by->process))
		wrong = "as closed, and is open";
	else if (why == SPOKE_LEASE_TAKEN && !is_excused(worker) &&
		 fakeredis_lock(world->store->primary, name->text, &lock) &&
		 strcmp(lock.holder, grant_of(worker)->holder) == 0)
		wrong = "as taken, and the store still has it";
	if (wrong)
		sim_violation(world, SIM_S33, "consumer %u loses name %u %s", consumer_of(worker),
			      worker->name, wrong);
	sim_lease_over(worker);
	worker->by->leases_seen[SIM_LEASES_LOST]++;
	world->counts.lost++;
}

void sim_lease_over(struct sim_worker *worker)
{
	worker->holds = false;
	grant_of(worker)->over = ++world_of(worker)->order;
}

void sim_lease_released(struct sim_worker *worker)
{
	if (!worker->releases)
		sim_violation(world_of(worker), SIM_S33,
			      "the end of the release of name %u by consumer %u is told twice",
			      worker->name, consumer_of(worker));
	worker->releases = false;
}

/* --- S34, S37: calls */

static const struct sim_grant *grant_of_call(const struct sim_call *call)
{
	return &call->by->process.world->store->grants[(call->grant - 1) % SIM_GRANTS];
}

void sim_lease_written(const struct sim_call *call, uint64_t begun, bool now)
{
	const struct sim_worker *worker = call->worker;
	struct sim_world *world = call->by->process.world;
	const struct sim_grant *grant = worker ? grant_of_call(call) : NULL;

	if (grant == NULL)
		return;
	if (grant->over && grant->over < begun)
		sim_violation(world, SIM_S34, "call %u is written after its lease of name %u ended",
			      (unsigned)sim_number(world, call), grant->name);
	if (grant->over == 0 && now && spoke_lease_left(worker->lease) == 0)
		sim_violation(world, SIM_S34,
			      "call %u is written with nothing left of its lease of name %u",
			      (unsigned)sim_number(world, call), grant->name);
}

void sim_lease_denied(const struct sim_call *call)
{
	struct sim_world *world = call->by->process.world;

	if (call->worker == NULL ||
	    (grant_of_call(call)->over == 0 && spoke_lease_left(call->worker->lease) > 0))
		sim_violation(world, SIM_S34, "call %u ends for a lease that is not over",
			      (unsigned)sim_number(world, call));
}

bool sim_lease_fenced(const struct sim_provider *provider, const struct sim_call *call)
{
	const struct sim_grant *grant = call->worker ? grant_of_call(call) : NULL;

	/* Flipped bits may have raised a number on its way. */
	return grant && provider->fence &&
	       (provider->seen[grant->name] > grant->fence || provider->process.world->tampered);
}

void sim_lease_read(struct sim_provider *provider, const struct sim_call *call)
{
	const struct sim_grant *grant = call->worker ? grant_of_call(call) : NULL;

	if (grant && provider->seen[grant->name] < grant->fence)
		provider->seen[grant->name] = grant->fence;
}

void sim_lease_runs(struct sim_provider *provider, const struct spoke_request *request)
{
	struct sim_world *world = provider->process.world;
	struct spoke_span name;
	uint64_t fence;
	unsigned which = 0;

	if (provider->fence == NULL || !spoke_request_fence(request, &name, &fence))
		return;
	while (which < world->plan->leases.names &&
	       (strlen(world->store->names[which].text) != name.len ||
		memcmp(world->store->names[which].text, name.data, name.len) != 0))
		which++;
	if (which == world->plan->leases.names)
		return; /* damaged on its way */
	if (fence < provider->fences[which])
		sim_violation(world, SIM_S37,
			      "provider %u runs number %" PRIu64 " of name %u after %" PRIu64,
			      provider->process.number, fence, which, provider->fences[which]);
	provider->fences[which] = fence;
}

void sim_leases_end(const struct sim_consumer *consumer)
{
	for (unsigned i = 0; i < SIM_WORKERS; i++) {
		const struct sim_worker *worker = &consumer->workers[i];

		if (worker->asks || worker->holds || worker->releases)
			sim_violation(
				consumer->process.world, SIM_S33,
				"consumer %u ends, and is not told how its %s of name %u ended",
				consumer->process.number,
				worker->asks    ? "ask"
				: worker->holds ? "lease"
						: "release",
				worker->name);
	}
}
