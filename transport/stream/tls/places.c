/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that have handshakes: under way, or waiting for a place. Each has a bound, so that one
 * address can neither take all places nor the line in front of them.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <errno.h>

struct spokei_tls_address {
	uint64_t key[3]; /* kind and number of the machine */
	uint32_t count;
};

/* Returns the machine of the peer; of the kind OTHER if its address is not known. */
static struct spokei_machine machine_of(struct spokei_stream *stream)
{
	static const struct spokei_machine none = { .kind = SPOKEI_MACHINE_OTHER };
	const struct spoke_env *env = stream->engine->env;
	struct spoke_address address;

	if (env->net->peer(env->ctx, stream->watch.fd, &address))
		return none;
	return spokei_machine_of(env, &address);
}

/* Adds an address without handshakes. NULL: there is no memory. */
static struct spokei_tls_address *add(struct spokei_tls *tls, const uint64_t key[3])
{
	const struct spoke_env *env = tls->engine->env;
	struct spokei_tls_address *address = spokei_alloc(env, 1, sizeof(*address));

	if (address == NULL)
		return NULL;
	memcpy(address->key, key, sizeof(address->key));
	if (spokei_map_add(&tls->addresses, address->key, sizeof(address->key), address) == 0)
		return address;
	spokei_free(env, address, 1, sizeof(*address));
	return NULL;
}

int spokei_tls_address_enter(struct spokei_tls_link *link)
{
	struct spokei_tls *tls = link->tls;
	struct spokei_machine machine = machine_of(link->stream);
	const uint64_t key[] = { machine.kind, machine.high, machine.low };
	struct spokei_tls_address *address;

	if (machine.kind != SPOKEI_MACHINE_V4 && machine.kind != SPOKEI_MACHINE_V6)
		return 0;
	address = spokei_map_get(&tls->addresses, key, sizeof(key));
	if (address && address->count >= tls->places_per_peer_max)
		return -EDQUOT;
	if (address == NULL)
		address = add(tls, key);
	if (address == NULL)
		return -ENOMEM;
	address->count++;
	link->address = address;
	return 0;
}

void spokei_tls_address_leave(struct spokei_tls_link *link)
{
	struct spokei_tls_address *address = link->address;

	link->address = NULL;
	if (address == NULL || --address->count > 0)
		return;
	(void)spokei_map_remove(&link->tls->addresses, address->key, sizeof(address->key));
	spokei_free(link->tls->engine->env, address, 1, sizeof(*address));
}
