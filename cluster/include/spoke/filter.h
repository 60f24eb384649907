/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked before and after every call of a consumer and every request of a provider: to let
 * it go on, to refuse it, or to answer in its place. Filters are asked in their order before, and
 * in the reverse order after.
 */
#ifndef SPOKE_FILTER_H
#define SPOKE_FILTER_H

#include <spoke/call.h>

SPOKE_BEGIN_DECLS

struct spoke_request;

enum spoke_filter_step {
	SPOKE_FILTER_GO_ON,
	SPOKE_FILTER_REFUSE, /* `error` ends it; nothing is sent, no handler runs */
	SPOKE_FILTER_ANSWER, /* `value` is the answer; nothing is sent, no handler runs */
};

struct spoke_filter_verdict {
	enum spoke_filter_step step;
	int error; /* of REFUSE: one of <spoke/error.h>; a caller elsewhere gets EREFUSED */
	const char
		*text; /* of REFUSE: for people, borrowed until the filter is asked again; NULL */
	struct spoke_value value; /* of ANSWER; borrowed until the filter is asked again */
};

/* A call, as it is about to be made or has ended. Borrowed for the filter. */
struct spoke_filter_call {
	struct spoke_span service;
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span method;
	struct spoke_span args;         /* { 0 } after the call, unless it was kept for a retry */
	struct spoke_value attachments; /* the same */
	bool one_way;
	const struct spoke_result *result; /* NULL before */
	uint64_t took_ns;                  /* after: from the beginning to the end */
};

/* The end of a request. */
struct spoke_filter_answer {
	/* SPOKE_OK; EREMOTE: the handler's error; EREFUSED: by a filter behind this one, a limit,
	 * or the pool; EEXPIRED, ELOST: there was no thread for it before its time was over, or its
	 * connection; ECLOSED: the provider was freed before the handler answered; ETOOLARGE,
	 * ESERVER. */
	int error;
	int32_t error_code;
	struct spoke_span error_text;
	struct spoke_value value; /* of OK */
	size_t arg_len;           /* bytes of its arguments, which may be gone */
	uint64_t took_ns;         /* from its arrival on; 0: not known */
};

/* Its functions may call anything, and free whoever has the filter; but not the engine in
 * before_call() of a call that is made while the engine does not run. */
struct spoke_filter {
	const char *name;
	void *arg; /* given to each function; has to outlive whoever has the filter */
	/* Each may be NULL. A call that is answered by a filter ends a little later, as any other.
	 */
	struct spoke_filter_verdict (*before_call)(void *arg, const struct spoke_filter_call *call);
	/* REFUSE makes another error of what it ended with, ANSWER a success. Asked once, of a call
	 * with a ticket when the ticket is settled. */
	struct spoke_filter_verdict (*after_call)(void *arg, const struct spoke_filter_call *call);
	/* On the engine's thread, before the handler, wherever that runs. */
	struct spoke_filter_verdict (*before_request)(void *arg,
						      const struct spoke_request *request);
	/*
	 * Once for every request that it let go on, when that is over. Of one whose connection was
	 * lost that is when its handler answers all the same, or the provider is freed, and
	 * spoke_request_abandoned() says it. Names and peer are there; arguments only if it is
	 * answered in its handler, or was kept. The engine's thread, also from inside
	 * spoke_reply().
	 */
	void (*after_request)(void *arg, const struct spoke_request *request,
			      const struct spoke_filter_answer *answer);
};

SPOKE_END_DECLS

#endif
