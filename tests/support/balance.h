/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of an engine that have to balance, for tests: those of its methods add up to its
 * own, and what has begun and not ended is under way. A new counter of methods is checked without a
 * line here.
 */
#ifndef TESTS_SUPPORT_BALANCE_H
#define TESTS_SUPPORT_BALANCE_H

#include "core/engine/engine.h"
#include "core/engine/figures.h"

#include <spoke/stats.h>

#include <stdio.h>

#define BALANCE_TEXT 160u

/* Returns the engine's counter at a place among those of a method. */
static inline enum spoke_stat balance_stat(unsigned place)
{
	if (place == SPOKEI_FIGURES_DEFERRED)
		return SPOKE_STAT_CALLS_DEFERRED;
	if (place == SPOKEI_FIGURES_FALLBACK)
		return SPOKE_STAT_CALLS_FALLBACK;
	return (enum spoke_stat)(SPOKEI_FIGURES_FIRST + place);
}

/* Returns whether all events that the engine counts are those of a method. */
static inline bool balance_has_method(enum spoke_stat stat)
{
	return stat != SPOKE_STAT_REQUESTS && stat != SPOKE_STAT_REQUESTS_NO_SERVICE &&
	       stat != SPOKE_STAT_REQUESTS_REFUSED;
}

/* Returns whether the counters give this number under way; else prints a sentence. */
static inline bool balance_gives(struct spokei_figures *counters, enum spokei_figures_side side,
				 const char *of, uint64_t seen, char text[BALANCE_TEXT])
{
	uint64_t said;

	counters->side = side;
	said = spokei_figures_in_flight(counters);
	(void)snprintf(text, BALANCE_TEXT, "%llu %s are under way, but the %s count %llu",
		       (unsigned long long)seen, spokei_figures_side_name(side), of,
		       (unsigned long long)said);
	return said == seen;
}

/* Compares the counters with one another and with the calls and requests that are under way.
 * Returns NULL, or a sentence in `text`. */
static inline const char *balance_wrong(const struct spoke_engine *engine, uint64_t calls,
					uint64_t requests, char text[BALANCE_TEXT])
{
	const struct spokei_figures *figures = NULL;
	struct spokei_figures methods = { .engine = NULL };
	struct spokei_figures whole = { .engine = NULL };

	while ((figures = spokei_figures_next(engine, figures)) != NULL)
		for (unsigned i = 0; i < SPOKEI_FIGURES_COUNTERS; i++)
			methods.counters[i] += figures->counters[i];
	for (unsigned i = 0; i < SPOKEI_FIGURES_COUNTERS; i++) {
		enum spoke_stat stat = balance_stat(i);

		whole.counters[i] = engine->stats[stat];
		if (!balance_has_method(stat) || methods.counters[i] == whole.counters[i])
			continue;
		(void)snprintf(text, BALANCE_TEXT, "%llu %s are counted, but %llu by the methods",
			       (unsigned long long)whole.counters[i], spoke_stat_name(stat),
			       (unsigned long long)methods.counters[i]);
		return text;
	}
	if (balance_gives(&methods, SPOKEI_FIGURES_CALLS, "methods", calls, text) &&
	    balance_gives(&methods, SPOKEI_FIGURES_REQUESTS, "methods", requests, text) &&
	    balance_gives(&whole, SPOKEI_FIGURES_REQUESTS, "engine's counters", requests, text))
		return NULL;
	return text;
}

#endif
