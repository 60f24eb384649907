/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tokens, and keys that sign. */
#include "cluster/config/credentials.h"

#include "cluster/config/check.h"
#include "cluster/config/config.h"
#include "cluster/config/reading.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/engine/engine.h"
#include "core/text/secret.h"
#include "transport/http/response.h"
#include "transport/wire/message.h"

#include <errno.h>
#include <stdio.h>

#define PATH_SHOWN 96u   /* bytes of a path in a sentence */
#define AUTH_ACCESSKEY 1 /* number of the name */

static const char both[] = "set either token or token.file";

static int refuse(struct spoke_engine *engine, int error, const char *key, const char *why)
{
	spokei_event(engine, error, "%s: %s", key, why);
	return error;
}

/* Says which file is wrong. */
static int refuse_file(struct spoke_engine *engine, int error, const char *key, const char *path,
		       const char *why)
{
	char shown[PATH_SHOWN];

	(void)spokei_log_escape_end(shown, sizeof(shown), path, strlen(path));
	spokei_event(engine, error, "%s = %s: %s", key, shown, why);
	return error;
}

/* --- files */

/* Returns why a file cannot be read; `text` is room for it. */
static const char *why_unread(int status, char text[SPOKEI_STATUS_TEXT])
{
	switch (status) {
	case -EPERM:
		return "its group or others may read it; chmod 600, or 640 and owner root";
	case -EFBIG:
		return "the file is longer than 4 KiB";
	default:
		return spokei_status_text(status, text);
	}
}

/* Reads a file into `bytes`, of SPOKEI_SECRET_FILE_MAX bytes, which the caller wipes. */
static int read_file(struct spoke_engine *engine, const struct spokei_credential_source *source,
		     const char *key, const char *path, char *bytes, struct spoke_span *ret)
{
	const struct spoke_env *env = engine->env;
	char text[SPOKEI_STATUS_TEXT];
	ssize_t got;

	if (env->files == NULL || env->files->read_secret == NULL)
		return refuse(engine, SPOKE_EUNSUPPORTED, key,
			      "the environment cannot read secret files");
	got = spokei_config_read_secret(source->config, env, path, bytes, SPOKEI_SECRET_FILE_MAX);
	if (got >= 0) {
		*ret = spokei_span(bytes, (size_t)got);
		return SPOKE_OK;
	}
	if (got == -ENOMEM)
		return SPOKE_ENOMEM;
	return refuse_file(engine, got == -EPERM ? SPOKE_EINVAL : SPOKE_ESYSTEM, key, path,
			   why_unread((int)got, text));
}

/* --- tokens */

static void keep_text(struct spoke_span first, struct spokei_credentials *ret)
{
	memcpy(ret->token, first.data, first.len);
	ret->token[first.len] = '\0';
}

static int make_random(struct spoke_engine *engine, const struct spokei_credential_source *source,
		       struct spokei_credentials *ret)
{
	char made[SPOKEI_HTTP_NONCE];

	if (source->sends)
		return refuse(engine, SPOKE_EINVAL, "token",
			      "it cannot be random here: write it, or name its file");
	ret->random = true;
	if (source->before && source->before->random) {
		ret->tokens = source->before->tokens;
		memcpy(ret->token, source->before->token, sizeof(ret->token));
		return SPOKE_OK;
	}
	spokei_http_make_nonce(engine->env, made);
	(void)spokei_tokens_add(&ret->tokens, spokei_span(made, strlen(made)));
	/* Without the text no caller could know it. */
	keep_text(spokei_span(made, strlen(made)), ret);
	spokei_secret_wipe(made, sizeof(made));
	return SPOKE_OK;
}

/* Ends the reading of a list, or of the lines of a file. `why`: an error, or NULL. */
static const char *take_tokens(const struct spokei_credential_source *source, const char *why,
			       struct spoke_span first, struct spokei_credentials *ret)
{
	if (why == NULL && source->sends && ret->tokens.count > 1)
		return "only one token is possible here";
	if (why == NULL && source->keeps_text)
		keep_text(first, ret);
	return why;
}

static int read_token_list(struct spoke_engine *engine,
			   const struct spokei_credential_source *source, const char *list,
			   struct spokei_credentials *ret)
{
	struct spoke_span first;
	const char *why = spokei_tokens_read_list(&ret->tokens, list, &first);

	why = take_tokens(source, why, first, ret);
	return why ? refuse(engine, SPOKE_EINVAL, "token", why) : SPOKE_OK;
}

static int read_token_file(struct spoke_engine *engine,
			   const struct spokei_credential_source *source, const char *path,
			   struct spokei_credentials *ret)
{
	char bytes[SPOKEI_SECRET_FILE_MAX];
	struct spoke_span lines;
	struct spoke_span first;
	const char *why;
	int error = read_file(engine, source, "token.file", path, bytes, &lines);

	if (error == SPOKE_OK) {
		why = spokei_tokens_read_lines(&ret->tokens, lines, &first);
		why = take_tokens(source, why, first, ret);
		if (why)
			error = refuse_file(engine, SPOKE_EINVAL, "token.file", path, why);
	}
	spokei_secret_wipe(bytes, sizeof(bytes));
	return error;
}

