/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book of tickets that were told as deferred: through all lives of their consumer each of them
 * is settled once, or waits in the journal.
 */
#include "tests/sim/journals.h"

#include "core/engine/engine.h"

#include <spoke/journal.h>

#include <inttypes.h>
#include <stdlib.h>

#define FOLDER "/j"
#define LATE_NS (4 * MS) /* a tick for each of two late timers, and rounding */
#define SOON 4u          /* turns */
#define INFOS 2048u      /* tickets of a consumer */

static struct sim_world *world_of(const struct sim_journal *journal)
{
	return journal->by->process.world;
}

static const struct sim_journal_plan *plan_of(const struct sim_journal *journal)
{
	return &journal->by->plan->journal;
}

static struct sim_call *call_of(const struct sim_journal *journal,
				const struct sim_promise *promise)
{
	return &world_of(journal)->calls[promise->number - 1];
}

static uint64_t wall_of(const struct sim_process *process)
{
	return process->virt.env.wall(process->virt.env.ctx);
}

/* Returns the lead of the wall clock. */
static uint64_t ahead_of(const struct sim_process *process)
{
	return wall_of(process) - sim_now(process);
}

static struct sim_promise *find(const struct sim_journal *journal, uint64_t id)
{
	for (unsigned i = journal->count; i-- > 0;)
		if (journal->promises[i].id == id)
			return &journal->promises[i];
	return NULL;
}

static struct sim_promise *promise_of(const struct sim_call *call)
{
	struct sim_journal *journal = sim_journal_of(call->by);

	return journal && call->promise ? &journal->promises[call->promise - 1] : NULL;
}

uint64_t sim_book_call(const struct sim_consumer *consumer, uint64_t id)
{
	const struct sim_journal *journal = sim_journal_of(consumer);
	const struct sim_promise *promise = journal ? find(journal, id) : NULL;

	return promise ? promise->number : 0;
}

uint64_t sim_book_wait_ns(const struct sim_call *call)
{
	const struct sim_journal *journal = sim_journal_of(call->by);
	uint64_t failed_ns = call->begun_ns + sim_answer_ns(call);
	uint64_t from_ns = failed_ns;

	if (journal == NULL)
		return 0;
	if (journal->reads)
		from_ns = call->begun_ns +
			  sim_plan_ticket_ns(&call->by->plan->calls, call->timeout_ns);
	else if (journal->read_ns > failed_ns)
		from_ns = journal->read_ns;
	return (from_ns > failed_ns ? from_ns - failed_ns : 0) + plan_of(journal)->wait_ns +
	       LATE_NS;
}

bool sim_book_has(const struct sim_call *call)
{
	return promise_of(call) != NULL;
}

/* --- tickets that are told */

/* Tickets of calls with a lease end with their process. */
void sim_book_told(struct sim_call *call, uint64_t id)
{
	const struct sim_process *process = &call->by->process;
	struct sim_journal *journal = sim_journal_of(call->by);
	struct sim_promise *promise;

	if (journal == NULL || call->worker)
		return;
	if (find(journal, id))
		sim_violation(process->world, SIM_S63, "call %u gets the id of an earlier ticket",
			      (unsigned)sim_number(process->world, call));
	if (journal->count == journal->room) {
		journal->room = journal->room ? 2 * journal->room : 64;
		journal->promises = realloc(journal->promises,
					    journal->room * sizeof(*journal->promises));
		if (journal->promises == NULL)
			abort();
	}
	promise = &journal->promises[journal->count++];
	/* The product takes the wall's time when the call has failed, and its age as of the begin
	 * of that turn. */
	*promise = (struct sim_promise){
		.number = (uint32_t)sim_number(process->world, call),
		.id = id,
		.told_ns = sim_journal_run_ns(journal),
		.wall_least_ns = call->begun_ns + call->ahead_ns,
		.wall_most_ns = call->begun_ns + ahead_of(process) + process->held_ns -
				call->held_ns,
		.lasts_ns = sim_plan_ticket_ns(&call->by->plan->calls, call->timeout_ns),
		.told_life = journal->life,
		.life = journal->life,
		.open = true,
	};
	call->promise = journal->count;
}

/* --- lives */

void sim_book_begin(struct sim_journal *journal)
{
	journal->life++;
	journal->ahead_ns = ahead_of(&journal->by->process);
	journal->reads = true;
	journal->unused = false;
	journal->read_turn = 0;
	journal->ended_restored = 0;
	journal->strangers = 0;
}

/* May the numbers of attempts be lost with their records? */
static bool loses_attempts(const struct sim_journal *journal, enum sim_death death)
{
	return journal->flipped ||
	       (death == SIM_DEATH_POWER && (!plan_of(journal)->power || journal->fragile));
}

