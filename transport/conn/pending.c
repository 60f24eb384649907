/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rare paths of the ring of calls. An id whose cell is taken is skipped, so no two waiting
 * calls have the same id, even after a wrap; an old call costs one id in each lap. There is always
 * a free cell: at most half of the cells are taken. Either the ids from first to last pass all
 * cells, or there are fewer ids than cells, and each id has a cell of its own.
 */
#include "transport/conn/pending.h"
#include "core/base/env.h"

#define FIRST_ROOM 8u

void spokei_pendings_init(struct spokei_pendings *pendings, uint64_t first, uint64_t last,
			  uint64_t next)
{
	SPOKE_ASSERT(first <= next && next <= last);
	*pendings = (struct spokei_pendings){ .first = first, .last = last, .next = next };
	spokei_list_init(&pendings->fresh);
	spokei_list_init(&pendings->kept);
	spokei_list_init(&pendings->unwritten);
}

void spokei_pendings_fini(struct spokei_pendings *pendings, const struct spoke_env *env)
{
	SPOKE_ASSERT(pendings->count == 0);
	spokei_free(env, (void *)pendings->ring, pendings->room, sizeof(void *));
	pendings->ring = NULL;
	pendings->room = 0;
}

/* Ids that differ in the low bits of the smaller ring differ in those of the larger one, too: no
 * two calls get the same cell. */
static int grow(struct spokei_pendings *pendings, const struct spoke_env *env)
{
	struct spokei_pendings grown = *pendings;

	grown.room = pendings->room ? 2 * pendings->room : FIRST_ROOM;
	grown.ring = (struct spokei_pending **)spokei_alloc(env, grown.room, sizeof(void *));
	if (grown.ring == NULL)
		return SPOKE_ENOMEM;
	for (size_t i = 0; i < pendings->room; i++) {
		struct spokei_pending *pending = pendings->ring[i];

		if (pending)
			grown.ring[spokei_pendings_cell(&grown, pending->id)] = pending;
	}
	spokei_free(env, (void *)pendings->ring, pendings->room, sizeof(void *));
	pendings->ring = grown.ring;
	pendings->room = grown.room;
	return SPOKE_OK;
}

int spokei_pendings_make_place(struct spokei_pendings *pendings, const struct spoke_env *env)
{
	int error = SPOKE_OK;

	if (pendings->count > pendings->last - pendings->first)
		return SPOKE_ELIMIT;
	if (pendings->count >= pendings->room / 2)
		error = grow(pendings, env);
	if (error)
		return error;
	while (pendings->ring[spokei_pendings_cell(pendings, pendings->next)])
		spokei_pendings_step(pendings);
	return SPOKE_OK;
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
		size_t cell = spokei_pendings_cell(pendings, pendings->next + pendings->looked);

		if (pendings->ring[cell])
			return pendings->ring[cell];
	}
}
