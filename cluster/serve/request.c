/* SPDX-License-Identifier: Apache-2.0 */
/* Serves requests: finds the handler, asks filters and limits, runs the handler on the loop or on
 * the pool, where it may block, and sends its answer. The one place where a request ends. */
#include "cluster/serve/request.h"

#include "cluster/filter/admission.h"
#include "cluster/filter/filter.h"
#include "cluster/filter/limit.h"
#include "cluster/serve/access_control.h"
#include "cluster/serve/dedupe.h"
#include "cluster/serve/kept.h"
#include "cluster/serve/parts.h"
#include "cluster/serve/routes.h"
#include "cluster/serve/unanswered.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/engine/use.h"
#include "core/text/encoding.h"
#include "core/value/builder.h"
#include "core/value/shape.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"
#include "transport/trust/caller.h"
#include "transport/wire/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define POOL_LONG_NS (100 * NS_PER_MS)   /* a wait for the pool that is counted and reported ... */
#define POOL_TOLD_NS (60000 * NS_PER_MS) /* ... at most once in this time */
#define PEER_TEXT 128u                   /* bytes of an address */
#define UNSENDABLE_TEXT 128u             /* bytes of an explanation */
/* bytes of the names in a long sentence */
#define SERVICE_SHOWN 44u
#define METHOD_SHOWN 24u
#define CLASS_SHOWN 44u

/* Stand for a message that is gone: of an ordinary request, and of a generic one. */
static const struct spokei_message nothing[2] = { [1] = { .generic = true } };
static const struct spokei_filters no_filters;
static const char no_memory[] = "the provider is out of memory";

/* --- its memory and its origin */

/* Every Dubbo consumer names the interface that it calls; spoke's do so only for providers with a
 * path, which are not of spoke. */
bool spokei_request_is_foreign(const struct spoke_request *request)
{
	struct spoke_value name;

	if (request->conn == NULL)
		return request->foreign;
	return spoke_value_get(request->message->attachments, "interface", &name) == SPOKE_OK;
}

/* A request that the pool has got. */
struct spokei_pooled {
	struct spoke_request *request;
	spokei_handle_fn handle;
	void *arg;
	uint64_t waited_ns; /* for a thread of the pool */
	bool unrun;         /* it was too late when a thread became free; the handler did not run */
	bool done;          /* the pool has finished, and the loop was notified */
	bool delivered;     /* the answer has reached the loop */
	struct spoke_work work;
	struct spoke_post post;     /* brings the answer from another thread to the loop */
	struct spokei_copy *answer; /* ... which is this; NULL: there was no memory for it */
};

static uint64_t waited_ns(const struct spoke_request *request)
{
	return request->pooled ? request->pooled->waited_ns : 0;
}

/* Notes when a request came that will be answered later, and the identity of its peer, because its
 * connection may close first, and its message may be gone. */
static void note_origin(struct spoke_request *request, const struct spokei_conn *conn)
{
	request->arrived_ns = request->engine->begin_ns;
	request->identity = spokei_identity_share(conn->identity);
	request->foreign = spokei_request_is_foreign(request);
}

/* Notes a request if it was slow. `took_ns`: in the handler. */
static void note_slow(const struct spoke_request *request, uint64_t took_ns, int error)
{
	const struct spoke_env *env = request->engine->env;
	const struct spokei_slow_row row = {
		.figures = request->figures,
		.queued_ns = waited_ns(request),
		.took_ns = took_ns,
		.error = error,
	};
	char peer[PEER_TEXT];

	if (SPOKEI_LIKELY(row.queued_ns + row.took_ns < row.figures->slow_ns))
		return;
	env->net->print(env->ctx, spokei_request_address(request), peer, sizeof(peer));
	spokei_slow_note(&row, peer);
}

/* Points a request to a copy of the message, which it owns. Returns whether there was memory. */
static bool keep(struct spoke_request *request, const struct spokei_message *message)
{
	request->kept = spokei_copy_new(request->engine->env, message);
	if (request->kept == NULL)
		return false;
	request->message = &request->kept->message;
	return true;
}

void spokei_request_free(struct spoke_request *request)
{
	const struct spoke_env *env;

	if (request == NULL)
		return;
	SPOKE_ASSERT(!request->watched);
	env = request->engine->env;
	if (request->engine->request == request) /* answered by the callback of an inner call */
		request->engine->request = NULL;
	spokei_conn_leave_orphans(&request->serving);
	spokei_identity_drop(request->identity);
	spokei_sender_drop(request->sender);
	spokei_copy_free(env, request->kept);
	if (request->pooled) {
		spokei_copy_free(env, request->pooled->answer);
		spokei_free(env, request->pooled, 1, sizeof(*request->pooled));
	}
	spokei_free(env, request->mark, 1, request->mark_size);
	spokei_free(env, request, 1, sizeof(*request));
}

struct spoke_engine *spokei_request_engine(const struct spoke_request *request)
{
	return request->engine;
}

/* A thread of the pool sets `answered` of a request that it has. */
bool spokei_request_waits(const struct spoke_request *request)
{
	return request->pooled ? !request->pooled->delivered : !request->answered;
}

void spokei_request_join(struct spoke_request *request, struct spokei_use *use)
{
	SPOKE_ASSERT(spokei_request_waits(request));
	spokei_uses_join(&request->inner, use);
	request->watched = true;
}

void *spokei_request_mark(const struct spoke_request *request)
{
	return request->mark;
}

