/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of a consumer process that calls through futures and waits for them. */
#ifndef TESTS_SOAK_FUTURES_H
#define TESTS_SOAK_FUTURES_H

#include "calls.h"

/* Starts the thread. Returns false if it cannot be created. */
bool futures_start(struct calls *calls, struct desk *desk, uint64_t seed);

/* Asks the thread to end. */
void futures_end(void);

/* Returns whether the thread has no open future. */
bool futures_rest(void);

/* Returns whether the thread has ended. */
bool futures_gone(void);

/* Waits for the end of the thread, after futures_end(). */
void futures_join(void);

#endif
