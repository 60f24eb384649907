/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes part; see contest.h. */
#include "contest.h"

#include <string.h>

static bool is_installed(const struct contest_entry *entry)
{
	return entry->peer != NULL &&
	       (entry->peer->version == NULL || entry->peer->version() != NULL);
}

struct contest_cast contest_gather(const char *only)
{
	struct contest_cast cast = { .count = 0 };

	for (size_t i = 0; i < contest.count; i++) {
		const struct contest_entry *entry = &contest.entries[i];

		if (only != NULL && strcmp(only, entry->name) != 0)
			continue;
		if (is_installed(entry)) {
			cast.peers[cast.count++] = entry->peer;
			if (entry->peer->note != NULL)
				(void)printf("# %s: %s\n", entry->name, entry->peer->note);
		} else {
			(void)printf("# %s: left out, for the package %s is not installed\n",
				     entry->name, entry->package);
		}
	}
	(void)fflush(stdout);
	return cast;
}

const struct rpc_peer *contest_find(const char *name)
{
	for (size_t i = 0; i < contest.count; i++)
		if (strcmp(contest.entries[i].name, name) == 0)
			return contest.entries[i].peer;
	return NULL;
}