static void recount(struct sim_call *call)
{
	call->lax = true;
	call->writes = 0;
	call->marked = 0;
	call->refusals = 0;
	call->refusals_then = 0;
	call->attempts = 0;
	call->runs = 0;
}

/* A ticket of the call may go on in the next process. While the disk fails, attempts that may run
 * twice need no record. */
static void carry(const struct sim_journal *journal, struct sim_call *call, enum sim_death death)
{
	if (call->lives < UINT8_MAX)
		call->lives++;
	call->instance = 0;
	if (call->by->plan->calls.idempotent || loses_attempts(journal, death) ||
	    (journal->was_hurt && !call->by->plan->calls.once)) {
		recount(call);
	} else if (journal->was_hurt) {
		call->recounted = true;
		call->attempts = 0;
	}
}

/* May a record of this time not have reached the disk, because the disk failed? */
static bool was_hurt(const struct sim_journal *journal, uint64_t at_ns)
{
	return journal->hurt_until_ns > at_ns &&
	       at_ns + plan_of(journal)->sync_ns + 2 * MS > journal->hurt_from_ns;
}

/* Notes what is known of the last record of a ticket, of this time and life. */
static void note_record(const struct sim_journal *journal, struct sim_promise *promise,
			uint64_t at_ns, unsigned life)
{
	uint64_t unsynced_ns = sim_journal_run_ns(journal) - plan_of(journal)->sync_ns - 2 * MS;

	if (life == journal->life)
		promise->unsynced = !plan_of(journal)->power &&
				    (at_ns > unsynced_ns || was_hurt(journal, at_ns));
}

/* Notes what is known of a ticket when its process ends. */
static void die(struct sim_journal *journal, struct sim_promise *promise, enum sim_death death)
{
	const struct sim_process *process = &journal->by->process;
	struct sim_call *call = call_of(journal, promise);

	carry(journal, call, death);
	if (!promise->open) {
		note_record(journal, promise, promise->ended_ns, promise->ended_life);
		/* The disk may have stopped before the end of the last turn. */
		if (promise->ended_life == journal->life)
			promise->may_repeat |= was_hurt(journal, promise->ended_ns) ||
					       (journal->was_cut &&
						promise->ended_turn + 1 >= process->turns);
		promise->may_repeat |= death == SIM_DEATH_POWER &&
				       (promise->unsynced || promise->fragile);
		return;
	}
	note_record(journal, promise, promise->told_ns, promise->told_life);
	promise->may_be_lost |= death == SIM_DEATH_POWER && (promise->unsynced || promise->fragile);
	promise->life = 0;
	promise->ran |= call->by->plan->calls.once && call->writes > call->refusals;
}

void sim_book_damaged(struct sim_journal *journal)
{
	for (unsigned i = 0; i < journal->count; i++) {
		journal->promises[i].damaged = true;
		recount(call_of(journal, &journal->promises[i]));
	}
}

/* After a failed sync the system may say of the same bytes that they are on the disk. Only the
 * process that has seen the failure knows better. */
static void note_fragile(struct sim_journal *journal)
{
	if (journal->unsure_until_ns < sim_journal_run_ns(journal))
		return;
	journal->fragile = true;
	for (unsigned i = 0; i < journal->count; i++)
		journal->promises[i].fragile = true;
}

void sim_book_died(struct sim_journal *journal, enum sim_death death)
{
	struct sim_world *world = world_of(journal);

	for (unsigned i = 0; i < journal->count; i++)
		die(journal, &journal->promises[i], death);
	/* Tickets of other calls may have been written as well. */
	for (uint64_t i = 0; i < world->call_count; i++)
		if (world->calls[i].by == journal->by && world->calls[i].promise == 0)
			carry(journal, &world->calls[i], death);
	note_fragile(journal);
	journal->reads = false;
	journal->read_turn = 0;
}

/* A ticket goes on in this life. */
static void go_on(struct sim_journal *journal, struct sim_promise *promise)
{
	const struct sim_process *process = &journal->by->process;
	uint64_t now_ns = sim_now(process);

	if (!promise->open) {
		if (!promise->may_repeat && !promise->damaged)
			sim_violation(world_of(journal), SIM_S63,
				      "the ticket of call %u goes on after it was settled",
				      promise->number);
		promise->open = true;
		sim_note(world_of(journal), "c%: the end of the ticket of call % is forgotten",
			 process->number, promise->number, 0, 0);
	}
	promise->life = journal->life;
	promise->may_be_lost = false;
	promise->late_ns = promise->wall_most_ns + promise->lasts_ns - journal->ahead_ns;
	if (promise->late_ns > now_ns + promise->lasts_ns)
		promise->late_ns = now_ns + promise->lasts_ns;
	if (promise->late_ns < now_ns)
		promise->late_ns = now_ns;
	promise->late_held_ns = process->held_ns;
}

