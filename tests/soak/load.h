/* SPDX-License-Identifier: Apache-2.0 */
/* What calls carry: a tag and so many bytes of a pattern, by which an answer is known to be that of
 * its request. Any process knows the same pattern. */
#ifndef TESTS_SOAK_LOAD_H
#define TESTS_SOAK_LOAD_H

#include "tests/sim/dice.h"

#include <spoke/value.h>

#define LOAD_LEN_MAX (1u << 20)

/* Makes the pattern; once, before the others. */
void load_init(void);

/* Has every page of it in this process, too. */
void load_touch(void);

/* How many bytes the next call carries, up to `most`: few as a rule, now and then very many. */
size_t load_len(struct sim_dice *dice, size_t most);

/* Packs the array of the two. */
void load_pack(struct spoke_builder *builder, uint64_t tag, size_t len);

/* Is it just that value? */
bool load_is(struct spoke_value value, uint64_t tag, size_t len);

/* The tag of a value of that form; 0: it is none. */
uint64_t load_tag(struct spoke_value value);

#endif
