/* SPDX-License-Identifier: Apache-2.0 */
/* Checks addresses, hosts and names in options and files. */
#include "cluster/config/check.h"

#include "cluster/catalog.h"
#include "core/text/tokens.h"
#include "transport/conn/callers.h"
#include "transport/http/guard.h"
#include "transport/listen/rules.h"
#include "transport/stream/tls/tls.h"
#include "transport/wire/catalog.h"

#include <stdio.h>
#include <string.h>

static int wrong(const char **ret_why, const char *why)
{
	*ret_why = why;
	return SPOKE_EINVAL;
}

/* A name that every machine has; others could change while the provider listens. */
static const char *number_of(const char *host)
{
	return strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
}

int spokei_check_place(const struct spoke_env *env, const struct spoke_url *url,
		       struct spoke_address *ret, const char **ret_why)
{
	char place[SPOKE_URL_HOST_MAX + 16];
	char path[sizeof(((struct spoke_address *)0)->bytes) + 8];
	bool is_v6 = url->host && strchr(url->host, ':') != NULL;
	int error = -1;

	if (url->socket) {
		int len = snprintf(path, sizeof(path), "unix:%s", url->socket);

		if (len < (int)sizeof(path))
			error = env->net->parse(env->ctx, path, ret);
	} else if (url->host) {
		(void)snprintf(place, sizeof(place), "%s%s%s:%d", is_v6 ? "[" : "",
			       number_of(url->host), is_v6 ? "]" : "",
			       url->port < 0 ? SPOKEI_PORT_PRESET : url->port);
		error = env->net->parse(env->ctx, place, ret);
	}
	if (error == 0)
		return SPOKE_OK;
	return wrong(ret_why, "not a numeric address, or the path is too long; write one, "
			      "e.g. dubbo://0.0.0.0:20880 or unix:/run/echo.sock");
}

const char *spokei_check_passed(const struct spoke_url *url)
{
	if (url->host && url->port < 0 && *url->path == '\0' && url->user == NULL)
		return NULL;
	return "a socket of the service manager is named without anything else, e.g. fd://rpc";
}

static const char key_shared[] = "shared";
static const char key_http[] = "http";
static const char key_tls[] = "tls";
static const char key_mode[] = "mode";
static const char key_allow[] = "allow.from";
static const char key_deny[] = "deny.from";

bool spokei_check_is_place_key(const char *key)
{
	return strcmp(key, key_shared) == 0 || strcmp(key, key_http) == 0 ||
	       strcmp(key, key_mode) == 0 || strcmp(key, key_allow) == 0 ||
	       strcmp(key, key_deny) == 0 || strcmp(key, key_tls) == 0;
}

/* Finds a value among `words`. Returns its index; -1: it is none of them. */
static int find_word(const char *value, const char *const *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(value, words[i]) == 0)
			return (int)i;
	}
	return -1;
}

int spokei_check_http(const struct spoke_url *url, enum spokei_http_choice *ret,
		      const char **ret_why)
{
	static const char *const words[] = {
		[SPOKEI_HTTP_AUTO] = "auto",
		[SPOKEI_HTTP_ON] = "on",
		[SPOKEI_HTTP_OFF] = "off",
	};
	const char *value = spoke_url_get(url, key_http);
	int index = value ? find_word(value, words, 3) : SPOKEI_HTTP_AUTO;

	if (index < 0)
		return wrong(ret_why, "http must be on, off or auto");
	if (url->shm && index == SPOKEI_HTTP_ON)
		return wrong(ret_why, "shared memory carries no HTTP; use unix:/PATH");
	*ret = (enum spokei_http_choice)index;
	return SPOKE_OK;
}

bool spokei_check_tls_mode(const char *text, enum spokei_tls_mode *ret)
{
	static const char *const words[] = {
		[SPOKEI_TLS_OFF] = "off",
		[SPOKEI_TLS_ON] = "on",
		[SPOKEI_TLS_OPTIONAL] = "optional",
	};
	int index = find_word(text, words, 3);

	if (index >= 0)
		*ret = (enum spokei_tls_mode)index;
	return index >= 0;
}

