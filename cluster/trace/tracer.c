/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer: a filter that makes a span of each call and each request. Spans of calls that are
 * open are in a map by the number of the call; that of a request is in the request's mark.
 */
#include "cluster/serve/request.h"
#include "cluster/trace/context.h"
#include "core/base/env.h"
#include "core/memory/map.h"

#include <spoke/host.h>
#include <spoke/provider.h>

#include <string.h>

#define SAMPLE_ALL 1000000u
#define OPEN_DEFAULT 10000u
#define OPEN_MAX 1000000u
#define PEER_TEXT sizeof(((struct spoke_trace_attempt *)NULL)->peer)

struct spoke_tracer {
	const struct spoke_env *env;
	struct spoke_filter filter;
	struct spoke_tracer_options options;
	uint64_t missed;
	struct spokei_map open; /* struct call_span by number */
	unsigned char attachments[SPOKEI_TRACE_MAP];
};

/* The beginning of a span of either kind. */
struct beginning {
	struct spoke_trace_context context;
	unsigned char parent_id[8];
	bool has_parent;
	uint64_t wall_ns;
	uint64_t now_ns;
};

struct call_span {
	uint32_t number;
	struct beginning begin;
	uint32_t count; /* of attempts below */
	char peer[PEER_TEXT];
	struct spoke_trace_attempt attempts[SPOKE_TRACE_ATTEMPTS];
};

struct request_span {
	const struct spoke_tracer *tracer; /* while the span is open; else NULL */
	struct beginning begin;
};

/* --- both kinds */

static void begin(struct spoke_tracer *tracer, const struct spoke_trace_context *parent,
		  struct beginning *ret)
{
	const struct spoke_env *env = tracer->env;

	spokei_trace_begin(parent, tracer->options.sample, env, &ret->context);
	ret->has_parent = parent != NULL;
	if (parent)
		memcpy(ret->parent_id, parent->span_id, sizeof(ret->parent_id));
	ret->wall_ns = env->wall(env->ctx);
	ret->now_ns = env->now(env->ctx);
}

static bool is_recorded(const struct spoke_tracer *tracer, const struct beginning *begun)
{
	return begun->context.sampled && tracer->options.ended != NULL;
}

/* Fills the part of a span that both kinds have. */
static struct spoke_trace_span describe(const struct spoke_tracer *tracer,
					const struct beginning *begun, enum spoke_trace_kind kind)
{
	const struct spoke_env *env = tracer->env;
	struct spoke_trace_span span = {
		.kind = kind,
		.context = begun->context,
		.has_parent = begun->has_parent,
		.peer = "",
		.wall_ns = begun->wall_ns,
		.begun_ns = begun->now_ns,
		.took_ns = env->now(env->ctx) - begun->now_ns,
	};

	memcpy(span.parent_id, begun->parent_id, sizeof(span.parent_id));
	return span;
}

/* --- calls */

static struct call_span *find(const struct spoke_tracer *tracer, uint32_t number)
{
	if (tracer->open.count == 0)
		return NULL;
	return spokei_map_get(&tracer->open, &number, sizeof(number));
}

/* Keeps a span until its call ends. Returns false if there is no room for it. */
static bool keep(struct spoke_tracer *tracer, uint32_t number, const struct beginning *begun)
{
	struct call_span *span = NULL;

	if (tracer->open.count < tracer->options.open_max)
		span = spokei_alloc(tracer->env, 1, sizeof(*span));
	if (span == NULL)
		return false;
	span->number = number;
	span->begin = *begun;
	if (spokei_map_add(&tracer->open, &span->number, sizeof(span->number), span) == 0)
		return true;
	spokei_free(tracer->env, span, 1, sizeof(*span));
	return false;
}

static struct spoke_filter_verdict before_call(void *arg, const struct spoke_filter_call *call)
{
	struct spoke_filter_verdict verdict = { .step = SPOKE_FILTER_GO_ON };
	struct spoke_tracer *tracer = arg;
	const struct spoke_trace_context *parent = call->trace;
	struct spoke_trace_context read;
	struct beginning begun;

	if (parent == NULL && spokei_trace_read(call->attachments, &read))
		parent = &read;
	begin(tracer, parent, &begun);
	if (is_recorded(tracer, &begun) && !keep(tracer, call->number, &begun)) {
		tracer->missed++;
		if (parent)
			begun.context = *parent; /* no span comes between */
		else
			begun.context.sampled = false;
	}
	verdict.attachments = spokei_trace_write(&begun.context, tracer->attachments);
	return verdict;
}

static void copy_text(char *to, struct spoke_span text)
{
	size_t len = text.len < PEER_TEXT ? text.len : PEER_TEXT - 1;

	if (len)
		memcpy(to, text.data, len);
	to[len] = '\0';
}

static void after_attempt(void *arg, const struct spoke_filter_attempt *ended)
{
	const struct spoke_tracer *tracer = arg;
	struct call_span *span = find(tracer, ended->number);
	struct spoke_trace_attempt *attempt;

	if (span == NULL)
		return;
	copy_text(span->peer, ended->peer);
	if (span->count == SPOKE_TRACE_ATTEMPTS)
		return;
	attempt = &span->attempts[span->count++];
	*attempt = (struct spoke_trace_attempt){
		.error = ended->error,
		.written = ended->written,
		.backup = ended->backup,
		.ended_ns = tracer->env->now(tracer->env->ctx) - span->begin.now_ns,
		.queued_ns = ended->queued_ns,
		.waited_ns = ended->waited_ns,
	};
	copy_text(attempt->peer, ended->peer);
}

