/* SPDX-License-Identifier: Apache-2.0 */
/* Derives the names of the channel and of the fencing counter from the name of a lease. */
#include "cluster/lease/names.h"

#include <stdbool.h>
#include <string.h>

static const struct spoke_span prefixes[] = {
	[SPOKEI_LEASE_CHANNEL] = { "redisson_lock__channel:", 23 },
	[SPOKEI_LEASE_TOKEN] = { "redisson_lock_token:", 20 },
};

size_t spokei_lease_name(char *to, enum spokei_lease_name which, struct spoke_span name)
{
	bool tagged = name.len > 0 && memchr(name.data, '{', name.len) != NULL;
	size_t at = prefixes[which].len;

	memcpy(to, prefixes[which].data, at);
	if (!tagged)
		to[at++] = '{';
	if (name.len > 0)
		memcpy(to + at, name.data, name.len);
	at += name.len;
	if (!tagged)
		to[at++] = '}';
	return at;
}
