/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that have handshakes: under way, or waiting for a place. Each has a bound, so that one peer
 * can neither take all places nor the line in front of them.
 */
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <errno.h>

void spokei_tls_peers_limit(struct spokei_tls *tls, const struct spokei_tls_limits *limits)
{
	const uint32_t per_peer_max = limits->handshakes_per_peer_max;
	const struct spokei_quota_limits of = {
		.max = UINT32_MAX, /* the places bound all */
		.per_peer_max = per_peer_max ? per_peer_max : SPOKEI_TLS_HANDSHAKES_PER_PEER,
		.prefix6 = limits->prefix6,
	};

	spokei_quota_change(&tls->peers, &of);
}

int spokei_tls_peer_enter(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->stream->engine->env;
	struct spokei_quota *peers = &link->tls->peers;
	struct spoke_address address;
	bool of_peer;
	int error;

	if (env->net->peer(env->ctx, link->stream->watch.fd, &address))
		return 0;
	error = spokei_quota_enter(peers, &address, &of_peer);
	if (error)
		return error == SPOKE_ELIMIT ? -EDQUOT : -ENOMEM;
	link->counted = true;
	link->quota_peer = spokei_quota_peer(peers, &address);
	return 0;
}

void spokei_tls_peer_leave(struct spokei_tls_link *link)
{
	if (!link->counted)
		return;
	link->counted = false;
	spokei_quota_leave(&link->tls->peers, link->quota_peer);
}
