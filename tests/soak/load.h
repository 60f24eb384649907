/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of calls: a tag, and bytes of a pattern that all processes know. An answer can be
 * checked against its request.
 */
#ifndef TESTS_SOAK_LOAD_H
#define TESTS_SOAK_LOAD_H

#include "tests/sim/dice.h"

#include <spoke/value.h>

#define LOAD_LEN_MAX (1u << 20)

/* Creates the pattern; must be called first. */
void load_init(void);

/* Touches every page of the pattern in this process. */
void load_touch(void);

/* Returns the length of the next call's argument, up to `most` bytes: usually small, sometimes very
 * large. */
size_t load_len(struct sim_dice *dice, size_t most);

/* Packs the array of tag and bytes. */
void load_pack(struct spoke_builder *builder, uint64_t tag, size_t len);

/* Returns whether the value is exactly this array. */
bool load_is(struct spoke_value value, uint64_t tag, size_t len);

/* Returns the tag of such an array; 0: the value is none. */
uint64_t load_tag(struct spoke_value value);

#endif
