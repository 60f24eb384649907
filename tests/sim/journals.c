/* SPDX-License-Identifier: Apache-2.0 */
/* The disks of consumers with journals, and the ends of their processes. */
#include "tests/sim/journals.h"

#include "cluster/call/caller.h"
#include "cluster/consumer/parts.h"
#include "cluster/journal/journal.h"
#include "core/virtual/files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "/j"
#define STEPS_MAX 12u          /* of a disk, before a process is killed between them */
#define RETRY_NS (12 * SECOND) /* from the end of failures until all is written again */
#define SLOW_NS (500 * MS)
#define SLOW_MOST 16u       /* syncs until the records that gather now are written */
#define FLIP_PERMILLE 150u  /* of deaths */
#define WORKS_MAX 64u       /* writes of all tickets anew, one after the other */
#define EARLY_PERMILLE 150u /* of lives that end while the journal is read */

struct sim_journal *sim_journal_of(const struct sim_consumer *consumer)
{
	struct sim_journals *all = consumer->process.world->journals;
	struct sim_journal *journal;

	if (all == NULL)
		return NULL;
	journal = &all->of[consumer->process.number - SIM_PROVIDERS];
	return journal->disk ? journal : NULL;
}

static struct sim_world *world_of(const struct sim_journal *journal)
{
	return journal->by->process.world;
}

static struct sim_dice *dice_of(const struct sim_journal *journal)
{
	return &world_of(journal)->journals->dice;
}

uint64_t sim_journal_run_ns(const struct sim_journal *journal)
{
	return sim_now(&journal->by->process) - journal->by->process.held_ns;
}

static const struct sim_journal_plan *plan_of(const struct sim_journal *journal)
{
	return &journal->by->plan->journal;
}

/* --- a life */

void sim_journal_options(struct sim_consumer *consumer, struct spoke_consumer_options *options)
{
	const struct sim_journal *journal = sim_journal_of(consumer);

	if (journal == NULL)
		return;
	options->journal = FOLDER;
	options->durability = plan_of(journal)->power ? SPOKE_DURABILITY_POWER
						      : SPOKE_DURABILITY_PROCESS;
	options->recovered = sim_book_read;
	options->recovered_arg = consumer;
	/* The journal is read after its segments were made small. */
	consumer->process.virt.pool_is_busy = true;
}

void sim_journal_print(const struct sim_consumer *consumer, char *text, size_t size)
{
	const struct sim_journal *journal = sim_journal_of(consumer);

	*text = '\0';
	if (journal)
		(void)snprintf(text, size, "&journal.wait=%ums&journal.sync=%ums%s",
			       (unsigned)(plan_of(journal)->wait_ns / MS),
			       (unsigned)(plan_of(journal)->sync_ns / MS),
			       plan_of(journal)->salvages || world_of(journal)->healing
				       ? "&journal.damaged=salvage"
				       : "");
}

/* --- the disk */

/* Has the disk fail as it shall now. */
static void harm(struct sim_journal *journal)
{
	spokei_vfiles_harm(journal->disk, sim_throw(dice_of(journal)), &journal->harm);
	spokei_vfiles_room(journal->disk, journal->full ? 0 : UINT64_MAX);
}

/* The faults of the disk are over. */
static void mend(struct sim_journal *journal)
{
	journal->harm_until_ns = 0;
	journal->harm = (struct spokei_vfiles_harm){ 0 };
	journal->full = false;
	for (unsigned i = 0; i < SPOKEI_VFILES_CALLS; i++)
		spokei_vfiles_fail(journal->disk, (enum spokei_vfiles_call)i, 0, -EIO);
	harm(journal);
}

/* Faults of the disk begin, or go on for a while. The process tries to write again soon after
 * them. */
