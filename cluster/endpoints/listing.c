/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the lists of a registry to a directory. */
#include "cluster/endpoints/listing.h"
#include "cluster/endpoints/directory.h"
#include "cluster/endpoints/routing.h"

#include "cluster/discovery/provider_url.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "transport/conn/link.h"
#include "transport/stream/stream.h"

#include <inttypes.h>

#define SHOWN 40u                     /* bytes of a version or group */
#define RETRY_NS UINT64_C(1000000000) /* before failed steps are tried again */
#define AHEAD 4u                      /* texts among which one that moved is looked for */

/* The cost of a slice, and of its steps: a text is compared, or skipped; a text is read, or an
 * endpoint changes or is connected; all texts are searched. */
#define SLICE 2048
#define LOOK 1
#define WORK 64
#define SEARCH 512

static struct spokei_directory *directory_of(struct spokei_listing *listing)
{
	return listing->directory;
}

/* --- texts */

static const char *text_of(const struct spokei_text_list *list, size_t at)
{
	return (const char *)spokei_buffer_data(&list->texts) + list->entries[at].at;
}

/* Frees a list, which is empty afterwards. */
static void list_fini(const struct spoke_env *env, struct spokei_text_list *list)
{
	spokei_buffer_fini(&list->texts);
	spokei_free(env, list->entries, list->entries ? list->count + 1 : 0,
		    sizeof(*list->entries));
	list->entries = NULL;
	list->count = 0;
}

/* Moves a list, which is empty afterwards, to an empty one. */
static void list_move(struct spokei_text_list *to, struct spokei_text_list *from)
{
	const struct spokei_text_list empty = *to;

	*to = *from;
	*from = empty;
}

/* The texts of an endpoint have changed. */
static void touch(struct spokei_listing *listing, struct spokei_endpoint *endpoint)
{
	if (endpoint->touched)
		return;
	endpoint->touched = true;
	if (endpoint->chore.next)
		spokei_list_remove(&endpoint->chore);
	spokei_list_append(&listing->touched, &endpoint->chore);
}

/* The text of an entry is gone, or to be read again. */
static void release(struct spokei_listing *listing, struct spokei_listed *entry)
{
	listing->counts[entry->kind]--;
	if (entry->endpoint) {
		entry->endpoint->listed--;
		touch(listing, entry->endpoint);
	}
	entry->endpoint = NULL;
}

static void take(struct spokei_listing *listing, struct spokei_listed *entry,
		 enum spokei_listed_kind kind)
{
	listing->counts[kind]++;
	entry->kind = kind;
}

/* --- comparison */

/* Returns how many of the next few old texts come before one that is equal; AHEAD: none is. */
static size_t find_old(const struct spokei_listing *listing, const char *text, size_t size)
{
	const struct spokei_text_list *before = &listing->before;

	for (size_t i = 0; i < AHEAD && listing->old_at + i < before->count; i++) {
		const struct spokei_listed *old = &before->entries[listing->old_at + i];

		if (old[1].at - old->at == size &&
		    memcmp(text_of(before, listing->old_at + i), text, size) == 0)
			return i;
	}
	return AHEAD;
}

/* Returns whether the present old text is among the few that follow a new one of this size. */
static bool comes_later(const struct spokei_listing *listing, const char *text, size_t size)
{
	const char *old = text_of(&listing->before, listing->old_at);

	for (size_t i = listing->at + 1; i < listing->now.count && i < listing->at + AHEAD; i++) {
		text += size;
		size = strlen(text) + 1;
		if (strcmp(text, old) == 0)
			return true;
	}
	return false;
}

static void drop_old(struct spokei_listing *listing)
{
	release(listing, &listing->before.entries[listing->old_at++]);
}

