/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry in ZooKeeper: its entries, and the requests that make them true.
 *
 * A publication creates its node and watches it, then removes nodes of older sessions for the same
 * provider, so that it is listed once. The node of a consumer contains the address of this machine,
 * and older ones stay, because several consumers share an address. A node of the same name that
 * belongs to another session is removed too.
 *
 * The publication of an instance first writes what consumers need to use it: its metadata, and the
 * name of its application into the mapping of each service. Both stay. Others add names to a
 * mapping at the same time, so it is set only if it is the one that was read.
 *
 * A subscription lists the children of the service's folder and watches them. They are listed again
 * after each change and each new connection. For "*" these are the children of the parent folder:
 * the services. For a rule it is the text of its node, or nothing while there is no such node.
 *
 * A removal deletes the node if it belongs to this session. All earlier requests of the entry have
 * been answered by then, because a session keeps their order.
 */
#include "cluster/registry/registries.h"

#include "cluster/registry/instance.h"
#include "cluster/registry/urls.h"
#include "cluster/registry/zookeeper/session.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define DEADLINE_NS UINT64_C(10000000000) /* timeout of requests */
#define AGAIN_NS UINT64_C(1000000000)     /* pause before a list is requested again */
#define ROUNDS_MAX 8u                     /* another process removes the node */
#define FORMERS_MAX 16u                   /* older nodes at a time */
#define SHOWN 128u                        /* bytes of a path or a name in an event */
#define LOCAL 160u                        /* bytes of an address as text */
#define INSTANCES "/services"             /* of Dubbo 3: a folder for each application */

struct registry {
	struct spoke_engine *engine;
	const struct spoke_registry_up *up;
	void *up_arg;
	struct spokei_zoo_session *session;
	struct spoke_list entries;
	bool instances_asked; /* whether there are any was asked, after an empty list */
};

/* The request of an entry that is in flight. */
enum step {
	STEP_NONE,
	/* of a publication */
	STEP_CREATE,
	STEP_PARENTS, /* creates the parents of the node, or of a subscription's folder */
	STEP_OWNER,   /* asks for the owner of the existing node */
	STEP_CLEAR,   /* deletes a node of another session */
	STEP_WATCH,   /* begins to watch the node */
	STEP_SEEK,    /* looks for older nodes */
	STEP_FORMER,  /* asks for the owner of an older node */
	STEP_PURGE,   /* ... deletes that node */
	/* ... of an instance */
	STEP_METADATA, /* creates the node of the metadata */
	STEP_MAPPING,  /* asks for the mapping of a service */
	STEP_ADD,      /* sets it, with the application */
	STEP_FIRST,    /* creates it */
	STEP_SET,      /* changes the node of the instance */
	STEP_CHECK,    /* asks whether the node still exists */
	/* of a removal */
	STEP_FIND,
	STEP_DELETE,
	/* of a subscription */
	STEP_LIST,
	STEP_MISSING,   /* asks whether the node of a rule exists now, and watches that */
	STEP_INSTANCES, /* asks whether there are instances; the list was reported */
};

/* An entry. Its struct is zero before it is wanted. */
struct zk_entry {
	struct spoke_registry_entry of;
	struct spoke_list node; /* next == NULL: not in the list */
	struct registry *registry;
	struct spokei_zoo_asker asker;
	struct spoke_alarm alarm; /* timeout, or pause before a list is requested again */
	enum step step;
	enum step goal;   /* the step before the parents are made, which comes again after them */
	bool wanted;      /* false: to be removed */
	bool asked;       /* its state is to be reported */
	bool held;        /* it was reported as true, and is watched */
	bool begun;       /* a request was sent in this session */
	bool changed;     /* its node or folder has changed since the request */
	uint64_t connect; /* number of the connection at which it has begun; 0: none */
	char *path;       /* of the node or the folder, in a block of its own */
	size_t path_size;
	size_t folder_len; /* length of the folder's path */
	size_t made;       /* length of the path whose parents exist */
	unsigned rounds;
	/* Paths of older nodes, each with its NUL; of an instance: services. */
	struct spokei_buffer formers;
	size_t former; /* where the next one begins */
};

static struct zk_entry *entry_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct zk_entry, node);
}

