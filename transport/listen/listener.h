/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts connections at one address: a bounded number a turn, and no more than the limits allow,
 * in all and of one peer's address. When descriptors run out it gives up a spare one to accept and
 * close, so that clients are turned away instead of waiting, and the loop does not spin. Hands
 * descriptors out and knows nothing of what becomes of them. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_LISTENER_H
#define SPOKEI_TRANSPORT_LISTEN_LISTENER_H

#include "core/engine/engine.h"
#include "transport/listen/quota.h"

#define SPOKEI_LISTENER_BACKLOG 4096
#define SPOKEI_LISTENER_BUDGET 128u                  /* connections a turn */
#define SPOKEI_LISTENER_PAUSE_NS UINT64_C(100000000) /* after an error that would only repeat */

struct spokei_listener;

/* A connection, counted into the crowd; whoever takes it counts it out. The descriptor is the
 * receiver's. May free the listener. */
typedef void (*spokei_accept)(void *arg, int fd, const struct spoke_address *peer);

/* A connection that nobody has counted yet. Returns whether it was taken, with its descriptor. */
typedef bool (*spokei_divert)(void *arg, int fd, const struct spoke_address *peer);

/*
 * Listens; `crowd` is borrowed for its life. Returns 0; SPOKE_ESYSTEM (the address is in use, not
 * ours, not allowed; or no descriptors: an event says what, and what to do); SPOKE_ELIMIT (no timer
 * left in the wheel: it holds one for its life, so that it can always pause); or SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_listener_new(struct spoke_engine *engine,
				       const struct spoke_address *address,
				       struct spokei_quota *quota, spokei_accept accept, void *arg,
				       struct spokei_listener **ret_listener);

/* The same, where others may listen too who say so: the system hands each connection to one of
 * them. Only in an environment that has listen_shared(); at a path it is SPOKE_ESYSTEM. */
SPOKE_MUST_USE int spokei_listener_new_shared(struct spoke_engine *engine,
					      const struct spoke_address *address,
					      struct spokei_quota *quota, spokei_accept accept,
					      void *arg, struct spokei_listener **ret_listener);

/* Asks before each connection whether somebody else takes it; `arg` is that of `accept`. */
void spokei_listener_divert(struct spokei_listener *listener, spokei_divert divert);

/* Accepts what waits now, in one go: who stops listening leaves nobody behind. Not inside
 * `accept`. */
void spokei_listener_sweep(struct spokei_listener *listener);

/* Stops listening; freed when the turn ends. NULL is fine. */
void spokei_listener_free(struct spokei_listener *listener);

/* Where it listens, with the port that the system chose. */
const struct spoke_address *spokei_listener_address(const struct spokei_listener *listener);

#endif
