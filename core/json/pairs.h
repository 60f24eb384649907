/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a map in JSON. Pure. */
#ifndef SPOKEI_CORE_JSON_PAIRS_H
#define SPOKEI_CORE_JSON_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOKEI_PAIRS_COMPARED 64u /* in maps of more pairs, keys are not compared */

/*
 * Returns whether a map can be printed as a JSON object and be read back unchanged: its keys are
 * texts in UTF-8, they differ, and the first one is no marker. `at` is the first key of `count`
 * pairs. Takes time in proportion to the number of pairs and to the arrays and maps among the
 * values, which have to be skipped; the last one has not. Their bytes are taken from *skips.
 * Returns false once these are used up.
 */
bool spokei_pairs_are_object(const unsigned char *at, const unsigned char *end, uint64_t count,
			     size_t *skips);

#endif
