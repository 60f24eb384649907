/* SPDX-License-Identifier: Apache-2.0 */
/* A directory: applies lists of providers to it, a fixed one or those of a registry, keeps the
 * arrays for balancers, handles changes of endpoints, and tells users of them. */
#include "cluster/endpoints/directory.h"

#include "cluster/discovery/provider_url.h"
#include "cluster/endpoints/info.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"
#include "transport/stream/stream.h"
#include "transport/wire/message.h"

#include <inttypes.h>

#define SHOWN 40u                    /* bytes of a version or group */
#define WAKE_NS UINT64_C(1000000000) /* before failed connects are retried */

/* --- the arrays */

/* Bytes per place in all arrays. Two homes and moves, so that their numbers can be powers of two.
 */
#define CANDIDATE                                                                                  \
	(sizeof(struct spokei_endpoint *) + sizeof(const char *) + 3 * sizeof(uint64_t) +          \
	 7 * sizeof(uint32_t) + 2 * sizeof(uint8_t))

static void *part(unsigned char **at, size_t count, size_t size)
{
	unsigned char *begin = *at;

	*at += count * size;
	return begin;
}

/* Places the largest elements first, so that all are aligned. */
static void lay_out(struct spokei_candidates *candidates, void *memory, size_t room)
{
	unsigned char *at = memory;

	candidates->memory = memory;
	candidates->room = room;
	candidates->home_room = 1;
	while (candidates->home_room < room)
		candidates->home_room *= 2;
	candidates->endpoints = part(&at, room, sizeof(struct spokei_endpoint *));
	candidates->names = part(&at, room, sizeof(*candidates->names));
	candidates->ids = part(&at, room, sizeof(*candidates->ids));
	candidates->means_ns = part(&at, room, sizeof(*candidates->means_ns));
	candidates->chosen_ns = part(&at, room, sizeof(*candidates->chosen_ns));
	candidates->weights = part(&at, room, sizeof(*candidates->weights));
	candidates->actives = part(&at, room, sizeof(*candidates->actives));
	candidates->successes = part(&at, room, sizeof(*candidates->successes));
	candidates->homes = part(&at, 2 * room, sizeof(*candidates->homes));
	candidates->moves.places = part(&at, 2 * room, sizeof(uint32_t));
	candidates->moves.mask = candidates->home_room - 1;
	candidates->ranks = part(&at, room, sizeof(*candidates->ranks));
	candidates->able = part(&at, room, sizeof(*candidates->able));
	candidates->shown = (struct spoke_balancer_candidates){
		.able = candidates->able,
		.weights = candidates->weights,
		.actives = candidates->actives,
		.means_ns = candidates->means_ns,
		.successes = candidates->successes,
		.chosen_ns = candidates->chosen_ns,
		.names = candidates->names,
	};
}

static void add_candidate(struct spokei_candidates *candidates, struct spokei_endpoint *endpoint)
{
	size_t place = candidates->shown.count++;

	SPOKE_ASSERT(place < candidates->room);
	endpoint->place = (uint32_t)place;
	candidates->endpoints[place] = endpoint;
	candidates->names[place] = endpoint->name;
	candidates->ids[place] = endpoint->id;
	candidates->homes[endpoint->id & (candidates->home_room - 1)] = (uint32_t)place;
	candidates->weights[place] = endpoint->weight;
	candidates->actives[place] = endpoint->actives;
	candidates->means_ns[place] = endpoint->score.mean_ns;
	candidates->successes[place] = endpoint->score.successes;
	candidates->chosen_ns[place] = endpoint->chosen_ns;
	candidates->ranks[place] = SPOKEI_RANK_NONE;
	candidates->able[place] = 0;
}

