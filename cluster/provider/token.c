/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the token of requests. */
#include "cluster/provider/token.h"

#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/text/secret.h"
#include "transport/http/response.h"

#include <spoke/provider.h>

#include <string.h>

struct spokei_token {
	struct spoke_filter filter;
	size_t size; /* of this struct, with the text */
	char text[];
};

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

static bool is_echo(struct spoke_span method)
{
	static const char echo[] = "$echo";

	return method.len == sizeof(echo) - 1 && memcmp(method.data, echo, method.len) == 0;
}

static struct spoke_filter_verdict before_request(void *arg, const struct spoke_request *request)
{
	static const struct spoke_filter_verdict refused = {
		.step = SPOKE_FILTER_REFUSE,
		.error = SPOKE_EREMOTE,
		.text = "Invalid token! The provider requires the token of its URL in the registry "
			"as the attachment \"token\"",
	};
	const struct spokei_token *token = arg;
	struct spoke_value value;
	struct spoke_span given;

	if (is_echo(spoke_request_method(request)) ||
	    (spoke_value_get(spoke_request_attachments(request), "token", &value) == 0 &&
	     spoke_value_str(value, &given) == 0 && spokei_secret_is(given, token->text)))
		return (struct spoke_filter_verdict){ .step = SPOKE_FILTER_GO_ON };
	return refused;
}

/* Returns whether the text can stand in a URL and a message as it is. */
static bool is_valid(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f)
			return false;
	return len > 0 && len <= SPOKEI_TOKEN_MAX;
}

int spokei_token_new(struct spoke_engine *engine, const char *option,
		     struct spokei_token **ret_token)
{
	static const char *const random[] = { "true", "default", NULL };
	static const char *const none[] = { "false", "0", "null", "N/A", NULL };
	char made[SPOKEI_HTTP_NONCE];
	struct spokei_token *token;
	size_t size;

	*ret_token = NULL;
	if (option == NULL || is_one_of(option, none))
		return SPOKE_OK;
	if (!is_valid(option)) {
		spokei_event(engine, SPOKE_EINVAL,
			     "option token: use 1 to %u visible ASCII characters, or true for a "
			     "random token",
			     SPOKEI_TOKEN_MAX);
		return SPOKE_EINVAL;
	}
	if (is_one_of(option, random)) {
		spokei_http_make_nonce(engine->env, made);
		option = made;
	}
	size = sizeof(*token) + strlen(option) + 1;
	token = spokei_alloc(engine->env, 1, size);
	if (token == NULL)
		return SPOKE_ENOMEM;
	token->size = size;
	memcpy(token->text, option, size - sizeof(*token));
	token->filter = (struct spoke_filter){
		.name = "token",
		.arg = token,
		.before_request = before_request,
	};
	*ret_token = token;
	return SPOKE_OK;
}

void spokei_token_free(struct spoke_engine *engine, struct spokei_token *token)
{
	if (token)
		spokei_free(engine->env, token, 1, token->size);
}

const char *spokei_token_text(const struct spokei_token *token)
{
	return token ? token->text : "";
}

const struct spoke_filter *spokei_token_filter(const struct spokei_token *token)
{
	return &token->filter;
}
