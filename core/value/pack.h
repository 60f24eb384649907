/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder as the floors above use it: at the end of a buffer that holds other bytes already.
 */
#ifndef SPOKEI_CORE_VALUE_PACK_H
#define SPOKEI_CORE_VALUE_PACK_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

/* Builds at the end of a buffer (borrowed until finish or drop). The buffer has the values when
 * finish says 0; when it says something else, the buffer is as it was before. In between nobody
 * else may touch the buffer. */
void spokei_builder_init_buffer(struct spoke_builder *builder, struct spokei_buffer *buffer,
				const struct spoke_value_limits *limits);

/* Gives up what was packed so far; the buffer is as it was before. Does nothing after finish. */
void spokei_builder_drop(struct spoke_builder *builder);

#endif
