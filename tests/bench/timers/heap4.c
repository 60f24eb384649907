/* SPDX-License-Identifier: Apache-2.0 */
/* A 4-ary min-heap of timers; see heap4.h. */
#include "heap4.h"

/* With the root at 3 the children of cell c are 4c - 8 to 4c - 5: a multiple of 4, one line. */
#define ROOT ((size_t)3)

static size_t parent_of(size_t at)
{
	return (at + 8) / 4;
}

static size_t children_of(size_t at)
{
	return 4 * at - 8;
}

static void put(struct heap4 *heap, size_t at, struct heap4_cell cell)
{
	heap->cells[at] = cell;
	cell.timer->at = at;
}

static void sift_up(struct heap4 *heap, size_t at, struct heap4_cell cell)
{
	while (at > ROOT && heap->cells[parent_of(at)].key > cell.key) {
		put(heap, at, heap->cells[parent_of(at)]);
		at = parent_of(at);
	}
	put(heap, at, cell);
}

static size_t least_of(const struct heap4_cell *cells, size_t first, size_t end)
{
	size_t least = first;
	size_t last = end - first < 4 ? end : first + 4;

	for (size_t i = first + 1; i < last; i++)
		least = cells[i].key < cells[least].key ? i : least;
	return least;
}

static void sift_down(struct heap4 *heap, size_t at, struct heap4_cell cell)
{
	size_t child = children_of(at);

	while (child < heap->end) {
		child = least_of(heap->cells, child, heap->end);
		if (heap->cells[child].key >= cell.key)
			break;
		put(heap, at, heap->cells[child]);
		at = child;
		child = children_of(at);
	}
	put(heap, at, cell);
}

static void sift(struct heap4 *heap, size_t at, struct heap4_cell cell)
{
	if (at > ROOT && heap->cells[parent_of(at)].key > cell.key)
		sift_up(heap, at, cell);
	else
		sift_down(heap, at, cell);
}

size_t heap4_size(size_t count)
{
	return (count + ROOT) * sizeof(struct heap4_cell);
}

void heap4_init(struct heap4 *heap, void *memory)
{
	heap->cells = memory;
	heap->end = ROOT;
}

void heap4_add(struct heap4 *heap, struct heap4_timer *timer, uint64_t key)
{
	sift_up(heap, heap->end++, (struct heap4_cell){ .key = key, .timer = timer });
}

void heap4_remove(struct heap4 *heap, struct heap4_timer *timer)
{
	size_t at = timer->at;

	timer->at = 0;
	heap->end--;
	if (at != heap->end)
		sift(heap, at, heap->cells[heap->end]);
}

void heap4_move(struct heap4 *heap, struct heap4_timer *timer, uint64_t key)
{
	sift(heap, timer->at, (struct heap4_cell){ .key = key, .timer = timer });
}

void heap4_expire(struct heap4 *heap, uint64_t now)
{
	while (heap->end > ROOT && heap->cells[ROOT].key <= now) {
		struct heap4_timer *timer = heap->cells[ROOT].timer;

		heap4_remove(heap, timer);
		timer->due(timer);
	}
}

uint64_t heap4_next(const struct heap4 *heap)
{
	return heap->end > ROOT ? heap->cells[ROOT].key : HEAP4_NEVER;
}
