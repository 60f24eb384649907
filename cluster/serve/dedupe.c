/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises repeats of requests: answers them from memory, has them wait for the first request
 * with their id, or refuses them. */
#include "cluster/serve/dedupe.h"

#include "cluster/serve/kept.h"
#include "cluster/serve/parts.h"
#include "core/base/error.h"
#include "core/base/mix.h"
#include "core/base/siphash.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "transport/conn/conn.h"
#include "transport/trust/caller.h"
#include "transport/wire/message.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)
#define WAITERS_MAX 16u                  /* repeats that wait for one request */
#define TOLD_NS (60000 * NS_PER_MS)      /* one event about requests forgotten early in this time */
#define LEAST_WAIT_NS (1000 * NS_PER_MS) /* between two looks for old entries */

/* Exceptions that every Java program has. */
#define WRONG_USE "java.lang.IllegalArgumentException"

/* A repeat that waits for the answer of the first request. */
struct waiter {
	struct spoke_list node; /* of the entry's */
	struct spoke_request *request;
	struct spoke_alarm alarm; /* its deadline */
};

/* --- time */

static void arm(struct spokei_dedupe *dedupe, uint64_t due_ns);

static void alarm_due(struct spoke_alarm *alarm)
{
	struct spokei_dedupe *dedupe = spoke_container_of(alarm, struct spokei_dedupe, alarm);

	dedupe->armed = false;
	arm(dedupe, spokei_dedupe_expire(&dedupe->table, dedupe->engine->begin_ns));
}

/* Without a timer the entries stay until the next one ends, or they give way to others. */
static void arm(struct spokei_dedupe *dedupe, uint64_t due_ns)
{
	uint64_t now_ns = dedupe->engine->begin_ns;
	uint64_t wait_ns = due_ns > now_ns ? due_ns - now_ns : 0;

	if (dedupe->armed || due_ns == UINT64_MAX)
		return;
	if (wait_ns < LEAST_WAIT_NS)
		wait_ns = LEAST_WAIT_NS;
	dedupe->armed = spoke_alarm_after(dedupe->engine, &dedupe->alarm, wait_ns, alarm_due) ==
			SPOKE_OK;
}

void spokei_dedupe_begin(struct spokei_dedupe *dedupe, struct spoke_engine *engine)
{
	dedupe->engine = engine;
	spokei_dedupe_init(&dedupe->table, engine->env);
}

void spokei_dedupe_finish(struct spokei_dedupe *dedupe)
{
	(void)spoke_alarm_cancel(&dedupe->alarm);
	spokei_dedupe_fini(&dedupe->table);
}

void spokei_dedupe_changed(struct spokei_dedupe *dedupe)
{
	(void)spoke_alarm_cancel(&dedupe->alarm);
	dedupe->armed = false;
	arm(dedupe, spokei_dedupe_expire(&dedupe->table, dedupe->engine->begin_ns));
}

static void report_early(struct spokei_dedupe *dedupe)
{
	const struct spokei_dedupe_table *table = &dedupe->table;
	uint64_t now_ns = dedupe->engine->begin_ns;
	uint64_t early = table->early - dedupe->told;

	if (early == 0)
		return;
	for (uint64_t i = 0; i < early; i++)
		spokei_count(dedupe->engine, SPOKE_STAT_REPEATS_FORGOTTEN);
	dedupe->told = table->early;
	if (dedupe->told_ns && now_ns - dedupe->told_ns < TOLD_NS)
		return;
	dedupe->told_ns = now_ns;
	spokei_event(dedupe->engine, SPOKE_ELIMIT,
		     "requests are forgotten before the time of `dedupe` is over (%zu remembered, "
		     "%zu bytes): raise dedupe.max or dedupe.bytes",
		     table->ids.count, table->bytes);
}

/* --- waiting */

static void free_waiter(struct waiter *waiter)
{
	const struct spoke_env *env = waiter->request->engine->env;

	(void)spoke_alarm_cancel(&waiter->alarm);
	spokei_list_remove(&waiter->node);
	waiter->request->abandoned = NULL;
	spokei_free(env, waiter, 1, sizeof(*waiter));
}

