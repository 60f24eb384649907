/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of a provider in its journal: written before their callers get them, read after a
 * start, and forgotten with the entries of the memory. */
#include "cluster/serve/kept.h"

#include "cluster/config/owners.h"
#include "cluster/serve/dedupe.h"
#include "cluster/serve/parts.h"
#include "cluster/serve/routes.h"
#include "core/base/env.h"
#include "core/base/span.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"
#include "transport/wire/message.h"

#include <inttypes.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define TOLD_NS (60000 * NS_PER_MS)   /* one event about answers that are not kept in this time */
#define GATHER_MAX ((size_t)16 << 20) /* bytes of answers that wait for the disk */
/* The files stay below twice the memory of the answers, if all of them are those of this provider.
 */
#define SIZE_MAX_OF_FILES (UINT64_C(1) << 33)
#define ANSWER_ROOM 65536u /* bytes that are free on a full disk before a request runs */
/* Bytes of an answer: with the names its record stays below the bound of all records. */
#define ANSWER_MAX (SPOKEI_JOURNAL_GATHER_MAX - 4096)

/* The part of an entry that the journal knows; owned by the entry. */
struct spokei_kept {
	struct spokei_journal_ticket ticket;
	struct spokei_dedupe_entry *entry;
	struct spoke_request *request; /* its answer is held; NULL: none is */
	struct spokei_copy *answer;    /* of that */
	uint64_t ended_ns;             /* since 1970 */
};

static struct spokei_kept *kept_of(struct spokei_journal_ticket *ticket)
{
	return spoke_container_of(ticket, struct spokei_kept, ticket);
}

static struct spokei_dedupe *dedupe_of(const struct spokei_dedupe_entry *entry)
{
	return spoke_container_of(entry->method->table, struct spokei_dedupe, table);
}

/* --- records */

static struct spoke_span span_of(struct spoke_value value)
{
	return spokei_span(value.data, value.len);
}

/* Sets name, version and group of a service, which are one text with zeros between. */
static void put_service(struct spokei_record_answer *record, const struct spokei_service *service)
{
	const char *at = service->key.data;
	const char *end = at + service->key.len;
	const char *version = at + service->name.len + 1;
	const char *group = memchr(version, 0, (size_t)(end - version));

	SPOKE_ASSERT(group != NULL);
	record->service = service->name;
	record->version = spokei_span(version, (size_t)(group - version));
	record->group = spokei_span(group + 1, (size_t)(end - group - 1));
}

static void put_answer(struct spokei_record_answer *record, const struct spokei_message *answer)
{
	record->dropped = answer->value.len + answer->attachments.len + answer->error_text.len +
				  answer->error_class.len >
			  ANSWER_MAX;
	if (record->dropped)
		return;
	record->error = (uint32_t)answer->error;
	record->error_code = (uint32_t)answer->error_code;
	record->status = answer->status;
	record->value = span_of(answer->value);
	record->attachments = span_of(answer->attachments);
	record->text = answer->error_text;
	record->class_name = answer->error_class;
}

static int put(struct spokei_journal_ticket *ticket, struct spokei_buffer *out)
{
	const struct spokei_kept *kept = kept_of(ticket);
	const struct spokei_dedupe_entry *entry = kept->entry;
	const struct spokei_route *route = entry->method->route;
	struct spokei_record_answer record = {
		.method = route->method,
		.id = spokei_span(entry->key + sizeof(void *), entry->id_len),
		.print = entry->args,
		.caller = entry->caller,
		.ended_ns = kept->ended_ns,
		.keeps_ns = entry->method->keep_ns,
		.dropped = true,
	};
	struct spokei_message answer;

	put_service(&record, route->service);
	if (kept->answer) {
		put_answer(&record, &kept->answer->message);
	} else if (entry->answer) {
		answer = spokei_dedupe_answer_of(entry);
		put_answer(&record, &answer);
	}
	return spokei_record_put_answer(out, ticket->number, &record);
}

