/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the settings of an owner from all sources, copies their texts, and renews them. */
#include "cluster/config/settings.h"

#include "cluster/config/places.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/text/option.h"
#include "transport/stream/tls/tls.h"
#include <string.h>

/* --- sources */

/* Sections with a name override those without. */
static void read_sections(const struct spokei_settings *settings, unsigned sections,
			  struct spoke_span service, struct spokei_key_values *ret)
{
	const struct spoke_span none = { NULL, 0 };

	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < SPOKEI_SECTIONS; i++) {
			const enum spokei_section section = (enum spokei_section)i;
			const bool named = spokei_section_is_named(section);

			if (sections & 1u << i && named == (pass == 1))
				spokei_config_read(settings->file.config, section,
						   named ? service : none, ret);
		}
	}
}

/* Reads the values that apply to all methods. */
static int read_wide(const struct spokei_settings *settings, unsigned sections,
		     struct spoke_span service, struct spokei_key_values *ret)
{
	int error = SPOKE_OK;

	spokei_keys_preset(ret);
	if (settings->provided)
		spokei_keys_read_provided(settings->provided, SPOKEI_FROM_PROVIDER, ret);
	read_sections(settings, sections, service, ret);
	if (settings->url)
		error = spokei_keys_read(settings->file.engine, settings->url, ret);
	spokei_keys_lay(ret, &settings->options);
	if (settings->ruled)
		spokei_keys_read_provided(settings->ruled, SPOKEI_FROM_RULE, ret);
	return error;
}

static int read_own(const struct spokei_settings *settings, struct spokei_key_values *ret)
{
	const char *service = settings->service ? settings->service : "";

	return read_wide(settings, settings->kind->sections,
			 (struct spoke_span){ (const unsigned char *)service, strlen(service) },
			 ret);
}

int spokei_settings_read_method(const struct spokei_settings *settings,
				const struct spokei_method_name *name,
				const struct spokei_method_code *code,
				struct spokei_key_values *ret)
{
	int error = read_wide(settings, settings->kind->sections | 1u << SPOKEI_IN_SERVICE,
			      name->service, ret);

	if (error)
		return error;
	if (settings->provided)
		spokei_keys_read_method(settings->provided, name->method, SPOKEI_FROM_PROVIDER,
					ret);
	spokei_config_read_method(settings->file.config, name->service, name->method, ret);
	if (settings->url)
		spokei_keys_read_method(settings->url, name->method, SPOKEI_FROM_URL, ret);
	if (code)
		error = spokei_keys_read_code(settings->file.engine, ret, SPOKEI_IN_METHOD,
					      code->of, code->options);
	if (settings->ruled)
		spokei_keys_read_method(settings->ruled, name->method, SPOKEI_FROM_RULE, ret);
	return error;
}

/* --- texts */

/* Copies a list without the blanks around its items, or another text. Returns the bytes, with the
 * NUL. */
static size_t copy_text(enum spokei_key key, const char *text, char *out)
{
	struct spoke_span item;
	size_t len = 0;

	if (spokei_key_row(key)->option.kind != SPOKEI_OPTION_LIST) {
		len = strlen(text) + 1;
		memcpy(out, text, len);
		return len;
	}
	while (spokei_option_item(&text, &item)) {
		if (item.len > 0)
			memcpy(out + len, item.data, item.len);
		len += item.len;
		out[len++] = ',';
	}
	out[len - 1] = '\0';
	return len;
}

/* Returns whether a value has a text among those that a reload replaces, or among the others. */
static bool has_text(const struct spokei_key_values *values, unsigned key, bool live)
{
	return values->text[key] && spokei_key_row((enum spokei_key)key)->live == live;
}