static bool is_consumer(const struct zk_entry *entry)
{
	return strcmp(entry->of.category, SPOKE_REGISTRY_CONSUMERS) == 0;
}

static bool is_instance(const struct zk_entry *entry)
{
	return strcmp(entry->of.category, SPOKE_REGISTRY_INSTANCES) == 0;
}

/* --- outcomes */

/* Frees the resources of the entry. */
static void release(struct zk_entry *entry)
{
	const struct spoke_env *env = entry->registry->engine->env;

	spokei_zoo_leave(&entry->asker);
	(void)spoke_alarm_cancel(&entry->alarm);
	spokei_list_remove(&entry->node);
	spokei_buffer_fini(&entry->formers);
	spokei_free(env, entry->path, 1, entry->path_size);
	entry->path = NULL;
	entry->begun = false;
}

static void report(struct zk_entry *entry, int error)
{
	const struct registry *registry = entry->registry;

	registry->up->state(registry->up_arg, &entry->of, error);
}

/* Reports that the entry is there, or is no longer there. */
static void done(struct zk_entry *entry)
{
	(void)spoke_alarm_cancel(&entry->alarm);
	entry->step = STEP_NONE;
	entry->asked = false;
	entry->held = entry->wanted;
	if (!entry->wanted)
		release(entry);
	report(entry, SPOKE_OK);
}

/* Reports a failure or a loss. */
static void fail(struct zk_entry *entry, int error)
{
	(void)spoke_alarm_cancel(&entry->alarm);
	spokei_zoo_leave(&entry->asker);
	entry->step = STEP_NONE;
	entry->connect = 0;
	entry->asked = false;
	entry->held = false;
	report(entry, error);
}

/* --- requests */

static void ask(struct zk_entry *entry, enum step step, enum spokei_zoo_ask what, const char *path,
		const char *text)
{
	int error;

	entry->step = step;
	if (step != STEP_PARENTS)
		entry->goal = step;
	error = spokei_zoo_ask(&entry->asker, what, path, text);
	if (error)
		fail(entry, error);
}

/* Creates the next parent of the node, or part of the folder. Returns false if all exist. */
static bool make_parent(struct zk_entry *entry)
{
	size_t len = entry->made + 1;
	char after;

	if (entry->made >= entry->folder_len)
		return false;
	len += strcspn(entry->path + len, "/");
	entry->made = len;
	after = entry->path[len];
	entry->path[len] = '\0';
	ask(entry, STEP_PARENTS, SPOKEI_ZOO_CREATE, entry->path, "");
	entry->path[len] = after;
	return true;
}

/* --- paths */

/* Sets the path to a folder, in place of an older one. */
static int print_folder(struct zk_entry *entry, const char *service, const char *category)
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
static char *name_room(struct zk_entry *entry, size_t len)
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
static int name_node(struct zk_entry *entry, const char *url)
{
	size_t len = spoke_url_encode(url, strlen(url), NULL, 0);
	char *room = name_room(entry, len);

	if (room == NULL)
		return SPOKE_ENOMEM;
	(void)spoke_url_encode(url, strlen(url), room, len + 1);
	return SPOKE_OK;
}

/* Sets the path to the node of an instance. */
static int name_instance(struct zk_entry *entry)
{
	const struct spoke_url *url = entry->of.url;
	int error = print_folder(entry, entry->of.service, entry->of.category);
	int len = snprintf(NULL, 0, "%s:%d", url->host, url->port);
	char *room = error ? NULL : name_room(entry, (size_t)len);

	if (room == NULL)
		return SPOKE_ENOMEM;
	(void)snprintf(room, (size_t)len + 1, "%s:%d", url->host, url->port);
	return SPOKE_OK;
}

/* Names the node of a consumer after the address by which the server knows this machine. */
static int name_consumer(struct zk_entry *entry)
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

static bool is_named(const struct zk_entry *entry)
{
	return entry->path[entry->folder_len] != '\0';
}

/* --- publications */

