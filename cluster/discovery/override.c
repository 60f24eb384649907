/* SPDX-License-Identifier: Apache-2.0 */
/* Reads rules, chooses those for a consumer, and applies them to URLs of providers. */
#include "cluster/discovery/override.h"

#include "cluster/discovery/provider_url.h"
#include "core/text/option.h"
#include "core/text/yaml.h"
#include "transport/wire/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ANY_HOST "0.0.0.0"
#define OVERRIDE "override"
#define ABSENT "absent" /* sets only what the URL leaves open */
#define LIST 4096u      /* bytes of a list as a parameter */

void spokei_overrides_init(struct spokei_overrides *rules, const struct spoke_env *env)
{
	for (unsigned i = 0; i < SPOKEI_OVERRIDE_SOURCES; i++)
		spokei_url_list_init(&rules->of[i], env);
}

void spokei_overrides_fini(struct spokei_overrides *rules)
{
	for (unsigned i = 0; i < SPOKEI_OVERRIDE_SOURCES; i++)
		spokei_url_list_fini(&rules->of[i]);
}

/* Returns rule number `at` of all, in the order in which they apply; NULL after the last one. */
static const struct spoke_url *rule_at(const struct spokei_overrides *rules, size_t at)
{
	for (unsigned i = 0; i < SPOKEI_OVERRIDE_SOURCES; at -= rules->of[i++].count)
		if (at < rules->of[i].count)
			return &rules->of[i].urls[at];
	return NULL;
}

/* --- a URL with other parameters */

struct draft {
	struct spoke_url_parameter list[SPOKE_URL_PARAMETERS_MAX];
	unsigned count;
	bool changed;
};

/* Sets a parameter; only if it is `absent`, if that is true. Returns false if there is no room. */
static bool set(struct draft *draft, const char *key, const char *value, bool absent)
{
	unsigned at = 0;

	while (at < draft->count && strcmp(draft->list[at].key, key) != 0)
		at++;
	if (at == SPOKE_URL_PARAMETERS_MAX)
		return false;
	if (at < draft->count && absent)
		return true;
	draft->list[at] = (struct spoke_url_parameter){ key, value };
	draft->count += at == draft->count;
	draft->changed = true;
	return true;
}

/* Prints the URL with the draft's parameters into memory of *ret_size bytes. Returns NULL if there
 * is none. */
static char *print(const struct spoke_env *env, const struct spoke_url *url,
		   const struct draft *draft, size_t *ret_size)
{
	struct spoke_url edited = *url;
	char *text;

	edited.parameters = draft->list;
	edited.parameter_count = draft->count;
	*ret_size = spoke_url_print(&edited, SPOKE_URL_WHOLE, NULL, 0) + 1;
	text = spokei_alloc(env, 1, *ret_size);
	if (text)
		(void)spoke_url_print(&edited, SPOKE_URL_WHOLE, text, *ret_size);
	return text;
}

/* Parses the URL with other parameters. Without success, e.g. because it became too long, *ret_url
 * is the same URL. */
static int parse(const struct spoke_env *env, const struct spoke_url *url,
		 const struct draft *draft, struct spoke_url *ret_url)
{
	size_t size;
	char *text = print(env, url, draft, &size);
	int error;

	*ret_url = *url;
	if (text == NULL)
		return SPOKE_ENOMEM;
	error = spoke_url_parse(env, text, size - 1, ret_url, NULL);
	spokei_free(env, text, 1, size);
	return error == SPOKE_ENOMEM ? error : SPOKE_OK;
}

/* --- choice */

static bool is_for_all(const struct spoke_url *rule)
{
	return rule->port <= 0;
}

static bool is_any_or(const char *list, const char *wanted)
{
	struct spoke_span item;

	if (*list == '\0')
		return true;
	while (spokei_option_item(&list, &item))
		if (spokei_span_is(item, "*") || spokei_span_is(item, wanted))
			return true;
	return false;
}

