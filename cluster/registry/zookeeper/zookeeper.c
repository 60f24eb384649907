/* SPDX-License-Identifier: Apache-2.0 */
/* The registry in ZooKeeper: the life of its entries, with that of the session. */
#include "cluster/registry/registries.h"

#include "cluster/registry/instance.h"
#include "cluster/registry/urls.h"
#include "cluster/registry/zookeeper/entry.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <stdio.h>
#include <string.h>

#define DEADLINE_NS UINT64_C(10000000000) /* timeout of requests */
#define LOCAL 160u                        /* bytes of an address as text */

static struct spokei_zoo_entry *entry_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_zoo_entry, node);
}

/* --- outcomes */

/* Frees the resources of the entry. */
static void release(struct spokei_zoo_entry *entry)
{
	const struct spoke_env *env = entry->registry->engine->env;

	spokei_zoo_leave(&entry->asker);
	(void)spoke_alarm_cancel(&entry->alarm);
	spokei_list_remove(&entry->node);
	spokei_buffer_fini(&entry->formers);
	spokei_buffer_fini(&entry->urls);
	spokei_free(env, entry->path, 1, entry->path_size);
	entry->path = NULL;
	entry->begun = false;
}

static void report(struct spokei_zoo_entry *entry, int error)
{
	const struct spokei_zoo_registry *registry = entry->registry;

	registry->up->state(registry->up_arg, &entry->of, error);
}

/* Reports that the entry is there, or is no longer there. */
void spokei_zoo_done(struct spokei_zoo_entry *entry)
{
	(void)spoke_alarm_cancel(&entry->alarm);
	entry->step = SPOKEI_ZOO_STEP_NONE;
	entry->asked = false;
	entry->held = entry->wanted;
	if (!entry->wanted)
		release(entry);
	report(entry, SPOKE_OK);
}

/* Reports a failure or a loss. */
void spokei_zoo_fail(struct spokei_zoo_entry *entry, int error)
{
	(void)spoke_alarm_cancel(&entry->alarm);
	spokei_zoo_leave(&entry->asker);
	entry->step = SPOKEI_ZOO_STEP_NONE;
	entry->connect = 0;
	entry->asked = false;
	entry->held = false;
	report(entry, error);
}

/* --- requests */

void spokei_zoo_request(struct spokei_zoo_entry *entry, enum spokei_zoo_step step,
			enum spokei_zoo_ask what, const char *path, const char *text)
{
	int error;

	entry->step = step;
	if (step != SPOKEI_ZOO_STEP_PARENTS)
		entry->goal = step;
	error = spokei_zoo_ask(&entry->asker, what, path, text);
	if (error)
		spokei_zoo_fail(entry, error);
}

/* Creates the next parent of the node, or part of the folder. Returns false if all exist. */
bool spokei_zoo_make_parent(struct spokei_zoo_entry *entry)
{
	size_t len = entry->made + 1;
	char after;

	if (entry->made >= entry->folder_len)
		return false;
	len += strcspn(entry->path + len, "/");
	entry->made = len;
	after = entry->path[len];
	entry->path[len] = '\0';
	spokei_zoo_request(entry, SPOKEI_ZOO_STEP_PARENTS, SPOKEI_ZOO_CREATE, entry->path, "");
	entry->path[len] = after;
	return true;
}

/* --- paths */

/* Sets the path to a folder, in place of an older one. */
int spokei_zoo_set_folder(struct spokei_zoo_entry *entry, const char *service, const char *category)
{
	const struct spokei_zoo_settings *settings = &entry->registry->session->settings;
	const struct spoke_env *env = entry->registry->engine->env;
	size_t len = spokei_zoo_print_folder(settings, service, category, NULL, 0);
	char *path = spokei_alloc(env, 1, len + 1);

	if (path == NULL)
		return SPOKE_ENOMEM;
	spokei_free(env, entry->path, 1, entry->path_size);
	entry->path = path;
	entry->path_size = len + 1;
	entry->folder_len = len;
	entry->made = 0;
	(void)spokei_zoo_print_folder(settings, service, category, path, len + 1);
	return SPOKE_OK;
}

/* Makes room after the folder for a name of this length. Returns where it begins, or NULL. */
static char *name_room(struct spokei_zoo_entry *entry, size_t len)
{
	const struct spoke_env *env = entry->registry->engine->env;
	size_t size = entry->folder_len + 1 + len + 1;
	char *path = spokei_alloc(env, 1, size);

	if (path == NULL)
		return NULL;
	memcpy(path, entry->path, entry->folder_len);
	path[entry->folder_len] = '/';
	spokei_free(env, entry->path, 1, entry->path_size);
	entry->path = path;
	entry->path_size = size;
	return path + entry->folder_len + 1;
}