/* Writes the instance into its node. */
static void write_instance(struct zk_entry *entry, enum step step, enum spokei_zoo_ask what)
{
	const struct spoke_env *env = entry->registry->engine->env;
	struct spokei_buffer text;
	int error;

	spokei_buffer_init(&text, env, SIZE_MAX);
	error = spokei_instance_print(env, entry->of.service, entry->of.url,
				      env->wall(env->ctx) / MS, &text);
	entry->asker.version = -1;
	if (error)
		fail(entry, error);
	else
		ask(entry, step, what, entry->path, (const char *)spokei_buffer_data(&text));
	spokei_buffer_fini(&text);
}

/* Creates the node, perhaps again; bounded, because two processes may remove each other's. */
static void create(struct zk_entry *entry)
{
	const char *place = entry->of.url->host ? entry->of.url->host : "";

	entry->changed = false;
	if (++entry->rounds > ROUNDS_MAX)
		fail(entry, SPOKE_EREFUSED);
	else if (is_instance(entry))
		write_instance(entry, STEP_CREATE, SPOKEI_ZOO_CREATE_EPHEMERAL);
	else
		ask(entry, STEP_CREATE, SPOKEI_ZOO_CREATE_EPHEMERAL, entry->path, place);
}

/* Begins to watch the node, which was created or is to be checked. */
static void watch(struct zk_entry *entry, enum step step)
{
	entry->changed = false;
	ask(entry, step, SPOKEI_ZOO_EXISTS_WATCH, entry->path, NULL);
}

static void finish(struct zk_entry *entry)
{
	spokei_buffer_clear(&entry->formers);
	done(entry);
	if (entry->changed)
		watch(entry, STEP_CHECK);
}

static const char *former_of(const struct zk_entry *entry)
{
	return (const char *)spokei_buffer_data(&entry->formers) + entry->former;
}

static void next_former(struct zk_entry *entry)
{
	if (entry->former == spokei_buffer_len(&entry->formers))
		finish(entry);
	else
		ask(entry, STEP_FORMER, SPOKEI_ZOO_EXISTS, former_of(entry), NULL);
}

static void pass_former(struct zk_entry *entry)
{
	entry->former += strlen(former_of(entry)) + 1;
	next_former(entry);
}

/* Returns whether a name is an older node of this provider. Unreadable names are not. */
static bool is_former(struct zk_entry *entry, const char *name)
{
	const struct spoke_engine *engine = entry->registry->engine;
	size_t len = strlen(name);
	struct spoke_url url = { 0 };
	bool same;

	if (strcmp(name, entry->path + entry->folder_len + 1) == 0 || len >= SPOKEI_ENGINE_SCRATCH)
		return false;
	if (spoke_url_decode(name, len, (char *)engine->scratch, SPOKEI_ENGINE_SCRATCH, &len) ||
	    spoke_url_parse(engine->env, (const char *)engine->scratch, len, &url, NULL))
		return false;
	same = spokei_urls_same(entry->of.url, &url);
	spoke_url_fini(&url);
	return same;
}

static int add_former(struct zk_entry *entry, const char *name)
{
	int error = spokei_buffer_append(&entry->formers, entry->path, entry->folder_len + 1);

	return error ? error : spokei_buffer_append(&entry->formers, name, strlen(name) + 1);
}

static void take_formers(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	const struct String_vector *names = answer->names;
	unsigned count = 0;
	int error = SPOKE_OK;

	if (answer->code == ZNONODE) {
		create(entry);
		return;
	}
	spokei_buffer_clear(&entry->formers);
	entry->former = 0;
	for (int32_t i = 0; i < names->count && count < FORMERS_MAX && !error; i++) {
		if (!is_former(entry, names->data[i]))
			continue;
		error = add_former(entry, names->data[i]);
		count++;
	}
	if (error)
		fail(entry, error);
	else
		next_former(entry);
}

static void seek_formers(struct zk_entry *entry)
{
	entry->path[entry->folder_len] = '\0';
	ask(entry, STEP_SEEK, SPOKEI_ZOO_LIST, entry->path, NULL);
	entry->path[entry->folder_len] = '/';
}

static bool is_owned(const struct zk_entry *entry, const struct Stat *stat)
{
	return spokei_zoo_owns(&entry->asker, stat->ephemeralOwner);
}

/* Nodes made by hand or by this session stay. */
static void check_former(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	if (answer->code == ZOK && answer->stat->ephemeralOwner != 0 &&
	    !is_owned(entry, answer->stat))
		ask(entry, STEP_PURGE, SPOKEI_ZOO_DELETE, former_of(entry), NULL);
	else
		pass_former(entry);
}

