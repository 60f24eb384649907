/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random numbers for property tests: splitmix64, the same on every machine. */
#ifndef TESTS_TRANSPORT_DICE_H
#define TESTS_TRANSPORT_DICE_H

#include "core/base/mix.h"

#include <stddef.h>
#include <stdint.h>

static inline uint64_t dice_throw(uint64_t *state)
{
	return spokei_mix_next(state);
}

/* Returns a number below `count`. */
static inline size_t dice_below(uint64_t *state, size_t count)
{
	return (size_t)(dice_throw(state) % count);
}

#endif