/* Appends the node of a URL to the path of an entry that has only its folder. */
static int name_node(struct spokei_zoo_entry *entry, const char *url)
{
	size_t len = spoke_url_encode(url, strlen(url), NULL, 0);
	char *room = name_room(entry, len);

	if (room == NULL)
		return SPOKE_ENOMEM;
	(void)spoke_url_encode(url, strlen(url), room, len + 1);
	return SPOKE_OK;
}

/* Sets the path to the node of an instance. */
int spokei_zoo_name_instance(struct spokei_zoo_entry *entry)
{
	const struct spoke_url *url = entry->of.url;
	int error = spokei_zoo_set_folder(entry, entry->of.service, entry->of.category);
	int len = snprintf(NULL, 0, "%s:%d", url->host, url->port);
	char *room = error ? NULL : name_room(entry, (size_t)len);

	if (room == NULL)
		return SPOKE_ENOMEM;
	(void)snprintf(room, (size_t)len + 1, "%s:%d", url->host, url->port);
	return SPOKE_OK;
}

/* Names the node of a consumer after the address by which the server knows this machine. */
static int name_consumer(struct spokei_zoo_entry *entry)
{
	struct spoke_url url = *entry->of.url;
	struct spokei_buffer text;
	char host[LOCAL];
	char *bare = host;
	int error;

	spokei_zoo_session_local(entry->registry->session, host, sizeof(host));
	if (*host == '[') {
		bare++;
		host[strlen(host) - 1] = '\0';
	}
	if (*bare)
		url.host = bare;
	spokei_buffer_init(&text, entry->registry->engine->env, SIZE_MAX);
	error = spokei_urls_put(&text, &url);
	if (error == SPOKE_OK)
		error = name_node(entry, (const char *)spokei_buffer_data(&text));
	spokei_buffer_fini(&text);
	return error;
}

static bool is_named(const struct spokei_zoo_entry *entry)
{
	return entry->path[entry->folder_len] != '\0';
}

/* --- entries */

static void entry_answered(struct spokei_zoo_asker *asker, const struct spokei_zoo_answer *answer)
{
	struct spokei_zoo_entry *entry = spoke_container_of(asker, struct spokei_zoo_entry, asker);

	if (!entry->wanted)
		spokei_zoo_removal_answered(entry, answer);
	else if (entry->of.url)
		spokei_zoo_publication_answered(entry, answer);
	else
		spokei_zoo_subscription_answered(entry, answer);
}

static void entry_touched(struct spokei_zoo_asker *asker)
{
	struct spokei_zoo_entry *entry = spoke_container_of(asker, struct spokei_zoo_entry, asker);

	if (asker->request)
		entry->changed = true;
	else if (entry->of.url)
		spokei_zoo_check(entry);
	else
		spokei_zoo_list_touched(entry);
}

/* Names the node of a publication as of this connection, if its name depends on it. */
static int name_now(struct spokei_zoo_entry *entry)
{
	if (entry->of.url && spokei_zoo_is_instance(entry))
		return spokei_zoo_name_instance(entry);
	return entry->of.url == NULL || !entry->wanted || is_named(entry) ? SPOKE_OK
									  : name_consumer(entry);
}

/* Begins the entry's first request if there is a connection at which it has not begun. */
static void begin(struct spokei_zoo_entry *entry)
{
	struct spokei_zoo_session *session = entry->registry->session;
	uint64_t connect = spokei_zoo_session_connect(session);

	if (connect == 0 || connect == entry->connect || !(entry->asked || entry->held))
		return;
	/* Answers to requests of an earlier connection are useless. */
	spokei_zoo_leave(&entry->asker);
	spokei_zoo_join(session, &entry->asker);
	entry->connect = connect;
	entry->begun = true;
	entry->made = 0;
	entry->rounds = 0;
	if (name_now(entry))
		spokei_zoo_fail(entry, SPOKE_ENOMEM);
	else if (!entry->wanted)
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_FIND, SPOKEI_ZOO_EXISTS, entry->path,
				   NULL);
	else if (entry->of.url == NULL)
		spokei_zoo_list(entry);
	else if (entry->asked)
		spokei_zoo_publish(entry);
	else
		spokei_zoo_check(entry);
}

void spokei_zoo_entry_due(struct spoke_alarm *alarm)
{
	struct spokei_zoo_entry *entry = spoke_container_of(alarm, struct spokei_zoo_entry, alarm);

	if (!entry->asked)
		begin(entry);
	else if (spokei_zoo_session_connect(entry->registry->session))
		spokei_zoo_fail(entry, SPOKE_ETIMEOUT);
	else
		spokei_zoo_fail(entry, SPOKE_EUNAVAILABLE);
}

