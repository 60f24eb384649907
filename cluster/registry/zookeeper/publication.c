/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publications in ZooKeeper.
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
 * A removal deletes the node if it belongs to this session. All earlier requests of the entry have
 * been answered by then, because a session keeps their order.
 */
#include "cluster/registry/zookeeper/entry.h"

#include "cluster/registry/instance.h"
#include "cluster/registry/urls.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/base/span.h"
#include "core/engine/engine.h"

#include <stdio.h>

#define MS UINT64_C(1000000)
#define FORMERS_MAX 16u /* older nodes at a time */
#define SHOWN 128u      /* bytes of a path in an event */

/* Writes the instance into its node. */
static void write_instance(struct spokei_zoo_entry *entry, enum spokei_zoo_step step,
			   enum spokei_zoo_ask what)
{
	const struct spoke_env *env = entry->registry->engine->env;
	struct spokei_buffer text;
	int error;

	spokei_buffer_init(&text, env, SIZE_MAX);
	error = spokei_instance_print(env, entry->of.service, entry->of.url,
				      env->wall(env->ctx) / MS, &text);
	entry->asker.version = -1;
	if (error)
		spokei_zoo_fail(entry, error);
	else
		spokei_zoo_request(entry, step, what, entry->path,
				   (const char *)spokei_buffer_data(&text));
	spokei_buffer_fini(&text);
}

/* Creates the node, perhaps again; bounded, because two processes may remove each other's. */
static void create(struct spokei_zoo_entry *entry)
{
	const char *place = entry->of.url->host ? entry->of.url->host : "";

	entry->changed = false;
	if (++entry->rounds > SPOKEI_ZOO_ROUNDS_MAX)
		spokei_zoo_fail(entry, SPOKE_EREFUSED);
	else if (spokei_zoo_is_instance(entry))
		write_instance(entry, SPOKEI_ZOO_STEP_CREATE, SPOKEI_ZOO_CREATE_EPHEMERAL);
	else
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_CREATE, SPOKEI_ZOO_CREATE_EPHEMERAL,
				   entry->path, place);
}

/* Begins to watch the node, which was created or is to be checked. */
static void watch(struct spokei_zoo_entry *entry, enum spokei_zoo_step step)
{
	entry->changed = false;
	spokei_zoo_request(entry, step, SPOKEI_ZOO_EXISTS_WATCH, entry->path, NULL);
}

static void finish(struct spokei_zoo_entry *entry)
{
	spokei_buffer_clear(&entry->formers);
	spokei_zoo_done(entry);
	if (entry->changed)
		watch(entry, SPOKEI_ZOO_STEP_CHECK);
}

static const char *former_of(const struct spokei_zoo_entry *entry)
{
	return (const char *)spokei_buffer_data(&entry->formers) + entry->former;
}

static void next_former(struct spokei_zoo_entry *entry)
{
	if (entry->former == spokei_buffer_len(&entry->formers))
		finish(entry);
	else
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_FORMER, SPOKEI_ZOO_EXISTS,
				   former_of(entry), NULL);
}

static void pass_former(struct spokei_zoo_entry *entry)
{
	entry->former += strlen(former_of(entry)) + 1;
	next_former(entry);
}

/* Returns whether a name is an older node of this provider. Unreadable names are not. */
static bool is_former(struct spokei_zoo_entry *entry, const char *name)
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

static int add_former(struct spokei_zoo_entry *entry, const char *name)
{
	int error = spokei_buffer_append(&entry->formers, entry->path, entry->folder_len + 1);

	return error ? error : spokei_buffer_append(&entry->formers, name, strlen(name) + 1);
}

static void take_formers(struct spokei_zoo_entry *entry, const struct spokei_zoo_answer *answer)
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
		spokei_zoo_fail(entry, error);
	else
		next_former(entry);
}

static void seek_formers(struct spokei_zoo_entry *entry)
{
	entry->path[entry->folder_len] = '\0';
	spokei_zoo_request(entry, SPOKEI_ZOO_STEP_SEEK, SPOKEI_ZOO_LIST, entry->path, NULL);
	entry->path[entry->folder_len] = '/';
}

static bool is_owned(const struct spokei_zoo_entry *entry, const struct Stat *stat)
{
	return spokei_zoo_owns(&entry->asker, stat->ephemeralOwner);
}

/* Nodes made by hand or by this session stay. */
static void check_former(struct spokei_zoo_entry *entry, const struct spokei_zoo_answer *answer)
{
	if (answer->code == ZOK && answer->stat->ephemeralOwner != 0 &&
	    !is_owned(entry, answer->stat))
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_PURGE, SPOKEI_ZOO_DELETE,
				   former_of(entry), NULL);
	else
		pass_former(entry);
}

