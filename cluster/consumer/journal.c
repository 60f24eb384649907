/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a consumer: begun with it, read for the tickets of earlier processes, and closed
 * after its last call. */
#include "cluster/journal/journal.h"

#include "cluster/call/caller.h"
#include "cluster/call/journalled.h"
#include "cluster/call/method.h"
#include "cluster/consumer/parts.h"
#include "cluster/consumer/settings.h"
#include "core/base/env.h"
#include "core/base/siphash.h"
#include "core/engine/engine.h"

#include <spoke/consumer.h>

#include <stdio.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

struct spokei_consumer_journal {
	struct spoke_consumer *consumer;
	struct spokei_journal journal;
	struct spoke_recovered recovered;
};

/* --- tickets of earlier processes */

static bool is_same(struct spoke_span one, struct spoke_span other)
{
	return one.len == other.len && (one.len == 0 || memcmp(one.data, other.data, one.len) == 0);
}

static bool is_any(struct spoke_span text)
{
	return text.len == 1 && *(const char *)text.data == '*';
}

/* Is this the method of a ticket? */
static bool is_method_of(const struct spoke_method *method, const struct spokei_record_open *open)
{
	const struct spokei_message *request = &method->request;

	return is_same(method->service, open->service) && is_same(request->method, open->method) &&
	       method->any_version == is_any(open->version) &&
	       method->any_group == is_any(open->group) &&
	       (method->any_version || is_same(request->version, open->version)) &&
	       (method->any_group || is_same(request->group, open->group));
}

/* Copies a text, with a NUL. Returns where the next one goes. */
static char *put_text(char *at, struct spoke_span text, const char **ret)
{
	*ret = at;
	if (text.len)
		memcpy(at, text.data, text.len);
	at[text.len] = '\0';
	return at + text.len + 1;
}

/* Makes a method that the program has not, or not yet. */
static int make_method(struct spoke_consumer *consumer, const struct spokei_record_open *open,
		       struct spoke_method **ret_method)
{
	const struct spoke_env *env = consumer->engine->env;
	size_t size = open->service.len + open->method.len + open->version.len + open->group.len +
		      4;
	struct spoke_method_options options = { .service = NULL };
	const char *name;
	char *texts = spokei_alloc(env, 1, size);
	int error;

	if (texts == NULL)
		return SPOKE_ENOMEM;
	(void)put_text(put_text(put_text(put_text(texts, open->service, &options.service),
					 open->version, &options.version),
				open->group, &options.group),
		       open->method, &name);
	error = spoke_consumer_method(consumer, name, &options, ret_method);
	spokei_free(env, texts, 1, size);
	return error;
}

static int find_method(struct spoke_consumer *consumer, const struct spokei_record_open *open,
		       struct spoke_method **ret_method)
{
	const struct spoke_list *methods = &consumer->caller->methods;

	for (struct spoke_list *node = methods->next; node != methods; node = node->next) {
		*ret_method = spoke_container_of(node, struct spoke_method, node);
		if (is_method_of(*ret_method, open))
			return SPOKE_OK;
	}
	return make_method(consumer, open, ret_method);
}

static void report_left(const struct spokei_consumer_journal *journal,
			const struct spokei_replay_ticket *ticket, int error)
{
	spokei_event(journal->consumer->engine, error,
		     "journal %.96s: ticket %016llx cannot be taken: %s",
		     journal->journal.options.folder, (unsigned long long)ticket->number,
		     spoke_strerror(error));
}

static int restore(void *arg, const struct spokei_replay_ticket *ticket)
{
	struct spokei_consumer_journal *journal = arg;
	struct spoke_consumer *consumer = journal->consumer;
	struct spoke_method *method;
	bool unknown = false;
	bool expired = false;
	int error = consumer->caller->closed ? SPOKE_ECLOSED : SPOKE_OK;

	/* The folder is that of a provider. */
	if (ticket->kind != SPOKEI_RECORD_OPEN)
		return SPOKE_EINVAL;
	if (!error)
		error = find_method(consumer, &ticket->open, &method);
	if (!error)
		error = spokei_journalled_restore(method, ticket, &unknown, &expired);
	if (error == SPOKE_ECLOSED || error == SPOKE_ENOMEM)
		return error;
	if (error) {
		report_left(journal, ticket, error);
		journal->recovered.damaged++;
		return error == SPOKE_ECORRUPT ? SPOKE_OK : error;
	}
	journal->recovered.tickets += !unknown && !expired;
	journal->recovered.expired += expired;
	journal->recovered.unknown += unknown;
	spokei_count(consumer->engine, SPOKE_STAT_TICKETS_RECOVERED);
	return SPOKE_OK;
}

