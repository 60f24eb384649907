/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The course of a call that may take more than one attempt: what it says, kept for the next one;
 * what has become of it; and where it stands. A call that takes one attempt only has none. As most
 * calls end with their first attempt, what has become of it may be left open until that has failed.
 * Owned by its call, on the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_RETRY_STATE_H
#define SPOKEI_CLUSTER_CALL_RETRY_STATE_H

#include "cluster/call/attempt.h"
#include "core/engine/task.h"

#include <spoke/ticket.h>

#define SPOKEI_RETRY_STATE_FEW 4u      /* endpoints that it remembers in itself */
#define SPOKEI_RETRY_STATE_BLOCK 1024u /* bytes of a course that is kept for the next one ... */
#define SPOKEI_RETRY_STATE_BLOCKS 64u  /* ... and how many are */
#define SPOKEI_RETRY_STATE_TEXT 200u   /* bytes of a text, and of a class, that are kept */

/* How an attempt ended, for when that is told later. */
struct spokei_ending {
	int error;
	int32_t error_code;
	uint64_t queued_ns;
	uint64_t waited_ns;
	uint8_t text_len;
	uint8_t class_len;
	unsigned char text[SPOKEI_RETRY_STATE_TEXT];
	unsigned char class_name[SPOKEI_RETRY_STATE_TEXT];
};

struct spokei_retry_queue;

struct spokei_fork {
	struct spokei_fork *next;
	struct spokei_attempt attempt;
};

enum spokei_retry_state_stage {
	SPOKEI_RETRY_STATE_KEPT, /* what it says is all there is: the first attempt is under way */
	SPOKEI_RETRY_STATE_SENDING, /* attempts are under way, or the next step is being decided */
	SPOKEI_RETRY_STATE_PAUSING, /* until the next attempt */
	SPOKEI_RETRY_STATE_UNREADY, /* until some endpoint can take it */
	SPOKEI_RETRY_STATE_OVER,    /* its end is to be told: what still ends does not matter */
};

struct spokei_retry_state {
	enum spokei_retry_state_stage stage;
	bool told; /* that it is a ticket */
	/* What it says. */
	bool one_way;
	const struct spoke_policy *policy; /* NULL: it is not sent */
	uint64_t timeout_ns;               /* of an attempt */
	size_t arg_count;
	struct spoke_span args;         /* point into `bytes` */
	struct spoke_value attachments; /* the user's */
	struct spoke_span key;
	unsigned char *extended; /* room for the user's and ours, of an attempt; NULL: not wanted */
	size_t size;             /* of this, with what it says */
	/* What has become of it; of one that is open, from here on. */
	struct spokei_call *call;
	struct spokei_attempt *own;       /* the call's */
	struct spokei_retry_queue *queue; /* where it waits */
	size_t extended_len;              /* 0: the user's are all */
	uint32_t begun;
	uint32_t open;
	uint32_t ok;
	uint32_t failed;
	enum spoke_policy_fate last;
	uint64_t *tried; /* ids of endpoints; `few`, or memory of its own */
	uint32_t tried_count;
	uint32_t tried_room;
	uint64_t few[SPOKEI_RETRY_STATE_FEW];
	struct spokei_fork *forks; /* attempts beside the call's own, until the end */
	bool written;              /* of one attempt at least that is true: it may have run */
	bool own_free;             /* the call's own attempt is not under way */
	bool unready;              /* it waits, or has waited, for an endpoint to begin at */
	bool waited;               /* it has paused since the last attempt */
	bool young;                /* inside spoke_call(): nobody is told of an end */
	bool fallback;             /* it is not sent: `args` is what its method falls back to */
	bool homeless;             /* the wheel had no place for its pause */
	/* Its times; of the engine's clock. */
	uint64_t begun_ns; /* as the turn ended in which it began; 0: that has not come */
	uint64_t lasts_ns; /* a ticket's, since begun_ns */
	uint64_t pause_ns; /* from the end of this turn on */
	uint64_t due_ns;   /* while it waits */
	struct spoke_timer timer;
	struct spokei_task arm;     /* on the engine's last */
	struct spoke_list of_retry; /* of those that are not ready; next NULL: of none */
	/* As a ticket. */
	bool deferred;
	struct spokei_task tell; /* that it is one, or that it is settled; on the engine's soon */
	enum spoke_ticket_settlement settlement; /* of one that is over, and not told */
	struct spoke_list of_tickets;            /* in the order in which they became tickets */
	uint64_t id;
	spoke_ticket_done_fn settle; /* may be NULL */
	void *settle_arg;
	struct spokei_ending
		ending; /* of the attempt that failed last; its texts are not cleared */
	unsigned char bytes[];
};

/* Memory of courses that are over, for the next ones. Zero-initialised; of one caller. */
struct spokei_retry_state_blocks {
	void *first; /* each begins with the next */
	unsigned count;
};

void spokei_retry_state_blocks_fini(struct spokei_retry_state_blocks *blocks,
				    const struct spoke_env *env);

/* Copies what the method's request says; its attempts are `numbered`, or not. NULL: no memory. */
struct spokei_retry_state *spokei_retry_state_keep(struct spokei_retry_state_blocks *blocks,
						   const struct spoke_env *env,
						   const struct spokei_message *request,
						   struct spoke_span key, bool numbered);

/* From now on it is known what has become of it: nothing yet. `own` is the attempt that its call
 * has anyway. */
void spokei_retry_state_open(struct spokei_retry_state *retry, struct spokei_attempt *own);

/* Is it still to be opened? */
static inline bool spokei_retry_state_is_kept(const struct spokei_retry_state *retry)
{
	return retry->stage == SPOKEI_RETRY_STATE_KEPT;
}

/* It waits for nothing, and no attempt is under way. */
void spokei_retry_state_free(struct spokei_retry_state_blocks *blocks, const struct spoke_env *env,
			     struct spokei_retry_state *retry);

/* Has the method's request say it again. */
void spokei_retry_state_say(const struct spokei_retry_state *retry, struct spokei_message *request);

/* The attachments of the next attempt, of one that is numbered: the user's, and "spoke.id" and
 * "spoke.attempt", unless the user has such. */
void spokei_retry_state_number(struct spokei_retry_state *retry);

/* An attempt that is not under way: the call's own, or a further one; NULL: no memory. */
struct spokei_attempt *spokei_retry_state_attempt(struct spokei_retry_state *retry,
						  const struct spoke_env *env);

/* It goes to this endpoint. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_retry_state_try(struct spokei_retry_state *retry,
					  const struct spoke_env *env, uint64_t endpoint);

/* An attempt has ended, or could not begin. */
void spokei_retry_state_note(struct spokei_retry_state *retry, const struct spokei_outcome *outcome,
			     enum spoke_policy_fate fate);

#endif