static int compare_one(struct spokei_listing *listing)
{
	struct spokei_listed *entry = &listing->now.entries[listing->at];
	const char *text = text_of(&listing->now, listing->at);
	size_t size = strlen(text) + 1;
	size_t skipped = find_old(listing, text, size);

	entry[1].at = entry->at + size;
	if (skipped < AHEAD) {
		while (skipped-- > 0)
			drop_old(listing);
		entry->endpoint = listing->before.entries[listing->old_at].endpoint;
		entry->kind = listing->before.entries[listing->old_at].kind;
		entry->timestamp_ms = listing->before.entries[listing->old_at].timestamp_ms;
		listing->old_at++;
	} else {
		take(listing, entry, SPOKEI_LISTED_UNREAD);
		if (listing->old_at < listing->before.count && !comes_later(listing, text, size))
			drop_old(listing);
	}
	listing->at++;
	return LOOK;
}

/* --- reading */

/* Parses a text, and applies the rules of operators. Returns 0, SPOKE_ENOMEM, or another error of
 * a text that is invalid. */
static int parse(struct spokei_listing *listing, size_t at, struct spoke_url *ret_url,
		 struct spoke_url *ret_edited, struct spoke_url_error *why)
{
	struct spokei_directory *directory = directory_of(listing);
	const char *text = text_of(&listing->now, at);
	int error = spoke_url_parse(directory->engine->env, text, strlen(text), ret_url, why);

	*ret_edited = *ret_url;
	if (error || directory->up->edit == NULL)
		return error;
	error = directory->up->edit(directory->up_arg, ret_url, ret_edited);
	if (error)
		spoke_url_fini(ret_url);
	return error;
}

static void forget(struct spoke_url *url, struct spoke_url *edited)
{
	if (edited->parameters != url->parameters)
		spoke_url_fini(edited);
	spoke_url_fini(url);
}

/* Makes an endpoint, which calls may choose from now on. Returns 0 or SPOKE_ENOMEM. */
static int make_endpoint(struct spokei_listing *listing, const struct spokei_provider_url *provider,
			 struct spokei_endpoint **ret_endpoint)
{
	struct spokei_directory *directory = directory_of(listing);
	struct spokei_endpoint *endpoint;
	int error = spokei_directory_make(directory, provider, &endpoint);

	if (error)
		return error;
	error = spokei_map_add(&listing->keys, endpoint->key, endpoint->key_len, endpoint);
	if (error)
		goto err_after_make;
	error = spokei_directory_add(directory, endpoint);
	if (error)
		goto err_after_key;
	if (!directory->settings.lazy)
		spokei_list_append(&listing->asleep, &endpoint->chore);
	*ret_endpoint = endpoint;
	return SPOKE_OK;

err_after_key:
	(void)spokei_map_remove(&listing->keys, endpoint->key, endpoint->key_len);
err_after_make:
	spokei_endpoint_free(endpoint);
	return error;
}

/* Determines the kind of a URL. Returns 0, or SPOKE_ENOMEM, and it stays unread. */
static int read_url(struct spokei_listing *listing, struct spokei_listed *entry,
		    const struct spoke_url *url, enum spokei_listed_kind *ret_kind)
{
	struct spokei_directory *directory = directory_of(listing);
	const struct spokei_wanted wanted = { directory->settings.service,
					      directory->settings.version,
					      directory->settings.group };
	struct spokei_provider_url provider;
	int error = SPOKE_OK;

	*ret_kind = SPOKEI_LISTED_IGNORED;
	/* Dubbo's marker for an empty list. */
	if (strcmp(url->scheme, "empty") == 0)
		return SPOKE_OK;
	if (spokei_provider_url_concerns(url, &wanted)) {
		if (spokei_provider_url_is_disabled(url))
			*ret_kind = SPOKEI_LISTED_DISABLED;
	} else if (spokei_provider_url_serves(url, wanted.service)) {
		*ret_kind = SPOKEI_LISTED_OTHER;
	}
	/* Errors were logged. */
	if (!spokei_provider_url_matches(directory->engine, url, &wanted) ||
	    spokei_provider_url_parse(directory->engine, url, listing->host_id, &provider))
		return SPOKE_OK;
	entry->endpoint = spokei_map_get(&listing->keys, provider.key, provider.key_len);
	if (entry->endpoint)
		touch(listing, entry->endpoint);
	else
		error = make_endpoint(listing, &provider, &entry->endpoint);
	if (error)
		return error;
	*ret_kind = SPOKEI_LISTED_USED;
	entry->timestamp_ms = provider.timestamp_ms;
	entry->endpoint->listed++;
	entry->endpoint->entry = (uint32_t)(entry - listing->now.entries);
	return SPOKE_OK;
}

