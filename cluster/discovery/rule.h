/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules as Dubbo keeps them since 2.7: each a text in YAML, in a node of its own that is named
 * after a service or an application. They become the URLs of which earlier versions made lists: see
 * override.h. Any thread.
 */
#ifndef SPOKEI_CLUSTER_DISCOVERY_RULE_H
#define SPOKEI_CLUSTER_DISCOVERY_RULE_H

#include "cluster/discovery/lineup.h"

/* Names of nodes are a key and one of these. */
#define SPOKEI_RULE_CONFIGURATORS ".configurators"
#define SPOKEI_RULE_CONDITIONS ".condition-router"
#define SPOKEI_RULE_TAGS ".tag-router"
#define SPOKEI_RULE_SCRIPTS ".script-router"
#define SPOKEI_RULE_MESH ".MESHAPPRULE"

#define SPOKEI_RULE_KEY 1024u /* bytes of a key, with the NUL */
#define SPOKEI_RULE_WHY 128u  /* bytes of a sentence, with the NUL */

/* Returns whether a category of a registry is that of rules, not of URLs. */
static inline bool spokei_rule_is(const char *category)
{
	return *category == '.';
}

/* Prints the key of a service's rules, "SERVICE:VERSION:GROUP". Returns whether it fits. */
bool spokei_rule_print_key(const char *service, const char *version, const char *group,
			   char key[SPOKEI_RULE_KEY]);

/*
 * Adds a rule to a lineup: "override" URLs for configurators, of which those that spoke does not
 * understand count as bad; one "route" URL for a router, which is not read. A text without content
 * is no rule. Returns 0, ENOMEM, or ESYNTAX or ETOOLARGE with a sentence in `why`.
 */
SPOKE_MUST_USE int spokei_rule_read(const char *category, const char *text,
				    struct spokei_lineup *lineup, char why[SPOKEI_RULE_WHY]);

#endif