static void answer_waiter(struct waiter *waiter, const struct spokei_message *answer)
{
	struct spoke_request *request = waiter->request;
	struct spokei_message message = *answer;

	free_waiter(waiter);
	message.lent = NULL;
	message.last = false;
	message.generic = request->message->generic;
	message.foreign = request->foreign;
	spokei_request_finish(request, &message);
}

static void waiter_abandoned(struct spoke_request *request, void *arg)
{
	const struct spokei_message gone = { .error = SPOKE_ELOST };

	(void)request;
	answer_waiter(arg, &gone); /* a cancelled one is still at its connection */
}

static void waiter_due(struct spoke_alarm *alarm)
{
	static const char why[] = "the deadline passed while the first request with this id ran";
	const struct spokei_message answer = {
		.error = SPOKE_ETIMEOUT,
		.error_text = spokei_span(why, sizeof(why) - 1),
	};

	answer_waiter(spoke_container_of(alarm, struct waiter, alarm), &answer);
}

static bool has_room(const struct spokei_dedupe_entry *entry)
{
	unsigned count = 0;

	for (const struct spoke_list *node = entry->waiters.next; node != &entry->waiters;
	     node = node->next)
		count++;
	return count < WAITERS_MAX;
}

/* Returns the time until a request's deadline; UINT64_MAX: it has none. */
static uint64_t left_of(const struct spoke_request *request)
{
	uint64_t now_ns = request->engine->begin_ns;

	if (request->message->timeout_ms < 0 || request->deadline_ns <= now_ns)
		return 0;
	return request->deadline_ns == UINT64_MAX ? UINT64_MAX : request->deadline_ns - now_ns;
}

/* Has a repeat wait. Returns false if it cannot. */
static bool await_answer(struct spoke_request *request, struct spokei_dedupe_entry *entry)
{
	struct spoke_engine *engine = request->engine;
	uint64_t left_ns = left_of(request);
	struct waiter *waiter;

	if (!has_room(entry))
		return false;
	waiter = spokei_alloc(engine->env, 1, sizeof(*waiter));
	if (waiter == NULL)
		return false;
	waiter->request = request;
	if (left_ns != UINT64_MAX &&
	    spoke_alarm_after(engine, &waiter->alarm, left_ns, waiter_due)) {
		spokei_free(engine->env, waiter, 1, sizeof(*waiter));
		return false;
	}
	spokei_list_append(&entry->waiters, &waiter->node);
	spoke_request_on_abandoned(request, waiter_abandoned, waiter);
	request->asked = NULL;
	spokei_request_detach(request);
	return true;
}

/* --- decisions */

/* Returns a number that tells the types of one request from those of another of the same caller,
 * which would only mislead itself by others with this number. */
static uint64_t print_types(struct spoke_span types)
{
	const unsigned char *at = types.data;
	uint64_t print = types.len;
	uint64_t word;

	for (size_t left = types.len; left > 0; left -= sizeof(word), at += sizeof(word)) {
		word = 0;
		memcpy(&word, at, left < sizeof(word) ? left : sizeof(word));
		print = spokei_mix(print ^ word);
		if (left <= sizeof(word))
			break;
	}
	return print;
}

static void read_caller(const struct spoke_request *request, const uint64_t key[2],
			struct spokei_dedupe_asked *asked)
{
	const struct spokei_message *message = request->message;

	asked->args = spokei_siphash(key, message->args.data, message->args.len) ^
		      print_types(message->types);
	asked->caller = spokei_identity_hash(request->conn->identity, key);
}

static enum spokei_dedupe_way refuse(struct spoke_request *request, int error,
				     const char *class_name, const char *text,
				     struct spoke_filter_verdict *ret_verdict)
{
	spokei_count(request->engine, SPOKE_STAT_REPEATS_REFUSED);
	*ret_verdict = (struct spoke_filter_verdict){
		.step = SPOKE_FILTER_REFUSE,
		.error = error,
		.text = text,
		.class_name = class_name,
	};
	return SPOKEI_DEDUPE_REFUSED;
}