static void former_gone(struct zk_entry *entry, int code)
{
	int error = code == ZNONODE ? SPOKE_OK : spokei_zoo_fold(code);
	char text[SHOWN];

	(void)spokei_log_escape_end(text, sizeof(text), entry->path, strlen(entry->path));
	spokei_event(entry->registry->engine, error,
		     "registry zookeeper: an older entry of the same provider %s: %s",
		     error ? "could not be removed" : "was removed", text);
	pass_former(entry);
}

/* The node exists: checks whether it belongs to this session. */
static void check_node(struct zk_entry *entry, const struct Stat *stat)
{
	if (!is_owned(entry, stat))
		ask(entry, STEP_CLEAR, SPOKEI_ZOO_DELETE, entry->path, NULL);
	else if (entry->step == STEP_OWNER && is_instance(entry))
		write_instance(entry, STEP_SET, SPOKEI_ZOO_SET);
	else if (entry->step == STEP_OWNER)
		watch(entry, STEP_WATCH);
	else if (is_consumer(entry) || is_instance(entry))
		finish(entry);
	else
		seek_formers(entry);
}

static void checked(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	entry->step = STEP_NONE;
	if (answer->code == ZNONODE)
		fail(entry, SPOKE_ENOENT);
	else if (answer->code == ZOK && !is_owned(entry, answer->stat))
		fail(entry, SPOKE_EEXIST);
	else if (answer->code == ZOK && entry->changed)
		watch(entry, STEP_CHECK);
	/* otherwise the next connection checks again */
}

/* Returns whether the publication goes on after this answer. It ends with the others: the
 * connection is lost, or there is no permission. */
static bool goes_on(enum step step, int code)
{
	if (code == ZOK || code == ZNONODE)
		return true;
	if (code == ZNODEEXISTS)
		return step == STEP_CREATE || step == STEP_PARENTS || step == STEP_METADATA ||
		       step == STEP_FIRST;
	if (code == ZBADVERSION)
		return step == STEP_ADD;
	return code == ZNOAUTH && (step == STEP_PURGE || step == STEP_FORMER);
}

/* --- publications of instances */

static void make_parents(struct zk_entry *entry);

static void create_metadata(struct zk_entry *entry)
{
	ask(entry, STEP_METADATA, SPOKEI_ZOO_CREATE, entry->path, entry->of.text);
}

static void create_mapping(struct zk_entry *entry)
{
	ask(entry, STEP_FIRST, SPOKEI_ZOO_CREATE, entry->path, entry->of.service);
}

static const char *mapped_of(const struct zk_entry *entry)
{
	return former_of(entry);
}

/* Sets the path to a node whose parents are its folder. */
static int print_node(struct zk_entry *entry, const char *name, const char *category)
{
	int error = print_folder(entry, name, category);

	if (!error)
		entry->folder_len = (size_t)(strrchr(entry->path, '/') - entry->path);
	return error;
}

/* Asks for the mapping of the next service; after the last one the instance follows. */
static void map_next(struct zk_entry *entry)
{
	bool over = entry->former == spokei_buffer_len(&entry->formers);
	int error = over ? name_instance(entry)
			 : print_node(entry, mapped_of(entry), SPOKEI_ZOO_MAPPING);

	entry->rounds = 0;
	if (error)
		fail(entry, error);
	else if (over)
		create(entry);
	else
		ask(entry, STEP_MAPPING, SPOKEI_ZOO_GET, entry->path, NULL);
}

static void pass_mapped(struct zk_entry *entry)
{
	entry->former += strlen(mapped_of(entry)) + 1;
	map_next(entry);
}

/* Returns whether the list of a mapping, "a, b", has the application. */
static bool lists_application(const struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	const char *list = answer->data;
	const char *end = answer->data ? list + answer->len : NULL;
	const char *name = entry->of.service;
	size_t name_len = strlen(name);

	while (list < end) {
		const char *comma = memchr(list, ',', (size_t)(end - list));
		const char *stop = comma ? comma : end;
		size_t len;

		while (list < stop && *list == ' ')
			list++;
		len = (size_t)(stop - list);
		while (len > 0 && list[len - 1] == ' ')
			len--;
		if (len == name_len && memcmp(list, name, len) == 0)
			return true;
		list = comma ? comma + 1 : end;
	}
	return false;
}

