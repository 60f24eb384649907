/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt of a call: picks its endpoint, sends the request there, with our attachments if they
 * are asked for, and reports how the attempt has ended.
 */
#include "cluster/call/call.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/report.h"
#include "cluster/call/retry.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/endpoint.h"
#include "cluster/filter/fence_table.h"
#include "cluster/filter/filter.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <string.h>

#define ANY "*" /* version or group */

static void attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome);

/* --- any version, any group */

static void ask_for_any(struct spoke_method *method)
{
	method->which_id = 0;
	if (method->any_version)
		method->request.version = spokei_span(ANY, strlen(ANY));
	if (method->any_group)
		method->request.group = spokei_span(ANY, strlen(ANY));
}

/* Has the requests of a method of any version or group name those of the endpoint. Returns 0 or
 * SPOKE_ENOMEM. */
static int follow_endpoint(struct spoke_method *method, const struct spokei_endpoint *endpoint)
{
	size_t version_len = strlen(endpoint->version);
	size_t group_len = strlen(endpoint->group);
	const unsigned char *texts;
	int error;

	if (method->which_id == endpoint->id)
		return SPOKE_OK;
	ask_for_any(method);
	spokei_method_forget_peer(method);
	spokei_buffer_truncate(&method->which, 0);
	error = spokei_buffer_append(&method->which, endpoint->version, version_len);
	if (error == 0)
		error = spokei_buffer_append(&method->which, endpoint->group, group_len);
	if (error)
		return error;
	texts = spokei_buffer_data(&method->which);
	if (method->any_version)
		method->request.version = spokei_span(texts, version_len);
	if (method->any_group)
		method->request.group = spokei_span(texts + version_len, group_len);
	method->which_id = endpoint->id;
	return SPOKE_OK;
}

/* --- endpoints */

/* Returns the bytes to hash without a hash key: the first argument's text, else its bytes. */
static struct spoke_span first_argument(const struct spokei_call_args *args)
{
	struct spoke_cursor cursor;
	struct spoke_value first;
	struct spoke_span text;

	if (spoke_values_check(args->values.data, args->values.len, &spokei_link_own_values,
			       &cursor, &(size_t){ 0 }) ||
	    !spoke_cursor_next(&cursor, &first))
		return spokei_span(NULL, 0);
	if (spoke_value_str(first, &text) == 0)
		return text;
	return spokei_span(first.data, first.len);
}

/* A method of any version or group asks for those of the endpoint. */
static inline int follow(struct spoke_method *method, const struct spokei_endpoint *endpoint)
{
	if (SPOKEI_LIKELY(!method->any_version && !method->any_group))
		return SPOKE_OK;
	return follow_endpoint(method, endpoint);
}

/* Picks one for a consumer that is known to have several endpoints. */
static SPOKEI_NOINLINE int pick_among(struct spoke_method *method,
				      const struct spokei_call_args *args,
				      const struct spokei_tried *tried,
				      struct spokei_endpoint **ret_endpoint,
				      struct spokei_conn **ret_conn)
{
	const struct spokei_caller *caller = method->caller;
	const struct spoke_balancer *balancer = method->balancer_state->balancer;
	struct spokei_ask ask = {
		.balancer_state = args->policy->in_order ? NULL : method->balancer_state,
		.key = args->key,
		.timeout_ns = method->settings.timeout_ns,
		.sticky = method->settings.sticky ? &method->sticky : NULL,
	};
	int error;

	if (tried) {
		ask.tried = tried->ids;
		ask.tried_count = tried->count;
	}
	if (SPOKEI_UNLIKELY(balancer && balancer->keyed) && args->key.len == 0)
		ask.key = first_argument(args);
	error = spokei_directory_pick(caller->directory, &ask, ret_endpoint, ret_conn);
	if (SPOKEI_LIKELY(error == SPOKE_OK))
		return follow(method, *ret_endpoint);
	/* Without a list it is not known yet that there is no provider. */
	return error == SPOKE_ENOPROVIDER && caller->awaits_list ? SPOKE_EUNAVAILABLE : error;
}

int spokei_call_pick(struct spoke_method *method, const struct spokei_call_args *args,
		     const struct spokei_tried *tried, struct spokei_endpoint **ret_endpoint,
		     struct spokei_conn **ret_conn)
{
	struct spokei_endpoint *sole = spokei_directory_sole(method->caller->directory, ret_conn);

