/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator: consumers and providers as users have them, several in one program, on a virtual
 * clock and a network in memory in which things go wrong. An oracle that trusts nothing of the
 * product sees every byte and every callback, and judges: oracle.h.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include "core/virtual/world.h"
#include "tests/sim/frames.h"
#include "tests/sim/invariants.h"
#include "tests/sim/plan.h"

#include <spoke/consumer.h>
#include <spoke/provider.h>
#include <spoke/registry.h>

enum {
	SIM_CALLS = 700000,
	SIM_HELD = 4096,
	SIM_TRACE = 64,
	SIM_PORT = 20880,
	SIM_LINES = 3,       /* connections of a consumer to a provider, at most */
	SIM_ENTRIES = 64,    /* of the registry */
	SIM_ERRANDS = 256,   /* ... under way */
	SIM_URL = 512,       /* bytes of a provider's, with the NUL */
	SIM_BUCKETS = 128,   /* of a window; 10 s are a hundred */
	SIM_SETTLEMENTS = 6, /* ways in which a ticket ends */
};

struct sim_world;
struct sim_end;

/* --- processes */

/* What consumers and providers have in common: a process with an engine of its own. */
struct sim_process {
	struct spokei_world_process virt; /* first: its hooks are found by it */
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

/* What a consumer did of late, in steps of a tenth of a second of its clock. */
struct sim_window {
	uint64_t step; /* the present one */
	uint32_t calls[SIM_BUCKETS];
	uint32_t retries[SIM_BUCKETS];
	uint64_t retries_seen; /* of its engine's count */
};

/* How calls end, as engines count them. */
enum sim_end_kind {
	SIM_END_OK,
	SIM_END_REMOTE,
	SIM_END_TIMEOUT_UNSENT,
	SIM_END_TIMEOUT,
	SIM_END_LOST,
	SIM_END_CANCELED,
	SIM_END_CLOSED,
	SIM_END_FAILED,
	SIM_END_DEFERRED,
	SIM_ENDS,
};

struct sim_consumer {
	struct sim_process process;
	const struct sim_consumer_plan *plan;
	struct spoke_consumer *consumer; /* NULL: freed */
	struct spoke_method *methods[SIM_MANNERS];
	struct spoke_method *unlimited; /* as the first of them */
	struct spoke_alarm alarm;
	bool calling;        /* inside spoke_call() */
	bool several;        /* what is told of a place may be of several connections */
	unsigned waits;      /* calls that have not ended */
	uint64_t first_call; /* those before are of one that ended */
	uint64_t connected_ns[SIM_PROVIDERS][SIM_LINES]; /* when it began to connect there; the
							  * newest first; 0: never */
	struct sim_stream *last[SIM_PROVIDERS]; /* its newest connection there; NULL: none */
	uint32_t tickets[SIM_TICKETS];          /* numbers of calls, the oldest first */
	unsigned ticket_count;
	/* Since its engine was made. */
	uint64_t made;
	uint64_t ended[SIM_ENDS];
	uint64_t settled[SIM_SETTLEMENTS];
	uint64_t asked;   /* attempts that were asked for beside the first */
	uint64_t repeats; /* requests written beyond the first ones of their calls */
	struct sim_window window;
	bool listed; /* it was told of a provider by the registry */
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
	struct sim_stream *stream; /* where it was written last; NULL: nowhere yet */
	struct sim_stream *read;   /* where a provider has read it last; NULL: nowhere yet */
	uint64_t read_id;          /* ... under this id */
	uint64_t refused_ns;       /* when that was read last; 0: never */
	uint64_t id;               /* that its attempts say; 0: none yet */
	struct spoke_ticket ticket;
	uint8_t manner;
	bool one_way;
	bool cancelled;
	bool wanted;   /* made after all faults: it has to go well */
	bool answered; /* an answer to it was read where it was asked last */
	bool murky;    /* somebody in between has said something about it */
	uint8_t ends;
	uint8_t writes;   /* requests */
	uint8_t refusals; /* ... that were refused, as its consumer has read */
	uint8_t runs;
	uint8_t attempts; /* a bit for each number that was written */
	uint8_t places;   /* a bit for each provider that it was written to */
	bool deferred;    /* it has a ticket, or had one */
	bool ticket_cancelled;
	uint64_t cancelled_turn; /* of the ticket */
	bool asked_then;
	uint8_t settled; /* as its consumer was told; and as who asked was */
	uint8_t settled_then;
};

/* A request that a handler keeps. */
struct sim_held {
	struct spoke_request *request;
	struct sim_provider *by;
	struct sim_stream *stream; /* it came by; NULL: not known */
	uint64_t number;
	uint64_t due_ns;
};

/* --- the registry */

/* A process that has opened it. */
struct sim_session {
	struct sim_world *world;
	struct sim_process *process; /* NULL: free */
	struct spoke_engine *engine;
	const struct spoke_registry_up *up;
	void *arg;
	uint64_t subscription; /* 0: none */
	struct spoke_alarm news;
	uint64_t tell_ns; /* when it is told the list; 0: it knows */
	uint64_t lost;    /* intent that it is told to be lost; UINT64_MAX: all are; 0: none */
	unsigned lie;     /* the next list: 0: is true, 1: is empty, 2: lacks some */
};

struct sim_entry {
	struct sim_session *by; /* NULL, and no until_ns: free */
	uint64_t until_ns;      /* who published it is gone: for so long it stays */
	uint64_t intent;
	char url[SIM_URL];
};

/* Something that was asked of it. */
struct sim_errand {
	struct spoke_alarm alarm;
	struct sim_session *session; /* NULL: free */
	uint64_t intent;
	uint64_t which; /* to be withdrawn; 0: none */
	bool subscribes;
	char url[SIM_URL]; /* "": nothing is published */
};

struct sim_registry {
	struct sim_session sessions[SIM_PROCESSES];
	struct sim_entry entries[SIM_ENTRIES];
	struct sim_errand errands[SIM_ERRANDS];
	uint64_t down_until_ns; /* all that is asked fails */
	uint64_t mute_until_ns; /* ... is answered then */
	uint64_t slow_ns;       /* ... is answered so much later */
	unsigned fail;          /* as many more fail */
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
	uint64_t tickets;
	uint64_t retries;
	uint64_t lists;
	uint64_t bytes_most; /* of a consumer's process */
};

struct sim_world {
	struct spokei_world virt;
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
	struct sim_registry registry;
	uint64_t begun_ns;
	uint32_t retired; /* a bit for each provider that is gone for good */
	bool away;        /* the outage has begun, and is not over */
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

static inline uint64_t sim_number(const struct sim_world *world, const struct sim_call *call)
{
	return (uint64_t)(call - world->calls) + 1;
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

/* tickets.c: the options `settled` and `settled_arg`, and what users do with tickets. */
void sim_ticket_settled(void *arg, const struct spoke_ticket_result *settled);
void sim_ticket_begin(struct sim_call *call);
void sim_tickets_cancel(struct sim_consumer *consumer);

/* registry.c */
extern const struct spoke_registry sim_registry_kind;

bool sim_registry_fault(struct sim_world *world);
void sim_registry_look(struct sim_world *world);
void sim_registry_heal(struct sim_world *world);

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

/* Reports that an invariant does not hold, and ends the program: prints the last events, the
 * details, the invariant's sentence, and the command that repeats the run. */
__attribute__((format(printf, 3, 4), noreturn)) void sim_violation(struct sim_world *world,
								   enum sim_invariant invariant,
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
