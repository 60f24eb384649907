/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subscription: the children of the service's folder, watched. They are listed again after each
 * change and each new connection. For "*" the children of the parent folder: the services. For a
 * rule the text of its node, or nothing while there is no such node.
 */
#include "cluster/registry/services.h"
#include "cluster/registry/zookeeper/parts.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <string.h>

#define SHOWN 128u
#define PROVIDERS "/providers"
#define INSTANCES "/services" /* of Dubbo 3: a folder for each application */

struct listing {
	struct spokei_zoo_item item;
	bool making;  /* lists the folder */
	bool seeking; /* asks whether the node of a rule exists now */
	bool asking;  /* asks whether there are instances; the list was reported */
	bool again;   /* changed since the request */
};

static struct listing *listing_of(struct spokei_zoo_item *item)
{
	return spoke_container_of(item, struct listing, item);
}

static void list(struct listing *listing)
{
	listing->making = false;
	listing->seeking = false;
	listing->asking = false;
	listing->again = false;
	spokei_zoo_item_ask(&listing->item,
			    listing->item.rule ? SPOKEI_ZOO_GET_WATCH : SPOKEI_ZOO_LIST_WATCH,
			    listing->item.path, NULL);
}

static void listing_begin(struct spokei_zoo_item *item)
{
	item->made = 0;
	list(listing_of(item));
}

/* Decodes a name. Returns the length of the text with its NUL, or 0, with an event, if it is
 * no provider's name. */
static size_t decode(struct spoke_engine *engine, const char *name, char *out, size_t size)
{
	char shown[SHOWN];
	size_t len;
	int error = spoke_url_decode(name, strlen(name), out, size, &len);

	if (error == SPOKE_OK && len > SPOKE_URL_MAX)
		error = SPOKE_ETOOLARGE;
	if (error == SPOKE_OK)
		return len + 1;
	(void)spokei_log_escape(shown, sizeof(shown), name, strlen(name));
	spokei_event(engine, error, "registry zookeeper: ignored a name that is no encoded URL: %s",
		     shown);
	return 0;
}

/* Folders of Dubbo that are no services. */
static bool is_service(const char *name)
{
	return strcmp(name, "config") != 0 && strcmp(name, "metadata") != 0 &&
	       strcmp(name, "mapping") != 0;
}

/* Decodes a service's name into a URL. */
static size_t decode_service(struct spoke_engine *engine, const char *name, char *out, size_t size)
{
	char *service = (char *)engine->scratch;
	size_t len;

	if (!is_service(name) || decode(engine, name, service, SPOKEI_ENGINE_SCRATCH) == 0)
		return 0;
	len = spokei_services_print(service, out, size);
	return len < size ? len + 1 : 0;
}

/* Returns the maximum length of a name as a URL, with its NUL. */
static size_t room_for(const char *name, bool services)
{
	/* Decoding does not lengthen it, but printing may percent-encode every byte. The slash
	 * only precedes a name, so the shortest name covers it and the NUL. */
	return services ? spokei_services_print("x", NULL, 0) + 3 * strlen(name) : strlen(name) + 1;
}

/* Converts all names to URLs. Returns 0 or SPOKE_ENOMEM. */
static int take_urls(struct spokei_zoo_item *item, const struct String_vector *names)
{
	struct spoke_engine *engine = item->registry->engine;
	size_t count = names->count > 0 ? (size_t)names->count : 0;
	bool services = strcmp(item->path, item->registry->settings.root) == 0;
	size_t size;
	char **urls;
	char *text;

	if (count > SPOKEI_ZOO_CHILDREN_MAX && !item->crowded) {
		spokei_event(engine, SPOKE_ELIMIT,
			     "registry zookeeper: %s %zu %s; only the first %u are used",
			     services ? "there are" : "a service has", count,
			     services ? "services" : "providers", SPOKEI_ZOO_CHILDREN_MAX);
	}
	item->crowded = count > SPOKEI_ZOO_CHILDREN_MAX;
	if (item->crowded)
		count = SPOKEI_ZOO_CHILDREN_MAX;
	size = (count + 1) * sizeof(*urls);
	for (size_t i = 0; i < count; i++)
		size += room_for(names->data[i], services);
	urls = spokei_alloc(engine->env, 1, size);
	if (urls == NULL)
		return SPOKE_ENOMEM;
	spokei_free(engine->env, item->urls, 1, item->urls_size);
	item->urls = urls;
	item->urls_size = size;
	item->url_count = 0;
	text = (char *)(urls + count + 1);
	for (size_t i = 0; i < count; i++) {
		size_t room = (size_t)((char *)urls + size - text);
		size_t len = services ? decode_service(engine, names->data[i], text, room)
				      : decode(engine, names->data[i], text, room);

		if (len == 0)
			continue;
		urls[item->url_count++] = text;
		text += len;
	}
	return SPOKE_OK;
}

