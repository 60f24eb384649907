/* SPDX-License-Identifier: Apache-2.0 */
/* Peers are told apart by what the network prints, so this works on any network. */
#include "transport/listen/quota.h"

#define TEXT_SIZE 160u
#define MAPPED "::ffff:"

/* One address that has connections. */
struct peer {
	uint32_t count;
	uint32_t len; /* of the text */
	char text[TEXT_SIZE];
};

void spokei_crowd_init(struct spokei_crowd *crowd, const struct spoke_env *env, uint32_t max,
		       uint32_t per_peer_max)
{
	*crowd = (struct spokei_crowd){ .env = env };
	spokei_crowd_change(crowd, max, per_peer_max);
	spokei_map_init(&crowd->peers, env);
}

void spokei_crowd_change(struct spokei_crowd *crowd, uint32_t max, uint32_t per_peer_max)
{
	crowd->max = max ? max : SPOKEI_CROWD_MAX;
	crowd->per_peer_max = per_peer_max ? per_peer_max : SPOKEI_CROWD_PER_PEER_MAX;
}

void spokei_crowd_fini(struct spokei_crowd *crowd)
{
	SPOKE_ASSERT(crowd->count == 0 && crowd->peers.count == 0);
	spokei_map_fini(&crowd->peers);
}

/* The machine's part of "[HOST]:PORT" or "HOST:PORT", where HOST is in digits. The length of it; 0:
 * the address tells no machine. */
static size_t find_host(const char *text, const char **ret_host)
{
	const char *host = text;
	const char *end = NULL;

	if (text[0] == '[') {
		host++;
		end = strchr(host, ']');
		if (strncmp(host, MAPPED, strlen(MAPPED)) == 0 && strchr(host, '.'))
			host += strlen(MAPPED);
	} else if (text[0] >= '0' && text[0] <= '9') {
		end = strrchr(host, ':');
	}
	*ret_host = host;
	return end ? (size_t)(end - host) : 0;
}

int spokei_crowd_enter(struct spokei_crowd *crowd, const struct spoke_address *address,
		       bool *ret_of_peer)
{
	const struct spoke_env *env = crowd->env;
	char text[TEXT_SIZE];
	struct peer *peer;
	const char *host;
	size_t len;

	*ret_of_peer = false;
	if (crowd->count >= crowd->max)
		return SPOKE_ELIMIT;
	env->net->print(env->ctx, address, text, sizeof(text));
	len = find_host(text, &host);
	if (len == 0) {
		crowd->count++;
		return SPOKE_OK;
	}
	peer = spokei_map_get(&crowd->peers, host, len);
	if (peer && peer->count >= crowd->per_peer_max) {
		*ret_of_peer = true;
		return SPOKE_ELIMIT;
	}
	if (peer == NULL) {
		peer = spokei_alloc(env, 1, sizeof(*peer));
		if (peer == NULL)
			return SPOKE_ENOMEM;
		memcpy(peer->text, host, len);
		peer->len = (uint32_t)len;
		if (spokei_map_add(&crowd->peers, peer->text, len, peer) != SPOKE_OK) {
			spokei_free(env, peer, 1, sizeof(*peer));
			return SPOKE_ENOMEM;
		}
	}
	peer->count++;
	crowd->count++;
	return SPOKE_OK;
}

void spokei_crowd_leave(struct spokei_crowd *crowd, const struct spoke_address *address)
{
	const struct spoke_env *env = crowd->env;
	char text[TEXT_SIZE];
	struct peer *peer;
	const char *host;
	size_t len;

	SPOKE_ASSERT(crowd->count > 0);
	crowd->count--;
	env->net->print(env->ctx, address, text, sizeof(text));
	len = find_host(text, &host);
	if (len == 0)
		return;
	peer = spokei_map_get(&crowd->peers, host, len);
	SPOKE_ASSERT(peer != NULL);
	if (--peer->count > 0)
		return;
	(void)spokei_map_remove(&crowd->peers, peer->text, peer->len);
	spokei_free(env, peer, 1, sizeof(*peer));
}
