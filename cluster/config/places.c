/* SPDX-License-Identifier: Apache-2.0 */
/* Reads addresses from URLs: where a consumer connects to, and where a provider listens. */
#include "cluster/config/places.h"
#include "core/base/log.h"

#include "cluster/config/keys.h"
#include "core/engine/engine.h"
#include "transport/connect/connector.h"
#include "transport/listen/rules.h"
#include "transport/trust/caller.h"
#include "transport/wire/catalog.h"

#include <spoke/registry.h>

#include <errno.h>
#include <stdio.h>

void spokei_places_show(const char *text, char shown[SPOKEI_PLACES_SHOWN])
{
	const char *end = text + strcspn(text, "?#&;"); /* also wrong beginnings of parameters */
	const char *secret = text;

	for (const char *at = text; *at; at++)
		if (*at == '@')
			secret = at + 1;
	if (secret > end)
		end = secret;
	(void)spokei_log_escape(shown, SPOKEI_PLACES_SHOWN, secret, (size_t)(end - secret));
}

int spokei_places_url(struct spoke_engine *engine, const char *text, struct spoke_url *ret_url)
{
	struct spoke_url_error why;
	char shown[SPOKEI_PLACES_SHOWN];
	int error;

	if (text == NULL) {
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: missing; write e.g. "
			     "dubbo://127.0.0.1:20880/demo.EchoService");
		return SPOKE_EINVAL;
	}
	error = spoke_url_parse(engine->env, text, strlen(text), ret_url, &why);
	if (error) {
		spokei_places_show(text, shown);
		spokei_event(engine, error, "URL %s, byte %zu: %s", shown, why.at, why.text);
	}
	return error;
}

const struct spokei_wire *spokei_places_wire(const char *scheme)
{
	bool is_any = *scheme == '\0' || strcmp(scheme, "tcp") == 0;

	return spokei_catalog_wire(is_any ? "dubbo" : scheme);
}

/* Returns NULL after an event that explains it. */
static const struct spokei_wire *wire_of(struct spoke_engine *engine, const struct spoke_url *url)
{
	const struct spokei_wire *wire = spokei_places_wire(url->scheme);
	char shown[SPOKEI_PLACES_SHOWN];

	if (wire)
		return wire;
	(void)spokei_log_escape(shown, sizeof(shown), url->scheme, strlen(url->scheme));
	spokei_event(engine, SPOKE_EUNSUPPORTED,
		     "URL: unknown scheme %s; use dubbo, msgpack-rpc or tcp", shown);
	return NULL;
}

int spokei_places_endpoint(struct spoke_engine *engine, const struct spoke_url *url,
			   struct spokei_connector_options *ret)
{
	const struct spokei_wire *wire = wire_of(engine, url);

	if (wire == NULL)
		return SPOKE_EUNSUPPORTED;
	if (url->host && url->port == 0) {
		spokei_event(engine, SPOKE_ERANGE, "URL: port 0 is not valid for a consumer");
		return SPOKE_ERANGE;
	}
	*ret = (struct spokei_connector_options){
		.host = url->host,
		.port = (uint16_t)(url->port < 0 ? SPOKEI_PORT_PRESET : url->port),
		.path = url->socket,
		.shm = url->shm,
		.wire = wire,
	};
	return SPOKE_OK;
}

int spokei_places_check(struct spoke_engine *engine, const struct spoke_url *url, bool has_registry)
{
	bool is_service = strcmp(url->scheme, "consumer") == 0;

	if (has_registry && is_service)
		return SPOKE_OK;
	if (has_registry) {
		spokei_event(engine, SPOKE_EINVAL,
			     "URL: an address and a registry exclude each other; with the registry "
			     "write consumer://any/demo.EchoService");
	} else if (is_service) {
		spokei_event(
			engine, SPOKE_EINVAL,
			"URL: consumer:// has no address; give a registry too, as the option "
			"registry or as url in [registry], or write dubbo://HOST:PORT/SERVICE");
	} else if (spoke_registry_find(url->scheme)) {
		spokei_event(
			engine, SPOKE_EINVAL,
			"URL: %s:// is a registry; give a registry as the option registry, and "
			"write the URL as consumer://any/demo.EchoService",
			url->scheme);
	} else {
		return SPOKE_OK;
	}
	return SPOKE_EINVAL;
}

/* --- addresses to listen at */

static int wrong(const char **ret_why, const char *why)
{
	*ret_why = why;
	return SPOKE_EINVAL;
}

bool spokei_places_read(const struct spoke_env *env, struct spoke_span text,
			struct spoke_address *ret)
{
	char copy[SPOKEI_PLACES_SHOWN];

