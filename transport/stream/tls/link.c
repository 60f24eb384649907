/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's own part, and what all streams of an owner share: both last as long as a thread has a
 * step of theirs. */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <string.h>

#define UPDATES_PER_SECOND 100u
#define UPDATES_BURST 32u

struct spokei_tls_link *spokei_tls_link_new(struct spokei_stream *stream)
{
	const struct spoke_env *env = stream->engine->env;
	struct spokei_tls *tls = spokei_tls_of(stream);
	size_t host_size = stream->host ? strlen(stream->host) + 1 : 0;
	size_t size = sizeof(struct spokei_tls_link) + host_size;
	struct spokei_tls_link *link = spokei_alloc(env, 1, size);

	if (link == NULL)
		return NULL;
	link->size = size;
	link->stream = stream;
	link->tls = tls;
	link->updates = spokei_bucket_make(UPDATES_PER_SECOND, UPDATES_BURST,
					   tls->engine->begin_ns);
	spokei_buffer_init(&link->raw, env, SPOKEI_TLS_HANDSHAKE_MAX + SPOKEI_ENGINE_SCRATCH);
	spokei_buffer_init(&link->lag, env, SPOKEI_TLS_LAG_MAX);
	if (host_size > 0)
		link->host = memcpy(link + 1, stream->host, host_size);
	stream->state = link;
	return link;
}

void spokei_tls_link_free(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->tls->engine->env;

	if (link->step)
		spokei_free(env, link->step, 1, sizeof(*link->step));
	spokei_tls_cool(link);
	SSL_free(link->ssl);
	spokei_tls_names_free(env, &link->names);
	spokei_buffer_fini(&link->raw);
	spokei_buffer_fini(&link->lag);
	spokei_free(env, link, 1, link->size);
}

void spokei_tls_drop(struct spokei_tls *tls)
{
	const struct spoke_env *env = tls->engine->env;

	if (--tls->uses > 0)
		return;
	SSL_CTX_free(tls->context);
	BIO_meth_free(tls->method);
	spokei_tls_ask_free(env, tls->ask);
	spokei_free(env, tls->scratch, 1, SPOKEI_ENGINE_SCRATCH);
	spokei_free(env, tls, 1, sizeof(*tls));
}
