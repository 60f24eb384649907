/* SPDX-License-Identifier: Apache-2.0 */
/* Appends formatted text to a buffer. After the first error nothing more is written. */
#ifndef SPOKEI_CLUSTER_ADMIN_LINES_H
#define SPOKEI_CLUSTER_ADMIN_LINES_H

#include "core/base/log.h"
#include "core/memory/buffer.h"

#define SPOKEI_LINES_PIECE 1024u /* bytes of one put() at most; the rest is cut */

struct spokei_lines {
	struct spokei_buffer *out; /* borrowed */
	int error;
};

static inline struct spokei_lines spokei_lines_make(struct spokei_buffer *out)
{
	return (struct spokei_lines){ .out = out };
}

/* Appends text like printf(). */
SPOKEI_PRINTF(2, 3)
void spokei_lines_put(struct spokei_lines *lines, const char *format, ...);

/* Appends bytes unchanged. */
void spokei_lines_bytes(struct spokei_lines *lines, const void *bytes, size_t len);

#endif
