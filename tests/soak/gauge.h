/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and descriptors of the processes that live for the whole run, read from outside. What they
 * have while they work goes up and down with what is under way, by much more than a leak would
 * show; so the slopes that are judged are those of the rests, where the same stands every time: all
 * connections, and no call.
 */
#ifndef TESTS_SOAK_GAUGE_H
#define TESTS_SOAK_GAUGE_H

#include "cast.h"
#include "slope.h"

/* What is read of a process; KB, but for the descriptors. */
enum gauge_value {
	GAUGE_RSS,       /* everything that is resident: the two below */
	GAUGE_ANONYMOUS, /* heap, stacks, static data: what a leak is */
	GAUGE_FILES,     /* pages of the program and its libraries; the board counts so, too */
	GAUGE_LIBRARY,   /* what the library has of its environment, to the byte */
	GAUGE_HEAP,      /* what the C library has given out, the library's and all else */
	GAUGE_HOLES,     /* what it keeps between that */
	GAUGE_DESCRIPTORS,
	GAUGE_VALUES,
};

struct gauge {
	const struct actor *actor;
	double now[GAUGE_VALUES];
	double resident_max;
	struct series rests[GAUGE_VALUES];
};

/* False: no memory. */
bool gauge_init(struct gauge *gauge, const struct actor *actor);
void gauge_fini(struct gauge *gauge);

/* Looks at it, and keeps that if it is at rest. */
void gauge_look(struct gauge *gauge, bool rest);

#endif
