/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the views of a directory, one for each choice of rules and tag. */
#include "cluster/endpoints/routing.h"

#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/listing.h"
#include "core/base/env.h"
#include "core/base/mix.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"

#include <stdio.h>

_Static_assert(SPOKEI_ENDPOINT_TAG == SPOKEI_ROUTE_TAG_MAX, "tags of both sides are compared");

/* --- rules */

static bool is_ruled(const struct spokei_routing *routing)
{
	for (unsigned i = 0; routing && i < SPOKEI_ROUTE_SOURCES; i++)
		if (routing->rules.of[i])
			return true;
	return false;
}

static void changed(struct spokei_directory *directory)
{
	directory->rerouted++;
	spokei_directory_route(directory, directory->forced || directory->tagged > 0 ||
						  is_ruled(directory->routing));
}

void spokei_routing_force(struct spokei_directory *directory, bool forced)
{
	directory->forced = forced;
	changed(directory);
}

/* Returns NULL if there is no memory. */
static struct spokei_routing *make(struct spokei_directory *directory)
{
	if (directory->routing)
		return directory->routing;
	directory->routing = spokei_alloc(directory->engine->env, 1, sizeof(*directory->routing));
	if (directory->routing)
		spokei_list_init(&directory->routing->views);
	return directory->routing;
}

int spokei_routing_own(struct spokei_directory *directory, struct spoke_url *consumer)
{
	struct spokei_routing *routing = make(directory);

	if (routing == NULL)
		return SPOKE_ENOMEM;
	routing->consumer = *consumer;
	routing->consumer.host = NULL;
	*consumer = (struct spoke_url){ 0 };
	return SPOKE_OK;
}

void spokei_routing_set(struct spokei_directory *directory, enum spokei_route_source source,
			struct spokei_route_rule *rule, const char *name)
{
	struct spokei_routing *routing = directory->routing;

	if (routing == NULL)
		return;
	routing->rules.of[source] = rule;
	(void)snprintf(routing->names[source], sizeof(routing->names[source]), "%s", name);
	changed(directory);
	/* Calls that wait for an endpoint may have one now. */
	spokei_directory_refresh_later(directory);
}

/* --- endpoints */

void spokei_routing_listed(struct spokei_endpoint *endpoint, bool listed)
{
	if (*endpoint->tag == '\0')
		return;
	endpoint->directory->tagged += listed ? 1 : SIZE_MAX;
	changed(endpoint->directory);
}

void spokei_routing_tag(struct spokei_endpoint *endpoint, const char *tag)
{
	/* A longer one is that of no call. */
	const char *text = strlen(tag) < sizeof(endpoint->tag) ? tag : "\x7f";
	bool listed = endpoint->place != SPOKEI_NOWHERE;

	if (strcmp(endpoint->tag, text) == 0)
		return;
	if (listed)
		spokei_routing_listed(endpoint, false);
	(void)snprintf(endpoint->tag, sizeof(endpoint->tag), "%s", text);
	if (listed)
		spokei_routing_listed(endpoint, true);
}

void spokei_routing_reread(struct spokei_endpoint *endpoint)
{
	spoke_url_fini(&endpoint->url);
	endpoint->directory->rerouted++;
}

/* Returns the URL of an endpoint; without a text, e.g. while the list changes, only its address is
 * known. Returns NULL if there is no memory. */
static const struct spoke_url *url_of(struct spokei_endpoint *endpoint)
{
	const char *text = spokei_listing_text(endpoint->directory->listing, endpoint);
	int error;

	if (endpoint->url.memory == NULL && text) {
		error = spoke_url_parse(endpoint->engine->env, text, strlen(text), &endpoint->url,
					NULL);
		if (error == SPOKE_ENOMEM)
			return NULL;
	}
	if (endpoint->url.memory == NULL) {
		endpoint->url.host = endpoint->options.host;
		endpoint->url.port = endpoint->options.port;
	}
	return &endpoint->url;
}

/* --- the consumer */

