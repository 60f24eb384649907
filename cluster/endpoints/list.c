/* SPDX-License-Identifier: Apache-2.0 */
/* Applies lists of providers to a directory: a fixed list or those of a registry. */
#include "cluster/discovery/listing.h"
#include "cluster/endpoints/parts.h"
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/wire/message.h"

#define WAKE_NS UINT64_C(1000000000) /* before failed connects are retried */

/* The places have changed. */
static void relisted(struct spokei_directory *directory)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	directory->listing++;
	directory->version++;
	directory->turn = 0;
	directory->sole = candidates->shown.count == 1 && directory->settings.connections == 1
				  ? candidates->endpoints[0]
				  : NULL;
	spokei_directory_refresh_later(directory);
}

/* Makes an endpoint without a place. */
static int make_endpoint(struct spokei_directory *directory, const struct spokei_listing *listing,
			 struct spokei_endpoint **ret)
{
	struct spokei_endpoint *endpoint;
	int error = spokei_endpoint_new(directory->link, listing, directory->settings.connections,
					&spokei_directory_endpoint_up, directory, &endpoint);

	if (error)
		return error;
	endpoint->directory = directory;
	endpoint->id = ++directory->last_id;
	directory->needs_service |= listing->options.wire->attachments;
	*ret = endpoint;
	return SPOKE_OK;
}

static int add_fixed(struct spokei_directory *directory, const struct spoke_url *url)
{
	struct spokei_listing listing;
	struct spokei_endpoint *endpoint;
	int error = spokei_listing_read(directory->engine, url, &listing);

	if (error)
		return error;
	error = make_endpoint(directory, &listing, &endpoint);
	if (error)
		return error;
	spokei_candidates_add(&directory->candidates, endpoint);
	return directory->settings.lazy ? SPOKE_OK : spokei_endpoint_wake(endpoint);
}

void spokei_directory_forget(struct spokei_directory *directory)
{
	struct spokei_candidates *candidates = &directory->candidates;
	size_t count = candidates->shown.count;

	spokei_candidates_clear(candidates);
	for (size_t i = 0; i < count; i++) {
		struct spokei_endpoint *endpoint = candidates->endpoints[i];

		if (endpoint->round > 0)
			(void)spokei_map_remove(&directory->keys, endpoint->key, endpoint->key_len);
		for (uint32_t at = 0; at < endpoint->line_count; at++)
			spokei_line_drop(&endpoint->lines[at]);
		spokei_endpoint_free(endpoint);
	}
}

int spokei_directory_fix(struct spokei_directory *directory, const struct spoke_url *urls,
			 size_t count)
{
	int error = spokei_candidates_reserve(&directory->candidates, count);

	SPOKE_ASSERT(directory->candidates.shown.count == 0);
	for (size_t i = 0; i < count && error == 0; i++)
		error = add_fixed(directory, &urls[i]);
	if (error)
		spokei_directory_forget(directory);
	relisted(directory);
	return error;
}

/* --- lists of a registry */

/* The new list: endpoints in the order of the URLs. */
struct draft {
	struct spokei_endpoint **endpoints;
	size_t room;
	size_t count;
	bool news; /* a weight has changed */
	int error; /* an endpoint could not be added */
};

static void draft_add(struct draft *draft, struct spokei_endpoint *endpoint, uint64_t round)
{
	endpoint->round = round;
	draft->endpoints[draft->count++] = endpoint;
}

static void draft_new(struct spokei_directory *directory, struct draft *draft,
		      const struct spokei_listing *listing)
{
	struct spokei_endpoint *endpoint;
	int error = make_endpoint(directory, listing, &endpoint);

	if (error == 0) {
		error = spokei_map_add(&directory->keys, endpoint->key, endpoint->key_len,
				       endpoint);
		if (error)
			spokei_endpoint_free(endpoint);
	}
	if (error)
		draft->error = error;
	else
		draft_add(draft, endpoint, directory->round);
}

static void draft_url(struct spokei_directory *directory, struct draft *draft,
		      const struct spoke_url *url)
{
	const struct spokei_wanted wanted = { directory->settings.service,
					      directory->settings.version,
					      directory->settings.group };
	struct spokei_endpoint *endpoint;
	struct spokei_listing listing;

	/* Errors were logged. */
	if (!spokei_listing_matches(directory->engine, url, &wanted) ||
	    spokei_listing_read(directory->engine, url, &listing))
		return;
	endpoint = spokei_map_get(&directory->keys, listing.key, listing.key_len);
	if (endpoint && endpoint->round == directory->round) {
		if (listing.timestamp_ms > endpoint->timestamp_ms)
			draft->news |= spokei_endpoint_take(endpoint, &listing);
	} else if (draft->count >= draft->room) {
		draft->error = SPOKE_ELIMIT;
	} else if (endpoint) {
		draft->news |= spokei_endpoint_take(endpoint, &listing);
		draft_add(draft, endpoint, directory->round);
	} else {
		draft_new(directory, draft, &listing);
	}
}

static bool is_as_before(const struct spokei_directory *directory, const struct draft *draft)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	return draft->count == candidates->shown.count &&
	       (draft->count == 0 || memcmp(draft->endpoints, candidates->endpoints,
					    draft->count * sizeof(struct spokei_endpoint *)) == 0);
}

