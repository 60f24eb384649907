/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are bound to something else of the program: to a lease, or to the request for which
 * they are made. An inner call has no more time than is left of its request, is part of its trace,
 * and ends when the request is abandoned. It has a link in place of the user's callback; the link
 * is in the list of the request until the call ends, or becomes a ticket, or the request is
 * answered.
 */
#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/report.h"
#include "cluster/filter/fence_table.h"
#include "cluster/lease/use.h"
#include "cluster/route/router.h"
#include "cluster/serve/request.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/engine/use.h"
#include "core/value/builder.h"
#include "transport/conn/link.h"

#include <spoke/trace.h>

/* --- under a lease */

static bool has_key(struct spoke_value attachments, const char *key)
{
	struct spoke_value value;

	return spoke_value_get(attachments, key, &value) == SPOKE_OK;
}

/* Checks the options of a call under a lease. Returns 0, SPOKE_ELEASE, or SPOKE_EINVAL (the lease
 * is of another engine, or the attachments contain its keys). */
static int check_leased(const struct spoke_engine *engine, const struct spoke_call_options *options)
{
	if (has_key(options->attachments, SPOKEI_FENCE_NAME) ||
	    has_key(options->attachments, SPOKEI_FENCE_NUMBER))
		return SPOKE_EINVAL;
	return spokei_lease_use_check(options->lease, engine);
}

/* --- for a request */

struct link {
	struct spokei_use use; /* of the request */
	struct spoke_request *request;
	struct spokei_caller *caller;
	struct spoke_call call;
	spoke_call_done_fn done; /* the user's, may be NULL */
	void *arg;
};

/* The request is abandoned. */
static void request_over(struct spokei_use *use)
{
	const struct link *link = spoke_container_of(use, struct link, use);

	(void)spokei_call_cancel(link->caller, link->call);
}

/* Calls that the callback makes are made for the same request, if it still waits for its answer. */
static void inner_done(void *arg, const struct spoke_result *result)
{
	struct link *link = arg;
	struct spoke_engine *engine = link->caller->engine;
	struct spoke_request *request = spokei_use_is_over(&link->use) ? NULL : link->request;
	struct spoke_request *outer = engine->request;
	spoke_call_done_fn done = link->done;
	void *done_arg = link->arg;

	spokei_use_end(&link->use);
	spokei_free(engine->env, link, 1, sizeof(*link));
	if (done == NULL)
		return;
	engine->request = request;
	done(done_arg, result);
	engine->request = outer;
}

/* Finds the request that a call is made for; NULL: none. Returns 0, or SPOKE_EINVAL: it is of
 * another engine. */
static int find_request(const struct spoke_method *method, const struct spoke_call_options *options,
			struct spoke_request **ret_request)
{
	struct spoke_engine *engine = method->caller->engine;
	struct spoke_request *request = options->parent;

	*ret_request = NULL;
	if (options->detached)
		return SPOKE_OK;
	if (request == NULL && method->settings.inherits)
		request = engine->request;
	if (request && spokei_request_engine(request) != engine)
		return SPOKE_EINVAL;
	if (request && spokei_request_waits(request))
		*ret_request = request;
	return SPOKE_OK;
}

/* Gives a call no more time than is left of its request. Returns 0, SPOKE_ECANCELED or
 * SPOKE_ETIMEOUT_UNSENT: it is over. */
static int cut_time(const struct spoke_request *request, struct spokei_call_args *args)
{
	uint64_t left_ns = spoke_request_left(request);

	if (spoke_request_abandoned(request))
		return SPOKE_ECANCELED;
	if (left_ns == 0)
		return SPOKE_ETIMEOUT_UNSENT;
	if (left_ns >= args->timeout_ns)
		return SPOKE_OK;
	args->own_ns = args->timeout_ns;
	args->timeout_ns = left_ns;
	args->cut = true;
	return SPOKE_OK;
}

/* Gives a call the tag of its request, unless the user sets another one. `added` gets the
 * attachments then. Returns 0, SPOKE_ENOMEM or SPOKE_ETOOLARGE. */
static int inherit_tag(const struct spoke_request *request, struct spokei_call_args *args,
		       struct spokei_buffer *added)
{
	const struct spoke_value given = args->attachments;
	struct spoke_cursor pairs = { 0 };
	struct spoke_builder builder;
	struct spoke_value tag;
	int error;