/* Copies the text of a rule; a NUL becomes a byte that no rule may contain. Returns 0 or
 * SPOKE_ENOMEM. */
static int take_text(struct spokei_zoo_item *item, const struct spokei_zoo_answer *answer)
{
	const struct spoke_env *env = item->registry->engine->env;
	size_t len = answer->data ? answer->len : 0;
	size_t size = sizeof(char *) + len + 1;
	char **urls = spokei_alloc(env, 1, size);
	char *text = (char *)(urls + 1);

	if (urls == NULL)
		return SPOKE_ENOMEM;
	for (size_t i = 0; i < len; i++)
		text[i] = answer->data[i] ? answer->data[i] : '\1';
	*urls = text;
	spokei_free(env, item->urls, 1, item->urls_size);
	item->urls = urls;
	item->urls_size = size;
	item->url_count = len > 0;
	return SPOKE_OK;
}

static bool is_of_providers(const struct spokei_zoo_item *item)
{
	size_t len = strlen(item->path);

	return len > strlen(PROVIDERS) &&
	       strcmp(item->path + len - strlen(PROVIDERS), PROVIDERS) == 0;
}

/* An empty list may have a reason that users of Dubbo 3 do not see: its programs can register
 * instances of applications in place of services. Looks once whether there are any. */
static void ask_for_instances(struct listing *listing)
{
	struct spokei_zoo_item *item = &listing->item;

	if (item->rule || item->url_count > 0 || item->registry->instances_asked ||
	    !is_of_providers(item))
		return;
	item->registry->instances_asked = true;
	listing->asking = spokei_zoo_ask(&item->asker, SPOKEI_ZOO_LIST, INSTANCES, NULL) ==
			  SPOKE_OK;
}

static void instances_answered(struct listing *listing, const struct spokei_zoo_answer *answer)
{
	const struct spokei_zoo_item *item = &listing->item;
	int count = answer->code == ZOK ? answer->names->count : 0;

	listing->asking = false;
	if (count > 0) {
		spokei_event(item->registry->engine, SPOKE_ENOPROVIDER,
			     "registry: %s is empty, but " INSTANCES
			     " has %d applications of Dubbo 3; set register-mode=interface or all "
			     "there",
			     item->path, count);
	}
	if (listing->again)
		list(listing);
}

static void listed(struct listing *listing, const struct spokei_zoo_answer *answer)
{
	struct spokei_zoo_item *item = &listing->item;
	int error = item->rule ? take_text(item, answer) : take_urls(item, answer->names);

	if (error) {
		spokei_zoo_item_fail(item, error);
		return;
	}
	if (item->asked && !item->ended)
		spokei_zoo_item_done(item);
	else
		spokei_zoo_item_note(item);
	if (listing->again)
		list(listing);
	else
		ask_for_instances(listing);
}

/* The list cannot be renewed now: the next connection or the alarm retries. */
static bool waits(struct spokei_zoo_item *item, int code)
{
	if (item->asked || spokei_zoo_fold(code) == SPOKE_EREFUSED)
		return false;
	return spokei_zoo_item_again(item);
}

static void listing_answered(struct spokei_zoo_item *item, const struct spokei_zoo_answer *answer)
{
	struct listing *listing = listing_of(item);
	int code = answer->code;

	if (listing->asking) {
		instances_answered(listing, answer);
		return;
	}
	if (listing->making && (code == ZOK || code == ZNODEEXISTS || code == ZNONODE)) {
		if (!spokei_zoo_item_make_parent(item))
			list(listing);
	} else if (code == ZNONODE && item->rule && !listing->seeking) {
		listing->seeking = true;
		spokei_zoo_item_ask(item, SPOKEI_ZOO_EXISTS_WATCH, item->path, NULL);
	} else if (listing->seeking && code == ZOK) {
		list(listing);
	} else if (listing->seeking && code == ZNONODE) {
		listed(listing, answer);
	} else if (code == ZNONODE && item->made == 0) {
		listing->making = true;
		(void)spokei_zoo_item_make_parent(item);
	} else if (code == ZOK) {
		item->made = 0;
		listed(listing, answer);
	} else if (!waits(item, code)) {
		spokei_zoo_item_fail(item, spokei_zoo_fold(code));
	}
}

static void listing_touched(struct spokei_zoo_item *item, int event)
{
	struct listing *listing = listing_of(item);

	(void)event;
	if (item->asker.request)
		listing->again = true;
	else
		list(listing);
}

const struct spokei_zoo_kind spokei_zoo_listing = {
	.verb = "subscribe",
	.begin = listing_begin,
	.answered = listing_answered,
	.touched = listing_touched,
	.size = sizeof(struct listing),
};
