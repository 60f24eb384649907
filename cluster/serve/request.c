/* SPDX-License-Identifier: Apache-2.0 */
/* Serves requests: finds the handler, runs it, and sends its answer. */
#include "cluster/serve/request.h"
#include "transport/conn/link.h"

#include "cluster/filter/filter.h"
#include "cluster/serve/gate.h"
#include "cluster/serve/held.h"
#include "cluster/serve/parts.h"
#include "cluster/serve/pool.h"
#include "cluster/serve/routes.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/value/shape.h"
#include "transport/conn/conn.h"
#include "transport/wire/message.h"

#include <errno.h>
#include <stdio.h>

#define UNSENDABLE_TEXT 128u /* bytes of an explanation */

/* Stand for a message that is gone: of an ordinary request, and of a generic one. */
static const struct spokei_message nothing[2] = { [1] = { .generic = true } };
static const struct spokei_filters no_filters;

/* --- the end */

static void count_answer(struct spoke_request *request, const struct spokei_message *answer)
{
	const enum spoke_stat ended = answer->error ? SPOKE_STAT_REQUESTS_ERROR
						    : SPOKE_STAT_REQUESTS_OK;

	if (atomic_load_explicit(&request->gone, memory_order_relaxed))
		return; /* counted as abandoned */
	if (answer->error == SPOKE_ETOOLARGE)
		spokei_count(request->engine, SPOKE_STAT_REPLIES_TOO_LARGE);
	else if (answer->error)
		spokei_request_tell_class(request, answer);
	spokei_figures_count(request->figures, ended);
}

/* Notes the time until the answer, by the turns that it took. */
static void note_took(const struct spoke_request *request, int error)
{
	uint64_t since_ns = request->arrived_ns + request->waited_ns;
	uint64_t now_ns = request->engine->begin_ns;
	uint64_t took_ns = now_ns > since_ns ? now_ns - since_ns : 0;

	spokei_histogram_add(&request->figures->took, took_ns);
	spokei_request_note_slow(request, took_ns, error);
}

/* Answers a request whose handler has returned. On the loop's thread. */
static void answer_later(struct spoke_request *request, struct spokei_message *message)
{
	count_answer(request, message);
	note_took(request, message->error);
	spokei_conn_answer(&request->serving, message);
	if (SPOKEI_UNLIKELY(request->watched))
		spokei_gate_leave(request, message);
}

static void answer_arrived(struct spoke_post *post)
{
	struct spoke_request *request = spoke_container_of(post, struct spoke_request, post);
	static const char text[] = "the provider is out of memory for the answer";
	struct spokei_message message = {
		.error = SPOKE_ESERVER,
		.error_text = spokei_span(text, sizeof(text) - 1),
	};

	if (request->answer)
		message = request->answer->message;
	answer_later(request, &message);
	request->delivered = true;
	if (request->pool_done)
		spokei_request_free(request);
}

static void finish_request(struct spoke_request *request, struct spokei_message *message)
{
	if (SPOKEI_UNLIKELY(request->answered)) {
		spokei_request_answered_again(request);
		return;
	}
	request->answered = true;
	if (request->on_pool) {
		request->answer = spokei_copy_new(request->engine->env, message);
		request->post.run = answer_arrived;
		spoke_engine_post(request->engine, &request->post);
	} else if (request->conn) {
		count_answer(request, message);
		spokei_conn_reply(request->conn, request->message, message);
		if (SPOKEI_UNLIKELY(request->watched))
			spokei_gate_leave(request, message);
	} else {
		spokei_engine_refresh(request->engine);
		answer_later(request, message);
		if (!request->telling)
			spokei_request_free(request);
	}
}

SPOKEI_NOINLINE void spokei_request_finish(struct spoke_request *request,
					   struct spokei_message *message)
{
	finish_request(request, message);
}

/* Replies with values that have been checked. */
static inline void reply_checked(struct spoke_request *request, struct spoke_value value,
				 struct spoke_value attachments)
{
	struct spokei_message message;

	spokei_message_clear(&message);
	message.value = value;
	message.attachments = attachments;
	message.generic = request->message->generic;
	finish_request(request, &message);
}

void spokei_request_unsendable(struct spoke_request *request, int error)
{
	const char *why = spoke_strerror(error);
	struct spokei_message message = { .error = SPOKE_ETOOLARGE };
	char text[UNSENDABLE_TEXT];

	if (error == SPOKE_ETOOLARGE) {
		(void)snprintf(
			text, sizeof(text),
			"the result is too large: at most %u values, and at most %u bytes of "
			"attachments",
			SPOKE_VALUE_ITEMS_MAX, SPOKE_VALUE_BYTES_MAX);
		why = text;
	}
	message.error_text = spokei_span(why, strlen(why));
	finish_request(request, &message);
}

SPOKEI_NOINLINE void spoke_reply_with(struct spoke_request *request, struct spoke_value value,
				      struct spoke_value attachments)
{
	struct spoke_value checked;
	int error = SPOKE_OK;

