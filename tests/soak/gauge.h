/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and descriptors of the processes that live for the whole run, read from outside. While a
 * process works, its memory varies by much more than a leak. Slopes are therefore computed from
 * samples at rests, when all connections exist and no call is open.
 */
#ifndef TESTS_SOAK_GAUGE_H
#define TESTS_SOAK_GAUGE_H

#include "cast.h"
#include "slope.h"

/* Values read of a process; in KB, except the descriptors. */
enum gauge_value {
	GAUGE_RSS,       /* all resident pages: the next two together */
	GAUGE_ANONYMOUS, /* heap, stacks, static data: contains a leak */
	GAUGE_FILES,     /* pages of the program, its libraries and the board */
	GAUGE_LIBRARY,   /* bytes that the library has allocated */
	GAUGE_HEAP,      /* bytes in use in malloc, the library's and others */
	GAUGE_HOLES,     /* free bytes that malloc keeps */
	GAUGE_DESCRIPTORS,
	GAUGE_VALUES,
};

struct gauge {
	const struct actor *actor;
	double now[GAUGE_VALUES];
	double resident_max;
	struct series rests[GAUGE_VALUES];
};

/* Returns false if there is no memory. */
bool gauge_init(struct gauge *gauge, const struct actor *actor);
void gauge_fini(struct gauge *gauge);

/* Reads the values; adds them to the series if the process is at rest. */
void gauge_look(struct gauge *gauge, bool rest);

#endif
