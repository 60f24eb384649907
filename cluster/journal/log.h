/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a journal: opened, read, appended to, and begun anew after a failure. All functions
 * block for the disk: they are called on threads of the pool, by one at a time.
 *
 * Nothing of an old segment is ever written again. After a write or a sync has failed, the segment
 * is given up: spokei_log_renew() begins another one with all that is still needed.
 */
#ifndef SPOKEI_CLUSTER_JOURNAL_LOG_H
#define SPOKEI_CLUSTER_JOURNAL_LOG_H

#include "cluster/journal/record.h"

#include <spoke/env.h>

#define SPOKEI_LOG_SEGMENT                                                                         \
	(UINT32_C(4) << 20) /* bytes of a segment; more if one write needs it                      \
			     */
#define SPOKEI_LOG_SEGMENTS_MAX 4096u

struct spokei_log {
	const struct spoke_env *env;
	const char *folder; /* borrowed until the log is closed */
	struct spokei_crc crc;
	struct spokei_segment segment; /* the last one; number 0: there is none */
	int lock_fd;                   /* -1: not held */
	int fd;                        /* of the segment; -1: it is not written to */
	uint32_t segment_size;         /* bytes; more if one write needs it */
	uint32_t first;                /* number of the oldest segment */
	uint32_t size;                 /* bytes that are allocated */
	uint32_t end;                  /* bytes that are written */
	uint32_t durable;              /* ... and are on the disk for certain */
	bool broken;                   /* the segment is given up */
};

/* The findings of a reading. */
struct spokei_log_report {
	uint32_t segment; /* the one that could not be read, or was torn or damaged first */
	uint32_t offset;  /* of the bad bytes in it */
	uint32_t torn;    /* segments with a torn tail: 0 or 1 */
	uint32_t damaged; /* pieces of durable bytes that are lost */
	int status;       /* a negative errno of the system; 0: none */
};

/* Takes a record, in order; its body is borrowed for the call. Returns 0, or an error that ends the
 * reading. */
typedef int (*spokei_log_take_fn)(void *arg, const struct spokei_record *record);

struct spokei_log_options {
	const struct spoke_env *env;
	const char *folder;                       /* which exists */
	unsigned char journal[SPOKEI_JOURNAL_ID]; /* random, for a new journal */
	uint64_t consumer;                        /* hash of its name */
	uint64_t wall_ns;
	uint32_t segment_size; /* bytes; 0: SPOKEI_LOG_SEGMENT */
	bool salvages;         /* reads on after damage */
	spokei_log_take_fn take;
	void *arg;
};

/*
 * Locks the journal, reads the records that count, and begins a new segment. Returns 0;
 * SPOKE_EEXIST: another process, or another user of this one, has the journal; SPOKE_ECORRUPT:
 * damaged, and `salvages` is not set; SPOKE_EUNSUPPORTED: of a newer version; SPOKE_EINVAL: a
 * segment belongs to another journal, or is none; SPOKE_ESYSTEM: see the report; SPOKE_ENOMEM; or
 * the error of take(). After an error the log is closed, and no record was changed.
 */
SPOKE_MUST_USE int spokei_log_open(struct spokei_log *log, const struct spokei_log_options *options,
				   struct spokei_log_report *ret_report);

/* Completes the records and appends them. `syncs`: returns 0 once the disk has them. Returns 0 or a
 * negative errno; then the segment is given up. */
SPOKE_MUST_USE int spokei_log_write(struct spokei_log *log, unsigned char *records, size_t len,
				    bool syncs);

/* Returns 0 once the disk has all records that were written, or a negative errno as above. */
SPOKE_MUST_USE int spokei_log_sync(struct spokei_log *log);

/* Begins a new segment with records that replace all older ones, and removes the old segments.
 * Returns 0 once the disk has that. After a negative errno the old segments still count, and it may
 * be called again. */
SPOKE_MUST_USE int spokei_log_renew(struct spokei_log *log, unsigned char *records, size_t len);

/* Closes the files and unlocks the journal; does nothing if it is closed. */
void spokei_log_close(struct spokei_log *log);

#endif
