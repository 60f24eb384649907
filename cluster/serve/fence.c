/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fence of providers: a filter that refuses requests of leases that are over. Providers of
 * several engines may share one, so a flag guards the table; it is held for one lookup at a time.
 */
#include "cluster/filter/fence_table.h"

#include "cluster/filter/filter.h"
#include "cluster/serve/parts.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <spoke/fence.h>
#include <spoke/host.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#define NAMES_DEFAULT 10000u
#define NAMES_MAX 1000000u
#define KEEP_DEFAULT_NS UINT64_C(3600000000000)
#define NAME_TEXT 64u  /* bytes of a name in a sentence, with the NUL; longer ones are cut */
#define PEER_TEXT 128u /* bytes of an address */

/* The exception that RLock throws in a program that does not hold it: every Java program has it. */
#define EXCEPTION "java.lang.IllegalMonitorStateException"

struct spoke_fence {
	const struct spoke_env *env;
	struct spoke_filter filter;
	bool required;
	bool proven;
	uint32_t names_max;
	atomic_flag busy; /* guards the table */
	struct spokei_fence_table table;
};

/* --- the table */

static void lock(struct spoke_fence *fence)
{
	while (atomic_flag_test_and_set_explicit(&fence->busy, memory_order_acquire))
		continue;
}

static void unlock(struct spoke_fence *fence)
{
	atomic_flag_clear_explicit(&fence->busy, memory_order_release);
}

static struct spokei_fence_verdict note(struct spoke_fence *fence, struct spoke_span name,
					uint64_t number, uint64_t now_ns)
{
	struct spokei_fence_verdict verdict;

	lock(fence);
	verdict = spokei_fence_note(&fence->table, name, number, now_ns);
	unlock(fence);
	return verdict;
}

static bool tells(struct spoke_fence *fence, uint64_t now_ns)
{
	bool tell;

	lock(fence);
	tell = spokei_fence_tells(&fence->table, now_ns);
	unlock(fence);
	return tell;
}

/* --- refusals */

/* `text`: the sentence for the caller. With `tell` it is an event of the engine, too. */
static void report(const struct spoke_request *request, int error, const char *text, bool tell)
{
	char peer[PEER_TEXT];

	if (!tell)
		return;
	(void)spoke_request_peer(request, peer, sizeof(peer));
	spokei_event_of(request->engine, SPOKE_EVENT_OF_LEASE, error, "request of %s refused: %s",
			peer, text);
}

/* Ends the call with an exception, which no policy retries. */
static struct spoke_filter_verdict end_call(const char *text)
{
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EREMOTE,
		.text = text,
		.class_name = EXCEPTION,
	};
}

/* Lets the caller try another provider. */
static struct spoke_filter_verdict send_elsewhere(const char *text)
{
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EREFUSED,
		.text = text,
	};
}

static struct spoke_filter_verdict refuse_invalid(struct spoke_fence *fence,
						  const struct spoke_request *request,
						  const char *text)
{
	report(request, SPOKE_EBADREQUEST, text, tells(fence, request->engine->begin_ns));
	return end_call(text);
}

static struct spoke_filter_verdict refuse_unmarked(struct spoke_fence *fence,
						   const struct spoke_request *request)
{
	static const char text[] = "the provider requires a call under a lease: its name as the "
				   "attachment \"" SPOKEI_FENCE_NAME "\", its fence number as "
				   "\"" SPOKEI_FENCE_NUMBER "\"";

	return refuse_invalid(fence, request, text);
}

static struct spoke_filter_verdict refuse_marked(const struct spoke_fence *fence,
						 const struct spoke_request *request,
						 struct spoke_span name, uint64_t number,
						 const struct spokei_fence_verdict *verdict)
{
	char *text = request->asked->text;
	char shown[NAME_TEXT];

	(void)spokei_log_escape(shown, sizeof(shown), name.data, name.len);
	if (verdict->step == SPOKEI_FENCE_STALE) {
		(void)snprintf(text, SPOKEI_REFUSAL_TEXT,
			       "fence number %" PRIu64 " of lease \"%s\" is lower than %" PRIu64
			       ", seen before",
			       number, shown, verdict->highest);
		spokei_count(request->engine, SPOKE_STAT_REQUESTS_FENCED);
		report(request, SPOKE_ELEASE, text, verdict->tell);
		return end_call(text);
	}
	if (verdict->step == SPOKEI_FENCE_FULL) {
		(void)snprintf(text, SPOKEI_REFUSAL_TEXT,
			       "lease \"%s\": the fence already keeps the numbers of %" PRIu32
			       " names",
			       shown, fence->names_max);
		report(request, SPOKE_ELIMIT, text, verdict->tell);
	} else {
		(void)snprintf(text, SPOKEI_REFUSAL_TEXT, "lease \"%s\": the fence has no memory",
			       shown);
		report(request, SPOKE_ENOMEM, text, verdict->tell);
	}
	return send_elsewhere(text);
}

