/* SPDX-License-Identifier: Apache-2.0 */
/* A directory: takes a fixed list of providers, handles changes of endpoints, and tells users of
 * them. */
#include "cluster/endpoints/directory.h"

#include "cluster/discovery/provider_url.h"
#include "cluster/endpoints/info.h"
#include "cluster/endpoints/listing.h"
#include "cluster/endpoints/routing.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"
#include "transport/stream/stream.h"
#include "transport/wire/message.h"

/* --- changes of endpoints */

static void refresh_soon(struct spokei_directory *directory)
{
	directory->stale = true;
	if ((directory->barren || directory->awaited) && !directory->ended)
		spokei_run_soon(directory->engine, &directory->check);
}

void spokei_directory_refresh_later(struct spokei_directory *directory)
{
	directory->all = true;
	refresh_soon(directory);
}

void spokei_directory_note(struct spokei_endpoint *endpoint)
{
	if (endpoint->place == SPOKEI_NOWHERE)
		return;
	if (endpoint->news.next == NULL)
		spokei_list_append(&endpoint->directory->news, &endpoint->news);
	refresh_soon(endpoint->directory);
}

void spokei_directory_named(struct spokei_endpoint *endpoint)
{
	struct spokei_directory *directory = endpoint->directory;

	endpoint->named = true;
	if (directory->named)
		return;
	directory->named = true;
	if (directory->up->named)
		directory->up->named(directory->up_arg);
}

void spokei_directory_changed(struct spokei_line *line)
{
	struct spokei_endpoint *endpoint = line->endpoint;
	struct spokei_directory *directory = endpoint->directory;
	enum spokei_connector_state state = spokei_connector_state(line->connector);

	spokei_directory_note(endpoint);
	/* A draining consumer needs no further connection. */
	if (state != SPOKEI_CONNECTOR_DONE &&
	    !(directory->resting && state == SPOKEI_CONNECTOR_WAITING))
		return;
	spokei_line_drop(line);
	spokei_endpoint_free_if_over(endpoint);
	if (directory->resting && directory->link->conn_count == 0)
		directory->up->rested(directory->up_arg);
}

void spokei_directory_tell(struct spokei_endpoint *endpoint, const struct spoke_link_event *event)
{
	struct spokei_directory *directory = endpoint->directory;

	spokei_directory_note(endpoint);
	directory->up->event(directory->up_arg, event);
}

/* --- places */

/* The places have changed. */
static void relisted(struct spokei_directory *directory)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	directory->sole = candidates->shown.count == 1 && directory->settings.connections == 1 &&
					  !directory->routes
				  ? candidates->endpoints[0]
				  : NULL;
	refresh_soon(directory);
}

void spokei_directory_route(struct spokei_directory *directory, bool routes)
{
	directory->routes = routes;
	if (!directory->ended)
		relisted(directory);
}

int spokei_directory_make(struct spokei_directory *directory,
			  const struct spokei_provider_url *provider, struct spokei_endpoint **ret)
{
	struct spokei_endpoint *endpoint;
	int error = spokei_endpoint_new(directory, provider, &endpoint);

	if (error)
		return error;
	endpoint->id = ++directory->last_id;
	endpoint->profile.id = endpoint->profile.codec;
	if (endpoint->profile.path || endpoint->profile.token)
		endpoint->profile.id = SPOKEI_PROFILE_OWN + endpoint->id;
	directory->needs_service |= provider->options.wire->attachments;
	*ret = endpoint;
	return SPOKE_OK;
}

int spokei_directory_add(struct spokei_directory *directory, struct spokei_endpoint *endpoint)
{
	struct spokei_candidates *candidates = &directory->candidates;
	int error = spokei_candidates_reserve(directory->engine->env, candidates,
					      candidates->shown.count + 1);

	if (error)
		return error;
	spokei_candidates_add(candidates, endpoint);
	spokei_routing_listed(endpoint, true);
	spokei_directory_note(endpoint);
	relisted(directory);
	return SPOKE_OK;
}

/* Takes an endpoint out of all lists but that of removed ones. */
static void unlist(struct spokei_endpoint *endpoint)
{
	struct spokei_candidates *candidates = &endpoint->directory->candidates;
	struct spokei_endpoint *moved = spokei_candidates_remove(candidates, endpoint);

	spokei_routing_listed(endpoint, false);

	if (endpoint->news.next)
		spokei_list_remove(&endpoint->news);
	if (moved)
		spokei_directory_note(moved);
}

void spokei_directory_remove(struct spokei_endpoint *endpoint)
{
	struct spokei_directory *directory = endpoint->directory;

	unlist(endpoint);
	relisted(directory);
	spokei_list_append(&directory->gone, &endpoint->node);
	spokei_endpoint_retire(endpoint);
	spokei_endpoint_free_if_over(endpoint);
}

static void free_listed(struct spokei_directory *directory)
{
	struct spokei_candidates *candidates = &directory->candidates;

	while (candidates->shown.count > 0) {
		struct spokei_endpoint *endpoint =
			candidates->endpoints[candidates->shown.count - 1];

		unlist(endpoint);
		for (uint32_t at = 0; at < endpoint->line_count; at++)
			spokei_line_drop(&endpoint->lines[at]);
		spokei_endpoint_free(endpoint);
	}
}

/* --- the fixed list */

static int add_fixed(struct spokei_directory *directory, const struct spoke_url *url)
{
	struct spokei_provider_url provider;
	struct spokei_endpoint *endpoint;
	int error = spokei_provider_url_parse(directory->engine, url, 0, &provider);

	if (error)
		return error;
	provider.heartbeat_ns = 0; /* in the consumer's own URLs these are the consumer's */
	provider.tag = "";
	error = spokei_directory_make(directory, &provider, &endpoint);
	if (error)
		return error;
	error = spokei_directory_add(directory, endpoint);
	if (error) {
		spokei_endpoint_free(endpoint);
		return error;
	}
	return directory->settings.lazy ? SPOKE_OK : spokei_endpoint_wake(endpoint);
}

