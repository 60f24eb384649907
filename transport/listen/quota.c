/* SPDX-License-Identifier: Apache-2.0 */
/* Counts connections in all and per peer. */
#include "transport/listen/quota.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/text/range.h"

#include <string.h>

#define KEY 3u /* numbers: kind and address of a peer, without padding */

/* A peer that has connections. */
struct spokei_quota_peer {
	uint64_t key[KEY];
	uint32_t count;
};

void spokei_quota_init(struct spokei_quota *quota, const struct spoke_env *env,
		       const struct spokei_quota_limits *limits)
{
	*quota = (struct spokei_quota){ .env = env };
	spokei_quota_change(quota, limits);
	spokei_map_init(&quota->peers, env);
}

void spokei_quota_change(struct spokei_quota *quota, const struct spokei_quota_limits *limits)
{
	quota->limits = *limits;
	if (limits->max == 0)
		quota->limits.max = SPOKEI_QUOTA_MAX;
	if (limits->per_peer_max == 0)
		quota->limits.per_peer_max = SPOKEI_QUOTA_PER_PEER_MAX;
	if (limits->prefix6 == 0)
		quota->limits.prefix6 = SPOKEI_QUOTA_PREFIX6;
}

void spokei_quota_give_way(struct spokei_quota *quota, spokei_make_room make_room, void *owner)
{
	quota->make_room = make_room;
	quota->owner = owner;
}

void spokei_quota_fini(struct spokei_quota *quota)
{
	SPOKE_ASSERT(quota->count == 0 && quota->peers.count == 0);
	spokei_map_fini(&quota->peers);
}

/* Writes the key of a peer. Returns false if it has no IP address. */
static bool find_key(const struct spokei_quota *quota, const struct spoke_address *address,
		     uint64_t key[KEY])
{
	struct spokei_machine machine = spokei_machine_of(quota->env, address);

	machine = spokei_machine_cut(&machine, quota->limits.prefix6);
	key[0] = machine.kind;
	key[1] = machine.high;
	key[2] = machine.low;
	return machine.kind == SPOKEI_MACHINE_V4 || machine.kind == SPOKEI_MACHINE_V6;
}

static struct spokei_quota_peer *get(const struct spokei_quota *quota, const uint64_t key[KEY])
{
	return spokei_map_get(&quota->peers, key, KEY * sizeof(*key));
}

/* Adds a peer without connections. NULL: there is no memory. */
static struct spokei_quota_peer *add(struct spokei_quota *quota, const uint64_t key[KEY])
{
	struct spokei_quota_peer *peer = spokei_alloc(quota->env, 1, sizeof(*peer));

	if (peer == NULL)
		return NULL;
	memcpy(peer->key, key, sizeof(peer->key));
	if (spokei_map_add(&quota->peers, peer->key, sizeof(peer->key), peer) == SPOKE_OK)
		return peer;
	spokei_free(quota->env, peer, 1, sizeof(*peer));
	return NULL;
}

static bool is_full(const struct spokei_quota *quota, const struct spokei_quota_peer *peer)
{
	return peer && peer->count >= quota->limits.per_peer_max;
}

/* Returns whether there is room, maybe after a connection gave way. */
static bool has_room(struct spokei_quota *quota)
{
	while (quota->count >= quota->limits.max) {
		if (quota->make_room == NULL || !quota->make_room(quota->owner))
			return false;
		quota->rooms++;
	}
	return true;
}

int spokei_quota_enter(struct spokei_quota *quota, const struct spoke_address *address,
		       bool *ret_of_peer)
{
	uint64_t key[KEY];
	bool counts = find_key(quota, address, key);
	bool full = counts && is_full(quota, get(quota, key));
	struct spokei_quota_peer *peer;

	*ret_of_peer = full && quota->count < quota->limits.max;
	/* No connection gives way to a peer that has its share. */
	if (full || !has_room(quota))
		return SPOKE_ELIMIT;
	if (counts) {
		peer = get(quota, key);
		if (peer == NULL)
			peer = add(quota, key);
		if (peer == NULL)
			return SPOKE_ENOMEM;
		peer->count++;
	}
	quota->count++;
	return SPOKE_OK;
}

void spokei_quota_reject(struct spoke_engine *engine, int fd, int error, bool of_peer)
{
	enum spoke_stat stat = SPOKE_STAT_ACCEPTS_FAILED;

	if (error == SPOKE_ELIMIT)
		stat = of_peer ? SPOKE_STAT_ACCEPTS_REFUSED_PEER : SPOKE_STAT_ACCEPTS_REFUSED_TOTAL;
	engine->env->net->close(engine->env->ctx, fd);
	spokei_count(engine, stat);
}

struct spokei_quota_peer *spokei_quota_peer(const struct spokei_quota *quota,
					    const struct spoke_address *address)
{
	uint64_t key[KEY];

	return find_key(quota, address, key) ? get(quota, key) : NULL;
}

static void drop(struct spokei_quota *quota, struct spokei_quota_peer *peer)
{
	if (peer == NULL || --peer->count > 0)
		return;
	(void)spokei_map_remove(&quota->peers, peer->key, sizeof(peer->key));
	spokei_free(quota->env, peer, 1, sizeof(*peer));
}

void spokei_quota_leave(struct spokei_quota *quota, struct spokei_quota_peer *quota_peer)
{
	SPOKE_ASSERT(quota->count > 0);
	quota->count--;
	drop(quota, quota_peer);
}

int spokei_quota_move(struct spokei_quota *quota, struct spokei_quota_peer *quota_peer,
		      const struct spoke_address *to, struct spokei_quota_peer **ret_peer)
{
	uint64_t key[KEY];
	bool counts = find_key(quota, to, key);
	struct spokei_quota_peer *peer = counts ? get(quota, key) : NULL;

	/* The limit of an address is no hindrance to a connection that is counted there already. */
	if (peer != quota_peer && is_full(quota, peer))
		return SPOKE_ELIMIT;
	if (counts && peer == NULL)
		peer = add(quota, key);
	if (counts && peer == NULL)
		return SPOKE_ENOMEM;
	if (peer)
		peer->count++;
	drop(quota, quota_peer);
	*ret_peer = peer;
	return SPOKE_OK;
}