void *spokei_request_make_mark(const struct spoke_request *seen, size_t size)
{
	struct spoke_request *request = seen->asked->request;

	if (request->mark == NULL) {
		SPOKE_ASSERT(size <= UINT16_MAX);
		request->mark = spokei_alloc(request->engine->env, 1, size);
		request->mark_size = (uint16_t)size;
	}
	return request->mark;
}

int spoke_request_keep(struct spoke_request *request)
{
	return request->kept || keep(request, request->message) ? SPOKE_OK : SPOKE_ENOMEM;
}

void spoke_request_on_abandoned(struct spoke_request *request,
				void (*abandoned)(struct spoke_request *request, void *arg),
				void *arg)
{
	request->abandoned = abandoned;
	request->abandoned_arg = arg;
}

/* --- filters and the limit */

static struct spoke_filter_verdict refuse_closing(void)
{
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_ECLOSED,
		.text = "the provider is closing; call another one",
	};
}

/* Returns whether the request is expected to be late. */
static SPOKEI_NOINLINE bool would_be_late(struct spoke_request *request,
					  const struct spokei_limit *limit)
{
	struct spoke_engine *engine = request->engine;
	const struct spoke_env *env = engine->env;
	struct spokei_admission_asked asked = {
		.deadline_ns = request->deadline_ns,
		.now_ns = env->coarse(env->ctx),
		.begin_ns = engine->begin_ns,
		.settled_ns = engine->settle_ns,
		.turn = engine->turn,
	};

	/* The exact clock is read only in rounds that take long. */
	if (asked.now_ns > asked.begin_ns)
		asked.now_ns = env->now(env->ctx);
	request->arrived_ns = engine->begin_ns;
	return spokei_admission_ask(limit->admission, &asked, limit->active) > 0;
}

static void note_end(const struct spoke_request *request, const struct spokei_limit *limit,
		     int error)
{
	const struct spokei_admission_end end = {
		.arrived_ns = request->arrived_ns,
		.deadline_ns = request->deadline_ns,
		.now_ns = request->engine->begin_ns,
		.has_run = spokei_dedupe_has_run(error),
		.is_gone = spokei_request_is_gone(request),
	};

	spokei_admission_end(limit->admission, &end, limit->active);
}

static enum spokei_limit_reached ask_limit(struct spoke_request *request,
					   struct spokei_limit *limit)
{
	if (SPOKEI_UNLIKELY(limit->admission != NULL) && would_be_late(request, limit))
		return SPOKEI_LIMIT_TIME;
	return spokei_limit_take(limit, request->engine->begin_ns);
}

static struct spoke_filter_verdict take_limit(struct spoke_request *request,
					      struct spokei_limit *limit,
					      char text[SPOKEI_REFUSAL_TEXT])
{
	static const enum spoke_stat counters[] = {
		[SPOKEI_LIMIT_ACTIVE] = SPOKE_STAT_REFUSED_EXECUTES,
		[SPOKEI_LIMIT_RATE] = SPOKE_STAT_REFUSED_RATE,
		[SPOKEI_LIMIT_TIME] = SPOKE_STAT_REFUSED_LATE,
	};
	struct spoke_span method = request->message->method;
	enum spokei_limit_reached reached = ask_limit(request, limit);

	if (reached == SPOKEI_LIMIT_FREE) {
		request->limit = limit;
		request->watched = true;
		return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
	}
	spokei_count(request->engine, counters[reached]);
	(void)spokei_limit_print(limit, reached, "executes", method, text, SPOKEI_REFUSAL_TEXT);
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_ELIMIT,
		.text = text,
	};
}

static struct spoke_filter_verdict ask_filters(struct spoke_request *request,
					       const struct spokei_filters *filters)
{
	struct spoke_filter_verdict verdict;
	size_t passed;

	request->arrived_ns = request->engine->begin_ns;
	request->arg_len = (uint32_t)request->message->args.len;
	request->filters = filters;
	verdict = spokei_filters_before_request(filters, request, &passed);
	request->passed = filters->told ? (uint8_t)passed : 0;
	request->watched = request->passed > 0;
	if (verdict.step == SPOKE_FILTER_REFUSE && verdict.text == NULL)
		verdict.text = "refused by a filter of the provider";
	/* A filter may have freed the provider, and everything that its handlers use. */
	if (verdict.step == SPOKE_FILTER_GO_ON && request->conn->state == SPOKEI_CONN_CLOSED)
		return refuse_closing();
	return verdict;
}

/* Copies the names in the request's message, which is about to be freed, for the filters that the
 * request passed. Without memory the filters see the request without names. */
static void keep_names(struct spoke_request *request)
{
	struct spokei_message names = {
		.kind = SPOKEI_REQUEST,
		.service = request->message->service,
		.version = request->message->version,
		.group = request->message->group,
		.method = request->message->method,
		.generic = request->message->generic,
	};

	(void)keep(request, &names);
}

/* Lets the inner calls go on without their request. */
static void let_go(struct spoke_request *request)
{
	while (request->inner) {
		struct spokei_use *use = request->inner;

		spokei_use_end(use);
		if (use->left)
			use->left(use);
	}
}