static int read_one(struct spokei_listing *listing)
{
	size_t at = listing->at++;
	struct spokei_listed *entry = &listing->now.entries[at];
	enum spokei_listed_kind kind = SPOKEI_LISTED_IGNORED;
	struct spoke_url_error why;
	struct spoke_url edited;
	struct spoke_url url;
	int error;

	if (entry->kind != SPOKEI_LISTED_UNREAD && !listing->anew)
		return LOOK;
	release(listing, entry);
	error = parse(listing, at, &url, &edited, &why);
	if (error == SPOKE_OK) {
		error = read_url(listing, entry, &edited, &kind);
		forget(&url, &edited);
	} else if (error != SPOKE_ENOMEM) {
		error = SPOKE_OK;
		if (listing->bad++ == 0)
			listing->why = why;
	}
	take(listing, entry, error ? SPOKEI_LISTED_UNREAD : kind);
	listing->error = error ? error : listing->error;
	return WORK;
}

/* --- events */

/* Reports, once until a list has a provider, that the known ones are kept. */
static void tell_protected(struct spokei_directory *directory)
{
	if (!directory->listing->keeps) {
		spokei_event(directory->engine, SPOKE_ENOPROVIDER,
			     "list of %s: contains no usable provider; the known ones are kept "
			     "unless registry.protect=false",
			     directory->settings.service);
	}
	directory->listing->keeps = true;
}

/* Explains a list that has become empty. */
static void tell_disabled(const struct spokei_directory *directory)
{
	if (directory->listing->counts[SPOKEI_LISTED_USED] == 0 &&
	    directory->listing->counts[SPOKEI_LISTED_DISABLED] > 0) {
		spokei_event(directory->engine, SPOKE_ENOPROVIDER,
			     "list of %s: all providers are disabled by their URLs or by "
			     "configurators",
			     directory->settings.service);
	}
}

static void tell_bad(struct spokei_directory *directory)
{
	const struct spokei_listing *listing = directory->listing;

	if (listing->bad > 0) {
		spokei_event(directory->engine, SPOKE_ESYNTAX,
			     "list of %s: %zu invalid provider URLs ignored; the first, byte %zu: "
			     "%s",
			     directory->settings.service, listing->bad, listing->why.at,
			     listing->why.text);
	}
}

/* Reports, once until a list fits again, that providers of the list are not used. */
static void tell_too_many(struct spokei_directory *directory, size_t over)
{
	if (over > 0 && !directory->listing->over) {
		spokei_event(directory->engine, SPOKE_ELIMIT,
			     "list of %s: %zu providers ignored; endpoints.max = %" PRIu32
			     " are used",
			     directory->settings.service, over, directory->settings.endpoints_max);
	}
	directory->listing->over = over > 0;
}

static const char *shown_of(const struct spoke_url *url, const char *key, char *out, size_t size)
{
	const char *text = spoke_url_get(url, key);

	(void)spokei_log_escape(out, size, text ? text : "", text ? strlen(text) : 0);
	return out;
}

