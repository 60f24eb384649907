/* SPDX-License-Identifier: Apache-2.0 */
/* Free list of equal blocks for retry states. Larger retry states are allocated one by one. */
#include "cluster/call/retry_blocks.h"

#define BLOCK 1024u    /* bytes */
#define BLOCKS_MAX 64u /* that are kept */

void *spokei_retry_blocks_take(struct spokei_retry_blocks *blocks, const struct spoke_env *env,
			       size_t size)
{
	void *block = blocks->first;

	if (size > BLOCK)
		return spokei_alloc_unset(env, size);
	if (block == NULL)
		return spokei_alloc_unset(env, BLOCK);
	memcpy(&blocks->first, block, sizeof(blocks->first));
	blocks->count--;
	return block;
}

void spokei_retry_blocks_give(struct spokei_retry_blocks *blocks, const struct spoke_env *env,
			      void *block, size_t size)
{
	if (size > BLOCK) {
		spokei_free(env, block, 1, size);
	} else if (blocks->count == BLOCKS_MAX) {
		spokei_free(env, block, 1, BLOCK);
	} else {
		memcpy(block, &blocks->first, sizeof(blocks->first));
		blocks->first = block;
		blocks->count++;
	}
}

void spokei_retry_blocks_fini(struct spokei_retry_blocks *blocks, const struct spoke_env *env)
{
	while (blocks->first)
		spokei_free(env, spokei_retry_blocks_take(blocks, env, BLOCK), 1, BLOCK);
}
