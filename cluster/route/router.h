/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides by routing rules which providers a call may go to, as Dubbo for Java 3.3 does. First the
 * rules that a call meets are chosen, which needs no provider; then the providers that these rules
 * leave, which needs no call. So calls for which the same is chosen share the providers. Pure; any
 * thread.
 */
#ifndef SPOKEI_CLUSTER_ROUTE_ROUTER_H
#define SPOKEI_CLUSTER_ROUTE_ROUTER_H

#include "cluster/route/rule.h"

/* Attachments, and parameters of URLs. */
#define SPOKEI_ROUTE_TAG_KEY "dubbo.tag"
#define SPOKEI_ROUTE_FORCE_KEY "dubbo.force.tag"

#define SPOKEI_ROUTE_TAG_MAX 64u /* bytes of a tag, with the NUL; a longer one is no provider's */

/* Where rules stand, in the order in which they apply. Tags apply after URLS. */
enum spokei_route_source {
	SPOKEI_ROUTE_URLS, /* the category of the service, as in Dubbo before 2.7 */
	SPOKEI_ROUTE_TAGS, /* of the application of the first provider */
	SPOKEI_ROUTE_SERVICE,
	SPOKEI_ROUTE_PROVIDER, /* conditions of that application */
	SPOKEI_ROUTE_APPLICATION,
	SPOKEI_ROUTE_SOURCES,
};

#define SPOKEI_ROUTE_CONDITIONS_ALL (SPOKEI_ROUTE_SOURCES * SPOKEI_ROUTE_CONDITIONS)

/* All rules of a consumer; NULL: there is none. */
struct spokei_route_rules {
	struct spokei_route_rule *of[SPOKEI_ROUTE_SOURCES];
};

/* A call. */
struct spokei_route_call {
	const struct spoke_url *consumer; /* host, path and parameters of the caller */
	struct spoke_span method;
	struct spoke_span args; /* values, checked */
	struct spoke_value attachments;
	struct spoke_span tag; /* empty: none */
	bool force_tag;
};

/* The choice for a call. Compare the first spokei_route_choice_size() bytes. */
struct spokei_route_choice {
	char tag[SPOKEI_ROUTE_TAG_MAX];
	bool force_tag;
	uint16_t count; /* of conditions */
	/* Of each condition in force: 0: it does not apply; else a destination, plus 1. */
	uint8_t of[SPOKEI_ROUTE_CONDITIONS_ALL];
};

static inline size_t spokei_route_choice_size(const struct spokei_route_choice *choice)
{
	return offsetof(struct spokei_route_choice, of) + choice->count;
}

struct spokei_route_provider {
	const struct spoke_url *url; /* may be NULL without conditions */
	const char *tag;             /* "": none */
};

/* The providers that are decided about. */
struct spokei_route_field {
	const struct spokei_route_provider *providers;
	size_t count;
	uint8_t *members; /* of each: whether it is left */
};

struct spokei_route_verdict {
	size_t left; /* providers */
	/* The source whose rule has left none, if `left` is 0. TAGS without a rule: the tags of
	 * providers. */
	enum spokei_route_source by;
	/* The number of a condition whose drawn destination has no provider, although another one
	 * has: draw again. UINT16_MAX: none. */
	uint16_t empty;
};

/* Chooses the conditions that a call meets. `dice` is a random number. */
void spokei_route_choose(const struct spokei_route_rules *rules,
			 const struct spokei_route_call *call, uint64_t dice,
			 struct spokei_route_choice *ret);

/* Draws another destination for a condition. *tried has a bit for each that was drawn, and begins
 * as 0. */
void spokei_route_draw_again(const struct spokei_route_rules *rules, uint16_t condition,
			     uint32_t *tried, uint64_t dice, struct spokei_route_choice *choice);

/* Sets the members of a field. */
void spokei_route_apply(const struct spokei_route_rules *rules,
			const struct spokei_route_choice *choice, const struct spoke_url *consumer,
			const struct spokei_route_field *field, struct spokei_route_verdict *ret);

#endif