/* Notifies filters and the limit of the answer. Only for requests that are `watched`. */
static void notify(struct spoke_request *request, const struct spokei_message *answer)
{
	const struct spoke_env *env = request->engine->env;
	size_t passed = request->passed;
	struct spoke_filter_answer told;

	request->watched = false;
	request->passed = 0;
	let_go(request);
	if (spokei_request_is_remembered(request))
		spokei_dedupe_settle(request, answer);
	if (request->limit) {
		if (SPOKEI_UNLIKELY(request->limit->admission != NULL))
			note_end(request, request->limit, answer->error);
		spokei_limit_give(request->limit);
	}
	request->limit = NULL;
	if (passed == 0)
		return;
	told = (struct spoke_filter_answer){
		.error = answer->error,
		.error_code = answer->error_code,
		.error_text = answer->error_text,
		.value = answer->value,
		.arg_len = request->arg_len,
		.took_ns = env->now(env->ctx) - request->arrived_ns,
		/* A request that outlives its provider may just be getting its thread. */
		.queued_ns = request->telling ? 0 : waited_ns(request),
	};
	spokei_filters_after_request(request->filters, passed, request, &told);
}

/* ... of the error that ends the request without an answer. */
static void notify_error(struct spoke_request *request, int error)
{
	const char *text = spoke_strerror(error);
	struct spokei_message answer = {
		.error = error,
		.error_text = spokei_span(text, strlen(text)),
	};

	notify(request, &answer);
}

void spokei_request_forget(struct spoke_request *request, int error)
{
	if (request->watched)
		notify_error(request, error);
	spokei_request_free(request);
}

/* --- answers that miss their callers
 *
 * The second one to a request, and an exception of a class that the caller may not know.
 */

/* Returns whether every consumer of Dubbo can read exceptions of the class, or of none. */
static bool is_of_dubbo(struct spoke_span name)
{
	static const char *const packages[] = { "java.lang.", "org.apache.dubbo." };
	bool found = name.len == 0;

	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(packages[i]);

		found = found || (name.len > len && memcmp(name.data, packages[i], len) == 0);
	}
	return found;
}

/* An answer with an error is sent. Reports, once for each method, that its exception has a class
 * that Java's consumers may not know. */
static void report_class(const struct spoke_request *request, const struct spokei_message *answer)
{
	struct spokei_figures *figures = request->figures;
	const char *of = figures->service;
	char service[SERVICE_SHOWN];
	char method[METHOD_SHOWN];
	char name[CLASS_SHOWN];

	if (figures->class_told || !answer->foreign || answer->generic ||
	    is_of_dubbo(answer->error_class))
		return;
	figures->class_told = true;
	(void)spokei_log_escape_end(service, sizeof(service), of, strlen(of));
	(void)spokei_log_escape(method, sizeof(method), figures->method, strlen(figures->method));
	(void)spokei_log_escape_end(name, sizeof(name), answer->error_class.data,
				    answer->error_class.len);
	spokei_event(request->engine, SPOKE_OK,
		     "\"%s\" %s throws %s: unless Java's interface or serialize.allowlist names "
		     "it, callers see RpcException and retry (set retries=0)",
		     service, method, name);
}

static void report_second(struct spoke_request *request)
{
	char names[SPOKEI_FIGURES_TEXT];

	spokei_figures_print(request->figures, names);
	spokei_event(request->engine, SPOKE_ESTATE,
		     "handler of %s, answers a request twice; only the first answer is sent, mend "
		     "the handler",
		     names);
}

/* A handler on the pool leaves the event to the loop. */
static SPOKEI_NOINLINE void note_second(struct spoke_request *request)
{
	atomic_store_explicit(&request->again, true, memory_order_relaxed);
	if (request->pooled == NULL)
		report_second(request);
}

/* --- the end */

static void count_answer(struct spoke_request *request, const struct spokei_message *answer)
{
	const enum spoke_stat ended = answer->error ? SPOKE_STAT_REQUESTS_ERROR
						    : SPOKE_STAT_REQUESTS_OK;

	if (spokei_request_is_gone(request))
		return; /* counted as abandoned */
	if (answer->error == SPOKE_ETOOLARGE)
		spokei_count(request->engine, SPOKE_STAT_REPLIES_TOO_LARGE);
	else if (answer->error)
		report_class(request, answer);
	spokei_figures_count(request->figures, ended);
}

/* Notes the time until the answer, by the turns that it took. */
static void note_took(const struct spoke_request *request, int error)
{
	uint64_t since_ns = request->arrived_ns + waited_ns(request);
	uint64_t now_ns = request->engine->begin_ns;
	uint64_t took_ns = now_ns > since_ns ? now_ns - since_ns : 0;

	spokei_histogram_add(&request->figures->took, took_ns);
	note_slow(request, took_ns, error);
}

/* Answers a request whose handler has returned. On the loop's thread. */
static void answer_later(struct spoke_request *request, struct spokei_message *message)
{
	count_answer(request, message);
	note_took(request, message->error);
	spokei_conn_answer(&request->serving, message);
	if (SPOKEI_UNLIKELY(request->watched))
		notify(request, message);
}

void spokei_request_release(struct spoke_request *request, struct spokei_message *answer)
{
	struct spokei_pooled *pooled = request->pooled;

	answer_later(request, answer);
	if (pooled)
		pooled->delivered = true;
	if (pooled == NULL || pooled->done)
		spokei_request_free(request);
}

/* Answers a request that is watched, inside its handler. */
static inline void answer_watched(struct spoke_request *request, struct spokei_message *message)
{
	if (SPOKEI_UNLIKELY(request->holding) && spokei_kept_hold(request, message))
		return;
	count_answer(request, message);
	spokei_conn_reply(request->conn, request->message, message);
	notify(request, message);
}

