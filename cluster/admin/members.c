/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the members of an engine that the page shows. */
#include "cluster/admin/members.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry.h"
#include "cluster/comet/view.h"
#include "cluster/consumer/consumer.h"
#include "cluster/lease/view.h"
#include "cluster/provider/provider.h"
#include "core/engine/engine.h"
#include "core/engine/roll.h"

#include <spoke/policy.h>

#define SEARCHED 4096u         /* waiting tickets, at most */
#define SEARCHED_SENT 1024u    /* other tickets, the oldest ones */
#define SEARCHED_METHODS 1024u /* for the next one, at most */

/* --- consumers, providers and leases */

/* Returns the next member of a kind after `node` on the engine's roll; NULL: there is none. */
static struct spokei_member *next_of(const struct spoke_engine *engine,
				     const struct spoke_list *node, const char *kind)
{
	for (struct spoke_list *at = node->next; at != &engine->roll; at = at->next) {
		struct spokei_member *member = spoke_container_of(at, struct spokei_member, node);

		if (member->kind == kind)
			return member;
	}
	return NULL;
}

const struct spoke_consumer *spokei_members_consumer(const struct spoke_engine *engine,
						     const struct spoke_consumer *before)
{
	const struct spoke_list *node = before ? &spokei_consumer_member(before)->node
					       : &engine->roll;
	struct spokei_member *member = next_of(engine, node, spokei_consumer_kind);

	return member ? spokei_consumer_of(member) : NULL;
}

const struct spoke_provider *spokei_members_provider(const struct spoke_engine *engine,
						     const struct spoke_provider *before)
{
	const struct spoke_list *node = before ? &spokei_provider_member(before)->node
					       : &engine->roll;
	struct spokei_member *member = next_of(engine, node, spokei_provider_kind);

	return member ? spokei_provider_of(member) : NULL;
}

struct spoke_leases *spokei_members_leases(const struct spoke_engine *engine,
					   struct spoke_leases *before)
{
	const struct spoke_list *node = before ? &spokei_leases_member(before)->node
					       : &engine->roll;
	struct spokei_member *member = next_of(engine, node, spokei_leases_kind);

	return member ? spokei_leases_of(member) : NULL;
}

const struct spoke_comet *spokei_members_comet(const struct spoke_engine *engine,
					       const struct spoke_comet *before)
{
	const struct spoke_list *node = before ? &spokei_comet_member(before)->node : &engine->roll;
	struct spokei_member *member = next_of(engine, node, spokei_comet_kind);

	return member ? spokei_comet_of_member(member) : NULL;
}

const struct spoke_method *spokei_members_method_apart(const struct spoke_consumer *consumer,
						       const struct spoke_method *before)
{
	const struct spokei_consumer_view view = spokei_consumer_look(consumer);
	const struct spoke_list *methods = &view.caller->methods;
	struct spoke_list *node = before ? before->node.next : methods->next;

	for (unsigned i = 0; i < SEARCHED_METHODS && node != methods; i++, node = node->next) {
		const struct spoke_method *method = spoke_container_of(node, struct spoke_method,
								       node);

		if (method->settings.policy != view.settings->policy ||
		    method->settings.balancer != view.settings->balancer)
			return method;
	}
	return NULL;
}

const char *spokei_members_balancer(const struct spokei_call_settings *settings)
{
	return settings->policy->in_order || !settings->balancer ? "" : settings->balancer->name;
}

size_t spokei_members_calls(const struct spoke_consumer *consumer)
{
	const struct spokei_caller *caller = spokei_consumer_look(consumer).caller;
	size_t calls = caller->calls.count;
	size_t tickets = caller->retry.tasks;

	return calls > tickets ? calls - tickets : 0;
}

/* --- tickets */

/* The earliest tickets in order; equal ones in the order of their insertion. */
struct found {
	struct spokei_due *dues;
	size_t count;
	size_t max;
};

static void add(struct found *found, const struct spokei_retry_state *retry, uint64_t in_ns)
{
	size_t at = found->count;

	if (at == found->max && (at == 0 || found->dues[at - 1].in_ns <= in_ns))
		return;
	if (at == found->max)
		at--;
	else
		found->count++;
	for (; at > 0 && found->dues[at - 1].in_ns > in_ns; at--)
		found->dues[at] = found->dues[at - 1];
	found->dues[at] = (struct spokei_due){ retry, in_ns };
}

size_t spokei_members_due(const struct spoke_consumer *consumer, struct spokei_due *dues,
			  size_t max)
{
	const struct spokei_caller *caller = spokei_consumer_look(consumer).caller;
	const struct spokei_retry_queue *queue = &caller->retry;
	uint64_t now_ns = caller->engine->begin_ns;
	struct found found = { .dues = dues, .max = max };
	struct spoke_list *node = queue->tickets.next;

	for (unsigned i = 0; i < SEARCHED_SENT && node != &queue->tickets; i++, node = node->next) {
		const struct spokei_retry_state *retry =
			spoke_container_of(node, struct spokei_retry_state, of_tickets);

		if (retry->ticket == SPOKEI_TICKET_HELD && retry->state != SPOKEI_CALL_PAUSING)
			add(&found, retry, 0);
	}
	node = queue->pausing.next;
	for (unsigned i = 0; i < SEARCHED && node != &queue->pausing; i++, node = node->next) {
		const struct spokei_retry_state *retry =
			spoke_container_of(node, struct spokei_retry_state, of_retry);

		if (retry->ticket == SPOKEI_TICKET_HELD)
			add(&found, retry, spokei_retry_state_pause(retry, now_ns));
	}
	return found.count;
}
