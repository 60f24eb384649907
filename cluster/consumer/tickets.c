/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets, as users see them. */
#include "cluster/call/parts.h"

const char *spoke_ticket_settlement_name(enum spoke_ticket_settlement settlement)
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

	return call && call->retry && call->retry->told ? call : NULL;
}

void spokei_ticket_look(const struct spokei_retry_state *retry, uint64_t now_ns,
			struct spoke_ticket_state *ret_state)
{
	uint64_t gone_ns = retry->begun_ns && now_ns > retry->begun_ns ? now_ns - retry->begun_ns
								       : 0;

	*ret_state = (struct spoke_ticket_state){
		.id = retry->id,
		.attempts = retry->begun,
		.sending = retry->open > 0,
		.last_error = retry->ending.error,
		.left_ns = retry->lasts_ns > gone_ns ? retry->lasts_ns - gone_ns : 0,
	};
	if (retry->stage != SPOKEI_RETRY_STATE_PAUSING)
		return;
	ret_state->next_ns = retry->pause_ns;
	if (retry->arm.node.next == NULL)
		ret_state->next_ns = retry->due_ns > now_ns ? retry->due_ns - now_ns : 0;
}

bool spoke_ticket_ask(const struct spoke_consumer *consumer, struct spoke_ticket ticket,
		      struct spoke_ticket_state *ret_state)
{
	const struct spokei_call *call = call_of(consumer, ticket);

	if (call == NULL)
		return false;
	spokei_ticket_look(call->retry, consumer->engine->begin_ns, ret_state);
	return true;
}

size_t spoke_consumer_ticket_list(const struct spoke_consumer *consumer,
				  struct spoke_ticket_info *infos, size_t max)
{
	const struct spoke_list *all = &consumer->caller.retry.tickets;
	size_t count = 0;

	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct spokei_retry_state *retry =
			spoke_container_of(node, struct spokei_retry_state, of_tickets);

		if (!retry->told)
			continue;
		if (count < max) {
			infos[count].ticket.handle = retry->call->handle;
			infos[count].method = retry->call->method->name;
			spokei_ticket_look(retry, consumer->engine->begin_ns, &infos[count].state);
		}
		count++;
	}
	return count;
}

int spoke_ticket_then(struct spoke_consumer *consumer, struct spoke_ticket ticket,
		      spoke_ticket_done_fn done, void *arg)
{
	const struct spokei_call *call = call_of(consumer, ticket);

	if (call == NULL)
		return SPOKE_ENOENT;
	if (done == NULL)
		return SPOKE_EINVAL;
	if (call->retry->settle)
		return SPOKE_EEXIST;
	call->retry->settle = done;
	call->retry->settle_arg = arg;
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