	if (text.len >= sizeof(copy))
		return false;
	(void)snprintf(copy, sizeof(copy), "%.*s", (int)text.len,
		       text.len ? (const char *)text.data : "");
	return env->net->parse(env->ctx, copy, ret) == 0;
}

/* A name that every machine has; others could change while the provider listens. */
static const char *number_of(const char *host)
{
	return strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
}

/* Reads digits or a path. */
static int read_address(const struct spoke_env *env, const struct spoke_url *url,
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

/* Returns whether the URL names a socket that a service manager passes: "fd://NAME". */
static bool is_passed(const struct spoke_url *url)
{
	return strcmp(url->scheme, "fd") == 0;
}

/* Checks the form of such a URL. */
static const char *check_passed(const struct spoke_url *url)
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

static bool is_parameter(const char *key)
{
	static const char *const keys[] = {
		key_shared, key_http, key_tls, key_mode, key_allow, key_deny,
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

enum http_choice {
	HTTP_AUTO, /* if the address is of this machine only */
	HTTP_ON,
	HTTP_OFF,
};

/* How providers of several engines share an address. */
enum sharing {
	SHARED_NOT,
	SHARED_TRUE,  /* distributed by the kernel, if it can */
	SHARED_TURNS, /* connections are dealt out in turn */
};

/* The values of parameters. */
struct parameters {
	enum sharing sharing;
	enum http_choice http;
	struct spokei_listen_place *place; /* mode, rules and TLS */
};

/* Finds the value of a parameter among `count` words; without one *ret stays. */
static int read_word(const struct spoke_url *url, const char *key, const char *const *words,
		     unsigned count, unsigned *ret)
{
	const char *value = spoke_url_get(url, key);

	for (unsigned i = 0; value && i < count; i++) {
		if (strcmp(value, words[i]) == 0) {
			*ret = i;
			return SPOKE_OK;
		}
	}
	return value ? SPOKE_EINVAL : SPOKE_OK;
}

static int read_http(const struct spoke_url *url, enum http_choice *ret, const char **ret_why)
{
	static const char *const words[] = {
		[HTTP_AUTO] = "auto",
		[HTTP_ON] = "on",
		[HTTP_OFF] = "off",
	};
	unsigned index = HTTP_AUTO;

	if (read_word(url, key_http, words, 3, &index))
		return wrong(ret_why, "http must be on, off or auto");
	if (url->shm && index == HTTP_ON)
		return wrong(ret_why, "shared memory carries no HTTP; use unix:/PATH");
	*ret = (enum http_choice)index;
	return SPOKE_OK;
}

bool spokei_places_tls_mode(const char *text, enum spokei_tls_mode *ret)
{
	const struct spokei_option *option = &spokei_key_row(SPOKEI_KEY_TLS)->option;
	const char *name;

	for (unsigned i = 0; (name = option->names(i)) != NULL; i++) {
		if (strcmp(text, name) == 0) {
			*ret = (enum spokei_tls_mode)i;
			return true;
		}
	}
	return false;
}

static int read_tls(const struct spoke_url *url, struct spokei_listen_place *ret,
		    const char **ret_why)
{
	const char *value = spoke_url_get(url, key_tls);

	ret->says_tls = value != NULL;
	if (value && !spokei_places_tls_mode(value, &ret->tls))
		return wrong(ret_why, "tls must be on, off or optional");
	return SPOKE_OK;
}

static int read_shared(const struct spoke_url *url, enum sharing *ret, const char **ret_why)
{
	static const char *const words[] = {
		[SHARED_NOT] = "false",
		[SHARED_TRUE] = "true",
		[SHARED_TURNS] = "turns",
	};
	unsigned index = SHARED_NOT;
	int error = read_word(url, key_shared, words, 3, &index);

	*ret = (enum sharing)index;
	return error ? wrong(ret_why, "shared must be true, turns or false") : SPOKE_OK;
}

static int read_rules(const struct spoke_env *env, const struct spoke_url *url,
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
		*ret_why = error == SPOKE_ENOMEM ? spokei_check_no_memory : why;
	return error;
}

/* Reads the permission bits of a unix socket, as octal digits. */
static int read_mode(const struct spoke_url *url, struct spokei_listen_place *ret,
		     const char **ret_why)
{
	const char *value = spoke_url_get(url, key_mode);
	uint32_t mode = 0;
	size_t len;

	ret->has_mode = value != NULL;
	if (value == NULL)
		return SPOKE_OK;
	if (url->socket == NULL || *url->socket == '@')
		return wrong(ret_why, "mode is for unix sockets with a path");
	len = strspn(value, "01234567");
	if (value[len] || len < 3 || len > 4 || (len == 4 && *value != '0'))
		return wrong(ret_why, "mode must be three octal digits, e.g. mode=0660");
	for (size_t i = 0; i < len; i++)
		mode = mode << 3 | (uint32_t)(value[i] - '0');
	ret->mode = mode;
	return SPOKE_OK;
}

/* Reads all parameters. Returns 0, EINVAL or ENOMEM; a sentence may be in `why`. Rules are made
 * last, so that none are after an error. */
static int read_parameters(const struct spoke_env *env, const struct spoke_url *url,
			   struct parameters *ret, const char **ret_why, char why[SPOKEI_CHECK_WHY])
{
	int error = read_shared(url, &ret->sharing, ret_why);

	if (error == 0)
		error = read_http(url, &ret->http, ret_why);
	if (error == 0)
		error = read_mode(url, ret->place, ret_why);
	if (error == 0)
		error = read_tls(url, ret->place, ret_why);
	return error ? error : read_rules(env, url, &ret->place->rules, ret_why, why);
}

const char *spokei_places_check_listen(const struct spoke_env *env, const struct spoke_url *url,
				       char why[SPOKEI_CHECK_WHY])
{
	struct spokei_listen_place place = { .rules = NULL };
	struct parameters parameters = { .place = &place };
	const char *wrong = NULL;

	if (!is_passed(url) && spokei_places_wire(url->scheme) == NULL)
		return "unknown scheme; use dubbo, msgpack-rpc or tcp";
	for (unsigned i = 0; i < url->parameter_count; i++) {
		if (!is_parameter(url->parameters[i].key)) {
			return "an address may only have the parameters shared, http, tls, "
			       "mode, allow.from and deny.from; write others as keys of [provider]";
		}
	}
	if (read_parameters(env, url, &parameters, &wrong, why))
		return wrong;
	spokei_rules_free(env, place.rules);
	if (url->shm && place.says_tls && place.tls != SPOKEI_TLS_OFF)
		return "shared memory has no TLS; write tls=off, or use unix:/PATH";
	if (is_passed(url))
		return check_passed(url);
	return read_address(env, url, &place.address, &wrong) ? wrong : NULL;
}

/* Settings belong into the provider's options, because one of several addresses cannot have
 * its own. */
static int refuse_parameters(struct spoke_engine *engine, const struct spoke_url *url)
{
	char shown[SPOKEI_PLACES_SHOWN];

	for (unsigned i = 0; i < url->parameter_count; i++) {
		const char *key = url->parameters[i].key;

		/* A secret that had no effect here, e.g. a token, would leave the service open. */
		if ((spokei_keys_is_other(key) && !spokei_keys_is_secret(key)) || is_parameter(key))
			continue;
		(void)spokei_log_escape(shown, sizeof(shown), key, strlen(key));
		spokei_event(engine, SPOKE_EINVAL,
			     "listen: %s is not allowed here; set it in the provider's options",
			     shown);
		return SPOKE_EINVAL;
	}
	return SPOKE_OK;
}

/* Finds the address of a socket that a service manager has passed. */
static int find_passed(struct spoke_engine *engine, const struct spoke_url *url,
		       struct spoke_address *ret_address, const char **ret_why)
{
	const struct spoke_env *env = engine->env;
	char text[SPOKEI_PLACES_SHOWN];
	int error;

	*ret_why = check_passed(url);
	if (*ret_why)
		return SPOKE_EINVAL;
	error = env->net->passed ? env->net->passed(env->ctx, url->host, ret_address) : -ENOENT;
	if (error) {
		(void)spokei_log_escape(text, sizeof(text), url->host, strlen(url->host));
		spokei_event(engine, SPOKE_ESYSTEM,
			     error == -ENOENT
				     ? "listen: no socket named %s was passed to this process, or "
				       "it is in use; set FileDescriptorName in the socket unit"
				     : "listen: the socket named %s is no listening stream socket; "
				       "use ListenStream in the socket unit",
			     text);
		return SPOKE_ESYSTEM;
	}
	env->net->print(env->ctx, ret_address, text, sizeof(text));
	spokei_event(engine, SPOKE_OK, "listen: fd://%s is the socket at %s", url->host, text);
	return SPOKE_OK;
}

bool spokei_places_is_local(const struct spoke_env *env, const struct spoke_address *address)
{
	char text[SPOKEI_PLACES_SHOWN];

	env->net->print(env->ctx, address, text, sizeof(text));
	return strncmp(text, "127.", 4) == 0 || strncmp(text, "[::1]", 5) == 0 ||
	       strncmp(text, "unix:", 5) == 0;
}

/* Returns an error if the environment lacks something, with a sentence. */
static int check_env(const struct spoke_env *env, const struct spoke_url *url, bool has_mode,
		     const char **ret_why)
{
	if (has_mode && env->net->listen_mode == NULL)
		*ret_why = "mode is not available in this environment";
	else if (url->shm && env->net->shared == NULL)
		*ret_why = "shared memory is not available in this environment";
	else
		return SPOKE_OK;
	return SPOKE_EUNSUPPORTED;
}

static int read_place(struct spoke_engine *engine, const struct spoke_url *url,
		      struct spokei_listen_place *ret)
{
	const struct spoke_env *env = engine->env;
	struct parameters parameters = { .place = ret };
	char sentence[SPOKEI_CHECK_WHY];
	const char *why = NULL;
	int error = refuse_parameters(engine, url);

	if (error == 0 && is_passed(url))
		error = find_passed(engine, url, &ret->address, &why);
	else if (error == 0)
		error = read_address(env, url, &ret->address, &why);
	if (error == 0)
		error = read_parameters(env, url, &parameters, &why, sentence);
	if (error == 0)
		error = check_env(env, url, ret->has_mode, &why);
	ret->shm = url->shm;
	ret->local = error == 0 && spokei_places_is_local(env, &ret->address);
	ret->http = parameters.http == HTTP_AUTO ? ret->local : parameters.http == HTTP_ON;
	ret->shared = parameters.sharing != SHARED_NOT;
	ret->handed = parameters.sharing == SHARED_TURNS || url->socket || is_passed(url) ||
		      env->net->listen_shared == NULL;
	if (why)
		spokei_event(engine, error, "listen: %s", why);
	return error;
}

int spokei_places_listen(struct spoke_engine *engine, const char *text,
			 struct spokei_listen_place *ret)
{
	struct spoke_url url;
	int error = spokei_places_url(engine, text, &url);

	*ret = (struct spokei_listen_place){ .rules = NULL };
	if (error)
		return error;
	if (!is_passed(&url) && wire_of(engine, &url) == NULL)
		error = SPOKE_EUNSUPPORTED;
	if (error == 0)
		error = read_place(engine, &url, ret);
	spoke_url_fini(&url);
	return error;
}

/* --- hosts */

bool spokei_places_is_any(const char *host)
{
	return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 ||
	       strcmp(host, "::ffff:0.0.0.0") == 0;
}

const char *spokei_places_check_host(const struct spoke_env *env, const char *host)
{
	bool bare = strchr(host, ':') && *host != '[';
	char text[SPOKE_URL_HOST_MAX + 16];
	struct spoke_url url;
	int error = SPOKE_ETOOLARGE;
	bool fine;

	if (spokei_machine_misspelt(spokei_span(host, strlen(host))))
		return "this is no IPv4 address; write e.g. 10.0.0.1, or a name";

	if (strlen(host) <= SPOKE_URL_HOST_MAX) {
		(void)snprintf(text, sizeof(text), "dubbo://%s%s%s", bare ? "[" : "", host,
			       bare ? "]" : "");
		error = spoke_url_parse(env, text, strlen(text), &url, NULL);
	}
	if (error)
		return error == SPOKE_ENOMEM ? spokei_check_no_memory : "not a host";
	fine = url.host && *url.host && url.port < 0 && url.user == NULL && *url.path == '\0' &&
	       url.parameter_count == 0 && !spokei_places_is_any(url.host);
	spoke_url_fini(&url);
	return fine ? NULL : "write a host that consumers can reach, without a port";
}

/* --- hosts that are let in */

enum spokei_exposed spokei_exposure_judge(const struct spokei_exposure *of)
{
	if (of->local || of->asks || spokei_rules_limit_hosts(of->of_owner) ||
	    spokei_rules_limit_hosts(of->of_address) ||
	    spokei_callers_limit_hosts(of->of_provider) ||
	    spokei_callers_limit_hosts(of->of_service))
		return SPOKEI_EXPOSED_NOT;
	if (of->plain)
		return SPOKEI_EXPOSED_PLAIN;
	if (of->verify == SPOKE_TLS_VERIFY_REQUIRED)
		return SPOKEI_EXPOSED_NOT;
	return of->verify == SPOKE_TLS_VERIFY_DEFAULT ? SPOKEI_EXPOSED_NO_CA
						      : SPOKEI_EXPOSED_UNVERIFIED;
}

const char *spokei_exposed_why(enum spokei_exposed exposed)
{
	static const char *const sentences[] = {
		[SPOKEI_EXPOSED_NOT] = "",
		[SPOKEI_EXPOSED_PLAIN] = ", in plain text; set tls with tls.ca",
		[SPOKEI_EXPOSED_NO_CA] = ", because TLS asks for no certificate; set tls.ca",
		[SPOKEI_EXPOSED_UNVERIFIED] =
			", because TLS requires no certificate; set tls.verify = required",
	};

	return sentences[exposed];
}
