/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens where. */
#include "core/virtual/net_wire.h"

#include <string.h>

struct memwire_socket *memwire_listener(struct memnet *net, const char *name)
{
	for (struct memwire_socket *one = net->all.next; one != &net->all; one = one->next) {
		if (one->kind == MEMWIRE_LISTENER && !one->gone && memname_covers(one->local, name))
			return one;
	}
	return NULL;
}

struct memwire_socket *memwire_listener_next(struct memnet *net, const char *name)
{
	struct memwire_socket *first = memwire_listener(net, name);
	struct memwire_socket *chosen = first;
	unsigned count = 1;

	if (first == NULL || !first->shared)
		return first;
	for (struct memwire_socket *one = first->next; one != &net->all; one = one->next) {
		if (one->kind != MEMWIRE_LISTENER || one->gone || !one->shared ||
		    strcmp(one->local, first->local) != 0)
			continue;
		count++;
		if (memwire_dice(net) % count == 0)
			chosen = one;
	}
	return chosen;
}
