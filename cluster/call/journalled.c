/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets in the journal of their consumer. */
#include "cluster/call/journalled.h"

#include "cluster/call/call.h"
#include "cluster/call/caller.h"
#include "cluster/call/method.h"
#include "cluster/call/retry.h"
#include "core/base/env.h"
#include "core/base/span.h"
#include "core/base/status.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"
#include "transport/wire/message.h"
#include "transport/wire/put.h"

#include <stdio.h>
#include <string.h>

static struct spokei_caller *caller_of(const struct spokei_retry_state *retry)
{
	return retry->call->method->caller;
}

static struct spokei_journalled *entry_of(struct spokei_journal_ticket *ticket)
{
	return spoke_container_of(ticket, struct spokei_journalled, ticket);
}

/* Makes the entry of a ticket with this record. */
static struct spokei_journalled *new_entry(const struct spoke_env *env,
					   const struct spokei_record_open *open)
{
	struct spokei_journalled *entry = spokei_alloc(env, 1, sizeof(*entry));

	if (entry == NULL)
		return NULL;
	entry->begun_ns = open->begun_ns;
	entry->lasts_ns = open->lasts_ns;
	entry->period_ns = open->period_ns;
	entry->retries = open->retries;
	entry->flags = open->flags;
	entry->unsure = open->tried.unsure;
	return entry;
}

static void free_entry(struct spokei_retry_state *retry)
{
	spokei_free(caller_of(retry)->engine->env, retry->journalled, 1,
		    sizeof(*retry->journalled));
	retry->journalled = NULL;
}

/* --- records */

/* Returns the attempts, with those that are in flight. */
static struct spokei_record_tried tried_of(const struct spokei_retry_state *retry,
					   char mark[SPOKEI_REPEAT_MARK])
{
	bool unsure = retry->open > 0 || retry->unsure || retry->bound;
	size_t len = unsure ? spokei_repeat_print(retry, mark) : 0;

	return (struct spokei_record_tried){
		.attempts = retry->begun,
		.unsure = unsure,
		.mark = spokei_span(mark, len),
	};
}

int spokei_journalled_put(struct spokei_journal_ticket *ticket, struct spokei_buffer *out)
{
	static const struct spoke_span any = { (const unsigned char *)"*", 1 };
	struct spokei_journalled *entry = entry_of(ticket);
	const struct spokei_retry_state *retry = entry->retry;
	const struct spoke_method *method = retry->call->method;
	char mark[SPOKEI_REPEAT_MARK];
	struct spokei_record_open open = {
		.service = method->service,
		.group = method->any_group ? any : method->request.group,
		.version = method->any_version ? any : method->request.version,
		.method = method->request.method,
		.arguments = retry->args.values,
		.attachments = { retry->args.attachments.data, retry->args.attachments.len },
		.key = retry->args.key,
		.begun_ns = entry->begun_ns,
		.lasts_ns = entry->lasts_ns,
		.period_ns = entry->period_ns,
		.retries = entry->retries,
		.flags = entry->flags,
		.tried = tried_of(retry, mark),
	};

	/* An attempt is about to begin, and is not noted once more. */
	if (entry->noted > retry->begun) {
		open.tried.attempts = entry->noted;
		open.tried.unsure = true;
	}
	(void)spokei_put_64(spokei_put_64(open.id, spokei_retry_state_id_half(retry)), retry->id);
	entry->unsure = open.tried.unsure;
	return spokei_record_put_open(out, ticket->number, &open);
}

/* Notes the attempts. `waits`: as spokei_journal_note(). */
static int note(const struct spokei_retry_state *retry, const struct spokei_record_tried *tried,
		bool waits)
{
	struct spokei_journalled *entry = retry->journalled;
	int error = spokei_journal_note(caller_of(retry)->journal, &entry->ticket, tried, waits);

	if (error == SPOKE_OK)
		entry->unsure = tried->unsure;
	return error;
}

