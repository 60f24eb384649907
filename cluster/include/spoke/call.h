/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call: its method, its options, and its result. Consumers call providers (<spoke/consumer.h>),
 * and providers push to the consumers that are connected (<spoke/provider.h>).
 */
#ifndef SPOKE_CALL_H
#define SPOKE_CALL_H

#include <spoke/balancer.h>
#include <spoke/lease.h>
#include <spoke/policy.h>
#include <spoke/value.h>

#include <stdbool.h>

SPOKE_BEGIN_DECLS

/* A method to call. It belongs to the consumer or the provider that made it. */
struct spoke_method;

struct spoke_request;
struct spoke_trace_context;

/* The serialization of requests. Replies come in that of their request. */
enum spoke_serialization {
	SPOKE_SERIALIZATION_DEFAULT,  /* as set in the URL or the file, else AUTO */
	SPOKE_SERIALIZATION_AUTO,     /* as the provider's URL asks for, else HESSIAN2 */
	SPOKE_SERIALIZATION_HESSIAN2, /* understood by every Dubbo */
	SPOKE_SERIALIZATION_MSGPACK,  /* the fastest between programs with spoke */
};

/* The events that a ticket in a journal survives, once its call has ended with EDEFERRED; or an
 * answer of a provider, once its caller has got it. */
enum spoke_durability {
	SPOKE_DURABILITY_DEFAULT, /* as set in the file, else PROCESS */
	SPOKE_DURABILITY_PROCESS, /* the end of the process, e.g. by kill -9; a loss of power but
				   * for the last journal.sync (1 s) */
	SPOKE_DURABILITY_POWER,   /* a loss of power, if the disk keeps its word */
	SPOKE_DURABILITY_NONE,    /* maybe nothing: the call does not wait for the journal */
};

/* Options of a method. Zero-initialised, all fields have their defaults; all texts are copied.
 * Related fields stand together. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct spoke_method_options {
	const char *service; /* NULL: the service of the consumer's URL; required for a provider */
	const char *version; /* NULL: the version of the consumer's URL, else none */
	const char *group;   /* NULL: the group of the consumer's URL, else none */
	/* JVM descriptors of the arguments, e.g. "Ljava/lang/String;I"; NULL: derived from the
	 * values of each call. */
	const char *types;
	uint64_t timeout_ns; /* of a call; 0: the consumer's timeout, or 1 s for a provider */
	uint64_t attempt_timeout_ns; /* "attempt.timeout": see <spoke/consumer.h> */
	/* Calls Dubbo's "$invoke", which needs no class at a Java provider. `type_names`: the Java
	 * names of the argument types, separated by commas, e.g. "java.lang.String,int"; NULL: none
	 * are sent. */
	bool generic;
	const char *type_names;
	/* From here on for methods of consumers only. 0 or NULL: the consumer's setting. */
	const struct spoke_policy *policy;
	const struct spoke_balancer *balancer;
	/* Number of attempts after the first one, at most 100; SPOKE_NONE: none. */
	uint32_t retries;
	/* The method may run more than once for one call, so an attempt that may have run is
	 * repeated. */
	bool idempotent;
	/* "once": a failback call whose request may have run is not sent again, not by a later
	 * process either: its ticket is settled as UNKNOWN, its call ends with the error. */
	bool once;
	uint32_t actives;    /* concurrent calls; beyond that ELIMIT. 0: no limit */
	uint32_t per_second; /* calls per second, on average and at once; beyond that ELIMIT */
	/* Replaces the error of a call that fails: the result is OK with a copy of this value, and
	 * result->fallback is set. An error that the handler has answered with is kept, and so
	 * is ELEASE. { 0 }: none. */
	struct spoke_value fallback;
	enum spoke_serialization serialization;
	/* "hedge.after": an attempt of an idempotent method that takes longer gets a backup at
	 * another provider. A time of at least 1 ms, or SPOKE_PERCENTILE(95): when it is slower
	 * than 95% of the method's calls. SPOKE_OFF: never. */
	uint64_t hedge_after_ns;
	/* "slow.after", 1 s: an attempt that takes longer is listed as slow on the page. SPOKE_OFF:
	 * none is. */
	uint64_t slow_after_ns;
};

/* As a time: the percentile (1 to 99) of the response times of a method, as measured. */
#define SPOKE_PERCENTILE(percent) (UINT64_MAX - 100 + (uint64_t)(percent))

/* Value for numeric options that means "none", because 0 means "default". */
#define SPOKE_NONE UINT32_MAX

/* Names a call that is retried after its callback: <spoke/ticket.h>. Passed by value. */
struct spoke_ticket {
	uint64_t handle;
};

/* The result of a call; borrowed for the callback. */
struct spoke_result {
	int error; /* SPOKE_OK, or an error of <spoke/error.h> */
	/* Of OK: the handler's value; nil if it sent none. Of EREMOTE: the fields of the exception,
	 * a map, or none. */
	struct spoke_value value;
	struct spoke_value attachments; /* of a reply: a map, or none */
	/* The provider's message; or why no connection could be made, e.g. "127.0.0.1:20880:
	 * Connection refused (ECONNREFUSED)". May be empty. */
	struct spoke_span error_text;
	struct spoke_span error_class; /* class of the provider's exception; may be empty */
	int32_t error_code;            /* of EREMOTE: the handler's code; else 0 */
	/* The request was written, or could not be taken back any more. If false, it has never run
	 * and never will. */
	bool written;
	/* Time of the last attempt from its beginning until it was written, or until its end. */
	uint64_t queued_ns;
	uint64_t waited_ns;         /* time from then until the end of the attempt */
	uint32_t attempts;          /* that have begun; 0: none */
	struct spoke_ticket ticket; /* of EDEFERRED; else { 0 } */
	bool fallback;              /* the value is the fallback of the method */
};

