/* SPDX-License-Identifier: Apache-2.0 */
/* Turns rules in YAML into URLs. */
#include "cluster/discovery/rule.h"

#include "core/text/yaml.h"

#include <stdio.h>
#include <strings.h>

#define ANY_HOST "0.0.0.0"
#define LIST 4096u /* bytes of a list as a parameter */

bool spokei_rule_print_key(const char *service, const char *version, const char *group,
			   char key[SPOKEI_RULE_KEY])
{
	return snprintf(key, SPOKEI_RULE_KEY, "%s:%s:%s", service, version, group) <
	       (int)SPOKEI_RULE_KEY;
}

/* --- values */

/* Returns the text of an entry; "" if there is none, or no text. */
static const char *said(const struct spokei_yaml *map, const char *key)
{
	const struct spokei_yaml *value = spokei_yaml_get(map, key);

	return value && value->text ? value->text : "";
}

/* Reads "true" or "false". Returns false for another text. */
static bool read_flag(const struct spokei_yaml *map, const char *key, bool *ret)
{
	const struct spokei_yaml *value = spokei_yaml_get(map, key);

	if (value == NULL)
		return true;
	*ret = value->text && strcasecmp(value->text, "true") == 0;
	return *ret || (value->text && strcasecmp(value->text, "false") == 0);
}

/* Joins the texts of a list with commas. Returns false if it is no list of texts, or too long. */
static bool join(const struct spokei_yaml *list, char out[LIST])
{
	size_t len = 0;

	*out = '\0';
	if (list == NULL)
		return true;
	if (list->kind != SPOKEI_YAML_LIST)
		return false;
	for (const struct spokei_yaml *at = spokei_yaml_next(list, NULL); at;
	     at = spokei_yaml_next(list, at)) {
		if (at->text == NULL || strchr(at->text, ','))
			return false;
		len += (size_t)snprintf(out + len, LIST - len, "%s%s", len ? "," : "", at->text);
		if (len >= LIST)
			return false;
	}
	return true;
}

/* --- one URL */

struct rule {
	struct spokei_lineup *lineup;
	bool enabled;
	bool of_application;
	const char *key;
};

struct draft {
	struct spoke_url_parameter list[SPOKE_URL_PARAMETERS_MAX];
	unsigned count;
};

/* Adds a parameter, unless it has no value or the URL has it already. Returns false if there is no
 * room. */
static bool set(struct draft *draft, const char *key, const char *value)
{
	if (*value == '\0' || *key == '\0')
		return true;
	for (unsigned i = 0; i < draft->count; i++)
		if (strcmp(draft->list[i].key, key) == 0)
			return true;
	if (draft->count == SPOKE_URL_PARAMETERS_MAX)
		return false;
	draft->list[draft->count++] = (struct spoke_url_parameter){ key, value };
	return true;
}

static int add_bad(struct spokei_lineup *lineup, const char *why)
{
	if (lineup->bad++ == 0) {
		lineup->why.at = 0;
		(void)snprintf(lineup->why.text, sizeof(lineup->why.text), "%s", why);
	}
	return SPOKE_OK;
}

static int add_url(struct spokei_lineup *lineup, const struct draft *draft, const char *host,
		   const char *path)
{
	const struct spoke_url url = { .scheme = "override",
				       .host = host,
				       .path = path,
				       .port = -1,
				       .parameters = draft->list,
				       .parameter_count = draft->count };
	size_t size = spoke_url_print(&url, SPOKE_URL_WHOLE, NULL, 0) + 1;
	char *text = spokei_alloc(lineup->env, 1, size);
	int error;

	if (text == NULL)
		return SPOKE_ENOMEM;
	(void)spoke_url_print(&url, SPOKE_URL_WHOLE, text, size);
	error = spokei_lineup_add(lineup, text, size - 1);
	spokei_free(lineup->env, text, 1, size);
	return error;
}

