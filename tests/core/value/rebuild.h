/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads values with cursors and typed getters and packs each of them again with a builder. The
 * output equals the input if the input uses the fewest bytes.
 */
#ifndef TESTS_CORE_VALUE_REBUILD_H
#define TESTS_CORE_VALUE_REBUILD_H

#include <spoke/value.h>

/* Adds the values to the builder. Returns NULL, or a sentence about the value that cannot be read.
 */
const char *rebuild(struct spoke_builder *builder, struct spoke_cursor values);

#endif
