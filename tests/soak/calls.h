/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a consumer process: begun by dice, entered into its book, and judged when they end.
 * The engine's thread.
 */
#ifndef TESTS_SOAK_CALLS_H
#define TESTS_SOAK_CALLS_H

#include "book.h"
#include "teams.h"

struct calls;

/* Memory for the whole process; NULL: there is none. Opens the teams, too. */
struct calls *calls_open(struct spoke_engine *engine, struct desk *desk, uint64_t seed);

/* Begins one call, unless too many are open. */
void calls_begin(struct calls *calls);

/* Begins as many as may be open, and has the providers keep them open. */
void calls_storm(struct calls *calls);

/* Cancels some of those that the last beat has begun. */
void calls_cancel(struct calls *calls);

/* Looks for lost ones. */
void calls_look(struct calls *calls);

/* How many have no end yet. */
uint64_t calls_open_count(const struct calls *calls);

/* After the engine's end: are the sums right? */
bool calls_close(struct calls *calls);

struct team *calls_team(struct calls *calls, unsigned index);

/* Is this an error that a soak may bring? */
bool calls_error_is_due(int error);

#endif