/* Explains once an empty list that has providers for other consumers. */
static void tell_others(struct spokei_directory *directory)
{
	struct spokei_listing *listing = directory->listing;
	struct spoke_url_error why;
	struct spoke_url edited;
	struct spoke_url url;
	char version[SHOWN];
	char group[SHOWN];
	size_t at = 0;

	if (listing->counts[SPOKEI_LISTED_USED] > 0)
		listing->others_told = listing->keeps = false;
	if (listing->counts[SPOKEI_LISTED_USED] > 0 || listing->others_told ||
	    listing->counts[SPOKEI_LISTED_OTHER] == 0)
		return;
	while (listing->now.entries[at].kind != SPOKEI_LISTED_OTHER)
		at++;
	if (parse(listing, at, &url, &edited, &why))
		return;
	listing->others_told = true;
	spokei_event(directory->engine, SPOKE_ENOPROVIDER,
		     "list of %s: %zu providers ignored because their version or group is another "
		     "one, e.g. version=%s group=%s",
		     directory->settings.service, listing->counts[SPOKEI_LISTED_OTHER],
		     shown_of(&url, "version", version, sizeof(version)),
		     shown_of(&url, "group", group, sizeof(group)));
	forget(&url, &edited);
}

/* --- endpoints */

/* Returns the text that counts for an endpoint. A provider that is killed and started again is
 * listed twice for a while: the newest URL counts, and the last one of equal age. */
static size_t find_newest(const struct spokei_listing *listing,
			  const struct spokei_endpoint *endpoint, int *cost)
{
	const struct spokei_text_list *now = &listing->now;
	size_t best = endpoint->entry;

	if (endpoint->listed == 1 && best < now->count && now->entries[best].endpoint == endpoint)
		return best;
	*cost = SEARCH;
	best = now->count;
	for (size_t i = 0; i < now->count; i++) {
		if (now->entries[i].endpoint == endpoint &&
		    (best == now->count ||
		     now->entries[i].timestamp_ms >= now->entries[best].timestamp_ms))
			best = i;
	}
	return best;
}

static void remove_endpoint(struct spokei_listing *listing, struct spokei_endpoint *endpoint)
{
	if (spokei_map_get(&listing->keys, endpoint->key, endpoint->key_len) == endpoint)
		(void)spokei_map_remove(&listing->keys, endpoint->key, endpoint->key_len);
	spokei_directory_remove(endpoint);
}

/* Replaces an endpoint whose provider asks for other requests than before. Returns 0, or
 * SPOKE_ENOMEM, and it stays. */
static int replace_endpoint(struct spokei_listing *listing, struct spokei_endpoint *before,
			    const struct spokei_provider_url *provider)
{
	struct spokei_endpoint *endpoint;
	int error;

	(void)spokei_map_remove(&listing->keys, before->key, before->key_len);
	error = make_endpoint(listing, provider, &endpoint);
	if (error) {
		/* Cannot fail: the room of the removed entry is free. */
		error = spokei_map_add(&listing->keys, before->key, before->key_len, before);
		SPOKE_ASSERT(error == 0);
		return SPOKE_ENOMEM;
	}
	endpoint->listed = before->listed;
	endpoint->entry = before->entry;
	for (size_t i = 0; i < listing->now.count; i++)
		if (listing->now.entries[i].endpoint == before)
			listing->now.entries[i].endpoint = endpoint;
	spokei_directory_remove(before);
	return SPOKE_OK;
}

static void begin_to_connect(struct spokei_listing *listing)
{
	listing->step = SPOKEI_LISTING_CONNECTS;
	listing->to_connect = 0;
	listing->failed = 0;
	for (struct spoke_list *node = listing->asleep.next; node != &listing->asleep;
	     node = node->next)
		listing->to_connect++;
}

