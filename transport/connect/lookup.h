/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves names on a thread of the pool, with memory of its own, so that the end of an engine does
 * not wait for a resolver that hangs. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_CONNECT_LOOKUP_H
#define SPOKEI_TRANSPORT_CONNECT_LOOKUP_H

#include "transport/connect/place.h"

struct spoke_engine;

/* Gets the addresses, borrowed for the call, at least one; or a negative errno. */
typedef void (*spokei_lookup_fn)(void *arg, const struct spoke_address *found, int count);

/*
 * Looks up the places one after another, up to `max` addresses in all. `done` is called once, at
 * the latest when the engine is freed; `places` are copied. Returns 0 or a negative errno, after
 * which `done` is not called.
 */
int spokei_lookup(struct spoke_engine *engine, const struct spokei_place *places, unsigned count,
		  unsigned max, spokei_lookup_fn done, void *arg);

#endif
