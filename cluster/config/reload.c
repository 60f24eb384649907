/* SPDX-License-Identifier: Apache-2.0 */
/* Reloads a configuration file while it is in use. */
#include "cluster/config/config.h"
#include "cluster/config/credentials.h"
#include "cluster/config/parts.h"
#include "core/engine/engine.h"
#include "core/engine/events.h"
#include "core/engine/notify.h"
#include "core/text/secret.h"
#include "transport/stream/tls/tls.h"

#include <signal.h>
#include <stdio.h>

#define RESTART "takes effect after a restart"

/* --- differences */

/* Returns whether two entries have the same value. Either may be NULL, but not both. */
static bool is_same(const struct spokei_entry *a, const struct spokei_entry *b)
{
	if (a == NULL || b == NULL)
		return false;
	return spokei_key_is_text(a->key) ? strcmp(a->text, b->text) == 0 : a->number == b->number;
}

static const struct spokei_part *same_part(const struct spokei_sheet *sheet,
					   const struct spokei_part *part)
{
	const struct spoke_span name = { (const unsigned char *)part->name, strlen(part->name) };

	return spokei_sheet_part(sheet, part->kind, name);
}

struct listener {
	struct spoke_config *config;
	spoke_config_message_fn told; /* may be NULL */
	void *arg;
};

/* Keeps the first message, and passes all on. */
static void hear(void *arg, const char *sentence)
{
	const struct listener *listener = arg;
	struct spoke_config *config = listener->config;

	if (config->news.sentences++ == 0)
		(void)snprintf(config->sentence, sizeof(config->sentence), "%s", sentence);
	if (listener->told && !config->freed)
		listener->told(listener->arg, sentence);
}

/* Reports the values of `there` that differ from `before` and need a restart. */
static void tell_differences(struct listener *listener, const struct spokei_sheet *there,
			     const struct spokei_sheet *before)
{
	char sentence[SPOKEI_SHEET_SENTENCE_MAX];

	for (size_t i = 0; i < there->part_count; i++) {
		const struct spokei_part *part = &there->parts[i];
		const struct spokei_part *other = same_part(before, part);

		for (const struct spokei_entry *entry = part->first; entry; entry = entry->next) {
			if (spokei_key_row(entry->key)->live ||
			    is_same(entry, spokei_sheet_entry(other, entry->key)))
				continue;
			spokei_sheet_sentence(listener->config->name, entry, RESTART, sentence,
					      sizeof(sentence));
			hear(listener, sentence);
		}
	}
}

/* Reports values that were removed, with their former line. */
static void tell_removed(struct listener *listener, const struct spokei_sheet *now,
			 const struct spokei_sheet *before)
{
	char sentence[SPOKEI_SHEET_SENTENCE_MAX];

	for (size_t i = 0; i < before->part_count; i++) {
		const struct spokei_part *part = &before->parts[i];
		const struct spokei_part *other = same_part(now, part);

		for (const struct spokei_entry *entry = part->first; entry; entry = entry->next) {
			if (spokei_key_row(entry->key)->live ||
			    spokei_sheet_entry(other, entry->key))
				continue;
			spokei_sheet_sentence(listener->config->name, entry,
					      "is removed, which " RESTART, sentence,
					      sizeof(sentence));
			hear(listener, sentence);
		}
	}
}

/* --- users */

static struct spokei_config_user *user_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_config_user, node);
}

/* Keeps the sentence of an error that the engine's newest event explains. */
static void keep_event(struct spoke_config *config, struct spoke_engine *engine, int error)
{
	const struct spoke_event *event = engine ? spokei_events_find(engine->events,
								      engine->events->last)
						 : NULL;
	const char *sentence = event && event->error == error ? event->text : spoke_strerror(error);

	config->news.sentences++;
	(void)snprintf(config->sentence, sizeof(config->sentence), "%s", sentence);
}

static int prepare_users(struct spoke_config *config)
{
	struct spoke_list *users = &config->users;
	int error = SPOKE_OK;

	for (struct spoke_list *node = users->next; node != users && error == SPOKE_OK;
	     node = node->next)
		error = user_at(node)->up->prepare(user_at(node));
	return error;
}

static void end_users(struct spoke_config *config, bool takes)
{
	struct spoke_list *users = &config->users;

	for (struct spoke_list *node = users->next; node != users; node = node->next) {
		struct spokei_config_user *user = user_at(node);

		if (takes)
			user->up->take(user);
		else
			user->up->drop(user);
	}
}

/* Live keys of the first load are not compared again, so their secrets need not stay. */
static void wipe_former(struct spoke_config *config)
{
	const struct spokei_sheet *first = &config->first;

	for (size_t i = 0; i < first->entry_count; i++) {
		const struct spokei_entry *entry = &first->entries[i];
		size_t at = (size_t)(entry->text - first->text);

		if (spokei_key_row(entry->key)->live && spokei_key_row(entry->key)->secret)
			spokei_secret_wipe(first->text + at, strlen(entry->text));
	}
}

/* Uses all that was read, or nothing. */
static int use(struct spoke_config *config)
{
	struct spoke_engine *engine = spokei_config_engine(config);
	struct spokei_sheet before = config->sheet;
	int error = spokei_tls_verdict(&config->reading.tls);

	config->sheet = config->reading.sheet;
	config->applying = true;
	if (error == SPOKE_OK)
		error = prepare_users(config);
	config->applying = false;
	if (error) {
		keep_event(config, engine, error);
		end_users(config, false);
		spokei_sheet_fini(&config->sheet);
		config->sheet = before;
		return error;
	}
	end_users(config, true);
	if (before.text != config->first.text)
		spokei_sheet_fini(&before);
	else
		wipe_former(config);
	return SPOKE_OK;
}