/* Prints a result as text: the value as spoke_value_print() does, or the error with its times, e.g.
 * "timeout: written after 0.2 ms, waited 499.8 ms". Returns the length of the whole text, of a
 * value that of the written text; `size` includes the NUL, and a longer text is cut. */
SPOKE_API size_t spoke_result_print(const struct spoke_result *result, char *text, size_t size);

/*
 * An exception with which a handler has answered, or one of its causes. All views point into the
 * result.
 *
 *     struct spoke_exception exception;
 *
 *     for (size_t i = 0; spoke_result_exception(result, i, &exception); i++)
 *             show(exception.class_name, exception.message);
 */
struct spoke_exception {
	struct spoke_span class_name; /* e.g. "it.BizException"; empty: the provider sent none */
	struct spoke_span message;    /* may be empty */
	struct spoke_value fields;    /* a map of all fields, or none */
};

/* Reads the exception of a result of EREMOTE: 0 is the one that was thrown, 1 its cause, 2 the
 * cause of that, and so on. For a generic call it is the exception inside Dubbo's GenericException.
 * Returns false if there is none. */
SPOKE_API bool spoke_result_exception(const struct spoke_result *result, size_t index,
				      struct spoke_exception *ret_exception);

/* A line of a Java stack trace. */
struct spoke_stack_frame {
	struct spoke_span class_name;
	struct spoke_span method;
	struct spoke_span file; /* may be empty */
	int32_t line;           /* 0 or less: unknown */
};

/* Reads the first lines of the stack trace, at most `max`, the innermost one first. Returns the
 * length of the whole trace; 0: the provider sent none. */
SPOKE_API size_t spoke_exception_frames(const struct spoke_exception *exception,
					struct spoke_stack_frame *frames, size_t max);

/* Prints the exception of a result of EREMOTE with its causes, several lines in the form of Java,
 * with at most `frames_max` lines of each stack trace. Returns the length of the whole text; `size`
 * includes the NUL, and a longer text is cut. Other results have no text. */
SPOKE_API size_t spoke_result_print_exception(const struct spoke_result *result, size_t frames_max,
					      char *text, size_t size);

/* The callback of a call, on the engine's thread. */
typedef void (*spoke_call_done_fn)(void *arg, const struct spoke_result *result);

/* Options of one call. Zero-initialised, all fields have their defaults. */
struct spoke_call_options {
	uint64_t timeout_ns; /* of the call, with all its attempts; 0: the method's timeout */
	/* A map with unique strings as keys, borrowed; { 0 }: none. spoke adds the remaining time
	 * ("timeout", "_TO") itself. */
	struct spoke_value attachments;
	bool one_way; /* no reply is wanted; the call ends with OK when it is written */
	const struct spoke_policy *policy; /* of a consumer's call; NULL: the method's policy */
	/* Input of the consistent hash, borrowed; { 0 }: the first argument. */
	struct spoke_span hash_key;
	/*
	 * The call is made only as long as this lease, of the same engine, is held: see
	 * <spoke/lease.h>. The clocks are read when the call begins, at each attempt, and right
	 * before the request is written, which is at the end of the turn, also if it is long. Once
	 * the lease is over, spoke_call() returns ELEASE. A call that is not written, e.g. because
	 * it waits for a connection, then ends with ELEASE, and never runs. A call that was written
	 * waits for its answer, but makes no further attempt: it would end with ELEASE, too, with
	 * result->written set. A ticket ends as exhausted with ELEASE. Neither a fallback nor a
	 * policy hides ELEASE.
	 *
	 * The time of each attempt is cut to the time that is left of the lease. The provider
	 * gets the attachments "spoke.lease", the name, and "spoke.fence", the number as a text:
	 * see <spoke/fence.h>. MessagePack-RPC has no attachments, and carries the call without
	 * them.
	 *
	 * EINVAL: the lease is of another engine, the user's attachments contain one of these two,
	 * or the call is a push. { 0 }: without a lease.
	 */
	struct spoke_lease lease;
	/* Parent of the call's span, borrowed, if the consumer has a tracer: <spoke/trace.h>. NULL:
	 * the attachment "traceparent", else a new trace begins. Not for pushes. */
	const struct spoke_trace_context *trace;
	/*
	 * The request for which the call is made. The call has no more time than is left of the
	 * request's; if none is left, it returns ETIMEOUT_UNSENT. Without `trace` it is part of the
	 * request's trace. When the request is abandoned (spoke_request_abandoned()), the call ends
	 * with ECANCELED: unsent, it never runs; else its provider is told, and the calls made
	 * there for it end, too. A further call for the request returns ECANCELED. After the answer
	 * the call goes on until its time is over. A ticket goes on in any case, with its own time.
	 *
	 * NULL: the request whose handler runs on this loop, or which has the call that calls back,
	 * unless it is answered or "inherit" is off. `detached`: none. Not for pushes.
	 * EINVAL: the request is of another engine. A future (<spoke/future.h>) may be on another
	 * one, and ends with the request all the same, soon.
	 */
	struct spoke_request *parent;
	bool detached;
};

/* Names a call, passed by value. A handle of a call that has ended is detected; { 0 } names none.
 */
struct spoke_call {
	uint64_t handle;
};

SPOKE_END_DECLS

#endif