/* Refuses a repeat, because whether the request has run is not known. */
static enum spokei_dedupe_way refuse_unknown(struct spoke_request *request, const char *text,
					     struct spoke_filter_verdict *ret_verdict)
{
	enum spokei_dedupe_way way = refuse(request, SPOKE_EREMOTE, SPOKEI_DEDUPE_STATE, text,
					    ret_verdict);

	ret_verdict->code = SPOKE_REPEAT_UNKNOWN;
	return way;
}

static enum spokei_dedupe_way replay(struct spoke_request *request,
				     const struct spokei_dedupe_entry *entry)
{
	struct spokei_message message = spokei_dedupe_answer_of(entry);

	message.generic = request->message->generic;
	message.foreign = spokei_request_is_foreign(request);
	spokei_count(request->engine, SPOKE_STAT_REPEATS_ANSWERED);
	spokei_request_finish(request, &message);
	return SPOKEI_DEDUPE_ANSWERED;
}

static enum spokei_dedupe_way wait_or_refuse(struct spoke_request *request,
					     struct spokei_dedupe_entry *entry,
					     struct spoke_filter_verdict *ret_verdict)
{
	struct spokei_message nothing = { .kind = SPOKEI_REPLY };

	if (!request->message->two_way) {
		spokei_request_finish(request, &nothing); /* is not sent */
		return SPOKEI_DEDUPE_ANSWERED;
	}
	if (!await_answer(request, entry))
		return refuse(request, SPOKE_EREFUSED, NULL,
			      "too many repeats wait for the answer of this id; repeat later",
			      ret_verdict);
	return SPOKEI_DEDUPE_WAITS;
}

/* Refuses a request that is new, because its answer could not be kept. */
static enum spokei_dedupe_way refuse_unkept(struct spoke_request *request,
					    struct spokei_dedupe_entry *entry,
					    struct spoke_filter_verdict *ret_verdict)
{
	spokei_dedupe_drop(entry);
	return refuse(request, SPOKE_EREFUSED, NULL,
		      "the journal of answers cannot be written, so the request has not run; call "
		      "another provider",
		      ret_verdict);
}

static enum spokei_dedupe_way decide(struct spoke_request *request,
				     struct spokei_dedupe_method *method,
				     const struct spokei_dedupe_asked *asked,
				     struct spoke_filter_verdict *ret_verdict)
{
	struct spokei_dedupe *dedupe = spoke_container_of(method->table, struct spokei_dedupe,
							  table);
	const struct spoke_env *env = request->engine->env;
	struct spokei_dedupe_entry *entry;
	/* The request may have come later than the turn began. */
	enum spokei_dedupe_step step = spokei_dedupe_ask(method, asked, env->now(env->ctx), &entry);

	report_early(dedupe);
	switch (step) {
	case SPOKEI_DEDUPE_RUN:
		if (SPOKEI_UNLIKELY(dedupe->keeping) && spokei_keeping_check(dedupe->keeping))
			return refuse_unkept(request, entry, ret_verdict);
		request->asked->entry = entry;
		return SPOKEI_DEDUPE_GOES_ON;
	case SPOKEI_DEDUPE_REPLAY:
		return replay(request, entry);
	case SPOKEI_DEDUPE_WAIT:
		return wait_or_refuse(request, entry, ret_verdict);
	case SPOKEI_DEDUPE_NOT_KEPT:
		return refuse(request, SPOKE_EREMOTE, SPOKEI_DEDUPE_STATE,
			      "the request with this id has run, but its answer was too large to "
			      "be kept; raise dedupe.bytes",
			      ret_verdict);
	case SPOKEI_DEDUPE_OTHER_ARGS:
		return refuse(request, SPOKE_EREMOTE, WRONG_USE,
			      "attachment \"" SPOKEI_DEDUPE_ID "\": a request with other arguments "
			      "has this id; use a new id for each call",
			      ret_verdict);
	case SPOKEI_DEDUPE_OTHER_CALLER:
		return refuse(request, SPOKE_EREMOTE, WRONG_USE,
			      "attachment \"" SPOKEI_DEDUPE_ID
			      "\": another caller has this id; use "
			      "random ids",
			      ret_verdict);
	case SPOKEI_DEDUPE_ELSEWHERE:
		return refuse(request, SPOKE_EREFUSED, NULL,
			      "an earlier attempt was written to another instance, and only that "
			      "knows whether it ran; it did not run here",
			      ret_verdict);
	case SPOKEI_DEDUPE_FORGOTTEN:
		return refuse_unknown(request,
				      "whether an earlier attempt has run is not known: it was "
				      "written so long ago that the provider may have forgotten it",
				      ret_verdict);
	case SPOKEI_DEDUPE_FULL:
		return refuse(request, SPOKE_EREFUSED, NULL,
			      "dedupe.max or dedupe.bytes reached by requests that run",
			      ret_verdict);
	case SPOKEI_DEDUPE_NO_MEMORY:
		break;
	}
	return refuse(request, SPOKE_EREFUSED, NULL, "the provider is out of memory", ret_verdict);
}

