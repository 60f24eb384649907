/* SPDX-License-Identifier: Apache-2.0 */
/* Finds listeners by address. */
#include "core/virtual/net_parts.h"

#include <string.h>

struct spokei_vwire_socket *spokei_vwire_listener(struct spokei_vnet *net, const char *name)
{
	for (struct spokei_vwire_socket *one = net->all.next; one != &net->all; one = one->next) {
		if (one->kind == SPOKEI_VWIRE_LISTENER && !one->gone &&
		    spokei_vname_covers(one->local, name))
			return one;
	}
	return NULL;
}

struct spokei_vwire_socket *spokei_vwire_listener_next(struct spokei_vnet *net, const char *name)
{
	struct spokei_vwire_socket *first = spokei_vwire_listener(net, name);
	struct spokei_vwire_socket *chosen = first;
	unsigned count = 1;

	if (first == NULL || !first->shared)
		return first;
	for (struct spokei_vwire_socket *one = first->next; one != &net->all; one = one->next) {
		if (one->kind != SPOKEI_VWIRE_LISTENER || one->gone || !one->shared ||
		    strcmp(one->local, first->local) != 0)
			continue;
		count++;
		if (spokei_vwire_dice(net) % count == 0)
			chosen = one;
	}
	return chosen;
}
