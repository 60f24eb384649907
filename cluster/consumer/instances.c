/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the providers that are instances of applications with those by interface. */
#include "cluster/consumer/instances.h"

#include "cluster/discovery/keeper.h"
#include "cluster/discovery/provider_url.h"
#include "cluster/registry/instance.h"
#include "cluster/registry/urls.h"
#include "core/base/log.h"
#include "core/engine/engine.h"

#include <spoke/consumer.h>
#include <spoke/registry.h>

#include <stdio.h>
#include <string.h>

#define APPLICATIONS_MAX 64u /* of a service */
#define REVISIONS_MAX 256u   /* of all applications */
#define MS UINT64_C(1000000)
#define NAME 256u /* bytes of a name, with the NUL */
#define URL 1024u
#define RETRY_NS UINT64_C(10000000000) /* pause before metadata are requested again */
#define TIMEOUT_NS UINT64_C(5000000000)
#define MEMORY_NS UINT64_C(1000000000) /* ... before memory is */

/* The service of Java's providers that tells their metadata, and its method. */
#define SERVICE "org.apache.dubbo.metadata.MetadataService"
#define METHOD "getMetadataInfo"

struct application {
	struct spoke_list node;
	char name[NAME];
	bool mapped; /* by the last mapping */
	struct spokei_url_list instances;
};

/* Metadata of an application. */
struct revision {
	struct spoke_list node;
	char key[2 * NAME]; /* APPLICATION/REVISION */
	bool used;          /* by an instance */
	bool local;         /* told by the instances, not by the registry */
	bool known;
	bool missed;                     /* that they are missing was logged */
	uint64_t due_ns;                 /* of local ones: when they are requested next */
	struct spokei_url_list services; /* those that are wanted */
};

struct spokei_instances {
	struct spoke_engine *engine;
	struct spokei_keeper *keeper;
	int (*list)(void *arg, struct spokei_buffer *texts, size_t count);
	void *arg;
	const char *service;
	enum spokei_subscribe_mode mode;
	struct spoke_list applications;
	struct spoke_list revisions;
	unsigned application_count;
	unsigned revision_count;
	bool full;                  /* a limit was logged */
	struct spokei_buffer texts; /* by interface */
	size_t count;
	bool listed; /* there was such a list */
	struct spoke_alarm again;
	struct spokei_url_list mapping;
	struct asking *asking; /* NULL: none */
};

/* A call that asks an instance for metadata. It may outlive its owner. */
struct asking {
	struct spokei_instances *owner; /* NULL: freed */
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	char key[2 * NAME]; /* of the revision */
};

static struct application *application_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct application, node);
}

static struct revision *revision_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct revision, node);
}

static void tell_full(struct spokei_instances *instances, const char *what, unsigned max)
{
	if (!instances->full)
		spokei_event(instances->engine, SPOKE_ELIMIT,
			     "registry: %s has more than %u %s; further ones are passed over",
			     instances->service, max, what);
	instances->full = true;
}

/* --- applications */

static struct application *find_application(struct spokei_instances *instances, const char *name)
{
	for (struct spoke_list *at = instances->applications.next; at != &instances->applications;
	     at = at->next)
		if (strcmp(application_at(at)->name, name) == 0)
			return application_at(at);
	return NULL;
}

static void free_application(struct spokei_instances *instances, struct application *application)
{
	spokei_keeper_unsubscribe(instances->keeper, application->name, SPOKE_REGISTRY_INSTANCES);
	spokei_list_remove(&application->node);
	spokei_url_list_fini(&application->instances);
	spokei_free(instances->engine->env, application, 1, sizeof(*application));
	instances->application_count--;
}

