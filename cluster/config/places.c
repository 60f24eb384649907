/* SPDX-License-Identifier: Apache-2.0 */
/* Reads addresses from URLs: where a consumer connects to, and where a provider listens. */
#include "cluster/config/places.h"
#include "core/base/log.h"

#include "cluster/catalog.h"
#include "cluster/config/check.h"
#include "cluster/config/keys.h"
#include "core/engine/engine.h"
#include "transport/connect/connector.h"

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

/* Returns NULL after an event that explains it. */
static const struct spokei_wire *wire_of(struct spoke_engine *engine, const struct spoke_url *url)
{
	const struct spokei_wire *wire = spokei_check_wire(url->scheme);
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
	} else if (spokei_catalog_registry(url->scheme) || strcmp(url->scheme, "zookeeper") == 0) {
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

/* Settings belong into the provider's options, because one of several addresses cannot have
 * its own. */
static int refuse_parameters(struct spoke_engine *engine, const struct spoke_url *url)
{
	char shown[SPOKEI_PLACES_SHOWN];

	for (unsigned i = 0; i < url->parameter_count; i++) {
		const char *key = url->parameters[i].key;

		/* A secret that had no effect here, e.g. a token, would leave the service open. */
		if ((spokei_keys_is_other(key) && !spokei_keys_is_secret(key)) ||
		    spokei_check_is_place_key(key))
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

	*ret_why = spokei_check_passed(url);
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

static int read_mode(const struct spoke_engine *engine, const struct spoke_url *url,
		     struct spokei_listen_place *ret, const char **ret_why)
{
	int error = spokei_check_mode(url, &ret->has_mode, &ret->mode, ret_why);

	if (error || !ret->has_mode || engine->env->net->listen_mode)
		return error;
	*ret_why = "mode is not available in this environment";
	return SPOKE_EUNSUPPORTED;
}

int spokei_places_listen(struct spoke_engine *engine, const char *text,
			 struct spokei_listen_place *ret)
{
	enum spokei_sharing sharing = SPOKEI_SHARED_NOT;
	enum spokei_http_choice http = SPOKEI_HTTP_AUTO;
	char sentence[SPOKEI_CHECK_WHY];
	const char *why = NULL;
	struct spoke_url url;
	bool is_passed;
	int error = spokei_places_url(engine, text, &url);

	*ret = (struct spokei_listen_place){ .rules = NULL };
	if (error)
		return error;
	is_passed = spokei_check_is_passed(&url);
	if (!is_passed && wire_of(engine, &url) == NULL)
		error = SPOKE_EUNSUPPORTED;
	if (error == 0)
		error = refuse_parameters(engine, &url);
	if (error == 0 && is_passed)
		error = find_passed(engine, &url, &ret->address, &why);
	else if (error == 0)
		error = spokei_check_place(engine->env, &url, &ret->address, &why);
	if (error == 0)
		error = spokei_check_shared(&url, &sharing, &why);
	if (error == 0)
		error = spokei_check_http(&url, &http, &why);
	if (error == 0)
		error = read_mode(engine, &url, ret, &why);
	if (error == 0 && url.shm && engine->env->net->shared == NULL) {
		why = "shared memory is not available in this environment";
		error = SPOKE_EUNSUPPORTED;
	}
	if (error == 0)
		error = spokei_check_rules(engine->env, &url, &ret->rules, &why, sentence);
	if (error == 0) {
		ret->shm = url.shm;
		ret->local = spokei_places_is_local(engine->env, &ret->address);
		ret->http = http == SPOKEI_HTTP_AUTO ? ret->local : http == SPOKEI_HTTP_ON;
	}
	if (error == 0)
		error = spokei_check_tls(&url, &ret->says_tls, &ret->tls, &why);
	ret->shared = sharing != SPOKEI_SHARED_NOT;
	ret->handed = sharing == SPOKEI_SHARED_TURNS || url.socket || is_passed ||
		      engine->env->net->listen_shared == NULL;
	if (why)
		spokei_event(engine, error, "listen: %s", why);
	spoke_url_fini(&url);
	return error;
}
