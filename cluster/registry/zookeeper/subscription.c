/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subscriptions in ZooKeeper. They list the children of the service's folder and watch them. They
 * are listed again after each change and each new connection. For "*" these are the children of the
 * parent folder: the services. For a rule it is the text of its node, or nothing while there is no
 * such node, and metadata and mappings are read in the same way.
 *
 * A list of instances has the data of the children, which are read one by one and watched. Because
 * that takes a request for each of them, it is done once a second at most.
 */
#include "cluster/registry/zookeeper/entry.h"

#include "cluster/registry/instance.h"
#include "cluster/registry/urls.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/base/span.h"
#include "core/engine/engine.h"

#define AGAIN_NS UINT64_C(1000000000) /* pause before a list is requested again */
#define SHOWN 128u                    /* bytes of a name in an event */

static bool is_of(const struct spokei_zoo_entry *entry, const char *category)
{
	return strcmp(entry->of.category, category) == 0;
}

/* Returns whether the list is read from the data of one node. */
static bool is_text(const struct spokei_zoo_entry *entry)
{
	return spokei_urls_are_rule(entry->of.category) || is_of(entry, SPOKE_REGISTRY_METADATA) ||
	       is_of(entry, SPOKE_REGISTRY_MAPPING);
}

void spokei_zoo_list(struct spokei_zoo_entry *entry)
{
	entry->changed = false;
	entry->listed_ns = entry->registry->engine->begin_ns;
	spokei_zoo_request(entry, SPOKEI_ZOO_STEP_LIST,
			   is_text(entry) ? SPOKEI_ZOO_GET_WATCH : SPOKEI_ZOO_LIST_WATCH,
			   entry->path, NULL);
}

/* Requests the list again after a pause or with the next connection. Returns whether a timer was
 * left. */
static bool list_after(struct spokei_zoo_entry *entry, uint64_t pause_ns)
{
	entry->connect = 0;
	return spoke_alarm_after(entry->registry->engine, &entry->alarm, pause_ns,
				 spokei_zoo_entry_due) == 0;
}

