/* SPDX-License-Identifier: Apache-2.0 */
/* The host environment with an allocator that counts every byte of the library. */
#ifndef TESTS_SOAK_MEMORY_H
#define TESTS_SOAK_MEMORY_H

#include "board.h"

#include <spoke/env.h>

/* Restarts the program with malloc's thread caches disabled, unless GLIBC_TUNABLES is set already
 * or `plain` is given. Returns false if the program cannot be restarted. */
bool memory_begin(bool as_it_comes, char **argv);

/* Returns the environment of the process. Unless `plain` is given, malloc maps large blocks
 * separately, returns them at once, and uses one arena. */
const struct spoke_env *memory_env(void);

/* Returns the number of bytes that are allocated. Any thread. */
uint64_t memory_used(void);

/* Writes the memory figures to the desk. If the board asks for a trim, malloc first returns unused
 * memory to the system, once, so that resident memory is memory in use. */
void memory_tell(struct desk *desk);

#endif
