/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the target of a verb: endpoint or registry, and method. */
#include "examples/spoke/target.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/shown.h"

#include <spoke/host.h>
#include <spoke/registry.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Returns the colon behind the scheme; NULL: there is none. A path may lack its slash, which has an
 * error of its own. */
static const char *end_of_scheme(const char *place)
{
	bool is_path = strncasecmp(place, "unix:", 5) == 0 || strncasecmp(place, "shm:", 4) == 0;

	return is_path ? strchr(place, ':') : strstr(place, ":/");
}

/* Copies the scheme of a URL in lower case. Returns false if there is none, or if it does not fit.
 */
static bool scheme_of(const char *place, char *scheme, size_t size)
{
	const char *colon = end_of_scheme(place);
	size_t len = colon ? (size_t)(colon - place) : 0;

	if (!len || len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		scheme[i] = (char)tolower((unsigned char)place[i]);
	scheme[len] = '\0';
	return true;
}

bool target_has_scheme(const char *place)
{
	return end_of_scheme(place) != NULL;
}

bool target_is_registry(const char *place)
{
	char scheme[32];

	return scheme_of(place, scheme, sizeof(scheme)) && spoke_registry_find(scheme);
}

/* Splits "service.method" at the last dot. */
static int read_what(struct target *target, const char *verb, const char *what)
{
	const char *dot = strrchr(what, '.');
	const char *method = dot ? dot + 1 : what;
	size_t service_len = dot ? (size_t)(dot - what) : 0;

	if (!*method || (dot && !service_len)) {
		return ending_say(
			VERB_USAGE, verb,
			"%s: not a method; write SERVICE.METHOD, e.g. demo.EchoService.echo",
			shown_of(what).text);
	}
	if (service_len >= sizeof(target->service) || strlen(method) >= sizeof(target->method))
		return ending_say(VERB_USAGE, verb, "the method name is too long");
	memcpy(target->service, what, service_len);
	(void)snprintf(target->method, sizeof(target->method), "%s", method);
	return VERB_OK;
}

static bool is_one_of(const char *scheme, const char *const *names)
{
	while (*names && strcmp(*names, scheme) != 0)
		names++;
	return *names != NULL;
}

/* Makes the URL of an endpoint; its scheme selects the wire. */
static int read_endpoint(struct target *target, const char *verb, const char *place,
			 const char *wire)
{
	static const char *const dubbos[] = { "dubbo", "dubbo+unix", "dubbo+shm", NULL };
	static const char *const mprpcs[] = { "msgpack-rpc", "msgpack-rpc+unix", "msgpack-rpc+shm",
					      NULL };
	static const char *const anys[] = { "tcp", "unix", "shm", "consumer", NULL };
	char scheme[32] = "tcp";
	const char *rest = place;
	bool has_scheme = scheme_of(place, scheme, sizeof(scheme));
	const char *kind;
	size_t size;

	if (has_scheme)
		rest = strchr(place, ':') + 1;
	if (is_one_of(scheme, dubbos) || is_one_of(scheme, mprpcs)) {
		target->mprpc = is_one_of(scheme, mprpcs);
		if (wire && target->mprpc != (strcmp(wire, "mprpc") == 0)) {
			return ending_say(
				VERB_USAGE, verb,
				"--wire=%s: %s specifies another wire; remove one of them", wire,
				shown_of(place).text);
		}
	} else if (is_one_of(scheme, anys)) {
		target->mprpc = wire && strcmp(wire, "mprpc") == 0;
	} else {
		return ending_say(VERB_USAGE, verb,
				  "%s: unknown; write tcp://, dubbo:// or msgpack-rpc:// and "
				  "HOST:PORT, unix:/PATH, shm:/PATH, or the URL of a registry "
				  "(" SPOKE_REGISTRY_URLS ")",
				  shown_of(place).text);
	}
	target->listed = strcmp(scheme, "consumer") == 0;
	kind = strstr(scheme, "unix") ? "+unix" : strstr(scheme, "shm") ? "+shm" : "";
	size = strlen(rest) + 32;
	target->url = malloc(size);
	if (!target->url)
		return ending_say(VERB_REMOTE, verb, "out of memory");
	(void)snprintf(target->url, size, "%s%s:%s%s",
		       target->listed  ? scheme
		       : target->mprpc ? "msgpack-rpc"
				       : "dubbo",
		       kind, has_scheme ? "" : "//", rest);
	return VERB_OK;
}

static int read_registry(struct target *target, const char *verb, const char *place,
			 const char *wire)
{
	static const char begin[] = "consumer://any/";
	size_t size = 3 * strlen(target->service) + sizeof(begin);
	const struct spoke_url url = {
		.scheme = "consumer",
		.host = "any",
		.path = target->service,
		.port = -1,
	};

	if (wire)
		return ending_say(VERB_USAGE, verb,
				  "--wire=%s: the URLs in the registry specify the wire; remove it",
				  wire);
	if (!*target->service)
		return ending_say(VERB_USAGE, verb,
				  "%s: a registry needs a service; write SERVICE.METHOD",
				  shown_of(target->method).text);
	target->registry = place;
	target->listed = true;
	target->url = malloc(size);
	if (!target->url)
		return ending_say(VERB_REMOTE, verb, "out of memory");
	(void)spoke_url_print(&url, SPOKE_URL_WHOLE, target->url, size);
	return VERB_OK;
}

static int check_url(const struct target *target, const char *verb, const char *place)
{
	struct spoke_url_error why;
	struct spoke_url url;
	int error = spoke_url_parse(spoke_host_env(), target->url, strlen(target->url), &url, &why);

	if (error)
		return ending_say(VERB_USAGE, verb, "%s: %s", shown_of(place).text, why.text);
	spoke_url_fini(&url);
	return VERB_OK;
}

/* Writes a text as a value of a URL. */
static void encode(char *out, size_t size, const char *text)
{
	size_t len = 0;

	for (; *text && len + 4 <= size; text++) {
		if (isalnum((unsigned char)*text) || strchr(".-_$/", *text))
			out[len++] = *text;
		else
			len += (size_t)snprintf(out + len, size - len, "%%%02X",
						(unsigned char)*text);
	}
	out[len] = '\0';
}

/* The settings of a service, e.g. tls.peers, are those of a consumer whose URL names it. */
static int name_service(struct target *target, const char *verb)
{
	char service[3 * TARGET_NAME_MAX + 1];

	if (!*target->service || target->registry || target_has_service(target))
		return VERB_OK;
	encode(service, sizeof(service), target->service);
	return target_set(target, "interface", service)
		       ? VERB_OK
		       : ending_say(VERB_REMOTE, verb, "out of memory");
}

int target_read(struct target *target, const char *verb, const char *place, const char *what,
		const char *wire)
{
	int end = VERB_OK;

	*target = (struct target){ .url = NULL };
	if (wire && strcmp(wire, "dubbo") != 0 && strcmp(wire, "mprpc") != 0)
		return ending_say(VERB_USAGE, verb, "--wire=%s: unknown; use dubbo or mprpc", wire);
	if (what)
		end = read_what(target, verb, what);
	if (end == VERB_OK)
		end = target_is_registry(place) ? read_registry(target, verb, place, wire)
						: read_endpoint(target, verb, place, wire);
	if (end == VERB_OK)
		end = check_url(target, verb, place);
	if (end == VERB_OK)
		end = name_service(target, verb);
	if (end != VERB_OK)
		target_fini(target);
	return end;
}

bool target_has_service(const struct target *target)
{
	struct spoke_url url;
	const char *interface;
	bool has;

	if (spoke_url_parse(spoke_host_env(), target->url, strlen(target->url), &url, NULL))
		return false;
	interface = spoke_url_get(&url, "interface");
	has = (interface && *interface) || *url.path;
	spoke_url_fini(&url);
	return has;
}

bool target_set(struct target *target, const char *key, const char *value)
{
	size_t size = strlen(target->url) + strlen(key) + strlen(value) + 3;
	char *url = malloc(size);

	if (!url)
		return false;
	(void)snprintf(url, size, "%s%c%s=%s", target->url, strchr(target->url, '?') ? '&' : '?',
		       key, value);
	free(target->url);
	target->url = url;
	return true;
}

void target_fini(struct target *target)
{
	free(target->url);
	target->url = NULL;
}
