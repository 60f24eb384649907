/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a call: taken or refused at once, then one end. */
#include "cluster/call.h"

#include "cluster/attachments.h"
#include "cluster/consumer_parts.h"
#include "core/shape.h"

/* --- the end */

static enum spoke_stat stat_of(int error)
{
	switch (error) {
	case SPOKE_OK:
		return SPOKE_STAT_CALLS_OK;
	case SPOKE_ETIMEOUT:
		return SPOKE_STAT_CALLS_TIMEOUT;
	case SPOKE_ETIMEOUT_UNSENT:
		return SPOKE_STAT_CALLS_TIMEOUT_UNSENT;
	case SPOKE_ECANCELED:
		return SPOKE_STAT_CALLS_CANCELED;
	case SPOKE_ECLOSED:
		return SPOKE_STAT_CALLS_CLOSED;
	default:
		break;
	}
	if (spoke_error_is_remote(error))
		return SPOKE_STAT_CALLS_REMOTE;
	return spoke_error_is_transport(error) ? SPOKE_STAT_CALLS_LOST : SPOKE_STAT_CALLS_FAILED;
}

static struct spoke_result make_result(const struct spokei_outcome *outcome)
{
	static const unsigned char nil = 0xc0;
	const struct spokei_message *reply = outcome->reply;
	struct spoke_result result = {
		.error = outcome->error,
		.written = outcome->written,
		.queued_ns = outcome->queued_ns,
		.waited_ns = outcome->waited_ns,
	};

	if (reply) {
		result.value = reply->value;
		result.attachments = reply->attachments;
		result.error_text = reply->error_text;
		result.error_class = reply->error_class;
		result.error_code = reply->error_code;
	}
	if (result.error == SPOKE_OK && result.value.len == 0)
		result.value = (struct spoke_value){ &nil, 1 };
	return result;
}

/* The one completion of a call. Its cell is free when the callback runs, which may call again. */
static void finish_call(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spokei_caller *caller = call->caller;
	struct spoke_result result = make_result(outcome);
	spoke_done done = call->done;
	void *arg = call->arg;

	spokei_count(caller->engine, stat_of(outcome->error));
	spokei_task_drop(&call->cancel);
	spokei_slab_give(&caller->calls, call->handle);
	if (done)
		done(arg, &result);
	if (caller->closed && caller->link->pending_count == 0 && caller->idle)
		caller->idle(caller);
}

static void attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	struct spokei_call *call = spoke_container_of(pending, struct spokei_call, attempt);
	struct spokei_outcome cancelled = *outcome;

	if (!call->cancelled) {
		finish_call(call, outcome);
		return;
	}
	/* Whatever came first since: its owner was promised so. */
	cancelled.error = SPOKE_ECANCELED;
	cancelled.reply = NULL;
	finish_call(call, &cancelled);
}

static void call_cancelled(struct spokei_task *task)
{
	struct spokei_call *call = spoke_container_of(task, struct spokei_call, cancel);

	spokei_conn_cancel(&call->attempt, SPOKE_ECANCELED);
}

bool spokei_call_cancel(struct spokei_caller *caller, struct spoke_call named)
{
	struct spokei_call *call = spokei_slab_get(&caller->calls, named.handle);

	if (call == NULL)
		return false;
	call->cancelled = true;
	spokei_conn_withdraw(&call->attempt);
	spokei_engine_soon(caller->engine, &call->cancel);
	return true;
}

/* --- the beginning */

static inline int check_args(struct spoke_span args, size_t *ret_count)
{
	struct spoke_cursor cursor;

	if (SPOKEI_LIKELY(spokei_shape_is_scalar(args.data, args.len))) {
		*ret_count = 1;
		return SPOKE_OK;
	}
	return spoke_values_check(args.data, args.len, NULL, &cursor, ret_count);
}

/* What the wire has no place for is not left out in silence. */
static int check_wire(const struct spokei_wire *wire, const struct spokei_message *message)
{
	if (SPOKEI_LIKELY(wire->attachments))
		return SPOKE_OK;
	return message->version.len || message->group.len || message->attachments.len
		       ? SPOKE_EUNSUPPORTED
		       : SPOKE_OK;
}

/* The prefix of this method on this wire, made when it is wanted first. */
static struct spoke_span prefix_of(struct spoke_method *method, const struct spokei_wire *wire)
{
	struct spokei_prefix *prefix = &method->prefix;