static void recovered(void *arg, const struct spokei_journal_found *found)
{
	struct spokei_consumer_journal *journal = arg;
	const struct spokei_consumer_settings *settings = journal->consumer->settings;
	struct spoke_recovered *report = &journal->recovered;

	report->error = found->error;
	if (!found->error)
		report->damaged += (uint64_t)found->log.damaged + found->skipped;
	report->took_ns = found->took_ns;
	if (!found->error && report->tickets + report->expired + report->unknown > 0) {
		spokei_event(journal->consumer->engine, SPOKE_OK,
			     "journal %.96s: %llu tickets go on, %llu have expired, %llu may have "
			     "run; read in %llu ms",
			     journal->journal.options.folder, (unsigned long long)report->tickets,
			     (unsigned long long)report->expired,
			     (unsigned long long)report->unknown,
			     (unsigned long long)(report->took_ns / NS_PER_MS));
	}
	if (settings->recovered && !journal->consumer->freed)
		settings->recovered(settings->recovered_arg, report);
}

static void closed(void *arg)
{
	struct spokei_consumer_journal *journal = arg;

	spokei_run_freeing(journal->consumer->engine, &journal->consumer->finalise);
}

static const struct spokei_journal_up up = {
	.put = spokei_journalled_put,
	.waited = spokei_journalled_waited,
	.restore = restore,
	.recovered = recovered,
	.closed = closed,
};

/* --- its life */

/* Tickets of a consumer without a journal survive nothing: tells a user who has asked for more. */
static void check_durability(const struct spoke_consumer *consumer)
{
	struct spokei_key_values values;

	spokei_settings_look(&consumer->settings->keys, &values);
	if (values.from[SPOKEI_KEY_DURABILITY] != SPOKEI_FROM_DEFAULT &&
	    values.of[SPOKEI_KEY_DURABILITY] != SPOKEI_DURABILITY_NONE) {
		spokei_event(consumer->engine, SPOKE_EUNSUPPORTED,
			     "\"%.96s\": durability is not followed, since the consumer has no "
			     "journal; its tickets end with the process",
			     consumer->settings->service);
	}
}

int spokei_consumer_journal_begin(struct spoke_consumer *consumer)
{
	static const uint64_t key[2] = { 0x7370006f6b656a00, 1 };
	const struct spokei_journal_settings *settings = &consumer->settings->journal;
	const char *service = consumer->settings->service;
	const struct spoke_env *env = consumer->engine->env;
	struct spokei_consumer_journal *journal;
	struct spokei_journal_options options = {
		.folder = settings->folder,
		.durability = (enum spokei_durability)settings->durability,
		.sync_ns = settings->sync_ns,
		.wait_ns = settings->wait_ns,
		.size_max = settings->size_max,
		.salvages = settings->salvages,
		.consumer = spokei_siphash(key, service, strlen(service)),
	};
	int error;

	if (settings->folder == NULL || *settings->folder == '\0') {
		check_durability(consumer);
		return SPOKE_OK;
	}
	journal = spokei_alloc(env, 1, sizeof(*journal));
	if (journal == NULL)
		return SPOKE_ENOMEM;
	journal->consumer = consumer;
	error = spokei_journal_begin(&journal->journal, consumer->engine, &options, &up, journal);
	if (error) {
		spokei_free(env, journal, 1, sizeof(*journal));
		return error;
	}
	consumer->journal = journal;
	consumer->caller->journal = &journal->journal;
	consumer->caller->journal_is_optional = settings->is_optional;
	return SPOKE_OK;
}

bool spokei_consumer_journal_end(struct spoke_consumer *consumer)
{
	struct spokei_consumer_journal *journal = consumer->journal;

	if (journal == NULL || spokei_journal_is_closed(&journal->journal))
		return true;
	spokei_journal_close(&journal->journal);
	return false;
}

void spokei_consumer_journal_free(struct spoke_consumer *consumer)
{
	struct spokei_consumer_journal *journal = consumer->journal;

	if (journal == NULL)
		return;
	spokei_journal_fini(&journal->journal);
	spokei_free(consumer->engine->env, journal, 1, sizeof(*journal));
}