static int read_token(struct spoke_engine *engine, const struct spokei_credential_source *source,
		      struct spokei_credentials *ret)
{
	const struct spokei_credential_options *options = &source->options;
	const char *list = options->token;
	const char *path = options->token_file;

	if (source->same_token) {
		ret->has_token = true;
		ret->random = source->before->random;
		ret->tokens = source->before->tokens;
		memcpy(ret->token, source->before->token, sizeof(ret->token));
		return SPOKE_OK;
	}
	if (list == NULL && path == NULL) {
		list = spokei_config_text(source->config, source->section, source->name,
					  SPOKEI_KEY_TOKEN);
		path = spokei_config_text(source->config, source->section, source->name,
					  SPOKEI_KEY_TOKEN_FILE);
	}
	if (list && path)
		return refuse(engine, SPOKE_EINVAL, "token", both);
	ret->has_token = list || path;
	if (path)
		return read_token_file(engine, source, path, ret);
	if (list == NULL || spokei_check_is_none(list))
		return SPOKE_OK;
	if (spokei_check_is_random(list))
		return make_random(engine, source, ret);
	return read_token_list(engine, source, list, ret);
}

/* --- keys that sign */

/* Takes the first line. */
static int take_secret(struct spoke_engine *engine, const char *path, struct spoke_span bytes,
		       struct spokei_credentials *ret)
{
	const char *text = bytes.data;
	const char *end = bytes.len ? memchr(text, '\n', bytes.len) : NULL;
	size_t len = end ? (size_t)(end - text) : bytes.len;

	while (len > 0 && (text[len - 1] == '\r' || text[len - 1] == ' '))
		len--;
	if (len == 0 || len > SPOKEI_ACCESS_MAX)
		return refuse_file(engine, SPOKE_EINVAL, "access.secret.file", path,
				   "its first line has to have 1 to 255 bytes");
	memcpy(ret->secret, text, len);
	ret->secret_len = len;
	ret->access_print = spokei_token_print(ret->secret, len);
	return SPOKE_OK;
}

static int read_secret(struct spoke_engine *engine, const struct spokei_credential_source *source,
		       const char *path, struct spokei_credentials *ret)
{
	char bytes[SPOKEI_SECRET_FILE_MAX];
	struct spoke_span content;
	int error = read_file(engine, source, "access.secret.file", path, bytes, &content);

	if (error == SPOKE_OK)
		error = take_secret(engine, path, content, ret);
	spokei_secret_wipe(bytes, sizeof(bytes));
	return error;
}

static int read_access(struct spoke_engine *engine, const struct spokei_credential_source *source,
		       struct spokei_credentials *ret)
{
	const struct spokei_credential_options *options = &source->options;
	const char *id = options->access_id;
	const char *path = options->access_secret_file;
	struct spokei_key_values values;

	spokei_keys_preset(&values);
	spokei_config_read(source->config, source->section, source->name, &values);
	ret->window_ns = values.of[SPOKEI_KEY_ACCESS_WINDOW];
	ret->signs = id || path || values.of[SPOKEI_KEY_AUTH] == AUTH_ACCESSKEY;
	ret->has_access = ret->signs || values.said[SPOKEI_KEY_AUTH];
	if (!ret->signs)
		return SPOKE_OK;
	if (id == NULL)
		id = spokei_config_text(source->config, source->section, source->name,
					SPOKEI_KEY_ACCESS_ID);
	if (path == NULL)
		path = spokei_config_text(source->config, source->section, source->name,
					  SPOKEI_KEY_ACCESS_SECRET_FILE);
	if (id == NULL || path == NULL)
		return refuse(engine, SPOKE_EINVAL, "auth = accesskey",
			      "set access.id and access.secret.file, too");
	ret->id_len = strlen(id);
	if (ret->id_len == 0 || ret->id_len > SPOKEI_ACCESS_MAX)
		return refuse(engine, SPOKE_EINVAL, "access.id", "use 1 to 255 bytes");
	memcpy(ret->id, id, ret->id_len);
	return read_secret(engine, source, path, ret);
}

int spokei_credentials_read(struct spoke_engine *engine,
			    const struct spokei_credential_source *source,
			    struct spokei_credentials *ret)
{
	int error;

	*ret = (struct spokei_credentials){ .window_ns = 0 };
	error = read_token(engine, source, ret);
	if (error == SPOKE_OK)
		error = read_access(engine, source, ret);
	if (error)
		spokei_credentials_wipe(ret);
	return error;
}

void spokei_credentials_lay(const struct spokei_credentials *wide,
			    const struct spokei_credentials *narrow, struct spokei_credentials *ret)
{
	const struct spokei_credentials *tokens = narrow->has_token ? narrow : wide;
	const struct spokei_credentials *access = narrow->has_access ? narrow : wide;
	struct spokei_credentials all = *access;

	all.tokens = tokens->tokens;
	memcpy(all.token, tokens->token, sizeof(all.token));
	all.random = tokens->random;
	all.has_token = tokens->has_token;
	*ret = all;
	spokei_credentials_wipe(&all);
}

void spokei_credentials_wipe(struct spokei_credentials *credentials)
{
	spokei_secret_wipe(credentials, sizeof(*credentials));
}
