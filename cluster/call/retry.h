/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of calls that may take several attempts: the states of a call, and its retry
 * state. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_RETRY_H
#define SPOKEI_CLUSTER_CALL_RETRY_H

#include "cluster/call/call.h"
#include "cluster/lease/use.h"
#include "core/engine/task.h"
#include "timer/base.h"

#include <spoke/ticket.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct spoke_env;
struct spokei_journalled;
struct spokei_retry_blocks;
struct spokei_retry_state;

/* The states of a call that may take several attempts. A call of one attempt needs no state: it is
 * in flight until it ends. */
enum spokei_call_state {
	SPOKEI_CALL_FIRST,    /* the first attempt is in flight, and no history is kept yet */
	SPOKEI_CALL_DECIDING, /* the policy is asked, or attempts are about to begin */
	SPOKEI_CALL_SENDING,  /* one or more attempts are in flight */
	SPOKEI_CALL_PAUSING,  /* until the next attempt is due */
	SPOKEI_CALL_UNREADY,  /* until some endpoint can take the call */
	SPOKEI_CALL_OVER,     /* the end is decided; its callback may still be queued */
};

/* A call can become a ticket once, and stays one. */
enum spokei_ticket_stage {
	SPOKEI_TICKET_NONE,
	SPOKEI_TICKET_DUE,  /* the callback that hands the ticket to the user is queued */
	SPOKEI_TICKET_HELD, /* the user has the ticket */
};

/* The table of legal moves: for each state a bit mask of the states that may follow. */
extern const unsigned spokei_call_moves[];

/* Changes the state; asserts that the move is legal. */
static inline void spokei_call_move(enum spokei_call_state *state, enum spokei_call_state to)
{
	SPOKE_ASSERT(spokei_call_moves[*state] & 1u << to);
	*state = to;
}

/*
 * The retry state of a call that may take several attempts: a copy of its arguments, the history of
 * its attempts, and its present state. Most calls end with their first attempt, so the history is
 * opened only when that attempt has failed. Owned by its call, on the engine's thread.
 */

#define SPOKEI_REPEAT_MARK 32u    /* bytes of the mark of a repeat, with the NUL */
#define SPOKEI_RETRY_STATE_FEW 4u /* ids of endpoints that are kept inside */
#define SPOKEI_RETRY_STATE_TEXT                                                                    \
	200u /* bytes of an error's text, and of its class, that are kept                          \
	      */

/* How the attempt that failed last has ended. */
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

/* A further attempt. */
struct spokei_fork {
	struct spokei_fork *next;
	struct spokei_attempt attempt;
};