int spokei_directory_fix(struct spokei_directory *directory, const struct spoke_url *urls,
			 size_t count)
{
	int error = spokei_candidates_reserve(directory->engine->env, &directory->candidates,
					      count);

	SPOKE_ASSERT(directory->candidates.shown.count == 0);
	for (size_t i = 0; i < count && error == 0; i++)
		error = add_fixed(directory, &urls[i]);
	if (error)
		free_listed(directory);
	relisted(directory);
	return error;
}

/* --- life */

static void set(struct spokei_directory *directory,
		const struct spokei_directory_settings *settings)
{
	directory->settings = *settings;
	if (settings->connections == 0)
		directory->settings.connections = 1;
	if (settings->actives_max == 0)
		directory->settings.actives_max = UINT32_MAX;
}

void spokei_directory_change(struct spokei_directory *directory,
			     const struct spokei_directory_settings *settings)
{
	set(directory, settings);
	spokei_directory_refresh_later(directory);
}

/* --- the end */

void spokei_directory_end(struct spokei_directory *directory)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	if (directory->ended)
		return;
	directory->ended = true;
	spokei_listing_end(directory->listing);
	directory->sole = NULL;
	directory->stale = directory->all = true;
	spokei_task_drop(&directory->check);
	for (size_t i = 0; i < candidates->shown.count; i++)
		spokei_endpoint_end(candidates->endpoints[i]);
	for (struct spoke_list *node = directory->gone.next; node != &directory->gone;
	     node = node->next)
		spokei_endpoint_end(spoke_container_of(node, struct spokei_endpoint, node));
}

void spokei_directory_rest(struct spokei_directory *directory, bool calls)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	directory->resting = true;
	spokei_directory_refresh_later(directory);
	for (size_t i = 0; i < candidates->shown.count; i++)
		spokei_endpoint_rest(candidates->endpoints[i], calls);
}

static void tell_able(struct spokei_task *task)
{
	struct spokei_directory *directory = spoke_container_of(task, struct spokei_directory,
								check);
	bool awaited = directory->awaited;
	uint32_t able;
	uint32_t fresh;

	spokei_directory_count(directory, NULL, NULL, 0, &able, &fresh);
	directory->awaited = false;
	if ((awaited || !directory->barren) && directory->up->able)
		directory->up->able(directory->up_arg);
}

void spokei_directory_init(struct spokei_directory *directory, struct spokei_link *link,
			   const struct spokei_directory_settings *settings,
			   const struct spokei_directory_up *up, void *up_arg)
{
	const struct spoke_env *env = link->engine->env;

	*directory = (struct spokei_directory){
		.engine = link->engine,
		.link = link,
		.up = up,
		.up_arg = up_arg,
		.candidates = { .best = SPOKEI_RANK_NONE, .changes.version = 1 },
		.stale = true,
		.all = true,
		.rerouted = 1,
		.check = { .run = tell_able },
	};
	set(directory, settings);
	env->dice(env->ctx, &directory->dice, sizeof(directory->dice));
	spokei_list_init(&directory->gone);
	spokei_list_init(&directory->news);
}

void spokei_directory_fini(struct spokei_directory *directory)
{
	spokei_listing_free(directory->listing);
	free_listed(directory);
	while (!spokei_list_empty(&directory->gone)) {
		struct spoke_list *node = spokei_list_first(&directory->gone);

		spokei_list_remove(node);
		spokei_endpoint_free(spoke_container_of(node, struct spokei_endpoint, node));
	}
	spokei_routing_fini(directory);
	spokei_candidates_fini(directory->engine->env, &directory->candidates);
}

/* --- for users */

const char *spokei_directory_reason(const struct spokei_directory *directory)
{
	const char *reason = NULL;

	for (size_t i = 0; reason == NULL && i < spokei_directory_listed(directory); i++)
		reason = spokei_endpoint_reason(directory->candidates.endpoints[i]);
	return reason;
}

size_t spokei_directory_ready(const struct spokei_directory *directory)
{
	const struct spokei_candidates *candidates = &directory->candidates;
	size_t ready = 0;

	for (size_t i = 0; i < candidates->shown.count; i++) {
		const struct spokei_endpoint *endpoint = candidates->endpoints[i];

		if (!endpoint->asleep && spokei_endpoint_grade(endpoint) == SPOKEI_GRADE_READY)
			ready++;
	}
	return ready;
}

const struct spokei_endpoint *spokei_directory_next(const struct spokei_directory *directory,
						    const struct spokei_endpoint *before)
{
	const struct spokei_candidates *candidates = &directory->candidates;
	struct spoke_list *node = directory->gone.next;
	size_t place = before ? before->place + 1 : 0;

	if (before && before->place == SPOKEI_NOWHERE)
		node = before->node.next;
	else if (place < candidates->shown.count)
		return candidates->endpoints[place];
	return node == &directory->gone ? NULL
					: spoke_container_of(node, struct spokei_endpoint, node);
}

size_t spokei_directory_infos(const struct spokei_directory *directory,
			      struct spoke_endpoint_info *infos, size_t max)
{
	const struct spokei_endpoint *endpoint = NULL;
	size_t count = 0;

	while ((endpoint = spokei_directory_next(directory, endpoint)) != NULL) {
		if (count < max)
			spokei_endpoint_info(endpoint, &infos[count]);
		count++;
	}
	return count;
}