static void add_application(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	struct spokei_buffer list;
	size_t len = answer->data ? answer->len : 0;
	int error = SPOKE_OK;

	spokei_buffer_init(&list, entry->registry->engine->env, SIZE_MAX);
	if (len > 0)
		error = spokei_buffer_append(&list, answer->data, len);
	if (!error && len > 0)
		error = spokei_buffer_append(&list, ",", 1);
	if (!error)
		error = spokei_buffer_append(&list, entry->of.service,
					     strlen(entry->of.service) + 1);
	entry->asker.version = answer->stat->version;
	if (error)
		fail(entry, error);
	else
		ask(entry, STEP_ADD, SPOKEI_ZOO_SET, entry->path,
		    (const char *)spokei_buffer_data(&list));
	spokei_buffer_fini(&list);
}

/* The list was read, or it has changed since and is read again; bounded, because others change it
 * at the same time. */
static void map(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	if (answer->code == ZOK &&
	    (entry->step != STEP_MAPPING || lists_application(entry, answer)))
		pass_mapped(entry);
	else if (++entry->rounds > ROUNDS_MAX)
		fail(entry, SPOKE_EREFUSED);
	else if (answer->code == ZOK)
		add_application(entry, answer);
	else if (answer->code == ZNONODE && entry->step == STEP_FIRST)
		make_parents(entry);
	else if (answer->code == ZNONODE)
		create_mapping(entry);
	else
		ask(entry, STEP_MAPPING, SPOKEI_ZOO_GET, entry->path, NULL);
}

/* Begins with the metadata. */
static void create_instance(struct zk_entry *entry)
{
	const struct spoke_env *env = entry->registry->engine->env;
	const char *revision = spokei_urls_value(entry->of.url, SPOKEI_INSTANCE_REVISION);
	char name[2 * SPOKE_URL_HOST_MAX + 2];
	int error;

	(void)snprintf(name, sizeof(name), "%s/%s", entry->of.service, revision);
	spokei_buffer_clear(&entry->formers);
	entry->former = 0;
	error = spokei_instance_list(env, entry->of.text, &entry->formers);
	if (!error)
		error = print_node(entry, name, SPOKEI_ZOO_METADATA);
	if (error)
		fail(entry, error);
	else
		create_metadata(entry);
}

/* Goes on with the node whose parents exist. */
static void make_parents(struct zk_entry *entry)
{
	if (make_parent(entry))
		return;
	if (entry->goal == STEP_METADATA)
		create_metadata(entry);
	else if (entry->goal == STEP_FIRST)
		create_mapping(entry);
	else
		create(entry);
}

static void instance_answered(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	bool none = answer->code == ZNONODE;

	if (entry->step == STEP_METADATA && none)
		make_parents(entry);
	else if (entry->step == STEP_METADATA)
		map_next(entry);
	else if (entry->step != STEP_SET)
		map(entry, answer);
	else if (none)
		create(entry);
	else
		watch(entry, STEP_WATCH);
}

static void publication_answered(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	bool none = answer->code == ZNONODE;

	if (entry->step != STEP_CHECK && !goes_on(entry->step, answer->code)) {
		fail(entry, spokei_zoo_fold(answer->code));
		return;
	}
	switch (entry->step) {
	case STEP_CHECK:
		checked(entry, answer);
		return;
	case STEP_CREATE:
		if (answer->code == ZOK) {
			watch(entry, STEP_WATCH);
		} else if (none) {
			make_parents(entry);
		} else {
			ask(entry, STEP_OWNER, SPOKEI_ZOO_EXISTS, entry->path, NULL);
		}
		return;
	case STEP_PARENTS:
		make_parents(entry);
		return;
	case STEP_OWNER:
	case STEP_WATCH:
		if (none)
			create(entry);
		else
			check_node(entry, answer->stat);
		return;
	case STEP_SEEK:
		take_formers(entry, answer);
		return;
	case STEP_FORMER:
		check_former(entry, answer);
		return;
	case STEP_PURGE:
		former_gone(entry, answer->code);
		return;
	case STEP_CLEAR:
		create(entry);
		return;
	case STEP_METADATA:
	case STEP_MAPPING:
	case STEP_ADD:
	case STEP_FIRST:
	case STEP_SET:
		instance_answered(entry, answer);
		return;
	case STEP_NONE:
	case STEP_FIND:
	case STEP_DELETE:
	case STEP_LIST:
	case STEP_MISSING:
	case STEP_INSTANCES:
		return;
	}
}

