/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator: several consumers and providers, as users create them, in one program, on a
 * virtual clock and an in-memory network with injected faults. The oracle (oracle.h) observes every
 * byte and every callback, trusts nothing that the product reports, and checks the invariants.
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
	SIM_IDS = 4096, /* a power of two */
	SIM_TRACE = 64,
	SIM_PORT = 20880,
	SIM_LINES = 3,       /* most connections of a consumer to a provider */
	SIM_ENTRIES = 64,    /* of the registry */
	SIM_ERRANDS = 256,   /* requests to the registry in flight */
	SIM_URL = 512,       /* bytes of a provider's URL, with the NUL */
	SIM_BUCKETS = 128,   /* of a window; 10 s take a hundred */
	SIM_SETTLEMENTS = 8, /* ways in which a ticket can be settled */
};

struct spokei_link;
struct sim_world;
struct sim_end;
struct sim_store;
struct sim_chains;
struct sim_journals;

/* --- processes */

/* Common part of consumers and providers: a process with an engine of its own. */
struct sim_process {
	struct spokei_world_process virt; /* first member: hooks cast it to the process */
	struct sim_world *world;
	struct spoke_engine *engine; /* NULL: not running */
	unsigned number;             /* index in the world; names the process in traces */
	bool draining;               /* draining has begun and not ended */
	bool ending;                 /* its engine is being freed */
	bool closed;                 /* its consumer or provider was freed */
	bool dying; /* it is being killed: what its callbacks tell is known to nobody */
	uint64_t drain_end_ns;
	uint64_t drain_held_ns; /* value of held_ns when the drain began */
	uint64_t back_ns;       /* time of the restart; 0: none */
	uint64_t progress;      /* a number that grows with everything the process does */
	uint64_t held_ns;       /* total time for which the process was frozen */
	uint64_t frozen_ns;     /* when the last freeze began */
	uint64_t flooded_ns;    /* part of held_ns: it read from peers that flooded it */
	/* Used by the oracle's checks of turns. */
	uint64_t seen_progress;
	uint64_t seen_ns;
	unsigned idle_turns;
	unsigned idle_wakes;
	uint64_t turns;
	uint64_t late_turns;
	uint64_t late_ns;        /* time of the last of them */
	uint64_t late_before_ns; /* the last of them at an earlier time */
	uint64_t due_ns;         /* of its next timer, as the last turn ended */
	unsigned certs;          /* the certificates that it uses */
	struct sim_end
		*broken; /* the connection on which this turn read an invalid frame; NULL: none */
};

/* The calls that a provider makes. */
struct sim_relay {
	struct spoke_consumer *consumer; /* NULL: none, or freed */
	struct spoke_method *method;
	unsigned waits;  /* inner calls that have not ended */
	unsigned doomed; /* those of them whose requests have no caller any more */
	unsigned fresh;  /* of all such inner calls: since the end of the last turn */
};

struct sim_provider {
	struct sim_process process;
	struct sim_relay relay;
	const struct sim_provider_plan *plan;
	struct spoke_provider *provider; /* NULL: freed */
	struct spoke_fence *fence;       /* NULL: none */
	uint64_t fences[SIM_NAMES];      /* highest number of a request that was run; 0: none */
	uint64_t seen[SIM_NAMES];        /* the same of a request that was read */
	char address[32];
	uint64_t delay_until_ns; /* it is not online before this, on its clock */
	uint64_t next_step_ns;   /* when it steps aside or comes back; 0: never */
	bool aside;
	unsigned steps;    /* how often it has stepped aside or come back since it started */
	size_t remembered; /* requests, as seen after the last turn */
	uint16_t starts;   /* how often it was started; each start has a memory of its own */
	unsigned running;  /* handlers that have begun and not replied */
	/* Access lists. */
	struct spoke_config *config; /* NULL: none */
	unsigned access_number;      /* the lists that it uses */
	uint64_t shut_ns;            /* since when it shuts consumers out, on its clock, without the
					   time for which it was frozen; 0: it does not */
	/* When it was told of the last certificates, and when it was seen to use them, without the
	 * time for which it was frozen; 0: it has begun with them. */
	uint64_t told_ns;
	uint64_t renewed_ns;
};

