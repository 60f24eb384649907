/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the ticket functions of simulated consumers and checks the settlement callbacks. */
#include "tests/sim/journals.h"
#include "tests/sim/store.h"

/* Records the callback of one ticket, which must run before the consumer's callback. */
static void settled_one(void *arg, const struct spoke_ticket_result *settled)
{
	struct sim_call *call = arg;

	if (call->by->process.dying)
		return;
	if (settled->ticket.handle != call->ticket.handle || ++call->settled_then > 1 ||
	    call->settled)
		sim_violation(call->by->process.world, SIM_S8,
			      "the callback of the ticket of call %u was called once too often",
			      (unsigned)sim_number(call->by->process.world, call));
}

static struct sim_call *call_of(const struct sim_consumer *consumer, struct spoke_ticket ticket)
{
	struct sim_world *world = consumer->process.world;

	for (unsigned i = 0; i < consumer->ticket_count; i++) {
		struct sim_call *call = &world->calls[consumer->tickets[i] - 1];

		if (call->ticket.handle == ticket.handle)
			return call;
	}
	return NULL;
}

void sim_ticket_settled(void *arg, const struct spoke_ticket_result *settled)
{
	struct sim_consumer *consumer = arg;
	struct sim_world *world = consumer->process.world;
	const struct sim_call *call = call_of(consumer, settled->ticket);

	if (consumer->process.dying)
		return;
	consumer->process.progress++;
	sim_note(world, "c%: the ticket of call % is settled: %t after % attempts",
		 consumer->process.number,
		 call ? sim_number(world, call) : sim_book_call(consumer, settled->id),
		 (uint64_t)settled->settlement, settled->attempts);
	if (call && call->asked_then && !call->settled_then)
		sim_violation(world, SIM_S8, "the callback of the ticket of call %u was not called",
			      (unsigned)sim_number(world, call));
	sim_ticket_told(consumer, settled);
	sim_leases_look(&consumer->process);
	sim_fault_stall(&consumer->process);
	if (world->healing || consumer->consumer == NULL)
		return;
	if (consumer->plan->frees_inside && sim_chance(&world->dice, 3))
		sim_consumer_free(consumer);
	else if (sim_chance(&world->dice, 20))
		sim_call(consumer, false);
}

/* Returns the id of the ticket. */
static uint64_t ask(struct sim_consumer *consumer, const struct sim_call *call)
{
	const struct sim_calls_plan *plan = &consumer->plan->calls;
	struct sim_world *world = consumer->process.world;
	struct spoke_ticket_state state;
	unsigned number = (unsigned)sim_number(world, call);

	if (!spoke_ticket_ask(consumer->consumer, call->ticket, &state))
		sim_violation(world, SIM_S8, "the ticket of call %u is open but not listed",
			      number);
	if (state.attempts < call->writes || state.attempts > plan->retries + 1 ||
	    (call->id && state.id != call->id) ||
	    state.left_ns > sim_plan_ticket_ns(plan, call->timeout_ns))
		sim_violation(world, SIM_S8, "the ticket of call %u reports a wrong state", number);
	return state.id;
}

void sim_ticket_begin(struct sim_call *call)
{
	struct sim_consumer *consumer = call->by;
	struct sim_world *world = consumer->process.world;

	if (consumer->consumer == NULL)
		return;
	sim_book_told(call, ask(consumer, call));
	if (!sim_chance(&world->dice, 500))
		return;
	if (spoke_ticket_then(consumer->consumer, call->ticket, settled_one, call))
		sim_violation(world, SIM_S8, "the ticket of call %u cannot be queried",
			      (unsigned)sim_number(world, call));
	call->asked_then = true;
}

void sim_tickets_cancel(struct sim_consumer *consumer)
{
	struct sim_world *world = consumer->process.world;

	for (unsigned i = 0; i < consumer->ticket_count && consumer->consumer; i++) {
		struct sim_call *call = &world->calls[consumer->tickets[i] - 1];

		(void)ask(consumer, call);
		if (!sim_chance(&world->dice, 300))
			continue;
		if (!spoke_ticket_cancel(consumer->consumer, call->ticket))
			sim_violation(world, SIM_S8, "the ticket of call %u cannot be cancelled",
				      (unsigned)sim_number(world, call));
		call->ticket_cancelled = true;
		call->cancelled_turn = consumer->process.turns;
	}
}
