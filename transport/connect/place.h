/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address to connect to (a place): a name with a port, which has to be resolved, or an IP
 * address or path, which is complete. Constant once it is set; embedded in its owner.
 */
#ifndef SPOKEI_TRANSPORT_CONNECT_PLACE_H
#define SPOKEI_TRANSPORT_CONNECT_PLACE_H

#include "timer/base.h"

#include <spoke/env.h>

#define SPOKEI_PLACE_HOST_MAX 255u /* bytes of a name */
#define SPOKEI_PLACE_PATH_MAX 107u /* ... of a path, as Linux has it */
/* Bytes of a name in an event: unix sockets and most hosts are shown whole. */
#define SPOKEI_PLACE_SHOWN 120u

struct spoke_engine;

struct spokei_place {
	bool fixed;                   /* `address` is the only one */
	bool shm;                     /* memory is shared over the unix socket there */
	struct spoke_address address; /* if fixed */
	uint16_t port;
	char host[SPOKEI_PLACE_HOST_MAX + 1]; /* to be resolved, if not fixed */
	char name[SPOKEI_PLACE_HOST_MAX +
		  sizeof("[]:65535")]; /* e.g. "demo.test:80", "unix:PATH", "shm:PATH" */
};

/*
 * Copies a host, or a path if host is NULL. An IPv6 address may be in brackets. Returns 0;
 * SPOKE_EINVAL: neither is given, or the host or the path is invalid; SPOKE_ETOOLARGE: the name or
 * the path is too long.
 */
SPOKE_MUST_USE int spokei_place_set(struct spokei_place *place, const struct spoke_env *env,
				    const char *host, uint16_t port, const char *path);

/* Returns the part of a name that events show: its end, which has the port or the socket. */
const char *spokei_place_shown(const char *name);

/* Says that memory is shared over the unix socket of a place. */
void spokei_place_share(struct spokei_place *place);

/* --- lookup: names are resolved on a thread of the pool, with memory of its own, so that the end
 * of an engine does not wait for a resolver that hangs */

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
