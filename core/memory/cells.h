/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the objects of one owner that live long, e.g. its connections, several in one block.
 * Such objects live much longer than calls. Allocated one by one they would end up in holes between
 * freed call memory and pin otherwise empty pages. The fullest block is filled first, so that
 * others become empty; an empty block is freed. The first block has one cell, because most owners
 * have one connection. Owned by one object, on its thread.
 */
#ifndef SPOKEI_CORE_MEMORY_CELLS_H
#define SPOKEI_CORE_MEMORY_CELLS_H

#include "timer/base.h"

#include <spoke/base.h>
#include <spoke/env.h>

/* Cells of a block: as many connections, the largest objects, as fit a page. After many have gone,
 * each remaining one may pin a block. */
#define SPOKEI_CELLS_BLOCK 3u

struct spokei_cells {
	const struct spoke_env *env; /* borrowed for the life of the cells */
	size_t size;                 /* bytes of each cell, with its head */
	size_t blocks;               /* number of blocks */
	/* Blocks with a free cell, by how many are taken. */
	struct spoke_list roomy[SPOKEI_CELLS_BLOCK];
};

/* Prepares memory, none yet, of cells of `size` bytes. Must not be moved. */
void spokei_cells_init(struct spokei_cells *cells, const struct spoke_env *env, size_t size);

/* Returns a cell, all zero; NULL: no memory. */
SPOKE_MUST_USE void *spokei_cells_take(struct spokei_cells *cells);

/* Checks that all cells were given back. */
void spokei_cells_fini(const struct spokei_cells *cells);

/* Gives a cell back. */
void spokei_cells_give(struct spokei_cells *cells, void *memory);

#endif