void spokei_zoo_list_touched(struct spokei_zoo_entry *entry)
{
	uint64_t next_ns = spokei_later(entry->listed_ns, AGAIN_NS);
	uint64_t now_ns = entry->registry->engine->begin_ns;

	if (!spokei_zoo_is_instance(entry) || now_ns >= next_ns ||
	    !list_after(entry, next_ns - now_ns))
		spokei_zoo_list(entry);
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
static int take_names(struct spokei_zoo_entry *entry, const struct String_vector *names,
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

/* Reads the names of applications, "a, b". */
static int take_mapping(const struct spokei_zoo_answer *answer, struct spokei_buffer *urls,
			size_t *ret_count)
{
	struct spoke_span list = spokei_span(answer->data, answer->data ? answer->len : 0);
	struct spoke_span name;
	int error = SPOKE_OK;

	while (!error && spokei_instance_next_name(&list, &name)) {
		char text[SPOKE_URL_HOST_MAX + 1];

		if (!spokei_instance_is_name(name.data, name.len))
			continue;
		memcpy(text, name.data, name.len);
		text[name.len] = '\0';
		error = spokei_urls_put_service(urls, text);
		*ret_count += error == SPOKE_OK;
	}
	return error;
}

/* Tells of a node that is passed over. */
static void tell_bad(const struct spokei_zoo_entry *entry, const char *name, const char *why)
{
	char shown[SHOWN];

	(void)spokei_log_escape_end(shown, sizeof(shown), name, strlen(name));
	spokei_event(entry->registry->engine, SPOKE_ESYNTAX,
		     "registry zookeeper: ignored %s of %.*s: %s", shown, (int)SHOWN,
		     entry->of.service, why);
}

/* Copies the data of a node, because the reader overwrites it. */
static char *copy_data(const struct spokei_zoo_entry *entry, const struct spokei_zoo_answer *answer)
{
	char *copy = spokei_alloc(entry->registry->engine->env, 1, answer->len + 1);

	if (copy && answer->len > 0)
		memcpy(copy, answer->data, answer->len);
	return copy;
}

static int take_metadata(const struct spokei_zoo_entry *entry,
			 const struct spokei_zoo_answer *answer, struct spokei_buffer *urls,
			 size_t *ret_count)
{
	const struct spoke_env *env = entry->registry->engine->env;
	char *text = copy_data(entry, answer);
	char why[SPOKEI_INSTANCE_WHY] = "no services";
	struct spoke_builder builder;
	struct spoke_value root;
	size_t bad = 0;
	int error;

	if (text == NULL)
		return SPOKE_ENOMEM;
	error = spokei_instance_parse(env, text, answer->len, &builder, &root, why);
	if (!error)
		error = spokei_instance_read_metadata(env, root, urls, ret_count, &bad);
	if (error == SPOKE_ESYNTAX || bad > 0)
		tell_bad(entry, "metadata", error ? why : "services without name, path or params");
	spoke_builder_fini(&builder);
	spokei_free(env, text, 1, answer->len + 1);
	return error == SPOKE_ESYNTAX ? SPOKE_OK : error;
}

/* Converts an answer to a list. */
static int take(struct spokei_zoo_entry *entry, const struct spokei_zoo_answer *answer,
		struct spokei_buffer *urls, size_t *ret_count)
{
	if (answer->code == ZNONODE)
		return SPOKE_OK;
	if (spokei_urls_are_rule(entry->of.category))
		return take_text(answer, urls, ret_count);
	if (is_of(entry, SPOKE_REGISTRY_MAPPING))
		return take_mapping(answer, urls, ret_count);
	if (is_of(entry, SPOKE_REGISTRY_METADATA))
		return take_metadata(entry, answer, urls, ret_count);
	return take_names(entry, answer->names, urls, ret_count);
}

static void report_list(struct spokei_zoo_entry *entry, const struct spokei_buffer *urls,
			size_t count)
{
	const struct spokei_zoo_registry *registry = entry->registry;

	if (entry->asked)
		spokei_zoo_done(entry);
	registry->up->list(registry->up_arg, &entry->of, (const char *)spokei_buffer_data(urls),
			   count);
	if (entry->changed)
		spokei_zoo_list_touched(entry);
}

/* Reports the list. */
static void listed(struct spokei_zoo_entry *entry, const struct spokei_zoo_answer *answer)
{
	struct spokei_buffer urls;
	size_t count = 0;
	int error;

	spokei_buffer_init(&urls, entry->registry->engine->env, SIZE_MAX);
	error = take(entry, answer, &urls, &count);
	if (error)
		spokei_zoo_fail(entry, error);
	else
		report_list(entry, &urls, count);
	spokei_buffer_fini(&urls);
}

/* --- instances */

static const char *child_of(const struct spokei_zoo_entry *entry)
{
	return (const char *)spokei_buffer_data(&entry->formers) + entry->former;
}

/* Asks for the data of the next instance; after the last one the list is reported. */
static void next_child(struct spokei_zoo_entry *entry)
{
	struct spokei_buffer path;
	int error;

	if (entry->former == spokei_buffer_len(&entry->formers)) {
		entry->step = SPOKEI_ZOO_STEP_NONE;
		report_list(entry, &entry->urls, entry->count);
		return;
	}
	spokei_buffer_init(&path, entry->registry->engine->env, SIZE_MAX);
	error = spokei_buffer_append(&path, entry->path, strlen(entry->path));
	if (!error)
		error = spokei_buffer_append(&path, "/", 1);
	if (!error)
		error = spokei_buffer_append(&path, child_of(entry), strlen(child_of(entry)) + 1);
	if (error)
		spokei_zoo_fail(entry, error);
	else
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_CHILD, SPOKEI_ZOO_GET_WATCH,
				   (const char *)spokei_buffer_data(&path), NULL);
	spokei_buffer_fini(&path);
}

static void begin_children(struct spokei_zoo_entry *entry, const struct String_vector *names)
{
	int error = SPOKE_OK;

	spokei_buffer_clear(&entry->formers);
	spokei_buffer_clear(&entry->urls);
	entry->former = 0;
	entry->count = 0;
	for (int32_t i = 0; names && i < names->count && !error; i++)
		error = spokei_buffer_append(&entry->formers, names->data[i],
					     strlen(names->data[i]) + 1);
	if (error)
		spokei_zoo_fail(entry, error);
	else
		next_child(entry);
}

/* Adds an instance to the list, unless it is gone or cannot be used. */
static void child_answered(struct spokei_zoo_entry *entry, const struct spokei_zoo_answer *answer)
{
	const struct spoke_env *env = entry->registry->engine->env;
	char *text = answer->code == ZOK ? copy_data(entry, answer) : NULL;
	char why[SPOKEI_INSTANCE_WHY];
	int error = text || answer->code == ZNONODE ? SPOKE_OK : SPOKE_ENOMEM;

	if (text) {
		error = spokei_instance_read(env, text, answer->len, &entry->urls, why);
		spokei_free(env, text, 1, answer->len + 1);
		entry->count += error == SPOKE_OK;
		if (error == SPOKE_ESYNTAX)
			tell_bad(entry, child_of(entry), why);
	}
	if (error == SPOKE_ENOMEM || error == SPOKE_ETOOLARGE) {
		spokei_zoo_fail(entry, error);
		return;
	}
	entry->former += strlen(child_of(entry)) + 1;
	next_child(entry);
}

/* Decides about a request that has failed. */
static void list_failed(struct spokei_zoo_entry *entry, int code)
{
	int error = spokei_zoo_fold(code);

	if (entry->asked || error == SPOKE_EREFUSED || !list_after(entry, AGAIN_NS))
		spokei_zoo_fail(entry, error);
}

void spokei_zoo_subscription_answered(struct spokei_zoo_entry *entry,
				      const struct spokei_zoo_answer *answer)
{
	const bool none = answer->code == ZNONODE;
	const bool waits = is_text(entry) || spokei_zoo_is_instance(entry);
	const bool lists = entry->step == SPOKEI_ZOO_STEP_LIST;
	const bool parents = entry->step == SPOKEI_ZOO_STEP_PARENTS;

	if ((answer->code && !none && !(answer->code == ZNODEEXISTS && parents)) ||
	    (none && lists && !waits && entry->made > 0)) {
		list_failed(entry, answer->code);
	} else if (entry->step == SPOKEI_ZOO_STEP_CHILD) {
		child_answered(entry, answer);
	} else if (parents || (none && lists && !waits)) {
		if (!spokei_zoo_make_parent(entry))
			spokei_zoo_list(entry);
	} else if (none && lists) {
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_MISSING, SPOKEI_ZOO_EXISTS_WATCH,
				   entry->path, NULL);
	} else if (!none && !lists) {
		spokei_zoo_list(entry); /* the node exists now */
	} else if (lists && spokei_zoo_is_instance(entry)) {
		begin_children(entry, answer->names);
	} else {
		entry->made = 0;
		listed(entry, answer);
	}
}