	if (SPOKEI_UNLIKELY(sole == NULL))
		return pick_among(method, args, tried, ret_endpoint, ret_conn);
	*ret_endpoint = sole;
	method->sticky = sole->id;
	return follow(method, sole);
}

bool spokei_call_has_room_elsewhere(const struct spokei_caller *caller,
				    struct spokei_endpoint *endpoint)
{
	const struct spokei_link *link = caller->link;

	return link->pending_count < link->limits.pending_max &&
	       link->queued < link->limits.queued_max && spokei_directory_full(endpoint);
}

/* --- our attachments */

#define ID_TEXT 24u /* bytes of a printed number, with the NUL */

static unsigned char *put_bytes(unsigned char *at, struct spoke_span bytes)
{
	if (bytes.len)
		memcpy(at, bytes.data, bytes.len);
	return at + bytes.len;
}

static unsigned char *put_text(unsigned char *at, const char *text)
{
	size_t len = strlen(text);

	*at++ = (unsigned char)(0xa0 | len); /* up to 31 bytes */
	for (; *text; text++)
		*at++ = (unsigned char)*text;
	return at;
}

/* Prints a number in a base, with at least `least` digits. snprintf() would take longer than the
 * rest of a call. */
static const char *print_number(char text[ID_TEXT], uint64_t number, unsigned base, unsigned least)
{
	char *at = text + ID_TEXT - 1;

	*at = '\0';
	for (; number > 0 || least > 0; number /= base) {
		*--at = "0123456789abcdef"[number % base];
		least -= least > 0;
	}
	return at;
}

/* Writes a name of at most 64 KiB. */
static unsigned char *put_name(unsigned char *at, struct spoke_span name)
{
	*at++ = 0xda; /* str, with its length in two bytes */
	*at++ = (unsigned char)(name.len >> 8);
	*at++ = (unsigned char)name.len;
	return put_bytes(at, name);
}

static unsigned char *put_lease(unsigned char *at, struct spoke_lease lease)
{
	char number[ID_TEXT];

	at = put_name(put_text(at, SPOKEI_FENCE_NAME), spoke_lease_name(lease));
	at = put_text(at, SPOKEI_FENCE_NUMBER);
	return put_text(at, print_number(number, spoke_lease_fence(lease), 10, 1));
}

static unsigned char *put_number(unsigned char *at, const struct spokei_retry_state *retry)
{
	char number[ID_TEXT];

	at = put_text(at, "spoke.id");
	at = put_text(at, print_number(number, retry->id, 16, 16));
	at = put_text(at, "spoke.attempt");
	return put_text(at, print_number(number, retry->begun + UINT64_C(1), 10, 1));
}

static bool is_key(struct spoke_value key, const char *text)
{
	struct spoke_span span;

	return spoke_value_str(key, &span) == 0 && span.len == strlen(text) &&
	       memcmp(span.data, text, span.len) == 0;
}

/* Counts the user's pairs, which were checked, and looks for keys of a number among them. */
static size_t count_pairs(struct spoke_value map, struct spoke_span *ret_pairs, bool *ret_has)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	size_t count = 0;

	*ret_has = false;
	*ret_pairs = spokei_span(NULL, 0);
	if (map.len == 0 || spoke_cursor_map(map, &pairs) != 0)
		return 0;
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		if (count++ == 0)
			*ret_pairs = spokei_span(key.data, map.len - (size_t)(key.data - map.data));
		*ret_has |= is_key(key, "spoke.id") || is_key(key, "spoke.attempt");
	}
	return count;
}

void spokei_retry_state_attach(struct spokei_retry_state *retry)
{
	bool leased = spokei_retry_state_is_leased(retry);
	struct spoke_span pairs;
	unsigned char *at = retry->extended;
	bool has;
	size_t count = count_pairs(retry->args.attachments, &pairs, &has);
	bool numbered = retry->args.policy->repeats && !has;
	uint32_t all = (uint32_t)count + (leased ? 2 : 0) + (numbered ? 2 : 0);

	SPOKE_ASSERT(at != NULL);
	if (!leased && !numbered)
		return;
	*at++ = 0xdf; /* map, with the number of pairs in four bytes */
	*at++ = (unsigned char)(all >> 24);
	*at++ = (unsigned char)(all >> 16);
	*at++ = (unsigned char)(all >> 8);
	*at++ = (unsigned char)all;
	if (leased)
		at = put_lease(at, retry->lease.lease);
	if (numbered)
		at = put_number(at, retry);
	at = put_bytes(at, pairs);
	retry->extended_len = (size_t)(at - retry->extended);
}

