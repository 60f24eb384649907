/* SPDX-License-Identifier: Apache-2.0 */
/* Which name somebody may have meant. A decider; any thread. */
#ifndef SPOKEI_CORE_TEXT_SIMILAR_H
#define SPOKEI_CORE_TEXT_SIMILAR_H

#include <stddef.h>

/* The name that is most alike, within three letters; NULL: none is. `name_at` gives them by their
 * numbers, NULL for those that do not count; at most 48 bytes each. */
const char *spokei_similar_nearest(const char *name,
				   const char *(*name_at)(const void *of, size_t i), const void *of,
				   size_t count);

#endif