int spokei_check_tls(const struct spoke_url *url, bool *ret_says, enum spokei_tls_mode *ret,
		     const char **ret_why)
{
	const char *value = spoke_url_get(url, key_tls);

	*ret_says = value != NULL;
	if (value && !spokei_check_tls_mode(value, ret))
		return wrong(ret_why, "tls must be on, off or optional");
	return SPOKE_OK;
}

int spokei_check_shared(const struct spoke_url *url, enum spokei_sharing *ret, const char **ret_why)
{
	static const char *const words[] = {
		[SPOKEI_SHARED_NOT] = "false",
		[SPOKEI_SHARED_TRUE] = "true",
		[SPOKEI_SHARED_TURNS] = "turns",
	};
	const char *value = spoke_url_get(url, key_shared);
	int index = value ? find_word(value, words, 3) : SPOKEI_SHARED_NOT;

	*ret = index < 0 ? SPOKEI_SHARED_NOT : (enum spokei_sharing)index;
	if (index < 0)
		return wrong(ret_why, "shared must be true, turns or false");
	return SPOKE_OK;
}

int spokei_check_rules(const struct spoke_env *env, const struct spoke_url *url,
		       struct spokei_rules **ret_rules, const char **ret_why,
		       char why[SPOKEI_CHECK_WHY])
{
	const struct spokei_rules_of of = {
		.allow_from = spoke_url_get(url, key_allow),
		.deny_from = spoke_url_get(url, key_deny),
	};
	int error = spokei_rules_new(env, &of, ret_rules, why);

	_Static_assert(SPOKEI_CHECK_WHY >= SPOKEI_RULES_WHY, "any sentence fits");
	if (error)
		*ret_why = error == SPOKE_ENOMEM ? "out of memory" : why;
	return error;
}

int spokei_check_mode(const struct spoke_url *url, bool *ret_has, uint32_t *ret_mode,
		      const char **ret_why)
{
	const char *value = spoke_url_get(url, key_mode);
	uint32_t mode = 0;
	size_t len;

	*ret_has = value != NULL;
	if (value == NULL)
		return SPOKE_OK;
	if (url->socket == NULL || *url->socket == '@')
		return wrong(ret_why, "mode is for unix sockets with a path");
	len = strspn(value, "01234567");
	if (value[len] || len < 3 || len > 4 || (len == 4 && *value != '0'))
		return wrong(ret_why, "mode must be three octal digits, e.g. mode=0660");
	for (size_t i = 0; i < len; i++)
		mode = mode << 3 | (uint32_t)(value[i] - '0');
	*ret_mode = mode;
	return SPOKE_OK;
}

/* Returns the sentence without the name of the list. */
static const char *after_name(const char *why, const char *name)
{
	return why + strlen(name) + strlen(": ");
}

static const char *check_rules(const struct spoke_env *env, const struct spokei_rules_of *of,
			       const char *name, char why[SPOKEI_CHECK_WHY])
{
	struct spokei_rules *rules;
	int error = spokei_rules_new(env, of, &rules, why);

	if (error)
		return error == SPOKE_ENOMEM ? "out of memory" : after_name(why, name);
	spokei_rules_free(env, rules);
	return NULL;
}

static const char *check_callers(const struct spoke_env *env, const char *value,
				 char why[SPOKEI_CHECK_WHY])
{
	struct spokei_callers *callers;
	int error = spokei_callers_new(env, value, 1, &callers, why);

	_Static_assert(SPOKEI_CHECK_WHY >= SPOKEI_CALLERS_WHY, "any sentence fits");
	if (error)
		return error == SPOKE_ENOMEM ? "out of memory" : why;
	spokei_callers_free(env, callers);
	return NULL;
}

