/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journals of consumers: each such consumer has a disk of its own, is killed or loses power at
 * random moments, and is started again on what its disk has. The oracle keeps a book of the tickets
 * that were told as deferred, through all lives of their consumer.
 */
#ifndef TESTS_SIM_JOURNALS_H
#define TESTS_SIM_JOURNALS_H

#include "core/virtual/files.h"
#include "tests/sim/oracle.h"

/* A ticket that was told. */
struct sim_promise {
	uint32_t number;  /* of its call */
	uint64_t id;      /* of the ticket */
	uint64_t told_ns; /* how long the process had run */
	/* When the call began by wall time, at the earliest and at the latest, and how long the
	 * ticket lasts from then on. */
	uint64_t wall_least_ns;
	uint64_t wall_most_ns;
	uint64_t lasts_ns;
	unsigned told_life;
	unsigned life;    /* in which it goes on; another one: it waits in the journal */
	uint64_t late_ns; /* it must be settled by then, by the clock of the process, in a later
			     life */
	uint64_t late_held_ns; /* value of held_ns then */
	bool open;             /* it was not settled */
	bool ran;              /* it may have run in an earlier life, and must not run twice */
	bool may_be_lost;      /* the loss of power may have taken it */
	uint64_t ended_ns;     /* how long the process had run when its settlement was told */
	unsigned ended_life;
	uint64_t ended_turn;
	bool may_repeat; /* the record of its end may be lost */
	bool damaged;    /* a bit of its journal was flipped */
	bool unsynced;   /* its last record may not be on the disk */
	bool fragile;    /* a failed sync, of which the next process cannot know, may be of it */
};

/* The journal of a consumer. */
struct sim_journal {
	struct sim_consumer *by;
	struct spokei_vfiles *disk; /* NULL: it has none */
	/* The disk makes only some more steps, and then the process ends; at the latest at this
	 * time. 0: it goes on. */
	uint64_t kill_ns;
	bool loses_power; /* ... and power fails */
	bool was_cut;     /* it had no steps left when the process ended */
	unsigned starts;
	/* Turns at one time in which it wrote, and nothing else happened. */
	unsigned writes;
	unsigned works;
	uint64_t works_ns;
	/* Faults of the disk, all until this time; 0: none. */
	uint64_t harm_until_ns;
	struct spokei_vfiles_harm harm;
	bool full;
	bool flipped; /* a bit was flipped, in this life or an earlier one */
	/* From when to when records may not reach the disk for such faults, by the time for which
	 * the process had run; 0: never. */
	uint64_t hurt_from_ns;
	uint64_t hurt_until_ns;
	uint64_t unsure_until_ns; /* the same for syncs */
	bool was_hurt;            /* in this life */
	bool fragile;             /* a process has ended soon after a sync failed */
	/* The book. */
	struct sim_promise *promises;
	unsigned count;
	unsigned room;
	unsigned life;
	uint64_t ahead_ns;       /* of the wall clock before that of the process, at its start */
	bool reads;              /* it has not read its journal yet */
	uint64_t read_ns;        /* when it had, by the clock of the process */
	bool unused;             /* ... and could not */
	uint64_t read_turn;      /* the turn in which it had; 0: it is not used in this life */
	unsigned ended_restored; /* tickets of earlier lives that were settled in this one */
	unsigned strangers;      /* tickets of earlier lives that were never told */
};

struct sim_journals {
	struct sim_dice dice;
	uint64_t next_fault_ns;
	struct sim_journal of[SIM_CONSUMERS];
};

/* Returns the journal of a consumer, or NULL. */
struct sim_journal *sim_journal_of(const struct sim_consumer *consumer);

/* --- journals.c */

void sim_journals_begin(struct sim_world *world);
void sim_journals_end(struct sim_world *world);

/* Before and after spoke_consumer_new() of a consumer that starts. */
void sim_journal_options(struct sim_consumer *consumer, struct spoke_consumer_options *options);
void sim_journal_started(struct sim_consumer *consumer);

/* Writes the URL parameters of the journal. */
void sim_journal_print(const struct sim_consumer *consumer, char *text, size_t size);

/* The process of a consumer has ended. */
void sim_journal_ended(struct sim_consumer *consumer);

/* The turn of a consumer is over. */
void sim_journal_turned(struct sim_consumer *consumer);

/* The process is about to end; one whose disk makes no more steps is killed instead. Returns
 * whether it is dead now. */
bool sim_journal_ends(struct sim_consumer *consumer);

/* Returns how long the disk may hold up the end of the process. */
uint64_t sim_journal_slow_ns(const struct sim_process *process);

/* Returns when the next fault is due. */
uint64_t sim_journals_next(const struct sim_world *world);

/* Injects faults that are due. */
void sim_journals_now(struct sim_world *world);
void sim_journals_heal(struct sim_world *world);

/* --- oracle_journal.c */

/* The process has run for so long, without the time for which it was frozen. */
uint64_t sim_journal_run_ns(const struct sim_journal *journal);

/* A life begins. */
void sim_book_begin(struct sim_journal *journal);

/* The journal was read: the option `recovered`. */
void sim_book_read(void *arg, const struct spoke_recovered *recovered);

/* A ticket was told; `id` is that of the ticket. */
void sim_book_told(struct sim_call *call, uint64_t id);

/* A ticket is settled. Returns whether it is one of an earlier life, and checks it then. */
bool sim_book_settled(struct sim_consumer *consumer, const struct sim_call *call,
		      const struct spoke_ticket_result *settled);

/* Returns the number of the call of a ticket that was told, or 0. */
uint64_t sim_book_call(const struct sim_consumer *consumer, uint64_t id);

/* Returns how long a call that has failed may wait for the journal: until that was read, and then
 * for the time of its setting. */
uint64_t sim_book_wait_ns(const struct sim_call *call);

/* Returns whether the journal has the ticket of the call. */
bool sim_book_has(const struct sim_call *call);

/* A request of the call was written whole. */
void sim_book_written(struct sim_call *call);

/* The process was killed, or lost power, or has ended by itself. */
enum sim_death {
	SIM_DEATH_ENDED,
	SIM_DEATH_KILLED,
	SIM_DEATH_POWER,
};

void sim_book_died(struct sim_journal *journal, enum sim_death death);

/* Checks the tickets of earlier lives. */
void sim_books_of_journals(struct sim_world *world);

/* Returns how many tickets are not settled that wait in the journal or go on from it. */
unsigned sim_book_open(const struct sim_consumer *consumer);

/* Returns how many tickets of earlier lives go on in this one, as the engine counts them. */
unsigned sim_book_restored(const struct sim_consumer *consumer);

/* A bit of the journal was flipped while no process ran. */
void sim_book_damaged(struct sim_journal *journal);

/* Checks the files that are left at the end. */
void sim_book_end(struct sim_journal *journal);

#endif
