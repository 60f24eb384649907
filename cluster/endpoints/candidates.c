/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/endpoints/candidates.h"

/* Bytes of a place in all arrays; two homes, so that their number can be a power of two. */
#define SEAT                                                                                       \
	(sizeof(struct spokei_endpoint *) + sizeof(const char *) + 3 * sizeof(uint64_t) +          \
	 5 * sizeof(uint32_t) + 2 * sizeof(uint8_t))

static void *part(unsigned char **at, size_t count, size_t size)
{
	unsigned char *begin = *at;

	*at += count * size;
	return begin;
}

/* The largest first, so that all are aligned. */
static void lay_out(struct spokei_seats *seats, void *memory, size_t room)
{
	unsigned char *at = memory;

	seats->memory = memory;
	seats->room = room;
	seats->home_room = 1;
	while (seats->home_room < room)
		seats->home_room *= 2;
	seats->endpoints = part(&at, room, sizeof(struct spokei_endpoint *));
	seats->names = part(&at, room, sizeof(*seats->names));
	seats->ids = part(&at, room, sizeof(*seats->ids));
	seats->means_ns = part(&at, room, sizeof(*seats->means_ns));
	seats->chosen_ns = part(&at, room, sizeof(*seats->chosen_ns));
	seats->weights = part(&at, room, sizeof(*seats->weights));
	seats->actives = part(&at, room, sizeof(*seats->actives));
	seats->successes = part(&at, room, sizeof(*seats->successes));
	seats->homes = part(&at, 2 * room, sizeof(*seats->homes));
	seats->ranks = part(&at, room, sizeof(*seats->ranks));
	seats->able = part(&at, room, sizeof(*seats->able));
	seats->shown = (struct spoke_candidates){
		.able = seats->able,
		.weights = seats->weights,
		.actives = seats->actives,
		.means_ns = seats->means_ns,
		.successes = seats->successes,
		.chosen_ns = seats->chosen_ns,
		.names = seats->names,
	};
}

int spokei_seats_reserve(struct spokei_seats *seats, size_t count)
{
	const struct spokei_seats old = *seats;
	void *memory;

	if (count <= seats->room)
		return SPOKE_OK;
	memory = spokei_alloc(seats->env, count, SEAT);
	if (memory == NULL)
		return SPOKE_ENOMEM;
	lay_out(seats, memory, count);
	for (size_t i = 0; i < old.shown.count; i++)
		spokei_seats_add(seats, old.endpoints[i]);
	spokei_free(seats->env, old.memory, old.room, SEAT);
	return SPOKE_OK;
}

void spokei_seats_add(struct spokei_seats *seats, struct spokei_endpoint *endpoint)
{
	size_t place = seats->shown.count++;

	SPOKE_ASSERT(place < seats->room);
	endpoint->place = (uint32_t)place;
	seats->endpoints[place] = endpoint;
	seats->names[place] = endpoint->name;
	seats->ids[place] = endpoint->id;
	seats->homes[endpoint->id & (seats->home_room - 1)] = (uint32_t)place;
	seats->weights[place] = endpoint->weight;
	seats->actives[place] = endpoint->actives;
	seats->means_ns[place] = endpoint->score.mean_ns;
	seats->successes[place] = endpoint->score.successes;
	seats->chosen_ns[place] = endpoint->chosen_ns;
	seats->ranks[place] = SPOKEI_RANK_NONE;
	seats->able[place] = 0;
}

/* Ids count up, so that few have the same home; who came later has it. */
size_t spokei_seats_find(const struct spokei_seats *seats, uint64_t id)
{
	size_t count = seats->shown.count;
	size_t home;

	if (count == 0)
		return SPOKE_NOBODY;
	home = seats->homes[id & (seats->home_room - 1)];
	if (SPOKEI_LIKELY(home < count && seats->ids[home] == id))
		return home;
	for (size_t place = 0; place < count; place++)
		if (seats->ids[place] == id)
			return place;
	return SPOKE_NOBODY;
}

void spokei_seats_clear(struct spokei_seats *seats)
{
	for (size_t i = 0; i < seats->shown.count; i++)
		seats->endpoints[i]->place = SPOKEI_NOWHERE;
	seats->shown.count = 0;
	seats->shown.able_count = 0;
}

void spokei_seats_fini(struct spokei_seats *seats)
{
	spokei_free(seats->env, seats->memory, seats->room, SEAT);
	spokei_seats_init(seats, seats->env);
}