static const char *check_peers(const struct spoke_env *env, const char *value, const char *name,
			       char why[SPOKEI_CHECK_WHY])
{
	int error = spokei_tls_check_peers(env, value, why);

	_Static_assert(SPOKEI_CHECK_WHY >= SPOKEI_TLS_WHY, "any sentence fits");
	if (error == SPOKE_ENOMEM)
		return "out of memory";
	return error ? after_name(why, name) : NULL;
}

const char *spokei_check_list(const struct spoke_env *env, enum spokei_key key, const char *value,
			      char why[SPOKEI_CHECK_WHY])
{
	const char *name = spokei_key_row(key)->option.name;

	_Static_assert(SPOKEI_CHECK_WHY >= SPOKEI_GUARD_WHY, "any sentence fits");
	switch ((int)key) {
	case SPOKEI_KEY_ALLOW_FROM:
		return check_rules(env, &(struct spokei_rules_of){ .allow_from = value }, name,
				   why);
	case SPOKEI_KEY_DENY_FROM:
		return check_rules(env, &(struct spokei_rules_of){ .deny_from = value }, name, why);
	case SPOKEI_KEY_ALLOW_USERS:
		return check_rules(env, &(struct spokei_rules_of){ .allow_users = value }, name,
				   why);
	case SPOKEI_KEY_ALLOW_CALLERS:
		return check_callers(env, value, why);
	case SPOKEI_KEY_TLS_PEERS:
		return check_peers(env, value, name, why);
	case SPOKEI_KEY_HTTP_ORIGINS:
	case SPOKEI_KEY_COMET_ORIGINS:
		return spokei_guard_check_origins(value, why);
	case SPOKEI_KEY_HTTP_HOSTS:
	case SPOKEI_KEY_COMET_HOSTS:
		return spokei_guard_check_names(value, why);
	default:
		return NULL;
	}
}

const struct spokei_wire *spokei_check_wire(const char *scheme)
{
	bool is_any = *scheme == '\0' || strcmp(scheme, "tcp") == 0;

	return spokei_catalog_wire(is_any ? "dubbo" : scheme);
}

/* Checks the values of the parameters. Returns NULL, or a sentence. */
static const char *check_parameters(const struct spoke_env *env, const struct spoke_url *url,
				    char why[SPOKEI_CHECK_WHY])
{
	enum spokei_sharing sharing;
	enum spokei_http_choice http;
	enum spokei_tls_mode tls = SPOKEI_TLS_OFF;
	bool says_tls;
	struct spokei_rules *rules;
	const char *wrong = NULL;
	uint32_t mode;
	bool has_mode;

	if (spokei_check_shared(url, &sharing, &wrong) || spokei_check_http(url, &http, &wrong) ||
	    spokei_check_mode(url, &has_mode, &mode, &wrong) ||
	    spokei_check_tls(url, &says_tls, &tls, &wrong) ||
	    spokei_check_rules(env, url, &rules, &wrong, why))
		return wrong;
	spokei_rules_free(env, rules);
	if (url->shm && says_tls && tls != SPOKEI_TLS_OFF)
		return "shared memory has no TLS; write tls=off, or use unix:/PATH";
	return NULL;
}

const char *spokei_check_in_section(enum spokei_section section, enum spokei_key key,
				    const char *value)
{
	const char *why = key == SPOKEI_KEY_TOKEN ? spokei_check_tokens(value) : NULL;

	if (why || section != SPOKEI_IN_CONSUMER)
		return why;
	if (key == SPOKEI_KEY_TLS && strcmp(value, "optional") == 0)
		return "a consumer never falls back to plain connections; use on or off";
	if (key == SPOKEI_KEY_TOKEN && strcmp(value, "true") == 0)
		return "it cannot be random here: write it, or name its file";
	if (key == SPOKEI_KEY_TOKEN && strchr(value, ','))
		return "only one token is possible here";
	return NULL;
}

