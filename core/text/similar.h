/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the name that a misspelt one may stand for. Pure; any thread. */
#ifndef SPOKEI_CORE_TEXT_SIMILAR_H
#define SPOKEI_CORE_TEXT_SIMILAR_H

#include <stddef.h>

/* Returns the most similar name, within three letters; NULL: none. `name_at` returns names by
 * number, NULL for numbers to skip; at most 48 bytes each. */
const char *spokei_similar_nearest(const char *name,
				   const char *(*name_at)(const void *of, size_t i), const void *of,
				   size_t count);

#endif
