/* SPDX-License-Identifier: Apache-2.0 */
/* A slab allocator: chunks of cells, with a free list through the free cells. */
#include "core/memory/slab.h"

#include "core/memory/hidden.h"

#define HEAD_SIZE 16u /* keeps the cell after it aligned for any type */

/* Precedes each cell. */
struct head {
	uint32_t generation; /* odd while the cell is in use */
	uint32_t next_free;  /* index + 1; 0: end of the list */
};

_Static_assert(sizeof(struct head) <= HEAD_SIZE, "a head fits before its cell");

static inline struct head *head_at(const struct spokei_slab *slab, uint32_t index)
{
	unsigned char *chunk = slab->chunks[index / SPOKEI_SLAB_CHUNK];

	return (struct head *)(void *)(chunk + index % SPOKEI_SLAB_CHUNK * slab->cell_size);
}

static inline void *cell_of(struct head *head)
{
	return (unsigned char *)head + HEAD_SIZE;
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
	return cell_of(head_at(slab, index));
}

void spokei_slab_fini(struct spokei_slab *slab)
{
	SPOKE_ASSERT(slab->count == 0);
	for (uint32_t i = 0; i < slab->chunk_count; i++) {
		spokei_show(slab->chunks[i], SPOKEI_SLAB_CHUNK * slab->cell_size);
		spokei_free(slab->env, slab->chunks[i], SPOKEI_SLAB_CHUNK, slab->cell_size);
	}
	spokei_free(slab->env, slab->chunks, slab->chunk_room, sizeof(*slab->chunks));
	slab->chunks = NULL;
	slab->chunk_count = 0;
	slab->chunk_room = 0;
	slab->free = 0;
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
	unsigned char *chunk;

	if (slab->chunk_count == slab->chunk_room && !grow_table(slab))
		return false;
	chunk = spokei_alloc(slab->env, SPOKEI_SLAB_CHUNK, slab->cell_size);
	if (chunk == NULL)
		return false;
	slab->chunks[slab->chunk_count++] = chunk;
	for (uint32_t i = 0; i < SPOKEI_SLAB_CHUNK && !slab->lasting; i++)
		spokei_hide(chunk + i * slab->cell_size + HEAD_SIZE, slab->cell_size - HEAD_SIZE);
	return true;
}

int spokei_slab_take(struct spokei_slab *slab, void **ret_cell, uint64_t *ret_handle)
{
	struct head *head;
	uint32_t index;

	if (slab->count >= slab->max)
		return SPOKE_ELIMIT;
	if (slab->free) {
		index = slab->free - 1;
		head = head_at(slab, index);
		slab->free = head->next_free;
	} else {
		if (slab->used == slab->chunk_count * SPOKEI_SLAB_CHUNK && !add_chunk(slab))
			return SPOKE_ENOMEM;
		index = slab->used++;
		head = head_at(slab, index);
	}
	slab->count++;
	head->generation++;
	if (!slab->lasting) {
		spokei_show(cell_of(head), slab->cell_size - HEAD_SIZE);
		memset(cell_of(head), 0, slab->cell_size - HEAD_SIZE);
	}
	*ret_cell = cell_of(head);
	*ret_handle = (uint64_t)head->generation << 32 | index;
	return SPOKE_OK;
}

/* Returns the head of the cell that a handle names, or NULL. */
static inline struct head *find(const struct spokei_slab *slab, uint64_t handle)
{
	uint32_t index = (uint32_t)handle;
	uint32_t generation = (uint32_t)(handle >> 32);
	struct head *head;

	if (index >= slab->used || generation % 2 == 0)
		return NULL;
	head = head_at(slab, index);
	return head->generation == generation ? head : NULL;
}

void *spokei_slab_get(const struct spokei_slab *slab, uint64_t handle)
{
	struct head *head = find(slab, handle);

	return head ? cell_of(head) : NULL;
}

void spokei_slab_give(struct spokei_slab *slab, uint64_t handle)
{
	uint32_t index = (uint32_t)handle;
	struct head *head = find(slab, handle);

	SPOKE_ASSERT(head != NULL);
	head->generation++; /* even; wraps after 2^31 uses of this cell */
	head->next_free = slab->free;
	slab->free = index + 1;
	slab->count--;
	if (!slab->lasting)
		spokei_hide(cell_of(head), slab->cell_size - HEAD_SIZE);
}
