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

struct gauge {
	const struct actor *actor;
	struct series resident;      /* KB, every second */
	struct series resident_rest; /* KB, at rests */
	struct series used;          /* KB that the library has of its environment, every second */
	struct series used_rest;
	struct series files_rest; /* descriptors at rests */
	double resident_now;
	double resident_max;
	double used_now;
	double files_now;
};

/* False: no memory. */
bool gauge_init(struct gauge *gauge, const struct actor *actor, const struct plan *plan);
void gauge_fini(struct gauge *gauge);

/* Looks at it; it is kept if `keep`, as of a rest if `rest`. */
void gauge_look(struct gauge *gauge, bool keep, bool rest);

#endif