static void wake_due(struct spoke_timer *timer, void *arg);

/* Schedules a retry. Returns whether that succeeded. */
static bool wake_later(struct spokei_directory *directory)
{
	struct spoke_engine *engine = directory->engine;
	uint64_t due_ns = engine->env->now(engine->env->ctx) + WAKE_NS;
	unsigned timer_class;

	if (spoke_timer_armed(&directory->wake))
		return true;
	return spokei_engine_class(engine, "wake", wake_due, &timer_class) == 0 &&
	       spoke_wheel_schedule(engine->wheel, &directory->wake, timer_class, due_ns) ==
		       SPOKE_WHEEL_OK;
}

/* Connects all endpoints before a call needs them. An endpoint without the resources stays
 * asleep. Returns how many do. */
static size_t wake_all(struct spokei_directory *directory, struct spokei_endpoint **ret_first,
		       int *ret_error)
{
	const struct spokei_candidates *candidates = &directory->candidates;
	size_t count = 0;

	for (size_t i = 0; i < candidates->shown.count; i++) {
		struct spokei_endpoint *endpoint = candidates->endpoints[i];
		int error = endpoint->asleep ? spokei_endpoint_wake(endpoint) : SPOKE_OK;

		if (error && count++ == 0) {
			*ret_first = endpoint;
			*ret_error = error;
		}
	}
	return count;
}

static void begin_to_connect(struct spokei_directory *directory)
{
	struct spokei_endpoint *first = NULL;
	int error = SPOKE_OK;
	size_t count;

	if (directory->settings.lazy || directory->ended || directory->resting)
		return;
	count = wake_all(directory, &first, &error);
	if (count == 0)
		return;
	spokei_event(directory->engine, error, "%s: connect failed, one of %zu; retrying %s",
		     first->name, count,
		     wake_later(directory) ? "in a second" : "on the next call");
}

static void wake_due(struct spoke_timer *timer, void *arg)
{
	(void)arg;
	begin_to_connect(spoke_container_of(timer, struct spokei_directory, wake));
}

/* Applies the new list. There is capacity. */
static void take_draft(struct spokei_directory *directory, const struct draft *draft)
{
	struct spokei_candidates *candidates = &directory->candidates;
	size_t before = candidates->shown.count;

	spokei_candidates_clear(candidates);
	for (size_t i = 0; i < before; i++) {
		struct spokei_endpoint *endpoint = candidates->endpoints[i];

		if (endpoint->round == directory->round)
			continue;
		if (endpoint->round > 0)
			(void)spokei_map_remove(&directory->keys, endpoint->key, endpoint->key_len);
		spokei_directory_remove(directory, endpoint);
	}
	for (size_t i = 0; i < draft->count; i++)
		spokei_candidates_add(candidates, draft->endpoints[i]);
	relisted(directory);
}

static int no_memory(struct spokei_directory *directory)
{
	spokei_event(directory->engine, SPOKE_ENOMEM, "list of %s: out of memory; unchanged",
		     directory->settings.service);
	return SPOKE_ENOMEM;
}

/* Providers that were there a moment ago are not gone because the registry lists none. */
static bool is_protected(const struct spokei_directory *directory, const struct draft *draft)
{
	return directory->settings.protects && draft->count == 0 &&
	       directory->candidates.shown.count > 0;
}

static void tell_protected(const struct spokei_directory *directory)
{
	spokei_event(directory->engine, SPOKE_ENOPROVIDER,
		     "list of %s: contains no usable provider; ignored unless "
		     "registry.protect=false",
		     directory->settings.service);
}

int spokei_directory_set(struct spokei_directory *directory, const struct spoke_url *urls,
			 size_t count)
{
	const struct spoke_env *env = directory->engine->env;
	struct draft draft = { .room = count < SPOKEI_ENDPOINTS_MAX ? count
								    : SPOKEI_ENDPOINTS_MAX };
	size_t room = draft.room > 0 ? draft.room : 1;

	if (directory->ended || directory->resting)
		return SPOKE_OK;
	if (spokei_candidates_reserve(&directory->candidates, draft.room))
		return no_memory(directory);
	/* Moved arrays have lost the `able` flags. */
	spokei_directory_refresh_later(directory);
	directory->version++;
	draft.endpoints = spokei_alloc(env, room, sizeof(struct spokei_endpoint *));
	if (draft.endpoints == NULL)
		return no_memory(directory);
	if (directory->round++ == 0)
		spokei_map_init(&directory->keys, env);
	for (size_t i = 0; i < count; i++)
		draft_url(directory, &draft, &urls[i]);
	if (is_protected(directory, &draft)) {
		tell_protected(directory);
	} else if (!is_as_before(directory, &draft)) {
		take_draft(directory, &draft);
	} else if (draft.news) {
		spokei_directory_refresh_later(directory);
	}
	spokei_free(env, draft.endpoints, room, sizeof(struct spokei_endpoint *));
	if (draft.error)
		spokei_event(directory->engine, draft.error,
			     "list of %s: some providers could not be added",
			     directory->settings.service);
	begin_to_connect(directory);
	return draft.error;
}
