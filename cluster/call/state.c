/* SPDX-License-Identifier: Apache-2.0 */
/* The table of legal moves between the states of a call. */
#include "cluster/call/state.h"

#include "timer/base.h"

#define TO(state) (1u << SPOKEI_CALL_##state)

/* The states to which a call may move, by the state that it leaves. */
static const unsigned legal_moves[] = {
	[SPOKEI_CALL_FIRST] = TO(DECIDING),
	[SPOKEI_CALL_DECIDING] = TO(SENDING) | TO(PAUSING) | TO(UNREADY) | TO(OVER),
	[SPOKEI_CALL_SENDING] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_PAUSING] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_UNREADY] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_OVER] = 0,
};

void spokei_call_move(enum spokei_call_state *state, enum spokei_call_state to)
{
	SPOKE_ASSERT(legal_moves[*state] & 1u << to);
	*state = to;
}