static void hurt(struct sim_journal *journal, uint64_t lasts_ns, uint64_t tail_ns)
{
	struct sim_world *world = world_of(journal);
	uint64_t run_ns = sim_journal_run_ns(journal);

	if (journal->hurt_until_ns < run_ns)
		journal->hurt_from_ns = run_ns;
	if (journal->hurt_until_ns < run_ns + lasts_ns + tail_ns)
		journal->hurt_until_ns = run_ns + lasts_ns + tail_ns;
	if (journal->harm_until_ns < world->virt.now_ns + lasts_ns)
		journal->harm_until_ns = world->virt.now_ns + lasts_ns;
	journal->was_hurt = true;
	harm(journal);
}

/* The disk makes only some more steps. */
static void cut(struct sim_journal *journal, uint64_t steps, uint64_t kill_ns)
{
	sim_note(world_of(journal), "the disk of c% makes % more steps",
		 journal->by->process.number, steps, 0, 0);
	spokei_vfiles_cut(journal->disk, (unsigned)steps);
	journal->kill_ns = kill_ns;
}

void sim_journal_started(struct sim_consumer *consumer)
{
	struct sim_journal *journal = sim_journal_of(consumer);
	struct spokei_world_process *virt = &consumer->process.virt;

	if (journal == NULL)
		return;
	virt->pool_is_busy = false;
	if (consumer->consumer && consumer->consumer->caller->journal)
		consumer->consumer->caller->journal->log_options.segment_size =
			plan_of(journal)->segment_size;
	if (virt->loop)
		virt->env.loop->wake(virt->loop);
	journal->was_hurt = journal->harm_until_ns > 0;
	harm(journal);
	sim_book_begin(journal);
	if (!world_of(journal)->healing && journal->starts++ > 0 &&
	    sim_chance(dice_of(journal), EARLY_PERMILLE))
		cut(journal, sim_between(dice_of(journal), 0, STEPS_MAX),
		    world_of(journal)->virt.now_ns + sim_magnitude(dice_of(journal), MS, 100 * MS));
}

/* --- the end of a life */

/* Flips a bit of one of the files. */
static void flip(struct sim_journal *journal)
{
	const struct spoke_env *env = &journal->by->process.virt.env;
	static char bytes[1 << 20];
	char names[4096];
	char path[64];
	ssize_t len = env->files->list(env->ctx, FOLDER, names, sizeof(names));
	ssize_t size;
	size_t at = 0;

	if (len <= 0)
		return;
	for (uint64_t skip = sim_throw(dice_of(journal)) % 4; skip > 0; skip--)
		if (at + strlen(names + at) + 1 < (size_t)len)
			at += strlen(names + at) + 1;
	(void)snprintf(path, sizeof(path), FOLDER "/%.32s", names + at);
	size = env->files->read(env->ctx, path, bytes, sizeof(bytes));
	if (size <= 0)
		return;
	if (size > 2048 && sim_chance(dice_of(journal), 700))
		size = 2048;
	sim_note(world_of(journal), "a bit in a file of c% is flipped", journal->by->process.number,
		 0, 0, 0);
	spokei_vfiles_flip(journal->disk, path, sim_throw(dice_of(journal)) % (8 * (size_t)size));
	journal->flipped = true;
	sim_book_damaged(journal);
	world_of(journal)->counts.of_journal_fault[SIM_JOURNAL_FLIP]++;
}

static void maybe_flip(struct sim_journal *journal)
{
	const struct sim_world *world = world_of(journal);

	if (!world->healing && world->plan->journals.faults & 1u << SIM_JOURNAL_FLIP &&
	    sim_chance(dice_of(journal), FLIP_PERMILLE))
		flip(journal);
}

