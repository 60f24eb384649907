/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tickets in a journal, for tools: the folder that a consumer has as its option `journal`. The
 * answers that a provider remembers are tickets here, too. They are read without a lock, so also
 * while the consumer or provider uses it, and changed while no process does.
 *
 *     static void show(void *arg, const struct spoke_journal_ticket *ticket);
 *     ...
 *     struct spoke_journal_report report;
 *
 *     if (spoke_journal_read(NULL, "/var/lib/shop/journal", show, NULL, &report))
 *             fputs(report.why, stderr);
 *
 * All functions block for the disk. Any thread.
 */
#ifndef SPOKE_JOURNAL_H
#define SPOKE_JOURNAL_H

#include <spoke/value.h>

SPOKE_BEGIN_DECLS

struct spoke_env;

/* A ticket that is not settled. Borrowed for the callback. */
struct spoke_journal_ticket {
	/* In this journal; shown as 16 hexadecimal digits: of a call the last ones of `id`. */
	uint64_t number;
	char id[65]; /* the attachment "spoke.id"; "": the call bears none */
	struct spoke_span service;
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span method;
	struct spoke_span args;         /* packed values, one after the other */
	struct spoke_value attachments; /* a map, or none */
	struct spoke_span key;          /* by which the call chooses its provider */
	uint64_t begun_ns;              /* when the call began, since 1970 */
	uint64_t lasts_ns;              /* its deadline, after that */
	uint64_t period_ns;             /* between attempts */
	uint32_t retries;               /* attempts after the first one, at most */
	uint32_t attempts;              /* begun so far */
	bool unsure;                    /* one of them may have run, and was not answered */
	bool once;                      /* the request must not run twice */
	bool one_way;
	uint32_t segment; /* number of the file with its last record of the kind OPEN */
	uint32_t bytes;   /* of this record, or of that of the kind ANSWER */
	/* An answer that a provider remembers: `begun_ns` is when it was given, `lasts_ns` for how
	 * long it is remembered, and the fields of a call are empty. */
	bool is_answer;
	bool dropped; /* it was too large to be kept; the fields below are empty */
	int error;    /* SPOKE_OK, or as the caller got it */
	int32_t error_code;
	struct spoke_span error_text;
	struct spoke_value value;
};

/* The state of a journal. */
struct spoke_journal_report {
	uint32_t tickets; /* that are not settled */
	uint64_t bytes;   /* of their records of the kind OPEN */
	bool used;        /* a process has it open */
	/* Bytes at the end that a crash has left. A write of the process that has the journal open
	 * looks the same. */
	bool torn;
	uint32_t damaged; /* places at which records were lost that had been on the disk */
	uint32_t skipped; /* records that could not be understood */
	uint32_t
		segment; /* number of the first file that is torn or damaged, or of the error ... */
	uint32_t offset; /* ... and of the bytes in it */
	char why[256];   /* after an error: a sentence; else "" */
};

/*
 * Reads a journal and changes nothing. Calls `each` for every ticket, in the order of their last
 * records; NULL: only the report matters. Damage is no error: the tickets that can be read are.
 * `env` NULL: the host's. Returns 0, ENOENT (no journal), EINVAL (files of several journals, or
 * others), EUNSUPPORTED (of a newer version, or the environment has no such files), ECORRUPT (the
 * files do not fit together), ESYSTEM, ELIMIT (too many tickets) or ENOMEM.
 */
SPOKE_API SPOKE_MUST_USE int spoke_journal_read(
	const struct spoke_env *env, const char *folder,
	void (*each)(void *arg, const struct spoke_journal_ticket *ticket), void *arg,
	struct spoke_journal_report *ret_report);

enum spoke_journal_change {
	/* Settles a ticket as cancelled, so that it is never tried again. */
	SPOKE_JOURNAL_DROP,
	/* Gives a ticket all its attempts and its whole time again, from now on. A request that may
	 * have run, and must not run twice, may do so now. Its id stays, so a provider that
	 * remembers the request answers without running it. An answer has none: EINVAL. */
	SPOKE_JOURNAL_RETRY,
	/* Writes all tickets that can be read into a new file, and removes all others, with the
	 * damage in them. */
	SPOKE_JOURNAL_REPAIR,
};

/*
 * Changes a journal that no process has open; the disk has the change afterwards. `number` is that
 * of the ticket; REPAIR has none. Returns as above; ESTATE: a process has it open; ENOENT: also
 * that there is no such ticket; ECORRUPT: damaged, and it is no REPAIR.
 */
SPOKE_API SPOKE_MUST_USE int spoke_journal_change(const struct spoke_env *env, const char *folder,
						  enum spoke_journal_change change, uint64_t number,
						  struct spoke_journal_report *ret_report);

SPOKE_END_DECLS

#endif
