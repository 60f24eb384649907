/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token of the page: given, made, or read from a file, which a look each minute and reloads of
 * the settings file read again, as they read the files of TLS.
 */
#include "cluster/admin/parts.h"
#include "cluster/config/config.h"
#include "cluster/config/credentials.h"
#include "cluster/config/secrets.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/text/secret.h"
#include "transport/http/response.h"

#include <spoke/admin.h>

struct spokei_admin_token {
	struct spoke_admin *admin;
	struct spokei_credential_options options; /* the path of the file, if there is one */
	struct spokei_credentials next;           /* while a reload prepares */
	struct spokei_secrets *secrets;           /* looks at the file; NULL: there is none */
	struct spokei_config_user user;
	char text[SPOKEI_TOKEN_MAX + 1];
};

/* Reads the file. Returns 0, or an error that the engine's newest event explains. */
static int read_file(struct spokei_admin_token *token, struct spokei_credentials *ret)
{
	const struct spokei_credential_source source = {
		.config = token->user.config,
		.section = SPOKEI_IN_ENGINE,
		.options = token->options,
		.keeps_text = true,
		.sends = true,
	};

	return spokei_credentials_read(token->admin->engine, &source, ret);
}

/* Streams that need the token begin again, with the new one. */
static void take_text(struct spokei_admin_token *token, struct spokei_credentials *read)
{
	if (strcmp(token->text, read->token) != 0 && token->admin->token_reads)
		spokei_http_server_drain(&token->admin->http);
	memcpy(token->text, read->token, sizeof(token->text));
	spokei_credentials_wipe(read);
}

/* --- looks */

static void list_files(void *arg, struct spokei_secrets *secrets)
{
	const struct spokei_admin_token *token = arg;

	spokei_secrets_add(secrets, token->options.token_file);
}

static void files_changed(void *arg)
{
	struct spokei_admin_token *token = arg;
	int error = read_file(token, &token->next);

	if (error == SPOKE_OK)
		take_text(token, &token->next);
	else
		spokei_event(token->admin->engine, error, "page: the token stays as it was");
	spokei_secrets_again(token->secrets);
}

static const struct spokei_secrets_up secrets_up = { .list = list_files, .changed = files_changed };

/* --- reloads */

static int prepare(struct spokei_config_user *user)
{
	struct spokei_admin_token *token = user->owner;

	return token->options.token_file ? read_file(token, &token->next) : SPOKE_OK;
}

static void take(struct spokei_config_user *user)
{
	struct spokei_admin_token *token = user->owner;

	if (token->options.token_file)
		take_text(token, &token->next);
	spokei_secrets_again(token->secrets);
}

static void drop(struct spokei_config_user *user)
{
	struct spokei_admin_token *token = user->owner;

	spokei_credentials_wipe(&token->next);
	spokei_secrets_again(token->secrets);
}

static const struct spokei_config_user_up file_up = {
	.prepare = prepare,
	.take = take,
	.drop = drop,
};

int spokei_admin_reload_on(struct spoke_admin *admin, struct spoke_config *config)
{
	struct spokei_admin_token *token = admin->kept_token;

	token->user = (struct spokei_config_user){
		.config = config,
		.up = &file_up,
		.owner = token,
		.options = &token->options,
		.tls = admin->tls,
	};
	return spokei_config_join(&token->user, admin->engine);
}

void spokei_admin_reload_off(struct spoke_admin *admin)
{
	spokei_config_leave(&admin->kept_token->user);
}

/* --- life */

static int read_first(struct spokei_admin_token *token)
{
	int error = read_file(token, &token->next);

	if (error)
		return error;
	memcpy(token->text, token->next.token, sizeof(token->text));
	spokei_credentials_wipe(&token->next);
	return spokei_secrets_new(token->admin->engine, &token->user, &secrets_up, token,
				  &token->secrets);
}

int spokei_admin_token_begin(struct spoke_admin *admin, const char *text, const char *path)
{
	const struct spoke_env *env = admin->engine->env;
	struct spokei_admin_token *token = spokei_alloc(env, 1, sizeof(*token));

	_Static_assert(sizeof(token->text) >= SPOKEI_HTTP_NONCE, "a made token fits");
	if (token == NULL)
		return SPOKE_ENOMEM;
	admin->kept_token = token;
	admin->token = token->text;
	token->admin = admin;
	token->options.token_file = path;
	if (path)
		return read_first(token);
	if (text)
		memcpy(token->text, text, strlen(text) + 1);
	else
		spokei_http_make_nonce(env, token->text);
	return SPOKE_OK;
}

void spokei_admin_token_end(struct spoke_admin *admin)
{
	struct spokei_admin_token *token = admin->kept_token;

	if (token == NULL)
		return;
	spokei_config_leave(&token->user);
	spokei_secrets_free(token->secrets);
	spokei_secret_wipe(token, sizeof(*token));
	spokei_free(admin->engine->env, token, 1, sizeof(*token));
}