static int add_application(struct spokei_instances *instances, const char *name)
{
	const struct spoke_env *env = instances->engine->env;
	struct application *application;
	int error;

	if (instances->application_count == APPLICATIONS_MAX) {
		tell_full(instances, "applications", APPLICATIONS_MAX);
		return SPOKE_OK;
	}
	application = spokei_alloc(env, 1, sizeof(*application));
	if (application == NULL)
		return SPOKE_ENOMEM;
	(void)snprintf(application->name, sizeof(application->name), "%s", name);
	application->mapped = true;
	spokei_url_list_init(&application->instances, env);
	spokei_list_append(&instances->applications, &application->node);
	instances->application_count++;
	error = spokei_keeper_subscribe(instances->keeper, name, SPOKE_REGISTRY_INSTANCES);
	if (error)
		free_application(instances, application);
	return error;
}

/* Follows the applications of the mapping. Those that are mapped no more are kept while they have
 * instances: Java's programs never take a name out. */
static int use_mapping(struct spokei_instances *instances)
{
	const struct spokei_url_list *list = &instances->mapping;
	int error = SPOKE_OK;

	for (struct spoke_list *at = instances->applications.next; at != &instances->applications;
	     at = at->next)
		application_at(at)->mapped = false;
	for (size_t i = 0; i < list->count && !error; i++) {
		const char *name = list->urls[i].path;
		struct application *application = find_application(instances, name);

		if (application)
			application->mapped = true;
		else if (spokei_instance_is_name(name, strlen(name)))
			error = add_application(instances, name);
	}
	for (struct spoke_list *at = instances->applications.next, *next;
	     at != &instances->applications; at = next) {
		next = at->next;
		if (!application_at(at)->mapped && application_at(at)->instances.count == 0)
			free_application(instances, application_at(at));
	}
	return error;
}

/* --- revisions */

static struct revision *find_revision(struct spokei_instances *instances, const char *key)
{
	for (struct spoke_list *at = instances->revisions.next; at != &instances->revisions;
	     at = at->next)
		if (strcmp(revision_at(at)->key, key) == 0)
			return revision_at(at);
	return NULL;
}

static void free_revision(struct spokei_instances *instances, struct revision *revision)
{
	if (!revision->local)
		spokei_keeper_unsubscribe(instances->keeper, revision->key,
					  SPOKE_REGISTRY_METADATA);
	spokei_list_remove(&revision->node);
	spokei_url_list_fini(&revision->services);
	spokei_free(instances->engine->env, revision, 1, sizeof(*revision));
	instances->revision_count--;
}

static void print_key(const struct application *application, const struct spoke_url *instance,
		      char key[2 * NAME])
{
	(void)snprintf(key, (size_t)2 * NAME, "%s/%s", application->name,
		       spokei_urls_value(instance, SPOKEI_INSTANCE_REVISION));
}

static int add_revision(struct spokei_instances *instances, const char *key, bool local)
{
	const struct spoke_env *env = instances->engine->env;
	struct revision *revision;
	int error = SPOKE_OK;

	if (instances->revision_count == REVISIONS_MAX) {
		tell_full(instances, "revisions of metadata", REVISIONS_MAX);
		return SPOKE_OK;
	}
	revision = spokei_alloc(env, 1, sizeof(*revision));
	if (revision == NULL)
		return SPOKE_ENOMEM;
	memcpy(revision->key, key, strlen(key) + 1);
	revision->used = true;
	revision->local = local;
	spokei_url_list_init(&revision->services, env);
	spokei_list_append(&instances->revisions, &revision->node);
	instances->revision_count++;
	if (!local)
		error = spokei_keeper_subscribe(instances->keeper, key, SPOKE_REGISTRY_METADATA);
	if (error)
		free_revision(instances, revision);
	return error;
}