/* Has `values` refer to copies of its texts. */
static int copy_texts(const struct spoke_env *env, struct spokei_key_values *values, bool live,
		      struct spokei_settings_texts *ret)
{
	size_t size = 0;
	char *at;

	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		if (has_text(values, i, live))
			size += strlen(values->text[i]) + 1;
	if (size == 0)
		return SPOKE_OK;
	at = spokei_alloc(env, 1, size);
	if (at == NULL)
		return SPOKE_ENOMEM;
	*ret = (struct spokei_settings_texts){ at, size };
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const char *text = values->text[i];

		if (!has_text(values, i, live))
			continue;
		values->text[i] = at;
		at += copy_text((enum spokei_key)i, text, at);
	}
	return SPOKE_OK;
}

static void free_texts(const struct spoke_env *env, struct spokei_settings_texts *texts)
{
	spokei_free(env, texts->bytes, 1, texts->size);
	*texts = (struct spokei_settings_texts){ NULL, 0 };
}

/* Has the options refer to the copies, too. Nothing with texts overrides them. */
static void share_texts(struct spokei_settings *settings)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++)
		if (settings->options.text[i])
			settings->options.text[i] = settings->in_force.text[i];
}

/* --- life */

static void fill(struct spokei_settings *settings)
{
	const struct spokei_settings_kind *kind = settings->kind;

	for (unsigned i = 0; i < kind->part_count; i++)
		spokei_keys_fill(&settings->in_force, kind->sections, kind->parts[i].of,
				 (char *)settings->structs + kind->parts[i].at);
}

int spokei_settings_begin(struct spokei_settings *settings, struct spoke_engine *engine)
{
	struct spokei_key_values *values = &settings->in_force;
	int error;

	settings->file.engine = engine;
	settings->file.settings = settings;
	error = spokei_config_join(&settings->file, engine);
	if (error == SPOKE_OK)
		error = read_own(settings, values);
	if (error == SPOKE_OK)
		error = copy_texts(engine->env, values, false, &settings->fixed);
	if (error == SPOKE_OK)
		error = copy_texts(engine->env, values, true, &settings->live);
	if (error)
		return error;
	share_texts(settings);
	fill(settings);
	return SPOKE_OK;
}

void spokei_settings_leave(struct spokei_settings *settings)
{
	spokei_settings_drop(settings);
	spokei_config_leave(&settings->file);
}

void spokei_settings_end(struct spokei_settings *settings, const struct spoke_env *env)
{
	spokei_settings_leave(settings);
	free_texts(env, &settings->fixed);
	free_texts(env, &settings->live);
}

/* Copies the live keys, with or without those that are texts. */
static void renew_from(struct spokei_settings *settings, const struct spokei_key_values *read,
		       bool texts)
{
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const enum spokei_key key = (enum spokei_key)i;

		if (spokei_key_row(key)->live && (texts || !spokei_key_is_text(key)))
			spokei_keys_copy(&settings->in_force, read, key);
	}
	fill(settings);
}

void spokei_settings_renew(struct spokei_settings *settings)
{
	struct spokei_key_values values;

	/* Cannot fail: the sources were read before, and a loaded file is valid. */
	if (read_own(settings, &values) == SPOKE_OK)
		renew_from(settings, &values, false);
}

/* --- a reload */

int spokei_settings_prepare(struct spokei_settings *settings)
{
	const struct spoke_env *env;
	int error;

	if (settings == NULL)
		return SPOKE_OK;
	env = settings->file.engine->env;
	settings->next = spokei_alloc_unset(env, sizeof(*settings->next));
	if (settings->next == NULL)
		return SPOKE_ENOMEM;
	error = read_own(settings, settings->next);
	if (error == SPOKE_OK)
		error = copy_texts(env, settings->next, true, &settings->coming);
	return error || settings->kind->prepare == NULL ? error
							: settings->kind->prepare(settings->owner);
}

static void drop_next(struct spokei_settings *settings)
{
	const struct spoke_env *env = settings->file.engine->env;

	spokei_free(env, settings->next, 1, sizeof(*settings->next));
	settings->next = NULL;
	free_texts(env, &settings->coming);
}