/* Refuses a number of a caller that may have chosen it to shut out the holders of the name. */
static struct spoke_filter_verdict refuse_unproven(struct spoke_fence *fence,
						   const struct spoke_request *request)
{
	static const char text[] = "fence numbers are taken of callers with a certificate, a token "
				   "or a signature, or at a unix socket";

	report(request, SPOKE_EFORBIDDEN, text, tells(fence, request->engine->begin_ns));
	return (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EFORBIDDEN,
		.code = SPOKE_FORBIDDEN_UNPROVEN,
		.text = text,
	};
}

/* --- the filter */

static bool is_echo(const struct spoke_request *request)
{
	static const char echo[] = "$echo";
	struct spoke_span method = spoke_request_method(request);

	return method.len == sizeof(echo) - 1 && memcmp(method.data, echo, method.len) == 0;
}

static struct spoke_filter_verdict before_request(void *arg, const struct spoke_request *request)
{
	struct spoke_fence *fence = arg;
	struct spokei_fence_verdict verdict = { .step = SPOKEI_FENCE_PASS };
	struct spoke_span name;
	uint64_t number;

	switch (spokei_fence_read(spoke_request_attachments(request), &name, &number)) {
	case SPOKEI_FENCE_MARKED:
		if ((fence->proven || request->filters->fence_proven) &&
		    !spokei_request_is_known(request))
			return refuse_unproven(fence, request);
		verdict = note(fence, name, number, request->engine->begin_ns);
		break;
	case SPOKEI_FENCE_UNMARKED:
		if (fence->required && !is_echo(request))
			return refuse_unmarked(fence, request);
		break;
	case SPOKEI_FENCE_BAD_NAME:
		return refuse_invalid(fence, request,
				      "attachment \"" SPOKEI_FENCE_NAME
				      "\": not a text of 1 to 1024 bytes");
	case SPOKEI_FENCE_BAD_NUMBER:
		return refuse_invalid(fence, request,
				      "attachment \"" SPOKEI_FENCE_NUMBER
				      "\": not a decimal number from 1 to 18446744073709551615");
	}
	if (verdict.step != SPOKEI_FENCE_PASS)
		return refuse_marked(fence, request, name, number, &verdict);
	return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
}

/* --- life */

int spoke_fence_new(const struct spoke_env *env, const struct spoke_fence_options *options,
		    struct spoke_fence **ret_fence)
{
	static const struct spoke_fence_options defaults;
	const struct spoke_fence_options *with = options ? options : &defaults;
	const struct spoke_env *in = env ? env : spoke_host_env();
	struct spoke_fence *fence;

	if (with->names_max > NAMES_MAX)
		return SPOKE_ERANGE;
	fence = spokei_alloc(in, 1, sizeof(*fence));
	if (fence == NULL)
		return SPOKE_ENOMEM;
	fence->env = in;
	fence->required = with->required;
	fence->proven = with->proven;
	fence->names_max = with->names_max ? with->names_max : NAMES_DEFAULT;
	fence->filter = (struct spoke_filter){
		.name = "fence",
		.arg = fence,
		.before_request = before_request,
	};
	atomic_flag_clear(&fence->busy);
	spokei_fence_table_init(&fence->table, in, fence->names_max,
				with->keep_ns ? with->keep_ns : KEEP_DEFAULT_NS, in->now(in->ctx));
	*ret_fence = fence;
	return SPOKE_OK;
}

void spoke_fence_free(struct spoke_fence *fence)
{
	if (fence == NULL)
		return;
	spokei_fence_table_fini(&fence->table);
	spokei_free(fence->env, fence, 1, sizeof(*fence));
}

const struct spoke_filter *spoke_fence_filter(const struct spoke_fence *fence)
{
	return &fence->filter;
}

bool spoke_request_fence(const struct spoke_request *request, struct spoke_span *ret_name,
			 uint64_t *ret_fence)
{
	return spokei_fence_read(spoke_request_attachments(request), ret_name, ret_fence) ==
	       SPOKEI_FENCE_MARKED;
}
