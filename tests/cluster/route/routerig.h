/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture: decides by routing rules about a few providers, which a bit each stands for. */
#ifndef TESTS_CLUSTER_ROUTE_ROUTERIG_H
#define TESTS_CLUSTER_ROUTE_ROUTERIG_H

#include "cluster/route/router.h"
#include "tests/core/memory.h"

enum {
	ROUTERIG_PROVIDERS = 8
};

struct routerig {
	struct memory memory;
	struct spokei_route_rules rules;
	struct spokei_route_call call;
	struct spoke_url consumer;
	struct spoke_url urls[ROUTERIG_PROVIDERS];
	unsigned count; /* of providers */
	char why[SPOKEI_RULE_WHY];
	struct spokei_route_verdict verdict; /* of the last decision */
};

extern struct routerig routerig;

int routerig_set_up(void **state);
int routerig_tear_down(void **state);

/* Sets the providers, whose URLs end with NULL. */
void routerig_provide(const char *const *urls);
#define PROVIDE(...) routerig_provide((const char *const[]){ __VA_ARGS__, NULL })

/* Sets the rule of a source, of conditions unless it is TAGS; NULL: none. Returns the error. */
int routerig_try_rule(enum spokei_route_source source, const char *text);
void routerig_rule(enum spokei_route_source source, const char *text);

/* Sets attachments of the call, e.g. "k1=v1,k2=v2"; those for tags count as such. */
void routerig_attach(const char *pairs);

/* Returns the providers that are left, a bit each. */
unsigned routerig_decide(uint64_t dice);

#endif
