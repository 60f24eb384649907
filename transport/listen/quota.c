/* SPDX-License-Identifier: Apache-2.0 */
/* Counts connections in all and per peer. Peers are identified by the text that the network prints
 * for their address, so this works on any network. */
#include "transport/listen/quota.h"
#include "core/base/address.h"
#include "core/base/env.h"

#include <string.h>

#define TEXT_SIZE 160u

/* An address that has connections. */
struct peer {
	uint32_t count;
	uint32_t len; /* of the text */
	char text[TEXT_SIZE];
};

void spokei_quota_init(struct spokei_quota *quota, const struct spoke_env *env, uint32_t max,
		       uint32_t per_peer_max)
{
	*quota = (struct spokei_quota){ .env = env };
	spokei_quota_change(quota, max, per_peer_max);
	spokei_map_init(&quota->peers, env);
}

void spokei_quota_change(struct spokei_quota *quota, uint32_t max, uint32_t per_peer_max)
{
	quota->max = max ? max : SPOKEI_QUOTA_MAX;
	quota->per_peer_max = per_peer_max ? per_peer_max : SPOKEI_QUOTA_PER_PEER_MAX;
}

void spokei_quota_fini(struct spokei_quota *quota)
{
	SPOKE_ASSERT(quota->count == 0 && quota->peers.count == 0);
	spokei_map_fini(&quota->peers);
}

int spokei_quota_enter(struct spokei_quota *quota, const struct spoke_address *address,
		       bool *ret_of_peer)
{
	const struct spoke_env *env = quota->env;
	char text[TEXT_SIZE];
	struct spoke_span host;
	struct peer *peer;

	*ret_of_peer = false;
	if (quota->count >= quota->max)
		return SPOKE_ELIMIT;
	env->net->print(env->ctx, address, text, sizeof(text));
	host = spokei_address_host(text);
	if (host.len == 0) {
		quota->count++;
		return SPOKE_OK;
	}
	peer = spokei_map_get(&quota->peers, host.data, host.len);
	if (peer && peer->count >= quota->per_peer_max) {
		*ret_of_peer = true;
		return SPOKE_ELIMIT;
	}
	if (peer == NULL) {
		peer = spokei_alloc(env, 1, sizeof(*peer));
		if (peer == NULL)
			return SPOKE_ENOMEM;
		memcpy(peer->text, host.data, host.len);
		peer->len = (uint32_t)host.len;
		if (spokei_map_add(&quota->peers, peer->text, host.len, peer) != SPOKE_OK) {
			spokei_free(env, peer, 1, sizeof(*peer));
			return SPOKE_ENOMEM;
		}
	}
	peer->count++;
	quota->count++;
	return SPOKE_OK;
}

void *spokei_quota_seat(const struct spokei_quota *quota, const struct spoke_address *address)
{
	const struct spoke_env *env = quota->env;
	char text[TEXT_SIZE];
	struct spoke_span host;

	env->net->print(env->ctx, address, text, sizeof(text));
	host = spokei_address_host(text);
	return host.len ? spokei_map_get(&quota->peers, host.data, host.len) : NULL;
}

void spokei_quota_leave_seat(struct spokei_quota *quota, void *seat)
{
	struct peer *peer = seat;

	SPOKE_ASSERT(quota->count > 0);
	quota->count--;
	if (peer == NULL || --peer->count > 0)
		return;
	(void)spokei_map_remove(&quota->peers, peer->text, peer->len);
	spokei_free(quota->env, peer, 1, sizeof(*peer));
}

int spokei_quota_move(struct spokei_quota *quota, const struct spoke_address *from,
		      const struct spoke_address *to, void **ret_seat)
{
	void *seat = spokei_quota_seat(quota, from);
	bool of_peer;
	int error;

	/* The limit of an address is no hindrance to a connection that is counted there already. */
	if (seat && seat == spokei_quota_seat(quota, to)) {
		*ret_seat = seat;
		return SPOKE_OK;
	}
	quota->count--;
	error = spokei_quota_enter(quota, to, &of_peer);
	quota->count++;
	if (error)
		return error;
	spokei_quota_leave_seat(quota, seat);
	*ret_seat = spokei_quota_seat(quota, to);
	return SPOKE_OK;
}

void spokei_quota_leave(struct spokei_quota *quota, const struct spoke_address *address)
{
	spokei_quota_leave_seat(quota, spokei_quota_seat(quota, address));
}
