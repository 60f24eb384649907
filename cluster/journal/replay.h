/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tickets that a journal leaves: takes its records in their order, and has those tickets
 * afterwards that were not settled. The answers of a provider are tickets here, too. On any thread,
 * one at a time.
 */
#ifndef SPOKEI_CLUSTER_JOURNAL_REPLAY_H
#define SPOKEI_CLUSTER_JOURNAL_REPLAY_H

#include "cluster/journal/record.h"
#include "core/memory/map.h"

#define SPOKEI_REPLAY_TICKETS_MAX 1000000u
#define SPOKEI_REPLAY_BYTES_MAX (UINT64_C(1) << 30)

/* A ticket that was not settled. */
struct spokei_replay_ticket {
	struct spoke_list node;
	uint64_t number;
	uint64_t position;            /* for the user */
	enum spokei_record_kind kind; /* OPEN or ANSWER */
	uint32_t segment;             /* of its last record of this kind */
	uint32_t record;              /* bytes of that */
	size_t size;                  /* of this struct with `bytes` */
	/* Point into `bytes` and `mark`; `tried` is that of the last record. */
	union {
		struct spokei_record_open open;
		struct spokei_record_answer answer;
	};
	unsigned char mark[SPOKEI_MARK_MAX];
	unsigned char bytes[];
};

struct spokei_replay {
	const struct spoke_env *env;
	bool salvages; /* skips records that cannot be understood */
	uint32_t skipped;
	uint64_t bytes; /* of all tickets */
	struct spokei_map by_number;
	struct spoke_list tickets; /* in the order of their last OPEN or ANSWER */
};

/* May draw random numbers: on the engine's thread. */
void spokei_replay_init(struct spokei_replay *replay, const struct spoke_env *env, bool salvages);

/* Frees the tickets that are left. */
void spokei_replay_fini(struct spokei_replay *replay);

/* Is a spokei_log_take_fn, of a struct spokei_replay. Returns 0; SPOKE_ECORRUPT: the record cannot
 * be understood; SPOKE_ELIMIT: there are too many tickets; or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_replay_take(void *arg, const struct spokei_record *record);

/* Returns the first ticket; NULL: there is none. */
struct spokei_replay_ticket *spokei_replay_first(const struct spokei_replay *replay);

/* Frees a ticket. */
void spokei_replay_drop(struct spokei_replay *replay, struct spokei_replay_ticket *ticket);

#endif