struct spokei_retry_state {
	enum spokei_call_state state;
	enum spokei_ticket_stage ticket;
	bool first_answer;            /* the first answer ends the call, as its policy has it */
	uint64_t timeout_ns;          /* of the call: until its answer, or its ticket */
	struct spokei_call_args args; /* point into `bytes`; policy NULL: the call is not sent */
	unsigned char *extended; /* room for the attachments with ours; NULL: ours are not sent */
	size_t extended_len;     /* 0: the user's attachments are sent */
	size_t size;             /* of this struct, with its bytes */
	struct spokei_call *call;
	uint64_t id; /* the number of its id; 0: it bears none of ours */
	/* The instance that can recognise a repeat of the last attempt, its endpoint, and a time of
	 * its clock before that attempt. `bound`: an attempt may have run there, and the call goes
	 * nowhere else. */
	uint32_t instance; /* 0: none can */
	bool bound;
	uint64_t bound_to;
	uint64_t since_ms;
	/* The history: from here on undefined until it is opened. */
	uint32_t begun; /* attempts, as in struct spoke_policy_history */
	uint32_t open;
	uint32_t ok;
	uint32_t failed;
	bool retried;       /* reported as such: once, however many attempts follow */
	uint32_t again_sum; /* of the report that has counted the ticket last; 0: none */
	enum spoke_policy_fate last;
	uint64_t *tried; /* ids of endpoints; `few`, or memory of its own */
	uint32_t tried_count;
	uint32_t tried_room;
	uint64_t few[SPOKEI_RETRY_STATE_FEW];
	struct spokei_fork *forks; /* freed when the call has ended */
	bool fans_out;             /* several attempts were in flight at a time */
	bool written;              /* an attempt was written: the request may have run */
	bool unsure;               /* ... and has ended so that this is not known */
	bool given_up;             /* the last attempt has used up its part of the time */
	bool was_unready;          /* the next attempt is the one that has waited for an endpoint */
	bool waited;               /* it has paused since the last attempt, or that one is slow */
	bool hedged;               /* a backup was begun */
	bool refused;              /* the instance to which the call is bound has refused it */
	bool watched;              /* the timer is that of an attempt that may become slow */
	bool inside_call;          /* spoke_call() has not returned: its result reports the end */
	bool fallback;             /* not sent: the arguments are the fallback of its method */
	struct spokei_lease_use lease; /* use.over NULL: the call is not made under a lease */
	struct spokei_task lease_end;  /* ends the call after its lease; on the engine's soon */
	/* Times of the engine's clock. */
	uint64_t begun_ns; /* the end of the turn in which the call began; 0: not yet */
	uint64_t lasts_ns; /* from begun_ns to the deadline */
	uint64_t pause_ns; /* from the end of the turn in which the pause began */
	uint64_t due_ns;   /* while the call waits */
	struct spoke_timer timer;
	struct spokei_task arm;     /* on the engine's last */
	struct spoke_list of_retry; /* calls that wait; next NULL: it does not */
	struct spokei_task tell;    /* calls back; on the engine's soon */
	/* A ticket's. */
	struct spokei_journalled *journalled;    /* its entry in the journal; NULL: it has none */
	uint64_t id_half;                        /* first half of its id; 0: from the number */
	uint64_t earlier_ns;                     /* age in earlier processes */
	enum spoke_ticket_settlement settlement; /* of one that is over */
	struct spoke_list of_tickets;            /* oldest first; next NULL: no ticket */
	spoke_ticket_done_fn settle;             /* may be NULL */
	void *settle_arg;
	struct spokei_ending ending; /* opening leaves its texts undefined */
	unsigned char bytes[];
};

/* Gives a call a retry state, with a copy of its arguments. If the call repeats its attempts,
 * or is made under a lease, there is room for attachments of ours. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_retry_state_new(struct spokei_call *call,
					  const struct spokei_call_args *args);

/* Frees a retry state that does not wait, and has no attempt in flight; NULL is fine. */
void spokei_retry_state_free(struct spokei_caller *caller, struct spokei_retry_state *retry);

/* Frees the blocks that are kept. */
void spokei_retry_blocks_free(struct spokei_retry_blocks *blocks, const struct spoke_env *env);

/* Opens an empty history; the call is DECIDING. */
static inline void spokei_retry_state_open(struct spokei_retry_state *retry)
{
	const size_t from = offsetof(struct spokei_retry_state, begun);

	spokei_call_move(&retry->state, SPOKEI_CALL_DECIDING);
	memset((unsigned char *)retry + from, 0,
	       offsetof(struct spokei_retry_state, ending.text) - from);
	retry->tried = retry->few;
	retry->tried_room = SPOKEI_RETRY_STATE_FEW;
}

/*
 * Adds our attachments to those of the next attempt, which goes to this connection: "spoke.lease"
 * and "spoke.fence" of a call under a lease; "spoke.id" if `identified`, unless the user has set
 * it, and "spoke.attempt" if the policy repeats attempts; "spoke.repeat" of a call that is bound.
 * Notes the instance that can recognise a repeat of this attempt.
 */
void spokei_retry_state_attach(struct spokei_retry_state *retry, const struct spokei_conn *conn,
			       bool identified);

/* Notes that an attempt is made at this endpoint. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_retry_state_tried(struct spokei_retry_state *retry,
					    const struct spoke_env *env, uint64_t endpoint);

/* Has the user a ticket, or is about to get it? */
static inline bool spokei_retry_state_is_deferred(const struct spokei_retry_state *retry)
{
	return retry->ticket != SPOKEI_TICKET_NONE;
}

/* Is the call made under a lease? */
static inline bool spokei_retry_state_is_leased(const struct spokei_retry_state *retry)
{
	return retry->lease.use.over != NULL;
}

/* Returns how long the call goes on already. */
static inline uint64_t spokei_retry_state_age(const struct spokei_retry_state *retry,
					      uint64_t now_ns)
{
	return retry->begun_ns && now_ns > retry->begun_ns ? now_ns - retry->begun_ns : 0;
}

