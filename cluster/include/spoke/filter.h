/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters: functions that run before and after every call of a consumer and every request of a
 * provider. A filter lets the call or request continue, refuses it, or answers in its place. Before
 * a call it can add attachments, and it is notified of the end of each attempt.
 * Filters run in order before, and in reverse order after.
 */
#ifndef SPOKE_FILTER_H
#define SPOKE_FILTER_H

#include <spoke/call.h>

SPOKE_BEGIN_DECLS

struct spoke_request;

/* The decision of a filter. */
enum spoke_filter_step {
	SPOKE_FILTER_GO_ON,
	SPOKE_FILTER_REFUSE, /* ends with `error`; nothing is sent, no handler runs */
	SPOKE_FILTER_ANSWER, /* ends with `value`; nothing is sent, no handler runs */
};

/* A decision with its details. */
struct spoke_filter_verdict {
	enum spoke_filter_step step;
	/* Of REFUSE: one of <spoke/error.h>. A remote caller gets EREFUSED; or, if this is EREMOTE,
	 * an exception with the text, which is not retried; or, if this is EFORBIDDEN, that
	 * error with `code`. An HTTP client gets status 403, or for EREFUSED and ECLOSED 503, for
	 * ELIMIT 429. */
	int error;
	const char *text; /* of REFUSE: for people, borrowed until the filter's next call; NULL */
	struct spoke_value value; /* of ANSWER; borrowed until the filter's next call */
	/* Of REFUSE with EREMOTE before a request: the class of the exception, a name that the
	 * caller knows, e.g. "java.lang.SecurityException". NULL: none. Borrowed like `text`. */
	const char *class_name;
	/* Of GO_ON before a call: further attachments, a map with unique strings as keys, borrowed
	 * until the filter's next call; { 0 }: none. They replace attachments of the call with the
	 * same key, and later filters see them. Invalid ones refuse the call. MessagePack-RPC has
	 * no attachments: a call that has only those of filters is sent without them. */
	struct spoke_value attachments;
	/* Of REFUSE with EFORBIDDEN before a request: SPOKE_FORBIDDEN_CALLER, the same as 0, or
	 * SPOKE_FORBIDDEN_UNPROVEN, for which an HTTP client gets status 401. With EREMOTE: the
	 * code of the exception. */
	int32_t code;
};

/* A call that is about to begin, or has ended. Borrowed for the filter. */
struct spoke_filter_call {
	/* Names the call from before_call() to after_call(), also among other consumers of the
	 * engine. Numbers come again after 2^32 calls; never 0. */
	uint32_t number;
	struct spoke_span service;
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span method;
	struct spoke_span args;         /* after the call { 0 }, unless kept for a retry */
	struct spoke_value attachments; /* like `args` */
	bool one_way;
	const struct spoke_trace_context *trace; /* of the call's options; NULL after the call */
	const struct spoke_result *result;       /* NULL before the call */
	uint64_t took_ns;                        /* after the call: its duration */
};

/* An attempt that has ended. Borrowed for the filter. */
struct spoke_filter_attempt {
	uint32_t number; /* of its call */
	struct spoke_span service;
	struct spoke_span method;
	struct spoke_span peer; /* the provider, e.g. "127.0.0.1:20880" */
	int error;              /* SPOKE_OK, or an error of <spoke/error.h> */
	bool written;           /* as in struct spoke_result */
	bool backup;            /* begun because another attempt was slow */
	uint64_t queued_ns;     /* from the beginning until it was written, or until its end */
	uint64_t waited_ns;     /* from then until the end */
};

/* The end of a request. */
struct spoke_filter_answer {
	/* SPOKE_OK; EREMOTE: error of the handler; EREFUSED: refused by a later filter, a limit or
	 * the pool; EEXPIRED, ELOST: the deadline passed, or the connection closed, before a thread
	 * was free; ECLOSED: the provider was freed before the handler answered; ETOOLARGE,
	 * ESERVER. */
	int error;
	int32_t error_code;
	struct spoke_span error_text;
	struct spoke_value value; /* of OK */
	size_t arg_len;           /* bytes of the arguments, which may be freed already */
	uint64_t took_ns;         /* duration since the arrival; 0: not known */
	uint64_t queued_ns;       /* part of it: the wait for a thread of the pool */
};

/* A filter. Its functions run on the engine's thread, must not block, may be NULL, and may call any
 * function. They may also free the owner of the filter. before_call() must not free the engine if
 * the call begins while the engine does not run. */
struct spoke_filter {
	const char *name;
	void *arg; /* passed to each function; must outlive the owner of the filter */
	/* Called before a call is sent. After ANSWER the callback still comes later, like for any
	 * other call. */
	struct spoke_filter_verdict (*before_call)(void *arg, const struct spoke_filter_call *call);
	/* Called once when a call has ended; for a call with a ticket, when the ticket is settled.
	 * REFUSE replaces the result with an error, ANSWER with a success. */
	struct spoke_filter_verdict (*after_call)(void *arg, const struct spoke_filter_call *call);
	/* Called at the end of each attempt that has begun, before after_call(). Must not free the
	 * owner of the filter, or the engine. */
	void (*after_attempt)(void *arg, const struct spoke_filter_attempt *attempt);
	/* Called before the handler, on the engine's thread even if the handler runs on the pool.
	 */
	struct spoke_filter_verdict (*before_request)(void *arg,
						      const struct spoke_request *request);
	/*
	 * Called once for every request that before_request() let continue, when the request is
	 * over. An abandoned request is over when its handler answers or the provider is freed;
	 * spoke_request_abandoned() then returns true. Names and peer are valid;
	 * arguments only if the handler answered before it returned, or the request was kept. Also
	 * called inside spoke_reply().
	 */
	void (*after_request)(void *arg, const struct spoke_request *request,
			      const struct spoke_filter_answer *answer);
};

SPOKE_END_DECLS

#endif