/* --- answers that are held */

static void free_kept(const struct spokei_dedupe *dedupe, struct spokei_kept *kept)
{
	const struct spoke_env *env = dedupe->engine->env;

	spokei_copy_free(env, kept->answer);
	spokei_free(env, kept, 1, sizeof(*kept));
}

/* An answer is sent, but would not survive the process. */
static void report_unkept(struct spokei_keeping *keeping, int error)
{
	struct spoke_engine *engine = keeping->dedupe->engine;

	spokei_count(engine, SPOKE_STAT_ANSWERS_UNKEPT);
	if (keeping->told_ns && engine->begin_ns - keeping->told_ns < TOLD_NS)
		return;
	keeping->told_ns = engine->begin_ns;
	spokei_event(engine, error,
		     "journal %.96s: answers are sent that are remembered in memory only: %s",
		     keeping->journal.options.folder,
		     error == SPOKE_ETIMEOUT ? "they were not written within journal.wait"
		     : error == SPOKE_ELIMIT ? "the disk is full, or too slow"
					     : spoke_strerror(error));
}

bool spokei_kept_hold(struct spoke_request *request, const struct spokei_message *answer)
{
	struct spokei_dedupe_entry *entry;
	struct spokei_keeping *keeping;
	struct spokei_kept *kept;
	const struct spoke_env *env;
	int error = SPOKE_ENOMEM;

	if (!spokei_request_is_remembered(request) || !spokei_dedupe_has_run(answer->error))
		return false;
	entry = request->entry;
	keeping = dedupe_of(entry)->keeping;
	if (keeping == NULL || entry->method->keep_ns == 0)
		return false;
	env = request->engine->env;
	kept = spokei_alloc(env, 1, sizeof(*kept));
	if (kept) {
		kept->entry = entry;
		kept->ended_ns = env->wall(env->ctx);
		kept->answer = spokei_copy_new(env, answer);
		if (kept->answer)
			error = spokei_journal_add(&keeping->journal, &kept->ticket,
						   ++keeping->number);
		if (error)
			free_kept(keeping->dedupe, kept);
	}
	if (error) {
		report_unkept(keeping, error);
		return false;
	}
	entry->kept = kept;
	if (kept->ticket.waiting.next) {
		request->holding = SPOKEI_HOLDS;
		kept->request = request;
	} else {
		spokei_copy_free(env, kept->answer);
		kept->answer = NULL;
	}
	return kept->request != NULL;
}

/* The end of the request frees `kept`, if its method is turned off. */
static void release(struct spokei_kept *kept)
{
	struct spoke_request *request = kept->request;
	struct spokei_copy *answer = kept->answer;
	const struct spoke_env *env = request->engine->env;

	kept->request = NULL;
	kept->answer = NULL;
	spokei_request_release(request, &answer->message);
	spokei_copy_free(env, answer);
}

static void waited(struct spokei_journal_ticket *ticket, int error)
{
	struct spokei_kept *kept = kept_of(ticket);

	if (error)
		report_unkept(dedupe_of(kept->entry)->keeping, error);
	release(kept);
}

static void forgotten(struct spokei_dedupe_entry *entry)
{
	struct spokei_dedupe *dedupe = dedupe_of(entry);
	struct spokei_kept *kept = entry->kept;

	SPOKE_ASSERT(kept->request == NULL);
	spokei_journal_forget(&dedupe->keeping->journal, &kept->ticket);
	free_kept(dedupe, kept);
}

int spokei_keeping_check(const struct spokei_keeping *keeping)
{
	return keeping->is_optional ? SPOKE_OK
				    : spokei_journal_check(&keeping->journal, ANSWER_ROOM);
}

/* --- answers of earlier processes */

