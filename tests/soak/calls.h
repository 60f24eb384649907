/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of a consumer process: begins calls at random, enters them into the book and checks
 * their results. Used on the engine's thread.
 */
#ifndef TESTS_SOAK_CALLS_H
#define TESTS_SOAK_CALLS_H

#include "book.h"
#include "teams.h"

struct calls;

/* Allocates the state of the process and opens the teams; NULL: no memory. */
struct calls *calls_open(struct spoke_engine *engine, struct desk *desk, uint64_t seed);

/* Begins one call, unless too many are open. */
void calls_begin(struct calls *calls);

/* Opens as many calls as possible; the providers keep them open. */
void calls_storm(struct calls *calls);

/* Cancels some calls of the last beat. */
void calls_cancel(struct calls *calls);

/* Checks for lost calls. */
void calls_look(struct calls *calls);

/* Returns the number of open calls. */
uint64_t calls_open_count(const struct calls *calls);

/* Checks the counters after the end of the engine. */
bool calls_close(struct calls *calls);

struct team *calls_team(struct calls *calls, unsigned index);

/* Returns whether the error may occur in a soak. */
bool calls_error_is_due(int error);

#endif
