/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many connections there are, in all and by the peer's address; shared by the listeners of one
 * provider. The address is that of the machine, without the port; IPv4 mapped into IPv6 is the
 * IPv4. Peers without one, as those of a unix socket, count in all only. A decider: says yes or no,
 * and closes nothing. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_LISTEN_QUOTA_H
#define SPOKEI_TRANSPORT_LISTEN_QUOTA_H

#include "core/memory/map.h"

#define SPOKEI_QUOTA_MAX 10000u
#define SPOKEI_QUOTA_PER_PEER_MAX 1000u

struct spokei_quota {
	const struct spoke_env *env; /* borrowed for the crowd's life */
	struct spokei_map peers;     /* those who are here, by the text of their address */
	uint32_t count;
	uint32_t max;
	uint32_t per_peer_max;
};

/* The limits: 0 for those above. */
void spokei_quota_init(struct spokei_quota *quota, const struct spoke_env *env, uint32_t max,
		       uint32_t per_peer_max);

/* Other limits; those who are here stay. */
void spokei_quota_change(struct spokei_quota *quota, uint32_t max, uint32_t per_peer_max);

/* When all have left. */
void spokei_quota_fini(struct spokei_quota *quota);

/* Counts a connection in: 0, SPOKE_ELIMIT with *ret_of_peer saying which limit, or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_quota_enter(struct spokei_quota *quota,
				      const struct spoke_address *address, bool *ret_of_peer);

/* Counts out one that was counted in with this address. */
void spokei_quota_leave(struct spokei_quota *quota, const struct spoke_address *address);

#endif
