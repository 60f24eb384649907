/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the peers of a benchmark; see contest.h. */
#include "contest.h"

#include <string.h>

static bool is_installed(const struct contest_entry *entry)
{
	return entry->peer != NULL &&
	       (entry->peer->version == NULL || entry->peer->version() != NULL);
}

static bool is_wanted(const struct contest_entry *entry, const char *only, bool spin, bool tls)
{
	bool spins = entry->peer != NULL && entry->peer->spin_ns == RPC_SPIN_NS;

	if (tls && entry->peer != NULL && !entry->peer->has_tls)
		return false;
	if (only != NULL && strcmp(only, entry->name) != 0)
		return false;
	return spins || !spin;
}

struct contest_cast contest_gather(const char *only, bool spin, bool tls)
{
	struct contest_cast cast = { .count = 0 };

	for (size_t i = 0; i < contest.count; i++) {
		const struct contest_entry *entry = &contest.entries[i];

		if (!is_wanted(entry, only, spin, tls))
			continue;
		if (is_installed(entry)) {
			cast.peers[cast.count++] = entry->peer;
			if (entry->peer->note != NULL)
				(void)printf("# %s: %s\n", entry->name, entry->peer->note);
		} else {
			(void)printf("# %s: left out, because the package %s is not installed\n",
				     entry->name, entry->package);
		}
	}
	(void)fflush(stdout);
	return cast;
}

static const struct contest_entry *find(const char *name)
{
	for (size_t i = 0; i < contest.count; i++)
		if (strcmp(contest.entries[i].name, name) == 0)
			return &contest.entries[i];
	return NULL;
}

bool contest_has(const char *name)
{
	return find(name) != NULL;
}

const struct rpc_peer *contest_find(const char *name)
{
	const struct contest_entry *entry = find(name);

	return entry == NULL ? NULL : entry->peer;
}