/* --- removals */

static void removal_answered(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	bool gone = answer->code == ZNONODE || (entry->step == STEP_DELETE && answer->code == ZOK);

	if (answer->code && !gone)
		fail(entry, spokei_zoo_fold(answer->code));
	else if (gone || !is_owned(entry, answer->stat))
		done(entry);
	else
		ask(entry, STEP_DELETE, SPOKEI_ZOO_DELETE, entry->path, NULL);
}

/* --- subscriptions */

static void list(struct zk_entry *entry)
{
	entry->changed = false;
	ask(entry, STEP_LIST,
	    spokei_urls_are_rule(entry->of.category) ? SPOKEI_ZOO_GET_WATCH : SPOKEI_ZOO_LIST_WATCH,
	    entry->path, NULL);
}

/* Decodes a name into at least as many bytes. Returns the length of the text with its NUL, or 0,
 * with an event, if it is no provider's name. */
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

/* Adds a name to a list of URLs, and counts it, unless it is invalid. Returns 0 or SPOKE_ENOMEM. */
static int add_name(struct spoke_engine *engine, const char *name, bool services,
		    struct spokei_buffer *urls, size_t *count)
{
	size_t size = strlen(name) + 1;
	char *room = services ? (char *)engine->scratch : (char *)spokei_buffer_reserve(urls, size);
	size_t len;
	int error = SPOKE_OK;

	if (room == NULL)
		return SPOKE_ENOMEM;
	if (services && !is_service(name))
		return SPOKE_OK;
	len = decode(engine, name, room, services ? SPOKEI_ENGINE_SCRATCH : size);
	if (len == 0)
		return SPOKE_OK;
	if (services)
		error = spokei_urls_put_service(urls, room);
	else
		spokei_buffer_commit(urls, len);
	*count += error == SPOKE_OK;
	return error;
}

/* Converts all names to URLs. */
static int take_names(struct zk_entry *entry, const struct String_vector *names,
		      struct spokei_buffer *urls, size_t *ret_count)
{
	struct spoke_engine *engine = entry->registry->engine;
	size_t count = names->count > 0 ? (size_t)names->count : 0;
	bool services = spokei_urls_are_services(entry->of.service);
	int error = SPOKE_OK;

	for (size_t i = 0; i < count && !error; i++)
		error = add_name(engine, names->data[i], services, urls, ret_count);
	return error;
}

/* Copies the text of a rule; a NUL becomes a byte that no rule may contain. */
static int take_text(const struct spokei_zoo_answer *answer, struct spokei_buffer *text,
		     size_t *ret_count)
{
	size_t len = answer->data ? answer->len : 0;
	unsigned char *room = spokei_buffer_reserve(text, len + 1);

	if (room == NULL)
		return SPOKE_ENOMEM;
	for (size_t i = 0; i < len; i++)
		room[i] = answer->data[i] ? (unsigned char)answer->data[i] : 1;
	room[len] = '\0';
	spokei_buffer_commit(text, len + 1);
	*ret_count = len > 0;
	return SPOKE_OK;
}

/* An empty list may have a reason that users of Dubbo 3 do not see: its programs can register
 * instances of applications in place of services. Looks once whether there are any. */
static void ask_for_instances(struct zk_entry *entry)
{
	struct registry *registry = entry->registry;

	if (strcmp(entry->of.category, SPOKE_REGISTRY_PROVIDERS) != 0 ||
	    spokei_urls_are_services(entry->of.service) || registry->instances_asked)
		return;
	registry->instances_asked = true;
	entry->step = STEP_INSTANCES;
	/* Without memory the reason stays unknown. */
	(void)!spokei_zoo_ask(&entry->asker, SPOKEI_ZOO_LIST, INSTANCES, NULL);
}

