/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose handlers have not answered at once. */
#include "cluster/serve/held.h"
#include "cluster/serve/gate.h"
#include "cluster/serve/parts.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/engine/slow.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/trust/caller.h"
#include "transport/wire/message.h"

#define PEER_TEXT 128u /* bytes of an address */

const char spokei_request_no_memory[] = "the provider is out of memory";

static void request_abandoned(struct spokei_serving *serving)
{
	struct spoke_request *request = spoke_container_of(serving, struct spoke_request, serving);

	atomic_store_explicit(&request->gone, true, memory_order_relaxed);
	spokei_figures_count(request->figures, SPOKE_STAT_REQUESTS_ABANDONED);
	if (request->abandoned)
		request->abandoned(request, request->abandoned_arg);
}

bool spokei_request_hand_over(struct spoke_request *request, struct spokei_conn *conn,
			      const struct spokei_message *message)
{
	int error;

	request->serving.abandoned = request_abandoned;
	error = spokei_conn_serve(conn, &request->serving, message);
	if (error == SPOKE_OK)
		return true;
	if (error == SPOKE_ENOMEM)
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
	spokei_conn_join_orphans(&request->serving, conn->link);
	request_abandoned(&request->serving);
	return false;
}

/* Every Dubbo consumer names the interface that it calls; spoke's do so only for providers with a
 * path, which are not of spoke. */
bool spokei_request_is_foreign(const struct spoke_request *request)
{
	struct spoke_value name;

	if (request->conn == NULL)
		return request->foreign;
	return spoke_value_get(request->message->attachments, "interface", &name) == SPOKE_OK;
}

void spokei_request_note_origin(struct spoke_request *request, const struct spokei_conn *conn)
{
	request->arrived_ns = request->engine->begin_ns;
	request->peer = conn->peer;
	request->identity = spokei_identity_share(conn->identity);
	request->from.handle = conn->handle;
	request->foreign = spokei_request_is_foreign(request);
}

void spokei_request_note_slow(const struct spoke_request *request, uint64_t took_ns, int error)
{
	const struct spoke_env *env = request->engine->env;
	const struct spokei_slow_row row = {
		.figures = request->figures,
		.queued_ns = request->waited_ns,
		.took_ns = took_ns,
		.error = error,
	};
	char peer[PEER_TEXT];

	if (SPOKEI_LIKELY(row.queued_ns + row.took_ns < row.figures->slow_ns))
		return;
	env->net->print(env->ctx, &request->peer, peer, sizeof(peer));
	spokei_slow_note(&row, peer);
}

void spokei_request_forget(struct spoke_request *request, int error)
{
	if (request->watched)
		spokei_gate_fail(request, error);
	spokei_request_free(request);
}

void spokei_request_free(struct spoke_request *request)
{
	const struct spoke_env *env;

	if (request == NULL)
		return;
	SPOKE_ASSERT(!request->watched);
	env = request->engine->env;
	spokei_conn_leave_orphans(&request->serving);
	spokei_identity_drop(request->identity);
	spokei_copy_free(env, request->kept);
	spokei_copy_free(env, request->answer);
	spokei_free(env, request->mark, 1, request->mark_size);
	spokei_free(env, request, 1, sizeof(*request));
}
