/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal of tickets on the engine's thread: of a consumer's, or of the answers that a provider
 * remembers. Records of a turn are gathered in a buffer; when the
 * turn ends, a thread of the pool writes them, at most one write at a time, while the next ones
 * gather. Once the disk has a record as asked, the owner of the ticket is called. The engine never
 * waits for the disk, unless it is being freed.
 *
 * After a failed write or sync the segment is given up, and all tickets are written anew from
 * memory. Each new ticket reserves the room of its own end, so that a full disk refuses new tickets
 * and still takes their ends.
 */
#ifndef SPOKEI_CLUSTER_JOURNAL_JOURNAL_H
#define SPOKEI_CLUSTER_JOURNAL_JOURNAL_H

#include "cluster/journal/log.h"
#include "cluster/journal/replay.h"
#include "core/engine/task.h"

#include <spoke/engine.h>

#define SPOKEI_JOURNAL_GATHER_MAX                                                                  \
	(UINT32_C(1) << 20) /* bytes that wait, without ends of tickets                            \
			     */

enum spokei_durability {
	SPOKEI_DURABILITY_PROCESS, /* written: survives the end of the process */
	SPOKEI_DURABILITY_POWER,   /* synced: survives the loss of power */
	SPOKEI_DURABILITY_NONE,    /* not waited for */
};

/* A ticket in a journal; embedded in its owner. */
struct spokei_journal_ticket {
	struct spoke_list node; /* in the order of their last OPEN; next NULL: not in a journal */
	struct spoke_list waiting; /* in the order of `awaits`; next NULL: it does not wait */
	uint64_t number;
	uint64_t position; /* end of its last OPEN */
	uint64_t awaits;   /* position up to which the records have to be durable */
	uint64_t since_ns; /* when the wait began */
	uint32_t record;   /* bytes of its OPEN */
};

/* The findings of the reading at the start. */
struct spokei_journal_found {
	int error;                                /* SPOKE_OK, or why the journal is not used */
	uint32_t skipped;                         /* records that could not be understood */
	uint64_t took_ns;                         /* reading and taking */
	unsigned char journal[SPOKEI_JOURNAL_ID]; /* its number, if it is used */
	struct spokei_log_report log;
};

struct spokei_journal_up {
	/* Appends an OPEN or ANSWER with the present state of a ticket. Returns as
	 * spokei_record_put_open(). */
	int (*put)(struct spokei_journal_ticket *ticket, struct spokei_buffer *out);
	/* The wait of a ticket is over: 0, its records are durable as asked; ETIMEOUT, they are not
	 * yet; ESYSTEM, they will not be. It may end or wait again meanwhile. */
	void (*waited)(struct spokei_journal_ticket *ticket, int error);
	/* Takes a ticket of an earlier process, and adopts it. Returns 0; SPOKE_ENOMEM or
	 * SPOKE_ECLOSED: it is tried again later; or another error: the ticket stays in the journal
	 * for the next process. */
	int (*restore)(void *arg, const struct spokei_replay_ticket *ticket);
	/* All tickets of earlier processes are taken, or the journal is not used. If it could not
	 * be read, ESYSTEM or ENOMEM, that is tried again: this is called once more in the end. */
	void (*recovered)(void *arg, const struct spokei_journal_found *found);
	/* It is closed: its memory may be freed, after this turn. */
	void (*closed)(void *arg);
};

struct spokei_journal_options {
	const char *folder; /* borrowed until it is closed */
	enum spokei_durability durability;
	uint64_t sync_ns;      /* longest time until a sync of records that are only written */
	uint64_t wait_ns;      /* longest wait of a ticket */
	uint64_t size_max;     /* bytes of the segments from which on no new tickets are taken */
	uint32_t segment_size; /* bytes; 0: SPOKEI_LOG_SEGMENT */
	size_t gather_max;     /* bytes that wait; 0: SPOKEI_JOURNAL_GATHER_MAX */
	bool salvages;         /* uses a damaged journal, without the records that are lost */
	bool no_ends;          /* tickets are forgotten, and reserve no room */
	uint64_t consumer;     /* hash of its name */
};

enum spokei_journal_stage {
	SPOKEI_JOURNAL_READING,
	SPOKEI_JOURNAL_RESTORING,
	SPOKEI_JOURNAL_OPEN,
	SPOKEI_JOURNAL_UNUSABLE, /* damaged, or another's */
	SPOKEI_JOURNAL_CLOSED,
};