static void answer_arrived(struct spoke_post *post)
{
	struct spokei_pooled *pooled = spoke_container_of(post, struct spokei_pooled, post);
	static const char text[] = "the provider is out of memory for the answer";
	struct spokei_message message = {
		.error = SPOKE_ESERVER,
		.error_text = spokei_span(text, sizeof(text) - 1),
	};

	if (pooled->answer)
		message = pooled->answer->message;
	if (!pooled->request->holding || !spokei_kept_hold(pooled->request, &message))
		spokei_request_release(pooled->request, &message);
}

static inline void finish_request(struct spoke_request *request, struct spokei_message *message)
{
	if (SPOKEI_UNLIKELY(request->answered)) {
		note_second(request);
		return;
	}
	request->answered = true;
	if (request->pooled) {
		struct spokei_pooled *pooled = request->pooled;

		pooled->answer = spokei_copy_new(request->engine->env, message);
		pooled->post.run = answer_arrived;
		spoke_engine_post(request->engine, &pooled->post);
	} else if (request->conn) {
		if (SPOKEI_UNLIKELY(request->watched)) {
			answer_watched(request, message);
			return;
		}
		count_answer(request, message);
		spokei_conn_reply(request->conn, request->message, message);
	} else if (spokei_engine_refuses(request->engine, "spoke_reply()")) {
		request->answered = false;
	} else if (!SPOKEI_UNLIKELY(request->holding) || !spokei_kept_hold(request, message)) {
		answer_later(request, message);
		if (!request->telling)
			spokei_request_free(request);
	}
}

/* The same, for answers that are rare. */
SPOKEI_NOINLINE void spokei_request_finish(struct spoke_request *request,
					   struct spokei_message *message)
{
	finish_request(request, message);
}

/* --- replies */

/* Replies with values that have been checked. */
static inline void reply_checked(struct spoke_request *request, struct spoke_value value,
				 struct spoke_value attachments)
{
	struct spokei_message message;

	spokei_message_clear(&message);
	message.value = value;
	message.attachments = attachments;
	message.generic = request->message->generic;
	finish_request(request, &message);
}

void spokei_request_unsendable(struct spoke_request *request, int error)
{
	const char *why = spoke_strerror(error);
	struct spokei_message message = { .error = SPOKE_ETOOLARGE };
	char text[UNSENDABLE_TEXT];

	if (error == SPOKE_ETOOLARGE) {
		(void)snprintf(
			text, sizeof(text),
			"the result is too large: at most %u values, and at most %u bytes of "
			"attachments",
			SPOKE_VALUE_ITEMS_MAX, SPOKE_VALUE_BYTES_MAX);
		why = text;
	}
	message.error_text = spokei_span(why, strlen(why));
	spokei_request_finish(request, &message);
}

SPOKEI_NOINLINE void spoke_reply_with(struct spoke_request *request, struct spoke_value value,
				      struct spoke_value attachments)
{
	struct spoke_value checked;
	int error = SPOKE_OK;

	if (value.len > 0)
		error = spoke_value_check(value.data, value.len, &spokei_link_own_values, &checked);
	if (error == SPOKE_OK && attachments.len > 0)
		error = spokei_attachments_check(attachments, true);
	if (error)
		spokei_request_unsendable(request, error);
	else
		reply_checked(request, value, attachments);
}

void spoke_reply(struct spoke_request *request, struct spoke_value value)
{
	static const struct spoke_value none;

	if (SPOKEI_LIKELY(spokei_shape_is_short(value.data, value.len)))
		reply_checked(request, value, none);
	else
		spoke_reply_with(request, value, none);
}

void spoke_reply_arg(struct spoke_request *request, struct spoke_arg value)
{
	const struct spoke_args args = { &value, 1 };
	struct spokei_packed packed;
	int error = spokei_args_pack(request->engine->env, args, &packed);

	if (error)
		spokei_request_unsendable(request, error);
	else
		spoke_reply(request, spokei_packed_value(&packed));
	spokei_packed_free(&packed);
}

static void reply_failure(struct spoke_request *request, struct spokei_message *message)
{
	message->kind = SPOKEI_REPLY;
	message->error = SPOKE_EREMOTE;
	message->foreign = spokei_request_is_foreign(request);
	message->generic = request->message->generic;
	spokei_request_finish(request, message);
}

/* Returns the length of a text that was cut, without an incomplete character at its end. */
static size_t whole_len(const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t at = len;

	while (at > 0 && (bytes[at - 1] & 0xc0) == 0x80)
		at--;
	if (at > 0 && spokei_utf8_len(bytes + at - 1, len - at + 1) == 0)
		return at - 1;
	return len;
}

void spoke_reply_error(struct spoke_request *request, int32_t code, const char *format, ...)
{
	char text[SPOKE_ERROR_TEXT_MAX] = "";
	struct spokei_message message = { .error_code = code };
	va_list args;
	int len = 0;

	va_start(args, format);
	if (format)
		len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len >= (int)sizeof(text))
		len = (int)whole_len(text, sizeof(text) - 1);
	message.error_text = spokei_span(text, len > 0 ? (size_t)len : 0);
	reply_failure(request, &message);
}