/* Sets the request and its timeout. */
static int set(struct spokei_zoo_entry *entry, bool wanted)
{
	spokei_zoo_leave(&entry->asker);
	entry->wanted = wanted;
	entry->asked = true;
	entry->held = false;
	entry->connect = 0;
	return spoke_alarm_after(entry->registry->engine, &entry->alarm, DEADLINE_NS,
				 spokei_zoo_entry_due)
		       ? SPOKE_EUNAVAILABLE
		       : SPOKE_OK;
}

static int prepare_path(struct spokei_zoo_entry *entry)
{
	int error = entry->path
			    ? SPOKE_OK
			    : spokei_zoo_set_folder(entry, entry->of.service, entry->of.category);

	if (!error && entry->of.url && !spokei_zoo_is_consumer(entry) &&
	    !spokei_zoo_is_instance(entry) && !is_named(entry))
		error = name_node(entry, entry->of.text);
	return error;
}

static void registry_want(void *handle, struct spoke_registry_entry *of)
{
	struct spokei_zoo_registry *registry = handle;
	struct spokei_zoo_entry *entry = spoke_container_of(of, struct spokei_zoo_entry, of);
	int error;

	if (entry->node.next == NULL) {
		entry->registry = registry;
		entry->asker.answered = entry_answered;
		entry->asker.touched = entry_touched;
		spokei_buffer_init(&entry->formers, registry->engine->env, SIZE_MAX);
		spokei_buffer_init(&entry->urls, registry->engine->env, SIZE_MAX);
		spokei_list_append(&registry->entries, &entry->node);
	}
	error = set(entry, true);
	if (of->url && spokei_urls_are_services(of->service))
		error = SPOKE_EINVAL; /* the name is reserved for the list of services */
	if (!error)
		error = prepare_path(entry);
	if (error)
		spokei_zoo_fail(entry, error);
	else
		begin(entry);
}

static void registry_unwant(void *handle, struct spoke_registry_entry *of)
{
	struct spokei_zoo_entry *entry = spoke_container_of(of, struct spokei_zoo_entry, of);
	int error = set(entry, false);

	(void)handle;
	if (of->url == NULL || !entry->begun)
		spokei_zoo_done(entry);
	else if (error)
		spokei_zoo_fail(entry, error);
	else
		begin(entry);
}

/* --- the session */

static void session_connected(void *arg)
{
	struct spokei_zoo_registry *registry = arg;

	for (struct spoke_list *at = registry->entries.next; at != &registry->entries;
	     at = at->next) {
		struct spokei_zoo_entry *entry = entry_at(at);

		if (entry->wanted && !entry->asked && !entry->held)
			report(entry, SPOKE_ELOST); /* it has failed; the server answers again */
		else
			begin(entry);
	}
}

/* The nodes are gone. The address in the name of a consumer may be another one next time. */
static void session_expired(void *arg)
{
	struct spokei_zoo_registry *registry = arg;
	struct spoke_list *next;

	for (struct spoke_list *at = registry->entries.next; at != &registry->entries; at = next) {
		struct spokei_zoo_entry *entry = entry_at(at);

		next = at->next;
		entry->begun = false;
		if (spokei_zoo_is_consumer(entry) && entry->path)
			entry->path[entry->folder_len] = '\0';
		if (entry->asked && !entry->wanted)
			spokei_zoo_done(entry);
		else if (entry->asked || entry->held)
			spokei_zoo_fail(entry, SPOKE_ELOST);
	}
}

static int registry_open(struct spoke_engine *engine, const struct spoke_url *url,
			 const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	struct spokei_zoo_registry *registry = spokei_alloc(engine->env, 1, sizeof(*registry));
	int error;

	if (registry == NULL) {
		spokei_event(engine, SPOKE_ENOMEM, "registry zookeeper: out of memory");
		return SPOKE_ENOMEM;
	}
	error = spokei_zoo_session_new(engine, url, &registry->session);
	if (error) {
		spokei_free(engine->env, registry, 1, sizeof(*registry));
		return error;
	}
	registry->session->connected = session_connected;
	registry->session->expired = session_expired;
	registry->session->arg = registry;
	registry->engine = engine;
	registry->up = up;
	registry->up_arg = arg;
	spokei_list_init(&registry->entries);
	*ret_registry = registry;
	return SPOKE_OK;
}

static void registry_close(void *handle)
{
	struct spokei_zoo_registry *registry = handle;

	while (!spokei_list_empty(&registry->entries))
		release(entry_at(spokei_list_first(&registry->entries)));
	spokei_zoo_session_end(registry->session);
	spokei_free(registry->engine->env, registry, 1, sizeof(*registry));
}

const struct spoke_registry spokei_registry_zookeeper = {
	.scheme = "zookeeper",
	.entry_size = sizeof(struct spokei_zoo_entry),
	.categories = true,
	.instances = true,
	.open = registry_open,
	.want = registry_want,
	.unwant = registry_unwant,
	.close = registry_close,
};
