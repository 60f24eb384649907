/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions by which a handler or a filter reads a request; and the answer that depends
 * on what it is. */
#include "cluster/serve/parts.h"

#include "core/base/error.h"
#include "transport/conn/conn.h"
#include "transport/trust/caller.h"
#include "transport/wire/message.h"

#include <spoke/filter.h>

struct spokei_message spokei_request_refusal(const struct spoke_request *request,
					     const struct spoke_filter_verdict *verdict)
{
	const char *class_name = verdict->class_name ? verdict->class_name : "";
	struct spokei_message answer = {
		.error = SPOKE_EREFUSED,
		.error_text = spokei_span(verdict->text, strlen(verdict->text)),
		.forbidden = !spokei_error_of(verdict->error)->passes_later,
	};

	if (verdict->error == SPOKE_ELIMIT)
		answer.error_code = SPOKE_ELIMIT;
	if (verdict->error == SPOKE_EFORBIDDEN)
		answer.error_code = verdict->code ? verdict->code : SPOKE_FORBIDDEN_CALLER;
	else if (verdict->error != SPOKE_EREMOTE)
		return answer;
	answer.error = verdict->error;
	answer.error_class = spokei_span(class_name, strlen(class_name));
	answer.foreign = spokei_request_is_foreign(request);
	answer.generic = request->message->generic;
	return answer;
}

int spoke_request_keep(struct spoke_request *request)
{
	if (request->kept)
		return SPOKE_OK;
	request->kept = spokei_copy_new(request->engine->env, request->message);
	if (request->kept == NULL)
		return SPOKE_ENOMEM;
	request->message = &request->kept->message;
	return SPOKE_OK;
}

void spoke_request_on_abandoned(struct spoke_request *request,
				void (*abandoned)(struct spoke_request *request, void *arg),
				void *arg)
{
	request->abandoned = abandoned;
	request->abandoned_arg = arg;
}

struct spoke_cursor spoke_request_args(const struct spoke_request *request)
{
	struct spoke_cursor cursor = spoke_cursor_bytes(request->message->args);

	cursor.left = request->message->arg_count;
	return cursor;
}

size_t spoke_request_arg_count(const struct spoke_request *request)
{
	return request->message->arg_count;
}

struct spoke_span spoke_request_service(const struct spoke_request *request)
{
	return request->message->service;
}

struct spoke_span spoke_request_version(const struct spoke_request *request)
{
	return request->message->version;
}

struct spoke_span spoke_request_group(const struct spoke_request *request)
{
	return request->message->group;
}

struct spoke_span spoke_request_method(const struct spoke_request *request)
{
	return request->message->method;
}

struct spoke_value spoke_request_attachments(const struct spoke_request *request)
{
	return request->message->attachments;
}

bool spoke_request_two_way(const struct spoke_request *request)
{
	return request->conn ? request->message->two_way : request->serving.two_way;
}

uint64_t spoke_request_left(const struct spoke_request *request)
{
	const struct spoke_env *env = request->engine->env;
	uint64_t now_ns;

	if (request->deadline_ns == UINT64_MAX)
		return UINT64_MAX;
	now_ns = env->now(env->ctx);
	return now_ns < request->deadline_ns ? request->deadline_ns - now_ns : 0;
}

size_t spoke_request_peer(const struct spoke_request *request, char *text, size_t size)
{
	const struct spoke_env *env = request->engine->env;
	const struct spoke_address *peer = request->conn ? &request->conn->peer : &request->peer;

	if (size == 0)
		return 0;
	env->net->print(env->ctx, peer, text, size);
	return strlen(text);
}

size_t spoke_request_identity(const struct spoke_request *request, size_t index, char *text,
			      size_t size)
{
	const struct spokei_conn *conn = request->conn;

	return spokei_identity_print(request->engine->env,
				     conn ? conn->identity : request->identity,
				     conn ? &conn->peer : &request->peer, index, text, size);
}

struct spoke_peer spoke_request_from(const struct spoke_request *request)
{
	if (request->conn)
		return (struct spoke_peer){ request->conn->handle };
	return request->from;
}

bool spoke_request_abandoned(const struct spoke_request *request)
{
	return atomic_load_explicit(&request->gone, memory_order_relaxed);
}