/* Makes a message of the parts that come from the disk. Returns whether they are valid. */
static bool read_answer(const struct spokei_record_answer *record, struct spokei_message *ret)
{
	struct spoke_value value;

	*ret = (struct spokei_message){
		.kind = SPOKEI_REPLY,
		.error = (int)record->error,
		.error_code = (int32_t)record->error_code,
		.status = (uint8_t)record->status,
		.value = { record->value.data, record->value.len },
		.attachments = { record->attachments.data, record->attachments.len },
		.error_text = record->text,
		.error_class = record->class_name,
	};
	if (!spokei_dedupe_has_run(ret->error) || record->id.len > SPOKEI_DEDUPE_ID_MAX)
		return false;
	if (record->value.len > 0 && spoke_value_check(record->value.data, record->value.len,
						       &spokei_link_own_values, &value))
		return false;
	return record->attachments.len == 0 ||
	       spokei_attachments_check(ret->attachments, true) == SPOKE_OK;
}

static struct spokei_dedupe_method *find_method(struct spokei_keeping *keeping,
						const struct spokei_record_answer *record)
{
	const struct spokei_message request = {
		.service = record->service,
		.version = record->version,
		.group = record->group,
		.method = record->method,
	};
	bool has_service;
	const struct spokei_route *route = spokei_routes_find(keeping->services, &request,
							      &has_service);

	return route && route->dedupe && route->dedupe->keep_ns > 0 ? route->dedupe : NULL;
}

static int restore(void *arg, const struct spokei_replay_ticket *ticket)
{
	struct spokei_keeping *keeping = arg;
	struct spoke_engine *engine = keeping->dedupe->engine;
	const struct spokei_record_answer *record = &ticket->answer;
	const uint64_t wall_ns = engine->env->wall(engine->env->ctx);
	struct spokei_dedupe_asked asked = { .repeat = false };
	struct spokei_dedupe_method *method;
	struct spokei_message answer;
	struct spokei_kept *kept;

	/* The folder is that of a consumer: its tickets stay. */
	if (ticket->kind != SPOKEI_RECORD_ANSWER)
		return SPOKE_EINVAL;
	if (!read_answer(record, &answer))
		return SPOKE_OK;
	if (record->ended_ns > keeping->latest_ns)
		keeping->latest_ns = record->ended_ns;
	/* The hashes of a memory that has begun without the journal are under another key. */
	method = keeping->is_open ? NULL : find_method(keeping, record);
	keeping->unserved += method == NULL;
	if (method == NULL)
		return SPOKE_OK;
	asked.id = record->id;
	asked.args = record->print;
	asked.caller = record->caller;
	kept = spokei_alloc(engine->env, 1, sizeof(*kept));
	if (kept == NULL)
		return SPOKE_ENOMEM;
	kept->ended_ns = record->ended_ns;
	kept->entry = spokei_dedupe_restore(method, &asked, record->dropped ? NULL : &answer,
					    wall_ns > record->ended_ns ? wall_ns - record->ended_ns
								       : 0,
					    engine->env->now(engine->env->ctx));
	keeping->expired += kept->entry == NULL;
	if (kept->entry == NULL) {
		free_kept(keeping->dedupe, kept);
		return SPOKE_OK;
	}
	kept->entry->kept = kept;
	keeping->recovered++;
	spokei_count(engine, SPOKE_STAT_ANSWERS_RECOVERED);
	spokei_journal_adopt(&keeping->journal, &kept->ticket, ticket);
	return SPOKE_OK;
}

/* The clock of the memory goes on where that of the process before has ended, also if the machine
 * was started anew meanwhile. If it was set back, repeats that were written before have to look for
 * an instance that is gone. */
static void name(struct spokei_keeping *keeping, const struct spokei_journal_found *found)
{
	struct spokei_dedupe_table *table = &keeping->dedupe->table;
	const struct spoke_env *env = keeping->dedupe->engine->env;
	uint64_t wall_ns = env->wall(env->ctx);

	spokei_dedupe_name(table, found->journal, wall_ns - env->now(env->ctx));
	if (wall_ns < keeping->latest_ns)
		spokei_dedupe_renew(table);
}

