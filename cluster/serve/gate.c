/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of requests. Filters come first: whom they turn away takes nothing from those with a
 * right to be served. */
#include "cluster/serve/request.h"
#include "transport/wire/copy.h"

#define LIMIT_TEXT 192u

/* --- in */

static void refuse(struct spoke_request *request, const char *text)
{
	struct spokei_message answer = {
		.error = SPOKE_EREFUSED,
		.error_text = spokei_span(text, strlen(text)),
	};

	request->answered = true;
	spokei_count(request->engine, SPOKE_STAT_REQUESTS_REFUSED);
	spokei_conn_reply(request->conn, request->message, &answer);
	if (request->watched)
		spokei_gate_leave(request, &answer);
}

static bool take(struct spoke_request *request, struct spokei_limit *limit)
{
	struct spoke_span method = request->message->method;
	enum spokei_limit_reached reached;
	char text[LIMIT_TEXT];

	reached = spokei_limit_take(limit, request->engine->begin_ns);
	if (reached == SPOKEI_LIMIT_FREE) {
		request->limit = limit;
		request->watched = true;
		return true;
	}
	(void)spokei_limit_print(limit, reached, "executes", method, text, sizeof(text));
	refuse(request, text);
	return false;
}

static bool ask(struct spoke_request *request, const struct spokei_filters *filters)
{
	struct spoke_filter_verdict verdict;

	request->arrived_ns = request->engine->begin_ns;
	request->arg_len = request->message->args.len;
	request->filters = filters;
	verdict = spokei_filters_before_request(filters, request, &request->passed);
	request->watched = request->passed > 0;
	switch (verdict.step) {
	case SPOKE_FILTER_REFUSE:
		refuse(request,
		       verdict.text ? verdict.text : "a filter of the provider refuses it");
		return false;
	case SPOKE_FILTER_ANSWER:
		spoke_reply(request, verdict.value);
		return false;
	case SPOKE_FILTER_GO_ON:
		break;
	}
	/* They may have freed the provider, and all that its handlers stand on. */
	if (request->conn->state != SPOKEI_CONN_CLOSED)
		return true;
	refuse(request, "the provider is closing; call another one");
	return false;
}

bool spokei_gate_enter(struct spoke_request *request, const struct spokei_filters *filters,
		       struct spokei_limit *limit)
{
	if (filters->count > 0 && !ask(request, filters))
		return false;
	return limit == NULL || take(request, limit);
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

/* Each may be answered as the filters are told, and is gone then. */
void spokei_gate_close(struct spokei_link *link)
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
		/* What runs on the pool is answered by another thread. */
		if (!request->on_pool && request->answered)
			spokei_request_free(request);
	}
}
