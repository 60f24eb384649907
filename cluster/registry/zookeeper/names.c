/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the URLs of registries in ZooKeeper, and prints paths of nodes. */
#include "cluster/registry/zookeeper/names.h"

#include "cluster/registry/urls.h"

#include "core/base/log.h"
#include "core/text/option.h"

#include <spoke/registry.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)

SPOKEI_PRINTF(3, 4)
static int refuse(char why[SPOKEI_ZOO_WHY_MAX], int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, SPOKEI_ZOO_WHY_MAX, format, args);
	va_end(args);
	return error;
}

/* --- servers */

static int add_place(struct spokei_zoo_settings *settings, const struct spoke_env *env,
		     const char *host, uint16_t port, char why[SPOKEI_ZOO_WHY_MAX])
{
	int error;

	if (settings->place_count == SPOKEI_ZOO_PLACES_MAX)
		return refuse(why, SPOKE_ETOOLARGE, "at most %u servers", SPOKEI_ZOO_PLACES_MAX);
	error = spokei_place_set(&settings->places[settings->place_count], env, host, port, NULL);
	if (error)
		return refuse(why, error, "server %u: invalid host name; write host:2181",
			      settings->place_count + 1);
	settings->place_count++;
	return SPOKE_OK;
}

/* Reads a server: "host", "host:2181" or "[::1]:2181". */
static int add_text(struct spokei_zoo_settings *settings, const struct spoke_env *env,
		    const char *text, size_t len, char why[SPOKEI_ZOO_WHY_MAX])
{
	char host[SPOKE_URL_HOST_MAX + 1];
	unsigned long port = SPOKEI_ZOO_PORT;
	const char *colon = NULL;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == ':' && (text[0] != '[' || (i > 0 && text[i - 1] == ']')))
			colon = text + i;
	}
	if (colon) {
		char *end;

		port = strtoul(colon + 1, &end, 10);
		if (end != text + len || end == colon + 1 || port == 0 || port > UINT16_MAX) {
			return refuse(why, SPOKE_ESYNTAX,
				      "backup: server %u has no port from 1 to 65535 after its "
				      "colon; write host:2181,host:2181",
				      settings->place_count);
		}
		len = (size_t)(colon - text);
	}
	if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return refuse(why, SPOKE_ETOOLARGE, "backup: server %u has a name of %zu bytes",
			      settings->place_count, len);
	memcpy(host, text, len);
	host[len] = '\0';
	return add_place(settings, env, host, (uint16_t)port, why);
}

static int read_places(struct spokei_zoo_settings *settings, const struct spoke_env *env,
		       const struct spoke_url *url, char why[SPOKEI_ZOO_WHY_MAX])
{
	const char *text = spoke_url_get(url, "backup");
	int error;

	if (url->host == NULL || url->host[0] == '\0' || url->port == 0)
		return refuse(why, SPOKE_EINVAL, "no server; write zookeeper://host:2181");
	error = add_place(settings, env, url->host,
			  (uint16_t)(url->port < 0 ? (int)SPOKEI_ZOO_PORT : url->port), why);
	while (error == SPOKE_OK && text && *text) {
		size_t len = strcspn(text, ",");

		error = add_text(settings, env, text, len, why);
		text += len + (text[len] == ',');
	}
	return error;
}

/* --- nodes */

/* Checks a path, after its first slash, by ZooKeeper's rules. */
static bool is_path(const char *text)
{
	for (;;) {
		size_t len = strcspn(text, "/");

		if (len == 0 || (len == 1 && text[0] == '.') ||
		    (len == 2 && text[0] == '.' && text[1] == '.'))
			return false;
		for (size_t i = 0; i < len; i++)
			if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f)
				return false;
		if (text[len] == '\0')
			return true;
		text += len + 1;
	}
}

