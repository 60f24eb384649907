/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that two processes of the network share. */
#include "core/virtual/net_parts.h"

#include "timer/base.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

/* Stands in a page of its own before the memory. */
struct share {
	unsigned owners;
	size_t size;
};

static struct share *share_of(void *memory)
{
	return (struct share *)(void *)((unsigned char *)memory - PAGE);
}

void *spokei_vshare_new(size_t size)
{
	size_t pages = (size + PAGE - 1) / PAGE + 1;
	unsigned char *block = aligned_alloc(PAGE, pages * PAGE);

	if (block == NULL)
		return NULL;
	memset(block, 0, pages * PAGE);
	*(struct share *)(void *)block = (struct share){ 1, size };
	return block + PAGE;
}

void *spokei_vshare_take(void *memory)
{
	share_of(memory)->owners++;
	return memory;
}

void spokei_vshare_drop(void *memory)
{
	struct share *share = share_of(memory);

	SPOKE_ASSERT(share->owners > 0);
	if (--share->owners == 0)
		free(share);
}

size_t spokei_vshare_size(const void *memory)
{
	return ((const struct share *)(const void *)((const unsigned char *)memory - PAGE))->size;
}