/* Ends the process at once. */
static void kill_now(struct sim_journal *journal)
{
	struct sim_process *process = &journal->by->process;
	struct sim_world *world = process->world;
	bool power = journal->loses_power;
	const struct spokei_vfiles_harm none = { 0 };

	sim_note(world, power ? "c% loses power" : "c% is killed", process->number, 0, 0, 0);
	journal->was_cut = spokei_vfiles_is_cut(journal->disk);
	spokei_vfiles_cut(journal->disk, 0);
	spokei_vfiles_harm(journal->disk, sim_throw(dice_of(journal)), &none);
	journal->kill_ns = 0;
	journal->loses_power = false;
	process->dying = true;
	sim_process_end(process);
	process->dying = false;
	if (power)
		spokei_vfiles_lose(journal->disk);
	spokei_vfiles_cut(journal->disk, UINT_MAX);
	sim_book_died(journal, power ? SIM_DEATH_POWER : SIM_DEATH_KILLED);
	maybe_flip(journal);
	process->back_ns = world->virt.now_ns + sim_magnitude(dice_of(journal), MS, 500 * MS);
	world->counts.deaths++;
}

void sim_journal_ended(struct sim_consumer *consumer)
{
	struct sim_journal *journal = sim_journal_of(consumer);

	if (journal == NULL || consumer->process.dying)
		return;
	journal->was_cut = false;
	sim_book_died(journal, SIM_DEATH_ENDED);
}

bool sim_journal_ends(struct sim_consumer *consumer)
{
	struct sim_journal *journal = sim_journal_of(consumer);

	if (journal == NULL || consumer->process.dying)
		return false;
	/* What ends on the loop's thread would freeze it. */
	journal->harm.sync_is_slow = 0;
	harm(journal);
	if (journal->kill_ns == 0)
		return false;
	kill_now(journal);
	return true;
}

/* Writes are a reason for turns, but not without end. */
static void note_works(struct sim_journal *journal)
{
	struct sim_process *process = &journal->by->process;
	unsigned writes = spokei_vfiles_calls(journal->disk, SPOKEI_VFILES_WRITE_AT);

	if (journal->works_ns != process->world->virt.now_ns)
		journal->works = 0;
	journal->works_ns = process->world->virt.now_ns;
	if (writes != journal->writes && journal->works++ < WORKS_MAX) {
		process->idle_turns = 0;
		process->idle_wakes = 0;
	}
	journal->writes = writes;
}

void sim_journal_turned(struct sim_consumer *consumer)
{
	struct sim_journal *journal = sim_journal_of(consumer);

	if (journal == NULL)
		return;
	note_works(journal);
	if (journal->kill_ns && spokei_vfiles_is_cut(journal->disk))
		world_of(journal)->virt.halts = true;
}

/* --- faults */

/* Returns a random journal whose process runs, or NULL. */
static struct sim_journal *any_journal(struct sim_world *world)
{
	struct sim_journals *all = world->journals;
	struct sim_journal *journal = &all->of[sim_throw(&all->dice) % SIM_CONSUMERS];

	return journal->disk && journal->by->process.engine && journal->kill_ns == 0 ? journal
										     : NULL;
}

static bool die(struct sim_world *world, bool power)
{
	struct sim_journal *journal = any_journal(world);

	if (journal == NULL)
		return false;
	journal->loses_power = power;
	if (sim_chance(dice_of(journal), 500))
		cut(journal, sim_between(dice_of(journal), 0, STEPS_MAX),
		    world->virt.now_ns + sim_magnitude(dice_of(journal), MS, 300 * MS));
	else
		kill_now(journal);
	return true;
}

static bool kill_one(struct sim_world *world)
{
	return die(world, false);
}

static bool lose_power(struct sim_world *world)
{
	return die(world, true);
}

static bool close_one(struct sim_world *world)
{
	struct sim_journal *journal = any_journal(world);
	struct sim_process *process;

	if (journal == NULL || journal->by->consumer == NULL || journal->by->process.draining ||
	    journal->by->process.virt.held_until_ns > world->virt.now_ns)
		return false;
	process = &journal->by->process;
	switch (sim_throw(dice_of(journal)) % 3) {
	case 0:
		sim_consumer_free(journal->by);
		break;
	case 1:
		sim_drain_begin(process, sim_magnitude(dice_of(journal), MS, 500 * MS));
		process->back_ns = world->virt.now_ns + sim_magnitude(dice_of(journal), MS, SECOND);
		break;
	default:
		sim_process_end(process);
		process->back_ns = world->virt.now_ns +
				   sim_magnitude(dice_of(journal), MS, 200 * MS);
	}
	return true;
}