/* Calls and retries of a consumer in the last seconds, in steps of 0.1 s of its clock. */
struct sim_window {
	uint64_t step; /* the current step */
	uint32_t calls[SIM_BUCKETS];
	uint32_t retries[SIM_BUCKETS];
	uint64_t retries_seen; /* last value of the engine's counter of retries */
};

/* How calls end, as the engine counts them. */
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

/* One that asks for a lease, holds it for a while, acts and gives it back, again and again. */
struct sim_worker {
	struct spoke_alarm alarm;
	struct sim_consumer *by;
	unsigned number; /* index in the consumer */
	unsigned name;   /* of the lease */
	struct spoke_lease lease;
	bool holds;     /* the lease was told as held, and has not ended */
	bool asks;      /* the ask was not answered yet */
	bool releases;  /* the end of a release was not told yet */
	bool cancelled; /* the ask was */
	bool fixed;
	uint64_t fence;
	uint64_t grant;    /* index in the oracle's list of grants, plus 1; 0: none */
	uint64_t wait_ns;  /* of the ask; 0: it does not wait */
	uint64_t asked_ns; /* on the clock of its process */
	uint64_t asked_held_ns;
	uint64_t sleeps; /* of the machine, when it asked */
	uint64_t end_ns; /* of its validity, as seen between turns; 0: not seen */
};

/* What the engine counts of leases. */
enum sim_lease_count {
	SIM_LEASES_ASKED,
	SIM_LEASES_HELD,
	SIM_LEASES_FAILED,
	SIM_LEASES_RELEASED,
	SIM_LEASES_LOST,
	SIM_LEASE_COUNTS,
};

struct sim_consumer {
	struct sim_process process;
	const struct sim_consumer_plan *plan;
	char from[24];                   /* its address in secure worlds */
	struct spoke_consumer *consumer; /* NULL: freed */
	struct spoke_method *methods[SIM_MANNERS];
	struct spoke_method *unlimited; /* like methods[0], without limits */
	struct spoke_alarm alarm;
	bool calling; /* inside spoke_call() */
	bool several; /* events of one address may come from several connections */
	bool was_silent[SIM_PROVIDERS]; /* the last connection was closed for silence */
	unsigned waits;                 /* calls that have not ended */
	uint64_t first_call;            /* earlier calls belong to a previous consumer */
	uint64_t connected_ns[SIM_PROVIDERS][SIM_LINES]; /* when connects to a provider began; the
							    newest first; 0: never */
	struct sim_stream *last[SIM_PROVIDERS]; /* newest connection to the provider; NULL: none */
	uint32_t tickets[SIM_TICKETS];          /* numbers of calls, the oldest first */
	unsigned ticket_count;
	/* Counted since the engine was created. */
	uint64_t made;
	uint64_t ended[SIM_ENDS];
	uint64_t settled[SIM_SETTLEMENTS];
	uint64_t asked;   /* attempts counted by the engine, the first of each call excluded */
	uint64_t repeats; /* requests written after the first one of their call */
	struct sim_window window;
	bool listed; /* the consumer has received a list that is not empty */
	/* Leases. */
	struct spoke_leases *leases; /* NULL: freed, or none */
	struct sim_worker workers[SIM_WORKERS];
	bool asking;                            /* inside spoke_lease_ask() */
	unsigned clients;                       /* times that leases were made */
	uint64_t leases_seen[SIM_LEASE_COUNTS]; /* since the engine was created */
};

/* --- calls */

struct sim_stream;