static bool is_for(const struct spokei_override_of *of, const struct spoke_url *rule)
{
	const struct spokei_wanted wanted = { of->service, of->version, of->group };

	return (strcmp(rule->scheme, OVERRIDE) == 0 || strcmp(rule->scheme, ABSENT) == 0) &&
	       rule->host && (!is_for_all(rule) || strcmp(rule->host, ANY_HOST) == 0) &&
	       strcmp(spokei_urls_value(rule, "enabled"), "false") != 0 &&
	       is_any_or(spokei_urls_value(rule, "side"), "consumer") &&
	       is_any_or(spokei_urls_value(rule, "application"), of->application) &&
	       (strcmp(rule->path, "*") == 0 || spokei_provider_url_concerns(rule, &wanted));
}

/* By host, then by priority. */
static bool is_before(const struct spoke_url *one, const struct spoke_url *other)
{
	int order = strcmp(one->host, other->host);

	return order < 0 ||
	       (order == 0 && strtol(spokei_urls_value(one, "priority"), NULL, 10) <
				      strtol(spokei_urls_value(other, "priority"), NULL, 10));
}

/* Equal ones keep their order, because the last one wins, as in Java. */
static void sort(struct spoke_url *rules, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const struct spoke_url rule = rules[i];
		size_t at = i;

		for (; at > 0 && is_before(&rule, &rules[at - 1]); at--)
			rules[at] = rules[at - 1];
		rules[at] = rule;
	}
}

size_t spokei_override_choose(const struct spokei_override_of *of, struct spokei_url_list *rules)
{
	size_t before = rules->count;
	size_t kept = 0;

	for (size_t i = 0; i < before; i++) {
		if (kept < SPOKEI_OVERRIDES_MAX && is_for(of, &rules->urls[i]))
			rules->urls[kept++] = rules->urls[i];
		else
			spoke_url_fini(&rules->urls[i]);
	}
	rules->count = kept;
	sort(rules->urls, kept);
	return before - kept;
}

static bool is_same(const struct spoke_url *rule, const struct spoke_url *other)
{
	bool same = strcmp(rule->scheme, other->scheme) == 0 &&
		    strcmp(rule->host, other->host) == 0 && rule->port == other->port &&
		    rule->parameter_count == other->parameter_count;

	for (unsigned i = 0; i < rule->parameter_count && same; i++)
		same = strcmp(rule->parameters[i].key, other->parameters[i].key) == 0 &&
		       strcmp(rule->parameters[i].value, other->parameters[i].value) == 0;
	return same;
}

bool spokei_override_equal(const struct spokei_url_list *rules,
			   const struct spokei_url_list *others)
{
	bool same = rules->count == others->count;

	for (size_t i = 0; i < rules->count && same; i++)
		same = is_same(&rules->urls[i], &others->urls[i]);
	return same;
}

/* --- one provider */

/* Returns whether a pattern of a list fits the address of the provider. */
static bool contains(const char *list, const struct spoke_url *url)
{
	struct spoke_span item;

	while (spokei_option_item(&list, &item))
		if (spokei_route_address_fits(item, url->host, url->port))
			return true;
	return false;
}

/* Conditions like "~dubbo=2.0.2" compare with the URL of the provider. */
static bool meets_conditions(const struct spoke_url *rule, const struct spoke_url *url)
{
	for (unsigned i = 0; i < rule->parameter_count; i++) {
		const struct spoke_url_parameter *parameter = &rule->parameters[i];

		if (*parameter->key == '~' && strcmp(parameter->value, "*") != 0 &&
		    strcmp(parameter->value, spokei_urls_value(url, parameter->key + 1)) != 0)
			return false;
	}
	return true;
}

static bool concerns(const struct spoke_url *rule, const struct spoke_url *url)
{
	const char *providers = spokei_urls_value(rule, "providers");

	if (url->host == NULL)
		return false;
	if (!is_for_all(rule) && (rule->port != url->port || (strcmp(rule->host, ANY_HOST) != 0 &&
							      strcmp(rule->host, url->host) != 0)))
		return false;
	return (*providers == '\0' || contains(providers, url)) && meets_conditions(rule, url);
}

