/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets, as users see them. */
#include "cluster/call_parts.h"

const char *spoke_settlement_name(enum spoke_settlement settlement)
{
	switch (settlement) {
	case SPOKE_TICKET_SUCCESS:
		return "success";
	case SPOKE_TICKET_EXHAUSTED:
		return "exhausted";
	case SPOKE_TICKET_EXPIRED:
		return "expired";
	case SPOKE_TICKET_CANCELLED:
		return "cancelled";
	case SPOKE_TICKET_REFUSED:
		return "refused";
	case SPOKE_TICKET_CLOSING:
		return "closing";
	}
	return NULL;
}

/* NULL: it is settled, or never was one. */
static struct spokei_call *call_of(const struct spoke_consumer *consumer,
				   struct spoke_ticket ticket)
{
	struct spokei_call *call = spokei_slab_get(&consumer->caller.calls, ticket.handle);

	return call && call->course && call->course->told ? call : NULL;
}

bool spoke_ticket_ask(const struct spoke_consumer *consumer, struct spoke_ticket ticket,
		      struct spoke_ticket_state *ret_state)
{
	const struct spokei_call *call = call_of(consumer, ticket);
	uint64_t now_ns = consumer->engine->begin_ns;
	const struct spokei_course *course;
	uint64_t gone_ns;

	if (call == NULL)
		return false;
	course = call->course;
	gone_ns = course->begun_ns && now_ns > course->begun_ns ? now_ns - course->begun_ns : 0;
	*ret_state = (struct spoke_ticket_state){
		.id = course->id,
		.attempts = course->begun,
		.sending = course->open > 0,
		.last_error = course->ending.error,
		.left_ns = course->lasts_ns > gone_ns ? course->lasts_ns - gone_ns : 0,
	};
	if (course->stage != SPOKEI_COURSE_PAUSING)
		return true;
	ret_state->next_ns = course->pause_ns;
	if (course->arm.node.next == NULL)
		ret_state->next_ns = course->due_ns > now_ns ? course->due_ns - now_ns : 0;
	return true;
}

int spoke_ticket_then(struct spoke_consumer *consumer, struct spoke_ticket ticket,
		      spoke_ticket_done done, void *arg)
{
	const struct spokei_call *call = call_of(consumer, ticket);

	if (call == NULL)
		return SPOKE_ENOENT;
	if (done == NULL)
		return SPOKE_EINVAL;
	if (call->course->settle)
		return SPOKE_EEXIST;
	call->course->settle = done;
	call->course->settle_arg = arg;
	return SPOKE_OK;
}

bool spoke_ticket_cancel(struct spoke_consumer *consumer, struct spoke_ticket ticket)
{
	if (call_of(consumer, ticket) == NULL)
		return false;
	return spokei_call_cancel(&consumer->caller, (struct spoke_call){ ticket.handle });
}

size_t spoke_consumer_tickets(const struct spoke_consumer *consumer, size_t *ret_bytes)
{
	if (ret_bytes)
		*ret_bytes = consumer->caller.retry.bytes;
	return consumer->caller.retry.tasks;
}
