/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and frees configuration files, registers their users and reads values. */
#include "cluster/config/config.h"

#include "cluster/config/parts.h"
#include "core/engine/engine.h"
#include "core/text/secret.h"

#include <spoke/host.h>

#include <errno.h>
#include <stdio.h>

/* --- reading */

/* Makes a config from a sheet; frees the sheet on error. */
static int make_config(const struct spoke_env *env, const char *name, struct spokei_sheet *sheet,
		       struct spoke_config **ret_config)
{
	struct spoke_config *config = spokei_alloc(env, 1, sizeof(*config));

	if (config == NULL)
		goto err_after_sheet;
	config->name_size = strlen(name) + 1;
	config->name = spokei_alloc_unset(env, config->name_size);
	if (config->name == NULL)
		goto err_after_config;
	memcpy(config->name, name, config->name_size);
	config->env = env;
	config->sheet = *sheet;
	config->first = *sheet;
	spokei_list_init(&config->users);
	*ret_config = config;
	return SPOKE_OK;

err_after_config:
	spokei_free(env, config, 1, sizeof(*config));
err_after_sheet:
	spokei_sheet_fini(sheet);
	return SPOKE_ENOMEM;
}

int spoke_config_load(const struct spoke_env *env, const char *path, spoke_config_message_fn told,
		      void *arg, struct spoke_config **ret_config)
{
	struct spokei_sheet sheet;
	int error;

	if (path == NULL || ret_config == NULL)
		return SPOKE_EINVAL;
	if (env == NULL)
		env = spoke_host_env();
	error = spokei_reading_file(env, path, told, arg, &sheet);
	if (error)
		return error;
	error = make_config(env, path, &sheet, ret_config);
	if (error)
		spokei_reading_complain(path, told, arg, "out of memory");
	else
		(*ret_config)->is_file = true;
	return error;
}

int spoke_config_parse(const struct spoke_env *env, const char *name, struct spoke_span text,
		       spoke_config_message_fn told, void *arg, struct spoke_config **ret_config)
{
	struct spokei_sheet sheet;
	int error;

	if (name == NULL || ret_config == NULL || (text.data == NULL && text.len > 0))
		return SPOKE_EINVAL;
	if (env == NULL)
		env = spoke_host_env();
	error = spokei_sheet_read(env, name, text, told, arg, &sheet);
	if (error)
		return error;
	error = make_config(env, name, &sheet, ret_config);
	if (error)
		spokei_reading_complain(name, told, arg, "out of memory");
	return error;
}

void spokei_config_drop_sheet(struct spoke_config *config)
{
	if (config->sheet.text != config->first.text)
		spokei_sheet_fini(&config->sheet);
}

void spoke_config_free(struct spoke_config *config)
{
	const struct spoke_env *env;

	if (config == NULL)
		return;
	config->freed = true;
	while (!spokei_list_empty(&config->users))
		spokei_config_leave(spoke_container_of(spokei_list_first(&config->users),
						       struct spokei_config_user, node));
	(void)spoke_signal_cancel(&config->signal);
	if (config->busy)
		return;
	env = config->env;
	spokei_config_drop_sheet(config);
	spokei_sheet_fini(&config->first);
	spokei_free(env, config->name, 1, config->name_size);
	spokei_free(env, config, 1, sizeof(*config));
}

/* --- users */

struct spoke_engine *spokei_config_engine(const struct spoke_config *config)
{
	if (spokei_list_empty(&config->users))
		return config->signal.engine;
	return spoke_container_of(config->users.next, struct spokei_config_user, node)->engine;
}

int spokei_config_allow(const struct spoke_config *config, struct spoke_engine *engine)
{
	const struct spoke_engine *other = spokei_config_engine(config);

	if (other == NULL || other == engine)
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL,
		     "option config: belongs to another engine; load one config per engine");
	return SPOKE_EINVAL;
}

int spokei_config_join(struct spokei_config_user *user, struct spoke_engine *engine)
{
	int error;

	if (user->config == NULL)
		return SPOKE_OK;
	error = spokei_config_allow(user->config, engine);
	if (error)
		return error;
	user->engine = engine;
	spokei_list_append(&user->config->users, &user->node);
	return SPOKE_OK;
}

void spokei_config_leave(struct spokei_config_user *user)
{
	if (user->config && user->node.next)
		spokei_list_remove(&user->node);
	user->node = (struct spoke_list){ NULL, NULL };
	user->config = NULL;
}

/* --- values */

static void read_entry(const struct spokei_entry *entry, struct spokei_key_values *values)
{
	if (spokei_key_is_text(entry->key))
		spokei_keys_put_text(values, entry->key, entry->text, SPOKEI_FROM_FILE,
				     entry->line);
	else
		spokei_keys_put(values, entry->key, entry->number, SPOKEI_FROM_FILE, entry->line);
}

static void read_part(const struct spokei_part *part, struct spokei_key_values *values)
{
	for (const struct spokei_entry *entry = part ? part->first : NULL; entry;
	     entry = entry->next)
		read_entry(entry, values);
}

void spokei_config_read(const struct spoke_config *config, enum spokei_section kind,
			struct spoke_span name, struct spokei_key_values *values)
{
	if (config)
		read_part(spokei_sheet_part(&config->sheet, kind, name), values);
}

