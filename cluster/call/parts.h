/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a call have of each other: call_begin.c takes or refuses it, call_next.c finds
 * the next step of one that may take several attempts, call_end.c ends it, call_ticket.c is what
 * users see of its ticket.
 */
#ifndef SPOKEI_CLUSTER_CALL_PARTS_H
#define SPOKEI_CLUSTER_CALL_PARTS_H

#include "cluster/call/call.h"
#include "cluster/consumer/parts.h"

/* --- call_begin.c */

/* A call that has not begun: a cell of its own. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_call_new(struct spoke_method *method, struct spokei_call **ret_call);

/* Sends what the method's request says, as an attempt. Returns as spoke_call(). */
SPOKE_MUST_USE int spokei_attempt_begin(struct spokei_attempt *attempt, struct spokei_conn *conn,
					uint64_t timeout_ns);

/* --- call_next.c */

/* It is written down what becomes of it, from now on. */
void spokei_call_open(struct spokei_call *call);

/* Does what the policy wants: before the first attempt, when one has ended (`outcome`), or when a
 * wait is over. The call may be gone afterwards. */
void spokei_call_next(struct spokei_call *call, const struct spokei_outcome *outcome);

/* An attempt of a course has ended. */
void spokei_call_attempt_ended(struct spokei_attempt *attempt, const struct spokei_outcome *outcome,
			       enum spoke_policy_fate fate);

/* --- call_end.c */

/* spokei_pending's done() of every attempt. */
void spokei_attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome);

/* The one completion of a call: the cell is free when its caller is told, who may call again. */
void spokei_call_finish(struct spokei_call *call, struct spoke_result *result);

/* The end of a call with a course, of whatever kind: as a ticket if it is one. */
void spokei_call_end(struct spokei_call *call, enum spoke_ticket_settlement settlement,
		     struct spoke_result *result);

/* The same with an error of this side's, a little later; nothing of it goes on from here. */
void spokei_call_end_later(struct spokei_call *call, enum spoke_ticket_settlement settlement,
			   int error);

/* What was kept is given back; NULL is fine. */
void spokei_call_forget(struct spokei_caller *caller, struct spokei_retry_state *retry);

/* Its caller gets a ticket, a little later. */
void spokei_call_defer(struct spokei_call *call);

/* It ends with OK and this value, a little later. */
void spokei_call_answer(struct spokei_call *call);

/* Is a call that failed one that went well, as this policy has it? NULL is fine: a push has none.
 */
static inline bool spokei_call_excuses(const struct spoke_policy *policy)
{
	static const struct spoke_policy_history failed = {
		.begun = 1,
		.failed = 1,
		.last = SPOKE_FATE_SAFE,
	};

	return policy && policy->once && policy->next(&failed).excuse;
}

/* Could an attempt not begin at this endpoint, while another one may have room for it? */
bool spokei_call_fits_elsewhere(const struct spokei_caller *caller,
				struct spokei_endpoint *endpoint, int error);

/* What filters are told of a call before and after it. */
static inline struct spoke_filter_call spokei_call_describe(const struct spoke_method *method)
{
	const struct spokei_message *message = &method->request;

	return (struct spoke_filter_call){
		.service = message->service,
		.version = message->version,
		.group = message->group,
		.method = message->method,
	};
}

/* A failure counts as an answer, as the policy has it. What its owner ended is no failure. */
void spokei_call_excuse(const struct spokei_call *call, struct spoke_result *result);

/* The value that says nothing. */
extern const struct spoke_value spokei_call_nil;

struct spoke_result spokei_call_result(const struct spokei_outcome *outcome);

/* What is kept of the attempt that failed last. */
struct spoke_result spokei_retry_state_result(const struct spokei_retry_state *retry);

#endif
