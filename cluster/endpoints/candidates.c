/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the arrays for balancers. */
#include "cluster/endpoints/candidates.h"

#include "cluster/endpoints/endpoint.h"
#include "core/base/env.h"

/* All arrays; the largest elements first, so that all are aligned. */
#define ARRAYS(ROW)                                                                                \
	ROW(endpoints, struct spokei_endpoint *)                                                   \
	ROW(names, const char *)                                                                   \
	ROW(ids, uint64_t)                                                                         \
	ROW(means_ns, uint64_t)                                                                    \
	ROW(chosen_ns, uint64_t)                                                                   \
	ROW(weights, uint32_t)                                                                     \
	ROW(actives, uint32_t)                                                                     \
	ROW(successes, uint32_t)                                                                   \
	ROW(ranks, uint8_t)                                                                        \
	ROW(able, uint8_t)

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a term of a sum */
#define SIZE_OF(array, type) +sizeof(type)

/* Bytes per place. Two homes and so on, so that their numbers can be powers of two. */
#define CANDIDATE (6 * sizeof(uint32_t) ARRAYS(SIZE_OF))

static void *part(unsigned char **at, size_t count, size_t size)
{
	unsigned char *begin = *at;

	*at += count * size;
	return begin;
}

static void lay_out(struct spokei_candidates *candidates, void *memory, size_t room)
{
	unsigned char *at = memory;

	candidates->memory = memory;
	candidates->room = room;
	candidates->home_room = 1;
	while (candidates->home_room < room)
		candidates->home_room *= 2;
	candidates->changes.moved.mask = candidates->home_room - 1;
	candidates->changes.placed.mask = candidates->home_room - 1;
	candidates->homes = part(&at, 2 * room, sizeof(*candidates->homes));
	candidates->changes.moved.places = part(&at, 2 * room, sizeof(uint32_t));
	candidates->changes.placed.places = part(&at, 2 * room, sizeof(uint32_t));
#define LAY_OUT(array, type) candidates->array = part(&at, room, sizeof(type));
	ARRAYS(LAY_OUT)
	candidates->shown = (struct spoke_balancer_candidates){
		.count = candidates->shown.count,
		.room = room,
		.able_count = candidates->shown.able_count,
		.able = candidates->able,
		.weights = candidates->weights,
		.actives = candidates->actives,
		.means_ns = candidates->means_ns,
		.successes = candidates->successes,
		.chosen_ns = candidates->chosen_ns,
		.names = candidates->names,
	};
}

static void settle(struct spokei_candidates *candidates, size_t place)
{
	candidates->homes[candidates->ids[place] & (candidates->home_room - 1)] = (uint32_t)place;
}

/* A place has another provider, or none. */
static void note_provider(struct spokei_candidates *candidates, size_t place)
{
	spokei_moves_note(&candidates->changes.placed, place);
	candidates->changes.version++;
}

int spokei_candidates_reserve(const struct spoke_env *env, struct spokei_candidates *candidates,
			      size_t count)
{
	const struct spokei_candidates old = *candidates;
	size_t room = old.room + old.room / 2;
	void *memory;

	if (count <= old.room)
		return SPOKE_OK;
	room = room > count ? room : count;
	memory = spokei_alloc(env, room, CANDIDATE);
	if (memory == NULL)
		return SPOKE_ENOMEM;
	lay_out(candidates, memory, room);
#define COPY(array, type) memcpy(candidates->array, old.array, old.shown.count * sizeof(type));
	if (old.shown.count > 0) {
		ARRAYS(COPY)
	}
	for (size_t i = 0; i < old.shown.count; i++)
		settle(candidates, i);
	spokei_free(env, old.memory, old.room, CANDIDATE);
	candidates->changes.version++;
	return SPOKE_OK;
}

void spokei_candidates_fini(const struct spoke_env *env, struct spokei_candidates *candidates)
{
	spokei_free(env, candidates->memory, candidates->room, CANDIDATE);
}

void spokei_candidates_add(struct spokei_candidates *candidates, struct spokei_endpoint *endpoint)
{
	size_t place = candidates->shown.count++;

	SPOKE_ASSERT(place < candidates->room);
	endpoint->place = (uint32_t)place;
	candidates->endpoints[place] = endpoint;
	candidates->names[place] = endpoint->name;
	candidates->ids[place] = endpoint->id;
	candidates->weights[place] = endpoint->weight;
	candidates->actives[place] = endpoint->actives;
	candidates->means_ns[place] = endpoint->score.mean_ns;
	candidates->successes[place] = endpoint->score.successes;
	candidates->chosen_ns[place] = endpoint->chosen_ns;
	candidates->ranks[place] = SPOKEI_RANK_NONE;
	candidates->ranked[SPOKEI_RANK_NONE]++;
	candidates->able[place] = 0;
	settle(candidates, place);
	note_provider(candidates, place);
}

struct spokei_endpoint *spokei_candidates_remove(struct spokei_candidates *candidates,
						 struct spokei_endpoint *endpoint)
{
	size_t place = endpoint->place;
	size_t last = --candidates->shown.count;

	candidates->ranked[candidates->ranks[place]]--;
	candidates->shown.able_count -= candidates->able[place];
	endpoint->place = SPOKEI_NOWHERE;
	note_provider(candidates, last);
	if (place == last)
		return NULL;
	note_provider(candidates, place);
#define MOVE(array, type) candidates->array[place] = candidates->array[last];
	ARRAYS(MOVE)
	candidates->endpoints[place]->place = (uint32_t)place;
	settle(candidates, place);
	return candidates->endpoints[place];
}

static void set_able(struct spokei_candidates *candidates, size_t place)
{
	uint8_t rank = candidates->ranks[place];
	uint8_t able = rank < SPOKEI_RANK_FULL && rank == candidates->best;

	if (able == candidates->able[place])
		return;
	candidates->able[place] = able;
	candidates->shown.able_count += able ? 1 : SIZE_MAX;
	candidates->differs = true;
}

void spokei_candidates_rank(struct spokei_candidates *candidates, size_t place, uint8_t rank)
{
	candidates->regraded += rank != candidates->ranks[place];
	candidates->ranked[candidates->ranks[place]]--;
	candidates->ranked[rank]++;
	candidates->ranks[place] = rank;
	set_able(candidates, place);
}

void spokei_candidates_grade(struct spokei_candidates *candidates)
{
	uint8_t best = 0;

	while (best < SPOKEI_RANK_NONE && candidates->ranked[best] == 0)
		best++;
	candidates->usable = candidates->shown.count - candidates->ranked[SPOKEI_RANK_FULL] -
			     candidates->ranked[SPOKEI_RANK_NONE];
	if (best == candidates->best)
		return;
	candidates->best = best;
	for (size_t i = 0; i < candidates->shown.count; i++)
		set_able(candidates, i);
}