const char *spokei_check_listen(const struct spoke_env *env, const struct spoke_url *url,
				char why[SPOKEI_CHECK_WHY])
{
	struct spoke_address unused;
	const char *wrong = NULL;
	bool is_passed = spokei_check_is_passed(url);

	if (!is_passed && spokei_check_wire(url->scheme) == NULL)
		return "unknown scheme; use dubbo, msgpack-rpc or tcp";
	for (unsigned i = 0; i < url->parameter_count; i++) {
		if (!spokei_check_is_place_key(url->parameters[i].key)) {
			return "an address may only have the parameters shared, http, tls, "
			       "mode, allow.from and deny.from; write others as keys of [provider]";
		}
	}
	wrong = check_parameters(env, url, why);
	if (wrong)
		return wrong;
	if (is_passed)
		return spokei_check_passed(url);
	return spokei_check_place(env, url, &unused, &wrong) ? wrong : NULL;
}

bool spokei_check_is_any(const char *host)
{
	return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 ||
	       strcmp(host, "::ffff:0.0.0.0") == 0;
}

int spokei_check_advertised(const struct spoke_env *env, const char *host, const char **ret_why)
{
	bool bare = strchr(host, ':') && *host != '[';
	char text[SPOKE_URL_HOST_MAX + 16];
	struct spoke_url url;
	int error = SPOKE_ETOOLARGE;
	bool fine;

	if (strlen(host) <= SPOKE_URL_HOST_MAX) {
		(void)snprintf(text, sizeof(text), "dubbo://%s%s%s", bare ? "[" : "", host,
			       bare ? "]" : "");
		error = spoke_url_parse(env, text, strlen(text), &url, NULL);
	}
	if (error == SPOKE_ENOMEM) {
		*ret_why = "out of memory";
		return error;
	}
	if (error)
		return wrong(ret_why, "not a host");
	fine = url.host && *url.host && url.port < 0 && url.user == NULL && *url.path == '\0' &&
	       url.parameter_count == 0 && !spokei_check_is_any(url.host);
	spoke_url_fini(&url);
	return fine ? SPOKE_OK
		    : wrong(ret_why, "write a host that consumers can reach, without a port");
}

int spokei_check_admin(const struct spoke_env *env, const char *listen, const char **ret_why)
{
	static const char scheme[] = "https://";
	struct spoke_address address;

	if (strncmp(listen, scheme, sizeof(scheme) - 1) == 0)
		listen += sizeof(scheme) - 1;
	if (env->net->parse(env->ctx, listen, &address) == 0)
		return SPOKE_OK;
	return wrong(ret_why, "not a numeric address; write e.g. 127.0.0.1:9090, "
			      "https://10.0.0.1:9090 or unix:/run/page.sock");
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

bool spokei_check_is_random(const char *tokens)
{
	static const char *const words[] = { "true", "default", NULL };

	return is_one_of(tokens, words);
}

bool spokei_check_is_none(const char *tokens)
{
	static const char *const words[] = { "false", "0", "null", "N/A", NULL };

	return is_one_of(tokens, words);
}

const char *spokei_check_tokens(const char *tokens)
{
	struct spokei_tokens read = { .count = 0 };

	if (spokei_check_is_random(tokens) || spokei_check_is_none(tokens))
		return NULL;
	return spokei_tokens_read_list(&read, tokens, NULL);
}

const char *spokei_check_name(const char *name)
{
	if (name[strcspn(name, " \t\"")])
		return "a name may not contain blanks or quotation marks; write e.g. "
		       "demo.EchoService.echo";
	if (*name == '.' || strstr(name, "..") || (*name && name[strlen(name) - 1] == '.'))
		return "a part of the name is empty; write e.g. demo.EchoService.echo";
	return NULL;
}

const char *spokei_check_registry(const struct spoke_url *url)
{
	if (strcmp(url->scheme, "file") == 0 && (!url->host || *url->host || !*url->path))
		return "the path must be absolute, on this machine; write e.g. "
		       "file:///run/spoke/providers";
	if (spokei_catalog_registry(url->scheme))
		return NULL;
	return strcmp(url->scheme, "zookeeper") == 0
		       ? "this build has no ZooKeeper; build it with libzookeeper-st-dev"
		       : "not a registry; write " SPOKE_REGISTRY_URLS;
}
