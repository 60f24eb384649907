/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of a method: counters and durations of its calls, or of the requests for it. The
 * engine owns them until it ends, and there is one set for each service, method and side, so
 * consumers that come and go add to the same. The number of sets is bounded; further methods share
 * the set "other" of their side. On the engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_FIGURES_H
#define SPOKEI_CORE_ENGINE_FIGURES_H

#include "core/base/histogram.h"
#include "core/engine/engine.h"

#include <spoke/value.h>

#define SPOKEI_FIGURES_MAX 128u                     /* sets, of both sides together */
#define SPOKEI_FIGURES_SLOW_NS UINT64_C(1000000000) /* unless "slow.after" is set */
#define SPOKEI_FIGURES_OTHER "other"
#define SPOKEI_FIGURES_TIMED 64u /* requests for which one is timed, at most */

enum spokei_figures_side {
	SPOKEI_FIGURES_CALLS,
	SPOKEI_FIGURES_REQUESTS,
};

/* The engine's counters that each method has, too, begin here ... */
#define SPOKEI_FIGURES_FIRST SPOKE_STAT_CALLS
/* ... and end here, but for those that have been added to the engine's since. */
#define SPOKEI_FIGURES_LAST SPOKE_STAT_REQUESTS_ABANDONED

enum {
	SPOKEI_FIGURES_DEFERRED = SPOKEI_FIGURES_LAST - SPOKEI_FIGURES_FIRST + 1,
	SPOKEI_FIGURES_FALLBACK,
	SPOKEI_FIGURES_COUNTERS,
};

struct spokei_figures {
	struct spoke_list node; /* of the engine */
	struct spoke_engine *engine;
	enum spokei_figures_side side;
	/* Of the requests that their handlers answer at once: how many come before the next one is
	 * timed, and for how many that one counts. */
	uint32_t until_timed;
	uint32_t timed_for;
	bool class_told;  /* an event has named a class of exceptions that callers may lack */
	uint64_t slow_ns; /* from this time on a call is slow; UINT64_MAX: none is */
	uint64_t counters[SPOKEI_FIGURES_COUNTERS];
	struct spoke_histogram took; /* of calls that were answered; of requests in the handler */
	struct spoke_histogram *queued; /* of requests, for a thread of the pool; NULL: none were */
	size_t size;                    /* of this struct, with its texts */
	const char *method;             /* behind `service` */
	char service[];
};

/* Returns the place of a counter of the engine among those of a method. */
static inline unsigned spokei_figures_at(enum spoke_stat stat)
{
	if (stat == SPOKE_STAT_CALLS_DEFERRED)
		return SPOKEI_FIGURES_DEFERRED;
	if (stat == SPOKE_STAT_CALLS_FALLBACK)
		return SPOKEI_FIGURES_FALLBACK;
	return (unsigned)stat - SPOKEI_FIGURES_FIRST;
}

static inline uint64_t spokei_figures_get(const struct spokei_figures *figures,
					  enum spoke_stat stat)
{
	return figures->counters[spokei_figures_at(stat)];
}

/* Counts for the engine and for the method. */
static inline void spokei_figures_count(struct spokei_figures *figures, enum spoke_stat stat)
{
	spokei_count(figures->engine, stat);
	figures->counters[spokei_figures_at(stat)]++;
}

/* Counts a request that begins; the engine counts it elsewhere. */
static inline void spokei_figures_begin(struct spokei_figures *figures)
{
	figures->counters[spokei_figures_at(SPOKE_STAT_REQUESTS)]++;
}

/* Counts the time in the handler of a request that was timed, also for those before it that were
 * not. */
void spokei_figures_timed(struct spokei_figures *figures, uint64_t took_ns);

/* "calls" or "requests". */
const char *spokei_figures_side_name(enum spokei_figures_side side);

/* Sets the time from which on a call or a request is slow; 0: none is. */
static inline void spokei_figures_slow_after(struct spokei_figures *figures, uint64_t slow_ns)
{
	figures->slow_ns = slow_ns ? slow_ns : UINT64_MAX;
}

/* Returns the number of calls or requests that have begun and not ended; a call that became a
 * ticket has. */
uint64_t spokei_figures_in_flight(const struct spokei_figures *figures);

/* Returns the number of calls or requests that have ended with an error. */
uint64_t spokei_figures_failed(const struct spokei_figures *figures);

/* Counts how long a request waited for a thread of the pool; without memory it does not. */
void spokei_figures_queued(struct spokei_figures *figures, uint64_t queued_ns);

/* Finds the figures of a method, or makes them. Empty texts are fine. NULL: no memory. */
struct spokei_figures *spokei_figures_or_other(struct spoke_engine *engine,
					       enum spokei_figures_side side,
					       struct spoke_span service, struct spoke_span method);

/* Returns the set after `before`, or the first one for NULL; NULL: there is none. */
const struct spokei_figures *spokei_figures_next(const struct spoke_engine *engine,
						 const struct spokei_figures *before);

/* Adds up the durations of all methods of a side. */
void spokei_figures_took(const struct spoke_engine *engine, enum spokei_figures_side side,
			 struct spoke_histogram *ret);

/* Frees all sets and lists, as the engine ends. */
void spokei_figures_free_all(struct spoke_engine *engine);

#define SPOKEI_FIGURES_TEXT 152u /* bytes of the names of a method, as below, with the NUL */

/* Writes the names, escaped and cut: "demo.EchoService", method "echo". */
void spokei_figures_print(const struct spokei_figures *figures, char text[SPOKEI_FIGURES_TEXT]);

/* Reports that engine->handler has held the loop until now. */
void spokei_figures_held(struct spoke_engine *engine, uint64_t now_ns);

/* The handler that ran last is over; the next one begins. Reports it if it has held the loop. The
 * coarse clock will do, because reading the other one costs as much as a short handler. Returns the
 * time. */
static inline uint64_t spokei_figures_handled(struct spoke_engine *engine)
{
	uint64_t now_ns = engine->env->coarse(engine->env->ctx);

	if (SPOKEI_UNLIKELY(now_ns > engine->handler_ns &&
			    now_ns - engine->handler_ns > engine->slow_loop_ns && engine->handler))
		spokei_figures_held(engine, now_ns);
	engine->handler_ns = now_ns;
	return now_ns;
}

/*
 * Slow calls and requests: the last ones and the slowest ones, each with its method, its peer and
 * the time of each stage. The threshold is that of the method's figures. The lists have no memory
 * before there is a slow one.
 */
#define SPOKEI_SLOW_ROWS 32u /* of each list */
#define SPOKEI_SLOW_PEER 64u /* bytes of a peer's name, with the NUL; the end is kept */

struct spokei_slow_row {
	const struct spokei_figures *figures; /* of the method */
	uint64_t number;                      /* from 1 on */
	uint64_t at_ns;                       /* when it ended */
	uint64_t queued_ns; /* until the request was written; for a thread of the pool */
	uint64_t took_ns;   /* from there to the answer; in the handler */
	int error;
	char peer[SPOKEI_SLOW_PEER];
};

struct spokei_slow {
	uint64_t count; /* of all ever; number n is at n % SPOKEI_SLOW_ROWS of `last` */
	struct spokei_slow_row last[SPOKEI_SLOW_ROWS];
	size_t slowest_count;
	struct spokei_slow_row slowest[SPOKEI_SLOW_ROWS]; /* the slowest first */
};

/* Notes a slow call or request; without memory it does not. `row` lacks its number and time.
 * `peer`: its name. */
void spokei_slow_note(const struct spokei_slow_row *row, const char *peer);

#endif
