/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rare paths of the ring that finds the call of an id.
 *
 * An id whose cell is taken is skipped, so no two waiting calls have the same id, even after a
 * wrap; an old call costs one id in each lap. There is always a free cell: at most half of the
 * cells are taken. Either the ids from first to last pass all cells, or there are fewer ids than
 * cells, and each id has a cell of its own.
 *
 * A large ring grows cell by cell, because moving a million calls at once would take a turn of many
 * milliseconds: each call that is added moves a few others. A cell of the ring splits into two of
 * the grown ring. The grown ring is initialised on the way, so its pages are not touched at once
 * either.
 */
#include "transport/conn/pending.h"
#include "core/base/env.h"

#include <string.h>

#define FIRST_ROOM 8u
#define FREE_AT_A_TIME ((size_t)1 << 16) /* bytes of a ring that has grown */
#define SPLIT_AT_A_TIME 4u /* cells, by each call that is added while the ring grows */

void spokei_pendings_fini(struct spokei_pendings *pendings, const struct spoke_env *env)
{
	SPOKE_ASSERT(pendings->count == 0);
	spokei_free(env, (void *)pendings->ring, pendings->room, sizeof(void *));
	spokei_free(env, (void *)pendings->grown, 2 * pendings->room, sizeof(void *));
	spokei_free(env, pendings->spent, pendings->spent_size, 1);
	pendings->ring = NULL;
	pendings->grown = NULL;
	pendings->spent = NULL;
	pendings->room = 0;
	pendings->limit = 0;
}

/* Returns the cell of an id in the ring that has its calls now. */
static struct spokei_pending **cell_of(const struct spokei_pendings *pendings, uint64_t id)
{
	size_t cell = spokei_pendings_cell(pendings, id);

	if (pendings->grown && cell < pendings->split)
		return &pendings->grown[(size_t)id & (2 * pendings->room - 1)];
	return &pendings->ring[cell];
}

/* Frees a part of the spent ring; all of it, if that is the rest or the environment frees no parts.
 */
static void free_spent(struct spokei_pendings *pendings, const struct spoke_env *env, size_t size)
{
	size_t before = pendings->spent_size;

	if (before > size)
		pendings->spent = spokei_free_end(env, pendings->spent, &pendings->spent_size,
						  before - size);
	if (pendings->spent_size < before)
		return;
	spokei_free(env, pendings->spent, pendings->spent_size, 1);
	pendings->spent = NULL;
	pendings->limit = pendings->room / 2;
}

/* Moves the calls of the next cells into the grown ring. Ids that differ in the low bits of the
 * smaller ring differ in those of the larger one, too: no two calls get the same cell. */
static void split_cells(struct spokei_pendings *pendings, const struct spoke_env *env, size_t cells)
{
	size_t room = pendings->room;

	for (; cells > 0 && pendings->split < room; cells--) {
		size_t cell = pendings->split++;
		struct spokei_pending *pending = pendings->ring[cell];

		pendings->grown[cell] = NULL;
		pendings->grown[cell + room] = NULL;
		if (pending == NULL)
			continue;
		pendings->ring[cell] = NULL;
		pendings->grown[(size_t)pending->id & (2 * room - 1)] = pending;
	}
	if (pendings->split < room)
		return;
	pendings->spent = pendings->ring;
	pendings->spent_size = room * sizeof(void *);
	pendings->ring = pendings->grown;
	pendings->grown = NULL;
	pendings->room = 2 * room;
	free_spent(pendings, env, FREE_AT_A_TIME);
}

/* Begins to grow a ring that is half full; a small one grows at once. */
static int grow(struct spokei_pendings *pendings, const struct spoke_env *env)
{
	size_t room = pendings->room ? 2 * pendings->room : FIRST_ROOM;
	void *memory = spokei_alloc_unset(env, room * sizeof(void *));

	if (memory == NULL)
		return SPOKE_ENOMEM;
	if (pendings->room == 0) {
		pendings->ring = memset(memory, 0, room * sizeof(void *));
		pendings->room = room;
		pendings->limit = room / 2;
		return SPOKE_OK;
	}
	if (pendings->spent)
		free_spent(pendings, env, SIZE_MAX);
	pendings->grown = memory;
	pendings->split = 0;
	pendings->limit = 0;
	if (pendings->room <= SPOKEI_PENDINGS_ROOM_AT_ONCE)
		split_cells(pendings, env, pendings->room);
	return SPOKE_OK;
}

int spokei_pendings_add_slowly(struct spokei_pendings *pendings, const struct spoke_env *env,
			       struct spokei_pending *pending)
{
	struct spokei_pending **cell;
	int error = SPOKE_OK;

	if (pendings->count > pendings->last - pendings->first)
		return SPOKE_ELIMIT;
	if (pendings->spent)
		free_spent(pendings, env, FREE_AT_A_TIME);
	if (pendings->grown == NULL && pendings->count >= pendings->room / 2)
		error = grow(pendings, env);
	if (error)
		return error;
	if (pendings->grown)
		split_cells(pendings, env, SPLIT_AT_A_TIME);
	while (*(cell = cell_of(pendings, pendings->next)))
		spokei_pendings_step(pendings);
	pending->id = pendings->next;
	*cell = pending;
	pendings->count++;
	spokei_pendings_step(pendings);
	return SPOKE_OK;
}

void spokei_pendings_remove_grown(struct spokei_pendings *pendings,
				  const struct spokei_pending *pending)
{
	struct spokei_pending **cell = cell_of(pendings, pending->id);

	if (*cell != pending)
		return;
	*cell = NULL;
	pendings->count--;
}

struct spokei_pending *spokei_pendings_find_grown(const struct spokei_pendings *pendings,
						  uint64_t id)
{
	struct spokei_pending *pending = pendings->count > 0 ? *cell_of(pendings, id) : NULL;

	return pending && pending->id == id ? pending : NULL;
}

bool spokei_pendings_gave(const struct spokei_pendings *pendings, uint64_t id)
{
	uint64_t behind; /* ids given after this one, if it was given */

	if (id < pendings->first || id > pendings->last)
		return false;
	if (id < pendings->next)
		behind = pendings->next - 1 - id;
	else
		behind = pendings->next - pendings->first + (pendings->last - id);
	return behind < pendings->given;
}

struct spokei_pending *spokei_pendings_any(struct spokei_pendings *pendings)
{
	if (pendings->count == 0)
		return NULL;
	/* From the cell of `next`, which is that of the oldest of the last `room` ids. */
	for (;; pendings->looked++) {
		uint64_t id = pendings->next + pendings->looked;
		struct spokei_pending *pending = *cell_of(pendings, id);

		if (pending == NULL && pendings->grown)
			pending = *cell_of(pendings, id + pendings->room);
		if (pending)
			return pending;
	}
}
