/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracing: a tracer is a filter that gives each call and each request a span, and passes the W3C
 * trace context on in the attachments "traceparent" and "tracestate". Spans that have ended go to
 * a callback, e.g. to an exporter.
 *
 *     struct spoke_tracer_options with = { .ended = show, .arg = out };
 *     const struct spoke_filter *filter;
 *
 *     error = spoke_tracer_new(NULL, &with, &tracer);
 *     filter = spoke_tracer_filter(tracer);
 *     options.filters = &filter;
 *     options.filter_count = 1;
 *
 * A handler that makes calls for its request names the request's context:
 *
 *     struct spoke_trace_context trace;
 *     struct spoke_call_options options = { 0 };
 *
 *     if (spoke_trace_of(request, &trace))
 *             options.trace = &trace;
 *
 * MessagePack-RPC has no attachments: such calls have spans, but the context does not travel.
 */
#ifndef SPOKE_TRACE_H
#define SPOKE_TRACE_H

#include <spoke/filter.h>

SPOKE_BEGIN_DECLS

struct spoke_env;
struct spoke_tracer;

#define SPOKE_TRACE_STATE_MAX 512u  /* bytes of a tracestate; a longer one is dropped */
#define SPOKE_TRACE_PARENT_TEXT 56u /* bytes of a printed traceparent, with the NUL */

/* The position in a trace. Copied by value; valid also after its request was answered. */
struct spoke_trace_context {
	unsigned char trace_id[16];
	unsigned char span_id[8];
	bool sampled;       /* the spans of the trace are recorded */
	uint16_t state_len; /* bytes of `state`; 0: none */
	char state[SPOKE_TRACE_STATE_MAX];
};

/* Reads a traceparent and a tracestate (empty: none) as W3C Trace Context specifies them, e.g. from
 * the headers of an HTTP request. Returns false for an invalid traceparent. An invalid tracestate
 * (more than 512 bytes or 32 members, an invalid or repeated key, an invalid value) is dropped. Any
 * thread. */
SPOKE_API bool spoke_trace_parse(struct spoke_span traceparent, struct spoke_span tracestate,
				 struct spoke_trace_context *ret_context);

/* Writes the traceparent of a context. Any thread. */
SPOKE_API void spoke_trace_print(const struct spoke_trace_context *context,
				 char text[SPOKE_TRACE_PARENT_TEXT]);

/* Writes the context of a request whose provider has a tracer; calls made for the request pass it
 * on as `trace` of their options. Returns false if there is none. Any thread. */
SPOKE_API bool spoke_trace_of(const struct spoke_request *request,
			      struct spoke_trace_context *ret_context);

/* The side of a span. */
enum spoke_trace_kind {
	SPOKE_TRACE_CLIENT, /* a call, from spoke_call() to its end or that of its ticket */
	SPOKE_TRACE_SERVER, /* a request, from its arrival to its end */
};

#define SPOKE_TRACE_ATTEMPTS 8u /* attempts of a call that a span describes */

/* An attempt of a call. */
struct spoke_trace_attempt {
	char peer[64];      /* the provider, e.g. "127.0.0.1:20880"; cut if longer */
	int error;          /* SPOKE_OK, or an error of <spoke/error.h> */
	bool written;       /* as in struct spoke_result */
	bool backup;        /* begun because another attempt was slow */
	uint64_t ended_ns;  /* from the beginning of the span to the end of the attempt */
	uint64_t queued_ns; /* from the beginning of the attempt until it was written */
	uint64_t waited_ns; /* from then until its end */
};

/* A span that has ended. Borrowed for the callback. */
struct spoke_trace_span {
	enum spoke_trace_kind kind;
	struct spoke_trace_context context; /* with the span's own id */
	bool has_parent;
	unsigned char parent_id[8];
	struct spoke_span service;
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span method;
	const char *peer;   /* of the last attempt, or of the request; "": none */
	uint64_t wall_ns;   /* the beginning, since 1970 */
	uint64_t begun_ns;  /* the beginning, monotonic */
	uint64_t took_ns;   /* duration; the end is the beginning plus this */
	uint64_t queued_ns; /* of a call: until it was written; of a request: in the pool's queue */
	int error;          /* as in struct spoke_result, or struct spoke_filter_answer */
	int32_t error_code;
	struct spoke_span error_text; /* may be empty */
	uint32_t attempts; /* of a call, that have begun; retries are all but the first */
	/* The first of the attempts that have ended, at most SPOKE_TRACE_ATTEMPTS. */
	const struct spoke_trace_attempt *attempt;
	uint32_t attempt_count;
};

/* Options of a tracer. Zero-initialised, all fields have their defaults. */
struct spoke_tracer_options {
	/* Called with each sampled span that has ended, on the engine's thread; must not block. It
	 * must not free the tracer or an owner of its filter. NULL: contexts travel only. */
	void (*ended)(void *arg, const struct spoke_trace_span *span);
	void *arg;
	/* New traces that are sampled, per million; 0: all; SPOKE_NONE: none. A call or request
	 * with a parent does as its parent. */
	uint32_t sample;
	/* Spans of calls that are open; default 10,000. A further call passes on the context of its
	 * parent, has no span, and is counted. */
	uint32_t open_max;
};

/* Makes a tracer for the consumers and providers of one engine. `env`: that of the engine,
 * borrowed; NULL: the host's. Returns 0, ERANGE or ENOMEM. */
SPOKE_API SPOKE_MUST_USE int spoke_tracer_new(const struct spoke_env *env,
					      const struct spoke_tracer_options *options,
					      struct spoke_tracer **ret_tracer);

/* Frees a tracer after its engine; NULL is allowed. Spans that are open are dropped. */
SPOKE_API void spoke_tracer_free(struct spoke_tracer *tracer);

/* Returns the filter for consumers and providers, valid as long as the tracer. */
SPOKE_API const struct spoke_filter *spoke_tracer_filter(const struct spoke_tracer *tracer);

/* Returns the number of calls without a span, because open_max was reached or memory was short. */
SPOKE_API uint64_t spoke_tracer_missed(const struct spoke_tracer *tracer);

SPOKE_END_DECLS

#endif