/* --- tickets that begin */

/* Why a journal that is broken, or not used, has not taken a ticket. */
static const char *why_unusable(const struct spokei_journal *journal)
{
	if (journal->stage == SPOKEI_JOURNAL_READING)
		return "the journal cannot be read yet";
	return journal->stage >= SPOKEI_JOURNAL_UNUSABLE ? "the journal is not used"
							 : "the journal cannot be written";
}

/* Why the journal has not taken a ticket. */
static const char *why_not(const struct spokei_journal *journal, int error)
{
	switch (error) {
	case SPOKE_ELIMIT:
		return "the journal is full, or writes too slowly";
	case SPOKE_ETOOLARGE:
		return "it is too large for the journal";
	case SPOKE_ETIMEOUT:
		return "the journal was not written within journal.wait";
	case SPOKE_ENOMEM:
		return "there is no memory for the journal";
	default:
		return why_unusable(journal);
	}
}

size_t spokei_journalled_print(const struct spokei_journal *journal, int error, char *out,
			       size_t size)
{
	char text[SPOKEI_STATUS_TEXT] = "";
	const char *reason = error == SPOKE_ESYSTEM && journal->failure
				     ? spokei_status_text(journal->failure, text)
				     : NULL;
	int len = snprintf(out, size, "not deferred: %s%s%s", why_not(journal, error),
			   reason ? ": " : "", reason ? reason : "");

	SPOKE_ASSERT(len > 0);
	return (size_t)len < size ? (size_t)len : size - 1;
}

/* Sets the result of a call that is refused instead of deferred: its own error, and why. */
static void refuse(struct spokei_retry_state *retry, int error)
{
	struct spokei_ending *ending = &retry->ending;

	if (error == SPOKE_ELIMIT || error == SPOKE_ETOOLARGE || error == SPOKE_ENOMEM)
		ending->error = error;
	ending->text_len = (uint8_t)spokei_journalled_print(caller_of(retry)->journal, error,
							    (char *)ending->text,
							    sizeof(ending->text));
	ending->class_len = 0;
}

bool spokei_journalled_begin(struct spokei_retry_state *retry)
{
	struct spokei_caller *caller = caller_of(retry);
	const struct spokei_call_settings *settings = &retry->call->method->settings;
	const struct spoke_env *env = caller->engine->env;
	uint64_t age_ns = spokei_retry_state_age(retry, caller->engine->begin_ns);
	uint64_t wall_ns = env->wall(env->ctx);
	const struct spokei_record_open open = {
		.begun_ns = wall_ns > age_ns ? wall_ns - age_ns : 0,
		.lasts_ns = retry->lasts_ns,
		.period_ns = settings->period_ns,
		.retries = spokei_settings_retries(settings, retry->args.policy),
		.flags = (retry->args.one_way ? SPOKEI_RECORD_ONE_WAY : 0) |
			 (settings->once && !settings->idempotent ? SPOKEI_RECORD_ONCE : 0),
	};
	struct spokei_journalled *entry;
	int error = SPOKE_ENOMEM;

	/* The lease of a call ends with this process, and other policies have no other to go on
	 * with. */
	if (retry->id == 0 || spokei_retry_state_is_leased(retry))
		return true;
	entry = new_entry(env, &open);
	if (entry) {
		entry->retry = retry;
		error = spokei_journal_add(caller->journal, &entry->ticket, retry->id);
	}
	if (!error) {
		retry->journalled = entry;
		return true;
	}
	spokei_free(env, entry, 1, sizeof(*entry));
	if (caller->journal_is_optional)
		return true;
	if (error == SPOKE_ELIMIT)
		error = spokei_link_refused(caller->link, error, SPOKEI_REFUSED_BY_JOURNAL);
	refuse(retry, error);
	if (retry->inside_call)
		caller->journal_refusal = error;
	return false;
}