/* Requests the metadata of all instances, and forgets those of none. */
static int use_revisions(struct spokei_instances *instances)
{
	int error = SPOKE_OK;

	for (struct spoke_list *at = instances->revisions.next; at != &instances->revisions;
	     at = at->next)
		revision_at(at)->used = false;
	for (struct spoke_list *at = instances->applications.next; at != &instances->applications;
	     at = at->next) {
		const struct application *application = application_at(at);

		for (size_t i = 0; i < application->instances.count && !error; i++) {
			const struct spoke_url *instance = &application->instances.urls[i];
			const char *storage = spokei_urls_value(instance, SPOKEI_INSTANCE_STORAGE);
			struct revision *revision;
			char key[2 * NAME];

			print_key(application, instance, key);
			revision = find_revision(instances, key);
			if (revision)
				revision->used = true;
			else
				error = add_revision(instances, key,
						     strcmp(storage, "remote") != 0);
		}
	}
	for (struct spoke_list *at = instances->revisions.next, *next; at != &instances->revisions;
	     at = next) {
		next = at->next;
		if (!revision_at(at)->used && !error)
			free_revision(instances, revision_at(at));
	}
	return error;
}

/* Keeps the service that is wanted of all those in metadata. */
static int take_services(struct spokei_instances *instances, struct revision *revision,
			 const struct spokei_url_list *all)
{
	struct spokei_url_list services;
	int error = SPOKE_OK;

	spokei_url_list_init(&services, instances->engine->env);
	for (size_t i = 0; i < all->count && !error; i++) {
		char *text = (char *)instances->engine->scratch;
		size_t len;

		if (!spokei_provider_url_serves(&all->urls[i], instances->service))
			continue;
		len = spoke_url_print(&all->urls[i], SPOKE_URL_WHOLE, text, SPOKEI_ENGINE_SCRATCH);
		if (len < SPOKEI_ENGINE_SCRATCH)
			error = spokei_url_list_add(&services, text, len);
	}
	if (error) {
		spokei_url_list_fini(&services);
		return error;
	}
	spokei_url_list_fini(&revision->services);
	revision->services = services;
	revision->known = true;
	return SPOKE_OK;
}

static int take_metadata(struct spokei_instances *instances, const char *key,
			 const struct spokei_url_list *list)
{
	struct revision *revision = find_revision(instances, key);

	int error = SPOKE_OK;

	if (revision == NULL)
		return SPOKE_OK;
	if (list->count > 0) {
		error = take_services(instances, revision, list);
		if (error) /* they are requested again */
			free_revision(instances, revision);
		return error;
	}
	if (!revision->known && !revision->missed) {
		spokei_event(instances->engine, SPOKE_ENOENT,
			     "registry: there are no metadata %s; their instances get no calls "
			     "until there are",
			     key);
	}
	revision->missed = true;
	return SPOKE_OK;
}

/* --- the list of all providers */

/* Appends the URLs of the service at an instance. */
static int put_instance(const struct revision *revision, const struct spoke_url *instance,
			struct spokei_buffer *texts, size_t *count)
{
	int error = SPOKE_OK;

	for (size_t i = 0; i < revision->services.count && !error; i++) {
		error = spokei_instance_join(instance, &revision->services.urls[i], texts);
		*count += error == SPOKE_OK;
	}
	return error;
}

static int put_all(struct spokei_instances *instances, struct spokei_buffer *texts, size_t *count)
{
	int error = SPOKE_OK;

	for (struct spoke_list *at = instances->applications.next; at != &instances->applications;
	     at = at->next) {
		const struct application *application = application_at(at);

		for (size_t i = 0; i < application->instances.count && !error; i++) {
			const struct spoke_url *instance = &application->instances.urls[i];
			const struct revision *revision;
			char key[2 * NAME];

			print_key(application, instance, key);
			revision = find_revision(instances, key);
			if (revision && revision->known)
				error = put_instance(revision, instance, texts, count);
		}
	}
	return error;
}

/* Passes on all providers. One that is there in both ways is so in the list, too, where a directory
 * has it once. */
static int pass_on(struct spokei_instances *instances)
{
	struct spokei_buffer texts;
	size_t count = 0;
	size_t own = spokei_buffer_len(&instances->texts);
	int error;

	spokei_buffer_init(&texts, instances->engine->env, SIZE_MAX);
	error = put_all(instances, &texts, &count);
	if (!error && own > 0 && instances->mode != SPOKEI_SUBSCRIBE_INSTANCE &&
	    (instances->mode == SPOKEI_SUBSCRIBE_ALL || count == 0)) {
		error = spokei_buffer_append(&texts, spokei_buffer_data(&instances->texts), own);
		count += instances->count;
	}
	/* Nothing is known before the first list by interface. */
	if (!error && (instances->listed || count > 0))
		error = instances->list(instances->arg, &texts, count);
	spokei_buffer_fini(&texts);
	return error;
}

