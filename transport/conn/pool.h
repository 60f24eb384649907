/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the connections of one owner, several in one block. Connections live much longer than
 * calls. Allocated one by one they would end up in holes between freed call memory and pin
 * otherwise empty pages. The fullest block is filled first, so that others become empty; an empty
 * block is freed. The first block has one cell, because most owners have one connection. On the
 * engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONN_POOL_H
#define SPOKEI_TRANSPORT_CONN_POOL_H

#include "timer/base.h"

#include <spoke/env.h>

/* Cells of a block: as many connections as fit a page. After many have gone, each remaining one may
 * pin a block. */
#define SPOKEI_CONN_POOL_BLOCK 3u

struct spokei_conn_pool {
	const struct spoke_env *env; /* borrowed for the life of the pool */
	size_t size;                 /* bytes of each cell, with its head */
	size_t blocks;               /* number of blocks */
	/* Blocks with a free cell, by how many are taken. */
	struct spoke_list roomy[SPOKEI_CONN_POOL_BLOCK];
};

/* Prepares an empty pool, which has no memory yet, of cells of `size` bytes. Must not be moved. */
void spokei_conn_pool_init(struct spokei_conn_pool *pool, const struct spoke_env *env, size_t size);

/* Returns a cell, all zero; NULL: no memory. */
SPOKE_MUST_USE void *spokei_conn_pool_take(struct spokei_conn_pool *pool);

/* Checks that all cells were given back. */
void spokei_conn_pool_fini(const struct spokei_conn_pool *pool);

/* Gives a cell back. */
void spokei_conn_pool_give(struct spokei_conn_pool *pool, void *memory);

#endif