/* The journal has not taken a ticket that the user does not know of yet, in time. */
static void give_up(struct spokei_retry_state *retry, int error)
{
	if (caller_of(retry)->journal_is_optional) {
		spokei_call_tell_ticket(retry->call);
		return;
	}
	refuse(retry, error);
	spokei_call_end_later(retry->call, SPOKE_TICKET_REFUSED, retry->ending.error);
}

void spokei_journalled_waited(struct spokei_journal_ticket *ticket, int error)
{
	struct spokei_journalled *entry = entry_of(ticket);
	struct spokei_retry_state *retry = entry->retry;

	if (retry->state == SPOKEI_CALL_OVER)
		return; /* its user is about to be told */
	if (retry->ticket == SPOKEI_TICKET_DUE) {
		if (error)
			give_up(retry, error);
		else
			spokei_call_tell_ticket(retry->call);
		return;
	}
	if (error && !caller_of(retry)->journal_is_optional)
		return; /* it is tried again after a pause */
	entry->cleared = retry->begun + 1;
	spokei_retry_resume(retry);
}

/* --- attempts */

bool spokei_journalled_is_once(const struct spokei_retry_state *retry)
{
	const struct spokei_call_settings *settings = &retry->call->method->settings;

	return !settings->idempotent &&
	       (settings->once ||
		(retry->journalled && (retry->journalled->flags & SPOKEI_RECORD_ONCE)));
}

bool spokei_journalled_holds(struct spokei_retry_state *retry)
{
	struct spokei_journalled *entry = retry->journalled;
	const bool waits = !retry->call->method->settings.idempotent;
	char mark[SPOKEI_REPEAT_MARK];
	struct spokei_record_tried tried = tried_of(retry, mark);
	int error;

	if (retry->begun < entry->cleared)
		return false;
	if (entry->ticket.waiting.next)
		return true;
	tried.attempts++;
	tried.unsure = true;
	error = note(retry, &tried, waits);
	if (error == SPOKE_OK)
		entry->noted = tried.attempts;
	if (!waits || (error && caller_of(retry)->journal_is_optional))
		return false;
	/* On a full disk attempts go on without a record, unless the request might run twice for
	 * want of it. */
	if (error == SPOKE_ELIMIT && caller_of(retry)->journal->full &&
	    (entry->unsure || !spokei_journalled_is_once(retry)))
		return false;
	if (error == SPOKE_OK && entry->ticket.waiting.next == NULL)
		entry->cleared = tried.attempts;
	return retry->begun >= entry->cleared;
}

void spokei_journalled_sent(const struct spokei_retry_state *retry)
{
	char mark[SPOKEI_REPEAT_MARK];
	struct spokei_record_tried tried = tried_of(retry, mark);

	/* An instance has become known that can recognise a repeat. */
	if (retry->bound || tried.mark.len == 0)
		return;
	tried.attempts++;
	(void)!note(retry, &tried, false);
}

void spokei_journalled_attempt_ended(const struct spokei_retry_state *retry)
{
	char mark[SPOKEI_REPEAT_MARK];
	struct spokei_record_tried tried = tried_of(retry, mark);

	(void)!note(retry, &tried, false);
}

enum spoke_ticket_settlement spokei_journalled_end(struct spokei_retry_state *retry,
						   enum spoke_ticket_settlement settlement)
{
	struct spokei_journal *journal = caller_of(retry)->journal;
	struct spokei_journal_ticket *ticket = &retry->journalled->ticket;

	if (settlement == SPOKE_TICKET_CLOSING && retry->ticket == SPOKEI_TICKET_HELD) {
		spokei_journal_keep(journal, ticket);
		settlement = SPOKE_TICKET_KEPT;
	} else {
		spokei_journal_settle(journal, ticket, settlement);
	}
	free_entry(retry);
	return settlement;
}

/* --- tickets of earlier processes */

