/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the connections of one owner lie: several in one block. They outlast thousands of calls,
 * and each by itself would come to lie where one of these left a hole, and hold a page of memory
 * that is free otherwise. The fullest block is filled up first, so that the others become empty;
 * one that is empty is given back. The first block has one berth, for most owners have one
 * connection. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONN_POOL_H
#define SPOKEI_TRANSPORT_CONN_POOL_H

#include "timer/base.h"

#include <spoke/env.h>

/* Berths that are allocated together: as many connections as lie in a page, for after many have
 * gone what is left of them may hold a block each. */
#define SPOKEI_CONN_POOL_BLOCK 3u

struct spokei_conn_pool {
	const struct spoke_env *env; /* borrowed for their life */
	size_t size;                 /* bytes of each, with its head */
	size_t blocks;               /* that there are */
	/* Blocks where one is free, by how many are taken. */
	struct spoke_list roomy[SPOKEI_CONN_POOL_BLOCK];
};

/* None, which hold no memory yet, of `size` bytes. Must not be moved. */
void spokei_conn_pool_init(struct spokei_conn_pool *pool, const struct spoke_env *env, size_t size);

/* One, all zero; NULL: no memory. */
SPOKE_MUST_USE void *spokei_conn_pool_take(struct spokei_conn_pool *pool);

/* All were given back. */
void spokei_conn_pool_fini(const struct spokei_conn_pool *pool);

/* One that was taken is free again. */
void spokei_conn_pool_give(struct spokei_conn_pool *pool, void *memory);

#endif