struct sim_call {
	struct sim_consumer *by;
	struct spoke_call name;
	uint64_t begun_ns; /* on the clock of its process */
	uint64_t timeout_ns;
	uint64_t held_ns;    /* value of the process's held_ns when the call began */
	uint64_t flooded_ns; /* ... and of its flooded_ns */
	uint64_t order;      /* sequence number of the call among all events */
	uint64_t written_ns;
	struct sim_stream *stream; /* connection of the last request; NULL: none yet */
	struct sim_stream
		*read;       /* connection on which a provider read the call last; NULL: none yet */
	uint64_t read_id;    /* request id on that connection */
	uint64_t refused_ns; /* when the last refusal was read; 0: never */
	uint64_t id;         /* id in the call's requests, ... */
	uint64_t hash;       /* ... and its first half; both 0: none yet */
	/* Of the last request that was written with an id to an instance that the consumer knew,
	 * and that was not refused; 0: none. */
	uint32_t instance;
	uint16_t ran[SIM_PROVIDERS]; /* the start in which each provider ran it with an id; 0: none
				      */
	uint64_t ran_ns[SIM_PROVIDERS]; /* when it did */
	struct spoke_ticket ticket;
	uint8_t manner;
	bool one_way;
	bool cancelled;
	bool wanted;   /* made after all faults: the call must succeed */
	bool answered; /* an answer to the last request was read */
	bool succeeded;
	bool murky; /* an answer came from a connection with altered bytes */
	uint8_t ends;
	uint8_t writes;        /* requests written */
	uint8_t marked;        /* those of them that were marked as repeats */
	uint8_t refusals;      /* refusals that the consumer has read, ... */
	uint8_t refusals_then; /* ... and when a request was written last */
	uint8_t runs;
	uint8_t attempts; /* a bit for each attempt number that was written */
	uint8_t places;   /* a bit for each provider to which the call was written */
	bool deferred;    /* the call has or had a ticket */
	bool ticket_cancelled;
	uint64_t cancelled_turn; /* turn in which the ticket was cancelled */
	uint64_t ahead_ns;       /* of the wall clock before that of the process, at its begin */
	uint32_t promise;        /* place in the book of its consumer's journal, plus 1; 0: none */
	uint8_t lives;           /* ends of processes that its ticket has seen */
	bool lax;                /* its attempts may be counted anew after one of them */
	bool recounted;          /* ... or their numbers only */
	struct sim_worker *worker; /* whose lease the call needs; NULL: none */
	uint64_t grant;            /* of that lease, as in the worker */
	bool fenced;               /* a provider has refused it for its fence number */
	bool asked_then;
	uint8_t settled; /* callbacks of the consumer; settled_then: of the ticket */
	uint8_t settled_then;
};

/* A request whose answer the handler delays. */
struct sim_held {
	struct spoke_request *request;
	struct sim_provider *by;
	struct sim_stream *stream; /* connection of the request; NULL: not known */
	uint64_t number;
	uint64_t due_ns;
};

/* --- the registry */

/* A process that has opened the registry. */
struct sim_session {
	struct sim_world *world;
	struct sim_process *process; /* NULL: unused */
	struct spoke_engine *engine;
	const struct spoke_registry_up *up;
	void *arg;
	struct spoke_registry_entry *subscription; /* NULL: none */
	struct spoke_alarm news;
	uint64_t tell_ns;             /* when the next list is sent; 0: the last one is current */
	const struct sim_entry *lost; /* to be reported as lost; NULL: none */
	bool lost_all;                /* ... all of them */
	unsigned lie;                 /* the next list: 0: correct, 1: empty, 2: incomplete */
};

struct sim_entry {
	struct sim_session *by; /* NULL and until_ns 0: unused */
	uint64_t until_ns;      /* the entry of an ended session expires then */
	struct spoke_registry_entry *of;
	char url[SIM_URL];
};