	if (value.len > 0)
		error = spoke_value_check(value.data, value.len, &spokei_link_own_values, &checked);
	if (error == SPOKE_OK && attachments.len > 0)
		error = spokei_attachments_check(attachments, true);
	if (error)
		spokei_request_unsendable(request, error);
	else
		reply_checked(request, value, attachments);
}

void spoke_reply(struct spoke_request *request, struct spoke_value value)
{
	static const struct spoke_value none;

	if (SPOKEI_LIKELY(spokei_shape_is_short(value.data, value.len)))
		reply_checked(request, value, none);
	else
		spoke_reply_with(request, value, none);
}

/* --- the handler */

/* Keeps the memory of an answered request that was never handed out. */
static void put_back(struct spoke_request *request, struct spoke_request **spare)
{
	if (*spare || request->kept)
		spokei_request_free(request);
	else
		*spare = request;
}

/* Runs the handler. The clock is read for some requests only, because that costs as much as a short
 * handler. */
static inline void handle_here(struct spoke_request *request)
{
	struct spokei_figures *figures = request->figures;
	const struct spoke_env *env = request->engine->env;
	struct spoke_address peer;
	uint64_t begun_ns;
	uint64_t took_ns;

	if (SPOKEI_LIKELY(figures->until_timed > 0)) {
		request->handle(request, request->arg);
		figures->until_timed -= request->answered;
		return;
	}
	peer = request->conn->peer;
	begun_ns = env->now(env->ctx);
	request->handle(request, request->arg);
	if (!request->answered)
		return;
	took_ns = env->now(env->ctx) - begun_ns;
	spokei_figures_timed(figures, took_ns);
	request->peer = peer;
	spokei_request_note_slow(request, took_ns, SPOKE_OK);
}

static void run_here(struct spoke_request *request, struct spokei_conn *conn,
		     struct spoke_request **spare)
{
	const struct spokei_message *message;

	handle_here(request);
	if (request->answered) {
		put_back(request, spare);
		return;
	}
	spokei_request_note_origin(request, conn);
	message = request->message;
	if (request->kept == NULL && request->passed > 0)
		spokei_gate_keep_names(request);
	if (request->kept == NULL)
		request->message = &nothing[message->generic];
	request->conn = NULL;
	(void)spokei_request_hand_over(request, conn, message);
}

static struct spoke_request *take_request(const struct spoke_env *env, struct spoke_request **spare)
{
	struct spoke_request *request = *spare;

	if (request == NULL)
		return spokei_alloc(env, 1, sizeof(*request));
	*spare = NULL;
	/* A request that was answered in its handler has changed no other field. */
	request->answered = false;
	request->abandoned = NULL;
	return request;
}

/* Returns whether the deadline has passed, also while earlier requests of this turn ran. Reading
 * the clock for each request costs too much, so the coarse clock is used until the deadline is
 * near. */
static bool is_over(struct spokei_link *link, uint64_t deadline_ns)
{
	const struct spoke_engine *engine = link->engine;
	const struct spoke_env *env = engine->env;
	bool first = link->ran_ns != engine->begin_ns;

	link->ran_ns = engine->begin_ns;
	if (deadline_ns <= engine->begin_ns)
		return true;
	if (first || env->coarse(env->ctx) + SPOKE_COARSE_NS < deadline_ns)
		return false;
	return env->now(env->ctx) >= deadline_ns;
}

static void refuse(struct spoke_request *request, const struct spoke_filter_verdict *verdict)
{
	struct spokei_message answer = spokei_request_refusal(request, verdict);
	struct spokei_conn *conn = request->conn;

	request->answered = true;
	spokei_figures_count(request->figures, SPOKE_STAT_REQUESTS_REFUSED);
	spokei_request_tell_class(request, &answer);
	spokei_conn_reply(conn, request->message, &answer);
	if (request->watched)
		spokei_gate_leave(request, &answer);
	if (conn->dismissed)
		spokei_conn_dismiss(conn, SPOKE_STAT_CLOSED_AUTH, SPOKE_EFORBIDDEN);
}

/* Returns whether filters and the limit let the request pass; else it is answered. */
static bool pass_gate(struct spoke_request *request, const struct spokei_filters *filters,
		      const struct spokei_route *route)
{
	char text[SPOKEI_GATE_TEXT];
	struct spoke_filter_verdict verdict;

	request->service = route->service;
	verdict = spokei_gate_enter(request, filters, route->limit, text);
	switch (verdict.step) {
	case SPOKE_FILTER_REFUSE:
		refuse(request, &verdict);
		return false;
	case SPOKE_FILTER_ANSWER:
		spoke_reply(request, verdict.value);
		return false;
	case SPOKE_FILTER_GO_ON:
		break;
	}
	return true;
}

/* Replies to a request whose deadline has passed, in place of its handler. */
static void expire(struct spoke_request *request)
{
	request->answered = true;
	spokei_figures_count(request->figures, SPOKE_STAT_REQUESTS_EXPIRED);
	spokei_conn_refuse(request->conn, request->message, SPOKE_EEXPIRED,
			   spoke_strerror(SPOKE_EEXPIRED));
	if (request->watched)
		spokei_gate_fail(request, SPOKE_EEXPIRED);
}