/* Notes the consumer's own host, that of its first connection. */
static void find_host(struct spokei_directory *directory)
{
	const struct spoke_env *env = directory->engine->env;
	struct spokei_routing *routing = directory->routing;

	if (routing->looked == directory->candidates.regraded + 1 && !directory->stale)
		return;
	routing->looked = directory->candidates.regraded + 1;
	for (size_t i = 0; i < directory->candidates.shown.count; i++) {
		const struct spokei_conn *conn = directory->candidates.endpoints[i]->lines[0].open;
		struct spoke_address address;
		char text[sizeof(routing->host)];
		const char *colon;

		if (conn == NULL || env->net->local(env->ctx, conn->stream.watch.fd, &address))
			continue;
		env->net->print(env->ctx, &address, text, sizeof(text));
		colon = strrchr(text, ':');
		if (colon == NULL || strchr(text, '/'))
			continue;
		(void)snprintf(routing->host, sizeof(routing->host), "%.*s",
			       (int)(colon - text) - 2 * (*text == '['), text + (*text == '['));
		routing->consumer.host = routing->host;
		directory->rerouted++;
		return;
	}
}

/* --- members */

/* Gives a view room for all places. */
static int reserve(struct spokei_view *view, const struct spokei_directory *directory)
{
	const struct spoke_env *env = directory->engine->env;
	size_t room = directory->candidates.room;
	void *memory;

	if (view->room >= room)
		return SPOKE_OK;
	memory = spokei_alloc(env, 3, room);
	if (memory == NULL)
		return SPOKE_ENOMEM;
	spokei_free(env, view->memory, 3, view->room);
	view->memory = memory;
	view->room = room;
	view->members = memory;
	view->candidates.ranks = view->members + room;
	view->candidates.able = view->members + 2 * room;
	view->decided = 0;
	return SPOKE_OK;
}

static int fill(struct spokei_directory *directory, struct spokei_route_provider *providers)
{
	const struct spokei_candidates *candidates = &directory->candidates;
	bool ruled = is_ruled(directory->routing);

	if (ruled)
		spokei_listing_index(directory->listing);
	for (size_t i = 0; i < candidates->shown.count; i++) {
		struct spokei_endpoint *endpoint = candidates->endpoints[i];

		providers[i] = (struct spokei_route_provider){
			.url = ruled ? url_of(endpoint) : NULL,
			.tag = endpoint->tag,
		};
		if (ruled && providers[i].url == NULL)
			return SPOKE_ENOMEM;
	}
	return SPOKE_OK;
}

/* Decides which places belong to a view, unless that is known. */
static int decide(struct spokei_view *view, struct spokei_directory *directory)
{
	const struct spoke_env *env = directory->engine->env;
	const struct spokei_candidates *candidates = &directory->candidates;
	const struct spokei_routing *routing = directory->routing;
	size_t count = candidates->shown.count;
	struct spokei_route_field field = { .count = count };
	struct spokei_route_provider *providers;
	int error = reserve(view, directory);

	if (error || (view->decided == directory->rerouted &&
		      view->placed == candidates->changes.placed.count))
		return error;
	providers = spokei_alloc(env, count, sizeof(*providers));
	if (providers == NULL)
		return SPOKE_ENOMEM;
	error = fill(directory, providers);
	if (error == 0) {
		field.providers = providers;
		field.members = view->members;
		spokei_route_apply(&routing->rules, &view->choice, &routing->consumer, &field,
				   &view->verdict);
		view->decided = directory->rerouted;
		view->placed = candidates->changes.placed.count;
		view->version = 0;
	}
	spokei_free(env, providers, count, sizeof(*providers));
	return error;
}

/* --- ranks */

static void rank(struct spokei_view *view, const struct spokei_candidates *all)
{
	struct spokei_candidates *own = &view->candidates;
	const uint64_t version = own->changes.version;
	uint8_t *const ranks = own->ranks;
	uint8_t *const able = own->able;

	*own = *all;
	own->ranks = ranks;
	own->able = able;
	own->shown.able = able;
	own->shown.able_count = 0;
	own->changes.version = version + 1;
	own->best = SPOKEI_RANKS;
	memset(own->ranked, 0, sizeof(own->ranked));
	memset(able, 0, all->shown.count);
	for (size_t i = 0; i < all->shown.count; i++) {
		ranks[i] = view->members[i] ? all->ranks[i] : SPOKEI_RANK_NONE;
		own->ranked[ranks[i]]++;
	}
	spokei_candidates_grade(own);
}

void spokei_view_follow(struct spokei_view *view, const struct spokei_directory *directory)
{
	const struct spokei_candidates *all = &directory->candidates;

	if (view->version != all->changes.version || view->regraded != all->regraded)
		rank(view, all);
	view->version = all->changes.version;
	view->regraded = all->regraded;
	view->candidates.changes.moved = all->changes.moved;
	view->candidates.changes.placed = all->changes.placed;
}

size_t spokei_view_count(const struct spokei_view *view)
{
	return view->verdict.left;
}