enum spokei_dedupe_way spokei_dedupe_check(struct spoke_request *request,
					   struct spokei_dedupe_method *method,
					   struct spoke_filter_verdict *ret_verdict)
{
	struct spokei_dedupe_asked asked;

	switch (spokei_dedupe_read(request->message->attachments, &asked)) {
	case SPOKEI_DEDUPE_UNMARKED:
		return SPOKEI_DEDUPE_GOES_ON;
	case SPOKEI_DEDUPE_BAD_ID:
		return refuse(request, SPOKE_EREMOTE, WRONG_USE,
			      "attachment \"" SPOKEI_DEDUPE_ID "\": not a text of 1 to 64 bytes",
			      ret_verdict);
	case SPOKEI_DEDUPE_BAD_REPEAT:
		return refuse(request, SPOKE_EREMOTE, WRONG_USE,
			      "attachment \"" SPOKEI_DEDUPE_REPEAT
			      "\": not empty, and not the mark of "
			      "an instance of spoke",
			      ret_verdict);
	case SPOKEI_DEDUPE_MARKED:
		break;
	}
	if (method->keep_ns > 0) {
		read_caller(request, method->table->key, &asked);
		return decide(request, method, &asked, ret_verdict);
	}
	if (!asked.repeat)
		return SPOKEI_DEDUPE_GOES_ON;
	return refuse_unknown(request,
			      "whether an earlier attempt has run is not known: the provider does "
			      "not remember requests of this method (dedupe is off)",
			      ret_verdict);
}

/* --- the end of the first request */

bool spokei_dedupe_has_run(int error)
{
	return error == SPOKE_OK || error == SPOKE_EREMOTE || error == SPOKE_ETOOLARGE ||
	       error == SPOKE_ESERVER;
}

void spokei_dedupe_settle(struct spoke_request *request, const struct spokei_message *answer)
{
	struct spokei_dedupe_entry *entry = request->entry;
	struct spokei_dedupe_table *table = entry->method->table;
	struct spokei_dedupe *dedupe = spoke_container_of(table, struct spokei_dedupe, table);
	uint64_t now_ns = request->engine->begin_ns;
	static const char text[] = "the first request with this id has not run; repeat it";
	const struct spokei_message unrun = {
		.kind = SPOKEI_REPLY,
		.error = SPOKE_EREFUSED,
		.error_text = spokei_span(text, sizeof(text) - 1),
	};
	struct spoke_list waiters;

	request->limit = entry->limit;
	atomic_store_explicit(&request->remembered, false, memory_order_relaxed);
	spokei_list_init(&waiters);
	spokei_list_move(&entry->waiters, &waiters);
	if (spokei_dedupe_has_run(answer->error)) {
		uint64_t due_ns = now_ns + entry->method->keep_ns;

		spokei_dedupe_end(entry, answer, now_ns);
		arm(dedupe, due_ns);
	} else {
		spokei_dedupe_drop(entry);
	}
	if (!spokei_dedupe_has_run(answer->error))
		answer = &unrun;
	while (!spokei_list_empty(&waiters)) {
		spokei_count(request->engine, SPOKE_STAT_REPEATS_ANSWERED);
		answer_waiter(spoke_container_of(spokei_list_first(&waiters), struct waiter, node),
			      answer);
	}
}
