/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing rules and tags of a directory. The calls for which the same rules and tag apply share a
 * view, that is the arrays for balancers without the endpoints that such calls must not go to. A
 * view is made for the first of these calls, and follows the list and the rules when it is used.
 * Part of a directory, on its thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_ROUTING_H
#define SPOKEI_CLUSTER_ENDPOINTS_ROUTING_H

#include "cluster/endpoints/candidates.h"
#include "cluster/route/router.h"

#include <spoke/wheel.h>

struct spokei_directory;
struct spokei_endpoint;

#define SPOKEI_VIEWS_MAX 16u /* the one that was used longest ago is freed for another */

enum {
	SPOKEI_VIEW_BALANCERS = 3
}; /* in turn, if calls of a view use more */

struct spokei_view {
	/* Those of the directory; `ranks` and `able` are its own, in `memory`. */
	struct spokei_candidates candidates;
	struct spoke_list node; /* of all views, the last used at the end */
	struct spokei_route_choice choice;
	struct spokei_route_verdict verdict;
	uint8_t *members; /* of each place: whether it belongs to the view */
	void *memory;
	size_t room;
	/* Changes of the directory that it reflects. */
	uint64_t decided; /* of rules and texts */
	uint64_t placed;
	uint64_t version;
	uint64_t regraded;
	struct spokei_balancer_state states[SPOKEI_VIEW_BALANCERS];
	unsigned next_state;
};

struct spokei_routing {
	struct spokei_route_rules rules;       /* borrowed */
	struct spoke_url consumer;             /* owned; its host is `host` once that is known */
	char names[SPOKEI_ROUTE_SOURCES][120]; /* of rules, for errors; may be cut */
	char why[160];
	char host[64];
	uint64_t looked; /* changes of ranks at the last look for it, plus 1 */
	struct spoke_list views;
	unsigned view_count;
	enum spokei_route_source by; /* the rule that has left no endpoint last */
};

void spokei_routing_fini(struct spokei_directory *directory);

/* Sets the URL of the consumer, with which calls are compared, and takes it over; makes it possible
 * to set rules. Returns 0 or SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_routing_own(struct spokei_directory *directory,
				      struct spoke_url *consumer);

/* Sets the rule of a source, which is borrowed; NULL: none. */
void spokei_routing_set(struct spokei_directory *directory, enum spokei_route_source source,
			struct spokei_route_rule *rule, const char *name);

/* Sets whether calls have a tag of the consumer, and go nowhere without it. */
void spokei_routing_force(struct spokei_directory *directory, bool forced);

/* An endpoint gets a tag, "" for none, gets a place or loses it, or has another text in the list.
 */
void spokei_routing_tag(struct spokei_endpoint *endpoint, const char *tag);
void spokei_routing_listed(struct spokei_endpoint *endpoint, bool listed);
void spokei_routing_reread(struct spokei_endpoint *endpoint);

/* Finds the view of a call, whose `consumer` is set here; *ret stays valid until the next view is
 * found. Returns 0; ENOPROVIDER: rules leave no endpoint; or ENOMEM. */
SPOKE_MUST_USE int spokei_routing_view(struct spokei_directory *directory,
				       struct spokei_route_call *call, struct spokei_view **ret);

/* Returns which rule has left no endpoint last, valid until the next; NULL: none is listed. */
const char *spokei_routing_why(struct spokei_directory *directory);

/* Has a view follow the ranks of the directory. */
void spokei_view_follow(struct spokei_view *view, const struct spokei_directory *directory);

/* Returns the memory of a balancer in a view. */
struct spokei_balancer_state *spokei_view_state(struct spokei_view *view,
						const struct spoke_env *env,
						const struct spoke_balancer *balancer);

#endif
