/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator: consumers and providers as users have them, several in one program, on a virtual
 * clock and a network in memory in which things go wrong. An oracle that trusts nothing of the
 * product sees every byte and every callback, and judges: oracle.h.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include "tests/sim/frames.h"
#include "tests/sim/plan.h"
#include "tests/support/virtual.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>

enum {
	SIM_CALLS = 400000,
	SIM_HELD = 4096,
	SIM_TRACE = 64,
	SIM_PORT = 20880,
};

struct sim_world;
struct sim_end;

/* --- processes */

/* What consumers and providers have in common: a process with an engine of its own. */
struct sim_process {
	struct virtual_process virt; /* first: its hooks are found by it */
	struct sim_world *world;
	struct spoke_engine *engine; /* NULL: it does not run */
	unsigned number;             /* in the world; names it in traces */
	bool draining;               /* since drain_ns, until it has ended */
	bool ending;                 /* its engine is being freed */
	bool closed;                 /* its consumer or provider was freed */
	uint64_t drain_end_ns;
	uint64_t drain_held_ns; /* of held_ns, when the drain began */
	uint64_t back_ns;       /* when it is started again; 0: it stays */
	uint64_t progress;      /* what it has done, as a number that grows */
	uint64_t held_ns;       /* all the time it stood still */
	/* Of the oracle, about its turns. */
	uint64_t seen_progress;
	uint64_t seen_ns;
	unsigned idle_turns;
	unsigned idle_wakes;
	uint64_t turns;
	uint64_t late_turns;
	struct sim_end *broken; /* what it read there in this turn is no frame; NULL */
};

struct sim_provider {
	struct sim_process process;
	const struct sim_provider_plan *plan;
	struct spoke_provider *provider; /* NULL: freed */
	char address[32];
	unsigned running; /* handlers that have begun and not answered */
};

struct sim_consumer {
	struct sim_process process;
	const struct sim_consumer_plan *plan;
	struct spoke_consumer *consumer; /* NULL: freed */
	struct spoke_method *methods[SIM_MANNERS];
	struct spoke_alarm alarm;
	bool calling;                           /* inside spoke_call() */
	unsigned waits;                         /* calls that have not ended */
	uint64_t first_call;                    /* those before are of one that ended */
	uint64_t connected_ns[SIM_PROVIDERS];   /* when it began to connect there last; 0: never */
	struct sim_stream *last[SIM_PROVIDERS]; /* its newest connection there; NULL: none */
};

/* --- calls */

struct sim_stream;

struct sim_call {
	struct sim_consumer *by;
	struct spoke_call name;
	uint64_t begun_ns; /* of its process's clock */
	uint64_t timeout_ns;
	uint64_t held_ns; /* how long the process had stood still before */
	uint64_t order;   /* among all that happens */
	uint64_t written_ns;
	struct sim_stream *stream; /* where it was written; NULL: nowhere yet */
	struct sim_stream *read;   /* where its provider has read it; NULL: nowhere yet */
	uint8_t manner;
	bool one_way;
	bool cancelled;
	bool wanted;   /* made after all faults: it has to go well */
	bool answered; /* an answer to it was read where it was asked */
	uint8_t ends;
	uint8_t runs;
};

/* A request that a handler keeps. */
struct sim_held {
	struct spoke_request *request;
	struct sim_provider *by;
	uint64_t number;
	uint64_t due_ns;
};

/* --- the world */

struct sim_note {
	uint64_t at_ns;
	const char *text; /* a '%' for each number */
	uint64_t numbers[4];
};

struct sim_counts {
	uint64_t calls;
	uint64_t faults;
	uint64_t ns;
	uint64_t of_fault[SIM_FAULTS];
	uint64_t ok;
	uint64_t closed_silent;
	uint64_t suspects;
};