static void renew(struct spokei_instances *instances);

static void again_due(struct spoke_alarm *alarm)
{
	renew(spoke_container_of(alarm, struct spokei_instances, again));
}

/* Without a timer the next change does it. */
static void renew_later(struct spokei_instances *instances, uint64_t pause_ns)
{
	(void)!spoke_alarm_after(instances->engine, &instances->again, pause_ns, again_due);
}

/* --- metadata that instances tell */

/* Finds a revision that is to be asked for, and an instance that has it. */
static struct revision *find_untold(struct spokei_instances *instances,
				    const struct spoke_url **ret_instance, uint64_t *ret_due_ns)
{
	uint64_t now_ns = instances->engine->begin_ns;

	*ret_due_ns = UINT64_MAX;
	for (struct spoke_list *at = instances->applications.next; at != &instances->applications;
	     at = at->next) {
		const struct application *application = application_at(at);

		for (size_t i = 0; i < application->instances.count; i++) {
			const struct spoke_url *instance = &application->instances.urls[i];
			struct revision *revision;
			char key[2 * NAME];

			print_key(application, instance, key);
			revision = find_revision(instances, key);
			if (revision == NULL || !revision->local || revision->known)
				continue;
			*ret_instance = instance;
			if (revision->due_ns <= now_ns)
				return revision;
			if (revision->due_ns < *ret_due_ns)
				*ret_due_ns = revision->due_ns;
		}
	}
	return NULL;
}

/* Returns the port at which an instance tells its metadata, if that is another one. */
static int port_of(const struct spokei_instances *instances, const struct spoke_url *instance)
{
	const char *params = spokei_urls_value(instance, SPOKEI_INSTANCE_PARAMS);
	char text[URL];
	char why[SPOKEI_INSTANCE_WHY];
	struct spoke_builder builder;
	struct spoke_value root;
	struct spoke_value value = { 0 };
	struct spoke_span digits;
	unsigned port = 0;

	if (*params == '\0' || strlen(params) >= sizeof(text))
		return instance->port;
	memcpy(text, params, strlen(params) + 1);
	if (spokei_instance_parse(instances->engine->env, text, strlen(text), &builder, &root,
				  why) == SPOKE_OK)
		(void)!spoke_value_get(root, "port", &value);
	if (spoke_value_str(value, &digits) == SPOKE_OK && digits.len < 6) {
		for (size_t i = 0; i < digits.len; i++)
			port = 10 * port + (unsigned)(((const char *)digits.data)[i] - '0');
	}
	spoke_builder_fini(&builder);
	return port > 0 && port <= UINT16_MAX ? (int)port : instance->port;
}

static int read_answer(struct spokei_instances *instances, struct revision *revision,
		       struct spoke_value value)
{
	struct spokei_buffer urls;
	struct spokei_url_list list;
	const char *at;
	size_t count = 0;
	size_t bad = 0;
	int error;

	spokei_buffer_init(&urls, instances->engine->env, SIZE_MAX);
	spokei_url_list_init(&list, instances->engine->env);
	error = spokei_instance_read_metadata(instances->engine->env, value, &urls, &count, &bad);
	at = (const char *)spokei_buffer_data(&urls);
	for (; count > 0 && !error; count--, at += strlen(at) + 1)
		error = spokei_url_list_add(&list, at, strlen(at));
	if (!error)
		error = take_services(instances, revision, &list);
	spokei_url_list_fini(&list);
	spokei_buffer_fini(&urls);
	return error;
}