/* --- requests */

/* Puts a request for a connection with this wire and profile id together, in `request`, which is
 * good until the next one. Returns 0, SPOKE_EUNSUPPORTED (the wire cannot carry all of it) or an
 * error of turn_to(). */
static inline int fill(struct spoke_method *method, struct spokei_conn *conn,
		       const struct spokei_wire *wire, uint64_t profile,
		       const struct spokei_call_args *args)
{
	struct spokei_message *request = &method->request;
	const struct spokei_buffer *prefix = &method->prefix.bytes;
	int error = SPOKE_OK;

	request->args = args->values;
	request->arg_count = args->count;
	request->attachments = args->attachments;
	request->two_way = !args->one_way;
	/* Attachments that the wire cannot carry are rejected, not dropped. */
	if (SPOKEI_UNLIKELY(!wire->attachments)) {
		if (args->optional)
			request->attachments = (struct spoke_value){ NULL, 0 };
		if (request->version.len || request->group.len || request->attachments.len)
			return SPOKE_EUNSUPPORTED;
	}
	if (SPOKEI_UNLIKELY(method->prefix.wire != wire || method->prefix.profile != profile))
		error = spokei_method_turn_to(method, conn);
	request->prefix = spokei_span(spokei_buffer_data(prefix), spokei_buffer_len(prefix));
	return error;
}

/* The rest is set by spokei_conn_call(), or stays as the last attempt has left it. */
static inline void prepare(struct spokei_attempt *attempt, uint64_t timeout_ns)
{
	struct spokei_pending *pending = &attempt->pending;

	pending->node.next = NULL;
	pending->conn = NULL;
	pending->unsent = NULL;
	pending->begun_ns = 0;
	pending->written_ns = 0;
	pending->timeout_ns = timeout_ns;
	pending->done = attempt_done;
	attempt->endpoint = NULL;
}

int spokei_call_send(struct spokei_attempt *attempt, struct spokei_conn *conn,
		     const struct spokei_call_args *args, spokei_conn_guard_fn guard)
{
	struct spoke_method *method = attempt->call->method;
	int error = fill(method, conn, conn->wire, conn->profile_id, args);

	if (error)
		return error;
	prepare(attempt, args->timeout_ns);
	if (SPOKEI_UNLIKELY(guard))
		error = spokei_conn_call_guarded(conn, &attempt->pending, &method->request, guard);
	else
		error = spokei_conn_call(conn, &attempt->pending, &method->request);
	return SPOKEI_UNLIKELY(error == SPOKE_ESTATE) ? SPOKE_EUNAVAILABLE : error;
}

/* --- the end of an attempt */

static inline struct spoke_result result_of(const struct spokei_outcome *outcome)
{
	const struct spokei_message *reply = outcome->reply;
	struct spoke_result result = {
		.error = outcome->error,
		.written = outcome->written,
		.queued_ns = outcome->queued_ns,
		.waited_ns = outcome->waited_ns,
		.attempts = 1,
	};

	if (SPOKEI_LIKELY(reply)) {
		result.value = reply->value;
		result.attachments = reply->attachments;
		result.error_text = reply->error_text;
		result.error_class = reply->error_class;
		result.error_code = reply->error_code;
	} else if (outcome->reason) {
		result.error_text = spokei_span(outcome->reason, strlen(outcome->reason));
	}
	if (result.error == SPOKE_OK && result.value.len == 0)
		result.value = spokei_call_nil;
	return result;
}

struct spoke_result spokei_call_result(const struct spokei_outcome *outcome)
{
	return result_of(outcome);
}

/* Returns whether an attempt ended because there was no connection, or none that the peer accepts:
 * its endpoint may know the reason. */
static bool lacked_conn(const struct spokei_outcome *outcome)
{
	return outcome->reply == NULL && (!outcome->written || outcome->error == SPOKE_EHANDSHAKE);
}

/* Returns the text of a result for a request that waited for its connection, and did not fit a
 * frame then. Valid until the next use of the engine. */