static void former_gone(struct spokei_zoo_entry *entry, int code)
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
static void check_node(struct spokei_zoo_entry *entry, const struct Stat *stat)
{
	if (!is_owned(entry, stat))
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_CLEAR, SPOKEI_ZOO_DELETE, entry->path,
				   NULL);
	else if (entry->step == SPOKEI_ZOO_STEP_OWNER && spokei_zoo_is_instance(entry))
		write_instance(entry, SPOKEI_ZOO_STEP_SET, SPOKEI_ZOO_SET);
	else if (entry->step == SPOKEI_ZOO_STEP_OWNER)
		watch(entry, SPOKEI_ZOO_STEP_WATCH);
	else if (spokei_zoo_is_consumer(entry) || spokei_zoo_is_instance(entry))
		finish(entry);
	else
		seek_formers(entry);
}

static void checked(struct spokei_zoo_entry *entry, const struct spokei_zoo_answer *answer)
{
	entry->step = SPOKEI_ZOO_STEP_NONE;
	if (answer->code == ZNONODE)
		spokei_zoo_fail(entry, SPOKE_ENOENT);
	else if (answer->code == ZOK && !is_owned(entry, answer->stat))
		spokei_zoo_fail(entry, SPOKE_EEXIST);
	else if (answer->code == ZOK && entry->changed)
		watch(entry, SPOKEI_ZOO_STEP_CHECK);
	/* otherwise the next connection checks again */
}

/* Returns whether the publication goes on after this answer. It ends with the others: the
 * connection is lost, or there is no permission. */
static bool goes_on(enum spokei_zoo_step step, int code)
{
	if (code == ZOK || code == ZNONODE)
		return true;
	if (code == ZNODEEXISTS)
		return step == SPOKEI_ZOO_STEP_CREATE || step == SPOKEI_ZOO_STEP_PARENTS ||
		       step == SPOKEI_ZOO_STEP_METADATA || step == SPOKEI_ZOO_STEP_FIRST;
	if (code == ZBADVERSION)
		return step == SPOKEI_ZOO_STEP_ADD;
	return code == ZNOAUTH && (step == SPOKEI_ZOO_STEP_PURGE || step == SPOKEI_ZOO_STEP_FORMER);
}

/* --- publications of instances */

static void make_parents(struct spokei_zoo_entry *entry);

static void create_metadata(struct spokei_zoo_entry *entry)
{
	spokei_zoo_request(entry, SPOKEI_ZOO_STEP_METADATA, SPOKEI_ZOO_CREATE, entry->path,
			   entry->of.text);
}

static void create_mapping(struct spokei_zoo_entry *entry)
{
	spokei_zoo_request(entry, SPOKEI_ZOO_STEP_FIRST, SPOKEI_ZOO_CREATE, entry->path,
			   entry->of.service);
}

/* Sets the path to a node whose parents are its folder. */
static int print_node(struct spokei_zoo_entry *entry, const char *name, const char *category)
{
	int error = spokei_zoo_set_folder(entry, name, category);

	if (!error)
		entry->folder_len = (size_t)(strrchr(entry->path, '/') - entry->path);
	return error;
}

/* Asks for the mapping of the next service; after the last one the instance follows. */
static void map_next(struct spokei_zoo_entry *entry)
{
	bool over = entry->former == spokei_buffer_len(&entry->formers);
	int error = over ? spokei_zoo_name_instance(entry)
			 : print_node(entry, former_of(entry), SPOKE_REGISTRY_MAPPING);

	entry->rounds = 0;
	if (error)
		spokei_zoo_fail(entry, error);
	else if (over)
		create(entry);
	else
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_MAPPING, SPOKEI_ZOO_GET, entry->path,
				   NULL);
}

static void pass_mapped(struct spokei_zoo_entry *entry)
{
	entry->former += strlen(former_of(entry)) + 1;
	map_next(entry);
}

/* Returns whether the list of a mapping, "a, b", has the application. */
static bool lists_application(const struct spokei_zoo_entry *entry,
			      const struct spokei_zoo_answer *answer)
{
	struct spoke_span list = spokei_span(answer->data, answer->data ? answer->len : 0);
	struct spoke_span name;

	while (spokei_instance_next_name(&list, &name))
		if (spokei_span_is(name, entry->of.service))
			return true;
	return false;
}

static void add_application(struct spokei_zoo_entry *entry, const struct spokei_zoo_answer *answer)
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
		spokei_zoo_fail(entry, error);
	else
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_ADD, SPOKEI_ZOO_SET, entry->path,
				   (const char *)spokei_buffer_data(&list));
	spokei_buffer_fini(&list);
}

/* The list was read, or it has changed since and is read again; bounded, because others change it
 * at the same time. */
static void map(struct spokei_zoo_entry *entry, const struct spokei_zoo_answer *answer)
{
	if (answer->code == ZOK &&
	    (entry->step != SPOKEI_ZOO_STEP_MAPPING || lists_application(entry, answer)))
		pass_mapped(entry);
	else if (++entry->rounds > SPOKEI_ZOO_ROUNDS_MAX)
		spokei_zoo_fail(entry, SPOKE_EREFUSED);
	else if (answer->code == ZOK)
		add_application(entry, answer);
	else if (answer->code == ZNONODE && entry->step == SPOKEI_ZOO_STEP_FIRST)
		make_parents(entry);
	else if (answer->code == ZNONODE)
		create_mapping(entry);
	else
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_MAPPING, SPOKEI_ZOO_GET, entry->path,
				   NULL);
}

