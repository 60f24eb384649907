/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits connections, in all and per peer address; shared by the listeners of one owner. The
 * address is the peer's machine, without the port; IPv4 mapped into IPv6 is the IPv4 address. Peers
 * without a machine, like those of a unix socket, only count in all. Returns verdicts and closes
 * nothing. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_QUOTA_H
#define SPOKEI_TRANSPORT_LISTEN_QUOTA_H

#include "core/memory/map.h"

#define SPOKEI_QUOTA_MAX 10000u
#define SPOKEI_QUOTA_PER_PEER_MAX 1000u

struct spokei_quota {
	const struct spoke_env *env; /* borrowed for the quota's life */
	struct spokei_map peers;     /* peers that have connections, by the text of their address */
	uint32_t count;
	uint32_t max;
	uint32_t per_peer_max;
};

/* Sets the limits; 0 means the defaults above. */
void spokei_quota_init(struct spokei_quota *quota, const struct spoke_env *env, uint32_t max,
		       uint32_t per_peer_max);

/* Changes the limits; connections that are counted stay. */
void spokei_quota_change(struct spokei_quota *quota, uint32_t max, uint32_t per_peer_max);

/* Requires that no connection is counted. */
void spokei_quota_fini(struct spokei_quota *quota);

/* Counts a connection in. Returns 0, SPOKE_ENOMEM, or SPOKE_ELIMIT: *ret_of_peer tells the limit of
 * the peer from that in all. */
SPOKE_MUST_USE int spokei_quota_enter(struct spokei_quota *quota,
				      const struct spoke_address *address, bool *ret_of_peer);

/* Returns the seat of a connection that was counted in with this address, for a caller that has no
 * room for the address; NULL for a peer without a machine. */
void *spokei_quota_seat(const struct spokei_quota *quota, const struct spoke_address *address);

/*
 * Counts a connection under another address, e.g. that of the client behind a proxy, and writes its
 * new seat. Returns 0, SPOKE_ENOMEM, or SPOKE_ELIMIT: the limit of that address; after an error
 * nothing has changed.
 */
SPOKE_MUST_USE int spokei_quota_move(struct spokei_quota *quota, const struct spoke_address *from,
				     const struct spoke_address *to, void **ret_seat);

/* Counts out a connection by its seat. */
void spokei_quota_leave_seat(struct spokei_quota *quota, void *seat);

/* Counts out a connection that was counted in with this address. */
void spokei_quota_leave(struct spokei_quota *quota, const struct spoke_address *address);

#endif
