/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks recovery after the faults: all connections are established again, new calls succeed, and
 * all processes end in order.
 */
#include "tests/sim/journals.h"

#include "core/engine/engine.h"

#define BACKOFF_CAP_NS (30 * SECOND)
#define CONNECT_NS (5 * SECOND)
#define TICK_NS MS
#define LINK_CAPACITY 65536u /* of a link without a limit of its own */

void sim_drain_begin(struct sim_process *process, uint64_t timeout_ns)
{
	struct sim_world *world = process->world;

	if (process->engine == NULL || process->draining || process->closed ||
	    spoke_engine_drain(process->engine, timeout_ns))
		return;
	sim_note(world, "process % drains for % us", process->number, timeout_ns / 1000, 0, 0);
	process->draining = true;
	process->drain_held_ns = process->held_ns;
	process->drain_end_ns = world->virt.now_ns + timeout_ns;
}

void sim_drain_look(struct sim_process *process)
{
	struct sim_world *world = process->world;
	uint64_t late_ns = process->held_ns - process->drain_held_ns;

	if (process->engine->drained) {
		uint64_t back_ns = process->back_ns;

		sim_note(world, "process % is drained", process->number, 0, 0, 0);
		sim_process_end(process);
		process->back_ns = back_ns;
	} else if (world->virt.now_ns >
		   process->drain_end_ns + late_ns + 2 * TICK_NS + sim_journal_slow_ns(process)) {
		sim_violation(world, SIM_L6, "process %u is not drained after its timeout",
			      process->number);
	}
}

/* --- recovery of all connections */

/* Returns whether the consumer must recover. A consumer of MessagePack-RPC sends nothing while it
 * has no calls, so providers with heartbeats close its connections. */
static bool counts(const struct sim_world *world, const struct sim_consumer *consumer)
{
	bool mute_closed = false;

	for (unsigned i = 0; i < world->plan->provider_count; i++)
		mute_closed |= world->plan->providers[i].heartbeat_ns != SPOKE_OFF;
	return !consumer->plan->mprpc || !mute_closed;
}

static bool is_whole(struct sim_world *world)
{
	for (unsigned i = 0; i < SIM_PROCESSES; i++)
		if (sim_process_at(world, i)->virt.held_until_ns > world->virt.now_ns)
			return false;
	for (unsigned i = 0; i < world->plan->provider_count; i++)
		if (world->providers[i].provider == NULL || world->providers[i].process.draining ||
		    world->providers[i].process.closed ||
		    !sim_provider_is_online(&world->providers[i]))
			return false;
	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		const struct sim_consumer *consumer = &world->consumers[i];

		if (counts(world, consumer) &&
		    (consumer->consumer == NULL || consumer->process.draining ||
		     !sim_lists_all(consumer)))
			return false;
	}
	return true;
}

/* Returns the longest time in which a heartbeat of this world detects a failure. */
static uint64_t notice_ns(const struct sim_world *world)
{
	uint64_t longest_ns = 0;

	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		uint64_t interval_ns =
			i < SIM_PROVIDERS ? world->plan->providers[i].heartbeat_ns
					  : world->plan->consumers[i - SIM_PROVIDERS].heartbeat_ns;

		if (interval_ns != SPOKE_OFF && interval_ns > longest_ns)
			longest_ns = interval_ns;
	}
	/* Bytes sent while the latency was high may still be in flight, in both directions. */
	return 5 * longest_ns + 8 * world->plan->interval_ns;
}

static unsigned ready(const struct sim_world *world)
{
	unsigned count = 0;

	for (unsigned i = 0; i < world->plan->consumer_count; i++)
		if (world->consumers[i].consumer)
			count += (unsigned)spoke_consumer_ready(world->consumers[i].consumer);
	return count;
}

/* Returns the longest time until the registry has listed a provider and notified the consumers.
 * Each request may have failed a moment ago. */
