/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which limit has refused a call. Calls are refused often when there are too many, so
 * this happens after the refusal, and only there. */
#include "cluster/call/limits.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry_queue.h"
#include "cluster/endpoints/directory.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"
#include "transport/wire/attachments.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_TEXT 96u

struct reached {
	const char *key; /* NULL: the limit has none */
	uint64_t value;
	const char *meaning;
};

static bool is_rate_reached(const struct spokei_limit *limit, uint64_t now_ns)
{
	return limit->bucket.rate > 0 && spokei_bucket_next(&limit->bucket, 1, now_ns) > now_ns;
}

static bool is_full_everywhere(const struct spokei_directory *directory)
{
	return directory && directory->best == SPOKEI_RANK_FULL &&
	       directory->settings.actives_max < UINT32_MAX;
}

/* Limits of the whole caller. */
static bool find_wide(const struct spokei_caller *caller, struct reached *ret)
{
	const struct spokei_link_limits *limits = &caller->link->limits;
	const char *key = caller->pushes ? "pushes.max" : "pending.max";

	if (caller->link->pending_count >= limits->pending_max)
		*ret = (struct reached){ key, limits->pending_max, "calls in flight" };
	else if (caller->calls.count >= caller->calls.max)
		*ret = (struct reached){ key, limits->pending_max, "calls that have not ended" };
	else if (caller->link->queued >= limits->queued_max || caller->kept >= limits->queued_max)
		*ret = (struct reached){ caller->pushes ? "queued.max" : NULL, limits->queued_max,
					 "bytes of requests may be kept; call later" };
	else
		return false;
	return true;
}

/* The rate is last: a call that another limit refuses may have used up its share. */
static struct reached find(const struct spoke_method *method, struct spoke_value attachments)
{
	const struct spokei_caller *caller = method->caller;
	const struct spokei_limit *limit = &method->limit;
	struct reached reached;

	if (attachments.len && spokei_attachments_check(attachments, false) == SPOKE_ELIMIT)
		return (struct reached){ NULL, SPOKEI_ATTACHMENTS_MAX, "attachments; send fewer" };
	if (limit->active_max > 0 && limit->active >= limit->active_max)
		return (struct reached){ "actives", limit->active_max,
					 "calls of the method in flight" };
	if (find_wide(caller, &reached))
		return reached;
	if (is_full_everywhere(caller->directory))
		return (struct reached){ "endpoint.actives",
					 caller->directory->settings.actives_max,
					 "calls in flight to each provider" };
	if (is_rate_reached(limit, caller->engine->begin_ns))
		return (struct reached){ "tps", limit->bucket.rate,
					 "calls of the method in a second" };
	if (caller->filters)
		return (struct reached){ NULL, 0, "by a filter" };
	return (struct reached){ NULL, caller->link->limits.out_max,
				 "bytes of requests may wait for a connection; call later" };
}

void spokei_limits_report(const struct spoke_method *method, struct spoke_value attachments)
{
	struct spoke_engine *engine = method->caller->engine;
	struct reached reached = find(method, attachments);
	char text[SPOKE_EVENT_TEXT];
	char name[NAME_TEXT];

	(void)spokei_log_escape(name, sizeof(name), method->name, strlen(method->name));
	if (reached.key) {
		(void)snprintf(text, sizeof(text),
			       "call of %s refused: %s = %" PRIu64 " is reached (%s); raise it or "
			       "call later",
			       name, reached.key, reached.value, reached.meaning);
	} else if (reached.value) {
		(void)snprintf(text, sizeof(text), "call of %s refused: at most %" PRIu64 " %s",
			       name, reached.value, reached.meaning);
	} else {
		(void)snprintf(text, sizeof(text), "call of %s refused %s", name, reached.meaning);
	}
	if (strcmp(spoke_engine_why(engine), text) != 0)
		spokei_event(engine, SPOKE_ELIMIT, "%s", text);
}

/* A provider that is gone refuses as many calls as there are: no event. */
static void explain_quietly(const struct spoke_method *method, int error)
{
	const struct spokei_directory *directory = method->caller->directory;
	const char *reason = NULL;
	char name[NAME_TEXT];

	if (error == SPOKE_EUNAVAILABLE && directory)
		reason = spokei_directory_reason(directory);
	(void)spokei_log_escape(name, sizeof(name), method->name, strlen(method->name));
	spokei_why_set(method->caller->engine, "call of %s refused: %s%s%s", name,
		       spoke_strerror(error), reason ? "; " : "", reason ? reason : "");
}

size_t spokei_limits_print_queue(const struct spokei_retry_queue *queue, size_t bytes, char *text,
				 size_t size)
{
	bool many = queue->tasks >= queue->tasks_max;
	int len = many ? snprintf(text, size, "failback.tasks = %" PRIu32 " is reached (tickets)",
				  queue->tasks_max)
		       : snprintf(text, size,
				  "failback.bytes = %zu is reached (%zu bytes of tickets, %zu more "
				  "asked for)",
				  queue->bytes_max, queue->bytes, bytes);

	SPOKE_ASSERT(len >= 0);
	return (size_t)len < size ? (size_t)len : size - 1;
}

/* A filter may have closed the consumer, but its method is still there. */
void spokei_limits_explain(const struct spoke_method *method, int error, size_t len,
			   const struct spoke_call_options *options)
{
	const struct spokei_caller *caller = method->caller;

	if (caller->closed)
		return;
	if (error == SPOKE_ELIMIT) {
		spokei_limits_report(method, options ? options->attachments
						     : (struct spoke_value){ NULL, 0 });
	} else if (error == SPOKE_ETOOLARGE && len > 0) {
		spokei_event(caller->engine, SPOKE_ETOOLARGE,
			     "call refused: %zu bytes of arguments and the names do not fit a "
			     "frame; frame.max allows %zu bytes, raise it on both sides",
			     len, caller->link->limits.wire.frame_max);
	} else {
		explain_quietly(method, error);
	}
}

struct spoke_span spokei_limits_text(const struct spoke_method *method, int error)
{
	const struct spokei_caller *caller = method->caller;
	const char *text = NULL;

	if (caller->closed)
		return spokei_span(NULL, 0);
	if (error == SPOKE_EUNAVAILABLE && caller->directory)
		text = spokei_directory_reason(caller->directory);
	else if (error == SPOKE_ELIMIT || error == SPOKE_ETOOLARGE)
		text = spoke_engine_why(caller->engine);
	return spokei_span(text, text ? strlen(text) : 0);
}

const char *spokei_limits_frame(const struct spoke_method *method)
{
	const struct spokei_caller *caller = method->caller;

	spokei_why_set(
		caller->engine,
		"arguments and names do not fit a frame; frame.max allows %zu bytes, raise it "
		"on both sides",
		caller->link->limits.wire.frame_max);
	return spoke_engine_why(caller->engine);
}
