/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules by which an operator changes what the URLs of providers say: the "configurators" of Dubbo,
 * e.g. "override://10.0.0.1:20880/demo.Echo?weight=50". A rule with a port is for one provider; one
 * for the host 0.0.0.0 is for all, and may also change settings of calls. Rules for single
 * consumers are ignored. Of two rules the one that sorts last wins, as in Java.
 *
 * Dubbo 2.7 and later keep rules as texts in YAML, each in a node of its own that is named after a
 * service or an application. They become the same URLs. Any thread.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_OVERRIDE_H
#define SPOKEI_CLUSTER_DISCOVERY_OVERRIDE_H

#include "cluster/registry/urls.h"
#include "cluster/route/rule.h"

#define SPOKEI_OVERRIDES_MAX 256u /* rules of a source */

/* Where rules stand. Those of a later source win. */
enum spokei_override_source {
	SPOKEI_OVERRIDE_LISTED, /* the category of the service, as in Dubbo before 2.7 */
	SPOKEI_OVERRIDE_APPLICATION,
	SPOKEI_OVERRIDE_SERVICE,
	SPOKEI_OVERRIDE_SOURCES,
};

/* All rules of a consumer. */
struct spokei_overrides {
	struct spokei_url_list of[SPOKEI_OVERRIDE_SOURCES];
};

/* The consumer to which rules may apply. The texts are borrowed. */
struct spokei_override_of {
	const char *service;
	const char *version;     /* "": none; "*": any */
	const char *group;       /* same as version; or several */
	const char *application; /* "": not set */
};

void spokei_overrides_init(struct spokei_overrides *rules, const struct spoke_env *env);
void spokei_overrides_fini(struct spokei_overrides *rules);

/* Leaves the rules of a list that apply to a consumer, sorted. Returns how many others there
 * were. */
size_t spokei_override_choose(const struct spokei_override_of *of, struct spokei_url_list *rules);

/* Returns whether two lists of sorted rules are the same. */
bool spokei_override_equal(const struct spokei_url_list *rules,
			   const struct spokei_url_list *others);

/* Applies the rules to the URL of a provider: weight, warmup and disabled. Sets *ret_url to a copy
 * with memory of its own if a rule changes the URL, else to the same URL. Returns 0 or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_override_provider(const struct spokei_overrides *rules,
					    const struct spoke_url *url, struct spoke_url *ret_url);

/* Makes a URL of all parameters of the rules for all providers, e.g. timeout. Returns 0 or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_override_calls(const struct spokei_overrides *rules,
					 struct spoke_url *ret_url);

/* --- rules in YAML */

#define SPOKEI_RULE_KEY 1024u /* bytes of a key, with the NUL */

/* Prints the key of a service's rules, "SERVICE:VERSION:GROUP". Returns whether it fits. */
bool spokei_rule_print_key(const char *service, const char *version, const char *group,
			   char key[SPOKEI_RULE_KEY]);

/*
 * Adds a rule of configurators to a list, as "override" URLs; those that spoke does not understand
 * count as bad. A text without content is no rule. Returns 0, ENOMEM, or ESYNTAX or ETOOLARGE with
 * a sentence in `why`.
 */
SPOKE_MUST_USE int spokei_rule_read(const char *text, struct spokei_url_list *list,
				    char why[SPOKEI_RULE_WHY]);

#endif