static const char *frame_text(const struct spoke_method *method)
{
	const struct spokei_caller *caller = method->caller;

	spokei_why_set(
		caller->engine,
		"arguments and names do not fit a frame; frame.max allows %zu bytes, raise it "
		"on both sides",
		caller->link->limits.wire.frame_max);
	return spoke_engine_why(caller->engine);
}

static void note_timeout(const struct spokei_attempt *attempt, const struct spokei_outcome *outcome)
{
	struct spokei_caller *caller = attempt->call->method->caller;

	if (outcome->error != SPOKE_ETIMEOUT && outcome->error != SPOKE_ETIMEOUT_UNSENT)
		return;
	spokei_count(caller->engine, SPOKE_STAT_ATTEMPTS_TIMEOUT);
	spokei_report_timed_out(&caller->report, attempt->endpoint ? attempt->endpoint->name : NULL,
				attempt->pending.timeout_ns);
}

/* Is the call without a history, and needs none? */
static inline bool ends_here(const struct spokei_call *call, int error)
{
	if (SPOKEI_LIKELY(call->retry == NULL))
		return true;
	return call->retry->state == SPOKEI_CALL_FIRST && (error == SPOKE_OK || call->cancelled);
}

/* Ends a call by the outcome of its only attempt. */
static inline void finish_one(struct spokei_call *call, const struct spokei_outcome *outcome)
{
	struct spoke_result result = result_of(outcome);

	if (SPOKEI_LIKELY(outcome->reply))
		spokei_figures_answered(call->method->figures,
					outcome->queued_ns + outcome->waited_ns);
	if (SPOKEI_UNLIKELY(call->cancelled))
		result = spokei_call_cancelled(&result);
	spokei_call_finish(call, &result);
}

static SPOKEI_NOINLINE void note_slow(const struct spokei_attempt *attempt,
				      const struct spokei_outcome *outcome)
{
	const struct spokei_slow_row row = {
		.figures = attempt->call->method->figures,
		.queued_ns = outcome->queued_ns,
		.took_ns = outcome->waited_ns,
		.error = outcome->error,
	};

	spokei_slow_note(&row, attempt->endpoint ? attempt->endpoint->name : "");
}

static SPOKEI_NOINLINE void notify_filters(const struct spokei_attempt *attempt,
					   const struct spokei_outcome *outcome)
{
	const struct spokei_call *call = attempt->call;
	const char *peer = attempt->endpoint ? attempt->endpoint->name : "";
	const struct spoke_filter_attempt about = {
		.number = call->number,
		.service = call->method->service,
		.method = call->method->request.method,
		.peer = spokei_span(peer, strlen(peer)),
		.error = outcome->error,
		.written = outcome->written,
		.backup = call->retry && call->retry->state != SPOKEI_CALL_FIRST &&
			  call->retry->hedged && attempt->pending.backup,
		.queued_ns = outcome->queued_ns,
		.waited_ns = outcome->waited_ns,
	};

	spokei_filters_after_attempt(call->method->caller->filters, call->filters, &about);
}

static void attempt_done(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	const uint64_t took_ns = outcome->queued_ns + outcome->waited_ns;
	struct spokei_attempt *attempt = spoke_container_of(pending, struct spokei_attempt,
							    pending);
	struct spokei_endpoint *endpoint = attempt->endpoint;
	struct spokei_outcome explained;

	if (SPOKEI_UNLIKELY(outcome->error)) {
		if (endpoint && lacked_conn(outcome)) {
			explained = *outcome;
			explained.reason = outcome->error == SPOKE_ETOOLARGE
						   ? frame_text(attempt->call->method)
						   : spokei_endpoint_reason(endpoint);
			outcome = &explained;
		}
		note_timeout(attempt, outcome);
	}
	if (SPOKEI_LIKELY(endpoint))
		spokei_directory_ended(endpoint, outcome->error, took_ns);
	if (SPOKEI_UNLIKELY(took_ns >= attempt->call->method->figures->slow_ns))
		note_slow(attempt, outcome);
	if (SPOKEI_UNLIKELY(attempt->call->filters))
		notify_filters(attempt, outcome);
	if (SPOKEI_LIKELY(ends_here(attempt->call, outcome->error)))
		finish_one(attempt->call, outcome);
	else
		spokei_call_attempt_ended(attempt, outcome);
}