/* The answer has come, or none comes. */
static void take_answer(struct spokei_instances *instances, const char *key,
			const struct spoke_result *result)
{
	struct revision *revision = find_revision(instances, key);
	int error = result->error;

	if (revision == NULL)
		return;
	if (error == SPOKE_OK)
		error = read_answer(instances, revision, result->value);
	if (error == SPOKE_OK)
		return;
	revision->due_ns = spokei_later(instances->engine->begin_ns, RETRY_NS);
	if (!revision->missed) {
		spokei_event(instances->engine, error,
			     "registry: an instance did not tell its metadata %s: %s; asking again "
			     "every %u s",
			     key, spoke_strerror(error), (unsigned)(RETRY_NS / (1000 * MS)));
	}
	revision->missed = true;
}

static void told(void *arg, const struct spoke_result *result)
{
	struct asking *asking = arg;
	struct spokei_instances *instances = asking->owner;

	spoke_consumer_free(asking->consumer);
	if (instances) {
		instances->asking = NULL;
		take_answer(instances, asking->key, result);
	}
	spokei_free(asking->engine->env, asking, 1, sizeof(*asking));
	if (instances)
		renew(instances);
}

static int call(struct asking *asking, const char *revision)
{
	static const struct spoke_method_options with = { .types = "Ljava/lang/String;",
							  .timeout_ns = TIMEOUT_NS };
	struct spoke_method *method;
	int error = spoke_consumer_method(asking->consumer, METHOD, &with, &method);
	unsigned char bytes[NAME + 8];
	struct spoke_builder builder;
	struct spoke_span args;

	if (error)
		return error;
	spoke_builder_init_fixed(&builder, bytes, sizeof(bytes), NULL);
	spoke_pack_text(&builder, revision);
	error = spoke_builder_finish(&builder, &args);
	return error ? error : spoke_call(method, args, NULL, told, asking, NULL);
}

/* Prints the URL of the service that tells metadata. Returns whether it fits. */
static bool print_url(const struct spokei_instances *instances, const char *key,
		      const struct spoke_url *instance, char text[URL])
{
	char application[NAME];
	const struct spoke_url_parameter parameters[] = { { "group", application },
							  { "version", "1.0.0" } };
	const struct spoke_url url = { .scheme = "dubbo",
				       .host = instance->host,
				       .port = port_of(instances, instance),
				       .path = SERVICE,
				       .parameters = parameters,
				       .parameter_count = 2 };

	(void)snprintf(application, sizeof(application), "%.*s", (int)strcspn(key, "/"), key);
	return spoke_url_print(&url, SPOKE_URL_WHOLE, text, URL) < URL;
}

/* Asks an instance, one at a time, on a connection that is closed after the answer. */
static int ask(struct spokei_instances *instances, const char *key,
	       const struct spoke_url *instance)
{
	const struct spoke_env *env = instances->engine->env;
	char text[URL];
	const struct spoke_consumer_options options = { .url = text };
	struct asking *asking = spokei_alloc(env, 1, sizeof(*asking));
	int error = SPOKE_ETOOLARGE;

	if (asking == NULL)
		return SPOKE_ENOMEM;
	asking->owner = instances;
	asking->engine = instances->engine;
	memcpy(asking->key, key, strlen(key) + 1);
	if (print_url(instances, key, instance, text))
		error = spoke_consumer_new(instances->engine, &options, &asking->consumer);
	if (!error)
		error = call(asking, strchr(asking->key, '/') + 1);
	if (error) {
		spoke_consumer_free(asking->consumer);
		spokei_free(env, asking, 1, sizeof(*asking));
	} else {
		instances->asking = asking;
	}
	return error;
}

static void ask_next(struct spokei_instances *instances)
{
	const struct spoke_url *instance;
	struct revision *revision;
	uint64_t due_ns;

	if (instances->asking)
		return;
	revision = find_untold(instances, &instance, &due_ns);
	if (revision && ask(instances, revision->key, instance)) {
		revision->due_ns = spokei_later(instances->engine->begin_ns, RETRY_NS);
		due_ns = revision->due_ns;
	} else if (revision) {
		return;
	}
	if (due_ns != UINT64_MAX)
		renew_later(instances, due_ns - instances->engine->begin_ns);
}