	if (spoke_value_get(spoke_request_attachments(request), SPOKEI_ROUTE_TAG_KEY, &tag) ||
	    has_key(given, SPOKEI_ROUTE_TAG_KEY) ||
	    (given.len > 0 && spoke_cursor_map(given, &pairs)))
		return SPOKE_OK;
	spokei_builder_init_buffer(&builder, added, NULL);
	spoke_pack_map(&builder, (size_t)pairs.left / 2 + 1);
	spoke_pack_raw(&builder, spoke_cursor_rest(&pairs));
	spoke_pack_text(&builder, SPOKEI_ROUTE_TAG_KEY);
	spoke_pack_raw(&builder, spokei_span(tag.data, tag.len));
	error = spoke_builder_finish_value(&builder, &args->attachments);
	spoke_builder_fini(&builder);
	args->optional = given.len == 0;
	return error;
}

/* Takes a call as part of the trace of its request, unless the user names another one. */
static int take_traced(struct spoke_method *method, const struct spokei_call_args *args,
		       const struct spoke_request *request, const struct spoke_trace_context *trace,
		       struct spokei_call **ret_call)
{
	struct spoke_trace_context context;

	if (method->caller->filters && trace == NULL &&
	    !has_key(args->attachments, "traceparent") && spoke_trace_of(request, &context))
		trace = &context;
	return spokei_call_take(method, args, trace, ret_call);
}

/* Begins a call for a request. Returns as spoke_call(). */
static int begin_for(struct spoke_method *method, struct spoke_request *request,
		     struct spokei_call_args *args, const struct spoke_call_options *options,
		     struct link *link, struct spoke_call *ret_call)
{
	const struct spokei_caller *caller = method->caller;
	struct spokei_call *call = NULL;
	struct spokei_buffer added;
	int error = cut_time(request, args);

	if (error)
		return error;
	spokei_buffer_init(&added, caller->engine->env, caller->link->limits.wire.frame_max);
	spokei_request_join(request, &link->use);
	error = inherit_tag(request, args, &added);
	if (error == 0)
		error = take_traced(method, args, request, options->trace, &call);
	spokei_buffer_fini(&added);
	if (error) {
		spokei_use_end(&link->use);
		return error;
	}
	link->call.handle = call->handle;
	/* A filter of the call may have ended the request, or its provider. */
	if (!spokei_use_is_over(&link->use) && spoke_request_abandoned(request))
		request_over(&link->use);
	return spokei_call_taken(call, inner_done, link, ret_call);
}

/* --- both */

static int begin(struct spoke_method *method, struct spokei_call_args *args,
		 const struct spoke_call_options *options, spoke_call_done_fn done, void *arg,
		 struct spoke_call *ret_call)
{
	const struct spoke_env *env = method->caller->engine->env;
	struct spoke_request *request;
	struct spokei_call *call = NULL;
	struct link *link;
	int error = find_request(method, options, &request);

	if (error)
		return error;
	if (request == NULL) {
		error = spokei_call_take(method, args, options->trace, &call);
		return error ? error : spokei_call_taken(call, done, arg, ret_call);
	}
	link = spokei_alloc(env, 1, sizeof(*link));
	if (link == NULL)
		return SPOKE_ENOMEM;
	*link = (struct link){
		.use.over = request_over,
		.request = request,
		.caller = method->caller,
		.done = done,
		.arg = arg,
	};
	error = begin_for(method, request, args, options, link, ret_call);
	if (error)
		spokei_free(env, link, 1, sizeof(*link));
	return error;
}

int spokei_call_begin_inner(struct spoke_method *method, struct spokei_call_args *args,
			    const struct spoke_call_options *options, spoke_call_done_fn done,
			    void *arg, struct spoke_call *ret_call)
{
	int error = SPOKE_OK;

	if (options->lease.leases) {
		args->lease = &options->lease;
		error = check_leased(method->caller->engine, options);
	}
	if (error == 0)
		error = begin(method, args, options, done, arg, ret_call);
	return error ? spokei_limits_refuse(method, error, args->values.len) : SPOKE_OK;
}
