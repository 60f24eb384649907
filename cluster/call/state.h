/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a call that may take several attempts, and its legal moves from one state to
 * another. A call of one attempt needs no state: it is in flight until it ends.
 */
#ifndef SPOKEI_CLUSTER_CALL_STATE_H
#define SPOKEI_CLUSTER_CALL_STATE_H

#include "timer/base.h"

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

#endif
