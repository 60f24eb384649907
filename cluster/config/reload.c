/* SPDX-License-Identifier: Apache-2.0 */
/* Reloads a configuration file while it is in use. */
#include "cluster/config/config.h"
#include "cluster/config/parts.h"
#include "core/engine/engine.h"
#include "core/engine/notify.h"

#include <signal.h>
#include <stdio.h>

#define RESTART "takes effect after a restart"

/* --- differences */

static bool is_text(enum spokei_key key)
{
	const enum spokei_option_kind kind = spokei_key_row(key)->option.kind;

	return kind == SPOKEI_OPTION_TEXT || kind == SPOKEI_OPTION_LIST;
}

/* Returns whether two entries have the same value. Either may be NULL, but not both. */
static bool is_same(const struct spokei_entry *a, const struct spokei_entry *b)
{
	if (a == NULL || b == NULL)
		return false;
	return is_text(a->key) ? strcmp(a->text, b->text) == 0 : a->number == b->number;
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
	if (listener->told)
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

/* --- reload */

static void tell_all(struct spoke_config *config)
{
	struct spoke_list *users = &config->users;

	for (struct spoke_list *node = users->next; node != users; node = node->next) {
		struct spokei_config_user *user =
			spoke_container_of(node, struct spokei_config_user, node);

		user->changed(user);
	}
}

/* A level that the file no longer sets stays. */
static void set_log(const struct spoke_config *config, struct spoke_engine *engine)
{
	const char *level = spokei_config_log(config);

	if (engine && level)
		(void)!spoke_engine_log(engine, level);
}

int spoke_config_reload(struct spoke_config *config, spoke_config_message_fn told, void *arg)
{
	struct listener listener = { config, told, arg };
	struct spoke_engine *engine = spokei_config_engine(config);
	struct spokei_sheet sheet;
	int error;

	if (engine && spokei_engine_forked(engine))
		return SPOKE_EFORKED;
	if (config->busy || !config->is_file)
		return SPOKE_ESTATE;
	config->busy = true;
	config->news.sentences = 0;
	*config->sentence = '\0';
	error = spokei_config_read_file(config->env, config->name, hear, &listener, &sheet);
	config->news.reloads++;
	config->news.at_ns = config->env->now(config->env->ctx);
	config->news.error = error;
	/* Such keys keep the values of the process's start, however often the file is
	 * reloaded. */
	if (error == SPOKE_OK) {
		tell_differences(&listener, &sheet, &config->first);
		tell_removed(&listener, &sheet, &config->first);
	}
	if (error == SPOKE_OK) {
		spokei_config_drop_sheet(config);
		config->sheet = sheet;
		tell_all(config);
		set_log(config, engine);
	}
	config->busy = false;
	if (config->freed)
		spoke_config_free(config);
	return error;
}

/* --- signal */

static void report_line(void *arg, const char *sentence)
{
	spokei_event(arg, SPOKE_OK, "%s", sentence);
}

static void signal_came(struct spoke_signal *signal)
{
	struct spoke_config *config = spoke_container_of(signal, struct spoke_config, signal);
	struct spoke_engine *engine = signal->engine;
	int error;

	spokei_notify_reloading(engine);
	error = spoke_config_reload(config, report_line, engine);
	spokei_notify_reloaded(engine, error != SPOKE_OK);
	if (error) {
		spokei_event(engine, error,
			     "config: nothing changed; fix the file and send the signal again");
	} else {
		spokei_event(engine, SPOKE_OK, "config: reloaded");
	}
}

int spoke_config_reload_on_signal(struct spoke_config *config, struct spoke_engine *engine)
{
	int error = config->is_file ? spokei_config_allow(config, engine) : SPOKE_ESTATE;

	if (error)
		return error;
	return spoke_signal_watch(engine, &config->signal, SIGHUP, signal_came);
}