static int reserve(const struct spoke_env *env, struct spokei_candidates *candidates, size_t count)
{
	const struct spokei_candidates old = *candidates;
	void *memory;

	if (count <= candidates->room)
		return SPOKE_OK;
	memory = spokei_alloc(env, count, CANDIDATE);
	if (memory == NULL)
		return SPOKE_ENOMEM;
	lay_out(candidates, memory, count);
	for (size_t i = 0; i < old.shown.count; i++)
		add_candidate(candidates, old.endpoints[i]);
	spokei_free(env, old.memory, old.room, CANDIDATE);
	return SPOKE_OK;
}

static void clear_candidates(struct spokei_candidates *candidates)
{
	for (size_t i = 0; i < candidates->shown.count; i++)
		candidates->endpoints[i]->place = SPOKEI_NOWHERE;
	candidates->shown.count = 0;
	candidates->shown.able_count = 0;
}

/* --- changes of endpoints */

void spokei_directory_refresh_later(struct spokei_directory *directory)
{
	directory->stale = true;
	if (directory->barren && !directory->ended)
		spokei_run_soon(directory->engine, &directory->check);
}

static void remove_endpoint(struct spokei_directory *directory, struct spokei_endpoint *endpoint)
{
	spokei_list_append(&directory->gone, &endpoint->node);
	spokei_endpoint_retire(endpoint);
	spokei_endpoint_free_if_over(endpoint);
}

void spokei_directory_changed(struct spokei_line *line)
{
	struct spokei_endpoint *endpoint = line->endpoint;
	struct spokei_directory *directory = endpoint->directory;
	enum spokei_connector_state state = spokei_connector_state(line->connector);

	spokei_directory_refresh_later(directory);
	/* A draining consumer needs no further connection. */
	if (state != SPOKEI_CONNECTOR_DONE &&
	    !(directory->resting && state == SPOKEI_CONNECTOR_WAITING))
		return;
	spokei_line_drop(line);
	spokei_endpoint_free_if_over(endpoint);
	if (directory->resting && directory->link->conn_count == 0)
		directory->up->rested(directory->up_arg);
}

void spokei_directory_tell(struct spokei_directory *directory, const struct spoke_link_event *event)
{
	spokei_directory_refresh_later(directory);
	directory->up->event(directory->up_arg, event);
}

/* --- lists */

/* The places have changed. */
static void relisted(struct spokei_directory *directory)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	directory->list_id++;
	directory->version++;
	directory->turn = 0;
	directory->sole = candidates->shown.count == 1 && directory->settings.connections == 1
				  ? candidates->endpoints[0]
				  : NULL;
	spokei_directory_refresh_later(directory);
}

