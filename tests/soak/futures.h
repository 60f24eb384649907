/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of a consumer process that calls by futures, and waits for them. */
#ifndef TESTS_SOAK_FUTURES_H
#define TESTS_SOAK_FUTURES_H

#include "calls.h"

/* Starts it. False: there is no thread to have. */
bool futures_start(struct calls *calls, struct desk *desk, uint64_t seed);

/* Asks it to end; then it has soon. */
void futures_end(void);

/* Has it no future now? */
bool futures_rest(void);

/* Has it ended? */
bool futures_gone(void);

/* Waits for its end, which was asked for. */
void futures_join(void);

#endif