/* A journal that cannot be read must have been damaged, or lack memory, or its disk fails. */
static void check_unused(const struct sim_journal *journal, const struct spoke_recovered *recovered)
{
	if (journal->flipped || journal->fragile ||
	    (recovered->error == SPOKE_ESYSTEM && (journal->kill_ns || journal->was_hurt)) ||
	    (recovered->error == SPOKE_ENOMEM && sim_plan_has(world_of(journal)->plan, SIM_MEMORY)))
		return;
	sim_violation(world_of(journal), SIM_S66,
		      "c%u cannot read its journal: %s, %u pieces are lost",
		      journal->by->process.number, spoke_strerror(recovered->error),
		      (unsigned)recovered->damaged);
}

void sim_book_read(void *arg, const struct spoke_recovered *recovered)
{
	static struct spoke_ticket_info infos[INFOS];
	struct sim_consumer *consumer = arg;
	struct sim_journal *journal = sim_journal_of(consumer);
	size_t count;

	if (journal == NULL || consumer->process.dying)
		return;
	sim_note(world_of(journal), "c% has read its journal: %e, % tickets, % others",
		 consumer->process.number, (uint64_t)(unsigned)recovered->error, recovered->tickets,
		 recovered->expired + recovered->unknown);
	consumer->process.progress++;
	world_of(journal)->counts.restored += recovered->tickets + recovered->expired +
					      recovered->unknown;
	if (!journal->reads)
		sim_violation(world_of(journal), SIM_S62, "c%u reads its journal twice",
			      consumer->process.number);
	journal->reads = false;
	journal->read_ns = sim_now(&consumer->process);
	if (recovered->error || recovered->damaged)
		check_unused(journal, recovered);
	journal->unused = recovered->error != 0;
	if (recovered->error)
		return;
	for (unsigned i = 0; i < journal->count; i++)
		journal->promises[i].unsynced = false;
	journal->read_turn = consumer->process.turns + 1;
	if (consumer->consumer == NULL)
		return;
	count = spoke_consumer_ticket_list(consumer->consumer, infos, INFOS);
	for (size_t i = 0; i < count && i < INFOS; i++) {
		struct sim_promise *promise = find(journal, infos[i].state.id);

		journal->strangers += promise == NULL;
		if (promise && promise->life != journal->life)
			go_on(journal, promise);
	}
}

/* --- settlements */

static void check_time(struct sim_journal *journal, const struct sim_promise *promise,
		       enum spoke_ticket_settlement settlement)
{
	uint64_t now_ns = sim_now(&journal->by->process);

	if (settlement == SPOKE_TICKET_EXPIRED &&
	    wall_of(&journal->by->process) + LATE_NS < promise->wall_least_ns + promise->lasts_ns)
		sim_violation(world_of(journal), SIM_S65,
			      "the ticket of call %u expires before its time", promise->number);
	if (promise->life == journal->life && now_ns > promise->late_ns + LATE_NS +
							       journal->by->process.held_ns -
							       promise->late_held_ns)
		sim_violation(world_of(journal), SIM_S65,
			      "the ticket of call %u is settled %.3f ms too late", promise->number,
			      (double)(now_ns - promise->late_ns) / 1e6);
}

/* Returns what is wrong with the settlement of a ticket of an earlier life, or NULL. */
static const char *wrong_reason(const struct sim_journal *journal,
				const struct spoke_ticket_result *settled)
{
	const struct sim_consumer *consumer = journal->by;

	switch (settled->settlement) {
	case SPOKE_TICKET_SUCCESS:
		return settled->result->error ? "with an error" : NULL;
	case SPOKE_TICKET_EXHAUSTED:
	case SPOKE_TICKET_EXPIRED:
		return NULL;
	case SPOKE_TICKET_CANCELLED:
		return "without being cancelled";
	case SPOKE_TICKET_REFUSED:
		return consumer->plan->calls.drops_oldest ? NULL : "and nothing is dropped";
	case SPOKE_TICKET_CLOSING:
		return "although its journal has it";
	case SPOKE_TICKET_UNKNOWN: /* an attempt of an earlier process may have run */
		return consumer->plan->calls.idempotent ? "and may run twice" : NULL;
	case SPOKE_TICKET_KEPT:
		return consumer->consumer == NULL || consumer->process.draining
			       ? NULL
			       : "and its consumer goes on";
	}
	return "which is no way to end";
}

static void end(struct sim_journal *journal, struct sim_promise *promise,
		enum spoke_ticket_settlement settlement)
{
	if (settlement == SPOKE_TICKET_KEPT) {
		promise->life = 0;
		return;
	}
	promise->open = false;
	promise->may_repeat = false;
	promise->ended_ns = sim_journal_run_ns(journal);
	promise->ended_life = journal->life;
	promise->ended_turn = journal->by->process.turns + 1;
}

