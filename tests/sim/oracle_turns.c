/* SPDX-License-Identifier: Apache-2.0 */
/* Checks turns of the loop: each turn has a reason, and no connection starves. */
#include "tests/sim/oracle.h"

#include "core/engine/engine.h"
#include "tests/sim/journals.h"
#include "tests/sim/store.h"

#include <spoke/stats.h>
#include <spoke/wheel.h>

#define IDLE_TURNS 10u  /* turns without progress at one time */
#define IDLE_WAKES 100u /* turns without progress in a row */
#define READS 2u        /* of one connection in a turn: one, and one more before a timeout */
#define READS_LATE 16u  /* ... and more of them in a late turn */
#define HUNGRY 40u      /* turns; the virtual loop reports a random part of the ready descriptors */
#define BOOKS_EVERY 16u /* turns */

void sim_turns_read(struct sim_end *end)
{
	struct sim_process *process = end->process;
	unsigned most = READS;

	if (process->engine && spokei_engine_late(process->engine))
		most += READS_LATE;
	if (end->read_turn != process->turns + 1) {
		end->read_turn = process->turns + 1;
		end->reads = 0;
	}
	/* Over shared memory each write looks at the bells: after each read, and at the turn's end.
	 */
	if (process->world->plan->shares)
		most += most + 1;
	if (++end->reads > most)
		sim_violation(process->world, SIM_L4, "connection %u is read %u times in a turn",
			      end->stream->number, end->reads);
	end->hungry_turn = 0;
	sim_floods_read(end);
}

static void check_spin(struct sim_process *process)
{
	struct sim_world *world = process->world;
	bool same_time = process->seen_ns == world->virt.now_ns;

	if (process->progress != process->seen_progress) {
		process->idle_turns = 0;
		process->idle_wakes = 0;
	} else {
		process->idle_turns = same_time ? process->idle_turns + 1 : 0;
		process->idle_wakes++;
	}
	process->seen_progress = process->progress;
	process->seen_ns = world->virt.now_ns;
	if (process->idle_turns > IDLE_TURNS || process->idle_wakes > IDLE_WAKES)
		sim_violation(world, SIM_L3, "process %u turns without progress", process->number);
}

/* Returns whether this side may have paused reading because of back-pressure. */
static bool may_pause(const struct sim_end *end)
{
	return end->process->closed ||
	       (sim_is_provider(end->process) &&
		((const struct sim_provider *)end->process)->plan->out_high > 0);
}

/* Counts turns in which bytes wait to be read. Also applies drain notices, which count from the end
 * of a turn. */
static void check_ends(struct sim_process *process)
{
	struct sim_world *world = process->world;

	for (struct sim_stream *one = world->streams; one; one = one->next) {
		for (unsigned i = 0; i < 2 && !one->over; i++) {
			struct sim_end *end = &one->ends[i];

			if (end->process != process || end->fd < 0)
				continue;
			sim_ask_readonly(end);
			/* What arrives before the handshake has ended cannot be read yet, and bells
			 * after the peer's end tell nothing. */
			if (end->arrived == end->taken || may_pause(end) ||
			    (world->plan->shares && end->ended) ||
			    !(spokei_vnet_ready(world->virt.net, end->fd) & SPOKE_IO_READ))
				continue;
			if (end->hungry_turn == 0)
				end->hungry_turn = process->turns;
			if (process->turns - end->hungry_turn <= HUNGRY)
				continue;
			/* Large answers on a slow connection may fill its output at any limit, and
			 * a handshake has a deadline of its own. */
			if (sim_books_deaf(end))
				end->hungry_turn = process->turns;
			else
				sim_violation(world, SIM_L4,
					      "connection %u was not read for %u turns",
					      one->number, HUNGRY);
		}
	}
}

static void check_broken(struct sim_process *process)
{
	const struct sim_end *end = process->broken;

	process->broken = NULL;
	if (end && end->fd >= 0 && !may_pause(end))
		sim_violation(process->world, SIM_S16,
			      "connection %u is not closed after a broken frame",
			      end->stream->number);
}

/* Resets the count of idle turns after attempts that failed at once: they are the reason for a
 * turn. Many turns at one time remain a violation. */
static void check_retries(struct sim_consumer *consumer)
{
	uint64_t asked = spoke_stat_get(consumer->process.engine, SPOKE_STAT_RETRIES) +
			 spoke_stat_get(consumer->process.engine, SPOKE_STAT_HEDGES) +
			 spoke_stat_get(consumer->process.engine, SPOKE_STAT_RETRIES_UNFUNDED);

	if (asked != consumer->asked)
		consumer->process.idle_wakes = 0;
	consumer->asked = asked;
	sim_window_look(consumer);
}

/*
 * Returns whether the turn is late although the loop does not know it. A loop that was asked for
 * another round at once is not told when its engine is due: a freeze before that round makes it
 * late, and only the engine knows by how much. It is not late by more than the freeze.
 */
static bool is_late_by_freeze(const struct sim_process *process)
{
	const uint64_t now_ns = process->world->virt.now_ns;
	const uint64_t until_ns = sim_judges_until(process);

	return process->late_ns != now_ns && process->virt.held_until_ns >= now_ns &&
	       now_ns - process->frozen_ns > until_ns && process->engine &&
	       process->engine->late_ns > until_ns;
}

static void note_late(struct sim_process *process)
{
	if (process->virt.late_ns <= sim_judges_until(process) && !is_late_by_freeze(process))
		return;
	process->late_turns++;
	if (process->late_ns != process->world->virt.now_ns)
		process->late_before_ns = process->late_ns;
	process->late_ns = process->world->virt.now_ns;
}

static void turned(struct sim_provider *provider)
{
	sim_repeats_turned(provider);
	sim_parents_turned(provider);
}

void sim_turned(struct spokei_world_process *virt)
{
	struct sim_process *process = (struct sim_process *)virt;

	process->turns++;
	note_late(process);
	sim_floods_turned(process);
	if (!sim_is_provider(process) && process->engine) {
		check_retries((struct sim_consumer *)process);
		sim_journal_turned((struct sim_consumer *)process);
		sim_leases_turned((struct sim_consumer *)process);
	}
	if (sim_is_provider(process))
		turned((struct sim_provider *)process);
	check_spin(process);
	check_ends(process);
	sim_books_timers(process);
	if (process->broken)
		check_broken(process);
	process->due_ns = process->engine ? spoke_wheel_next(spoke_engine_wheel(process->engine))
					  : 0;
	if (process->turns % BOOKS_EVERY == 0)
		sim_books_check(process);
}
