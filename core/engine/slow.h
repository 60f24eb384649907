/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow calls and requests: the last ones and the slowest ones, each with its method, its peer and
 * the time of each stage. The threshold is that of the method's figures. The lists have no memory
 * before there is a slow one. On the engine's thread.
 */
#ifndef SPOKEI_CORE_ENGINE_SLOW_H
#define SPOKEI_CORE_ENGINE_SLOW_H

#include "core/engine/figures.h"

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

/* Frees the lists, as the engine ends. */
void spokei_slow_free(struct spoke_engine *engine);

#endif
