/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits connections, in all and per peer; shared by the listeners of one owner. A peer is an IPv4
 * address, also one that is mapped into IPv6, or a network of IPv6, because each host of such a
 * network can have all of its addresses. Peers without an IP address, like those of a unix socket,
 * only count in all. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_QUOTA_H
#define SPOKEI_TRANSPORT_LISTEN_QUOTA_H

#include "core/memory/map.h"

#define SPOKEI_QUOTA_MAX 10000u
#define SPOKEI_QUOTA_PER_PEER_MAX 1000u
#define SPOKEI_QUOTA_PREFIX6 64u

/* 0: the default of the same name above. */
struct spokei_quota_limits {
	uint32_t max;
	uint32_t per_peer_max;
	uint32_t prefix6; /* bits of an IPv6 address that tell a peer; at most 128 */
};

/* Closes a connection that is not needed any more, or that has been silent for longest,
 * and counts it out. Returns false if there is none. */
typedef bool (*spokei_make_room)(void *owner);

struct spoke_engine;
struct spokei_quota_peer; /* a peer that has connections */

struct spokei_quota {
	const struct spoke_env *env; /* borrowed for the quota's life */
	struct spokei_map peers;     /* peers that have connections */
	uint32_t count;
	struct spokei_quota_limits limits;
	spokei_make_room make_room; /* for a new connection; NULL: none gives way */
	void *owner;
	uint64_t rooms; /* how often room was made */
};

void spokei_quota_init(struct spokei_quota *quota, const struct spoke_env *env,
		       const struct spokei_quota_limits *limits);

/* Changes the limits; connections that are counted stay, and count as they did. */
void spokei_quota_change(struct spokei_quota *quota, const struct spokei_quota_limits *limits);

/* Has make_room() close a connection for a new one, once the limit is reached. */
void spokei_quota_give_way(struct spokei_quota *quota, spokei_make_room make_room, void *owner);

/* Requires that no connection is counted. */
void spokei_quota_fini(struct spokei_quota *quota);

/* Counts a connection in. Returns 0, SPOKE_ENOMEM, or SPOKE_ELIMIT: *ret_of_peer tells the limit of
 * the peer from that in all. */
SPOKE_MUST_USE int spokei_quota_enter(struct spokei_quota *quota,
				      const struct spoke_address *address, bool *ret_of_peer);

/* Returns the peer of a connection that was counted in with this address just now: limits may
 * change which addresses are one peer. NULL for a peer without an IP address. */
struct spokei_quota_peer *spokei_quota_peer(const struct spokei_quota *quota,
					    const struct spoke_address *address);

/*
 * Counts a connection under another address, e.g. that of the client behind a proxy, and writes its
 * new peer. Returns 0, SPOKE_ENOMEM, or SPOKE_ELIMIT: the limit of that address; after an error
 * nothing has changed.
 */
SPOKE_MUST_USE int spokei_quota_move(struct spokei_quota *quota,
				     struct spokei_quota_peer *quota_peer,
				     const struct spoke_address *to,
				     struct spokei_quota_peer **ret_peer);

/* Closes a connection that spokei_quota_enter() refused with `error`, and counts that. */
void spokei_quota_reject(struct spoke_engine *engine, int fd, int error, bool of_peer);

/* Counts out a connection by its peer. */
void spokei_quota_leave(struct spokei_quota *quota, struct spokei_quota_peer *quota_peer);

#endif
