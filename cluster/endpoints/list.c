/* SPDX-License-Identifier: Apache-2.0 */
/* Applies lists of providers to a directory: a fixed list or those of a registry. */
#include "cluster/discovery/provider_url.h"
#include "cluster/endpoints/parts.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"
#include "transport/stream/stream.h"
#include "transport/wire/message.h"

#define SHOWN 40u                    /* bytes of a version or group */
#define WAKE_NS UINT64_C(1000000000) /* before failed connects are retried */

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
	int error = spokei_endpoint_new(directory->link, provider, directory->settings.connections,
					&spokei_directory_endpoint_up, directory, &endpoint);

	if (error)
		return error;
	endpoint->directory = directory;
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
	bool news;                     /* a weight has changed */
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
			draft->news |= spokei_endpoint_take(entry->endpoint, &provider);
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
		spokei_candidates_add(candidates, draft->entries[i].endpoint);
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
	if (!directory->keeps)
		spokei_event(directory->engine, SPOKE_ENOPROVIDER,
			     "list of %s: contains no usable provider; the known ones are kept "
			     "unless registry.protect=false",
			     directory->settings.service);
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
static void tell_over(struct spokei_directory *directory, const struct draft *draft)
{
	if (draft->over > 0 && !directory->over)
		spokei_event(directory->engine, SPOKE_ELIMIT,
			     "list of %s: %zu providers ignored; the first %u are used",
			     directory->settings.service, draft->over, SPOKEI_ENDPOINTS_MAX);
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
	} else if (draft.news) {
		spokei_directory_refresh_later(directory);
	}
	spokei_free(env, draft.entries, room, sizeof(struct entry));
	tell_over(directory, &draft);
	if (draft.error)
		spokei_event(directory->engine, draft.error,
			     "list of %s: some providers could not be added",
			     directory->settings.service);
	begin_to_connect(directory);
	return draft.error;
}