/* Applies the newest text of an endpoint. Returns 0, or SPOKE_ENOMEM, and it stays as it is. */
static int renew_endpoint(struct spokei_listing *listing, struct spokei_endpoint *endpoint,
			  int *cost)
{
	struct spokei_directory *directory = directory_of(listing);
	struct spokei_provider_url provider;
	struct spoke_url_error why;
	struct spoke_url edited;
	struct spoke_url url;
	int error = parse(listing, find_newest(listing, endpoint, cost), &url, &edited, &why);

	if (error)
		return error;
	spokei_routing_reread(endpoint);
	error = spokei_provider_url_parse(directory->engine, &edited, listing->host_id, &provider);
	if (error == SPOKE_OK && spokei_endpoint_fits(endpoint, &provider)) {
		if (spokei_endpoint_take(endpoint, &provider))
			spokei_directory_note(endpoint);
		if (endpoint->asleep && !directory->settings.lazy)
			spokei_list_append(&listing->asleep, &endpoint->chore);
	} else if (error == SPOKE_OK) {
		*cost = SEARCH;
		error = replace_endpoint(listing, endpoint, &provider);
	}
	forget(&url, &edited);
	return error;
}

static int apply_one(struct spokei_listing *listing)
{
	struct spoke_list *node = spokei_list_first(&listing->touched);
	struct spokei_endpoint *endpoint = spoke_container_of(node, struct spokei_endpoint, chore);
	int error = SPOKE_OK;
	int cost = WORK;

	spokei_list_remove(node);
	endpoint->touched = false;
	if (endpoint->listed == 0)
		remove_endpoint(listing, endpoint);
	else
		error = renew_endpoint(listing, endpoint, &cost);
	if (error) {
		listing->error = error;
		touch(listing, endpoint);
		begin_to_connect(listing); /* the others wait with it */
	}
	return cost;
}

/* Connects an endpoint before a call needs it. Without the resources it stays asleep. */
static int connect_one(struct spokei_listing *listing)
{
	struct spoke_list *node = spokei_list_first(&listing->asleep);
	struct spokei_endpoint *endpoint = spoke_container_of(node, struct spokei_endpoint, chore);
	int error;

	listing->to_connect--;
	spokei_list_remove(node);
	error = endpoint->asleep ? spokei_endpoint_wake(endpoint) : SPOKE_OK;
	if (error == SPOKE_OK)
		return WORK;
	spokei_list_append(&listing->asleep, node);
	if (listing->failed++ == 0) {
		listing->failed_first = endpoint;
		listing->failed_error = error;
	}
	return WORK;
}

/* --- the steps */

static void go_on(struct spokei_directory *directory);

static void go_on_next(struct spokei_task *task)
{
	go_on(spoke_container_of(task, struct spokei_listing, go_on)->directory);
}

static void begin_to_read(struct spokei_listing *listing)
{
	listing->step = SPOKEI_LISTING_READS;
	listing->at = 0;
	listing->bad = 0;
}

static void retry_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_listing *listing = spoke_container_of(timer, struct spokei_listing, retry);

	(void)arg;
	if (listing->step != SPOKEI_LISTING_DONE)
		return;
	begin_to_read(listing);
	go_on(listing->directory);
}

/* Schedules a retry. Returns whether that succeeded. */
static bool retry_later(struct spokei_directory *directory)
{
	struct spoke_engine *engine = directory->engine;
	struct spoke_timer *timer = &directory->listing->retry;
	uint64_t due_ns = engine->env->now(engine->env->ctx) + RETRY_NS;
	unsigned timer_class;

	if (spoke_timer_armed(timer))
		return true;
	return spokei_engine_class(engine, "wake", retry_due, &timer_class) == 0 &&
	       spoke_wheel_schedule(engine->wheel, timer, timer_class, due_ns) == SPOKE_WHEEL_OK;
}

/* Providers that were there a moment ago are not gone because the registry lists none. */
static bool is_protected(const struct spokei_directory *directory)
{
	const struct spokei_listing *listing = directory->listing;

	return directory->settings.protects && listing->counts[SPOKEI_LISTED_USED] == 0 &&
	       listing->counts[SPOKEI_LISTED_DISABLED] == 0 &&
	       directory->candidates.shown.count > 0;
}

