/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends calls: each end calls back once, and that of a ticket once more. Used by the files of this
 * folder only.
 */
#ifndef SPOKEI_CLUSTER_CALL_END_H
#define SPOKEI_CLUSTER_CALL_END_H

#include "transport/conn/pending.h"
#include "transport/wire/message.h"

#include <spoke/ticket.h>

struct spokei_call;
struct spokei_caller;
struct spokei_retry_state;

/* The one completion of a call: frees its cell, then calls back, so that the user may call again.
 * The filters may change the result. */
void spokei_call_finish(struct spokei_call *call, struct spoke_result *result);

/* Ends a call whose only attempt has failed, or that is cancelled. */
void spokei_call_finish_failed(struct spokei_call *call, struct spoke_result *result);

/* Ends a call that has a history: finishes it, or settles its ticket. A call that is still inside
 * spoke_call() gets the error noted instead. */
void spokei_call_end(struct spokei_call *call, enum spoke_ticket_settlement settlement,
		     struct spoke_result *result);

/* The same on the engine's soon, with an error of this side. */
void spokei_call_end_later(struct spokei_call *call, enum spoke_ticket_settlement settlement,
			   int error);

/* Gives the user a ticket in place of a result, on the engine's soon. */
void spokei_call_defer(struct spokei_call *call);

/* Ends a call that is not sent with OK and its arguments, on the engine's soon. */
void spokei_call_answer(struct spokei_call *call);

/* Frees a retry state whose call has ended; NULL is fine. */
void spokei_call_forget(struct spokei_caller *caller, struct spokei_retry_state *retry);

/* Replaces the error of a result, at each end of a call: by the method's fallback, else, if the
 * policy excuses the failure, by OK with nil. An error that the user has caused stays. */
void spokei_call_settle_error(const struct spoke_method *method, bool excuses,
			      struct spoke_result *result);

/* The value nil. */
extern const struct spoke_value spokei_call_nil;

/* Returns the result of a call that ends as this attempt did. */
static inline struct spoke_result spokei_call_result(const struct spokei_outcome *outcome)
{
	const struct spokei_message *reply = outcome->reply;
	struct spoke_result result = {
		.error = outcome->error,
		.written = outcome->written,
		.queued_ns = outcome->queued_ns,
		.waited_ns = outcome->waited_ns,
		.attempts = 1,
	};

	if (SPOKEI_LIKELY(reply)) {
		result.value = reply->value;
		result.attachments = reply->attachments;
		result.error_text = reply->error_text;
		result.error_class = reply->error_class;
		result.error_code = reply->error_code;
	} else if (outcome->reason) {
		result.error_text = spokei_span(outcome->reason, strlen(outcome->reason));
	}
	if (result.error == SPOKE_OK && result.value.len == 0)
		result.value = spokei_call_nil;
	return result;
}

/* Returns the result of a call that ends as the attempt did that failed last. */
struct spoke_result spokei_retry_state_result(const struct spokei_retry_state *retry);

#endif