static void run(const struct spokei_route *route, const struct spokei_filters *filters,
		struct spokei_conn *conn, const struct spokei_message *message,
		struct spoke_request **spare)
{
	struct spoke_engine *engine = conn->link->engine;
	struct spoke_request *request;

	spokei_figures_begin(route->figures);
	request = take_request(engine->env, spare);
	if (request == NULL) {
		spokei_figures_count(route->figures, SPOKE_STAT_REQUESTS_REFUSED);
		spokei_conn_refuse(conn, message, SPOKE_EREFUSED, spokei_request_no_memory);
		return;
	}
	request->engine = engine;
	request->conn = conn;
	request->message = message;
	request->handle = route->handle;
	request->arg = route->arg;
	request->figures = route->figures;
	request->deadline_ns = spokei_engine_deadline(engine, message->timeout_ms);
	if (SPOKEI_UNLIKELY(filters->steps > 0 || route->limit != NULL) &&
	    !pass_gate(request, filters, route)) {
		put_back(request, spare);
		return;
	}
	/* A caller without permission does not learn that the service exists. */
	if (message->timeout_ms < 0 || is_over(conn->link, request->deadline_ns)) {
		expire(request);
		put_back(request, spare);
		return;
	}
	if (route->flags & SPOKE_HANDLER_POOL)
		spokei_request_run_on_pool(request, conn);
	else
		run_here(request, conn, spare);
}

static const struct spokei_route *find_route(struct spokei_routes *services,
					     const struct spokei_message *message,
					     bool *ret_service)
{
	const struct spokei_route *route = spokei_routes_find(services, message, ret_service);

	return route ? route : spokei_routes_about(services, message);
}

static bool is_safe(const struct spokei_route *route)
{
	return route->flags & SPOKE_HANDLER_SAFE;
}

bool spokei_request_is_unsafe(struct spokei_routes *services, const struct spokei_message *message)
{
	bool has_service;
	const struct spokei_route *route = find_route(services, message, &has_service);

	return route != NULL && !is_safe(route);
}

/* Answers a request that is not served. Only some callers may learn the reason. */
static SPOKEI_NOINLINE void refuse_unserved(const struct spokei_routes *services,
					    struct spokei_conn *conn,
					    const struct spokei_message *message, int error,
					    const char *why)
{
	struct spoke_request request = { .conn = conn, .message = message };
	struct spoke_filter_verdict verdict;
	char text[SPOKEI_GATE_TEXT];
	struct spokei_message answer;

	if (services->lets_know == NULL ||
	    services->lets_know(services->lets_know_arg, conn, message, text, &verdict)) {
		spokei_count(conn->link->engine, error == SPOKE_ENOSERVICE
							 ? SPOKE_STAT_REQUESTS_NO_SERVICE
							 : SPOKE_STAT_REQUESTS_REFUSED);
		spokei_conn_refuse(conn, message, error, why);
		return;
	}
	spokei_count(conn->link->engine, SPOKE_STAT_REQUESTS_REFUSED);
	answer = spokei_request_refusal(&request, &verdict);
	spokei_conn_note_refused(conn, message, answer.error);
	spokei_conn_reply(conn, message, &answer);
	if (conn->dismissed)
		spokei_conn_dismiss(conn, SPOKE_STAT_CLOSED_AUTH, SPOKE_EFORBIDDEN);
}

void spokei_request_serve(struct spokei_routes *services, const struct spokei_filters *filters,
			  struct spokei_conn *conn, const struct spokei_message *message,
			  struct spoke_request **spare)
{
	const struct spokei_route *route = conn->found;
	bool has_service = true;

	if (route == NULL) {
		route = find_route(services, message, &has_service);
		if (message->safe_only && route && !is_safe(route)) {
			refuse_unserved(services, conn, message, SPOKE_EUNSUPPORTED,
					"GET is for methods that are marked as safe; send a POST");
			return;
		}
		conn->found = route;
	}
	if (route == NULL) {
		refuse_unserved(services, conn, message, SPOKE_ENOSERVICE,
				has_service ? "the service has no such method"
					    : "there is no such service here (name, version and "
					      "group count)");
		return;
	}
	run(route, filters, conn, message, spare);
}

void spokei_request_serve_pushed(void *route, struct spokei_conn *conn,
				 const struct spokei_message *message)
{
	struct spoke_request *spare = NULL;

	run(route, &no_filters, conn, message, &spare);
	spokei_request_free(spare);
}

/* A filter may answer the request while it is notified, so the request is freed here. */
void spokei_request_end_orphans(struct spokei_link *link)
{
	while (!spokei_list_empty(&link->orphans)) {
		struct spokei_serving *serving = spoke_container_of(spokei_list_first(
									    &link->orphans),
								    struct spokei_serving, node);
		struct spoke_request *request = spoke_container_of(serving, struct spoke_request,
								   serving);

		spokei_conn_leave_orphans(serving);
		if (!request->watched)
			continue;
		request->telling = true;
		spokei_gate_fail(request, SPOKE_ECLOSED);
		request->telling = false;
		/* A request on the pool is answered by another thread. */
		if (!request->on_pool && request->answered)
			spokei_request_free(request);
	}
}
