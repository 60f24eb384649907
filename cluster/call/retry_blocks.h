/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for retry states: blocks of one size are kept for the next calls. Owned by a caller. */
#ifndef SPOKEI_CLUSTER_CALL_RETRY_BLOCKS_H
#define SPOKEI_CLUSTER_CALL_RETRY_BLOCKS_H

#include "core/base/env.h"

/* Zero-initialised. */
struct spokei_retry_blocks {
	void *first; /* each block begins with the address of the next one */
	unsigned count;
};

/* Returns memory for `size` bytes that is not initialised, or NULL. */
void *spokei_retry_blocks_take(struct spokei_retry_blocks *blocks, const struct spoke_env *env,
			       size_t size);

/* Gives memory back that was taken with the same size. */
void spokei_retry_blocks_give(struct spokei_retry_blocks *blocks, const struct spoke_env *env,
			      void *block, size_t size);

/* Frees the blocks that are kept. */
void spokei_retry_blocks_fini(struct spokei_retry_blocks *blocks, const struct spoke_env *env);

#endif
