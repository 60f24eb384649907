/* SPDX-License-Identifier: Apache-2.0 */
/* Runs handlers on the engine's pool, where they may block. */
#include "cluster/serve/pool.h"
#include "cluster/serve/busy.h"
#include "cluster/serve/gate.h"
#include "cluster/serve/held.h"
#include "cluster/serve/parts.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "transport/conn/conn.h"

#include <errno.h>

/* The request may have waited for a thread longer than its caller waits, or its provider lives. */
static void pool_run(struct spoke_work *work)
{
	struct spoke_request *request = spoke_container_of(work, struct spoke_request, work);
	const struct spoke_env *env = request->engine->env;

	request->waited_ns = env->now(env->ctx) - request->arrived_ns;
	request->unrun = spoke_request_abandoned(request) || spoke_request_left(request) == 0;
	if (!request->unrun)
		request->handle(request, request->arg);
}

/* Answers a request that no handler has seen. On the loop's thread. */
static void pool_unrun(struct spoke_request *request, enum spoke_stat stat, int error,
		       const char *text)
{
	struct spokei_message message = {
		.error = error,
		.error_text = spokei_span(text, strlen(text)),
	};

	if (!spoke_request_abandoned(request)) /* else it is counted already */
		spokei_figures_count(request->figures, stat);
	spokei_request_note_slow(request, 0, error);
	spokei_conn_answer(&request->serving, &message);
	if (request->watched)
		spokei_gate_leave(request, &message);
	spokei_request_free(request);
}

static void pool_refused(struct spoke_request *request, const char *text)
{
	pool_unrun(request, SPOKE_STAT_REQUESTS_REFUSED, SPOKE_EREFUSED, text);
}

static void pool_done(struct spoke_work *work)
{
	struct spoke_request *request = spoke_container_of(work, struct spoke_request, work);

	if (work->status == -ECANCELED) {
		pool_refused(request, "the provider is closing; call another one");
		return;
	}
	spokei_busy_waited(request->engine, request->waited_ns);
	spokei_figures_queued(request->figures, request->waited_ns);
	if (request->unrun && spoke_request_abandoned(request)) {
		spokei_request_forget(request, SPOKE_ELOST);
		return;
	}
	if (request->unrun) {
		pool_unrun(request, SPOKE_STAT_REQUESTS_EXPIRED, SPOKE_EEXPIRED,
			   spoke_strerror(SPOKE_EEXPIRED));
		return;
	}
	if (atomic_load_explicit(&request->again, memory_order_relaxed))
		spokei_request_tell_again(request);
	request->pool_done = true;
	if (request->delivered)
		spokei_request_free(request);
}

void spokei_request_run_on_pool(struct spoke_request *request, struct spokei_conn *conn)
{
	struct spoke_engine *engine = request->engine;
	struct spokei_message no_memory = {
		.error = SPOKE_EREFUSED,
		.error_text = spokei_span(spokei_request_no_memory,
					  strlen(spokei_request_no_memory)),
	};

	spokei_request_note_origin(request, conn);
	if (spoke_request_keep(request)) {
		spokei_figures_count(request->figures, SPOKE_STAT_REQUESTS_REFUSED);
		spokei_conn_reply(conn, request->message, &no_memory);
		spokei_request_forget(request, SPOKE_EREFUSED);
		return;
	}
	if (!spokei_request_hand_over(request, conn, request->message)) {
		spokei_request_forget(request, SPOKE_ELOST);
		return;
	}
	request->conn = NULL;
	request->on_pool = true;
	atomic_store_explicit(&request->again, false, memory_order_relaxed);
	request->work = (struct spoke_work){ .run = pool_run, .done = pool_done };
	spokei_count(engine, SPOKE_STAT_POOL_REQUESTS);
	if (engine->env->loop->offload(engine->loop, &request->work) == 0)
		return;
	spokei_busy_full(engine);
	pool_refused(request, "the provider's pool is busy; call later or another one");
}
