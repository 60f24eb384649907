/* SPDX-License-Identifier: Apache-2.0 */
/* Adds attachments to those of a call. */
#ifndef SPOKEI_CLUSTER_FILTER_MERGE_H
#define SPOKEI_CLUSTER_FILTER_MERGE_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

/* Replaces the content of `map` with a map of all attachments. `base` is a checked map or none, and
 * may lie in `map`; `added` wins where both have a key. Returns 0, an error of
 * spokei_attachments_check(), or SPOKE_ENOMEM; then `map` is as before. */
SPOKE_MUST_USE int spokei_merge_attachments(struct spokei_buffer *map, struct spoke_value base,
					    struct spoke_value added);

#endif