void spokei_config_read_method(const struct spoke_config *config, struct spoke_span service,
			       const char *method, struct spokei_key_values *values)
{
	const struct spoke_span name = { (const unsigned char *)method, strlen(method) };

	if (config == NULL)
		return;
	read_part(spokei_sheet_part(&config->sheet, SPOKEI_IN_METHOD, name), values);
	read_part(spokei_sheet_method(&config->sheet, service, method), values);
}

void spokei_config_read_in_force(const struct spoke_config *config, enum spokei_section kind,
				 struct spokei_key_values *values)
{
	const struct spoke_span no_name = { NULL, 0 };

	for (unsigned live = 0; config && live < 2; live++) {
		const struct spokei_part *part =
			spokei_sheet_part(live ? &config->sheet : &config->first, kind, no_name);

		for (const struct spokei_entry *entry = part ? part->first : NULL; entry;
		     entry = entry->next)
			if (spokei_key_row(entry->key)->live == live)
				read_entry(entry, values);
	}
}

/* Returns the sheet whose value of a key is in force: a reload changes live keys only. */
static const struct spokei_sheet *in_force(const struct spoke_config *config, enum spokei_key key)
{
	return spokei_key_row(key)->live ? &config->sheet : &config->first;
}

static const char *text_in(const struct spokei_sheet *sheet, enum spokei_section kind,
			   struct spoke_span name, enum spokei_key key)
{
	const struct spokei_entry *entry = spokei_sheet_entry(spokei_sheet_part(sheet, kind, name),
							      key);

	return entry ? entry->text : NULL;
}

const char *spokei_config_text(const struct spoke_config *config, enum spokei_section kind,
			       struct spoke_span name, enum spokei_key key)
{
	return config ? text_in(&config->sheet, kind, name, key) : NULL;
}

const char *spokei_config_text_in_force(const struct spoke_config *config, enum spokei_section kind,
					struct spoke_span name, enum spokei_key key)
{
	return config ? text_in(in_force(config, key), kind, name, key) : NULL;
}

bool spokei_config_reloads(const struct spoke_config *config)
{
	return config && config->busy;
}

ssize_t spokei_config_read_secret(const struct spoke_config *config, const struct spoke_env *env,
				  const char *path, void *bytes, size_t size)
{
	ssize_t got = config && config->applying
			      ? spokei_reading_secret(&config->reading, path, bytes, size)
			      : -ENODATA;

	return got == -ENODATA ? env->files->read_secret(env->ctx, path, bytes, size) : got;
}

struct spokei_config_news spokei_config_look(const struct spoke_config *config)
{
	struct spokei_config_news news = config->news;

	news.name = config->name;
	news.sentence = config->sentence;
	return news;
}

const char *spokei_config_log(const struct spoke_config *config)
{
	struct spokei_key_values values = { .said = { false } };

	spokei_config_read(config, SPOKEI_IN_ENGINE, (struct spoke_span){ NULL, 0 }, &values);
	if (!values.said[SPOKEI_KEY_LOG])
		return NULL;
	return spokei_key_row(SPOKEI_KEY_LOG)->option.names((unsigned)values.of[SPOKEI_KEY_LOG]);
}

/* Sets the options that are 0 or NULL from a section without a name. */
static void complete(const struct spoke_config *config, enum spokei_section section,
		     enum spokei_fields_of of, void *options)
{
	const struct spoke_span no_name = { NULL, 0 };
	const struct spokei_part *part = config ? spokei_sheet_part(&config->sheet, section,
								    no_name)
						: NULL;

	for (const struct spokei_entry *entry = part ? part->first : NULL; entry;
	     entry = entry->next) {
		const struct spokei_field *field = spokei_key_field(entry->key, of);

		if (field == NULL)
			continue;
		if (field->type != SPOKEI_FIELD_TEXT && spokei_field_get(field, options) == 0)
			spokei_field_set(field, options, entry->number);
		if (field->type == SPOKEI_FIELD_TEXT && spokei_field_text(field, options) == NULL)
			spokei_field_set_text(field, options, entry->text);
	}
}

void spoke_config_comet(const struct spoke_config *config, struct spoke_comet_options *options)
{
	complete(config, SPOKEI_IN_COMET, SPOKEI_AT_COMET, options);
}

void spoke_config_engine(const struct spoke_config *config, struct spoke_engine_options *options)
{
	const uint64_t spin_ns = options->spin_ns;

	complete(config, SPOKEI_IN_ENGINE, SPOKEI_AT_ENGINE, options);
	/* A loop of the user waits as its user programs it. */
	if (options->native)
		options->spin_ns = spin_ns;
	if (options->log == NULL)
		options->log = spokei_config_log(config);
}

const char *spoke_config_get(const struct spoke_config *config, const char *section,
			     const char *key)
{
	enum spokei_section kind;
	const char *name;

	if (config == NULL || section == NULL || key == NULL ||
	    !spokei_sheet_heading(section, &kind, &name))
		return NULL;
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const struct spoke_span of = { (const unsigned char *)name, strlen(name) };

		if (spokei_key_row(i)->sections & 1u << kind &&
		    strcmp(spokei_key_in_file(i), key) == 0)
			return spokei_config_text(config, kind, of, i);
	}
	return NULL;
}