struct spokei_balancer_state *spokei_view_state(struct spokei_view *view,
						const struct spoke_env *env,
						const struct spoke_balancer *balancer)
{
	struct spokei_balancer_state *state;

	for (unsigned i = 0; i < SPOKEI_VIEW_BALANCERS; i++)
		if (view->states[i].balancer == balancer)
			return &view->states[i];
	state = &view->states[view->next_state++ % SPOKEI_VIEW_BALANCERS];
	spokei_balancer_state_fini(state, env);
	spokei_balancer_state_init(state, balancer);
	return state;
}

/* --- views */

static struct spokei_view *view_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_view, node);
}

static void free_view(struct spokei_directory *directory, struct spokei_view *view)
{
	const struct spoke_env *env = directory->engine->env;

	spokei_list_remove(&view->node);
	directory->routing->view_count--;
	for (unsigned i = 0; i < SPOKEI_VIEW_BALANCERS; i++)
		spokei_balancer_state_fini(&view->states[i], env);
	spokei_free(env, view->memory, 3, view->room);
	spokei_free(env, view, 1, sizeof(*view));
}

void spokei_routing_fini(struct spokei_directory *directory)
{
	struct spokei_routing *routing = directory->routing;

	if (routing == NULL)
		return;
	while (!spokei_list_empty(&routing->views))
		free_view(directory, view_at(spokei_list_first(&routing->views)));
	spoke_url_fini(&routing->consumer);
	spokei_free(directory->engine->env, routing, 1, sizeof(*routing));
	directory->routing = NULL;
}

/* Returns the view for a choice, as the last of the list; NULL: no memory. */
static struct spokei_view *find(struct spokei_directory *directory,
				const struct spokei_route_choice *choice)
{
	struct spokei_routing *routing = directory->routing;
	const size_t size = spokei_route_choice_size(choice);
	struct spokei_view *view = NULL;

	for (struct spoke_list *node = routing->views.prev; node != &routing->views && !view;
	     node = node->prev)
		if (memcmp(&view_at(node)->choice, choice, size) == 0)
			view = view_at(node);
	if (view) {
		spokei_list_remove(&view->node);
		spokei_list_append(&routing->views, &view->node);
		return view;
	}
	view = spokei_alloc(directory->engine->env, 1, sizeof(*view));
	if (view == NULL)
		return NULL;
	if (routing->view_count == SPOKEI_VIEWS_MAX)
		free_view(directory, view_at(spokei_list_first(&routing->views)));
	routing->view_count++;
	memcpy(&view->choice, choice, size);
	spokei_list_append(&routing->views, &view->node);
	return view;
}

int spokei_routing_view(struct spokei_directory *directory, struct spokei_route_call *call,
			struct spokei_view **ret)
{
	struct spokei_routing *routing = make(directory);
	struct spokei_route_choice choice;
	uint16_t empty = UINT16_MAX;
	uint32_t tried = 0;
	int error;

	*ret = NULL;
	if (directory->candidates.shown.count == 0)
		return SPOKE_OK;
	if (routing == NULL)
		return SPOKE_ENOMEM;
	if (routing->consumer.host == NULL && is_ruled(routing))
		find_host(directory);
	call->consumer = &routing->consumer;
	spokei_route_choose(&routing->rules, call, spokei_mix_next(&directory->dice), &choice);
	for (;;) {
		struct spokei_view *view = find(directory, &choice);

		error = view ? decide(view, directory) : SPOKE_ENOMEM;
		if (error)
			return error;
		*ret = view;
		if (view->verdict.empty == UINT16_MAX)
			break;
		tried = view->verdict.empty == empty ? tried : 0;
		empty = view->verdict.empty;
		spokei_route_draw_again(&routing->rules, empty, &tried,
					spokei_mix_next(&directory->dice), &choice);
	}
	if ((*ret)->verdict.left > 0)
		return SPOKE_OK;
	routing->by = (*ret)->verdict.by;
	return SPOKE_ENOPROVIDER;
}

const char *spokei_routing_why(struct spokei_directory *directory)
{
	struct spokei_routing *routing = directory->routing;

	if (directory->candidates.shown.count == 0 || routing == NULL)
		return NULL;
	if (routing->rules.of[routing->by] == NULL)
		return "the tags of the providers and of the call leave none";
	(void)snprintf(routing->why, sizeof(routing->why), "%s leaves no provider",
		       routing->names[routing->by]);
	return routing->why;
}