void spoke_reply_exception(struct spoke_request *request, const char *class_name, int32_t code,
			   const char *text, struct spoke_value fields)
{
	struct spokei_message message = {
		.error_class = spokei_span(class_name, class_name ? strlen(class_name) : 0),
		.error_code = code,
		.error_text = spokei_span(text, text ? strlen(text) : 0),
		.value = fields,
	};
	/* A map of fields has the form of a map of attachments. */
	int error = spokei_attachments_check(fields, true);

	if (error)
		spokei_request_unsendable(request, error);
	else
		reply_failure(request, &message);
}

/* --- handlers that answer later */

static void request_abandoned(struct spokei_serving *serving)
{
	struct spoke_request *request = spoke_container_of(serving, struct spoke_request, serving);

	/* Its connection may be lost after its caller has cancelled it. */
	if (atomic_exchange_explicit(&request->gone, true, memory_order_relaxed))
		return;
	spokei_figures_count(request->figures, SPOKE_STAT_REQUESTS_ABANDONED);
	/* The answer is wanted, for repeats. */
	if (spokei_request_is_remembered(request))
		return;
	/* They stay linked, so that no other call is made for the request. */
	for (struct spokei_use *use = request->inner; use; use = use->next)
		use->over(use);
	if (request->abandoned)
		request->abandoned(request, request->abandoned_arg);
}

/* Registers the request at its connection. Returns false when the connection is closed, or there is
 * no memory, which closes it. Then the callback may have answered the request, and freed it. */
static bool hand_over(struct spoke_request *request, struct spokei_conn *conn,
		      const struct spokei_message *message)
{
	int error;

	request->serving.abandoned = request_abandoned;
	request->sender = spokei_conn_sender(conn);
	error = request->sender ? spokei_conn_serve(conn, &request->serving, message)
				: SPOKE_ENOMEM;
	if (error == SPOKE_OK) {
		if (conn->link->unanswered)
			spokei_unanswered_add(conn->link->unanswered, request);
		return true;
	}
	if (error == SPOKE_ENOMEM)
		spokei_conn_close_with(conn, SPOKE_STAT_CLOSED_MEMORY, SPOKE_ENOMEM);
	spokei_conn_join_orphans(&request->serving, conn->link);
	request_abandoned(&request->serving);
	return false;
}

/* --- the pool */

/* The pool is too small: a request has waited long for a thread, or the queue is full. */
static void report_busy(struct spoke_engine *engine, enum spoke_stat stat, uint64_t waited_ns)
{
	struct spoke_pool pool;

	spokei_count(engine, stat);
	if (engine->pool_told_ns && engine->begin_ns - engine->pool_told_ns < POOL_TOLD_NS)
		return;
	engine->pool_told_ns = engine->begin_ns;
	spoke_engine_pool(engine, &pool);
	spokei_event(engine, SPOKE_ELIMIT,
		     "requests wait for the pool (%" PRIu64 " ms, %u queued of %u, %u threads): "
		     "raise pool.threads or pool.queue, or reply later instead of blocking",
		     waited_ns / NS_PER_MS, pool.queued, pool.queue_max, pool.threads_max);
}

/* The request may have waited for a thread longer than its caller waits, or its provider lives. */
static void pool_run(struct spoke_work *work)
{
	struct spokei_pooled *pooled = spoke_container_of(work, struct spokei_pooled, work);
	struct spoke_request *request = pooled->request;
	const struct spoke_env *env = request->engine->env;

	pooled->waited_ns = env->now(env->ctx) - request->arrived_ns;
	pooled->unrun = spokei_request_is_gone(request) || spoke_request_left(request) == 0;
	if (!pooled->unrun)
		pooled->handle(request, pooled->arg);
}

/* Answers a request that no handler has seen. On the loop's thread. */
static void pool_unrun(struct spoke_request *request, enum spoke_stat stat, int error,
		       const char *text)
{
	struct spokei_message message = {
		.error = error,
		.error_text = spokei_span(text, strlen(text)),
	};

	if (!spokei_request_is_gone(request)) /* else it is counted already */
		spokei_figures_count(request->figures, stat);
	note_slow(request, 0, error);
	spokei_conn_answer(&request->serving, &message);
	if (request->watched)
		notify(request, &message);
	spokei_request_free(request);
}

static void pool_refused(struct spoke_request *request, const char *text)
{
	pool_unrun(request, SPOKE_STAT_REQUESTS_REFUSED, SPOKE_EREFUSED, text);
}

static void pool_done(struct spoke_work *work)
{
	struct spokei_pooled *pooled = spoke_container_of(work, struct spokei_pooled, work);
	struct spoke_request *request = pooled->request;
	struct spokei_message gone = { .error = SPOKE_ELOST };

	if (work->status == -ECANCELED) {
		pool_refused(request, "the provider is closing; call another one");
		return;
	}
	if (pooled->waited_ns >= POOL_LONG_NS)
		report_busy(request->engine, SPOKE_STAT_POOL_WAITED, pooled->waited_ns);
	spokei_figures_queued(request->figures, pooled->waited_ns);
	if (pooled->unrun && spokei_request_is_gone(request)) {
		/* A cancelled one is still at its connection. */
		spokei_conn_answer(&request->serving, &gone);
		spokei_request_forget(request, SPOKE_ELOST);
		return;
	}
	if (pooled->unrun) {
		pool_unrun(request, SPOKE_STAT_REQUESTS_EXPIRED, SPOKE_EEXPIRED,
			   spoke_strerror(SPOKE_EEXPIRED));
		return;
	}
	if (atomic_load_explicit(&request->again, memory_order_relaxed))
		report_second(request);
	pooled->done = true;
	if (pooled->delivered)
		spokei_request_free(request);
}

