/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slab allocator: cells of one size that never move, addressed by handles. A handle is an index
 * and a generation, so a dangling handle is detected and never reaches the next owner of the cell.
 * The cell freed last is reused first, which keeps the memory in use small and cached. Owned by one
 * object, on its thread.
 */
#ifndef SPOKEI_CORE_MEMORY_SLAB_H
#define SPOKEI_CORE_MEMORY_SLAB_H

#include "core/base/env.h"

#define SPOKEI_SLAB_CHUNK 64u /* cells allocated together, at most */

/* Precedes each cell, and keeps it aligned for any type. */
struct spokei_slab_head {
	uint64_t handle; /* index, and above it the generation, which is odd while it is in use */
	struct spokei_slab_head *next_free;
};

#define SPOKEI_SLAB_GENERATION (UINT64_C(1) << 32) /* one, in a handle */

struct spokei_slab {
	const struct spoke_env *env; /* borrowed for the slab's life */
	unsigned char **chunks;
	uint32_t chunk_count;
	uint32_t chunk_room;           /* length of `chunks` */
	uint32_t count;                /* cells in use */
	uint32_t max;                  /* maximum of cells in use */
	struct spokei_slab_head *free; /* of the cell to reuse next; NULL: use a new one */
	uint32_t used;                 /* cells ever used; those after them are new */
	bool lasting;                  /* cells keep their content */
	size_t cell_size;              /* bytes of a cell with its head */
};

/* Initialises a slab for at most `max` cells of `size` bytes; it holds no memory yet. */
void spokei_slab_init(struct spokei_slab *slab, const struct spoke_env *env, size_t size,
		      uint32_t max);

/*
 * Does the same, but a freed cell keeps its content for its next owner and is zero only at first.
 * Part of a cell may therefore stay linked elsewhere until the slab ends.
 */
void spokei_slab_init_lasting(struct spokei_slab *slab, const struct spoke_env *env, size_t size,
			      uint32_t max);

/* Returns the cell with this index, in use or free; the index is below `used`. */
void *spokei_slab_at(const struct spokei_slab *slab, uint32_t index);

/* Frees all memory; every cell must have been freed. */
void spokei_slab_fini(struct spokei_slab *slab);

/* Puts a new cell on the empty free list. Returns 0, SPOKE_ELIMIT or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_slab_grow(struct spokei_slab *slab);

/* Allows the use of a cell and zeroes it; forbids it. Not for a lasting slab. */
void spokei_slab_show(const struct spokei_slab *slab, void *cell);
void spokei_slab_hide(const struct spokei_slab *slab, void *cell);

/*
 * Allocates a cell, zeroed unless the slab is a lasting one, and its handle, which is never 0.
 * Returns 0, SPOKE_ELIMIT (`max` cells are in use) or SPOKE_ENOMEM.
 */
SPOKE_MUST_USE static inline int spokei_slab_take(struct spokei_slab *slab, void **ret_cell,
						  uint64_t *ret_handle)
{
	struct spokei_slab_head *head = slab->free;

	if (SPOKEI_UNLIKELY(head == NULL || slab->count >= slab->max)) {
		int error = spokei_slab_grow(slab);

		if (error)
			return error;
		head = slab->free;
	}
	slab->free = head->next_free;
	slab->count++;
	head->handle += SPOKEI_SLAB_GENERATION;
	if (!slab->lasting)
		spokei_slab_show(slab, head + 1);
	*ret_cell = head + 1;
	*ret_handle = head->handle;
	return SPOKE_OK;
}

/* Returns the cell of a handle, or NULL if the cell was freed or the handle never existed. */
void *spokei_slab_get(const struct spokei_slab *slab, uint64_t handle);

/* Frees a cell; its handle must be valid. */
void spokei_slab_give(struct spokei_slab *slab, uint64_t handle);

/* The same for a cell that is in use. */
static inline void spokei_slab_give_cell(struct spokei_slab *slab, void *cell)
{
	struct spokei_slab_head *head = (struct spokei_slab_head *)cell - 1;

	SPOKE_ASSERT(head->handle & SPOKEI_SLAB_GENERATION);
	head->handle += SPOKEI_SLAB_GENERATION; /* wraps after 2^31 uses of this cell */
	head->next_free = slab->free;
	slab->free = head;
	slab->count--;
	if (!slab->lasting)
		spokei_slab_hide(slab, cell);
}

#endif