/* Makes an endpoint without a place. */
static int make_endpoint(struct spokei_directory *directory,
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

static int add_fixed(struct spokei_directory *directory, const struct spoke_url *url)
{
	struct spokei_provider_url provider;
	struct spokei_endpoint *endpoint;
	int error = spokei_provider_url_parse(directory->engine, url, 0, &provider);

	if (error)
		return error;
	provider.heartbeat_ns = 0; /* in the consumer's own URLs it is the consumer's */
	error = make_endpoint(directory, &provider, &endpoint);
	if (error)
		return error;
	add_candidate(&directory->candidates, endpoint);
	return directory->settings.lazy ? SPOKE_OK : spokei_endpoint_wake(endpoint);
}

static void free_listed(struct spokei_directory *directory)
{
	struct spokei_candidates *candidates = &directory->candidates;
	size_t count = candidates->shown.count;

	clear_candidates(candidates);
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
	int error = reserve(directory->engine->env, &directory->candidates, count);

	SPOKE_ASSERT(directory->candidates.shown.count == 0);
	for (size_t i = 0; i < count && error == 0; i++)
		error = add_fixed(directory, &urls[i]);
	if (error)
		free_listed(directory);
	relisted(directory);
	return error;
}

/* --- lists of a registry */

/* An endpoint of the new list. */
struct entry {
	struct spokei_endpoint *endpoint;
	const struct spoke_url *url; /* newest one of its key; NULL: the endpoint was made of it */
	uint64_t timestamp_ms;       /* of that URL */
};

/* The new list: endpoints in the order of the URLs. */
struct draft {
	struct entry *entries;
	size_t room;
	size_t count;
	bool reweighed;                /* a weight has changed */
	bool disabled;                 /* providers are listed, but disabled */
	const struct spoke_url *other; /* the first one of another version or group; NULL: none */
	size_t others;                 /* their number */
	size_t over;                   /* URLs beyond the limit */
	int error;                     /* an endpoint could not be added */
};

static void draft_add(struct spokei_directory *directory, struct draft *draft,
		      struct spokei_endpoint *endpoint, const struct spoke_url *url,
		      const struct spokei_provider_url *provider)
{
	endpoint->round = directory->round;
	endpoint->draft_at = (uint32_t)draft->count;
	draft->entries[draft->count++] = (struct entry){ endpoint, url, provider->timestamp_ms };
}

static void draft_new(struct spokei_directory *directory, struct draft *draft,
		      const struct spoke_url *url)
{
	struct spokei_endpoint *endpoint;
	struct spokei_provider_url provider;
	int error = spokei_provider_url_parse(directory->engine, url, directory->host_id,
					      &provider);

	if (error)
		return; /* was logged */
	error = make_endpoint(directory, &provider, &endpoint);
	if (error == 0) {
		error = spokei_map_add(&directory->keys, endpoint->key, endpoint->key_len,
				       endpoint);
		if (error)
			spokei_endpoint_free(endpoint);
	}
	if (error)
		draft->error = error;
	else
		draft_add(directory, draft, endpoint, NULL, &provider);
}

/* Takes the URL of a provider that has an endpoint already. A provider that is killed and started
 * again is listed twice for a while: the newest URL counts, and the last one of equal age. */
static void draft_known(struct spokei_directory *directory, struct draft *draft,
			struct spokei_endpoint *endpoint, const struct spoke_url *url,
			const struct spokei_provider_url *provider)
{
	struct entry *entry;

	if (endpoint->round != directory->round) {
		draft_add(directory, draft, endpoint, url, provider);
		return;
	}
	entry = &draft->entries[endpoint->draft_at];
	if (provider->timestamp_ms < entry->timestamp_ms)
		return;
	entry->url = url;
	entry->timestamp_ms = provider->timestamp_ms;
}

static void draft_url(struct spokei_directory *directory, struct draft *draft,
		      const struct spoke_url *url)
{
	const struct spokei_wanted wanted = { directory->settings.service,
					      directory->settings.version,
					      directory->settings.group };
	struct spokei_endpoint *endpoint;
	struct spokei_provider_url provider;

	if (spokei_provider_url_concerns(url, &wanted)) {
		draft->disabled |= spokei_provider_url_is_disabled(url);
	} else if (spokei_provider_url_serves(url, wanted.service)) {
		draft->other = draft->other ? draft->other : url;
		draft->others++;
	}
	/* Errors were logged. */
	if (!spokei_provider_url_matches(directory->engine, url, &wanted) ||
	    spokei_provider_url_identify(directory->engine, url, &provider))
		return;
	endpoint = spokei_map_get(&directory->keys, provider.key, provider.key_len);
	if (draft->count >= draft->room &&
	    (endpoint == NULL || endpoint->round != directory->round))
		draft->over++;
	else if (endpoint)
		draft_known(directory, draft, endpoint, url, &provider);
	else
		draft_new(directory, draft, url);
}

/* Replaces an endpoint whose provider asks for other requests than before. Without memory the entry
 * stays as it is. */
static int entry_replace(struct spokei_directory *directory, struct entry *entry,
			 const struct spokei_provider_url *provider)
{
	struct spokei_endpoint *before = entry->endpoint;
	struct spokei_endpoint *endpoint;
	int error = make_endpoint(directory, provider, &endpoint);

	if (error)
		return error;
	(void)spokei_map_remove(&directory->keys, before->key, before->key_len);
	/* Cannot fail: the room of the removed entry is free. */
	error = spokei_map_add(&directory->keys, endpoint->key, endpoint->key_len, endpoint);
	SPOKE_ASSERT(error == 0);
	endpoint->round = directory->round;
	entry->endpoint = endpoint;
	before->round = 0; /* removed with those that are missing */
	if (before->place == SPOKEI_NOWHERE)
		spokei_endpoint_free(before);
	return SPOKE_OK;
}

/* Gives each endpoint that was there before the newest URL of its key. */
static void draft_finish(struct spokei_directory *directory, struct draft *draft)
{
	for (size_t i = 0; i < draft->count; i++) {
		struct entry *entry = &draft->entries[i];
		struct spokei_provider_url provider;
		int error;

		if (entry->url == NULL || spokei_provider_url_parse(directory->engine, entry->url,
								    directory->host_id, &provider))
			continue;
		if (spokei_endpoint_fits(entry->endpoint, &provider)) {
			draft->reweighed |= spokei_endpoint_take(entry->endpoint, &provider);
			continue;
		}
		error = entry_replace(directory, entry, &provider);
		if (error)
			draft->error = error;
	}
}

static bool is_as_before(const struct spokei_directory *directory, const struct draft *draft)
{
	const struct spokei_candidates *candidates = &directory->candidates;

	if (draft->count != candidates->shown.count)
		return false;
	for (size_t i = 0; i < draft->count; i++)
		if (draft->entries[i].endpoint != candidates->endpoints[i])
			return false;
	return true;
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

	clear_candidates(candidates);
	for (size_t i = 0; i < before; i++) {
		struct spokei_endpoint *endpoint = candidates->endpoints[i];

		if (endpoint->round == directory->round)
			continue;
		if (endpoint->round > 0)
			(void)spokei_map_remove(&directory->keys, endpoint->key, endpoint->key_len);
		remove_endpoint(directory, endpoint);
	}
	for (size_t i = 0; i < draft->count; i++)
		add_candidate(candidates, draft->entries[i].endpoint);
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
	return directory->settings.protects && draft->count == 0 && !draft->disabled &&
	       directory->candidates.shown.count > 0;
}

/* Reports, once until a list has a provider, that the known ones are kept. */
static void tell_protected(struct spokei_directory *directory)
{
	if (!directory->keeps) {
		spokei_event(directory->engine, SPOKE_ENOPROVIDER,
			     "list of %s: contains no usable provider; the known ones are kept "
			     "unless registry.protect=false",
			     directory->settings.service);
	}
	directory->keeps = true;
}

/* Explains a list that has become empty. */
static void tell_disabled(const struct spokei_directory *directory, const struct draft *draft)
{
	if (draft->count == 0 && draft->disabled) {
		spokei_event(directory->engine, SPOKE_ENOPROVIDER,
			     "list of %s: all providers are disabled by their URLs or by "
			     "configurators",
			     directory->settings.service);
	}
}

/* Reports, once until a list fits again, that providers of the list are not used. */
static void tell_too_many(struct spokei_directory *directory, const struct draft *draft)
{
	if (draft->over > 0 && !directory->over)
		spokei_event(directory->engine, SPOKE_ELIMIT,
			     "list of %s: %zu providers ignored; endpoints.max = %" PRIu32
			     " are used",
			     directory->settings.service, draft->over,
			     directory->settings.endpoints_max);
	directory->over = draft->over > 0;
}

static const char *shown_of(const struct spoke_url *url, const char *key, char *out, size_t size)
{
	const char *text = spoke_url_get(url, key);

	(void)spokei_log_escape(out, size, text ? text : "", text ? strlen(text) : 0);
	return out;
}

/* Explains once an empty list that has providers for other consumers. */
static void tell_others(struct spokei_directory *directory, const struct draft *draft)
{
	char version[SHOWN];
	char group[SHOWN];

	if (draft->count > 0)
		directory->others_told = directory->keeps = false;
	if (draft->count > 0 || draft->others == 0 || directory->others_told)
		return;
	directory->others_told = true;
	spokei_event(directory->engine, SPOKE_ENOPROVIDER,
		     "list of %s: %zu providers ignored because their version or group is another "
		     "one, e.g. version=%s group=%s",
		     directory->settings.service, draft->others,
		     shown_of(draft->other, "version", version, sizeof(version)),
		     shown_of(draft->other, "group", group, sizeof(group)));
}

/* Notes the number of this host, unless paths of providers are not to be used: at their unix
 * sockets plain bytes are spoken. */
static void find_host(struct spokei_directory *directory)
{
	const struct spoke_env *env = directory->engine->env;
	uint64_t host_id;

	if (!directory->settings.local_path || directory->link->stream->veiled ||
	    env->host_id == NULL)
		return;
	/* A lack of descriptors does not move this process to another host. */
	if (env->host_id(env->ctx, &host_id) == 0)
		directory->host_id = host_id;
}

int spokei_directory_set(struct spokei_directory *directory, const struct spoke_url *urls,
			 size_t count)
{
	const struct spoke_env *env = directory->engine->env;
	struct draft draft = { .room = count < directory->settings.endpoints_max
					       ? count
					       : directory->settings.endpoints_max };
	size_t room = draft.room > 0 ? draft.room : 1;

	if (directory->ended || directory->resting)
		return SPOKE_OK;
	if (reserve(directory->engine->env, &directory->candidates, draft.room))
		return no_memory(directory);
	/* Moved arrays have lost the `able` flags. */
	spokei_directory_refresh_later(directory);
	directory->version++;
	draft.entries = spokei_alloc(env, room, sizeof(struct entry));
	if (draft.entries == NULL)
		return no_memory(directory);
	if (directory->round++ == 0)
		spokei_map_init(&directory->keys, env);
	find_host(directory);
	for (size_t i = 0; i < count; i++)
		draft_url(directory, &draft, &urls[i]);
	draft_finish(directory, &draft);
	tell_others(directory, &draft);
	if (is_protected(directory, &draft)) {
		tell_protected(directory);
	} else if (!is_as_before(directory, &draft)) {
		take_draft(directory, &draft);
		tell_disabled(directory, &draft);
	} else if (draft.reweighed) {
		spokei_directory_refresh_later(directory);
	}
	spokei_free(env, draft.entries, room, sizeof(struct entry));
	tell_too_many(directory, &draft);
	if (draft.error)
		spokei_event(directory->engine, draft.error,
			     "list of %s: some providers could not be added",
			     directory->settings.service);
	begin_to_connect(directory);
	return draft.error;
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
	(void)spoke_wheel_cancel(directory->engine->wheel, &directory->wake);
	directory->sole = NULL;
	directory->stale = true;
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
	uint32_t able;
	uint32_t fresh;

	spokei_directory_count(directory, NULL, 0, &able, &fresh);
	if (!directory->barren && directory->up->able)
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
		.list_id = 1,
		.version = 1,
		.best = SPOKEI_RANK_NONE,
		.stale = true,
		.check = { .run = tell_able },
	};
	set(directory, settings);
	env->dice(env->ctx, &directory->dice, sizeof(directory->dice));
	spokei_list_init(&directory->gone);
}

void spokei_directory_fini(struct spokei_directory *directory)
{
	free_listed(directory);
	while (!spokei_list_empty(&directory->gone)) {
		struct spoke_list *node = spokei_list_first(&directory->gone);

		spokei_list_remove(node);
		spokei_endpoint_free(spoke_container_of(node, struct spokei_endpoint, node));
	}
	if (directory->round > 0)
		spokei_map_fini(&directory->keys);
	spokei_free(directory->engine->env, directory->candidates.memory,
		    directory->candidates.room, CANDIDATE);
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
