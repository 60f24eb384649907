/* SPDX-License-Identifier: Apache-2.0 */
/* The table of legal moves between the states of a call. */
#include "cluster/call/state.h"

#define TO(state) (1u << SPOKEI_CALL_##state)

const unsigned spokei_call_moves[] = {
	[SPOKEI_CALL_FIRST] = TO(DECIDING),
	[SPOKEI_CALL_DECIDING] = TO(SENDING) | TO(PAUSING) | TO(UNREADY) | TO(OVER),
	[SPOKEI_CALL_SENDING] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_PAUSING] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_UNREADY] = TO(DECIDING) | TO(OVER),
	[SPOKEI_CALL_OVER] = 0,
};