	if (prefix->wire != wire) {
		spokei_buffer_truncate(&prefix->bytes, 0);
		if (wire->prefix(&method->caller->link->limits.wire, &method->request,
				 &prefix->bytes))
			return spokei_span(NULL, 0);
		prefix->wire = wire;
	}
	return spokei_span(spokei_buffer_data(&prefix->bytes), spokei_buffer_len(&prefix->bytes));
}

/* A cell of the last call's anew: all but the timer, and what spokei_conn_call() sets. */
static void clear_call(struct spokei_call *call)
{
	struct spokei_pending *attempt = &call->attempt;

	attempt->node.next = NULL;
	attempt->conn = NULL;
	attempt->parcel = NULL;
	attempt->begun_ns = 0;
	attempt->written_ns = 0;
	attempt->done = attempt_done;
	attempt->lasting = true;
	call->cancelled = false;
	call->cancel.node.next = NULL;
	call->cancel.run = call_cancelled;
}

int spokei_call_prepare(struct spoke_method *method, struct spoke_span args,
			const struct spoke_call_options *options)
{
	const struct spokei_caller *caller = method->caller;
	/* What the calls of a method say differently is set by each. */
	struct spokei_message *message = &method->request;
	int error;

	if (spokei_engine_forked(caller->engine))
		return SPOKE_EFORKED;
	if (caller->closed)
		return SPOKE_ECLOSED;
	if (options->timeout_ns > SPOKEI_TIMEOUT_MAX_NS)
		return SPOKE_ERANGE;
	error = check_args(args, &message->arg_count);
	if (error == 0 && options->attachments.len > 0)
		error = spokei_attachments_check(options->attachments, false);
	if (error)
		return error;
	if (SPOKEI_UNLIKELY(method->type_count) && method->type_count != message->arg_count)
		return SPOKE_EINVAL;
	message->args = args;
	message->attachments = options->attachments;
	message->two_way = !options->one_way;
	return SPOKE_OK;
}

int spokei_call_begin(struct spoke_method *method, struct spokei_conn *conn, uint64_t timeout_ns,
		      struct spokei_call **ret_call)
{
	struct spokei_caller *caller = method->caller;
	struct spokei_message *message = &method->request;
	struct spokei_call *call;
	void *cell;
	uint64_t handle;
	int error = check_wire(conn->wire, message);

	if (error == 0)
		error = spokei_slab_take(&caller->calls, &cell, &handle);
	if (error)
		return error;
	call = cell;
	clear_call(call);
	call->caller = caller;
	call->handle = handle;
	call->attempt.timeout_ns = timeout_ns ? timeout_ns : method->timeout_ns;
	message->prefix = prefix_of(method, conn->wire);
	error = spokei_conn_call(conn, &call->attempt, message);
	if (error) {
		spokei_slab_give(&caller->calls, handle);
		return error == SPOKE_ESTATE ? SPOKE_EUNAVAILABLE : error;
	}
	spokei_count(caller->engine, SPOKE_STAT_CALLS);
	*ret_call = call;
	return SPOKE_OK;
}

/* --- a consumer's */

static int take_call(struct spoke_method *method, struct spoke_span args,
		     const struct spoke_call_options *options, struct spokei_call **ret_call)
{
	struct spokei_conn *conn;
	int error;

	if (SPOKEI_UNLIKELY(method->caller->pushes))
		return SPOKE_EINVAL;
	error = spokei_call_prepare(method, args, options);
	if (error)
		return error;
	conn = spokei_consumer_pick(spokei_consumer_of(method));
	if (conn == NULL)
		return SPOKE_EUNAVAILABLE;
	return spokei_call_begin(method, conn, options->timeout_ns, ret_call);
}

int spoke_call(struct spoke_method *method, struct spoke_span args,
	       const struct spoke_call_options *options, spoke_done done, void *arg,
	       struct spoke_call *ret_call)
{
	static const struct spoke_call_options defaults;
	struct spokei_call *call = NULL;
	int error = take_call(method, args, options ? options : &defaults, &call);

	return spokei_call_taken(method, error, call, done, arg, ret_call);
}

bool spoke_call_cancel(struct spoke_consumer *consumer, struct spoke_call call)
{
	return spokei_call_cancel(&consumer->caller, call);
}
