/* SPDX-License-Identifier: Apache-2.0 */
/* The host's environment, with memory that is counted: every byte the library has, to the byte. */
#ifndef TESTS_SOAK_MEMORY_H
#define TESTS_SOAK_MEMORY_H

#include <spoke/env.h>

/* One for the whole process. */
const struct spoke_env *memory_env(void);

/* Bytes handed out and not given back. Any thread. */
uint64_t memory_used(void);

#endif