static void all_are_read(struct spokei_directory *directory)
{
	struct spokei_listing *listing = directory->listing;

	listing->anew = false;
	tell_bad(directory);
	tell_others(directory);
	listing->step = SPOKEI_LISTING_APPLIES;
	if (!is_protected(directory)) {
		if (!spokei_list_empty(&listing->touched))
			tell_disabled(directory);
		return;
	}
	tell_protected(directory);
	begin_to_connect(listing);
}

static void tell_failures(struct spokei_directory *directory)
{
	struct spokei_listing *listing = directory->listing;
	const char *when = "on the next call";

	if ((listing->error || listing->failed) && retry_later(directory))
		when = "in a second";
	if (listing->error)
		spokei_event(directory->engine, listing->error,
			     "list of %s: some providers could not be added; retrying %s",
			     directory->settings.service, when);
	if (listing->failed)
		spokei_event(directory->engine, listing->failed_error,
			     "%s: connect failed, one of %zu; retrying %s",
			     listing->failed_first->name, listing->failed, when);
	listing->error = SPOKE_OK;
}

static int do_one(struct spokei_directory *directory)
{
	struct spokei_listing *listing = directory->listing;

	switch (listing->step) {
	case SPOKEI_LISTING_COMPARES:
		if (listing->at < listing->now.count)
			return compare_one(listing);
		if (listing->old_at < listing->before.count) {
			drop_old(listing);
			return LOOK;
		}
		listing->spare = listing->before.texts;
		spokei_buffer_clear(&listing->spare);
		spokei_buffer_init(&listing->before.texts, directory->engine->env, SIZE_MAX);
		list_fini(directory->engine->env, &listing->before);
		begin_to_read(listing);
		return LOOK;
	case SPOKEI_LISTING_READS:
		if (listing->at < listing->now.count)
			return read_one(listing);
		all_are_read(directory);
		return LOOK;
	case SPOKEI_LISTING_APPLIES:
		if (!spokei_list_empty(&listing->touched))
			return apply_one(listing);
		begin_to_connect(listing);
		return LOOK;
	case SPOKEI_LISTING_CONNECTS:
		if (listing->to_connect > 0)
			return connect_one(listing);
		tell_failures(directory);
		listing->step = SPOKEI_LISTING_DONE;
		return LOOK;
	case SPOKEI_LISTING_DONE:
		break;
	}
	return SLICE;
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
		directory->listing->host_id = host_id;
}

/* Begins with the list that waits, or to read the present one again. Returns whether there is
 * anything to do. */
static bool begin_next(struct spokei_directory *directory)
{
	struct spokei_listing *listing = directory->listing;

	if (listing->has_next) {
		listing->has_next = false;
		list_move(&listing->before, &listing->now);
		list_move(&listing->now, &listing->next);
		listing->step = SPOKEI_LISTING_COMPARES;
		listing->at = listing->old_at = 0;
		find_host(directory);
	} else if (listing->anew) {
		begin_to_read(listing);
	}
	return listing->step != SPOKEI_LISTING_DONE;
}

static void go_on(struct spokei_directory *directory)
{
	struct spokei_listing *listing = directory->listing;
	int budget = SLICE;

	while (!directory->ended && !directory->resting) {
		if (listing->step == SPOKEI_LISTING_DONE && !begin_next(directory))
			return;
		if (budget <= 0) {
			spokei_run_soon(directory->engine, &listing->go_on);
			return;
		}
		budget -= do_one(directory);
	}
}

/* --- for rules */

void spokei_listing_index(struct spokei_listing *listing)
{
	for (size_t i = 0; listing && i < listing->now.count; i++) {
		const struct spokei_listed *entries = listing->now.entries;
		struct spokei_endpoint *endpoint = entries[i].endpoint;

		if (endpoint && (endpoint->entry >= listing->now.count ||
				 entries[endpoint->entry].endpoint != endpoint ||
				 entries[endpoint->entry].timestamp_ms <= entries[i].timestamp_ms))
			endpoint->entry = (uint32_t)i;
	}
}

