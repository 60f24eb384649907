/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and cancels the calls of the simulated consumers and handles their results. */
#include "tests/sim/store.h"

#define LEASED_PERMILLE 400u /* of the calls of a consumer that holds a lease */

static void done(void *arg, const struct spoke_result *result)
{
	struct sim_call *call = arg;
	struct sim_consumer *consumer = call->by;
	struct sim_world *world = consumer->process.world;

	if (consumer->process.dying) {
		sim_call_died(call);
		return;
	}
	consumer->process.progress++;
	sim_note(world, "c% call % ends: %e", consumer->process.number, sim_number(world, call),
		 (uint64_t)(unsigned)result->error, 0);
	sim_call_ended(call, result);
	sim_leases_look(&consumer->process);
	if (result->error == SPOKE_EDEFERRED)
		sim_ticket_begin(call);
	sim_fault_stall(&consumer->process);
	if (world->healing || consumer->consumer == NULL)
		return;
	if (consumer->plan->frees_inside && sim_chance(&world->dice, 3))
		sim_consumer_free(consumer);
	else if (sim_chance(&world->dice, 20))
		sim_call(consumer, false);
	else if (sim_plan_has(world->plan, SIM_CANCELS) && sim_chance(&world->dice, 10))
		sim_cancel_many(consumer);
}

static uint8_t draw_manner(struct sim_world *world)
{
	unsigned manner = (unsigned)(sim_throw(&world->dice) % (2u * SIM_MANNERS));

	if (manner >= SIM_MANNERS || !(world->plan->manners & 1u << manner))
		return SIM_AT_ONCE;
	return (uint8_t)manner;
}

static uint64_t draw_timeout(struct sim_consumer *consumer, bool wanted)
{
	struct sim_dice *dice = &consumer->process.world->dice;

	if (wanted)
		return 10 * SECOND;
	if (sim_chance(dice, 700))
		return 0;
	return sim_magnitude(dice, MS, SECOND);
}

/* Returns a worker whose lease the next call needs, or NULL. */
static struct sim_worker *draw_worker(struct sim_consumer *consumer)
{
	struct sim_worker *worker = sim_workers_holder(consumer);

	return worker && sim_chance(&consumer->process.world->dice, LEASED_PERMILLE) ? worker
										     : NULL;
}

void sim_call(struct sim_consumer *consumer, bool wanted)
{
	static unsigned char body[65536];
	unsigned char bytes[5 + sizeof(body)];
	struct sim_world *world = consumer->process.world;
	struct sim_call *call = &world->calls[world->call_count];
	struct spoke_call_options options = { .timeout_ns = draw_timeout(consumer, wanted) };
	struct sim_worker *worker;
	struct spoke_builder builder;
	struct spoke_span args;
	int error;

	if (world->call_count == SIM_CALLS || consumer->calling)
		return;
	worker = wanted ? NULL : draw_worker(consumer);
	if (worker)
		options.lease = worker->lease;
	options.one_way = !wanted && sim_chance(&world->dice, world->plan->one_way_permille);
	*call = (struct sim_call){
		.by = consumer,
		.manner = wanted ? SIM_AT_ONCE : draw_manner(world),
		.one_way = options.one_way,
		.wanted = wanted,
		.begun_ns = sim_now(&consumer->process),
		.timeout_ns = options.timeout_ns ? options.timeout_ns : consumer->plan->timeout_ns,
		.held_ns = consumer->process.held_ns,
		.flooded_ns = consumer->process.flooded_ns,
		.order = ++world->order,
		.ahead_ns = consumer->process.virt.env.wall(&consumer->process.virt) -
			    sim_now(&consumer->process),
		.worker = worker,
		.grant = worker ? worker->grant : 0,
	};
	world->call_count++;
	sim_mark_write(body, world->call_count);
	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_bin(&builder, body,
		       (size_t)sim_between(&world->dice, SIM_MARK, world->plan->size_max));
	if (spoke_builder_finish(&builder, &args))
		sim_violation(world, SIM_S1, "arguments cannot be packed");
	consumer->calling = true;
	error = spoke_call(wanted ? consumer->unlimited : consumer->methods[call->manner], args,
			   &options, done, call, &call->name);
	consumer->calling = false;
	sim_window_look(consumer);
	if (error) {
		sim_note(world, "c%: spoke_call() fails: %e", consumer->process.number,
			 (uint64_t)(unsigned)error, 0, 0);
		if (error == SPOKE_ELEASE)
			sim_lease_denied(call);
		if (wanted)
			sim_violation(world, world->pieces ? SIM_L5 : SIM_L1,
				      "a call after healing was refused: %s",
				      spoke_strerror(error));
		world->call_count--;
		return;
	}
	sim_note(world, "c% call % manner %m for % us", consumer->process.number, world->call_count,
		 call->manner, call->timeout_ns / 1000);
	sim_call_taken(call);
}

void sim_cancel_many(struct sim_consumer *consumer)
{
	struct sim_world *world = consumer->process.world;
	uint64_t count = world->call_count - consumer->first_call;

	if (count > 200)
		count = 200;
	sim_note(world, "c% cancels many calls", consumer->process.number, 0, 0, 0);
	sim_tickets_cancel(consumer);
	for (uint64_t i = 1; i <= count && consumer->consumer; i++) {
		struct sim_call *call = &world->calls[world->call_count - i];

		if (call->by != consumer)
			continue;
		if (call->ends && (!call->deferred || call->settled) &&
		    spoke_call_cancel(consumer->consumer, call->name))
			sim_violation(world, SIM_S4,
				      "the handle of call %u, which has ended, cancels",
				      (unsigned)sim_number(world, call));
		if (!call->ends && sim_chance(&world->dice, 700))
			call->cancelled |= spoke_call_cancel(consumer->consumer, call->name);
	}
}