/* Returns how long faults of a disk last. */
static uint64_t draw_time(struct sim_journal *journal)
{
	return sim_magnitude(dice_of(journal), MS, SECOND);
}

static bool fill(struct sim_world *world)
{
	struct sim_journal *journal = any_journal(world);

	if (journal == NULL)
		return false;
	sim_note(world, "the disk of c% is full", journal->by->process.number, 0, 0, 0);
	journal->full = true;
	hurt(journal, draw_time(journal), RETRY_NS);
	return true;
}

static bool fail_writes(struct sim_world *world)
{
	struct sim_journal *journal = any_journal(world);

	if (journal == NULL)
		return false;
	sim_note(world, "the disk of c% fails writes", journal->by->process.number, 0, 0, 0);
	journal->harm.write_fails = (unsigned)sim_between(dice_of(journal), 1, 4);
	hurt(journal, draw_time(journal), RETRY_NS);
	return true;
}

static bool fail_syncs(struct sim_world *world)
{
	struct sim_journal *journal = any_journal(world);

	if (journal == NULL)
		return false;
	sim_note(world, "the disk of c% fails syncs", journal->by->process.number, 0, 0, 0);
	journal->harm.sync_fails = (unsigned)sim_between(dice_of(journal), 1, 4);
	hurt(journal, draw_time(journal), RETRY_NS);
	journal->unsure_until_ns = journal->hurt_until_ns;
	return true;
}

static bool slow_down(struct sim_world *world)
{
	struct sim_journal *journal = any_journal(world);

	if (journal == NULL)
		return false;
	journal->harm.sync_is_slow = (unsigned)sim_between(dice_of(journal), 1, 3);
	journal->harm.slow_ns = sim_magnitude(dice_of(journal), MS, SLOW_NS);
	sim_note(world, "the disk of c% is slow by % us", journal->by->process.number,
		 journal->harm.slow_ns / 1000, 0, 0);
	hurt(journal, draw_time(journal), SLOW_MOST * journal->harm.slow_ns);
	return true;
}

static bool fail_call(struct sim_world *world)
{
	static const enum spokei_vfiles_call calls[] = {
		SPOKEI_VFILES_OPEN_LOG, SPOKEI_VFILES_ALLOCATE,    SPOKEI_VFILES_WRITE_AT,
		SPOKEI_VFILES_SYNC,     SPOKEI_VFILES_SYNC_FOLDER, SPOKEI_VFILES_LIST,
		SPOKEI_VFILES_REMOVE,   SPOKEI_VFILES_READ,
	};
	static const int errors[] = { -EIO, -ENOSPC, -EMFILE, -EACCES };
	struct sim_journal *journal = any_journal(world);
	unsigned call;

	if (journal == NULL)
		return false;
	call = (unsigned)(sim_throw(dice_of(journal)) % (sizeof(calls) / sizeof(calls[0])));
	sim_note(world, "the disk of c% fails calls of kind %", journal->by->process.number,
		 calls[call], 0, 0);
	spokei_vfiles_fail(journal->disk, calls[call],
			   (unsigned)sim_between(dice_of(journal), 1, 3),
			   errors[sim_throw(dice_of(journal)) % 4]);
	hurt(journal, draw_time(journal), RETRY_NS);
	if (calls[call] == SPOKEI_VFILES_SYNC || calls[call] == SPOKEI_VFILES_SYNC_FOLDER)
		journal->unsure_until_ns = journal->hurt_until_ns;
	return true;
}