const char *spokei_listing_text(const struct spokei_listing *listing,
				const struct spokei_endpoint *endpoint)
{
	const size_t at = endpoint->entry;

	if (listing == NULL)
		return NULL;
	if (at < listing->now.count && listing->now.entries[at].endpoint == endpoint)
		return text_of(&listing->now, at);
	/* A list that is being compared has the text in the one before, still. */
	if (at < listing->before.count && listing->before.entries[at].endpoint == endpoint)
		return text_of(&listing->before, at);
	return NULL;
}

/* --- for the directory */

/* Makes the listing with the first list, which replaces the endpoints that are there. */
static struct spokei_listing *listing_of(struct spokei_directory *directory)
{
	const struct spoke_env *env = directory->engine->env;
	struct spokei_listing *listing = directory->listing;

	if (listing == NULL)
		directory->listing = listing = spokei_alloc(env, 1, sizeof(*listing));
	if (listing == NULL || listing->directory)
		return listing;
	listing->directory = directory;
	listing->go_on.run = go_on_next;
	spokei_buffer_init(&listing->now.texts, env, SIZE_MAX);
	listing->before.texts = listing->next.texts = listing->spare = listing->now.texts;
	spokei_map_init(&listing->keys, env);
	spokei_list_init(&listing->touched);
	spokei_list_init(&listing->asleep);
	for (size_t i = 0; i < spokei_directory_listed(directory); i++)
		touch(listing, directory->candidates.endpoints[i]);
	return listing;
}

int spokei_directory_set(struct spokei_directory *directory, struct spokei_buffer *texts,
			 size_t count)
{
	const struct spoke_env *env = directory->engine->env;
	const size_t max = directory->settings.endpoints_max;
	struct spokei_text_list list = { .count = count < max ? count : max };
	struct spokei_listing *listing;

	if (directory->ended || directory->resting)
		return SPOKE_OK;
	listing = listing_of(directory);
	list.entries = spokei_alloc(env, list.count + 1, sizeof(*list.entries));
	if (listing == NULL || list.entries == NULL) {
		spokei_free(env, list.entries, list.count + 1, sizeof(*list.entries));
		spokei_event(directory->engine, SPOKE_ENOMEM,
			     "list of %s: out of memory; unchanged", directory->settings.service);
		return SPOKE_ENOMEM;
	}
	tell_too_many(directory, count - list.count);
	list.texts = *texts;
	*texts = listing->spare;
	spokei_buffer_init(&listing->spare, env, SIZE_MAX);
	list_fini(env, &listing->next);
	list_move(&listing->next, &list);
	listing->has_next = true;
	if (listing->step == SPOKEI_LISTING_DONE)
		go_on(directory);
	return SPOKE_OK;
}

void spokei_directory_reread(struct spokei_directory *directory)
{
	struct spokei_listing *listing = directory->listing;

	if (listing == NULL)
		return;
	listing->anew = true;
	if (listing->step == SPOKEI_LISTING_READS)
		listing->at = 0;
	else if (listing->step == SPOKEI_LISTING_DONE)
		go_on(directory);
}

void spokei_listing_end(struct spokei_listing *listing)
{
	if (listing == NULL)
		return;
	spokei_task_drop(&listing->go_on);
	(void)spoke_wheel_cancel(listing->directory->engine->wheel, &listing->retry);
}

void spokei_listing_free(struct spokei_listing *listing)
{
	const struct spoke_env *env;

	if (listing == NULL)
		return;
	env = listing->directory->engine->env;
	list_fini(env, &listing->now);
	list_fini(env, &listing->before);
	list_fini(env, &listing->next);
	spokei_buffer_fini(&listing->spare);
	spokei_map_fini(&listing->keys);
	spokei_free(env, listing, 1, sizeof(*listing));
}