static int renew_or_fail(struct spokei_instances *instances)
{
	int error = use_mapping(instances);

	if (!error)
		error = use_revisions(instances);
	if (!error)
		error = pass_on(instances);
	if (!error)
		ask_next(instances);
	return error;
}

static void renew(struct spokei_instances *instances)
{
	if (renew_or_fail(instances) == SPOKE_ENOMEM)
		renew_later(instances, MEMORY_NS);
}

/* --- from the owner */

int spokei_instances_list(struct spokei_instances *instances, const struct spokei_buffer *texts,
			  size_t count)
{
	size_t len = spokei_buffer_len(texts);
	int error = SPOKE_OK;

	spokei_buffer_clear(&instances->texts);
	if (len > 0)
		error = spokei_buffer_append(&instances->texts, spokei_buffer_data(texts), len);
	instances->count = error ? 0 : count;
	instances->listed = true;
	return error ? error : renew_or_fail(instances);
}

/* Takes a list over, in place of the last one. */
static void take_list(struct spokei_url_list *last, struct spokei_url_list *list)
{
	const struct spoke_env *env = last->env;

	spokei_url_list_fini(last);
	*last = *list;
	spokei_url_list_init(list, env);
}

static void take_instances(struct spokei_instances *instances, const char *name,
			   struct spokei_url_list *list)
{
	struct application *application = find_application(instances, name);

	if (application)
		take_list(&application->instances, list);
}

bool spokei_instances_take(struct spokei_instances *instances, const char *service,
			   const char *category, struct spokei_url_list *list)
{
	int error = SPOKE_OK;

	if (strcmp(category, SPOKE_REGISTRY_MAPPING) == 0)
		take_list(&instances->mapping, list);
	else if (strcmp(category, SPOKE_REGISTRY_INSTANCES) == 0)
		take_instances(instances, service, list);
	else if (strcmp(category, SPOKE_REGISTRY_METADATA) == 0)
		error = take_metadata(instances, service, list);
	else
		return false;
	if (error)
		renew_later(instances, MEMORY_NS);
	else
		renew(instances);
	return true;
}

/* --- life */

int spokei_instances_new(const struct spokei_instances_options *options,
			 struct spokei_instances **ret_instances)
{
	const struct spoke_env *env = options->engine->env;
	struct spokei_instances *instances = spokei_alloc(env, 1, sizeof(*instances));
	int error;

	if (instances == NULL)
		return SPOKE_ENOMEM;
	instances->engine = options->engine;
	instances->keeper = options->keeper;
	instances->service = options->service;
	instances->mode = options->mode;
	instances->list = options->list;
	instances->arg = options->arg;
	spokei_list_init(&instances->applications);
	spokei_list_init(&instances->revisions);
	spokei_url_list_init(&instances->mapping, env);
	spokei_buffer_init(&instances->texts, env, SIZE_MAX);
	error = spokei_keeper_subscribe(instances->keeper, options->service,
					SPOKE_REGISTRY_MAPPING);
	if (error)
		spokei_instances_free(instances);
	else
		*ret_instances = instances;
	return error;
}

void spokei_instances_free(struct spokei_instances *instances)
{
	if (instances == NULL)
		return;
	(void)spoke_alarm_cancel(&instances->again);
	if (instances->asking) {
		instances->asking->owner = NULL;
		spoke_consumer_free(instances->asking->consumer);
	}
	while (!spokei_list_empty(&instances->revisions))
		free_revision(instances, revision_at(instances->revisions.next));
	while (!spokei_list_empty(&instances->applications))
		free_application(instances, application_at(instances->applications.next));
	spokei_url_list_fini(&instances->mapping);
	spokei_buffer_fini(&instances->texts);
	spokei_free(instances->engine->env, instances, 1, sizeof(*instances));
}