bool sim_book_settled(struct sim_consumer *consumer, const struct sim_call *call,
		      const struct spoke_ticket_result *settled)
{
	struct sim_journal *journal = sim_journal_of(consumer);
	struct sim_promise *promise = call ? promise_of(call) : NULL;
	const char *wrong;

	if (promise && promise->id != settled->id)
		sim_violation(consumer->process.world, SIM_S63,
			      "the ticket of call %u has another id at its end", promise->number);
	if (promise)
		end(journal, promise, settled->settlement);
	if (call || journal == NULL)
		return false;
	journal->ended_restored++;
	promise = find(journal, settled->id);
	/* The ticket may have been written, and not told before its process died. */
	if (promise == NULL)
		return true;
	if (!promise->open)
		go_on(journal, promise);
	check_time(journal, promise, settled->settlement);
	wrong = wrong_reason(journal, settled);
	if (wrong)
		sim_violation(consumer->process.world, SIM_S62,
			      "the ticket of call %u, of an earlier process, is settled as %s %s",
			      promise->number, spoke_ticket_settlement_name(settled->settlement),
			      wrong);
	end(journal, promise, settled->settlement);
	return true;
}

/* --- requests */

void sim_book_written(struct sim_call *call)
{
	struct sim_promise *promise = promise_of(call);
	const struct sim_process *process = &call->by->process;

	if (promise == NULL || promise->told_life == sim_journal_of(call->by)->life)
		return;
	if (promise->ran && !call->lax)
		sim_violation(process->world, SIM_S64,
			      "call %u is written again, after it may have run in an earlier life",
			      promise->number);
}

/* --- from time to time */

static void check_one(struct sim_journal *journal, struct sim_promise *promise)
{
	const struct sim_process *process = &journal->by->process;

	if (!promise->open)
		return;
	if (promise->life == journal->life) {
		if (promise->told_life != journal->life && journal->by->consumer &&
		    sim_now(process) > promise->late_ns + LATE_NS + MS + process->held_ns -
					       promise->late_held_ns)
			sim_violation(world_of(journal), SIM_S65,
				      "the ticket of call %u is not settled at its end",
				      promise->number);
		return;
	}
	if (promise->told_life == journal->life)
		return; /* its consumer was closed */
	if (!promise->may_be_lost && !promise->damaged)
		sim_violation(world_of(journal), SIM_S62,
			      "the ticket of call %u, told in life %u, is lost in life %u",
			      promise->number, promise->told_life, journal->life);
	promise->open = false;
}

static void check_all(struct sim_consumer *consumer)
{
	struct sim_journal *journal = sim_journal_of(consumer);

	if (journal == NULL || journal->read_turn == 0 || consumer->consumer == NULL ||
	    consumer->process.draining || consumer->process.turns < journal->read_turn + SOON)
		return;
	for (unsigned i = 0; i < journal->count; i++)
		check_one(journal, &journal->promises[i]);
}

void sim_books_of_journals(struct sim_world *world)
{
	for (unsigned i = 0; world->journals && i < world->plan->consumer_count; i++)
		if (world->consumers[i].process.virt.held_until_ns <= world->virt.now_ns)
			check_all(&world->consumers[i]);
}

unsigned sim_book_open(const struct sim_consumer *consumer)
{
	const struct sim_journal *journal = sim_journal_of(consumer);
	unsigned open = 0;

	for (unsigned i = 0; journal && i < journal->count; i++)
		open += journal->promises[i].open;
	return open;
}

unsigned sim_book_restored(const struct sim_consumer *consumer)
{
	const struct sim_journal *journal = sim_journal_of(consumer);

	if (journal == NULL || consumer->process.engine == NULL)
		return 0;
	return (unsigned)spoke_stat_get(consumer->process.engine, SPOKE_STAT_TICKETS_RECOVERED) -
	       journal->ended_restored;
}

/* --- the end of the world */

void sim_book_end(struct sim_journal *journal)
{
	struct spoke_journal_report report;
	int error = spoke_journal_read(&journal->by->process.virt.env, FOLDER, NULL, NULL, &report);

	if ((error || report.damaged || report.skipped) && !journal->flipped && !journal->fragile)
		sim_violation(world_of(journal), SIM_S66, "the journal of c%u is left damaged: %s",
			      journal->by->process.number, error ? report.why : "");
	/* After failures the last records may not have been written. */
	if (!error && !journal->flipped && journal->hurt_until_ns < sim_journal_run_ns(journal) &&
	    report.tickets > sim_book_open(journal->by) + journal->strangers)
		sim_violation(world_of(journal), SIM_S63,
			      "the journal of c%u has %u tickets at the end, but %u are open",
			      journal->by->process.number, report.tickets,
			      sim_book_open(journal->by));
}
