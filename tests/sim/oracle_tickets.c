/* SPDX-License-Identifier: Apache-2.0 */
/* Checks tickets: their number, and that each is settled once, in time and for a valid reason. */
#include "tests/sim/journals.h"
#include "tests/sim/store.h"

#define LATE_NS (4 * MS) /* a tick for each of two late timers, and rounding */
#define SOON 2u          /* turns */

static struct sim_world *world_of(const struct sim_consumer *consumer)
{
	return consumer->process.world;
}

static struct sim_call *call_at(const struct sim_consumer *consumer, unsigned place)
{
	return &world_of(consumer)->calls[consumer->tickets[place] - 1];
}

/* Returns the index of the ticket among the open ones, or ticket_count if it is not open. */
static unsigned find(const struct sim_consumer *consumer, struct spoke_ticket ticket)
{
	unsigned at = 0;

	while (at < consumer->ticket_count && call_at(consumer, at)->ticket.handle != ticket.handle)
		at++;
	return at;
}

/* --- limits */

static void check_count(struct sim_consumer *consumer)
{
	const struct sim_calls_plan *plan = &consumer->plan->calls;
	size_t bytes;
	size_t count;

	/* Tickets of earlier processes are not subject to limits. */
	if (sim_book_restored(consumer) > 0)
		return;
	if (consumer->ticket_count > plan->tickets_max)
		sim_violation(world_of(consumer), SIM_S8, "consumer %u has %u tickets, limit %u",
			      consumer->process.number, consumer->ticket_count, plan->tickets_max);
	if (consumer->consumer == NULL)
		return;
	count = spoke_consumer_tickets(consumer->consumer, &bytes);
	if (count > plan->tickets_max)
		sim_violation(world_of(consumer), SIM_S8,
			      "consumer %u reports %zu tickets, limit %u", consumer->process.number,
			      count, plan->tickets_max);
	if (plan->ticket_bytes_max && bytes > plan->ticket_bytes_max)
		sim_violation(world_of(consumer), SIM_S8,
			      "consumer %u: tickets keep %zu bytes, limit %zu",
			      consumer->process.number, bytes, plan->ticket_bytes_max);
}

void sim_ticket_opened(struct sim_call *call, const struct spoke_result *result)
{
	struct sim_consumer *consumer = call->by;
	struct sim_world *world = world_of(consumer);
	unsigned number = (unsigned)sim_number(world, call);

	if (consumer->plan->calls.policy != SIM_FAILBACK)
		sim_violation(world, SIM_S8,
			      "call %u is deferred although its policy is not failback", number);
	if (result->ticket.handle == 0 || find(consumer, result->ticket) < consumer->ticket_count)
		sim_violation(world, SIM_S8, "call %u got the ticket of another call", number);
	call->deferred = true;
	call->ticket = result->ticket;
	world->counts.tickets++;
	if (consumer->ticket_count == SIM_TICKETS)
		sim_violation(world, SIM_S8, "consumer %u has too many tickets",
			      consumer->process.number);
	consumer->tickets[consumer->ticket_count++] = (uint32_t)number;
	check_count(consumer);
}

/* --- settlement */

/* Returns the latest settlement on the clock of the process, which does not count the time while
 * frozen. */
static uint64_t end_of(const struct sim_call *call)
{
	const struct sim_consumer *consumer = call->by;

	return call->begun_ns + sim_plan_ticket_ns(&consumer->plan->calls, call->timeout_ns) +
	       LATE_NS + consumer->process.held_ns - call->held_ns;
}

static void check_success(struct sim_world *world, const struct sim_call *call,
			  const struct spoke_ticket_result *settled)
{
	const struct spoke_result *result = settled->result;
	struct spoke_span span = { NULL, 0 };
	uint64_t number = 0;

	if (result->error)
		sim_violation(world, SIM_S8,
			      "the ticket of call %u is settled as a success with: %s",
			      (unsigned)sim_number(world, call), spoke_strerror(result->error));
	if (call->one_way || world->tampered)
		return;
	if (!spoke_value_bin(result->value, &span) && span.len >= SIM_MARK)
		number = sim_mark_read(span.data);
	if (number != sim_number(world, call))
		sim_violation(world, SIM_S4, "the ticket of call %u got the reply of call %u",
			      (unsigned)sim_number(world, call), (unsigned)number);
}

