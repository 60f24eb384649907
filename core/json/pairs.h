/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a map in JSON. Pure. */
#ifndef SPOKEI_CORE_JSON_PAIRS_H
#define SPOKEI_CORE_JSON_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_PAIRS_COMPARED 64u /* in maps of more pairs, keys are not compared */

/*
 * Returns whether a map can be printed as a JSON object and be read back unchanged: its keys are
 * texts in UTF-8, they differ, and the first one is no marker. `at` is the first key of `count`
 * pairs. Takes time in proportion to the bytes of the map.
 */
bool spokei_pairs_are_object(const unsigned char *at, const unsigned char *end, uint64_t count);

#endif