static uint64_t relist_ns(const struct sim_plan *plan)
{
	return 2 * (plan->registry_retry_ns * 6 / 5 + plan->registry_ns) +
	       plan->registry_session_ns + SECOND;
}

static void check_lists(const struct sim_world *world)
{
	for (unsigned i = 0; i < world->plan->consumer_count; i++)
		if (world->consumers[i].consumer && counts(world, &world->consumers[i]))
			sim_lists_whole(&world->consumers[i]);
}

static void wait_until_whole(struct sim_world *world)
{
	uint64_t until_ns = world->virt.now_ns + BACKOFF_CAP_NS * 6 / 5 + CONNECT_NS + SECOND +
			    notice_ns(world) + relist_ns(world->plan);

	while (!is_whole(world)) {
		if (world->virt.now_ns >= until_ns)
			check_lists(world);
		if (world->virt.now_ns >= until_ns)
			sim_violation(world, SIM_L1, "only %u of %u connections are ready again",
				      ready(world),
				      world->plan->provider_count * world->plan->consumer_count);
		sim_go_on(world, world->virt.now_ns + 5 * MS);
		sim_provider_answer_due(world, true);
	}
}

static unsigned waiting(const struct sim_world *world)
{
	unsigned waits = 0;

	for (unsigned i = 0; i < world->plan->consumer_count; i++)
		waits += world->consumers[i].waits + world->consumers[i].ticket_count +
			 sim_book_restored(&world->consumers[i]);
	return waits;
}

static void wait_for_calls(struct sim_world *world, uint64_t until_ns)
{
	while (waiting(world) > 0 && world->virt.now_ns < until_ns) {
		sim_go_on(world, world->virt.now_ns + 5 * MS);
		sim_provider_answer_due(world, true);
	}
}

/* Waits until the world has recovered. A connection that was cut during the faults may still be
 * lost after them; then the wait is repeated, once. */
static void settle(struct sim_world *world)
{
	wait_until_whole(world);
	wait_for_calls(world, world->virt.now_ns + 30 * SECOND);
	sim_go_on(world, world->virt.now_ns + notice_ns(world) + 10 * MS);
	/* The notice that a peer has closed may still be queued behind slow bytes. */
	sim_fault_streams_end(world);
	sim_go_on(world, world->virt.now_ns + 50 * MS);
	wait_until_whole(world);
	sim_provider_answer_due(world, true);
	sim_go_on(world, world->virt.now_ns + 100 * MS);
}

/* Makes each consumer call as often as there are providers. */
static void call_all(struct sim_world *world)
{
	for (unsigned k = 0; k < world->plan->provider_count; k++) {
		for (unsigned i = 0; i < world->plan->consumer_count; i++)
			if (counts(world, &world->consumers[i]))
				sim_call(&world->consumers[i], true);
		wait_for_calls(world, world->virt.now_ns + 20 * SECOND);
		if (waiting(world) > 0)
			sim_violation(world, world->pieces ? SIM_L5 : SIM_L1, "calls do not end");
	}
}

/* Returns the longest time for which a link of this world is busy with the bytes that it has taken.
 */
static uint64_t busy_ns(const struct spokei_vnet_link *link)
{
	uint64_t bytes = link->capacity ? link->capacity : LINK_CAPACITY;

	return link->bytes_per_s ? bytes * SECOND / link->bytes_per_s : 0;
}

/* The bytes that a slow link took during the faults arrive at its old pace, and a small ring in
 * shared memory passes few bytes with each bell. Answers that wait behind them may follow a little
 * later. */
static void wait_for_answers(struct sim_world *world)
{
	uint64_t busy = busy_ns(&world->plan->link);
	bool slow = busy > 0 || world->plan->shares;
	uint64_t until_ns = world->virt.now_ns + busy + (slow ? 2 * SECOND : 0);

	while (sim_asks_owed(world) && world->virt.now_ns < until_ns) {
		sim_go_on(world, world->virt.now_ns + 5 * MS);
		sim_provider_answer_due(world, true);
	}
}