/* --- reload */

/* A level that the file no longer sets stays. */
static void set_log(const struct spoke_config *config, struct spoke_engine *engine)
{
	const char *level = spokei_config_log(config);

	if (engine && level)
		(void)!spoke_engine_log(engine, level);
}

static void begin(struct spoke_config *config)
{
	struct spokei_reading *reading = &config->reading;
	struct spoke_list *users = &config->users;

	config->busy = true;
	spokei_reading_begin(reading, config->env, config->name);
	for (struct spoke_list *node = users->next; node != users; node = node->next) {
		const struct spokei_config_user *user = user_at(node);

		spokei_tls_hold(user->tls, &reading->tls);
		if (user->options) {
			spokei_reading_add(reading, user->options->token_file);
			spokei_reading_add(reading, user->options->access_secret_file);
		}
	}
}

static void end(struct spoke_config *config, bool takes)
{
	spokei_reading_end(&config->reading, takes && !config->freed);
	config->busy = false;
	if (config->freed)
		spoke_config_free(config);
}

/* Goes on when all files have been read; end() follows. Returns as spoke_config_reload(). */
static int finish(struct spoke_config *config, spoke_config_message_fn told, void *arg)
{
	struct listener listener = { config, told, arg };
	struct spokei_reading *reading = &config->reading;
	int error = reading->error;

	config->news.sentences = 0;
	*config->sentence = '\0';
	spokei_reading_tell(reading, hear, &listener);
	config->news.reloads++;
	config->news.at_ns = config->env->now(config->env->ctx);
	/* Such keys keep the values of the process's start, however often the file is
	 * reloaded. */
	if (error == SPOKE_OK) {
		tell_differences(&listener, &reading->sheet, &config->first);
		tell_removed(&listener, &reading->sheet, &config->first);
		error = use(config);
	}
	if (error == SPOKE_OK)
		set_log(config, spokei_config_engine(config));
	config->news.error = error;
	return error;
}

int spoke_config_reload(struct spoke_config *config, spoke_config_message_fn told, void *arg)
{
	struct spoke_engine *engine = spokei_config_engine(config);
	int error = engine ? spokei_engine_check(engine) : SPOKE_OK;

	if (error)
		return error;
	if (config->busy || !config->is_file)
		return SPOKE_ESTATE;
	begin(config);
	spokei_reading_run(&config->reading);
	error = finish(config, told, arg);
	end(config, error == SPOKE_OK);
	return error;
}

/* --- signal */

/* Faults of a file are warnings, like the line that it is not used. */
static void report_line(void *arg, const char *sentence)
{
	const struct spoke_config *config = arg;

	spokei_event(config->signalled, config->reading.error, "%s", sentence);
}

static void read_run(struct spoke_work *work)
{
	spokei_reading_run(&spoke_container_of(work, struct spoke_config, work)->reading);
}

/* Ends a reading that a signal has begun. Returns whether another signal has come. */
static bool conclude(struct spoke_config *config, int status)
{
	struct spoke_engine *engine = config->signalled;
	bool again;
	int error;

	/* In a child the reading belongs to a thread that does not exist here. */
	if (spokei_engine_forked(engine)) {
		config->busy = false;
		return false;
	}
	if (status != 0 || config->freed) {
		if (status == 0 && config->reading.error == SPOKE_OK)
			spokei_sheet_fini(&config->reading.sheet);
		if (status == 0)
			spokei_notify_reloaded(engine, true);
		end(config, false);
		return false;
	}
	error = finish(config, report_line, config);
	spokei_notify_reloaded(engine, error != SPOKE_OK);
	if (error) {
		spokei_event(engine, error,
			     "config: nothing changed; fix the file and send the signal again");
	} else {
		spokei_event(engine, SPOKE_OK, "config: reloaded");
	}
	again = config->again && !config->freed;
	end(config, error == SPOKE_OK);
	return again;
}

/* Has a thread of the pool read, or reads itself if the pool takes no work. */
static void begin_signalled(struct spoke_config *config, void (*done)(struct spoke_work *work))
{
	struct spoke_engine *engine = config->signalled;

	do {
		config->again = false;
		spokei_notify_reloading(engine);
		begin(config);
		config->work = (struct spoke_work){ .run = read_run, .done = done };
		if (engine->env->loop->offload(engine->loop, &config->work) == 0)
			return;
		spokei_reading_run(&config->reading);
	} while (conclude(config, 0));
}

static void read_done(struct spoke_work *work)
{
	struct spoke_config *config = spoke_container_of(work, struct spoke_config, work);

	if (conclude(config, work->status))
		begin_signalled(config, read_done);
}

static void signal_came(struct spoke_signal *signal)
{
	struct spoke_config *config = spoke_container_of(signal, struct spoke_config, signal);

	config->signalled = signal->engine;
	config->again = config->busy;
	if (!config->busy)
		begin_signalled(config, read_done);
}

int spoke_config_reload_on_signal(struct spoke_config *config, struct spoke_engine *engine)
{
	int error = config->is_file ? spokei_config_allow(config, engine) : SPOKE_ESTATE;

	if (error)
		return error;
	return spoke_signal_watch(engine, &config->signal, SIGHUP, signal_came);
}
