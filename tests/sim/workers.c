/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of simulated consumers: they ask for leases, hold them, act and give them back. */
#include "tests/sim/store.h"

#define RECOVERY_NS (40 * SECOND) /* until the store is connected, and each lease was had */

static const char *const names[SIM_NAMES] = { "reports", "a {tag} b", "mail" };

static void act_later(struct sim_worker *worker);

static void note(const struct sim_worker *worker, const char *text, uint64_t number)
{
	sim_note(worker->by->process.world, text, worker->by->process.number, worker->name, number,
		 0);
}

/* --- callbacks */

/* What any callback may do. */
static void play(struct sim_worker *worker)
{
	struct sim_consumer *consumer = worker->by;
	struct sim_world *world = consumer->process.world;

	sim_fault_stall(&consumer->process);
	if (world->healing || consumer->leases == NULL)
		return;
	if (consumer->plan->frees_inside && sim_chance(&world->dice, 5))
		sim_workers_free(consumer);
	else if (sim_chance(&world->dice, 50) && consumer->consumer)
		sim_call(consumer, false);
}

static void released(void *arg, int error)
{
	struct sim_worker *worker = arg;

	worker->by->process.progress++;
	note(worker, "c%: the release of name % ends: %e", (uint64_t)(unsigned)error);
	sim_lease_released(worker);
	sim_leases_look(&worker->by->process);
	play(worker);
}

static void release(struct sim_worker *worker)
{
	struct sim_consumer *consumer = worker->by;
	struct sim_world *world = consumer->process.world;
	bool told = sim_chance(&world->dice, 500);
	bool cancels = worker->asks;
	int error;

	/* Set before, to see a callback from inside. */
	worker->cancelled = cancels;
	error = spoke_lease_release(worker->lease, told ? released : NULL, worker);
	note(worker, cancels ? "c% cancels its ask for name %: %e" : "c% releases name %: %e",
	     (uint64_t)(unsigned)error);
	if (error) {
		worker->cancelled = false;
		/* Over already, and not reported yet: the clock may have passed its end. */
		if (!consumer->process.draining && consumer->leases &&
		    consumer->process.virt.held_until_ns <= world->virt.now_ns)
			sim_violation(world, SIM_S33, "consumer %u cannot release name %u: %s",
				      consumer->process.number, worker->name,
				      spoke_strerror(error));
		return;
	}
	worker->releases = told;
	if (!cancels) {
		sim_lease_over(worker);
		consumer->leases_seen[SIM_LEASES_RELEASED]++;
	}
	if (spoke_lease_left(worker->lease) > 0)
		sim_violation(world, SIM_S33, "time is left of name %u, which consumer %u released",
			      worker->name, consumer->process.number);
}

static void told(void *arg, struct spoke_lease lease, const struct spoke_lease_answer *answer)
{
	struct sim_worker *worker = arg;

	worker->by->process.progress++;
	note(worker,
	     answer->error ? "c% does not get name %: %e" : "c% holds name % under number %",
	     answer->error ? (uint64_t)(unsigned)answer->error : answer->fence);
	worker->lease = lease;
	sim_lease_told(worker, answer);
	sim_leases_look(&worker->by->process);
	play(worker);
	if (worker->holds && worker->by->leases &&
	    sim_chance(&worker->by->process.world->dice, 200))
		release(worker);
}

static void lost(void *arg, struct spoke_lease lease, enum spoke_lease_loss why)
{
	struct sim_worker *worker = arg;

	(void)lease;
	worker->by->process.progress++;
	note(worker, "c% loses name % for reason %", (uint64_t)why);
	sim_lease_lost(worker, why);
	play(worker);
}

/* --- what they do */

static void ask(struct sim_worker *worker, uint64_t wait_ns, bool plain)
{
	struct sim_consumer *consumer = worker->by;
	struct sim_world *world = consumer->process.world;
	const struct sim_leases_plan *plan = &world->plan->leases;
	struct spoke_lease_options options = { .wait_ns = wait_ns, .lost = lost, .arg = worker };
	int error;

	worker->name = (unsigned)(sim_throw(&world->dice) % plan->names);
	worker->wait_ns = wait_ns;
	worker->cancelled = false;
	worker->fixed = !plain && sim_chance(&world->dice, 100);
	options.fixed = worker->fixed;
	worker->asks = true;
	consumer->asking = true;
	error = spoke_lease_ask(consumer->leases, names[worker->name], &options, told,
				&worker->lease);
	consumer->asking = false;
	note(worker, "c% asks for name %: %e", (uint64_t)(unsigned)error);
	if (error) {
		worker->asks = false;
		return;
	}
	sim_lease_asked(worker);
}

static uint64_t draw_wait(struct sim_world *world)
{
	if (sim_chance(&world->dice, 300))
		return 0;
	if (sim_chance(&world->dice, 300))
		return SPOKE_LEASE_FOREVER;
	return sim_magnitude(&world->dice, MS, 4 * world->plan->leases.ttl_ns);
}

