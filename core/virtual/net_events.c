/* SPDX-License-Identifier: Apache-2.0 */
/* Events in flight in the network in memory: a heap, the earliest first. */
#include "core/virtual/net_parts.h"

#include "timer/base.h"

#include <stdlib.h>

static bool earlier(const struct spokei_vwire_event *a, const struct spokei_vwire_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap_events(struct spokei_vwire_event *a, struct spokei_vwire_event *b)
{
	struct spokei_vwire_event swapped = *a;

	*a = *b;
	*b = swapped;
}

void spokei_vwire_put_event(struct spokei_vnet *net, struct spokei_vwire_socket *to,
			    enum spokei_vwire_event_kind kind, uint32_t value, uint64_t at_ns)
{
	size_t at = net->events_len++;

	if (net->events_len > net->events_size) {
		net->events_size = net->events_size ? 2 * net->events_size : 64;
		net->events = realloc(net->events, net->events_size * sizeof(*net->events));
		SPOKE_ASSERT(net->events != NULL);
	}
	net->events[at] = (struct spokei_vwire_event){ at_ns, net->order++, to, kind, value };
	to->coming++;
	for (; at > 0 && earlier(&net->events[at], &net->events[(at - 1) / 2]); at = (at - 1) / 2)
		swap_events(&net->events[at], &net->events[(at - 1) / 2]);
}

struct spokei_vwire_event spokei_vwire_take_event(struct spokei_vnet *net)
{
	struct spokei_vwire_event first = net->events[0];
	size_t at = 0;

	net->events[0] = net->events[--net->events_len];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < net->events_len &&
		    earlier(&net->events[child + 1], &net->events[child]))
			child++;
		if (child >= net->events_len || !earlier(&net->events[child], &net->events[at]))
			break;
		swap_events(&net->events[at], &net->events[child]);
		at = child;
	}
	first.to->coming--;
	return first;
}