struct spokei_journal {
	const struct spokei_journal_up *up;
	void *arg;
	struct spoke_engine *engine;
	struct spokei_journal_options options;
	enum spokei_journal_stage stage;
	bool closing;
	bool broken;      /* the log could not be written, or read, last time */
	bool full;        /* there is no room on the disk for another segment */
	bool tries_spare; /* ... and that is tried again */
	bool pinned;      /* no segment is removed: tickets are left for the next process */
	bool sync_due;
	bool sync_armed;
	bool wait_armed;
	uint32_t failures; /* one after the other */
	int failure;       /* negative errno of the last one; 0: not the system's */
	uint64_t again_ns; /* no work begins before, after a failure */
	uint64_t begun_ns; /* the reading */
	struct spokei_journal_found found;
	struct spokei_replay replay;
	/* The records that wait, and those that are being written. Positions count all bytes of
	 * records. */
	struct spokei_buffer gathered;
	struct spokei_buffer flying;
	uint64_t position; /* end of the gathered ones */
	uint64_t written;
	uint64_t durable;
	uint32_t base;        /* a BASE in `flying` ends the segments before this one; 0: none */
	uint64_t move_before; /* tickets with an OPEN that ends up to here are written anew */
	/* A segment begins once all up to here is written, and tickets are written anew; 0: none.
	 */
	uint64_t renew_at;
	struct spokei_buffer places; /* of segments with live tickets, the oldest first */
	struct spoke_list live;
	struct spoke_list restored; /* before those, until all of them are */
	struct spoke_list waiting;
	uint32_t count;      /* live tickets */
	uint64_t live_bytes; /* of their records */
	uint64_t room;       /* bytes that could be written when the last work ended */
	uint32_t segments;   /* on the disk, also then */
	/* The work, and the log, belong to a thread of the pool while `busy`. */
	bool busy;
	struct spokei_journal_log log;
	struct spokei_log_options log_options;
	struct spoke_work work;
	struct spokei_journal_job {
		bool opens;
		bool restarts;
		bool syncs;
		bool spares;
		int error;        /* of the reading */
		int status;       /* negative errno */
		int spare_status; /* the same */
	} job;
	struct spokei_task settle; /* begins a work when the turn ends */
	struct spokei_task go_on;  /* takes more tickets of earlier processes */
	struct spoke_alarm sync_alarm;
	struct spoke_alarm wait_alarm;
	struct spoke_alarm again_alarm;
};

/* Locks the journal and begins to read it. The journal must not be moved afterwards. Returns 0,
 * SPOKE_EEXIST or SPOKE_ESYSTEM as spokei_log_lock(), or SPOKE_EUNSUPPORTED: the environment has no
 * such files. An event explains an error. */
SPOKE_MUST_USE int spokei_journal_begin(struct spokei_journal *journal, struct spoke_engine *engine,
					const struct spokei_journal_options *options,
					const struct spokei_journal_up *up, void *arg);

/* Returns 0, or why no ticket of this many bytes is taken, as spokei_journal_add(). */
int spokei_journal_check(const struct spokei_journal *journal, size_t bytes);

/* Adds a ticket that begins, under its number, and has it wait, unless nothing is waited for.
 * Returns 0; SPOKE_ELIMIT: there is no room, in memory or on the disk; SPOKE_ETOOLARGE;
 * SPOKE_ESYSTEM: the journal cannot be written; or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_journal_add(struct spokei_journal *journal,
				      struct spokei_journal_ticket *ticket, uint64_t number);

/* Adds a ticket inside restore(). */
void spokei_journal_adopt(struct spokei_journal *journal, struct spokei_journal_ticket *ticket,
			  const struct spokei_replay_ticket *from);

/* Notes the attempts of a ticket. `waits`: has it wait, and returns an error as
 * spokei_journal_add(), after which it does not. Otherwise the record may be left out. */
int spokei_journal_note(struct spokei_journal *journal, struct spokei_journal_ticket *ticket,
			const struct spokei_record_tried *tried, bool waits);

/* Ends a ticket, which is settled. */
void spokei_journal_settle(struct spokei_journal *journal, struct spokei_journal_ticket *ticket,
			   uint32_t settlement);

/* Ends a ticket without a record. It may come back until its segment is removed. */
void spokei_journal_forget(struct spokei_journal *journal, struct spokei_journal_ticket *ticket);

/* Lets go of a ticket, which stays in the journal for the next process. No segment is removed any
 * more. */
void spokei_journal_keep(struct spokei_journal *journal, struct spokei_journal_ticket *ticket);

/* Writes the gathered records, then unlocks the journal and calls closed(); maybe inside. Tickets
 * that are still in it stay for the next process. */
void spokei_journal_close(struct spokei_journal *journal);

static inline bool spokei_journal_is_closed(const struct spokei_journal *journal)
{
	return journal->stage == SPOKEI_JOURNAL_CLOSED;
}

/* Frees the memory of a closed journal. */
void spokei_journal_fini(struct spokei_journal *journal);

#endif