static void instances_answered(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	int count = answer->code == ZOK ? answer->names->count : 0;

	if (count > 0) {
		spokei_event(entry->registry->engine, SPOKE_ENOPROVIDER,
			     "registry: %s is empty, but " INSTANCES
			     " has %d applications of Dubbo 3; set register-mode=interface or all "
			     "there",
			     entry->path, count);
	}
	if (entry->changed)
		list(entry);
}

/* Reports the list. */
static void listed(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	const struct registry *registry = entry->registry;
	struct spokei_buffer urls;
	size_t count = 0;
	int error;

	spokei_buffer_init(&urls, registry->engine->env, SIZE_MAX);
	error = spokei_urls_are_rule(entry->of.category)
			? take_text(answer, &urls, &count)
			: take_names(entry, answer->names, &urls, &count);
	if (error) {
		fail(entry, error);
	} else {
		if (entry->asked)
			done(entry);
		registry->up->list(registry->up_arg, &entry->of,
				   (const char *)spokei_buffer_data(&urls), count);
		if (entry->changed)
			list(entry);
		else if (count == 0)
			ask_for_instances(entry);
	}
	spokei_buffer_fini(&urls);
}

static void entry_due(struct spoke_alarm *alarm);

/* Requests the list again after a pause or with the next connection, unless its state is to be
 * reported, or there is no permission. Returns whether that is so and a timer was left. */
static bool list_later(struct zk_entry *entry, int code)
{
	if (entry->asked || spokei_zoo_fold(code) == SPOKE_EREFUSED)
		return false;
	entry->connect = 0;
	return spoke_alarm_after(entry->registry->engine, &entry->alarm, AGAIN_NS, entry_due) == 0;
}

static void subscription_answered(struct zk_entry *entry, const struct spokei_zoo_answer *answer)
{
	int code = answer->code;
	bool none = code == ZNONODE;

	if (entry->step == STEP_INSTANCES) {
		instances_answered(entry, answer);
	} else if (entry->step == STEP_PARENTS && (code == ZOK || code == ZNODEEXISTS || none)) {
		if (!make_parent(entry))
			list(entry);
	} else if (entry->step == STEP_LIST && none && spokei_urls_are_rule(entry->of.category)) {
		ask(entry, STEP_MISSING, SPOKEI_ZOO_EXISTS_WATCH, entry->path, NULL);
	} else if (entry->step == STEP_MISSING && code == ZOK) {
		list(entry);
	} else if (entry->step == STEP_MISSING && none) {
		listed(entry, answer);
	} else if (none && entry->made == 0) {
		(void)make_parent(entry);
	} else if (code == ZOK) {
		entry->made = 0;
		listed(entry, answer);
	} else if (!list_later(entry, code)) {
		fail(entry, spokei_zoo_fold(code));
	}
}

/* --- entries */

static void entry_answered(struct spokei_zoo_asker *asker, const struct spokei_zoo_answer *answer)
{
	struct zk_entry *entry = spoke_container_of(asker, struct zk_entry, asker);

	if (!entry->wanted)
		removal_answered(entry, answer);
	else if (entry->of.url)
		publication_answered(entry, answer);
	else
		subscription_answered(entry, answer);
}

static void entry_touched(struct spokei_zoo_asker *asker)
{
	struct zk_entry *entry = spoke_container_of(asker, struct zk_entry, asker);

	if (asker->request)
		entry->changed = true;
	else if (entry->of.url)
		watch(entry, STEP_CHECK);
	else
		list(entry);
}

/* Names the node of a publication as of this connection, if its name depends on it. */
static int name_now(struct zk_entry *entry)
{
	if (entry->of.url && is_instance(entry))
		return name_instance(entry);
	return entry->of.url == NULL || !entry->wanted || is_named(entry) ? SPOKE_OK
									  : name_consumer(entry);
}

/* Begins the entry's first request if there is a connection at which it has not begun. */
static void begin(struct zk_entry *entry)
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
		fail(entry, SPOKE_ENOMEM);
	else if (!entry->wanted)
		ask(entry, STEP_FIND, SPOKEI_ZOO_EXISTS, entry->path, NULL);
	else if (entry->of.url == NULL)
		list(entry);
	else if (entry->asked && is_instance(entry))
		create_instance(entry);
	else if (entry->asked)
		create(entry);
	else
		watch(entry, STEP_CHECK);
}

