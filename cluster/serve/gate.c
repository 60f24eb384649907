/* SPDX-License-Identifier: Apache-2.0 */
/* Asks filters and limits whether a request may run, and notifies them of its end. Filters run
 * before the limit, so a request that a filter refuses does not use up the method's quota. */
#include "cluster/serve/gate.h"

#include "cluster/filter/filter.h"
#include "cluster/filter/limit.h"
#include "cluster/serve/parts.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/wire/message.h"

/* --- in */

static struct spoke_filter_verdict refuse(const char *text)
{
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_ECLOSED,
		.text = text,
	};
}

static struct spoke_filter_verdict take(struct spoke_request *request, struct spokei_limit *limit,
					char text[SPOKEI_GATE_TEXT])
{
	struct spoke_span method = request->message->method;
	enum spokei_limit_reached reached;

	reached = spokei_limit_take(limit, request->engine->begin_ns);
	if (reached == SPOKEI_LIMIT_FREE) {
		request->limit = limit;
		request->watched = true;
		return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
	}
	(void)spokei_limit_print(limit, reached, "executes", method, text, SPOKEI_GATE_TEXT);
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_ELIMIT,
		.text = text,
	};
}

static struct spoke_filter_verdict ask(struct spoke_request *request,
				       const struct spokei_filters *filters,
				       char text[SPOKEI_GATE_TEXT])
{
	struct spoke_filter_verdict verdict;

	request->arrived_ns = request->engine->begin_ns;
	request->arg_len = request->message->args.len;
	request->filters = filters;
	request->refusal = text;
	request->self = request;
	verdict = spokei_filters_before_request(filters, request, &request->passed);
	if (!filters->told)
		request->passed = 0;
	request->watched = request->passed > 0;
	if (verdict.step == SPOKE_FILTER_REFUSE && verdict.text == NULL)
		verdict.text = "refused by a filter of the provider";
	/* A filter may have freed the provider, and everything that its handlers use. */
	if (verdict.step == SPOKE_FILTER_GO_ON && request->conn->state == SPOKEI_CONN_CLOSED)
		return refuse("the provider is closing; call another one");
	return verdict;
}

struct spoke_filter_verdict spokei_gate_enter(struct spoke_request *request,
					      const struct spokei_filters *filters,
					      struct spokei_limit *limit,
					      char text[SPOKEI_GATE_TEXT])
{
	struct spoke_filter_verdict verdict = { .step = SPOKE_FILTER_GO_ON };

	if (filters->steps > 0)
		verdict = ask(request, filters, text);
	if (verdict.step == SPOKE_FILTER_GO_ON && limit)
		verdict = take(request, limit, text);
	return verdict;
}

/* --- out */

void spokei_gate_keep_names(struct spoke_request *request)
{
	struct spokei_message names = {
		.kind = SPOKEI_REQUEST,
		.service = request->message->service,
		.version = request->message->version,
		.group = request->message->group,
		.method = request->message->method,
		.generic = request->message->generic,
	};

	request->kept = spokei_copy_new(request->engine->env, &names);
	if (request->kept)
		request->message = &request->kept->message;
}

void spokei_gate_leave(struct spoke_request *request, const struct spokei_message *answer)
{
	const struct spoke_env *env = request->engine->env;
	size_t passed = request->passed;
	struct spoke_filter_answer told;

	request->watched = false;
	request->passed = 0;
	if (request->limit)
		spokei_limit_give(request->limit);
	request->limit = NULL;
	if (passed == 0)
		return;
	told = (struct spoke_filter_answer){
		.error = answer->error,
		.error_code = answer->error_code,
		.error_text = answer->error_text,
		.value = answer->value,
		.arg_len = request->arg_len,
		.took_ns = env->now(env->ctx) - request->arrived_ns,
		/* A request that outlives its provider may just be getting its thread. */
		.queued_ns = request->telling ? 0 : request->waited_ns,
	};
	spokei_filters_after_request(request->filters, passed, request, &told);
}

void spokei_gate_fail(struct spoke_request *request, int error)
{
	const char *text = spoke_strerror(error);
	struct spokei_message answer = {
		.error = error,
		.error_text = spokei_span(text, strlen(text)),
	};

	spokei_gate_leave(request, &answer);
}
