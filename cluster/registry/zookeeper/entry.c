/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A published provider or consumer. Creates its node and watches it, then removes nodes of older
 * sessions for the same provider, so that it is listed once. The node of a consumer contains the
 * address of this machine, and older ones stay, because several consumers share an address. A node
 * of the same name that belongs to another session is removed too.
 */
#include "cluster/registry/zookeeper/parts.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <inttypes.h>
#include <string.h>

#define ROUNDS_MAX 8u   /* another process removes the node */
#define FORMERS_MAX 16u /* at a time */
#define SHOWN 64u
#define LOCAL 160u /* bytes of an address as text */

enum entry_state {
	ENTRY_NONE,
	ENTRY_CREATING,
	ENTRY_PARENTS,  /* parents are being created */
	ENTRY_WHOSE,    /* checks the owner of the existing node */
	ENTRY_CLEARING, /* deletes a node of another session */
	ENTRY_WATCHING, /* starts to watch the node */
	ENTRY_SEEKING,  /* looks for older nodes */
	ENTRY_FORMER,   /* checks the owner of an older node */
	ENTRY_PURGING,  /* ... deletes that node */
	ENTRY_TRUE,
	ENTRY_CHECKING, /* checks whether the node still exists */
};

struct entry {
	struct spokei_zoo_item item;
	enum entry_state state;
	bool touched; /* the node changed meanwhile: check it again */
	unsigned rounds;
	struct spoke_url url;
	char *formers[FORMERS_MAX]; /* paths of older nodes */
	size_t former_sizes[FORMERS_MAX];
	unsigned former_count;
	unsigned former; /* index of the next one */
};

static struct entry *entry_of(struct spokei_zoo_item *item)
{
	return spoke_container_of(item, struct entry, item);
}

static void drop_formers(struct entry *entry)
{
	const struct spoke_env *env = entry->item.registry->engine->env;

	for (unsigned i = 0; i < entry->former_count; i++)
		spokei_free(env, entry->formers[i], 1, entry->former_sizes[i]);
	entry->former_count = 0;
	entry->former = 0;
}

static void ask(struct entry *entry, enum entry_state state, enum spokei_zoo_ask what,
		const char *path)
{
	entry->state = state;
	spokei_zoo_item_ask(&entry->item, what, path, NULL);
}

/* Creates the node, perhaps again; bounded, because two processes may remove each other's. */
static void create(struct entry *entry)
{
	struct spokei_zoo_item *item = &entry->item;
	const char *place = entry->url.host ? entry->url.host : "";

	entry->touched = false;
	if (++entry->rounds > ROUNDS_MAX) {
		spokei_zoo_item_fail(item, SPOKE_EREFUSED);
		return;
	}
	entry->state = ENTRY_CREATING;
	spokei_zoo_item_ask(item, SPOKEI_ZOO_CREATE_EPHEMERAL, item->path, place);
}

static void watch(struct entry *entry)
{
	entry->touched = false;
	ask(entry, ENTRY_WATCHING, SPOKEI_ZOO_EXISTS_WATCH, entry->item.path);
}

static void check(struct entry *entry)
{
	entry->touched = false;
	ask(entry, ENTRY_CHECKING, SPOKEI_ZOO_EXISTS_WATCH, entry->item.path);
}

static bool is_consumer(const struct entry *entry)
{
	return strcmp(entry->url.scheme, "consumer") == 0;
}

/* Names the node of a consumer after the address by which the server knows this machine. */
static int name_consumer(struct entry *entry)
{
	struct spokei_zoo_item *item = &entry->item;
	const struct spoke_env *env = item->registry->engine->env;
	struct spoke_url url = entry->url;
	char host[LOCAL];
	char *bare = host;
	size_t size;
	char *text;
	int error;

	spokei_zoo_handle_local(item->registry->handle, host, sizeof(host));
	if (*host == '[') {
		bare++;
		host[strlen(host) - 1] = '\0';
	}
	if (*bare)
		url.host = bare;
	size = spoke_url_print(&url, SPOKE_URL_WHOLE, NULL, 0) + 1;
	text = spokei_alloc(env, 1, size);
	if (text == NULL)
		return SPOKE_ENOMEM;
	(void)spoke_url_print(&url, SPOKE_URL_WHOLE, text, size);
	error = spokei_zoo_item_name(item, text);
	spokei_free(env, text, 1, size);
	return error;
}