struct sim_world {
	struct virtual_world virt;
	const struct sim_plan *plan;
	struct sim_dice dice;
	bool verbose;
	bool healing;  /* no more faults */
	bool pieces;   /* after that: reading and writing go in pieces */
	bool tampered; /* bytes were flipped or added by somebody in between */
	uint64_t order;
	struct sim_provider providers[SIM_PROVIDERS];
	struct sim_consumer consumers[SIM_CONSUMERS];
	struct sim_call *calls; /* SIM_CALLS of them; the number of a call is its place, from 1 */
	uint64_t call_count;
	uint64_t oldest; /* calls before this one have ended */
	struct sim_held held[SIM_HELD];
	unsigned held_count;
	struct sim_stream *streams; /* with an end that is open, the newest first */
	struct sim_stream *past;    /* those that were, the same */
	unsigned stream_count;
	uint64_t sleeps; /* of the machine, up to now */
	uint64_t next_fault_ns;
	uint64_t next_look_ns;
	uint64_t clogged_until_ns;
	struct sim_counts counts;
	uint64_t hash; /* of all notes */
	struct sim_note notes[SIM_TRACE];
	uint64_t note_count;
};

static inline struct sim_process *sim_process_at(struct sim_world *world, unsigned number)
{
	return number < SIM_PROVIDERS ? &world->providers[number].process
				      : &world->consumers[number - SIM_PROVIDERS].process;
}

static inline bool sim_is_provider(const struct sim_process *process)
{
	return process->number < SIM_PROVIDERS;
}

/* The clock of a process. */
static inline uint64_t sim_now(const struct sim_process *process)
{
	return process->virt.env.now(process->virt.env.ctx);
}

/* --- world.c */

/* Runs a seed from beginning to end; a violation ends the program. Returns the hash of all that
 * happened, and adds to the counts. */
uint64_t sim_run(const struct sim_plan *plan, bool verbose, struct sim_counts *counts);

/* Lets the world go on until that time. */
void sim_go_on(struct sim_world *world, uint64_t until_ns);

/* Ends the program of a process, which may be asked for anywhere; of one in a turn, after it. */
void sim_process_end(struct sim_process *process);

/* --- heal.c */

/* Ends a process in order; looks whether it has. */
void sim_drain_begin(struct sim_process *process, uint64_t timeout_ns);
void sim_drain_look(struct sim_process *process);

/* After the faults. */
void sim_heal(struct sim_world *world);
void sim_end(struct sim_world *world);

/* --- provider.c, consumer.c, calls.c */

void sim_provider_start(struct sim_provider *provider);
void sim_provider_answer_due(struct sim_world *world, bool all);
void sim_provider_drop_held(struct sim_provider *provider);
void sim_consumer_start(struct sim_consumer *consumer);
void sim_consumer_free(struct sim_consumer *consumer);

/* One call, of a manner that the dice choose; `wanted`: one that is answered at once. */
void sim_call(struct sim_consumer *consumer, bool wanted);
void sim_cancel_many(struct sim_consumer *consumer);

/* --- faults.c */

void sim_fault_now(struct sim_world *world);
void sim_faults_end(struct sim_world *world);

/* A callback of this process may take long. */
void sim_fault_stall(struct sim_process *process);

/* faults_wire.c: those that happen to one connection. Return whether there was one. */
bool sim_fault_stream(struct sim_world *world, enum sim_fault fault);
void sim_fault_streams_look(struct sim_world *world);
void sim_fault_streams_end(struct sim_world *world);

/* --- segments.c: the same bytes, cut otherwise. */
void sim_segments(uint64_t seed);

/* --- trace.c */

/* Notes what happened; each '%' of the text is a number, "%x" its name among those of kind x. */
void sim_note(struct sim_world *world, const char *text, uint64_t a, uint64_t b, uint64_t c,
	      uint64_t d);

/* The world that is running now, for those who have no other way to it; NULL: none. */
extern struct sim_world *sim_world_now;

/* How this program was called. */
extern const char *sim_program;

/* An invariant does not hold: says which, how to see it again and what happened last, and ends the
 * program. */
__attribute__((format(printf, 3, 4), noreturn)) void sim_violation(struct sim_world *world,
								   const char *invariant,
								   const char *format, ...);

/* Says the same of something else that ends the program; only once, and only of a world. */
void sim_report(const char *what);

/* --- names.c */

/* The name of a number of this kind, never NULL; NULL: there is no such kind. */
const char *sim_name(char kind, uint64_t number);

/* --- crash.c */

/* From now on what kills the program is reported. */
void sim_crash_begin(void);

/* The program has to do this again, or to end, within so many seconds; 0: it need not. */
void sim_crash_watch(uint64_t seconds);

#endif