/* Returns how much time is left until its deadline. */
static inline uint64_t spokei_retry_state_left(const struct spokei_retry_state *retry,
					       uint64_t now_ns)
{
	uint64_t age_ns = spokei_retry_state_age(retry, now_ns);

	return retry->lasts_ns > age_ns ? retry->lasts_ns - age_ns : 0;
}

/* Returns how long a call that is PAUSING still pauses. */
static inline uint64_t spokei_retry_state_pause(const struct spokei_retry_state *retry,
						uint64_t now_ns)
{
	/* Until the turn ends, the pause has not begun. */
	if (retry->arm.node.next)
		return retry->pause_ns;
	return retry->due_ns > now_ns ? retry->due_ns - now_ns : 0;
}

/* Returns the result of a call that ends as the attempt did that failed last. */
struct spoke_result spokei_retry_state_result(const struct spokei_retry_state *retry);

/* Ends the wait of a call, if it waits or is watched; with `over` it is no ticket any more either.
 */
void spokei_retry_queue_leave(struct spokei_retry_state *retry, bool over);

/* Opens the history of a call, and begins as its policy decides. `lease` may be NULL. Returns as
 * spoke_call(); after an error the call was not begun. */
SPOKE_MUST_USE int spokei_call_begin_asking(struct spokei_call *call,
					    const struct spoke_lease *lease);

/* Sends the first attempt of a call, which begins without a history. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_call_send_first(struct spokei_call *call,
					  const struct spokei_endpoint *endpoint,
					  struct spokei_conn *conn);

/* Returns how long an attempt may take in all, when its time is over, or before its request is
 * written late: all the time of its call if no other attempt would follow. So a call never ends
 * early because it might have tried elsewhere. `written`: the request may run. */
uint64_t spokei_call_prolonged(struct spokei_attempt *attempt, bool written, uint64_t now_ns);

/* Takes a call to its next step after an attempt that has not ended it. */
void spokei_call_attempt_ended(struct spokei_attempt *attempt,
			       const struct spokei_outcome *outcome);

/* A ticket of an earlier process. */
struct spokei_retry_past {
	struct spokei_journalled *journalled;
	uint64_t id_half;
	uint64_t id;
	uint64_t earlier_ns; /* since the call began */
	uint64_t left_ns;    /* until its deadline */
	uint64_t pause_ns;   /* until its next attempt */
	uint32_t attempts;
	bool unsure;
	bool binds; /* repeats are for the instance that recognises them */
	uint32_t instance;
	uint64_t since_ms;
};

/* Makes a call that has a retry state a ticket that the user has, and has it pause. */
void spokei_retry_restore(struct spokei_call *call, const struct spokei_retry_past *past);

/* Ends the pause of a call before it is due. */
void spokei_retry_resume(struct spokei_retry_state *retry);

/* --- repeat.c */

/* Puts our attachments for an attempt on this connection together, if the wire can carry them; the
 * call has room for them. */
void spokei_repeat_attach(struct spokei_retry_state *retry, const struct spokei_endpoint *endpoint,
			  const struct spokei_conn *conn);

/* Picks the endpoint of a call that is bound, and a connection to its instance. Returns as
 * spokei_endpoint_reach(). */
SPOKE_MUST_USE int spokei_repeat_pick(const struct spokei_retry_state *retry,
				      struct spokei_endpoint **ret_endpoint,
				      struct spokei_conn **ret_conn);

/* An attempt may have run, and its instance can tell: binds the call, unless it may run twice. Of
 * attempts at the same time none is followed. */
void spokei_repeat_bind(struct spokei_retry_state *retry);

/* Reads the value of "spoke.repeat" as it is written. */
bool spokei_repeat_read(struct spoke_span mark, uint32_t *ret_instance, uint64_t *ret_since_ms);

/* Writes it, for the attempt that the instance of the call recognises. Returns the bytes, without a
 * NUL; 0: there is no such instance. */
size_t spokei_repeat_print(const struct spokei_retry_state *retry, char mark[SPOKEI_REPEAT_MARK]);

/* Returns the first half of the id of a call. */
uint64_t spokei_retry_state_id_half(const struct spokei_retry_state *retry);

/* Does a provider say of a repeat that it does not know whether the first attempt has run? */
bool spokei_repeat_is_unknown(const struct spokei_outcome *outcome);

/* --- tickets */

/* As spoke_ticket_ask(), of a call that is a ticket. */
void spokei_ticket_look(const struct spokei_retry_state *retry, uint64_t now_ns,
			struct spoke_ticket_state *ret_state);

#endif