/* Makes what the pool needs of a request. Returns whether there was memory. */
static bool make_pooled(struct spoke_request *request, const struct spokei_route *route)
{
	struct spokei_pooled *pooled = spokei_alloc(request->engine->env, 1, sizeof(*pooled));

	if (pooled == NULL)
		return false;
	pooled->request = request;
	pooled->handle = route->handle;
	pooled->arg = route->arg;
	pooled->work = (struct spoke_work){ .run = pool_run, .done = pool_done };
	request->pooled = pooled;
	return true;
}

/* Has a thread of the pool run the handler, or refuses the request. */
static void run_on_pool(struct spoke_request *request, struct spokei_conn *conn,
			const struct spokei_route *route)
{
	struct spoke_engine *engine = request->engine;
	struct spokei_message refused = {
		.error = SPOKE_EREFUSED,
		.error_text = spokei_span(no_memory, sizeof(no_memory) - 1),
	};

	note_origin(request, conn);
	if (!make_pooled(request, route) || spoke_request_keep(request)) {
		spokei_figures_count(request->figures, SPOKE_STAT_REQUESTS_REFUSED);
		spokei_conn_reply(conn, request->message, &refused);
		spokei_request_forget(request, SPOKE_EREFUSED);
		return;
	}
	if (!hand_over(request, conn, request->message)) {
		spokei_request_forget(request, SPOKE_ELOST);
		return;
	}
	request->conn = NULL;
	atomic_store_explicit(&request->again, false, memory_order_relaxed);
	spokei_count(engine, SPOKE_STAT_POOL_REQUESTS);
	if (engine->env->loop->offload(engine->loop, &request->pooled->work) == 0)
		return;
	report_busy(engine, SPOKE_STAT_POOL_FULL, 0);
	pool_refused(request, "the provider's pool is busy; call later or another one");
}

/* --- the handler */

/* Keeps the memory of an answered request that was never handed out. */
static void put_back(struct spoke_request *request, struct spoke_request **spare)
{
	if (*spare || request->kept)
		spokei_request_free(request);
	else
		*spare = request;
}

/* Runs the handler. The clock is read for some requests only, because that costs as much as a short
 * handler. */
static inline void handle_here(struct spoke_request *request, const struct spokei_route *route)
{
	struct spokei_figures *figures = request->figures;
	const struct spoke_env *env = request->engine->env;
	uint64_t begun_ns;
	uint64_t took_ns;

	if (SPOKEI_LIKELY(figures->until_timed > 0)) {
		route->handle(request, route->arg);
		figures->until_timed -= request->answered;
		return;
	}
	begun_ns = env->now(env->ctx);
	route->handle(request, route->arg);
	if (!request->answered)
		return;
	took_ns = env->now(env->ctx) - begun_ns;
	spokei_figures_timed(figures, took_ns);
	note_slow(request, took_ns, SPOKE_OK);
}

void spokei_request_detach(struct spoke_request *request)
{
	const struct spokei_message *message = request->message;
	struct spokei_conn *conn = request->conn;

	note_origin(request, conn);
	if (request->kept == NULL && request->passed > 0)
		keep_names(request);
	if (request->kept == NULL)
		request->message = &nothing[message->generic];
	request->conn = NULL;
	(void)hand_over(request, conn, message);
}

/* Runs a handler as that of the engine's current request. */
static SPOKEI_INLINE void handle_as_current(struct spoke_request *request,
					    const struct spokei_route *route)
{
	struct spoke_engine *engine = request->engine;

	engine->handler = request->figures;
	engine->request = request;
	handle_here(request, route);
	engine->request = NULL;
}

static void run_here(struct spoke_request *request, const struct spokei_route *route,
		     struct spoke_request **spare)
{
	handle_as_current(request, route);
	if (request->answered)
		put_back(request, spare);
	else
		spokei_request_detach(request);
}

/* Runs a handler whose answer may be held. */
static void run_holding(struct spoke_request *request, const struct spokei_route *route,
			struct spoke_request **spare)
{
	handle_as_current(request, route);
	if (request->answered && request->holding != SPOKEI_HOLDS)
		put_back(request, spare);
	else
		spokei_request_detach(request);
}

/* Returns memory for a request. One that is not answered at once uses the link's spare sender, and
 * does not become the next spare one. So the next is allocated, and that is when there must be a
 * spare sender again: the peer of a request is known until its end. */
static struct spoke_request *take_request(struct spokei_link *link, struct spoke_request **spare)
{
	struct spoke_request *request = *spare;

	if (request == NULL && !spokei_link_spare_sender(link))
		return NULL;
	if (request == NULL)
		return spokei_alloc(link->engine->env, 1, sizeof(*request));
	*spare = NULL;
	/* A request that was answered in its handler has changed no other field. */
	request->answered = false;
	request->abandoned = NULL;
	return request;
}

/* Returns whether the deadline has passed, also while earlier handlers of this round ran, or
 * callbacks of calls. Reading the clock for each request costs too much, so the coarse clock is
 * used until the deadline is near; it also tells whether the handler before has held the loop. */