/* Repeats the calls while reads and writes are split into small pieces. */
static void call_in_pieces(struct sim_world *world)
{
	const struct spokei_vnet_link link = {
		.latency_ns = world->plan->link.latency_ns,
		.write_max = (uint32_t)sim_magnitude(&world->dice, 1, 16),
		.read_max = (uint32_t)sim_magnitude(&world->dice, 1, 16),
	};

	world->pieces = true;
	spokei_vnet_set_all(world->virt.net, &link);
	call_all(world);
}

static bool is_told(const struct sim_world *world)
{
	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		const struct sim_consumer *consumer = &world->consumers[i];

		if (consumer->plan->registry && consumer->consumer && !sim_lists_living(consumer))
			return false;
	}
	return true;
}

/* Stops a provider for good, by a drain or a kill. Consumers of the registry must notice at the
 * latest when the provider's session has expired. */
static void retire(struct sim_world *world)
{
	unsigned which = (unsigned)(sim_throw(&world->dice) % world->plan->provider_count);
	struct sim_process *process = &world->providers[which].process;
	uint64_t until_ns = world->virt.now_ns + relist_ns(world->plan) + 2 * SECOND;

	sim_note(world, "p% is stopped for good", which, 0, 0, 0);
	world->retired |= 1u << which;
	if (sim_chance(&world->dice, 500))
		sim_process_end(process);
	else
		sim_drain_begin(process, SECOND);
	while (!is_told(world) && world->virt.now_ns < until_ns)
		sim_go_on(world, world->virt.now_ns + 5 * MS);
	for (unsigned i = 0; i < world->plan->consumer_count; i++)
		if (world->consumers[i].plan->registry && world->consumers[i].consumer)
			sim_lists_whole(&world->consumers[i]);
}

void sim_heal(struct sim_world *world)
{
	sim_note(world, "all faults end", 0, 0, 0, 0);
	sim_faults_end(world);
	if (world->plan->steady)
		return;
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_process *process = sim_process_at(world, i);

		if (process->world && process->engine == NULL && process->back_ns == 0)
			process->back_ns = world->virt.now_ns;
	}
	settle(world);
	call_all(world);
	sim_workers_heal(world);
	wait_for_answers(world);
	sim_asks_check(world);
	if (sim_chance(&world->dice, 200))
		call_in_pieces(world);
	else if (world->plan->provider_count > 1 && sim_chance(&world->dice, 300))
		retire(world);
}

/* --- end of the world */

static void end_one(struct sim_process *process)
{
	struct sim_world *world = process->world;

	process->back_ns = 0;
	if (process->engine == NULL)
		return;
	switch (sim_throw(&world->dice) % 3) {
	case 0:
		sim_drain_begin(process, sim_magnitude(&world->dice, MS, 2 * SECOND));
		break;
	case 1:
		if (!sim_is_provider(process))
			sim_consumer_free((struct sim_consumer *)process);
		process->back_ns = 0;
		break;
	default:
		sim_process_end(process);
	}
}

/* Ends the processes one after another, each in a random way; the others continue meanwhile. */
void sim_end(struct sim_world *world)
{
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_process *process = sim_process_at(world, i);

		if (process->world == NULL)
			continue;
		end_one(process);
		sim_go_on(world, world->virt.now_ns + sim_magnitude(&world->dice, MS, 20 * MS));
	}
	sim_go_on(world, world->virt.now_ns + 10 * MS);
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_process *process = sim_process_at(world, i);

		while (process->engine && process->draining)
			sim_go_on(world, world->virt.now_ns + 10 * MS);
	}
	for (unsigned i = 0; i < SIM_PROCESSES; i++) {
		struct sim_process *process = sim_process_at(world, i);

		if (process->world && process->engine)
			sim_process_end(process);
	}
	sim_calls_check(world, true);
}
