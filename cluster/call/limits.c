/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the limit that has refused a call. */
#include "cluster/call/limits.h"

#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/endpoints/directory.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "transport/conn/link.h"
#include "transport/wire/attachments.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_TEXT 96u
#define LIMIT_TEXT 92u

struct reached {
	const char *key; /* NULL: the limit has none */
	uint64_t value;
	const char *meaning;
};

static struct reached find(const struct spoke_method *method)
{
	const struct spokei_caller *caller = method->caller;
	const struct spokei_link_limits *limits = &caller->link->limits;
	const char *pending = caller->pushes ? "pushes.max" : "pending.max";
	const char *queued = caller->pushes ? "queued.max" : NULL;

	switch (caller->link->refused_by) {
	case SPOKEI_REFUSED_BY_PENDING:
		return (struct reached){ pending, limits->pending_max, "calls in flight" };
	case SPOKEI_REFUSED_BY_CALLS:
		return (struct reached){ pending, limits->pending_max,
					 "calls that have not ended" };
	case SPOKEI_REFUSED_BY_QUEUED:
	case SPOKEI_REFUSED_BY_KEPT:
		return (struct reached){ queued, limits->queued_max,
					 "bytes of requests may be kept; call later" };
	case SPOKEI_REFUSED_BY_OUTPUT:
		return (struct reached){ NULL, limits->out_max,
					 "bytes of requests may wait for a connection; call "
					 "later" };
	case SPOKEI_REFUSED_BY_IDS:
		return (struct reached){ NULL, caller->link->pending_count,
					 "calls have an id on a connection; call later" };
	case SPOKEI_REFUSED_BY_ATTACHMENTS:
		return (struct reached){ NULL, SPOKEI_ATTACHMENTS_MAX, "attachments; send fewer" };
	case SPOKEI_REFUSED_BY_ACTIVES:
		return (struct reached){ "actives", method->limit.active_max,
					 "calls of the method in flight" };
	case SPOKEI_REFUSED_BY_RATE:
		return (struct reached){ "tps", method->limit.bucket.rate,
					 "calls of the method in a second" };
	case SPOKEI_REFUSED_BY_ENDPOINTS:
		return (struct reached){ "endpoint.actives",
					 caller->directory->settings.actives_max,
					 "calls in flight to each provider" };
	case SPOKEI_REFUSED_BY_TASKS:
		return (struct reached){ "failback.tasks", caller->retry.tasks_max, "tickets" };
	case SPOKEI_REFUSED_BY_BYTES:
		return (struct reached){ "failback.bytes", caller->retry.bytes_max,
					 "bytes of tickets" };
	case SPOKEI_REFUSED_BY_TIMERS:
		return (struct reached){ NULL, 0, "because timers.max of the engine is reached" };
	case SPOKEI_REFUSED_BY_FILTER:
		break;
	}
	return (struct reached){ NULL, 0, "by a filter" };
}

size_t spokei_limits_print(const struct spoke_method *method, char *text, size_t size)
{
	const struct reached reached = find(method);
	int len;

	if (reached.key)
		len = snprintf(text, size, "%s = %" PRIu64 " is reached (%s)", reached.key,
			       reached.value, reached.meaning);
	else if (reached.value)
		len = snprintf(text, size, "at most %" PRIu64 " %s", reached.value,
			       reached.meaning);
	else
		len = snprintf(text, size, "%s", reached.meaning);
	SPOKE_ASSERT(len >= 0);
	return (size_t)len < size ? (size_t)len : size - 1;
}

static void report(const struct spoke_method *method)
{
	const struct reached reached = find(method);
	struct spoke_engine *engine = method->caller->engine;
	char limit[LIMIT_TEXT];
	char text[SPOKE_EVENT_TEXT];
	char name[NAME_TEXT];

	(void)spokei_log_escape(name, sizeof(name), method->name, strlen(method->name));
	(void)spokei_limits_print(method, limit, sizeof(limit));
	(void)snprintf(text, sizeof(text), "call of %s refused%s %s%s", name,
		       reached.value ? ":" : "", limit,
		       reached.key ? "; raise it or call later" : "");
	if (strcmp(spoke_engine_why(engine), text) != 0)
		spokei_event(engine, SPOKE_ELIMIT, "%s", text);
}

/* Returns why no endpoint can take a call; NULL: not known. */
static const char *reason_of(const struct spokei_caller *caller)
{
	return caller->awaits_list ? "the registry has not answered yet"
				   : spokei_directory_reason(caller->directory);
}

/* A provider that is gone refuses as many calls as there are: no event. */
static void explain_quietly(const struct spoke_method *method, int error)
{
	const struct spokei_directory *directory = method->caller->directory;
	const char *reason = NULL;
	char name[NAME_TEXT];

	if (error == SPOKE_EUNAVAILABLE && directory)
		reason = reason_of(method->caller);
	(void)spokei_log_escape(name, sizeof(name), method->name, strlen(method->name));
	spokei_why_set(method->caller->engine, "call of %s refused: %s%s%s", name,
		       spoke_strerror(error), reason ? "; " : "", reason ? reason : "");
}

/* A filter may have closed the consumer, but its method is still there. */
int spokei_limits_refuse(const struct spoke_method *method, int error, size_t len)
{
	const struct spokei_caller *caller = method->caller;

	if (spokei_engine_elsewhere(caller->engine))
		return SPOKE_ETHREAD;
	spokei_figures_count(method->figures, SPOKE_STAT_CALLS_REFUSED);
	if (caller->closed)
		return error;
	if (error == SPOKE_ELIMIT) {
		report(method);
	} else if (error == SPOKE_ETOOLARGE && len > 0) {
		spokei_event(caller->engine, SPOKE_ETOOLARGE,
			     "call refused: %zu bytes of arguments and the names do not fit a "
			     "frame; frame.max allows %zu bytes, raise it on both sides",
			     len, caller->link->limits.wire.frame_max);
	} else {
		explain_quietly(method, error);
	}
	return error;
}

struct spoke_span spokei_limits_text(const struct spoke_method *method, int error)
{
	const struct spokei_caller *caller = method->caller;
	const char *text = NULL;

	if (caller->closed)
		return spokei_span(NULL, 0);
	if (error == SPOKE_EUNAVAILABLE && caller->directory)
		text = reason_of(caller);
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
