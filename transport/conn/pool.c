/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of connections, listed by how full they are; see pool.h. */
#include "transport/conn/pool.h"
#include "core/base/env.h"

#include "core/memory/hidden.h"

#include <string.h>

#define UNIT (2 * sizeof(void *)) /* bytes; keeps cells aligned for all types of connections */

struct head;

/* Stands before the cells of a block. */
struct block {
	struct spoke_list node; /* in a list of blocks with free cells, unless it is full */
	struct head *free;
	uint16_t taken;
	uint16_t count; /* number of its cells */
};

/* Stands before each cell. */
struct head {
	struct block *block;
	struct head *next; /* next free cell */
};

_Static_assert(sizeof(struct head) % UNIT == 0 && sizeof(struct block) % UNIT == 0,
	       "cells are aligned");

void spokei_conn_pool_init(struct spokei_conn_pool *pool, const struct spoke_env *env, size_t size)
{
	*pool = (struct spokei_conn_pool){
		.env = env,
		.size = sizeof(struct head) + (size + UNIT - 1) / UNIT * UNIT,
	};
	for (unsigned i = 0; i < SPOKEI_CONN_POOL_BLOCK; i++)
		spokei_list_init(&pool->roomy[i]);
}

void spokei_conn_pool_fini(const struct spokei_conn_pool *pool)
{
	SPOKE_ASSERT(pool->blocks == 0);
}

static size_t block_size(const struct spokei_conn_pool *pool, unsigned count)
{
	return sizeof(struct block) + count * pool->size;
}

static void put_free(const struct spokei_conn_pool *pool, struct block *block, struct head *head)
{
	head->next = block->free;
	block->free = head;
	spokei_hide(head + 1, pool->size - sizeof(*head));
}

static struct block *add_block(struct spokei_conn_pool *pool)
{
	unsigned count = pool->blocks > 0 ? SPOKEI_CONN_POOL_BLOCK : 1;
	struct block *block = spokei_alloc_unset(pool->env, block_size(pool, count));

	if (block == NULL)
		return NULL;
	*block = (struct block){ .count = (uint16_t)count };
	for (unsigned i = count; i > 0; i--) {
		unsigned char *at = (unsigned char *)(block + 1) + (i - 1) * pool->size;
		struct head *head = (struct head *)(void *)at;

		head->block = block;
		put_free(pool, block, head);
	}
	pool->blocks++;
	return block;
}

/* Takes the fullest block with a free cell out of its list; NULL: no memory. */
static struct block *pick_block(struct spokei_conn_pool *pool)
{
	for (unsigned i = SPOKEI_CONN_POOL_BLOCK - 1; i > 0; i--) {
		struct spoke_list *node;

		if (spokei_list_empty(&pool->roomy[i]))
			continue;
		node = spokei_list_first(&pool->roomy[i]);
		spokei_list_remove(node);
		return spoke_container_of(node, struct block, node);
	}
	return add_block(pool);
}

static void put_block(struct spokei_conn_pool *pool, struct block *block)
{
	if (block->taken < block->count)
		spokei_list_append(&pool->roomy[block->taken], &block->node);
}

void *spokei_conn_pool_take(struct spokei_conn_pool *pool)
{
	struct block *block = pick_block(pool);
	struct head *head;

	if (block == NULL)
		return NULL;
	head = block->free;
	block->free = head->next;
	block->taken++;
	put_block(pool, block);
	spokei_show(head + 1, pool->size - sizeof(*head));
	memset(head + 1, 0, pool->size - sizeof(*head));
	return head + 1;
}

void spokei_conn_pool_give(struct spokei_conn_pool *pool, void *memory)
{
	struct head *head = (struct head *)memory - 1;
	struct block *block = head->block;

	SPOKE_ASSERT(block->taken > 0);
	if (block->taken < block->count)
		spokei_list_remove(&block->node);
	put_free(pool, block, head);
	block->taken--;
	if (block->taken > 0) {
		put_block(pool, block);
		return;
	}
	pool->blocks--;
	spokei_show(block, block_size(pool, block->count));
	spokei_free(pool->env, block, block_size(pool, block->count), 1);
}
