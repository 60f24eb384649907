/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a failed handshake: the peer gets its alert. Closing with unread bytes would reset the
 * connection, and the reset would destroy the alert. So this side ends its direction, and drops all
 * bytes of the peer until its end, for a second at most.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <errno.h>

#define LINGER_NS UINT64_C(1000000000)

static void linger_due(struct spoke_alarm *alarm);

/* Sets the alarm for the first stream, unless it is set. Returns whether it is. */
static bool set_alarm(struct spokei_tls *tls)
{
	const struct spokei_tls_link *first = spoke_container_of(tls->lingering.next,
								 struct spokei_tls_link, node);
	uint64_t now_ns = tls->engine->begin_ns;
	uint64_t delay_ns = first->linger_ns > now_ns ? first->linger_ns - now_ns : 0;

	return spoke_timer_armed(&tls->linger.timer) ||
	       spoke_alarm_after(tls->engine, &tls->linger, delay_ns, linger_due) == SPOKE_OK;
}

/* Ends the streams with no time left, and the others too if their alarm cannot be set. */
static void linger_due(struct spoke_alarm *alarm)
{
	struct spokei_tls *tls = spoke_container_of(alarm, struct spokei_tls, linger);
	uint64_t now_ns = tls->engine->begin_ns;

	while (!spokei_list_empty(&tls->lingering)) {
		struct spokei_tls_link *first = spoke_container_of(tls->lingering.next,
								   struct spokei_tls_link, node);

		if (now_ns < first->linger_ns && set_alarm(tls))
			return;
		first->linger_ns = 0;
		spokei_list_remove(&first->node);
		first->stream->watch.ready(&first->stream->watch, SPOKE_IO_READ);
	}
}

int spokei_tls_linger(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->tls->engine->env;
	struct spokei_tls *tls = link->tls;
	bool told = spokei_buffer_len(&link->lag) > 0; /* else no alert can be lost */

	if (spokei_tls_push(link) != 0 || !told || link->ended ||
	    env->net->shut(env->ctx, link->stream->watch.fd) < 0)
		return link->error;
	link->linger_ns = tls->engine->begin_ns + LINGER_NS;
	spokei_list_append(&tls->lingering, &link->node);
	if (!set_alarm(tls)) {
		spokei_list_remove(&link->node);
		return link->error;
	}
	link->dying = true;
	SSL_free(link->ssl);
	link->ssl = NULL;
	spokei_buffer_fini(&link->raw);
	return 0;
}

int spokei_tls_swallow(struct spokei_tls_link *link)
{
	const struct spoke_env *env = link->tls->engine->env;
	ssize_t got = env->net->read(env->ctx, link->stream->watch.fd, link->tls->scratch,
				     SPOKEI_TLS_PIECE);
	bool goes_on = got > 0 || got == -EAGAIN || got == -EINTR;

	return goes_on && link->linger_ns > 0 ? 0 : link->error;
}