static void act(struct sim_worker *worker)
{
	struct sim_consumer *consumer = worker->by;
	struct sim_world *world = consumer->process.world;

	if (consumer->leases == NULL || consumer->process.draining)
		return;
	if (worker->holds) {
		if (consumer->consumer && sim_chance(&world->dice, 500))
			sim_call(consumer, false);
		if (worker->holds && consumer->leases && sim_chance(&world->dice, 300))
			release(worker);
	} else if (worker->asks && !worker->cancelled) {
		if (sim_chance(&world->dice, 100))
			release(worker);
	} else if (!worker->asks && !worker->releases) {
		ask(worker, draw_wait(world), false);
	}
}

static void act_due(struct spoke_alarm *alarm)
{
	struct sim_worker *worker = spoke_container_of(alarm, struct sim_worker, alarm);

	worker->by->process.progress++;
	sim_leases_look(&worker->by->process);
	if (worker->by->process.world->healing)
		return;
	act(worker);
	if (worker->by->leases && worker->by->process.engine)
		act_later(worker);
}

/* Without memory for a timer the worker rests until its consumer starts again. */
static void act_later(struct sim_worker *worker)
{
	struct sim_world *world = worker->by->process.world;

	(void)!spoke_alarm_after(worker->by->process.engine, &worker->alarm,
				 sim_magnitude(&world->dice, MS, world->plan->leases.ttl_ns),
				 act_due);
}

/* --- life */

static bool make(struct sim_consumer *consumer)
{
	const struct sim_world *world = consumer->process.world;
	const struct sim_leases_plan *plan = &world->plan->leases;
	const struct spoke_leases_options options = {
		.store = plan->sentinel ? "sentinel://127.0.0.1:26379/sim"
					: "redis://127.0.0.1:6379",
		.ttl_ns = plan->ttl_ns,
		.guard_ns = plan->guard_ns,
	};

	consumer->clients++;
	return spoke_leases_new(consumer->process.engine, &options, &consumer->leases) == 0;
}

void sim_workers_reset(struct sim_consumer *consumer)
{
	consumer->leases = NULL;
	for (unsigned i = 0; i < SIM_WORKERS; i++)
		consumer->workers[i] = (struct sim_worker){ .by = consumer, .number = i };
	for (unsigned i = 0; i < SIM_LEASE_COUNTS; i++)
		consumer->leases_seen[i] = 0;
}

bool sim_workers_start(struct sim_consumer *consumer)
{
	const struct sim_world *world = consumer->process.world;

	if (world->store == NULL)
		return true;
	if (!make(consumer))
		return false;
	for (unsigned i = 0; i < world->plan->leases.workers; i++)
		act_later(&consumer->workers[i]);
	return true;
}

void sim_workers_free(struct sim_consumer *consumer)
{
	struct spoke_leases *freed = consumer->leases;

	if (freed == NULL)
		return;
	sim_note(consumer->process.world, "c% frees its leases", consumer->process.number, 0, 0, 0);
	consumer->leases = NULL;
	spoke_leases_free(freed);
	for (unsigned i = 0; i < SIM_WORKERS; i++)
		(void)spoke_alarm_cancel(&consumer->workers[i].alarm);
}

struct sim_worker *sim_workers_holder(struct sim_consumer *consumer)
{
	for (unsigned i = 0; i < SIM_WORKERS; i++)
		if (consumer->workers[i].holds)
			return &consumer->workers[i];
	return NULL;
}

/* --- recovery */

static bool is_resting(const struct sim_consumer *consumer)
{
	for (unsigned i = 0; i < SIM_WORKERS; i++)
		if (consumer->workers[i].asks || consumer->workers[i].holds ||
		    consumer->workers[i].releases)
			return false;
	return true;
}

/* Gives back what the workers hold. */
static void give_back(struct sim_world *world)
{
	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		struct sim_consumer *consumer = &world->consumers[i];

		for (unsigned j = 0; j < SIM_WORKERS && consumer->leases; j++) {
			struct sim_worker *worker = &consumer->workers[j];

			if (worker->holds &&
			    consumer->process.virt.held_until_ns <= world->virt.now_ns)
				release(worker);
		}
	}
}

static unsigned restless(const struct sim_world *world)
{
	unsigned count = 0;

	for (unsigned i = 0; i < world->plan->consumer_count; i++)
		count += !is_resting(&world->consumers[i]);
	return count;
}

/* Waits until all rest. What is granted meanwhile is given back. */
static void wait_until_resting(struct sim_world *world)
{
	uint64_t until_ns = world->virt.now_ns + RECOVERY_NS;

	while (restless(world) > 0) {
		if (world->virt.now_ns >= until_ns)
			sim_violation(world, SIM_L8, "the workers of %u consumers still wait",
				      restless(world));
		sim_go_on(world, world->virt.now_ns + 5 * MS);
		give_back(world);
	}
}

void sim_workers_heal(struct sim_world *world)
{
	uint64_t held = world->counts.held;
	unsigned asked = 0;

	if (world->store == NULL)
		return;
	give_back(world);
	wait_until_resting(world);
	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		struct sim_consumer *consumer = &world->consumers[i];

		if (consumer->leases == NULL || consumer->process.draining)
			continue;
		ask(&consumer->workers[0], RECOVERY_NS, true);
		asked += consumer->workers[0].asks;
	}
	held = world->counts.held;
	wait_until_resting(world);
	if (world->counts.held - held < asked)
		sim_violation(world, SIM_L8, "only %u of %u asks were granted",
			      (unsigned)(world->counts.held - held), asked);
}
