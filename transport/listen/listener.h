/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts connections at one address: a bounded number per turn, and no more than the quota allows,
 * in all and per peer address. When descriptors run out, the listener gives up a spare one to
 * accept and close connections, so that clients are refused instead of waiting, and the loop does
 * not spin. Hands descriptors to its owner. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_LISTENER_H
#define SPOKEI_TRANSPORT_LISTEN_LISTENER_H

#include "transport/listen/quota.h"
#include "transport/listen/rules.h"

#include <spoke/env.h>

#define SPOKEI_LISTENER_BACKLOG 4096
#define SPOKEI_LISTENER_BUDGET 128u /* connections per turn */
/* A mark that means the same to all owners: memory is shared over the connections. */
#define SPOKEI_LISTENER_SHM 0x8000u
#define SPOKEI_LISTENER_PAUSE_NS UINT64_C(100000000) /* after an error that would only repeat */

struct spoke_engine;
struct spokei_listener;

/* Receives a connection that the quota counts; the receiver counts it out, and owns the descriptor.
 * May free the listener. `marks` are those of the address where it arrived. */
typedef void (*spokei_accept)(void *arg, int fd, const struct spoke_address *peer, unsigned marks);

/* Is offered a connection that the quota does not count yet. Returns whether it was taken, with its
 * descriptor. */
typedef bool (*spokei_divert)(void *arg, int fd, const struct spoke_address *peer, unsigned marks);

/* An address, and how to listen there. All zero but the address: alone, for all peers. */
struct spokei_listener_at {
	const struct spoke_address *address;
	/* The owner's marks of the address, which come with each connection. */
	unsigned marks;
	/* Other listeners of this kind may listen too: the kernel hands each connection to one of
	 * them. Only in an environment that has listen_shared(); at a path it is SPOKE_ESYSTEM. */
	bool shared;
	/* The file of a path has the permission bits `mode`. Only in an environment that has
	 * listen_mode(), and not with `shared`. */
	bool has_mode;
	uint32_t mode;
	/* The peers that may connect: by the rules of this address, which the listener takes over
	 * unless there is an error, and by those that the owner has at the time. NULL: all. */
	struct spokei_rules *rules;
	struct spokei_rules *const *owner_rules;
	spokei_divert divert; /* gets each connection first; NULL: none. `arg` is that of accept */
};

/*
 * Listens; `at` is borrowed for the call, and `quota` for the listener's life. Returns 0;
 * SPOKE_ESYSTEM (the address is in use, not of this machine, or not allowed; or there are no
 * descriptors: an event explains it); SPOKE_ELIMIT (no timer left in the wheel: a listener holds
 * one for its life, so that it can always pause); or SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_listener_new(struct spoke_engine *engine,
				       const struct spokei_listener_at *at,
				       struct spokei_quota *quota, spokei_accept accept, void *arg,
				       struct spokei_listener **ret_listener);

/* Sets guard() and send_buffer() of the environment for all connections that are accepted later at
 * a port. One call for all costs less than one for each. */
void spokei_listener_preset(struct spokei_listener *listener, uint64_t unanswered_ns,
			    uint32_t send_buffer);

/* Leaves connections in the backlog, or accepts again. */
void spokei_listener_hold(struct spokei_listener *listener, bool held);

/* Accepts all connections in the backlog at once, before the listener is freed. Not inside
 * `accept`. */
void spokei_listener_sweep(struct spokei_listener *listener);

/* Stops listening; freed when the turn ends. NULL is fine. */
void spokei_listener_free(struct spokei_listener *listener);

/* Returns the address, with the port that the kernel chose. */
const struct spoke_address *spokei_listener_address(const struct spokei_listener *listener);

#endif
