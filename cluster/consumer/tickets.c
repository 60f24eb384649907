/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets and calls of a consumer as users see them: state, list, callbacks, cancelling. */
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry.h"
#include "cluster/consumer/parts.h"
#include "core/engine/engine.h"
#include "core/memory/slab.h"

#include <spoke/consumer.h>

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

/* Returns NULL if the ticket is settled, or was never one. */
static struct spokei_call *call_of(const struct spoke_consumer *consumer,
				   struct spoke_ticket ticket)
{
	struct spokei_call *call = NULL;

	if (!spokei_engine_elsewhere(consumer->engine))
		call = spokei_slab_get(&consumer->caller->calls, ticket.handle);
	return call && call->retry && call->retry->ticket == SPOKEI_TICKET_HELD ? call : NULL;
}

bool spoke_ticket_ask(const struct spoke_consumer *consumer, struct spoke_ticket ticket,
		      struct spoke_ticket_state *ret_state)
{
	const struct spokei_call *call = call_of(consumer, ticket);

	if (call == NULL)
		return false;
	spokei_engine_refresh(consumer->engine);
	spokei_ticket_look(call->retry, consumer->engine->begin_ns, ret_state);
	return true;
}

size_t spoke_consumer_ticket_list(const struct spoke_consumer *consumer,
				  struct spoke_ticket_info *infos, size_t max)
{
	const struct spoke_list *all = &consumer->caller->retry.tickets;
	size_t count = 0;

	if (spokei_engine_elsewhere(consumer->engine))
		return 0;
	spokei_engine_refresh(consumer->engine);
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		const struct spokei_retry_state *retry =
			spoke_container_of(node, struct spokei_retry_state, of_tickets);

		if (retry->ticket != SPOKEI_TICKET_HELD)
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
	int error = spokei_engine_check(consumer->engine);

	if (error)
		return error;
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
	return spokei_call_cancel(consumer->caller, (struct spoke_call){ ticket.handle });
}

bool spoke_call_cancel(struct spoke_consumer *consumer, struct spoke_call call)
{
	return spokei_call_cancel(consumer->caller, call);
}

size_t spoke_consumer_tickets(const struct spoke_consumer *consumer, size_t *ret_bytes)
{
	const bool elsewhere = spokei_engine_elsewhere(consumer->engine);

	if (ret_bytes)
		*ret_bytes = elsewhere ? 0 : consumer->caller->retry.bytes;
	return elsewhere ? 0 : consumer->caller->retry.tasks;
}