int spokei_override_provider(const struct spokei_overrides *rules, const struct spoke_url *url,
			     struct spoke_url *ret_url)
{
	static const char *const keys[] = { "weight", "warmup", "disabled" };
	struct draft draft = { .count = url->parameter_count };
	const struct spoke_url *rule;

	*ret_url = *url;
	if (url->parameter_count > 0)
		memcpy(draft.list, url->parameters, draft.count * sizeof(*draft.list));
	for (size_t i = 0; (rule = rule_at(rules, i)); i++) {
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			const char *value = spoke_url_get(rule, keys[k]);

			if (value && concerns(rule, url))
				(void)set(&draft, keys[k], value,
					  strcmp(rule->scheme, ABSENT) == 0);
		}
	}
	return draft.changed ? parse(rules->of->env, url, &draft, ret_url) : SPOKE_OK;
}

/* --- calls */

/* Returns whether the parameter is a condition of the rule, or nothing of a call. */
static bool is_of_rule(const char *key)
{
	static const char *const keys[] = { "category", "check",     "dynamic",  "enabled",
					    "group",    "version",   "side",     "application",
					    "priority", "providers", "interface" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return *key == '~';
}

int spokei_override_calls(const struct spokei_overrides *rules, struct spoke_url *ret_url)
{
	const struct spoke_url any = {
		.scheme = OVERRIDE, .host = ANY_HOST, .port = -1, .path = ""
	};
	struct draft draft = { .count = 0 };
	const struct spoke_url *rule;
	int error;

	for (size_t i = 0; (rule = rule_at(rules, i)); i++) {
		if (!is_for_all(rule) || *spokei_urls_value(rule, "providers"))
			continue;
		for (unsigned k = 0; k < rule->parameter_count; k++) {
			if (!is_of_rule(rule->parameters[k].key))
				(void)set(&draft, rule->parameters[k].key,
					  rule->parameters[k].value,
					  strcmp(rule->scheme, ABSENT) == 0);
		}
	}
	*ret_url = (struct spoke_url){ 0 };
	if (draft.count == 0)
		return SPOKE_OK;
	error = parse(rules->of->env, &any, &draft, ret_url);
	if (ret_url->parameters == NULL)
		*ret_url = (struct spoke_url){ 0 };
	return error;
}

/* --- rules in YAML: values */

bool spokei_rule_print_key(const char *service, const char *version, const char *group,
			   char key[SPOKEI_RULE_KEY])
{
	return snprintf(key, SPOKEI_RULE_KEY, "%s:%s:%s", service, version, group) <
	       (int)SPOKEI_RULE_KEY;
}

/* Returns the text of an entry; "" if there is none, or no text. */
static const char *text_of(const struct spokei_yaml *map, const char *key)
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

/* --- rules in YAML: one URL */

struct rule {
	struct spokei_url_list *list;
	bool enabled;
	bool of_application;
	const char *key;
};

/* Adds a parameter, unless it has no value or the URL has it already. Returns false if there is no
 * room. */
static bool add(struct draft *draft, const char *key, const char *value)
{
	return *value == '\0' || *key == '\0' || set(draft, key, value, true);
}

static int add_bad(struct spokei_url_list *list, const char *why)
{
	if (list->bad++ == 0) {
		list->why.at = 0;
		(void)snprintf(list->why.text, sizeof(list->why.text), "%s", why);
	}
	return SPOKE_OK;
}

static int add_url(struct spokei_url_list *list, const struct draft *draft, const char *host,
		   const char *path)
{
	const struct spoke_url url = { .scheme = OVERRIDE, .host = host, .path = path, .port = -1 };
	size_t size;
	char *text = print(list->env, &url, draft, &size);
	int error = text ? spokei_url_list_add(list, text, size - 1) : SPOKE_ENOMEM;

	spokei_free(list->env, text, 1, size);
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
		return add_bad(rule->list, "the name of a service is too long");
	slash = strchr(text, '/');
	colon = strrchr(text, ':');
	if (slash) {
		*slash = '\0';
		path = slash + 1;
	}
	if (colon)
		*colon = '\0';
	if ((slash && !add(&draft, "group", text)) || (colon && !add(&draft, "version", colon + 1)))
		return add_bad(rule->list, "too many parameters");
	return add_url(rule->list, &draft, host, path);
}

/* Adds the URLs for a consumer's address. */
static int add_host(const struct rule *rule, const struct draft *draft, const char *host,
		    const struct spokei_yaml *services)
{
	int error = SPOKE_OK;

	if (*host == '\0' || strchr(host, ':'))
		return add_bad(rule->list, "an address of a consumer is empty or has a port");
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

/* --- rules in YAML: entries of configs */

static bool set_all(struct draft *draft, const struct spokei_yaml *parameters)
{
	for (const struct spokei_yaml *at = spokei_yaml_next(parameters, NULL); at;
	     at = spokei_yaml_next(parameters, at))
		if (at->text == NULL || !add(draft, at->key, at->text))
			return false;
	return true;
}

/* Returns the text of a match, {exact: x} or {wildcard: x}, where "*" fits all; "" for others. */
static const char *pattern_of(const struct spokei_yaml *match)
{
	const char *exact = match ? text_of(match, "exact") : "";

	return match && *exact == '\0' ? text_of(match, "wildcard") : exact;
}

/* Joins {oneof: [{exact: x}, ...]}. Returns false if it is something else, or too long. */
static bool join_exact(const struct spokei_yaml *match, char out[LIST])
{
	const struct spokei_yaml *list = match ? spokei_yaml_get(match, "oneof") : NULL;
	size_t len = 0;

	*out = '\0';
	for (const struct spokei_yaml *at = list ? spokei_yaml_next(list, NULL) : NULL; at;
	     at = spokei_yaml_next(list, at)) {
		const char *text = text_of(at, "exact");

		if (*text == '\0' || strchr(text, ','))
			return false;
		len += (size_t)snprintf(out + len, LIST - len, "%s%s", len ? "," : "", text);
		if (len >= LIST)
			return false;
	}
	return match == NULL || len > 0;
}

/* Adds the conditions {key: k, value: {exact: x}}. The application is the consumer's, as in Java.
 */
static bool add_params(struct draft *draft, const struct spokei_yaml *list, char keys[LIST])
{
	size_t len = 0;

	for (const struct spokei_yaml *at = list ? spokei_yaml_next(list, NULL) : NULL; at;
	     at = spokei_yaml_next(list, at)) {
		const char *value = pattern_of(spokei_yaml_get(at, "value"));
		const char *key = text_of(at, "key");
		int print = snprintf(keys + len, LIST - len, "~%s", key);

		if (*value == '\0' || *key == '\0' || print < 0 || (size_t)print >= LIST - len)
			return false;
		if (!add(draft, strcmp(key, "application") == 0 ? key : keys + len, value))
			return false;
		len += (size_t)print + 1;
	}
	return true;
}

/* Adds the conditions of v3.0. `texts` is room for them. Returns false if they are not understood.
 */
static bool add_match(struct draft *draft, const struct spokei_yaml *match, char texts[2][LIST])
{
	const struct spokei_yaml *provider = spokei_yaml_get(match, "providerAddress");
	const char *address = provider ? pattern_of(provider) : "*";
	const struct spokei_yaml *own = spokei_yaml_get(match, "address");

	if (provider && *address == '\0')
		address = text_of(provider, "cird");
	return *address && !spokei_yaml_get(match, "service") &&
	       (own == NULL || is_any_or(pattern_of(own), ANY_HOST)) &&
	       join_exact(spokei_yaml_get(match, "app"), texts[0]) &&
	       add(draft, "application", texts[0]) && add(draft, "providers", address) &&
	       add_params(draft, spokei_yaml_get(match, "param"), texts[1]);
}

/* The conditions come first, so that no parameter replaces them. */
static int add_item(const struct rule *rule, const struct spokei_yaml *item)
{
	const struct spokei_yaml *parameters = spokei_yaml_get(item, "parameters");
	const struct spokei_yaml *hosts = spokei_yaml_get(item, "addresses");
	const struct spokei_yaml *services = spokei_yaml_get(item, "services");
	const char *type = text_of(item, "type");
	struct draft draft = { .count = 0 };
	const struct spokei_yaml *match = spokei_yaml_get(item, "match");
	char matches[2][LIST];
	char providers[LIST];
	char applications[LIST];
	char checked[LIST];
	bool enabled = true;

	if (item->kind != SPOKEI_YAML_MAP || parameters == NULL ||
	    parameters->kind != SPOKEI_YAML_MAP || parameters->size == 1)
		return add_bad(rule->list, "an entry of configs has no parameters");
	if (*text_of(item, "side") == '\0')
		return add_bad(rule->list, "an entry of configs has no side: it has no effect");
	if (match && !add_match(&draft, match, matches))
		return add_bad(rule->list, "match is not understood: it may have providerAddress, "
					   "app, and param with exact values");
	if (!join(spokei_yaml_get(item, "providerAddresses"), providers) ||
	    !join(spokei_yaml_get(item, "applications"), applications) || !join(hosts, checked) ||
	    !join(services, checked) || !read_flag(item, "enabled", &enabled))
		return add_bad(rule->list, "a list, or enabled, has an invalid value");
	if (*type == '\0' || strcmp(type, "general") == 0)
		enabled = rule->enabled;
	if (!add(&draft, "side", text_of(item, "side")) ||
	    !add(&draft, "enabled", enabled ? "true" : "false") ||
	    !add(&draft, "application", rule->of_application ? rule->key : applications) ||
	    !add(&draft, "providers", providers) || !set_all(&draft, parameters))
		return add_bad(rule->list, "too many parameters, or one that is no text");
	return add_hosts(rule, &draft, hosts, services);
}

/* --- rules in YAML: whole */

static int read_configs(const struct spokei_yaml *root, struct spokei_url_list *list,
			const char **ret_why)
{
	const struct spokei_yaml *configs = spokei_yaml_get(root, "configs");
	const char *scope = text_of(root, "scope");
	struct rule rule = { .list = list, .enabled = true, .key = text_of(root, "key") };
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
static int read_urls(const struct spokei_yaml *root, struct spokei_url_list *list)
{
	int error = SPOKE_OK;

	for (const struct spokei_yaml *at = spokei_yaml_next(root, NULL); at && error == 0;
	     at = spokei_yaml_next(root, at))
		error = at->text ? spokei_url_list_add(list, at->text, strlen(at->text))
				 : add_bad(list, "a value that is no URL");
	return error;
}

static int read_configurators(const char *text, char *copies, struct spokei_yaml *values,
			      struct spokei_url_list *list, char why[SPOKEI_RULE_WHY])
{
	struct spokei_yaml_error syntax;
	const char *wrong = NULL;
	int error = spokei_yaml_read(text, copies, values, &syntax);

	if (error) {
		(void)snprintf(why, SPOKEI_RULE_WHY, "line %u: %s", syntax.line, syntax.text);
		return error;
	}
	if (values->kind == SPOKEI_YAML_LIST)
		return read_urls(values, list);
	if (values->text && *values->text == '\0')
		return SPOKE_OK;
	error = read_configs(values, list, &wrong);
	if (wrong)
		(void)snprintf(why, SPOKEI_RULE_WHY, "%s", wrong);
	return error;
}

int spokei_rule_read(const char *text, struct spokei_url_list *list, char why[SPOKEI_RULE_WHY])
{
	const struct spoke_env *env = list->env;
	size_t size = strlen(text) + 1;
	struct spokei_yaml *values = spokei_alloc(env, SPOKEI_YAML_NODES, sizeof(*values));
	char *copies = spokei_alloc(env, 1, size);
	int error = SPOKE_ENOMEM;

	if (values && copies)
		error = read_configurators(text, copies, values, list, why);
	spokei_free(env, copies, 1, size);
	spokei_free(env, values, SPOKEI_YAML_NODES, sizeof(*values));
	return error;
}
