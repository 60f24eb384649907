/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking calls from any program, without an engine in sight:
 *
 *     struct spoke_client *client;
 *     struct spoke_answer answer;
 *     char text[64];
 *
 *     spoke_dial("dubbo://127.0.0.1:20880/demo.EchoService", &client);
 *     spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer);
 *     puts(SPOKE_READ_ANSWER(&answer, SPOKE_TEXT(text)) ? answer.why : text);
 *     spoke_answer_free(&answer);
 *     spoke_client_free(client);
 *
 * One check at the end is enough: a client that could not be made answers every call with its
 * error, and an answer that is an error reads as this error. The client owns an engine on a thread
 * of its own, which has all signals blocked, and a consumer, which keeps its connections.
 *
 * Any number of threads may ask one client at the same time, and each answer belongs to its asker.
 */
#ifndef SPOKE_CLIENT_H
#define SPOKE_CLIENT_H

#include <spoke/args.h>
#include <spoke/call.h>
#include <spoke/read.h>

SPOKE_BEGIN_DECLS

struct spoke_client;
struct spoke_env;
struct spoke_future;

/* Options of a client. 0 or NULL in a field selects its default; texts are copied. */
struct spoke_client_options {
	const struct spoke_env *env; /* borrowed until the client and all answers are freed; NULL:
				      * the host's */
	const char *registry;        /* the registry of "consumer://any/demo.EchoService", e.g.
				      * "file:///run/spoke/providers"; NULL: that of the settings file */
	const char *config;          /* path of a settings file, see <spoke/config.h>; NULL: none */
	const char *log;             /* level of the log, see spoke_engine_options.log */
};

/*
 * Makes a client of a service, which begins to connect. `url` is that of a consumer, e.g.
 * "dubbo://127.0.0.1:20880/demo.EchoService?timeout=500ms&echo.retries=2". Returns 0 or an error of
 * spoke_config_load(), spoke_engine_new(), spoke_consumer_new() or spoke_engine_start(). After an
 * error, too, *ret_client is a client, which answers with the error; only without memory it is
 * NULL. A provider that does not answer is no error here, but one of the calls. Free the client
 * with spoke_client_free(). `options` may be NULL. Any thread.
 */
SPOKE_API int spoke_dial(const char *url, struct spoke_client **ret_client);
SPOKE_API int spoke_dial_with(const char *url, const struct spoke_client_options *options,
			      struct spoke_client **ret_client);

/* Returns a sentence about the error of spoke_dial(), "" if there was none. Valid as long as the
 * client. Any thread. */
SPOKE_API const char *spoke_client_why(const struct spoke_client *client);

#define SPOKE_CLIENT_METHODS_MAX 1024u /* different methods that one client asks */

/* The answer of a call, owned by the caller. */
struct spoke_answer {
	int error;                   /* of the call */
	struct spoke_value value;    /* without an error: valid until spoke_answer_free() */
	char why[256];               /* with an error: a sentence about it, else "" */
	struct spoke_future *future; /* for spoke_future_result(): the whole result; NULL: none */
};

/*
 * Calls a method and waits for the end of the call, at the latest its deadline; blocks. `args` is
 * borrowed for the call: SPOKE_ARGS("hi", 42) or SPOKE_NO_ARGS. `options` may be NULL; in a handler
 * on the pool, `parent` is the request for which the call is made. `ret_answer` is written in any
 * case and freed with spoke_answer_free(); NULL: only the error matters. A failback call that
 * becomes a ticket ends with EDEFERRED and continues until the client is freed.
 *
 * Returns the error of the call, 0 for success; that of spoke_dial(); ECLOSED (the client is being
 * freed), ELIMIT (SPOKE_CLIENT_METHODS_MAX), ETHREAD (in a log hook, on the engine's thread),
 * EFORKED, ENOMEM, or another error of spoke_call(). Any thread.
 */
SPOKE_API int spoke_ask_with(struct spoke_client *client, const char *method,
			     struct spoke_args args, const struct spoke_call_options *options,
			     struct spoke_answer *ret_answer);

/* Does the same with the defaults of the method. */
static inline int spoke_ask(struct spoke_client *client, const char *method, struct spoke_args args,
			    struct spoke_answer *ret_answer)
{
	return spoke_ask_with(client, method, args, NULL, ret_answer);
}

/*
 * Reads an answer into one variable, by the type of the pointer, e.g. SPOKE_READ_ANSWER(&answer,
 * &count). Returns the error of the answer, or an error of SPOKE_READ(). The
 * sentence about it is then in answer.why. Any thread that owns the answer.
 */
#define SPOKE_READ_ANSWER(answer, into) spoke_answer_read((answer), SPOKE_INTO(into))
SPOKE_API SPOKE_MUST_USE int spoke_answer_read(struct spoke_answer *answer, struct spoke_into into);

/* Frees an answer, with or without an error; it may outlive its client. A freed answer may be freed
 * again. Any thread. */
SPOKE_API void spoke_answer_free(struct spoke_answer *answer);

/*
 * Frees a client; NULL is allowed. Calls of other threads that are still inside spoke_ask() end
 * with ECLOSED, and the function waits until they have left it; blocks. No call may begin after it
 * was called. Any thread but the engine's own, i.e. not in a log hook.
 */
SPOKE_API void spoke_client_free(struct spoke_client *client);

SPOKE_END_DECLS

#endif