/* A request to the registry in flight. */
struct sim_errand {
	struct spoke_alarm alarm;
	struct sim_session *session; /* NULL: unused */
	struct spoke_registry_entry *of;
	bool wanted; /* false: the entry is to be removed */
	bool quiet;  /* its outcome is not reported, because a newer request has failed */
};

struct sim_registry {
	struct sim_session sessions[SIM_PROCESSES];
	struct sim_entry entries[SIM_ENTRIES];
	struct sim_errand errands[SIM_ERRANDS];
	uint64_t down_until_ns; /* every request fails until then */
	uint64_t mute_until_ns; /* requests are answered only then */
	uint64_t slow_ns;       /* extra latency of answers */
	unsigned fail;          /* number of requests that will fail */
};

/* --- the world */

struct sim_note {
	uint64_t at_ns;
	const char *text; /* format with a '%' for each number */
	uint64_t numbers[4];
};

struct sim_counts {
	uint64_t calls;
	uint64_t faults;
	uint64_t floods;
	uint64_t ns;
	uint64_t of_fault[SIM_FAULTS];
	uint64_t ok;
	uint64_t closed_silent;
	uint64_t suspects;
	uint64_t tickets;
	uint64_t retries;
	uint64_t lists;
	uint64_t bytes_most; /* largest memory use of a consumer's process */
	uint64_t leases;     /* asked for */
	uint64_t held;       /* leases that were held */
	uint64_t lost;
	uint64_t of_store_fault[SIM_STORE_FAULTS];
	uint64_t secure; /* worlds */
	uint64_t shares; /* worlds with shared memory */
	uint64_t tls;
	uint64_t veiled; /* bytes read over TLS */
	uint64_t renewed;
	uint64_t shut;
	uint64_t forbidden;
	uint64_t late; /* requests refused by "executes = auto" */
	uint64_t inner;
	uint64_t inner_runs;
	uint64_t inner_gone;    /* inner calls that ended because their callers were gone */
	uint64_t inner_refused; /* not begun because of that */
	uint64_t journals;      /* worlds */
	uint64_t deaths;        /* processes with journals that were killed, or lost power */
	uint64_t restored;      /* tickets of earlier lives */
	uint64_t of_journal_fault[SIM_JOURNAL_FAULTS];
};