static bool (*const begin[SIM_JOURNAL_FAULTS])(struct sim_world *world) = {
	[SIM_JOURNAL_KILL] = kill_one,     [SIM_JOURNAL_POWER] = lose_power,
	[SIM_JOURNAL_CLOSE] = close_one,   [SIM_JOURNAL_FULL] = fill,
	[SIM_JOURNAL_WRITE] = fail_writes, [SIM_JOURNAL_SYNC] = fail_syncs,
	[SIM_JOURNAL_SLOW] = slow_down,    [SIM_JOURNAL_CALL] = fail_call,
};

static void inject(struct sim_world *world)
{
	struct sim_journals *all = world->journals;
	enum sim_journal_fault fault;

	all->next_fault_ns = world->virt.now_ns +
			     sim_between(&all->dice, 1, 2 * world->plan->journals.fault_every_ns);
	do
		fault = (enum sim_journal_fault)(sim_throw(&all->dice) % SIM_JOURNAL_FAULTS);
	while (!(world->plan->journals.faults & 1u << fault));
	if (begin[fault] == NULL || !begin[fault](world)) /* flips come with deaths */
		return;
	world->counts.faults++;
	world->counts.of_journal_fault[fault]++;
}

uint64_t sim_journal_slow_ns(const struct sim_process *process)
{
	const struct sim_journal *journal =
		sim_is_provider(process) ? NULL
					 : sim_journal_of((const struct sim_consumer *)process);

	return journal && journal->was_hurt ? SLOW_MOST * SLOW_NS : 0;
}

uint64_t sim_journals_next(const struct sim_world *world)
{
	return world->journals ? world->journals->next_fault_ns : UINT64_MAX;
}

void sim_journals_now(struct sim_world *world)
{
	struct sim_journals *all = world->journals;

	if (all == NULL)
		return;
	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		struct sim_journal *journal = &all->of[i];

		if (journal->kill_ns &&
		    (world->virt.now_ns >= journal->kill_ns || spokei_vfiles_is_cut(journal->disk)))
			kill_now(journal);
		if (journal->harm_until_ns && world->virt.now_ns >= journal->harm_until_ns)
			mend(journal);
	}
	if (!world->healing && world->virt.now_ns >= all->next_fault_ns)
		inject(world);
}

void sim_journals_heal(struct sim_world *world)
{
	if (world->journals == NULL)
		return;
	world->journals->next_fault_ns = UINT64_MAX;
	for (unsigned i = 0; i < world->plan->consumer_count; i++) {
		struct sim_journal *journal = &world->journals->of[i];

		if (journal->disk)
			mend(journal);
		if (journal->kill_ns || (journal->unused && journal->by->process.engine))
			kill_now(journal);
	}
}

/* --- the world */

void sim_journals_begin(struct sim_world *world)
{
	static struct sim_journals journals;
	const struct sim_plan *plan = world->plan;

	world->journals = NULL;
	if (!plan->journals.on)
		return;
	memset(&journals, 0, sizeof(journals));
	world->journals = &journals;
	journals.dice = sim_dice_make(plan->seed ^ UINT64_C(0x6a6f75726e616c));
	journals.next_fault_ns = plan->journals.faults
					 ? world->virt.now_ns + plan->journals.fault_every_ns
					 : UINT64_MAX;
	world->counts.journals++;
	for (unsigned i = 0; i < plan->consumer_count; i++) {
		struct sim_journal *journal = &journals.of[i];
		struct sim_consumer *consumer = &world->consumers[i];

		journal->by = consumer;
		if (!plan->consumers[i].journal.on)
			continue;
		journal->disk = spokei_vfiles_new(world->virt.net);
		if (journal->disk == NULL)
			abort();
		spokei_vfiles_harm(journal->disk, plan->seed + i, NULL);
		consumer->process.virt.user.files = journal->disk;
	}
}

void sim_journals_end(struct sim_world *world)
{
	for (unsigned i = 0; world->journals && i < world->plan->consumer_count; i++) {
		struct sim_journal *journal = &world->journals->of[i];

		if (journal->disk)
			sim_book_end(journal);
		spokei_vfiles_free(journal->disk);
		free(journal->promises);
	}
	world->journals = NULL;
}
