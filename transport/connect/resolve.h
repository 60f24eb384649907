/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves the addresses of one place, which are then tried once each: an IP address or a path
 * directly, a name off the loop. The first address is random, so that many clients spread. Embedded
 * in a connector, on the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONNECT_RESOLVE_H
#define SPOKEI_TRANSPORT_CONNECT_RESOLVE_H

#include "transport/connect/place.h"

#define SPOKEI_RESOLVE_ADDRESSES 16
#define SPOKEI_RESOLVE_MORE 1

struct spoke_engine;

struct spokei_resolve {
	struct spoke_engine *engine;
	const struct spokei_place *place; /* borrowed for the life of this struct */
	/* Called when the name is resolved; a negative errno: it cannot be. */
	void (*resolved)(struct spokei_resolve *resolve, int status);
	bool resolving; /* resolved() will be called */
	unsigned count;
	unsigned next; /* index of the next address */
	unsigned left; /* addresses of this round not tried yet */
	struct spoke_address addresses[SPOKEI_RESOLVE_ADDRESSES];
};

void spokei_resolve_init(struct spokei_resolve *resolve, struct spoke_engine *engine,
			 const struct spokei_place *place,
			 void (*resolved)(struct spokei_resolve *resolve, int status));

/* Starts a round. Returns 0: there are addresses; SPOKEI_RESOLVE_MORE: resolved() will be called; a
 * negative errno: there is no resolver. The memory has to stay while `resolving`. */
int spokei_resolve_begin(struct spokei_resolve *resolve);

/* Returns the next address; NULL: all were tried. */
const struct spoke_address *spokei_resolve_next(struct spokei_resolve *resolve);

#endif