/* Begins with the metadata. */
static void create_instance(struct spokei_zoo_entry *entry)
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
		error = print_node(entry, name, SPOKE_REGISTRY_METADATA);
	if (error)
		spokei_zoo_fail(entry, error);
	else
		create_metadata(entry);
}

/* Goes on with the node whose parents exist. */
static void make_parents(struct spokei_zoo_entry *entry)
{
	if (spokei_zoo_make_parent(entry))
		return;
	if (entry->goal == SPOKEI_ZOO_STEP_METADATA)
		create_metadata(entry);
	else if (entry->goal == SPOKEI_ZOO_STEP_FIRST)
		create_mapping(entry);
	else
		create(entry);
}

static void instance_answered(struct spokei_zoo_entry *entry,
			      const struct spokei_zoo_answer *answer)
{
	bool none = answer->code == ZNONODE;

	if (entry->step == SPOKEI_ZOO_STEP_METADATA && none)
		make_parents(entry);
	else if (entry->step == SPOKEI_ZOO_STEP_METADATA)
		map_next(entry);
	else if (entry->step != SPOKEI_ZOO_STEP_SET)
		map(entry, answer);
	else if (none)
		create(entry);
	else
		watch(entry, SPOKEI_ZOO_STEP_WATCH);
}

void spokei_zoo_publication_answered(struct spokei_zoo_entry *entry,
				     const struct spokei_zoo_answer *answer)
{
	bool none = answer->code == ZNONODE;

	if (entry->step != SPOKEI_ZOO_STEP_CHECK && !goes_on(entry->step, answer->code)) {
		spokei_zoo_fail(entry, spokei_zoo_fold(answer->code));
		return;
	}
	switch (entry->step) {
	case SPOKEI_ZOO_STEP_CHECK:
		checked(entry, answer);
		return;
	case SPOKEI_ZOO_STEP_CREATE:
		if (answer->code == ZOK) {
			watch(entry, SPOKEI_ZOO_STEP_WATCH);
		} else if (none) {
			make_parents(entry);
		} else {
			spokei_zoo_request(entry, SPOKEI_ZOO_STEP_OWNER, SPOKEI_ZOO_EXISTS,
					   entry->path, NULL);
		}
		return;
	case SPOKEI_ZOO_STEP_PARENTS:
		make_parents(entry);
		return;
	case SPOKEI_ZOO_STEP_OWNER:
	case SPOKEI_ZOO_STEP_WATCH:
		if (none)
			create(entry);
		else
			check_node(entry, answer->stat);
		return;
	case SPOKEI_ZOO_STEP_SEEK:
		take_formers(entry, answer);
		return;
	case SPOKEI_ZOO_STEP_FORMER:
		check_former(entry, answer);
		return;
	case SPOKEI_ZOO_STEP_PURGE:
		former_gone(entry, answer->code);
		return;
	case SPOKEI_ZOO_STEP_CLEAR:
		create(entry);
		return;
	case SPOKEI_ZOO_STEP_METADATA:
	case SPOKEI_ZOO_STEP_MAPPING:
	case SPOKEI_ZOO_STEP_ADD:
	case SPOKEI_ZOO_STEP_FIRST:
	case SPOKEI_ZOO_STEP_SET:
		instance_answered(entry, answer);
		return;
	case SPOKEI_ZOO_STEP_NONE:
	case SPOKEI_ZOO_STEP_FIND:
	case SPOKEI_ZOO_STEP_DELETE:
	case SPOKEI_ZOO_STEP_LIST:
	case SPOKEI_ZOO_STEP_MISSING:
	case SPOKEI_ZOO_STEP_CHILD:
		return;
	}
}

/* --- removals */

void spokei_zoo_removal_answered(struct spokei_zoo_entry *entry,
				 const struct spokei_zoo_answer *answer)
{
	bool gone = answer->code == ZNONODE ||
		    (entry->step == SPOKEI_ZOO_STEP_DELETE && answer->code == ZOK);

	if (answer->code && !gone)
		spokei_zoo_fail(entry, spokei_zoo_fold(answer->code));
	else if (gone || !is_owned(entry, answer->stat))
		spokei_zoo_done(entry);
	else
		spokei_zoo_request(entry, SPOKEI_ZOO_STEP_DELETE, SPOKEI_ZOO_DELETE, entry->path,
				   NULL);
}

/* --- beginnings */

void spokei_zoo_publish(struct spokei_zoo_entry *entry)
{
	entry->rounds = 0;
	if (spokei_zoo_is_instance(entry))
		create_instance(entry);
	else
		create(entry);
}

void spokei_zoo_check(struct spokei_zoo_entry *entry)
{
	watch(entry, SPOKEI_ZOO_STEP_CHECK);
}