struct sim_world {
	struct spokei_world virt;
	const struct sim_plan *plan;
	struct sim_dice dice;
	struct sim_dice lag_dice; /* for threads that are late */
	struct sim_dice flood_dice;
	bool verbose;
	bool healing;  /* no more faults are injected */
	bool pieces;   /* set after the faults: reads and writes are split into pieces */
	bool tampered; /* bytes were flipped or added on the way */
	uint64_t order;
	uint32_t ids[SIM_IDS]; /* numbers of calls by their ids; 0: none */
	struct sim_provider providers[SIM_PROVIDERS];
	struct sim_consumer consumers[SIM_CONSUMERS];
	struct sim_call *calls; /* array of SIM_CALLS; the number of a call is its index + 1 */
	uint64_t call_count;
	uint64_t oldest; /* all calls before this one have ended */
	struct sim_registry registry;
	struct sim_store *store;       /* of leases; NULL: none */
	struct sim_chains *chains;     /* NULL: providers make no calls */
	struct sim_journals *journals; /* NULL: none */
	uint64_t begun_ns;
	/* Access lists and certificates: numbers of the present lists and certificates, and when
	 * consumers were shut out and let in again; 0: not yet. */
	unsigned access_number;
	unsigned certs;
	uint64_t shut_ns;
	uint64_t open_ns;
	uint32_t retired; /* a bit for each provider that was stopped for good */
	bool away;        /* the outage has begun and is not over */
	struct sim_held held[SIM_HELD];
	unsigned held_count;
	struct sim_stream *streams; /* streams with an open end, the newest first */
	struct sim_stream *past;    /* streams without one, the newest first */
	unsigned stream_count;
	uint64_t sleeps; /* number of sleeps of the machine */
	uint64_t next_fault_ns;
	uint64_t next_look_ns;
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

/* Returns the time on the clock of a process. */
static inline uint64_t sim_now(const struct sim_process *process)
{
	return process->virt.env.now(process->virt.env.ctx);
}

/* --- world.c */

/* Runs a seed from beginning to end; a violation ends the program. Adds to `counts` and returns a
 * hash of the history. */
uint64_t sim_run(const struct sim_plan *plan, bool verbose, struct sim_counts *counts);

/* Runs the world until the given time. */
void sim_go_on(struct sim_world *world, uint64_t until_ns);

/* Ends the program of a process. May be called anywhere; if the process is in a turn, it ends after
 * the turn. */
void sim_process_end(struct sim_process *process);

/* --- heal.c */

/* Drain a process; check whether the drain has ended. */
void sim_drain_begin(struct sim_process *process, uint64_t timeout_ns);
void sim_drain_look(struct sim_process *process);

/* Check recovery after the faults, and end all processes. */
void sim_heal(struct sim_world *world);
void sim_end(struct sim_world *world);

/* --- provider.c, consumer.c, calls.c */

void sim_provider_start(struct sim_provider *provider);

/* Takes the provider aside, or back, when its time has come. Until the end of the world. */
void sim_provider_step(struct sim_provider *provider);

/* Returns whether it may ask to be listed. */
bool sim_provider_is_online(const struct sim_provider *provider);
void sim_provider_answer_due(struct sim_world *world, bool all);
void sim_provider_drop_held(struct sim_provider *provider);

/* Keeps a request for `ns`, or until sim_provider_answer(); or answers it now. */
void sim_provider_hold(const struct sim_held *what, uint64_t ns);
void sim_provider_answer(struct sim_world *world, const struct spoke_request *request);
void sim_provider_answer_now(const struct sim_held *what);
void sim_consumer_start(struct sim_consumer *consumer);
void sim_consumer_free(struct sim_consumer *consumer);

/* Makes one call with a random behaviour of the handler; if `wanted`, one that is answered at once
 * and must succeed. */
void sim_call(struct sim_consumer *consumer, bool wanted);
void sim_cancel_many(struct sim_consumer *consumer);

/* tickets.c: callbacks for the options `settled` and `settled_arg`, and calls of the ticket
 * functions. */
void sim_ticket_settled(void *arg, const struct spoke_ticket_result *settled);
void sim_ticket_begin(struct sim_call *call);
void sim_tickets_cancel(struct sim_consumer *consumer);

/* workers.c: leases of a consumer. */

/* Makes the leases and starts the workers, if the plan has leases. Returns false without memory. */
bool sim_workers_start(struct sim_consumer *consumer);

/* Forgets the workers of a process that has ended. */
void sim_workers_reset(struct sim_consumer *consumer);
void sim_workers_free(struct sim_consumer *consumer);

/* Returns a worker of the consumer that holds a lease, or NULL. */
struct sim_worker *sim_workers_holder(struct sim_consumer *consumer);

/* Checks after the faults that leases can be had. */
void sim_workers_heal(struct sim_world *world);

/* store.c: the store of leases and its faults. */
void sim_store_start(struct sim_world *world);
void sim_store_stop(struct sim_world *world);
void sim_store_look(struct sim_world *world);
void sim_store_heal(struct sim_world *world);
void sim_store_fault(struct sim_world *world);

/* Lets nothing through any more between a process and the store, as if the process was killed. */
void sim_store_sever(struct sim_process *process);

/* The machine of the consumers sleeps; that of the store does not. */
void sim_store_sleep(struct sim_world *world, uint64_t ns);

/* registry.c */
extern const struct spoke_registry sim_registry_kind;

bool sim_registry_fault(struct sim_world *world);
void sim_registry_look(struct sim_world *world);
void sim_registry_heal(struct sim_world *world);

/* access_list.c: lists and tokens by which providers shut consumers out. */
void sim_access_begin(struct sim_world *world);
void sim_access_look(struct sim_world *world);
void sim_access_heal(struct sim_world *world);

/* Loads the lists of a provider that starts. Returns false without memory. */
bool sim_access_load(struct sim_provider *provider);

/* Returns the token of a consumer, or NULL. */
const char *sim_access_token(const struct sim_consumer *consumer);

/* oracle_secure.c: has a link use shared memory, with its bytes observed. */
void sim_share(const struct sim_world *world, struct spokei_link *link);

/* secure.c: certificates. */

/* Writes the files. Without TLS in the build, the world has none. */
void sim_secure_begin(struct sim_world *world);

/* Replaces all certificates at their time, and has the processes use them. */
void sim_secure_look(struct sim_world *world);

/* Returns the options of a process that starts, valid until the next call; NULL: plain links. */
const struct spoke_tls_options *sim_secure_options(struct sim_process *process);

/* certs.c, or certs_absent.c without TLS in the build. */
enum sim_cert {
	SIM_CERT_AUTHORITY,
	SIM_CERT_PROVIDER,
	SIM_CERT_PROVIDER_KEY,
	SIM_CERT_CONSUMERS, /* certificate and key of each */
	SIM_CERTS = SIM_CERT_CONSUMERS + 2 * SIM_CONSUMERS,
};

/* Returns the text of a file, of the first or second set; NULL: there is no TLS. */
const char *sim_cert(unsigned which, unsigned set);

/* --- faults.c */

void sim_fault_now(struct sim_world *world);
void sim_faults_end(struct sim_world *world);

/* May freeze the process inside the current callback. */
void sim_fault_stall(struct sim_process *process);

/* faults_wire.c: faults of one connection. Return whether a fault was injected. */
bool sim_fault_stream(struct sim_world *world, enum sim_fault fault);
void sim_fault_streams_look(struct sim_world *world);

/* floods.c: providers that send heartbeats without end for a while. They begin; the turn of a
 * process is over; a connection is read; they end. */
void sim_floods_look(struct sim_world *world);
void sim_floods_turned(struct sim_process *process);
void sim_floods_read(struct sim_end *end);
void sim_floods_end(struct sim_world *world);

/* faults.c: freezes a process, maybe inside a turn. */
void sim_freeze(struct sim_process *process, uint64_t ns);
void sim_fault_streams_end(struct sim_world *world);

/* segments.c: checks that a provider's behaviour is independent of how its input is split. */
void sim_segments(uint64_t seed);

/* --- trace.c */

/* Records an event. Each '%' of the text stands for a number; "%x" prints its name in the table x
 * of names.c. */
void sim_note(struct sim_world *world, const char *text, uint64_t a, uint64_t b, uint64_t c,
	      uint64_t d);

/* The running world, for functions that have no pointer to it; NULL: none. */
extern struct sim_world *sim_world_now;

/* The program's name, argv[0]. */
extern const char *sim_program;

/* Reports that an invariant does not hold, and ends the program: prints the last events, the
 * details, the invariant's sentence, and the command that repeats the run. */
__attribute__((format(printf, 3, 4), noreturn)) void sim_violation(struct sim_world *world,
								   enum sim_invariant invariant,
								   const char *format, ...);

/* Reports any other end of the program in the same way; only once, and only while a world runs. */
void sim_report(const char *what);

/* --- names.c */

/* Returns the name of a number in the table `kind`, never NULL, or NULL if there is no such table.
 */
const char *sim_name(char kind, uint64_t number);

/* --- crash.c */

/* Installs signal handlers that report assertions and crashes. */
void sim_crash_begin(void);

/* Limits the CPU time until the next call to `seconds`; 0 removes the limit. */
void sim_crash_watch(uint64_t seconds);

#endif
