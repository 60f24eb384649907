/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which idle closes a lack of CPU explains. */
#include "examples/demo/pauses.h"

#include <stdbool.h>
#include <stddef.h>

#define CLOSES 64u
#define PAUSES 256u
#define INTERVALS 4u /* of silence, before an idle check closes a connection */

/* The first closes, and the latest pauses. */
static struct {
	const struct actor *actor;
	const struct actor *peer;
	uint64_t at_ns;
} closes[CLOSES];
static unsigned close_count; /* may exceed CLOSES */

static struct pause {
	const struct actor *actor;
	uint64_t from_ns;
	uint64_t to_ns;
} pauses[PAUSES];
static unsigned pause_count;

void pauses_note(const struct actor *actor, uint64_t from_ns, uint64_t to_ns)
{
	pauses[pause_count++ % PAUSES] = (struct pause){ actor, from_ns, to_ns };
}

void pauses_note_close(const struct actor *actor, const struct actor *peer, uint64_t at_ns)
{
	unsigned i = close_count++;

	if (i >= CLOSES)
		return;
	closes[i].actor = actor;
	closes[i].peer = peer;
	closes[i].at_ns = at_ns;
}

static bool is_explained(unsigned number, uint64_t interval_ns)
{
	const struct actor *actor = closes[number].actor;
	const struct actor *peer = closes[number].peer;
	uint64_t at_ns = closes[number].at_ns;

	for (unsigned i = 0; i < pause_count && i < PAUSES; i++) {
		const struct pause *pause = &pauses[i];

		if (peer && pause->actor != peer && pause->actor != actor)
			continue;
		if (pause->to_ns - pause->from_ns >= interval_ns && pause->from_ns <= at_ns &&
		    pause->to_ns + INTERVALS * interval_ns >= at_ns)
			return true;
	}
	return false;
}

unsigned pauses_count(uint64_t interval_ns, unsigned *ret_starved)
{
	*ret_starved = 0;
	for (unsigned i = 0; i < close_count && i < CLOSES; i++)
		*ret_starved += is_explained(i, interval_ns);
	return close_count - *ret_starved;
}