/* Adds a URL for a service, written "[GROUP/]SERVICE[:VERSION]" as in Dubbo. */
static int add_service(const struct rule *rule, const struct draft *head, const char *host,
		       const char *service)
{
	struct draft draft = *head;
	char text[SPOKEI_RULE_KEY];
	char *path = text;
	char *slash;
	char *colon;

	if (snprintf(text, sizeof(text), "%s", service) >= (int)sizeof(text))
		return add_bad(rule->lineup, "the name of a service is too long");
	slash = strchr(text, '/');
	colon = strrchr(text, ':');
	if (slash) {
		*slash = '\0';
		path = slash + 1;
	}
	if (colon)
		*colon = '\0';
	if ((slash && !set(&draft, "group", text)) || (colon && !set(&draft, "version", colon + 1)))
		return add_bad(rule->lineup, "too many parameters");
	return add_url(rule->lineup, &draft, host, path);
}

/* Adds the URLs for a consumer's address. */
static int add_host(const struct rule *rule, const struct draft *draft, const char *host,
		    const struct spokei_yaml *services)
{
	int error = SPOKE_OK;

	if (*host == '\0' || strchr(host, ':'))
		return add_bad(rule->lineup, "an address of a consumer is empty or has a port");
	if (!rule->of_application)
		return add_service(rule, draft, host, rule->key);
	if (services == NULL || services->size == 1)
		return add_service(rule, draft, host, "*");
	for (const struct spokei_yaml *at = spokei_yaml_next(services, NULL); at && error == 0;
	     at = spokei_yaml_next(services, at))
		error = add_service(rule, draft, host, at->text);
	return error;
}

static int add_hosts(const struct rule *rule, const struct draft *draft,
		     const struct spokei_yaml *hosts, const struct spokei_yaml *services)
{
	int error = SPOKE_OK;

	if (hosts == NULL || hosts->size == 1)
		return add_host(rule, draft, ANY_HOST, services);
	for (const struct spokei_yaml *at = spokei_yaml_next(hosts, NULL); at && error == 0;
	     at = spokei_yaml_next(hosts, at))
		error = add_host(rule, draft, at->text, services);
	return error;
}

/* --- items */

static bool set_all(struct draft *draft, const struct spokei_yaml *parameters)
{
	for (const struct spokei_yaml *at = spokei_yaml_next(parameters, NULL); at;
	     at = spokei_yaml_next(parameters, at))
		if (at->text == NULL || !set(draft, at->key, at->text))
			return false;
	return true;
}

/* The conditions come first, so that no parameter replaces them. */
static int add_item(const struct rule *rule, const struct spokei_yaml *item)
{
	const struct spokei_yaml *parameters = spokei_yaml_get(item, "parameters");
	const struct spokei_yaml *hosts = spokei_yaml_get(item, "addresses");
	const struct spokei_yaml *services = spokei_yaml_get(item, "services");
	const char *type = said(item, "type");
	struct draft draft = { .count = 0 };
	char providers[LIST];
	char applications[LIST];
	char checked[LIST];
	bool enabled = true;

	if (item->kind != SPOKEI_YAML_MAP || parameters == NULL ||
	    parameters->kind != SPOKEI_YAML_MAP || parameters->size == 1)
		return add_bad(rule->lineup, "an entry of configs has no parameters");
	if (*said(item, "side") == '\0')
		return add_bad(rule->lineup, "an entry of configs has no side: it has no effect");
	if (spokei_yaml_get(item, "match"))
		return add_bad(rule->lineup, "match is not supported; use providerAddresses");
	if (!join(spokei_yaml_get(item, "providerAddresses"), providers) ||
	    !join(spokei_yaml_get(item, "applications"), applications) || !join(hosts, checked) ||
	    !join(services, checked) || !read_flag(item, "enabled", &enabled))
		return add_bad(rule->lineup, "a list, or enabled, has an invalid value");
	if (*type == '\0' || strcmp(type, "general") == 0)
		enabled = rule->enabled;
	if (!set(&draft, "side", said(item, "side")) ||
	    !set(&draft, "enabled", enabled ? "true" : "false") ||
	    !set(&draft, "application", rule->of_application ? rule->key : applications) ||
	    !set(&draft, "providers", providers) || !set_all(&draft, parameters))
		return add_bad(rule->lineup, "too many parameters, or one that is no text");
	return add_hosts(rule, &draft, hosts, services);
}