/* Checks the parts of a call that come from the disk, and puts its arguments together. */
static int read_args(const struct spoke_method *method, const struct spokei_record_open *open,
		     struct spokei_call_args *ret)
{
	const struct spoke_policy *policy = method->settings.policy;
	const struct spoke_value attachments = { open->attachments.data, open->attachments.len };
	struct spoke_cursor cursor;

	*ret = (struct spokei_call_args){
		.values = open->arguments,
		.attachments = attachments,
		.key = open->key,
		.timeout_ns = method->settings.timeout_ns,
		.policy = policy->repeats ? policy : &spoke_policy_failback,
		.one_way = open->flags & SPOKEI_RECORD_ONE_WAY,
	};
	if (spoke_values_check(open->arguments.data, open->arguments.len, &spokei_link_own_values,
			       &cursor, &ret->count) != SPOKE_OK)
		return SPOKE_ECORRUPT;
	if (attachments.len > 0 && spokei_attachments_check(attachments, false) != SPOKE_OK)
		return SPOKE_ECORRUPT;
	return SPOKE_OK;
}

/* Has the attempts be spread over the time between two of them. */
static uint64_t pause_of(const struct spoke_env *env, uint64_t period_ns)
{
	uint64_t dice;

	env->dice(env->ctx, &dice, sizeof(dice));
	return period_ns ? dice % period_ns : 0;
}

/* Returns the state of a ticket now. */
static struct spokei_retry_past past_of(const struct spoke_method *method,
					const struct spokei_record_open *open)
{
	const struct spoke_env *env = method->caller->engine->env;
	uint64_t wall_ns = env->wall(env->ctx);
	uint64_t age_ns = wall_ns > open->begun_ns ? wall_ns - open->begun_ns : 0;
	struct spokei_retry_past past = {
		.id_half = spokei_get_64(open->id),
		.id = spokei_get_64(open->id + 8),
		.earlier_ns = age_ns,
		.left_ns = open->lasts_ns > age_ns ? open->lasts_ns - age_ns : 0,
		.attempts = open->tried.attempts,
		.unsure = open->tried.unsure,
		.binds = open->tried.unsure && !method->settings.idempotent,
	};

	if (past.left_ns > 0)
		past.pause_ns = pause_of(env, open->period_ns);
	if (past.binds && open->tried.mark.len > 0)
		(void)spokei_repeat_read(open->tried.mark, &past.instance, &past.since_ms);
	return past;
}

int spokei_journalled_restore(struct spoke_method *method,
			      const struct spokei_replay_ticket *ticket, bool *ret_unknown,
			      bool *ret_expired)
{
	const struct spokei_record_open *open = &ticket->open;
	struct spokei_caller *caller = method->caller;
	struct spokei_retry_past past = past_of(method, open);
	struct spokei_call_args args;
	struct spokei_call *call;
	int error;

	past.journalled = new_entry(caller->engine->env, open);
	if (past.journalled == NULL)
		return SPOKE_ENOMEM;
	error = read_args(method, open, &args);
	if (!error)
		error = spokei_call_new_ticket(method, &args, &call);
	if (!error || error == SPOKE_ECORRUPT)
		spokei_journal_adopt(caller->journal, &past.journalled->ticket, ticket);
	if (error) {
		if (error == SPOKE_ECORRUPT)
			spokei_journal_settle(caller->journal, &past.journalled->ticket,
					      SPOKE_TICKET_REFUSED);
		spokei_free(caller->engine->env, past.journalled, 1, sizeof(*past.journalled));
		return error;
	}
	past.journalled->retry = call->retry;
	*ret_unknown = past.unsure && (open->flags & SPOKEI_RECORD_ONCE) &&
		       !method->settings.idempotent;
	*ret_expired = !*ret_unknown && past.left_ns == 0;
	spokei_retry_restore(call, &past);
	if (*ret_unknown)
		spokei_call_end_later(call, SPOKE_TICKET_UNKNOWN, SPOKE_ELOST);
	return SPOKE_OK;
}
