/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of one size that never move, named by handles: a handle is an index and a generation, by
 * value, so one that outlives its cell is noticed and never reaches the next owner of the cell.
 * Taking the cell given back last keeps the memory in use small and warm. Owned by one object, on
 * its thread.
 */
#ifndef SPOKEI_CORE_MEMORY_SLAB_H
#define SPOKEI_CORE_MEMORY_SLAB_H

#include "core/base/env.h"

#define SPOKEI_SLAB_CHUNK 64u /* cells that are allocated together */

struct spokei_slab {
	const struct spoke_env *env; /* borrowed for the slab's life */
	unsigned char **chunks;
	uint32_t chunk_count;
	uint32_t chunk_room; /* length of `chunks` */
	uint32_t count;      /* cells taken */
	uint32_t max;        /* cells that may be taken */
	uint32_t free;       /* index + 1 of the cell to take next; 0: a new one */
	uint32_t used;       /* cells ever taken; those behind are new */
	size_t cell_size;    /* with its head */
	bool lasting;        /* cells keep their content */
};

/* An empty slab that holds no memory yet, of cells of `size` bytes, at most `max` of them. */
void spokei_slab_init(struct spokei_slab *slab, const struct spoke_env *env, size_t size,
		      uint32_t max);

/*
 * The same, but a cell keeps its content when it is given back, for its next owner: all zero only
 * at first. So it may stay part of something until the slab ends.
 */
void spokei_slab_init_lasting(struct spokei_slab *slab, const struct spoke_env *env, size_t size,
			      uint32_t max);

/* The cell of an index below `used`, taken or not. */
void *spokei_slab_at(const struct spokei_slab *slab, uint32_t index);

/* Gives all memory back; all cells must have been given back. */
void spokei_slab_fini(struct spokei_slab *slab);

/*
 * Takes a cell, all zero unless it is a lasting one, and its handle, which is never 0. Returns 0,
 * SPOKE_ELIMIT (max cells are taken) or SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_slab_take(struct spokei_slab *slab, void **ret_cell,
				    uint64_t *ret_handle);

/* The cell of a handle, or NULL when it was given back since, or was never one. */
void *spokei_slab_get(const struct spokei_slab *slab, uint64_t handle);

/* Gives a cell back; its handle must be good. */
void spokei_slab_give(struct spokei_slab *slab, uint64_t handle);

#endif
