/* SPDX-License-Identifier: Apache-2.0 */
/* The host's environment, with memory that is counted: every byte the library has, to the byte. */
#ifndef TESTS_SOAK_MEMORY_H
#define TESTS_SOAK_MEMORY_H

#include "board.h"

#include <spoke/env.h>

/* Starts the program again, with a C library whose threads put nothing by for themselves, unless
 * GLIBC_TUNABLES says already what it is to be like, or it is to be as it comes. False: it cannot
 * be started again. */
bool memory_begin(bool as_it_comes, char **argv);

/* One for the whole process, whose memory of the C library is large pieces by themselves, given
 * back at once, and small ones together; unless it is as it comes. */
const struct spoke_env *memory_env(void);

/* Bytes handed out and not given back. Any thread. */
uint64_t memory_used(void);

/*
 * Writes it down. When the board says so, what the C library keeps for later is given back first,
 * once, so that what is resident is what is in use; and what it has then is written down, too.
 */
void memory_tell(struct desk *desk);

#endif