static bool is_over(struct spoke_engine *engine, uint64_t deadline_ns)
{
	const struct spoke_env *env = engine->env;
	uint64_t now_ns;

	if (deadline_ns <= engine->begin_ns)
		return true;
	if (engine->ran_ns != engine->begin_ns) {
		engine->ran_ns = engine->handler_ns = engine->begin_ns;
		if (SPOKEI_LIKELY(engine->stats[SPOKE_STAT_CALLS] == 0))
			return false;
		now_ns = env->coarse(env->ctx);
		if (now_ns > engine->begin_ns)
			engine->handler_ns = now_ns;
	} else {
		now_ns = spokei_figures_handled(engine);
	}
	return now_ns + SPOKE_COARSE_NS >= deadline_ns && env->now(env->ctx) >= deadline_ns;
}

/* Returns the answer to a request that a filter refuses; it points into the verdict. */
static struct spokei_message refusal_of(const struct spoke_request *request,
					const struct spoke_filter_verdict *verdict)
{
	const char *class_name = verdict->class_name ? verdict->class_name : "";
	struct spokei_message answer = {
		.error = SPOKE_EREFUSED,
		.error_text = spokei_span(verdict->text, strlen(verdict->text)),
		.forbidden = !spokei_error_of(verdict->error)->passes_later,
	};

	if (verdict->error == SPOKE_ELIMIT)
		answer.error_code = SPOKE_ELIMIT;
	if (verdict->error == SPOKE_EFORBIDDEN)
		answer.error_code = verdict->code ? verdict->code : SPOKE_FORBIDDEN_CALLER;
	else if (verdict->error == SPOKE_EREMOTE)
		answer.error_code = verdict->code;
	else
		return answer;
	answer.error = verdict->error;
	answer.error_class = spokei_span(class_name, strlen(class_name));
	answer.foreign = spokei_request_is_foreign(request);
	answer.generic = request->message->generic;
	return answer;
}

static void refuse(struct spoke_request *request, const struct spoke_filter_verdict *verdict)
{
	struct spokei_message answer = refusal_of(request, verdict);
	struct spokei_conn *conn = request->conn;

	request->answered = true;
	spokei_figures_count(request->figures, SPOKE_STAT_REQUESTS_REFUSED);
	report_class(request, &answer);
	spokei_conn_reply(conn, request->message, &answer);
	if (request->watched)
		notify(request, &answer);
	if (conn->dismissed)
		spokei_conn_dismiss(conn, SPOKE_STAT_CLOSED_AUTH, SPOKE_EFORBIDDEN);
}

/* The way of a request before its handler. */
enum entry {
	LET_IN,
	ENDED, /* answered */
	KEPT,  /* the request waits for the answer of an earlier one */
};

/* Has the request remembered, or not, because a limit has refused it. */
static void remember(struct spoke_request *request, struct spokei_dedupe_entry *entry, bool runs)
{
	if (!runs) {
		spokei_dedupe_drop(entry);
		return;
	}
	entry->limit = request->limit;
	request->entry = entry;
	atomic_store_explicit(&request->remembered, true, memory_order_relaxed);
	request->watched = true;
}

/* Has filters, the memory for repeats and the limit decide. Filters come first, so a request that a
 * filter refuses neither learns of earlier requests nor uses up the method's quota; a repeat uses
 * up none either. Every filter and limit that let a request pass is notified of its end once. */
static enum entry enter(struct spoke_request *request, const struct spokei_filters *filters,
			const struct spokei_route *route)
{
	struct spoke_filter_verdict verdict = { .step = SPOKE_FILTER_GO_ON };
	enum spokei_dedupe_way way = SPOKEI_DEDUPE_GOES_ON;
	struct spokei_asked asked;

	asked.request = request;
	asked.service = route->service;
	asked.entry = NULL;
	request->asked = &asked;
	if (filters->count > 0)
		verdict = ask_filters(request, filters);
	if (verdict.step == SPOKE_FILTER_GO_ON && route->dedupe && route->dedupe->table)
		way = spokei_dedupe_check(request, route->dedupe, &verdict);
	if (way == SPOKEI_DEDUPE_WAITS) {
		request->asked = NULL;
		return KEPT;
	}
	if (way == SPOKEI_DEDUPE_GOES_ON && verdict.step == SPOKE_FILTER_GO_ON && route->limit)
		verdict = take_limit(request, route->limit, asked.text);
	if (asked.entry)
		remember(request, asked.entry, verdict.step == SPOKE_FILTER_GO_ON);
	if (verdict.step == SPOKE_FILTER_REFUSE)
		refuse(request, &verdict);
	else if (verdict.step == SPOKE_FILTER_ANSWER)
		spoke_reply(request, verdict.value);
	request->asked = NULL;
	return way == SPOKEI_DEDUPE_ANSWERED || verdict.step != SPOKE_FILTER_GO_ON ? ENDED : LET_IN;
}

/* Replies to a request whose deadline has passed, in place of its handler. */
static void expire(struct spoke_request *request)
{
	request->answered = true;
	spokei_figures_count(request->figures, SPOKE_STAT_REQUESTS_EXPIRED);
	spokei_conn_refuse(request->conn, request->message, SPOKE_EEXPIRED,
			   spoke_strerror(SPOKE_EEXPIRED));
	if (request->watched)
		notify_error(request, SPOKE_EEXPIRED);
}

/* Returns the deadline of a request whose caller has named none. */
static uint64_t default_deadline(const struct spokei_link *link)
{
	uint64_t time_ns = link->limits.timeout_default_ns;

	return time_ns ? spokei_later(link->engine->begin_ns, time_ns) : UINT64_MAX;
}

