/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the rules for a consumer, and applies them to URLs of providers. */
#include "cluster/discovery/override.h"

#include "cluster/discovery/listing.h"
#include "core/text/option.h"
#include "transport/wire/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY_HOST "0.0.0.0"
#define OVERRIDE "override"
#define ABSENT "absent" /* sets only what the URL leaves open */
#define ADDRESS 300u    /* bytes of a host and a port */

void spokei_overrides_init(struct spokei_overrides *rules, const struct spoke_env *env)
{
	for (unsigned i = 0; i < SPOKEI_OVERRIDE_SOURCES; i++)
		spokei_lineup_init(&rules->of[i], env);
}

void spokei_overrides_fini(struct spokei_overrides *rules)
{
	for (unsigned i = 0; i < SPOKEI_OVERRIDE_SOURCES; i++)
		spokei_lineup_fini(&rules->of[i]);
}

/* Returns rule number `at` of all, in the order in which they apply; NULL after the last one. */
static const struct spoke_url *rule_at(const struct spokei_overrides *rules, size_t at)
{
	for (unsigned i = 0; i < SPOKEI_OVERRIDE_SOURCES; at -= rules->of[i++].count)
		if (at < rules->of[i].count)
			return &rules->of[i].urls[at];
	return NULL;
}

static const char *said(const struct spoke_url *url, const char *key)
{
	const char *text = spoke_url_get(url, key);

	return text ? text : "";
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
	       strcmp(said(rule, "enabled"), "false") != 0 &&
	       is_any_or(said(rule, "side"), "consumer") &&
	       is_any_or(said(rule, "application"), of->application) &&
	       (strcmp(rule->path, "*") == 0 || spokei_listing_concerns(rule, &wanted));
}

/* By host, then by priority. */
static int compare(const void *a, const void *b)
{
	const struct spoke_url *one = a;
	const struct spoke_url *other = b;
	int order = strcmp(one->host, other->host);
	long first;
	long second;

	if (order)
		return order;
	first = strtol(said(one, "priority"), NULL, 10);
	second = strtol(said(other, "priority"), NULL, 10);
	return (first > second) - (first < second);
}

size_t spokei_override_choose(const struct spokei_override_of *of, struct spokei_lineup *rules)
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
	if (kept > 1)
		qsort(rules->urls, kept, sizeof(*rules->urls), compare);
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

bool spokei_override_equal(const struct spokei_lineup *rules, const struct spokei_lineup *others)
{
	bool same = rules->count == others->count;

	for (size_t i = 0; i < rules->count && same; i++)
		same = is_same(&rules->urls[i], &others->urls[i]);
	return same;
}

/* --- one provider */

/* Returns whether a list of addresses contains that of the provider: HOST:PORT, where the host may
 * be 0.0.0.0, and the port missing or a star. */
static bool contains(const char *list, const struct spoke_url *url)
{
	const char *const hosts[] = { url->host, ANY_HOST };
	char forms[6][ADDRESS];
	struct spoke_span item;

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(forms[i], ADDRESS, "%s:%d", hosts[i], url->port);
		(void)snprintf(forms[2 + i], ADDRESS, "%s:*", hosts[i]);
		(void)snprintf(forms[4 + i], ADDRESS, "%s", hosts[i]);
	}
	while (spokei_option_item(&list, &item))
		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
			if (spokei_span_is(item, forms[i]))
				return true;
	return false;
}

/* Conditions like "~dubbo=2.0.2" compare with the URL of the provider. */
static bool meets_conditions(const struct spoke_url *rule, const struct spoke_url *url)
{
	for (unsigned i = 0; i < rule->parameter_count; i++) {
		const struct spoke_url_parameter *parameter = &rule->parameters[i];

		if (*parameter->key == '~' && strcmp(parameter->value, "*") != 0 &&
		    strcmp(parameter->value, said(url, parameter->key + 1)) != 0)
			return false;
	}
	return true;
}

static bool concerns(const struct spoke_url *rule, const struct spoke_url *url)
{
	const char *providers = said(rule, "providers");

	if (url->host == NULL)
		return false;
	if (!is_for_all(rule) && (rule->port != url->port || (strcmp(rule->host, ANY_HOST) != 0 &&
							      strcmp(rule->host, url->host) != 0)))
		return false;
	return (*providers == '\0' || contains(providers, url)) && meets_conditions(rule, url);
}

struct draft {
	struct spoke_url_parameter list[SPOKE_URL_PARAMETERS_MAX];
	unsigned count;
	bool changed;
};

/* Sets a parameter, unless there is no room for it. */
static void set(struct draft *draft, const char *key, const char *value, bool absent)
{
	unsigned at = 0;

	while (at < draft->count && strcmp(draft->list[at].key, key) != 0)
		at++;
	if ((at < draft->count && absent) || at == SPOKE_URL_PARAMETERS_MAX)
		return;
	draft->list[at] = (struct spoke_url_parameter){ key, value };
	draft->count += at == draft->count;
	draft->changed = true;
}

/* Parses the URL with other parameters. Without success, e.g. because it became too long, *ret_url
 * is the same URL. */
static int parse(const struct spoke_env *env, const struct spoke_url *url, struct draft *draft,
		 struct spoke_url *ret_url)
{
	struct spoke_url edited = *url;
	size_t size;
	char *text;
	int error;

	*ret_url = *url;
	edited.parameters = draft->list;
	edited.parameter_count = draft->count;
	size = spoke_url_print(&edited, SPOKE_URL_WHOLE, NULL, 0) + 1;
	text = spokei_alloc(env, 1, size);
	if (text == NULL)
		return SPOKE_ENOMEM;
	(void)spoke_url_print(&edited, SPOKE_URL_WHOLE, text, size);
	error = spoke_url_parse(env, text, size - 1, ret_url, NULL);
	spokei_free(env, text, 1, size);
	return error == SPOKE_ENOMEM ? error : SPOKE_OK;
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
				set(&draft, keys[k], value, strcmp(rule->scheme, ABSENT) == 0);
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
		if (!is_for_all(rule) || *said(rule, "providers"))
			continue;
		for (unsigned k = 0; k < rule->parameter_count; k++)
			if (!is_of_rule(rule->parameters[k].key))
				set(&draft, rule->parameters[k].key, rule->parameters[k].value,
				    strcmp(rule->scheme, ABSENT) == 0);
	}
	*ret_url = (struct spoke_url){ 0 };
	if (draft.count == 0)
		return SPOKE_OK;
	error = parse(rules->of->env, &any, &draft, ret_url);
	if (ret_url->parameters == NULL)
		*ret_url = (struct spoke_url){ 0 };
	return error;
}
