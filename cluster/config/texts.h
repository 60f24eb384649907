/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the texts that options, URLs and files set, in one block of memory. */
#ifndef SPOKEI_CLUSTER_CONFIG_TEXTS_H
#define SPOKEI_CLUSTER_CONFIG_TEXTS_H

#include "core/base/env.h"

/* Copies each text to *copies[i]; a NULL stays NULL. *ret_block is NULL if all are. Returns 0 or
 * ENOMEM. The caller frees the block. */
SPOKE_MUST_USE int spokei_texts_copy(const struct spoke_env *env, const char *const *from,
				     const char **const *copies, size_t count, char **ret_block,
				     size_t *ret_size);

#endif
