/* SPDX-License-Identifier: Apache-2.0 */
/* A slab allocator: chunks of cells, with a free list through the free cells. The first chunks are
 * small, because most slabs need few cells: of 1, 1, 2, 4, 8, 16 and 32 cells; all others have 64.
 */
#include "core/memory/slab.h"

#include "core/memory/hidden.h"

#include <stddef.h>

#define HEAD_SIZE sizeof(struct spokei_slab_head)

_Static_assert(HEAD_SIZE % _Alignof(max_align_t) == 0, "a cell is aligned");

#define SMALL_CHUNKS 7u /* with SPOKEI_SLAB_CHUNK cells together */

/* Returns the index of the first cell of a chunk. */
static uint32_t first_of(uint32_t chunk)
{
	if (chunk >= SMALL_CHUNKS)
		return (chunk - SMALL_CHUNKS + 1) * SPOKEI_SLAB_CHUNK;
	return chunk > 0 ? 1u << (chunk - 1) : 0;
}

static uint32_t cells_of(uint32_t chunk)
{
	return first_of(chunk + 1) - first_of(chunk);
}

static struct spokei_slab_head *head_at(const struct spokei_slab *slab, uint32_t index)
{
	uint32_t chunk = SMALL_CHUNKS - 1 + index / SPOKEI_SLAB_CHUNK;

	while (index < first_of(chunk))
		chunk--;
	return (void *)(slab->chunks[chunk] + (index - first_of(chunk)) * slab->cell_size);
}

void spokei_slab_init(struct spokei_slab *slab, const struct spoke_env *env, size_t size,
		      uint32_t max)
{
	SPOKE_ASSERT(max < UINT32_MAX - SPOKEI_SLAB_CHUNK);
	*slab = (struct spokei_slab){
		.env = env,
		.max = max,
		.cell_size = HEAD_SIZE + (size + HEAD_SIZE - 1) / HEAD_SIZE * HEAD_SIZE,
	};
}

void spokei_slab_init_lasting(struct spokei_slab *slab, const struct spoke_env *env, size_t size,
			      uint32_t max)
{
	spokei_slab_init(slab, env, size, max);
	slab->lasting = true;
}

void *spokei_slab_at(const struct spokei_slab *slab, uint32_t index)
{
	SPOKE_ASSERT(index < slab->used);
	return head_at(slab, index) + 1;
}

void spokei_slab_fini(struct spokei_slab *slab)
{
	SPOKE_ASSERT(slab->count == 0);
	for (uint32_t i = 0; i < slab->chunk_count; i++) {
		spokei_show(slab->chunks[i], cells_of(i) * slab->cell_size);
		spokei_free(slab->env, slab->chunks[i], cells_of(i), slab->cell_size);
	}
	spokei_free(slab->env, slab->chunks, slab->chunk_room, sizeof(*slab->chunks));
	slab->chunks = NULL;
	slab->chunk_count = 0;
	slab->chunk_room = 0;
	slab->free = NULL;
	slab->used = 0;
}

/* Makes room for the address of another chunk. */
static bool grow_table(struct spokei_slab *slab)
{
	uint32_t room = slab->chunk_room ? 2 * slab->chunk_room : 4;
	unsigned char **chunks = spokei_alloc(slab->env, room, sizeof(*chunks));

	if (chunks == NULL)
		return false;
	if (slab->chunk_count)
		memcpy(chunks, slab->chunks, slab->chunk_count * sizeof(*chunks));
	spokei_free(slab->env, slab->chunks, slab->chunk_room, sizeof(*chunks));
	slab->chunks = chunks;
	slab->chunk_room = room;
	return true;
}

static bool add_chunk(struct spokei_slab *slab)
{
	uint32_t cells = cells_of(slab->chunk_count);
	unsigned char *chunk;

	if (slab->chunk_count == slab->chunk_room && !grow_table(slab))
		return false;
	chunk = spokei_alloc(slab->env, cells, slab->cell_size);
	if (chunk == NULL)
		return false;
	slab->chunks[slab->chunk_count++] = chunk;
	for (uint32_t i = 0; i < cells && !slab->lasting; i++)
		spokei_hide(chunk + i * slab->cell_size + HEAD_SIZE, slab->cell_size - HEAD_SIZE);
	return true;
}

int spokei_slab_grow(struct spokei_slab *slab)
{
	struct spokei_slab_head *head;

	if (slab->count >= slab->max)
		return SPOKE_ELIMIT;
	if (slab->used == first_of(slab->chunk_count) && !add_chunk(slab))
		return SPOKE_ENOMEM;
	head = head_at(slab, slab->used);
	head->handle = slab->used++;
	slab->free = head;
	return SPOKE_OK;
}

void spokei_slab_show(const struct spokei_slab *slab, void *cell)
{
	spokei_show(cell, slab->cell_size - HEAD_SIZE);
	memset(cell, 0, slab->cell_size - HEAD_SIZE);
}

void spokei_slab_hide(const struct spokei_slab *slab, void *cell)
{
	spokei_hide(cell, slab->cell_size - HEAD_SIZE);
}

void *spokei_slab_get(const struct spokei_slab *slab, uint64_t handle)
{
	uint32_t index = (uint32_t)handle;
	struct spokei_slab_head *head;

	if (index >= slab->used || !(handle & SPOKEI_SLAB_GENERATION))
		return NULL;
	head = head_at(slab, index);
	return head->handle == handle ? head + 1 : NULL;
}

void spokei_slab_give(struct spokei_slab *slab, uint64_t handle)
{
	void *cell = spokei_slab_get(slab, handle);

	SPOKE_ASSERT(cell != NULL);
	spokei_slab_give_cell(slab, cell);
}