static int read_root(struct spokei_zoo_settings *settings, const struct spoke_url *url,
		     char why[SPOKEI_ZOO_WHY_MAX])
{
	const char *group = spoke_url_get(url, "group");
	const char *instances = spoke_url_get(url, "rootPath");
	const char *parent = url->path ? url->path : "";
	int len;

	/* As in Java, which has no other folder for instances in a group. */
	if (instances == NULL || *instances == '\0')
		instances = group && *group ? group : "services";
	instances += *instances == '/';
	if (group == NULL || *group == '\0')
		group = "dubbo";
	group += *group == '/'; /* room for both */
	if ((*parent && !is_path(parent)) || !is_path(group) || !is_path(instances)) {
		return refuse(
			why, SPOKE_EINVAL,
			"path, group and rootPath: invalid path in ZooKeeper; each part between "
			"slashes must be printable ASCII, and not \".\" or \"..\"");
	}
	len = snprintf(settings->root, sizeof(settings->root), "%s%s/%s", *parent ? "/" : "",
		       parent, group);
	if (len < 0 || (size_t)len >= sizeof(settings->root))
		return refuse(why, SPOKE_ETOOLARGE, "path and group are longer than %u bytes",
			      SPOKEI_ZOO_ROOT_MAX - 1);
	len = snprintf(settings->services, sizeof(settings->services), "%s%s/%s",
		       *parent ? "/" : "", parent, instances);
	if (len < 0 || (size_t)len >= sizeof(settings->services))
		return refuse(why, SPOKE_ETOOLARGE, "path and rootPath are longer than %u bytes",
			      SPOKEI_ZOO_ROOT_MAX - 1);
	return SPOKE_OK;
}

static int read_session(struct spokei_zoo_settings *settings, const struct spoke_url *url,
			char why[SPOKEI_ZOO_WHY_MAX])
{
	static const struct spokei_option option = {
		.name = "session",
		.kind = SPOKEI_OPTION_DURATION,
		.min = SPOKEI_ZOO_SESSION_MIN_MS * MS,
		.max = SPOKEI_ZOO_SESSION_MAX_MS * MS,
		.preset = SPOKEI_ZOO_SESSION_MS * MS,
		.sentence = "how long ZooKeeper keeps the entries of a silent client",
	};
	const char *text = spoke_url_get(url, option.name);
	uint64_t session_ns = option.preset;
	int error = SPOKE_OK;

	if (text)
		error = spokei_option_parse(&option, text, true, &session_ns, why,
					    SPOKEI_ZOO_WHY_MAX);
	if (error == SPOKE_OK)
		settings->session_ms = (int)(session_ns / MS);
	return error;
}

int spokei_zoo_settings_read(const struct spoke_env *env, const struct spoke_url *url,
			     struct spokei_zoo_settings *ret_settings, char why[SPOKEI_ZOO_WHY_MAX])
{
	int error;

	ret_settings->place_count = 0;
	if (url->user)
		return refuse(why, SPOKE_EUNSUPPORTED, "users and passwords are not supported");
	error = read_places(ret_settings, env, url, why);
	if (error == SPOKE_OK)
		error = read_root(ret_settings, url, why);
	if (error == SPOKE_OK)
		error = read_session(ret_settings, url, why);
	return error;
}

size_t spokei_zoo_print_folder(const struct spokei_zoo_settings *settings, const char *service,
			       const char *category, char *out, size_t size)
{
	size_t root = strlen(settings->root);
	size_t name = spoke_url_encode(service, strlen(service), NULL, 0);
	size_t whole = root + 1 + name + 1 + strlen(category);

	if (spokei_urls_are_rule(category))
		return (size_t)snprintf(out, size, "%s/config/dubbo/%s%s", settings->root, service,
					category);
	if (strcmp(category, SPOKE_REGISTRY_INSTANCES) == 0)
		return (size_t)snprintf(out, size, "%s/%s", settings->services, service);
	if (strcmp(category, SPOKE_REGISTRY_METADATA) == 0 ||
	    strcmp(category, SPOKE_REGISTRY_MAPPING) == 0)
		return (size_t)snprintf(out, size, "%s/%s/%s", settings->root, category, service);
	if (spokei_urls_are_services(service)) {
		(void)snprintf(out, size, "%s", settings->root);
		return root;
	}
	if (whole >= size)
		return whole;
	(void)snprintf(out, size, "%s/", settings->root);
	(void)spoke_url_encode(service, strlen(service), out + root + 1, name + 1);
	(void)snprintf(out + root + 1 + name, size - root - 1 - name, "/%s", category);
	return whole;
}