/* Returns whether the path contains the node already. */
static bool is_named(const struct spokei_zoo_item *item)
{
	return item->path[item->folder_len] != '\0';
}

static void entry_begin(struct spokei_zoo_item *item)
{
	struct entry *entry = entry_of(item);

	if (!is_named(item) && name_consumer(entry)) {
		spokei_zoo_item_fail(item, SPOKE_ENOMEM);
		return;
	}
	drop_formers(entry);
	entry->rounds = 0;
	item->made = 0;
	if (item->asked)
		create(entry);
	else
		check(entry);
}

/* --- older nodes */

static void finish(struct entry *entry)
{
	drop_formers(entry);
	entry->state = ENTRY_TRUE;
	spokei_zoo_item_done(&entry->item);
	if (entry->touched)
		check(entry);
}

static void next_former(struct entry *entry)
{
	if (entry->former == entry->former_count)
		finish(entry);
	else
		ask(entry, ENTRY_FORMER, SPOKEI_ZOO_EXISTS, entry->formers[entry->former]);
}

/* Returns whether a name is an older node of this provider. Unreadable names are not. */
static bool is_former(struct entry *entry, const char *name)
{
	const struct spoke_engine *engine = entry->item.registry->engine;
	size_t len = strlen(name);
	struct spoke_url url = { 0 };
	bool same;

	if (strcmp(name, entry->item.path + entry->item.folder_len + 1) == 0 ||
	    len >= SPOKEI_ENGINE_SCRATCH)
		return false;
	if (spoke_url_decode(name, len, (char *)engine->scratch, SPOKEI_ENGINE_SCRATCH, &len) ||
	    spoke_url_parse(engine->env, (const char *)engine->scratch, len, &url, NULL))
		return false;
	same = spokei_zoo_same_provider(&entry->url, &url);
	spoke_url_fini(&url);
	return same;
}

static bool add_former(struct entry *entry, const char *name)
{
	const struct spokei_zoo_item *item = &entry->item;
	size_t len = strlen(name);
	size_t size = item->folder_len + 1 + len + 1;
	char *path = spokei_alloc(item->registry->engine->env, 1, size);

	if (path == NULL)
		return false;
	memcpy(path, item->path, item->folder_len + 1);
	memcpy(path + item->folder_len + 1, name, len + 1);
	entry->formers[entry->former_count] = path;
	entry->former_sizes[entry->former_count++] = size;
	return true;
}

static void seek_formers(struct entry *entry, const struct String_vector *names)
{
	drop_formers(entry);
	for (int32_t i = 0; i < names->count && entry->former_count < FORMERS_MAX; i++) {
		if (is_former(entry, names->data[i]) && !add_former(entry, names->data[i])) {
			spokei_zoo_item_fail(&entry->item, SPOKE_ENOMEM);
			return;
		}
	}
	next_former(entry);
}

static void seek(struct entry *entry)
{
	struct spokei_zoo_item *item = &entry->item;

	item->path[item->folder_len] = '\0';
	ask(entry, ENTRY_SEEKING, SPOKEI_ZOO_LIST, item->path);
	item->path[item->folder_len] = '/';
}

/* Nodes made by hand or by this session stay. */
static void check_former(struct entry *entry, const struct spokei_zoo_answer *answer)
{
	const struct spokei_zoo_handle *handle = entry->item.asker.handle;
	int64_t owner = answer->code == ZOK ? answer->stat->ephemeralOwner : 0;

	if (owner != 0 && !spokei_zoo_handle_owns(handle, owner)) {
		ask(entry, ENTRY_PURGING, SPOKEI_ZOO_DELETE, entry->formers[entry->former]);
		return;
	}
	entry->former++;
	next_former(entry);
}

static void former_gone(struct entry *entry, int code)
{
	struct spokei_zoo_item *item = &entry->item;
	int error = code == ZNONODE ? SPOKE_OK : spokei_zoo_fold(code);
	char text[SHOWN];

	(void)spokei_log_escape_end(text, sizeof(text), item->path, strlen(item->path));
	spokei_event(item->registry->engine, error,
		     "registry zookeeper: an older entry of the same provider %s: %s",
		     error ? "could not be removed" : "was removed", text);
	entry->former++;
	next_former(entry);
}