/* --- a rule */

static int read_configs(const struct spokei_yaml *root, struct spokei_lineup *lineup,
			const char **ret_why)
{
	const struct spokei_yaml *configs = spokei_yaml_get(root, "configs");
	const char *scope = said(root, "scope");
	struct rule rule = { .lineup = lineup, .enabled = true, .key = said(root, "key") };
	int error = SPOKE_OK;

	rule.of_application = strcmp(scope, "application") == 0;
	if (*scope && !rule.of_application && strcmp(scope, "service") != 0)
		*ret_why = "scope: write service or application";
	else if (*rule.key == '\0')
		*ret_why = "key: missing";
	else if (!read_flag(root, "enabled", &rule.enabled))
		*ret_why = "enabled: write true or false";
	else if (configs == NULL || configs->kind != SPOKEI_YAML_LIST)
		*ret_why = "configs: missing, or no list";
	if (*ret_why)
		return SPOKE_ESYNTAX;
	for (const struct spokei_yaml *at = spokei_yaml_next(configs, NULL); at && error == 0;
	     at = spokei_yaml_next(configs, at))
		error = add_item(&rule, at);
	return error;
}

/* Reads the form of a list of "override" URLs, which Dubbo also accepts. */
static int read_urls(const struct spokei_yaml *root, struct spokei_lineup *lineup)
{
	int error = SPOKE_OK;

	for (const struct spokei_yaml *at = spokei_yaml_next(root, NULL); at && error == 0;
	     at = spokei_yaml_next(root, at))
		error = at->text ? spokei_lineup_add(lineup, at->text, strlen(at->text))
				 : add_bad(lineup, "a value that is no URL");
	return error;
}

static int read_configurators(const char *text, char *copies, struct spokei_yaml *values,
			      struct spokei_lineup *lineup, char why[SPOKEI_RULE_WHY])
{
	struct spokei_yaml_error syntax;
	const char *wrong = NULL;
	int error = spokei_yaml_read(text, copies, values, &syntax);

	if (error) {
		(void)snprintf(why, SPOKEI_RULE_WHY, "line %u: %s", syntax.line, syntax.text);
		return error;
	}
	if (values->kind == SPOKEI_YAML_LIST)
		return read_urls(values, lineup);
	if (values->text && *values->text == '\0')
		return SPOKE_OK;
	error = read_configs(values, lineup, &wrong);
	if (wrong)
		(void)snprintf(why, SPOKEI_RULE_WHY, "%s", wrong);
	return error;
}

int spokei_rule_read(const char *category, const char *text, struct spokei_lineup *lineup,
		     char why[SPOKEI_RULE_WHY])
{
	static const char route[] = "route://" ANY_HOST;
	const struct spoke_env *env = lineup->env;
	size_t size = strlen(text) + 1;
	struct spokei_yaml *values;
	char *copies;
	int error = SPOKE_ENOMEM;

	if (strcmp(category, SPOKEI_RULE_CONFIGURATORS) != 0)
		return size > 1 ? spokei_lineup_add(lineup, route, strlen(route)) : SPOKE_OK;
	values = spokei_alloc(env, SPOKEI_YAML_NODES, sizeof(*values));
	copies = spokei_alloc(env, 1, size);
	if (values && copies)
		error = read_configurators(text, copies, values, lineup, why);
	spokei_free(env, copies, 1, size);
	spokei_free(env, values, SPOKEI_YAML_NODES, sizeof(*values));
	return error;
}