void spokei_request_run(const struct spokei_route *route, const struct spokei_filters *filters,
			struct spokei_conn *conn, const struct spokei_message *message,
			struct spoke_request **spare)
{
	struct spoke_engine *engine = conn->link->engine;
	struct spoke_request *request;

	spokei_figures_begin(route->figures);
	request = take_request(conn->link, spare);
	if (request == NULL) {
		spokei_figures_count(route->figures, SPOKE_STAT_REQUESTS_REFUSED);
		spokei_conn_refuse(conn, message, SPOKE_EREFUSED, no_memory);
		return;
	}
	request->engine = engine;
	request->conn = conn;
	request->message = message;
	request->figures = route->figures;
	request->deadline_ns = spokei_engine_deadline(engine, message->timeout_ms);
	if (SPOKEI_UNLIKELY(request->deadline_ns == UINT64_MAX))
		request->deadline_ns = default_deadline(conn->link);
	if (SPOKEI_UNLIKELY(filters->count > 0 || route->limit != NULL)) {
		enum entry entry = enter(request, filters, route);

		if (entry == ENDED)
			put_back(request, spare);
		if (entry != LET_IN)
			return;
	}
	/* A caller without permission does not learn that the service exists. */
	if (message->timeout_ms < 0 || is_over(engine, request->deadline_ns)) {
		expire(request);
		put_back(request, spare);
		return;
	}
	if (SPOKEI_UNLIKELY(route->flags & (SPOKE_HANDLER_POOL | SPOKEI_ROUTE_HOLDS))) {
		request->holding = route->flags & SPOKEI_ROUTE_HOLDS ? SPOKEI_MAY_HOLD
								     : SPOKEI_HOLDS_NOTHING;
		if (route->flags & SPOKE_HANDLER_POOL)
			run_on_pool(request, conn, route);
		else
			run_holding(request, route, spare);
	} else
		run_here(request, route, spare);
}

static bool is_safe(const struct spokei_route *route)
{
	return route->flags & SPOKE_HANDLER_SAFE;
}

bool spokei_request_is_unsafe(struct spokei_routes *services, const struct spokei_message *message)
{
	bool has_service;
	const struct spokei_route *route = spokei_routes_find(services, message, &has_service);

	return route != NULL && !is_safe(route);
}

/* Answers a request that is not served. Only some callers may learn the reason. */
static SPOKEI_NOINLINE void refuse_unserved(const struct spokei_routes *services,
					    struct spokei_conn *conn,
					    const struct spokei_message *message, int error,
					    const char *why)
{
	struct spoke_request request = { .conn = conn, .message = message };
	struct spoke_filter_verdict verdict;
	char text[SPOKEI_REFUSAL_TEXT];
	struct spokei_message answer;

	if (services->access == NULL ||
	    spokei_access_lets_know(services->access, conn, message, text, &verdict)) {
		spokei_count(conn->link->engine, error == SPOKE_ENOSERVICE
							 ? SPOKE_STAT_REQUESTS_NO_SERVICE
							 : SPOKE_STAT_REQUESTS_REFUSED);
		spokei_conn_refuse(conn, message, error, why);
		return;
	}
	spokei_count(conn->link->engine, SPOKE_STAT_REQUESTS_REFUSED);
	answer = refusal_of(&request, &verdict);
	spokei_conn_note_refused(conn, message, answer.error);
	spokei_conn_reply(conn, message, &answer);
	if (conn->dismissed)
		spokei_conn_dismiss(conn, SPOKE_STAT_CLOSED_AUTH, SPOKE_EFORBIDDEN);
}

const struct spokei_route *spokei_request_route(struct spokei_routes *services,
						struct spokei_conn *conn,
						const struct spokei_message *message)
{
	bool has_service;
	const struct spokei_route *route = spokei_routes_find(services, message, &has_service);

	if (route == NULL) {
		refuse_unserved(services, conn, message, SPOKE_ENOSERVICE,
				has_service ? "the service has no such method"
					    : "there is no such service here (name, version and "
					      "group count)");
		return NULL;
	}
	if (message->safe_only && !is_safe(route)) {
		refuse_unserved(services, conn, message, SPOKE_EUNSUPPORTED,
				"GET is for methods that are marked as safe; send a POST");
		return NULL;
	}
	conn->found = route;
	return route;
}

void spokei_request_serve_pushed(void *route, struct spokei_conn *conn,
				 const struct spokei_message *message)
{
	struct spoke_request *spare = NULL;

	spokei_request_run(route, &no_filters, conn, message, &spare);
	spokei_request_free(spare);
}

/* A filter may answer the request while it is notified, so the request is freed here. */
void spokei_request_end_orphans(struct spokei_link *link)
{
	while (!spokei_list_empty(&link->orphans)) {
		struct spokei_serving *serving = spoke_container_of(spokei_list_first(
									    &link->orphans),
								    struct spokei_serving, node);
		struct spoke_request *request = spoke_container_of(serving, struct spoke_request,
								   serving);

		spokei_conn_leave_orphans(serving);
		if (!request->watched)
			continue;
		request->telling = true;
		notify_error(request, SPOKE_ECLOSED);
		request->telling = false;
		/* A request on the pool is answered by another thread. */
		if (request->pooled == NULL && request->answered)
			spokei_request_free(request);
	}
}
