/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing rules of Dubbo, as they are read from the texts of a registry: conditions, e.g.
 * "method=find* => region=north", with weights since v3.1; tags; and the URLs of routers as before
 * 2.7. Also the patterns for addresses in such rules. Pure; any thread.
 */
#ifndef SPOKEI_CLUSTER_ROUTE_RULE_H
#define SPOKEI_CLUSTER_ROUTE_RULE_H

#include <spoke/url.h>
#include <spoke/value.h>

#include <stdbool.h>
#include <stdint.h>

/* Names of rules are a key and one of these. */
#define SPOKEI_RULE_CONFIGURATORS ".configurators"
#define SPOKEI_RULE_CONDITIONS ".condition-router"
#define SPOKEI_RULE_TAGS ".tag-router"
#define SPOKEI_RULE_SCRIPTS ".script-router"
#define SPOKEI_RULE_MESH ".MESHAPPRULE"

#define SPOKEI_RULE_WHY 128u /* bytes of a sentence, with the NUL */

#define SPOKEI_ROUTE_CONDITIONS 64u   /* conditions of a rule */
#define SPOKEI_ROUTE_DESTINATIONS 32u /* destinations of a condition */
#define SPOKEI_ROUTE_WORDS 4096u      /* keys and values of a rule */

/* A key or a value of a condition, or an address. Numbers of words are indices of rule->words; 0:
 * none. */
struct spokei_route_word {
	const char *text;
	uint32_t next;   /* the next key, value or address */
	uint32_t values; /* of a key: its first value */
	bool denied;     /* a value after "!=" */
};

/* Providers that meet all its keys. */
struct spokei_route_destination {
	uint32_t keys;   /* the first one; 0: of a drawn one: all providers, else none */
	uint32_t weight; /* of a drawn one */
};

/* Restricts calls that meet its `when` to its destination. */
struct spokei_route_condition {
	uint32_t when;  /* the first key; 0: all calls */
	uint32_t first; /* destination */
	uint32_t count; /* of destinations; 0: no provider is left */
	bool drawn;     /* of v3.1: one of the destinations that have providers is drawn */
	bool force;     /* if no provider meets it, none is left; else it does not apply */
};

/* Providers with a tag by rule. */
struct spokei_route_tag {
	const char *name;
	uint32_t addresses; /* the first one */
	uint32_t matches;   /* without addresses: the first key; 0: none */
};

struct spokei_route_rule {
	uint64_t print;          /* a hash of the text: equal texts have the same */
	const char *unsupported; /* the rule does not apply: why, as a sentence; NULL: it does */
	bool force;              /* of tags */
	uint32_t condition_count;
	uint32_t tag_count;
	struct spokei_route_condition *conditions;
	struct spokei_route_destination *destinations;
	struct spokei_route_tag *tags;
	struct spokei_route_word *words;
	/* Borrowed, and the memory that has all of these. */
	const struct spoke_env *env;
	size_t size;
};

/*
 * Reads the text of a rule of this category, without that of configurators. *ret is NULL if the
 * text has no content, or the rule no effect. Returns 0, ENOMEM, or ESYNTAX or ETOOLARGE with a
 * sentence in `why`.
 */
SPOKE_MUST_USE int spokei_route_read(const struct spoke_env *env, const char *category,
				     const char *text, struct spokei_route_rule **ret,
				     char why[SPOKEI_RULE_WHY]);

/* Reads the URLs of routers, e.g. "route://0.0.0.0/demo.Echo?rule=...", into one rule, in the order
 * of their priorities. Counts those that are not understood. Returns 0 or ENOMEM. */
SPOKE_MUST_USE int spokei_route_read_urls(const struct spoke_env *env, const struct spoke_url *urls,
					  size_t count, struct spokei_route_rule **ret,
					  size_t *ret_ignored);

/* Frees a rule; NULL is fine. */
void spokei_route_free(struct spokei_route_rule *rule);

/*
 * Returns whether a pattern fits an address: "10.0.0.1:20880", also without a port or with "*" as
 * the port, a host "0.0.0.0" or "*" for all, "*" and ranges as "1-9" as parts of an IPv4 address,
 * "10.0.0.0/8". `host` may be NULL.
 */
bool spokei_route_address_fits(struct spoke_span pattern, const char *host, int port);

#endif
