/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of endpoints for balancers. */
#include "cluster/endpoints/candidates.h"
#include "core/base/env.h"

/* Bytes per place in all arrays. Two homes, so that their number can be a power of two. */
#define CANDIDATE                                                                                  \
	(sizeof(struct spokei_endpoint *) + sizeof(const char *) + 3 * sizeof(uint64_t) +          \
	 5 * sizeof(uint32_t) + 2 * sizeof(uint8_t))

static void *part(unsigned char **at, size_t count, size_t size)
{
	unsigned char *begin = *at;

	*at += count * size;
	return begin;
}

/* Places the largest elements first, so that all are aligned. */
static void lay_out(struct spokei_candidates *candidates, void *memory, size_t room)
{
	unsigned char *at = memory;

	candidates->memory = memory;
	candidates->room = room;
	candidates->home_room = 1;
	while (candidates->home_room < room)
		candidates->home_room *= 2;
	candidates->endpoints = part(&at, room, sizeof(struct spokei_endpoint *));
	candidates->names = part(&at, room, sizeof(*candidates->names));
	candidates->ids = part(&at, room, sizeof(*candidates->ids));
	candidates->means_ns = part(&at, room, sizeof(*candidates->means_ns));
	candidates->chosen_ns = part(&at, room, sizeof(*candidates->chosen_ns));
	candidates->weights = part(&at, room, sizeof(*candidates->weights));
	candidates->actives = part(&at, room, sizeof(*candidates->actives));
	candidates->successes = part(&at, room, sizeof(*candidates->successes));
	candidates->homes = part(&at, 2 * room, sizeof(*candidates->homes));
	candidates->ranks = part(&at, room, sizeof(*candidates->ranks));
	candidates->able = part(&at, room, sizeof(*candidates->able));
	candidates->shown = (struct spoke_balancer_candidates){
		.able = candidates->able,
		.weights = candidates->weights,
		.actives = candidates->actives,
		.means_ns = candidates->means_ns,
		.successes = candidates->successes,
		.chosen_ns = candidates->chosen_ns,
		.names = candidates->names,
	};
}

int spokei_candidates_reserve(struct spokei_candidates *candidates, size_t count)
{
	const struct spokei_candidates old = *candidates;
	void *memory;

	if (count <= candidates->room)
		return SPOKE_OK;
	memory = spokei_alloc(candidates->env, count, CANDIDATE);
	if (memory == NULL)
		return SPOKE_ENOMEM;
	lay_out(candidates, memory, count);
	for (size_t i = 0; i < old.shown.count; i++)
		spokei_candidates_add(candidates, old.endpoints[i]);
	spokei_free(candidates->env, old.memory, old.room, CANDIDATE);
	return SPOKE_OK;
}

void spokei_candidates_add(struct spokei_candidates *candidates, struct spokei_endpoint *endpoint)
{
	size_t place = candidates->shown.count++;

	SPOKE_ASSERT(place < candidates->room);
	endpoint->place = (uint32_t)place;
	candidates->endpoints[place] = endpoint;
	candidates->names[place] = endpoint->name;
	candidates->ids[place] = endpoint->id;
	candidates->homes[endpoint->id & (candidates->home_room - 1)] = (uint32_t)place;
	candidates->weights[place] = endpoint->weight;
	candidates->actives[place] = endpoint->actives;
	candidates->means_ns[place] = endpoint->score.mean_ns;
	candidates->successes[place] = endpoint->score.successes;
	candidates->chosen_ns[place] = endpoint->chosen_ns;
	candidates->ranks[place] = SPOKEI_RANK_NONE;
	candidates->able[place] = 0;
}

/* Ids count up, so few share a home; the newer endpoint owns it. */
size_t spokei_candidates_find(const struct spokei_candidates *candidates, uint64_t id)
{
	size_t count = candidates->shown.count;
	size_t home;

	if (count == 0)
		return SPOKE_NO_ENDPOINT;
	home = candidates->homes[id & (candidates->home_room - 1)];
	if (SPOKEI_LIKELY(home < count && candidates->ids[home] == id))
		return home;
	for (size_t place = 0; place < count; place++)
		if (candidates->ids[place] == id)
			return place;
	return SPOKE_NO_ENDPOINT;
}

void spokei_candidates_clear(struct spokei_candidates *candidates)
{
	for (size_t i = 0; i < candidates->shown.count; i++)
		candidates->endpoints[i]->place = SPOKEI_NOWHERE;
	candidates->shown.count = 0;
	candidates->shown.able_count = 0;
}

void spokei_candidates_fini(struct spokei_candidates *candidates)
{
	spokei_free(candidates->env, candidates->memory, candidates->room, CANDIDATE);
	spokei_candidates_init(candidates, candidates->env);
}
