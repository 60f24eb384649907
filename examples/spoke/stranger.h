/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether another program than a provider listens at a place. */
#ifndef COMMAND_STRANGER_H
#define COMMAND_STRANGER_H

#include <spoke/engine.h>

struct target;

/*
 * Explains on stderr why no message has come from a place that has taken the connection of
 * `engine`: asks in a way that servers of lines answer, e.g. Redis or HTTP, and prints which one it
 * is. Prints nothing if a message has come, or if that is not known. Takes a second at most.
 */
void stranger_print(const struct spoke_engine *engine, const char *verb,
		    const struct target *target);

#endif