/* Returns whether the settlement is valid for what has happened. */
static const char *wrong_reason(const struct sim_consumer *consumer, const struct sim_call *call,
				unsigned place, const struct spoke_ticket_result *settled)
{
	const struct sim_calls_plan *plan = &consumer->plan->calls;
	uint64_t lasts_ns = sim_plan_ticket_ns(plan, call->timeout_ns);
	bool ends = consumer->consumer == NULL || consumer->process.draining;
	int error = settled->result->error;

	if (call->ticket_cancelled)
		return settled->settlement == SPOKE_TICKET_CANCELLED ? NULL
								     : "after it was cancelled";
	switch (settled->settlement) {
	case SPOKE_TICKET_SUCCESS:
		return NULL;
	case SPOKE_TICKET_EXHAUSTED:
		if (error == SPOKE_ELEASE)
			sim_lease_denied(call);
		else if (error == SPOKE_EFORBIDDEN)
			sim_access_refused(call);
		else if (settled->attempts <= plan->retries && error != SPOKE_EREMOTE &&
			 error != SPOKE_EBADREQUEST && error != SPOKE_ELIMIT &&
			 error != SPOKE_ETOOLARGE && !sim_may_be_bound(call))
			return "with attempts left";
		return NULL;
	case SPOKE_TICKET_EXPIRED:
		return sim_now(&consumer->process) < call->begun_ns + lasts_ns ? "before its time"
									       : NULL;
	case SPOKE_TICKET_CANCELLED:
		return "without being cancelled";
	case SPOKE_TICKET_REFUSED:
		if (!plan->drops_oldest)
			return "and nothing is dropped";
		/* A ticket under a lease does not wait for the journal, and may overtake others. */
		if (consumer->plan->journal.on && world_of(consumer)->store)
			return NULL;
		return place > 0 && sim_book_restored(consumer) == 0 ? "and is not the oldest"
								     : NULL;
	case SPOKE_TICKET_CLOSING:
		if (sim_book_has(call))
			return "although its journal has it";
		return ends ? NULL : "and its consumer goes on";
	case SPOKE_TICKET_UNKNOWN:
		return plan->once || sim_may_be_bound(call) ? NULL : "and its provider can tell";
	case SPOKE_TICKET_KEPT:
		if (!sim_book_has(call))
			return "without a journal";
		return ends ? NULL : "and its consumer goes on";
	}
	return "which is no way to end";
}

static void remove_at(struct sim_consumer *consumer, unsigned place)
{
	consumer->ticket_count--;
	for (unsigned i = place; i < consumer->ticket_count; i++)
		consumer->tickets[i] = consumer->tickets[i + 1];
}

void sim_ticket_told(struct sim_consumer *consumer, const struct spoke_ticket_result *settled)
{
	struct sim_world *world = world_of(consumer);
	unsigned place = find(consumer, settled->ticket);
	const char *name = spoke_ticket_settlement_name(settled->settlement);
	struct sim_call *call;
	const char *wrong;

	if (consumer->process.engine == NULL && !consumer->process.ending)
		sim_violation(world, SIM_S18,
			      "consumer %u: a ticket is settled after its engine was freed",
			      consumer->process.number);
	if (place == consumer->ticket_count && name && sim_book_settled(consumer, NULL, settled)) {
		consumer->settled[settled->settlement]++;
		return;
	}
	if (place == consumer->ticket_count || name == NULL)
		sim_violation(world, SIM_S8,
			      "consumer %u: a ticket that is not open is settled: %s",
			      consumer->process.number, name ? name : "?");
	call = call_at(consumer, place);
	if (settled->settlement == SPOKE_TICKET_SUCCESS)
		check_success(world, call, settled);
	/* The ticket was told after its consumer had been freed. */
	if (settled->settlement == SPOKE_TICKET_KEPT && !sim_book_has(call))
		sim_book_told(call, settled->id);
	wrong = wrong_reason(consumer, call, place, settled);
	if (wrong)
		sim_violation(world, SIM_S8, "the ticket of call %u is settled as %s %s",
			      (unsigned)sim_number(world, call), name, wrong);
	if ((settled->attempts < call->writes && !call->recounted) ||
	    settled->attempts > consumer->plan->calls.retries + 1)
		sim_violation(world, SIM_S8,
			      "the ticket of call %u reports %u attempts, but %u were seen",
			      (unsigned)sim_number(world, call), settled->attempts, call->writes);
	if (call->id && call->id != settled->id)
		sim_violation(world, SIM_S26, "the ticket of call %u has a different id",
			      (unsigned)sim_number(world, call));
	if (sim_now(&consumer->process) > end_of(call))
		sim_violation(world, SIM_S8, "the ticket of call %u is settled %.3f ms too late",
			      (unsigned)sim_number(world, call),
			      (double)(sim_now(&consumer->process) - end_of(call)) / 1e6);
	call->settled++;
	(void)sim_book_settled(consumer, call, settled);
	consumer->settled[settled->settlement]++;
	remove_at(consumer, place);
}

/* --- periodic check */

static void check_open(const struct sim_consumer *consumer)
{
	for (unsigned i = 0; i < consumer->ticket_count; i++) {
		const struct sim_call *call = call_at(consumer, i);

		if (sim_now(&consumer->process) > end_of(call) + MS)
			sim_violation(world_of(consumer), SIM_S8,
				      "the ticket of call %u is not settled at its end",
				      consumer->tickets[i]);
		if (call->ticket_cancelled && consumer->process.turns > call->cancelled_turn + SOON)
			sim_violation(world_of(consumer), SIM_S8,
				      "the ticket of call %u was cancelled but is open",
				      consumer->tickets[i]);
	}
}

void sim_tickets_check(struct sim_world *world)
{
	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		struct sim_consumer *consumer = &world->consumers[i];

		if (consumer->process.virt.held_until_ns > world->virt.now_ns)
			continue;
		check_open(consumer);
		check_count(consumer);
	}
}

void sim_tickets_end(struct sim_consumer *consumer)
{
	if (consumer->process.dying)
		consumer->ticket_count = 0;
	if (consumer->ticket_count > 0)
		sim_violation(world_of(consumer), SIM_S8, "the ticket of call %u was never settled",
			      consumer->tickets[0]);
}
