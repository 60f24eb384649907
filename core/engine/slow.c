/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the lists of slow calls and requests. */
#include "core/engine/slow.h"

#include "core/base/env.h"

static uint64_t length_of(const struct spokei_slow_row *row)
{
	return row->queued_ns + row->took_ns;
}

/* Keeps the end of a name, which has the port. */
static void name_peer(struct spokei_slow_row *row, const char *peer)
{
	size_t len = strlen(peer);

	if (len >= sizeof(row->peer))
		peer += len - (sizeof(row->peer) - 1);
	memcpy(row->peer, peer, strlen(peer) + 1);
}

/* Inserts a row in its order; the least slow one may have to go. */
static void rank(struct spokei_slow *slow, const struct spokei_slow_row *row)
{
	size_t at = slow->slowest_count;

	if (at == SPOKEI_SLOW_ROWS && length_of(row) <= length_of(&slow->slowest[at - 1]))
		return;
	if (at < SPOKEI_SLOW_ROWS)
		slow->slowest_count++;
	else
		at--;
	for (; at > 0 && length_of(&slow->slowest[at - 1]) < length_of(row); at--)
		slow->slowest[at] = slow->slowest[at - 1];
	slow->slowest[at] = *row;
}

void spokei_slow_note(const struct spokei_slow_row *row, const char *peer)
{
	struct spoke_engine *engine = row->figures->engine;
	struct spokei_slow_row noted = *row;

	if (engine->slow == NULL)
		engine->slow = spokei_alloc(engine->env, 1, sizeof(*engine->slow));
	if (engine->slow == NULL)
		return;
	noted.number = ++engine->slow->count;
	noted.at_ns = engine->begin_ns;
	name_peer(&noted, peer);
	engine->slow->last[noted.number % SPOKEI_SLOW_ROWS] = noted;
	rank(engine->slow, &noted);
}

void spokei_slow_free(struct spoke_engine *engine)
{
	spokei_free(engine->env, engine->slow, 1, sizeof(*engine->slow));
}