void spokei_settings_take(struct spokei_settings *settings)
{
	const struct spokei_settings_kind *kind = settings ? settings->kind : NULL;
	struct spokei_settings_texts former;

	if (settings == NULL)
		return;
	former = settings->live;
	settings->live = settings->coming;
	settings->coming = former;
	renew_from(settings, settings->next, true);
	share_texts(settings);
	for (unsigned i = 0; i < kind->part_count; i++)
		if (kind->parts[i].apply)
			kind->parts[i].apply(settings->owner);
	if (kind->take)
		kind->take(settings->owner);
	drop_next(settings);
}

void spokei_settings_drop(struct spokei_settings *settings)
{
	if (settings == NULL || settings->next == NULL)
		return;
	if (settings->kind->drop)
		settings->kind->drop(settings->owner);
	drop_next(settings);
}

/* --- TLS */

static int find_mode(struct spoke_engine *engine, const struct spokei_tls_sources *sources,
		     enum spokei_tls_mode *ret)
{
	*ret = (enum spokei_tls_mode)sources->values->of[SPOKEI_KEY_TLS];
	if (sources->options)
		*ret = sources->options->optional ? SPOKEI_TLS_OPTIONAL : SPOKEI_TLS_ON;
	else if (sources->of_url && !spokei_places_tls_mode(sources->of_url, ret)) {
		spokei_event(engine, SPOKE_EINVAL, "tls: use on or off");
		return SPOKE_EINVAL;
	}
	if (sources->section == SPOKEI_IN_PROVIDER || *ret != SPOKEI_TLS_OPTIONAL)
		return SPOKE_OK;
	spokei_event(engine, SPOKE_EINVAL,
		     "tls: a consumer never falls back to plain connections; use on or off");
	return SPOKE_EINVAL;
}

static struct spokei_tls_options options_of(const struct spokei_tls_sources *sources)
{
	const unsigned named = sources->values->of[SPOKEI_KEY_TLS_MIN] ? 12 : 13;
	struct spokei_tls_options options = {
		.accepts = sources->section == SPOKEI_IN_PROVIDER,
		.oldest = sources->options && sources->options->oldest ? sources->options->oldest
								       : named,
	};

	spokei_keys_fill(sources->values, 1u << sources->section, SPOKEI_AT_FILES, &options);
	spokei_keys_fill(sources->values, 1u << sources->section, SPOKEI_AT_HANDSHAKES,
			 &options.limits);
	return options;
}

/* Files and rules of TLS without TLS are a mistake mostly, and a link would be plain without a
 * word.
 */
static void tell_of_unused(struct spoke_engine *engine, const struct spokei_tls_sources *sources,
			   const struct spokei_tls_options *options)
{
	const char *key = options->ca      ? "tls.ca"
			  : options->cert  ? "tls.cert"
			  : options->crl   ? "tls.crl"
			  : options->peers ? "tls.peers"
					   : NULL;

	if (key == NULL && options->verify != SPOKE_TLS_VERIFY_DEFAULT)
		key = "tls.verify";
	if (key && sources->of_url == NULL)
		spokei_event(engine, SPOKE_EINVAL, "tls: %s is set, but TLS is off; set tls = on",
			     key);
}

int spokei_settings_tls(struct spoke_engine *engine, const struct spokei_tls_sources *sources,
			enum spokei_tls_mode *ret_mode, struct spokei_tls **ret_tls)
{
	struct spokei_tls_options options;
	char why[SPOKEI_TLS_WHY];
	int error = find_mode(engine, sources, ret_mode);

	*ret_tls = NULL;
	if (error)
		return error;
	options = options_of(sources);
	if (*ret_mode == SPOKEI_TLS_OFF && (!options.accepts || options.cert == NULL)) {
		tell_of_unused(engine, sources, &options);
		return SPOKE_OK;
	}
	error = spokei_tls_new(engine, &options, why, ret_tls);
	if (error)
		spokei_event(engine, error, "%s", why);
	return error;
}
