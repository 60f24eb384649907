/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of one place, to be tried once each: given in digits or as a path, or resolved off
 * the loop. It begins at any of them, by dice, so that many clients spread. Embedded in a
 * connector, on the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONNECT_RESOLVE_H
#define SPOKEI_TRANSPORT_CONNECT_RESOLVE_H

#include "core/engine/engine.h"
#include "transport/connect/place.h"

#define SPOKEI_RESOLVE_ADDRESSES 16
#define SPOKEI_RESOLVE_MORE 1

struct spokei_resolve {
	struct spoke_engine *engine;
	const struct spokei_place *place; /* borrowed for the round's life */
	/* The name is resolved; a negative errno: it cannot be. */
	void (*resolved)(struct spokei_resolve *resolve, int status);
	struct spoke_work work;
	bool resolving; /* the work is the loop's; `found` and `addresses` are its thread's */
	int found;      /* by the work: how many addresses, or a negative errno */
	unsigned count;
	unsigned next; /* to be tried */
	unsigned left; /* of this round */
	struct spoke_address addresses[SPOKEI_RESOLVE_ADDRESSES];
};

void spokei_resolve_init(struct spokei_resolve *resolve, struct spoke_engine *engine,
			 const struct spokei_place *place,
			 void (*resolved)(struct spokei_resolve *resolve, int status));

/* Begins anew. 0: there are addresses; ROUND_MORE: resolved() will say; a negative errno: there is
 * nobody to resolve the name. Its memory has to stay while it is `resolving`. */
int spokei_resolve_begin(struct spokei_resolve *resolve);

/* The next address; NULL: each was tried. */
const struct spoke_address *spokei_resolve_next(struct spokei_resolve *resolve);

#endif
