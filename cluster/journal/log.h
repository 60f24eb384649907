/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a journal: opened, read, appended to, and begun anew after a failure. All functions
 * block for the disk: they are called on threads of the pool, by one at a time.
 *
 * Nothing of an old segment is ever written again. After a write or a sync has failed, the segment
 * is given up: spokei_log_restart() begins another one, into which all is written that is still
 * needed. Then a record of the kind BASE ends the older ones, and spokei_log_drop() removes them.
 */
#ifndef SPOKEI_CLUSTER_JOURNAL_LOG_H
#define SPOKEI_CLUSTER_JOURNAL_LOG_H

#include "cluster/journal/record.h"

#include <spoke/env.h>

#define SPOKEI_LOG_SEGMENT                                                                         \
	(UINT32_C(4) << 20) /* bytes of a segment; more if one write needs it                      \
			     */
#define SPOKEI_LOG_SEGMENTS_MAX 4096u
/* The reason for -ELOOP. */
#define SPOKEI_LOG_IS_LINK "a symbolic link; put the file itself there"

struct spokei_journal_log {
	const struct spoke_env *env;
	const char *folder; /* borrowed until the log is closed */
	struct spokei_crc crc;
	struct spokei_segment segment; /* the last one; number 0: there is none */
	int lock_fd;                   /* -1: not held */
	int fd;                        /* of the segment; -1: it is not written to */
	int spare_fd;                  /* of the next segment, which has room only; -1: none */
	uint32_t segment_size;         /* bytes; more if one write needs it */
	uint32_t first;                /* number of the oldest segment */
	uint32_t size;                 /* bytes that are allocated */
	uint32_t end;                  /* bytes that are written */
	uint32_t durable;              /* ... and are on the disk for certain */
	size_t rolled_at; /* bytes of the last write before it began a segment; 0: it did not */
	bool broken;      /* the segment is given up */
};

/* The findings of a reading. */
struct spokei_log_report {
	uint32_t segment; /* the one that could not be read, or was torn or damaged first */
	uint32_t offset;  /* of the bad bytes in it */
	uint32_t torn;    /* segments with a torn tail: 0 or 1 */
	uint32_t damaged; /* pieces of durable bytes that are lost */
	/* A negative errno of the system; 0: none. Without an error of the reading: why there is no
	 * new segment. */
	int status;
};

/* Takes a record, in order; its body is borrowed for the call. Returns 0, or an error that ends the
 * reading. */
typedef int (*spokei_log_take_fn)(void *arg, const struct spokei_record *record);

struct spokei_log_options {
	const struct spoke_env *env;
	const char *folder;                       /* which exists */
	unsigned char journal[SPOKEI_JOURNAL_ID]; /* random, for a new journal */
	uint64_t consumer;                        /* hash of its name; 0: as it was */
	uint64_t wall_ns;
	uint32_t segment_size; /* bytes; 0: SPOKEI_LOG_SEGMENT */
	bool salvages;         /* reads on after damage */
	bool appends;          /* goes on in the last segment, if it is whole and has room */
	spokei_log_take_fn take;
	void *arg;
};

/* Locks the journal of a folder, which is borrowed until the log is closed, and initialises the
 * log. Returns 0, SPOKE_EEXIST: another process, or another user of this one, has the journal; or
 * SPOKE_ESYSTEM with a negative errno. After an error there is nothing to close. */
SPOKE_MUST_USE int spokei_log_lock(struct spokei_journal_log *log, const struct spoke_env *env,
				   const char *folder, int *ret_status);

/*
 * Reads the records that count, and begins a new segment. The log is locked. Returns 0, also if
 * there is no room for a segment: the log is broken then, and spokei_log_restart() tries again;
 * SPOKE_ECORRUPT: damaged, and `salvages` is not set; SPOKE_EUNSUPPORTED: of a newer version;
 * SPOKE_EINVAL: a segment belongs to another journal, or is none; SPOKE_ESYSTEM: see the report
 * (-ELOOP: a segment is a symbolic link); SPOKE_ENOMEM; or the error of take(). After an error the
 * log is still locked, no file was changed, and this may be called again.
 */
SPOKE_MUST_USE int spokei_log_open(struct spokei_journal_log *log,
				   const struct spokei_log_options *options,
				   struct spokei_log_report *ret_report);

/* Reads the records that count, without the lock, and changes nothing. Beside a process that has
 * the journal open, a segment may vanish meanwhile: SPOKE_ESYSTEM with -ENOENT, or SPOKE_ECORRUPT;
 * try again. Returns as spokei_log_open(). */
SPOKE_MUST_USE int spokei_log_read(const struct spokei_log_options *options,
				   struct spokei_log_report *ret_report);

/* Completes the records and appends them, in the present segment and in new ones. `syncs`: returns
 * 0 once the disk has them. Returns 0 or a negative errno; some of the records may be in the log
 * then, and if it is not broken, all of them may be written again. */
SPOKE_MUST_USE int spokei_log_write(struct spokei_journal_log *log, unsigned char *records,
				    size_t len, bool syncs);

/* Returns 0 once the disk has all records that were written, or a negative errno as above. */
SPOKE_MUST_USE int spokei_log_sync(struct spokei_journal_log *log);

/* Begins a new segment. After a failure the records that were not durable count only if they can be
 * read. Returns 0 or a negative errno; then the log is still broken, and it may be called again. */
SPOKE_MUST_USE int spokei_log_restart(struct spokei_journal_log *log);

/* Reserves the room of the next segment, so that it can be begun on a full disk. Returns 0, also if
 * that was done already, or a negative errno. */
SPOKE_MUST_USE int spokei_log_spare(struct spokei_journal_log *log);

/* Removes the segments before this number, which a durable BASE has ended. Those that cannot be
 * removed are left to the next time. */
void spokei_log_drop(struct spokei_journal_log *log, uint32_t number);

/* Returns the bytes that can be written without new room on the disk. */
static inline uint64_t spokei_log_room(const struct spokei_journal_log *log)
{
	uint64_t room = log->broken ? 0 : log->size - log->end;

	return room + (log->spare_fd >= 0 ? log->segment_size - SPOKEI_SEGMENT_HEAD : 0);
}

/* Returns how many segments are on the disk, with the spare one. */
static inline uint32_t spokei_log_segments(const struct spokei_journal_log *log)
{
	return log->segment.number - log->first + 1 + (log->spare_fd >= 0);
}

/* Closes the files and unlocks the journal; does nothing if it is closed. `forked`: the lock
 * belongs to the parent of this process, and stays. */
void spokei_log_close(struct spokei_journal_log *log, bool forked);

#endif
