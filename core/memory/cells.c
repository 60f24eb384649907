/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of one size for objects that live long: blocks of a few cells, listed by how full they are.
 */
#include "core/memory/cells.h"
#include "core/base/env.h"
#include "core/memory/hidden.h"

#include <string.h>

#define UNIT (2 * sizeof(void *)) /* bytes; keeps cells aligned for all types */

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

void spokei_cells_init(struct spokei_cells *cells, const struct spoke_env *env, size_t size)
{
	*cells = (struct spokei_cells){
		.env = env,
		.size = sizeof(struct head) + (size + UNIT - 1) / UNIT * UNIT,
	};
	for (unsigned i = 0; i < SPOKEI_CELLS_BLOCK; i++)
		spokei_list_init(&cells->roomy[i]);
}

void spokei_cells_fini(const struct spokei_cells *cells)
{
	SPOKE_ASSERT(cells->blocks == 0);
}

static size_t block_size(const struct spokei_cells *cells, unsigned count)
{
	return sizeof(struct block) + count * cells->size;
}

static void put_free(const struct spokei_cells *cells, struct block *block, struct head *head)
{
	head->next = block->free;
	block->free = head;
	spokei_hide(head + 1, cells->size - sizeof(*head));
}

static struct block *add_block(struct spokei_cells *cells)
{
	unsigned count = cells->blocks > 0 ? SPOKEI_CELLS_BLOCK : 1;
	struct block *block = spokei_alloc_unset(cells->env, block_size(cells, count));

	if (block == NULL)
		return NULL;
	*block = (struct block){ .count = (uint16_t)count };
	for (unsigned i = count; i > 0; i--) {
		unsigned char *at = (unsigned char *)(block + 1) + (i - 1) * cells->size;
		struct head *head = (struct head *)(void *)at;

		head->block = block;
		put_free(cells, block, head);
	}
	cells->blocks++;
	return block;
}

/* Takes the fullest block with a free cell out of its list; NULL: no memory. */
static struct block *pick_block(struct spokei_cells *cells)
{
	for (unsigned i = SPOKEI_CELLS_BLOCK - 1; i > 0; i--) {
		struct spoke_list *node;

		if (spokei_list_empty(&cells->roomy[i]))
			continue;
		node = spokei_list_first(&cells->roomy[i]);
		spokei_list_remove(node);
		return spoke_container_of(node, struct block, node);
	}
	return add_block(cells);
}

static void put_block(struct spokei_cells *cells, struct block *block)
{
	if (block->taken < block->count)
		spokei_list_append(&cells->roomy[block->taken], &block->node);
}

void *spokei_cells_take(struct spokei_cells *cells)
{
	struct block *block = pick_block(cells);
	struct head *head;

	if (block == NULL)
		return NULL;
	head = block->free;
	block->free = head->next;
	block->taken++;
	put_block(cells, block);
	spokei_show(head + 1, cells->size - sizeof(*head));
	memset(head + 1, 0, cells->size - sizeof(*head));
	return head + 1;
}

void spokei_cells_give(struct spokei_cells *cells, void *memory)
{
	struct head *head = (struct head *)memory - 1;
	struct block *block = head->block;

	SPOKE_ASSERT(block->taken > 0);
	if (block->taken < block->count)
		spokei_list_remove(&block->node);
	put_free(cells, block, head);
	block->taken--;
	if (block->taken > 0) {
		put_block(cells, block);
		return;
	}
	cells->blocks--;
	spokei_show(block, block_size(cells, block->count));
	spokei_free(cells->env, block, block_size(cells, block->count), 1);
}
