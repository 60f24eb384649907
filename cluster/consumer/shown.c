/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the credentials of a consumer. */
#include "cluster/consumer/shown.h"

#include "cluster/config/config.h"
#include "cluster/config/secrets.h"
#include "cluster/config/texts.h"
#include "cluster/consumer/settings.h"
#include "cluster/endpoints/endpoint.h"
#include "core/engine/engine.h"

#include <spoke/consumer.h>

static struct spoke_span span_of(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

/* `token`: of an option, or NULL. The narrower section wins. */
static int read_all(const struct spokei_shown *shown, const char *token,
		    struct spokei_credentials *ret)
{
	const struct spokei_consumer_settings *settings = shown->settings;
	struct spoke_engine *engine = shown->engine;
	struct spokei_credential_source source = {
		.config = settings->file.config,
		.section = SPOKEI_IN_SERVICE,
		.name = span_of(settings->service),
		.options = shown->options,
		.keeps_text = true,
		.sends = true,
		.same_token = shown->same_token,
		.before = &shown->of,
	};
	struct spokei_credentials narrow;
	struct spokei_credentials wide;
	int error;

	source.options.token = token;
	error = spokei_credentials_read(engine, &source, &narrow);
	if (error)
		return error;
	source.section = SPOKEI_IN_CONSUMER;
	source.name = span_of("");
	source.options = (struct spokei_credential_options){ .token = NULL };
	source.same_token = false;
	error = spokei_credentials_read(engine, &source, &wide);
	if (error == SPOKE_OK)
		spokei_credentials_lay(&wide, &narrow, ret);
	spokei_credentials_wipe(&narrow);
	spokei_credentials_wipe(&wide);
	return error;
}

/* Paths are used again at each reload; a token is not kept here. */
static int copy_paths(const struct spoke_env *env, const struct spoke_consumer_options *options,
		      struct spokei_shown *ret)
{
	const char *from[] = { options->token_file, options->access_id,
			       options->access_secret_file };
	const char **to[] = { &ret->options.token_file, &ret->options.access_id,
			      &ret->options.access_secret_file };

	return spokei_texts_copy(env, from, to, sizeof(from) / sizeof(from[0]), &ret->texts,
				 &ret->texts_size);
}

/* --- files */

static void list_files(void *arg, struct spokei_secrets *secrets)
{
	const struct spokei_shown *shown = arg;
	const struct spoke_config *config = shown->settings->file.config;
	const struct spoke_span names[] = { span_of(shown->settings->service), span_of("") };
	const enum spokei_section sections[] = { SPOKEI_IN_SERVICE, SPOKEI_IN_CONSUMER };

	spokei_secrets_add(secrets, shown->options.token_file);
	spokei_secrets_add(secrets, shown->options.access_secret_file);
	for (unsigned i = 0; config && i < 2; i++) {
		spokei_secrets_add(secrets, spokei_config_text(config, sections[i], names[i],
							       SPOKEI_KEY_TOKEN_FILE));
		spokei_secrets_add(secrets, spokei_config_text(config, sections[i], names[i],
							       SPOKEI_KEY_ACCESS_SECRET_FILE));
	}
}

static void files_changed(void *arg)
{
	struct spokei_shown *shown = arg;
	int error = spokei_shown_prepare(shown);

	spokei_shown_replace(shown, error == SPOKE_OK);
	if (error)
		spokei_event(shown->engine, error, "consumer: token and key stay as they were");
}

static const struct spokei_secrets_up secrets_up = { .list = list_files, .changed = files_changed };

/* --- life */

int spokei_shown_init(struct spoke_engine *engine, const struct spoke_consumer_options *options,
		      const struct spokei_consumer_settings *settings, struct spokei_shown *ret)
{
	int error = copy_paths(engine->env, options, ret);

	ret->engine = engine;
	ret->settings = settings;
	if (error == SPOKE_OK)
		error = read_all(ret, options->token, &ret->of);
	ret->same_token = options->token != NULL;
	if (error || (settings->file.config == NULL && ret->options.token_file == NULL &&
		      ret->options.access_secret_file == NULL))
		return error;
	return spokei_secrets_new(engine, &settings->file, &secrets_up, ret, &ret->secrets);
}

void spokei_shown_fini(const struct spoke_env *env, struct spokei_shown *shown)
{
	spokei_secrets_free(shown->secrets);
	shown->secrets = NULL;
	spokei_credentials_wipe(&shown->of);
	spokei_free(env, shown->texts, 1, shown->texts_size);
	shown->texts = NULL;
}

int spokei_shown_prepare(struct spokei_shown *shown)
{
	return read_all(shown, NULL, &shown->next);
}

void spokei_shown_replace(struct spokei_shown *shown, bool takes)
{
	if (takes)
		shown->of = shown->next;
	spokei_credentials_wipe(&shown->next);
	spokei_secrets_again(shown->secrets);
}

int spokei_shown_check(struct spoke_engine *engine, const struct spokei_shown *shown,
		       const struct spoke_url *urls, size_t count)
{
	if (*shown->of.token == '\0')
		return SPOKE_OK;
	for (size_t i = 0; i < count; i++) {
		const char *host = urls[i].host;

		if (urls[i].socket || host == NULL || spokei_endpoint_is_near(host))
			continue;
		spokei_event(engine, SPOKE_EINVAL,
			     "token: it would go over plain TCP to %s; use TLS, or set token.plain "
			     "= true",
			     host);
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}