/* --- the node */

static void made_parent(struct entry *entry)
{
	if (!spokei_zoo_item_make_parent(&entry->item))
		create(entry);
}

/* The node exists: checks whether it belongs to this session. */
static void check_node(struct entry *entry, const struct Stat *stat)
{
	bool ours = spokei_zoo_handle_owns(entry->item.asker.handle, stat->ephemeralOwner);

	if (!ours)
		ask(entry, ENTRY_CLEARING, SPOKEI_ZOO_DELETE, entry->item.path);
	else if (entry->state == ENTRY_WHOSE)
		watch(entry);
	else if (is_consumer(entry))
		finish(entry);
	else
		seek(entry);
}

static void checked(struct entry *entry, const struct spokei_zoo_answer *answer)
{
	struct spokei_zoo_item *item = &entry->item;

	entry->state = ENTRY_TRUE;
	if (answer->code == ZNONODE)
		spokei_zoo_item_fail(item, SPOKE_ENOENT);
	else if (answer->code == ZOK &&
		 !spokei_zoo_handle_owns(item->asker.handle, answer->stat->ephemeralOwner))
		spokei_zoo_item_fail(item, SPOKE_EEXIST);
	else if (answer->code == ZOK && entry->touched)
		check(entry);
	/* otherwise the next connection checks again */
}

/* Handles answers that mean the same in every state: lost connection, no permission. */
static bool is_common(enum entry_state state, int code)
{
	if (code == ZOK || code == ZNONODE)
		return false;
	if (code == ZNODEEXISTS)
		return state != ENTRY_CREATING && state != ENTRY_PARENTS;
	return !(code == ZNOAUTH && (state == ENTRY_PURGING || state == ENTRY_FORMER));
}

static void entry_answered(struct spokei_zoo_item *item, const struct spokei_zoo_answer *answer)
{
	struct entry *entry = entry_of(item);
	bool none = answer->code == ZNONODE;

	if (entry->state == ENTRY_CHECKING) {
		checked(entry, answer);
		return;
	}
	if (is_common(entry->state, answer->code)) {
		spokei_zoo_item_fail(item, spokei_zoo_fold(answer->code));
		return;
	}
	switch (entry->state) {
	case ENTRY_CREATING:
		if (answer->code == ZOK) {
			watch(entry);
		} else if (none) {
			entry->state = ENTRY_PARENTS;
			item->made = 0;
			made_parent(entry);
		} else {
			ask(entry, ENTRY_WHOSE, SPOKEI_ZOO_EXISTS, item->path);
		}
		return;
	case ENTRY_PARENTS:
		made_parent(entry);
		return;
	case ENTRY_WHOSE:
	case ENTRY_WATCHING:
		if (none)
			create(entry);
		else
			check_node(entry, answer->stat);
		return;
	case ENTRY_CLEARING:
		create(entry);
		return;
	case ENTRY_SEEKING:
		if (none)
			create(entry);
		else
			seek_formers(entry, answer->names);
		return;
	case ENTRY_FORMER:
		check_former(entry, answer);
		return;
	case ENTRY_PURGING:
		former_gone(entry, answer->code);
		return;
	case ENTRY_NONE:
	case ENTRY_TRUE:
	case ENTRY_CHECKING:
		return;
	}
}

static void entry_touched(struct spokei_zoo_item *item, int event)
{
	struct entry *entry = entry_of(item);

	(void)event;
	if (entry->state == ENTRY_TRUE)
		check(entry);
	else
		entry->touched = true;
}

static void entry_fini(struct spokei_zoo_item *item)
{
	struct entry *entry = entry_of(item);

	drop_formers(entry);
	spoke_url_fini(&entry->url);
}

const struct spokei_zoo_kind spokei_zoo_entry = {
	.verb = "publish",
	.begin = entry_begin,
	.answered = entry_answered,
	.touched = entry_touched,
	.fini = entry_fini,
	.size = sizeof(struct entry),
};

int spokei_zoo_entry_read(struct spokei_zoo_item *item, const char *url)
{
	return spoke_url_parse(item->registry->engine->env, url, strlen(url), &entry_of(item)->url,
			       NULL);
}