static void entry_due(struct spoke_alarm *alarm)
{
	struct zk_entry *entry = spoke_container_of(alarm, struct zk_entry, alarm);

	if (!entry->asked)
		begin(entry);
	else if (spokei_zoo_session_connect(entry->registry->session))
		fail(entry, SPOKE_ETIMEOUT);
	else
		fail(entry, SPOKE_EUNAVAILABLE);
}

/* Sets the request and its timeout. */
static int set(struct zk_entry *entry, bool wanted)
{
	spokei_zoo_leave(&entry->asker);
	entry->wanted = wanted;
	entry->asked = true;
	entry->held = false;
	entry->connect = 0;
	return spoke_alarm_after(entry->registry->engine, &entry->alarm, DEADLINE_NS, entry_due)
		       ? SPOKE_EUNAVAILABLE
		       : SPOKE_OK;
}

static int prepare_path(struct zk_entry *entry)
{
	int error = entry->path ? SPOKE_OK
				: print_folder(entry, entry->of.service, entry->of.category);

	if (!error && entry->of.url && !is_consumer(entry) && !is_instance(entry) &&
	    !is_named(entry))
		error = name_node(entry, entry->of.text);
	return error;
}

static void registry_want(void *handle, struct spoke_registry_entry *of)
{
	struct registry *registry = handle;
	struct zk_entry *entry = spoke_container_of(of, struct zk_entry, of);
	int error;

	if (entry->node.next == NULL) {
		entry->registry = registry;
		entry->asker.answered = entry_answered;
		entry->asker.touched = entry_touched;
		spokei_buffer_init(&entry->formers, registry->engine->env, SIZE_MAX);
		spokei_list_append(&registry->entries, &entry->node);
	}
	error = set(entry, true);
	if (of->url && spokei_urls_are_services(of->service))
		error = SPOKE_EINVAL; /* the name is reserved for the list of services */
	if (!error)
		error = prepare_path(entry);
	if (error)
		fail(entry, error);
	else
		begin(entry);
}

static void registry_unwant(void *handle, struct spoke_registry_entry *of)
{
	struct zk_entry *entry = spoke_container_of(of, struct zk_entry, of);
	int error = set(entry, false);

	(void)handle;
	if (of->url == NULL || !entry->begun)
		done(entry);
	else if (error)
		fail(entry, error);
	else
		begin(entry);
}

/* --- the session */

static void session_connected(void *arg)
{
	struct registry *registry = arg;

	for (struct spoke_list *at = registry->entries.next; at != &registry->entries;
	     at = at->next) {
		struct zk_entry *entry = entry_at(at);

		if (entry->wanted && !entry->asked && !entry->held)
			report(entry, SPOKE_ELOST); /* it has failed; the server answers again */
		else
			begin(entry);
	}
}

/* The nodes are gone. The address in the name of a consumer may be another one next time. */
static void session_expired(void *arg)
{
	struct registry *registry = arg;
	struct spoke_list *next;

	for (struct spoke_list *at = registry->entries.next; at != &registry->entries; at = next) {
		struct zk_entry *entry = entry_at(at);

		next = at->next;
		entry->begun = false;
		if (is_consumer(entry) && entry->path)
			entry->path[entry->folder_len] = '\0';
		if (entry->asked && !entry->wanted)
			done(entry);
		else if (entry->asked || entry->held)
			fail(entry, SPOKE_ELOST);
	}
}

static int registry_open(struct spoke_engine *engine, const struct spoke_url *url,
			 const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	struct registry *registry = spokei_alloc(engine->env, 1, sizeof(*registry));
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
	struct registry *registry = handle;

	while (!spokei_list_empty(&registry->entries))
		release(entry_at(spokei_list_first(&registry->entries)));
	spokei_zoo_session_end(registry->session);
	spokei_free(registry->engine->env, registry, 1, sizeof(*registry));
}

const struct spoke_registry spokei_registry_zookeeper = {
	.scheme = "zookeeper",
	.entry_size = sizeof(struct zk_entry),
	.categories = true,
	.instances = true,
	.open = registry_open,
	.want = registry_want,
	.unwant = registry_unwant,
	.close = registry_close,
};