static struct spoke_filter_verdict after_call(void *arg, const struct spoke_filter_call *call)
{
	struct spoke_tracer *tracer = arg;
	struct call_span *kept = find(tracer, call->number);
	struct spoke_trace_span span;

	if (kept) {
		span = describe(tracer, &kept->begin, SPOKE_TRACE_CLIENT);
		span.service = call->service;
		span.version = call->version;
		span.group = call->group;
		span.method = call->method;
		span.peer = kept->peer;
		span.queued_ns = call->result->queued_ns;
		span.error = call->result->error;
		span.error_code = call->result->error_code;
		span.error_text = call->result->error_text;
		span.attempts = call->result->attempts;
		span.attempt = kept->attempts;
		span.attempt_count = kept->count;
		(void)spokei_map_remove(&tracer->open, &kept->number, sizeof(kept->number));
		tracer->options.ended(tracer->options.arg, &span);
		spokei_free(tracer->env, kept, 1, sizeof(*kept));
	}
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

/* --- requests */

/* A request that another tracer, or no memory, keeps from having a span is served all the same. */
static struct spoke_filter_verdict before_request(void *arg, const struct spoke_request *request)
{
	struct spoke_tracer *tracer = arg;
	struct request_span *span = spokei_request_make_mark(request, sizeof(*span));
	struct spoke_trace_context parent;
	bool has_parent;

	if (span && span->tracer == NULL) {
		has_parent = spokei_trace_read(spoke_request_attachments(request), &parent);
		begin(tracer, has_parent ? &parent : NULL, &span->begin);
		span->tracer = tracer;
	}
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

static void after_request(void *arg, const struct spoke_request *request,
			  const struct spoke_filter_answer *answer)
{
	struct spoke_tracer *tracer = arg;
	struct request_span *kept = spokei_request_mark(request);
	struct spoke_trace_span span;
	char peer[PEER_TEXT];

	if (kept == NULL || kept->tracer != tracer)
		return;
	kept->tracer = NULL;
	if (!is_recorded(tracer, &kept->begin))
		return;
	(void)spoke_request_peer(request, peer, sizeof(peer));
	span = describe(tracer, &kept->begin, SPOKE_TRACE_SERVER);
	span.service = spoke_request_service(request);
	span.version = spoke_request_version(request);
	span.group = spoke_request_group(request);
	span.method = spoke_request_method(request);
	span.peer = peer;
	span.queued_ns = answer->queued_ns;
	span.error = answer->error;
	span.error_code = answer->error_code;
	span.error_text = answer->error_text;
	tracer->options.ended(tracer->options.arg, &span);
}

/* The context stays as long as the request, so a thread of the pool may read it. */
bool spoke_trace_of(const struct spoke_request *request, struct spoke_trace_context *ret_context)
{
	const struct request_span *span = spokei_request_mark(request);

	if (span == NULL)
		return false;
	*ret_context = span->begin.context;
	return true;
}

/* --- life */

int spoke_tracer_new(const struct spoke_env *env, const struct spoke_tracer_options *options,
		     struct spoke_tracer **ret_tracer)
{
	const struct spoke_env *in = env ? env : spoke_host_env();
	struct spoke_tracer *tracer;

	if (options && (options->open_max > OPEN_MAX ||
			(options->sample > SAMPLE_ALL && options->sample != SPOKE_NONE)))
		return SPOKE_ERANGE;
	tracer = spokei_alloc(in, 1, sizeof(*tracer));
	if (tracer == NULL)
		return SPOKE_ENOMEM;
	tracer->env = in;
	if (options)
		tracer->options = *options;
	if (tracer->options.open_max == 0)
		tracer->options.open_max = OPEN_DEFAULT;
	if (tracer->options.sample == 0)
		tracer->options.sample = SAMPLE_ALL;
	else if (tracer->options.sample == SPOKE_NONE)
		tracer->options.sample = 0;
	tracer->filter = (struct spoke_filter){
		.name = "tracer",
		.arg = tracer,
		.before_call = before_call,
		.after_attempt = after_attempt,
		.after_call = after_call,
		.before_request = before_request,
		.after_request = after_request,
	};
	spokei_map_init(&tracer->open, in);
	*ret_tracer = tracer;
	return SPOKE_OK;
}

void spoke_tracer_free(struct spoke_tracer *tracer)
{
	struct call_span *span;
	size_t place = 0;

	if (tracer == NULL)
		return;
	while ((span = spokei_map_each(&tracer->open, &place)) != NULL)
		spokei_free(tracer->env, span, 1, sizeof(*span));
	spokei_map_fini(&tracer->open);
	spokei_free(tracer->env, tracer, 1, sizeof(*tracer));
}

const struct spoke_filter *spoke_tracer_filter(const struct spoke_tracer *tracer)
{
	return &tracer->filter;
}

uint64_t spoke_tracer_missed(const struct spoke_tracer *tracer)
{
	return tracer->missed;
}
