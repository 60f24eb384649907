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

/* Returns whether a connection may be taken, which the quota does not count yet; `rules` are those
 * of its address. The descriptor stays with the listener. */
typedef enum spokei_rules_verdict (*spokei_admit)(void *arg, const struct spokei_rules *rules,
						  int fd, const struct spoke_address *peer);

/* Is offered a connection that the quota does not count yet. Returns whether it was taken, with its
 * descriptor. */
typedef bool (*spokei_divert)(void *arg, int fd, const struct spoke_address *peer, unsigned marks);

/*
 * Listens; `quota` is borrowed for the listener's life. Returns 0; SPOKE_ESYSTEM (the address is in
 * use, not of this machine, or not allowed; or there are no descriptors: an event explains it);
 * SPOKE_ELIMIT (no timer left in the wheel: a listener holds one for its life, so that it can
 * always pause); or SPOKE_ENOMEM.
 */
SPOKE_MUST_USE int spokei_listener_new(struct spoke_engine *engine,
				       const struct spoke_address *address,
				       struct spokei_quota *quota, spokei_accept accept, void *arg,
				       struct spokei_listener **ret_listener);

/* An address, and how to listen there. */
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
};

/* Like spokei_listener_new(). `at` is borrowed for the call. */
SPOKE_MUST_USE int spokei_listener_new_at(struct spoke_engine *engine,
					  const struct spokei_listener_at *at,
					  struct spokei_quota *quota, spokei_accept accept,
					  void *arg, struct spokei_listener **ret_listener);

/* Offers each connection to `divert` first; `arg` is that of `accept`. */
void spokei_listener_divert(struct spokei_listener *listener, spokei_divert divert);

/* Has `admit` judge each connection first; `arg` is that of `accept`. The listener takes over the
 * rules, which may be NULL. */
void spokei_listener_admit(struct spokei_listener *listener, spokei_admit admit,
			   struct spokei_rules *rules);

/* Returns these rules. */
const struct spokei_rules *spokei_listener_rules(const struct spokei_listener *listener);

/* Returns the marks of the address. */
unsigned spokei_listener_marks(const struct spokei_listener *listener);

/* Sets guard() and send_buffer() of the environment for all connections that are accepted later at
 * a port. One call for all costs less than one for each. */
void spokei_listener_preset(struct spokei_listener *listener, uint64_t unanswered_ns,
			    uint32_t send_buffer);

/* Accepts all connections in the backlog at once, before the listener is freed. Not inside
 * `accept`. */
void spokei_listener_sweep(struct spokei_listener *listener);

/* Stops listening; freed when the turn ends. NULL is fine. */
void spokei_listener_free(struct spokei_listener *listener);

/* Returns the address, with the port that the kernel chose. */
const struct spoke_address *spokei_listener_address(const struct spokei_listener *listener);

/* Closes a connection that spokei_quota_enter() refused with `error`, and counts it. */
void spokei_listener_reject(struct spoke_engine *engine, int fd, int error, bool of_peer);

#endif