static void recovered(void *arg, const struct spokei_journal_found *found)
{
	struct spokei_keeping *keeping = arg;
	struct spoke_engine *engine = keeping->dedupe->engine;

	/* The files could not be read, which is tried again: until then nothing is accepted, unless
	 * the memory may do without them for good. */
	if (found->error && keeping->journal.stage != SPOKEI_JOURNAL_UNUSABLE &&
	    !keeping->is_optional)
		return;
	if (!found->error && !keeping->is_open)
		name(keeping, found);
	if (!found->error && keeping->recovered + keeping->expired + keeping->unserved > 0) {
		spokei_event(engine, SPOKE_OK,
			     "journal %.96s: %" PRIu64 " answers are remembered, %" PRIu64
			     " are forgotten by their time or number, %" PRIu64
			     " by their methods; read in %" PRIu64 " ms",
			     keeping->journal.options.folder, keeping->recovered, keeping->expired,
			     keeping->unserved, found->took_ns / NS_PER_MS);
	}
	spokei_dedupe_changed(keeping->dedupe);
	if (!keeping->is_open)
		keeping->opened(keeping->arg);
	keeping->is_open = true;
}

/* Answers that could not be written at the end are given all the same. */
static void closed(void *arg)
{
	struct spokei_keeping *keeping = arg;
	struct spokei_journal *journal = &keeping->journal;

	while (!spokei_list_empty(&journal->waiting)) {
		struct spoke_list *node = spokei_list_first(&journal->waiting);

		spokei_list_remove(node);
		waited(spoke_container_of(node, struct spokei_journal_ticket, waiting),
		       SPOKE_ECLOSED);
	}
	keeping->closed(keeping->arg);
}

/* --- life */

static const struct spokei_journal_up up = {
	.put = put,
	.waited = waited,
	.restore = restore,
	.recovered = recovered,
	.closed = closed,
};

int spokei_keeping_begin(struct spokei_dedupe *dedupe, const struct spokei_keeping_options *of)
{
	const struct spokei_journal_settings *settings = of->settings;
	const struct spokei_journal_options options = {
		.folder = settings->folder,
		.durability = (enum spokei_durability)settings->durability,
		.sync_ns = settings->sync_ns,
		.wait_ns = settings->wait_ns,
		.size_max = SIZE_MAX_OF_FILES,
		.gather_max = GATHER_MAX,
		.salvages = settings->salvages,
		.no_ends = true,
	};
	const struct spoke_env *env = dedupe->engine->env;
	struct spokei_keeping *keeping = spokei_alloc(env, 1, sizeof(*keeping));
	int error;

	if (keeping == NULL)
		return SPOKE_ENOMEM;
	keeping->dedupe = dedupe;
	keeping->services = of->services;
	keeping->is_optional = settings->is_optional;
	keeping->opened = of->opened;
	keeping->closed = of->closed;
	keeping->arg = of->arg;
	env->dice(env->ctx, &keeping->number, sizeof(keeping->number));
	error = spokei_journal_begin(&keeping->journal, dedupe->engine, &options, &up, keeping);
	if (error) {
		spokei_free(env, keeping, 1, sizeof(*keeping));
		return error;
	}
	dedupe->table.forgotten = forgotten;
	dedupe->keeping = keeping;
	return SPOKE_OK;
}

bool spokei_keeping_end(struct spokei_dedupe *dedupe)
{
	struct spokei_keeping *keeping = dedupe->keeping;

	if (keeping == NULL || spokei_journal_is_closed(&keeping->journal))
		return true;
	spokei_journal_close(&keeping->journal);
	return false;
}

void spokei_keeping_free(struct spokei_dedupe *dedupe)
{
	struct spokei_keeping *keeping = dedupe->keeping;

	if (keeping == NULL)
		return;
	spokei_journal_fini(&keeping->journal);
	spokei_free(dedupe->engine->env, keeping, 1, sizeof(*keeping));
}
