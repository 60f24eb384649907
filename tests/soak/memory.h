/* SPDX-License-Identifier: Apache-2.0 */
/* The host's environment, with memory that is counted: every byte the library has, to the byte. */
#ifndef TESTS_SOAK_MEMORY_H
#define TESTS_SOAK_MEMORY_H

#include <spoke/env.h>

/* One for the whole process, whose memory of the C library is large pieces by themselves, given
 * back at once, and small ones together. */
const struct spoke_env *memory_env(void);

/* Gives back what the C library keeps for later, so that what is resident is what is in use. */
void memory_trim(void);

/* Bytes handed out and not given back. Any thread. */
uint64_t memory_used(void);

#endif
