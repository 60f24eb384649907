/* SPDX-License-Identifier: Apache-2.0 */
/* Describes instances and their metadata as Dubbo 3 does. */
#include "cluster/registry/instance.h"

#include "cluster/registry/urls.h"
#include "core/base/span.h"
#include "core/json/json.h"
#include "core/text/md5.h"
#include "core/value/builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY 1024u     /* bytes of the key of a service, with the NUL */
#define NUMBER 24u    /* bytes of a number in digits, with the NUL */
#define REVISION 33u  /* bytes of an MD5 in digits, with the NUL */
#define ENDPOINTS 96u /* bytes of the list of endpoints, with the NUL */
#define NAME_MAX_LEN 255u
#define APPLICATION "application"

/* Parameters of a provider's process, not of the service: they must not change the revision,
 * because registries keep the metadata of each revision. In order. */
static const char *const own_keys[] = { "admin", "spoke.host", "spoke.local", "timestamp" };
#define OWN_COUNT (sizeof(own_keys) / sizeof(own_keys[0]))

bool spokei_instance_is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '_' && !(c == '.' && i > 0))
			return false;
	}
	return len > 0 && len <= NAME_MAX_LEN;
}

bool spokei_instance_next_name(struct spoke_span *list, struct spoke_span *ret_name)
{
	const char *at = list->data;
	const char *comma = list->len > 0 ? memchr(at, ',', list->len) : NULL;
	size_t len = comma ? (size_t)(comma - at) : list->len;

	if (list->len == 0)
		return false;
	*ret_name = spokei_span_trim(spokei_span(at, len));
	*list = spokei_span_after(*list, len + (comma != NULL));
	return true;
}

bool spokei_instance_same(const struct spoke_url *one, const struct spoke_url *other)
{
	return one->host && other->host && one->port == other->port &&
	       strcmp(one->host, other->host) == 0 &&
	       strcmp(spokei_urls_value(one, APPLICATION), spokei_urls_value(other, APPLICATION)) ==
		       0;
}

/* --- services */

static bool is_own(const char *key)
{
	for (size_t i = 0; i < OWN_COUNT; i++)
		if (strcmp(key, own_keys[i]) == 0)
			return true;
	return false;
}

/* Prints the key of a service, "GROUP/INTERFACE:VERSION:PROTOCOL". Returns whether it fits. */
static bool print_key(const struct spoke_url *service, char key[KEY])
{
	const char *group = spokei_urls_value(service, "group");
	const char *version = spokei_urls_value(service, "version");
	int len = snprintf(key, KEY, "%s%s%s%s%s:%s", group, *group ? "/" : "", service->path,
			   *version ? ":" : "", version, service->scheme);

	return len > 0 && (size_t)len < KEY;
}

static int compare(const void *one, const void *other)
{
	char keys[2][KEY];

	(void)print_key(*(const struct spoke_url *const *)one, keys[0]);
	(void)print_key(*(const struct spoke_url *const *)other, keys[1]);
	return strcmp(keys[0], keys[1]);
}

/* --- revision */

static int put(struct spokei_buffer *out, const char *text)
{
	return spokei_buffer_append(out, text, strlen(text));
}

/* Appends the text of which Java takes the MD5: key, port, path and "{name=value, name=value}". */
static int put_service(struct spokei_buffer *out, const struct spoke_url *service)
{
	char key[KEY];
	char port[NUMBER];
	const char *before = "{";
	int error = print_key(service, key) ? put(out, key) : SPOKE_ETOOLARGE;

	(void)snprintf(port, sizeof(port), "%d", service->port);
	if (!error)
		error = put(out, port);
	if (!error)
		error = put(out, service->path);
	for (unsigned i = 0; i < service->parameter_count && !error; i++) {
		const struct spoke_url_parameter *parameter = &service->parameters[i];

		if (is_own(parameter->key))
			continue;
		error = put(out, before);
		before = ", ";
		if (!error)
			error = put(out, parameter->key);
		if (!error)
			error = put(out, "=");
		if (!error)
			error = put(out, parameter->value);
	}
	if (!error && *before == '{')
		error = put(out, before);
	return error ? error : put(out, "}");
}

static void print_md5(const void *bytes, size_t len, char text[REVISION])
{
	struct spokei_md5 md5 = spokei_md5(bytes, len);

	for (unsigned i = 0; i < 16; i++)
		(void)snprintf(text + (size_t)2 * i, 3, "%02x",
			       md5.words[i / 4] >> 8 * (i % 4) & 0xff);
}

/* Equal content gets equal revisions, because consumers keep the metadata of a revision. */
static int find_revision(const struct spoke_env *env, const char *application,
			 const struct spoke_url *const *services, size_t count,
			 char revision[REVISION])
{
	struct spokei_buffer text;
	int error;

	spokei_buffer_init(&text, env, SIZE_MAX);
	error = put(&text, application);
	for (size_t i = 0; i < count && !error; i++)
		error = put_service(&text, services[i]);
	if (!error)
		print_md5(spokei_buffer_data(&text), spokei_buffer_len(&text), revision);
	spokei_buffer_fini(&text);
	return error;
}

/* --- as JSON */

static void pack_pair(struct spoke_builder *builder, const char *key, const char *value)
{
	spoke_pack_text(builder, key);
	spoke_pack_text(builder, value);
}

/* Appends the built value, and a NUL. */
static int append(struct spoke_builder *builder, struct spokei_buffer *out)
{
	struct spoke_value value;
	int error = spoke_builder_finish_value(builder, &value);

	if (!error)
		error = spokei_json_append(out, value);
	return error ? error : spokei_buffer_append(out, "", 1);
}

static void pack_service(struct spoke_builder *builder, const struct spoke_url *service)
{
	const char *group = spokei_urls_value(service, "group");
	const char *version = spokei_urls_value(service, "version");
	size_t count = 0;

	for (unsigned i = 0; i < service->parameter_count; i++)
		count += !is_own(service->parameters[i].key);
	spoke_pack_map(builder, 5u + (*group != '\0') + (*version != '\0'));
	if (*group)
		pack_pair(builder, "group", group);
	pack_pair(builder, "name", service->path);
	spoke_pack_text(builder, "params");
	spoke_pack_map(builder, count);
	for (unsigned i = 0; i < service->parameter_count; i++) {
		const struct spoke_url_parameter *parameter = &service->parameters[i];

		if (!is_own(parameter->key))
			pack_pair(builder, parameter->key, parameter->value);
	}
	pack_pair(builder, "path", service->path);
	spoke_pack_text(builder, "port");
	spoke_pack_i64(builder, service->port);
	pack_pair(builder, "protocol", service->scheme);
	if (*version)
		pack_pair(builder, "version", version);
}

static int put_metadata(const struct spoke_env *env, const char *revision,
			const struct spoke_url *const *services, size_t count,
			struct spokei_buffer *out)
{
	struct spoke_builder builder;
	char key[KEY];
	int error;

	spoke_builder_init(&builder, env, NULL);
	spoke_pack_map(&builder, 3);
	pack_pair(&builder, "app", spokei_urls_value(services[0], APPLICATION));
	pack_pair(&builder, "revision", revision);
	spoke_pack_text(&builder, "services");
	spoke_pack_map(&builder, count);
	for (size_t i = 0; i < count; i++) {
		(void)print_key(services[i], key);
		spoke_pack_text(&builder, key);
		pack_service(&builder, services[i]);
	}
	error = append(&builder, out);
	spoke_builder_fini(&builder);
	return error;
}

/* --- instances */

static int put_instance(const char *revision, const struct spoke_url *service,
			struct spokei_buffer *out)
{
	char endpoints[ENDPOINTS];
	const struct spoke_url_parameter all[] = {
		{ own_keys[0], spokei_urls_value(service, own_keys[0]) },
		{ SPOKEI_INSTANCE_ENDPOINTS, endpoints },
		{ SPOKEI_INSTANCE_REVISION, revision },
		{ SPOKEI_INSTANCE_STORAGE, "remote" },
		{ SPOKEI_INSTANCE_VERSION, "1.0.0" },
		{ own_keys[1], spokei_urls_value(service, own_keys[1]) },
		{ own_keys[2], spokei_urls_value(service, own_keys[2]) },
		{ own_keys[3], spokei_urls_value(service, own_keys[3]) },
	};
	struct spoke_url_parameter given[sizeof(all) / sizeof(all[0])];
	struct spoke_url url = {
		.scheme = service->scheme,
		.host = service->host,
		.port = service->port,
		.path = "",
		.parameters = given,
	};

	(void)snprintf(endpoints, sizeof(endpoints), "[{\"port\":%d,\"protocol\":\"%s\"}]",
		       service->port, service->scheme);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (*all[i].value)
			given[url.parameter_count++] = all[i];
	return spokei_urls_put(out, &url);
}

int spokei_instance_describe(const struct spoke_env *env, const struct spoke_url **services,
			     size_t count, struct spokei_buffer *url,
			     struct spokei_buffer *metadata)
{
	char revision[REVISION];
	int error;

	qsort(services, count, sizeof(const struct spoke_url *), compare);
	error = find_revision(env, spokei_urls_value(services[0], APPLICATION), services, count,
			      revision);
	if (!error)
		error = put_instance(revision, services[0], url);
	return error ? error : put_metadata(env, revision, services, count, metadata);
}

int spokei_instance_print(const struct spoke_env *env, const char *application,
			  const struct spoke_url *instance, uint64_t now_ms,
			  struct spokei_buffer *out)
{
	char id[SPOKE_URL_HOST_MAX + NUMBER];
	struct spoke_builder builder;
	int error;

	(void)snprintf(id, sizeof(id), "%s:%d", instance->host, instance->port);
	spoke_builder_init(&builder, env, NULL);
	spoke_pack_map(&builder, 9);
	pack_pair(&builder, "name", application);
	pack_pair(&builder, "id", id);
	pack_pair(&builder, "address", instance->host);
	spoke_pack_text(&builder, "port");
	spoke_pack_i64(&builder, instance->port);
	spoke_pack_text(&builder, "sslPort");
	spoke_pack_nil(&builder);
	spoke_pack_text(&builder, "payload");
	spoke_pack_map(&builder, 4);
	pack_pair(&builder, "@class", "org.apache.dubbo.registry.zookeeper.ZookeeperInstance");
	pack_pair(&builder, "id", id);
	pack_pair(&builder, "name", application);
	spoke_pack_text(&builder, "metadata");
	spoke_pack_map(&builder, instance->parameter_count);
	for (unsigned i = 0; i < instance->parameter_count; i++)
		pack_pair(&builder, instance->parameters[i].key, instance->parameters[i].value);
	spoke_pack_text(&builder, "registrationTimeUTC");
	spoke_pack_u64(&builder, now_ms);
	pack_pair(&builder, "serviceType", "DYNAMIC");
	spoke_pack_text(&builder, "uriSpec");
	spoke_pack_nil(&builder);
	error = append(&builder, out);
	spoke_builder_fini(&builder);
	return error;
}

/* --- reading */

/* A member that is missing takes a NUL, too. */
#define TEXTS_EXTRA 16u

int spokei_instance_parse(const struct spoke_env *env, char *text, size_t len,
			  struct spoke_builder *builder, struct spoke_value *ret_root,
			  char why[SPOKEI_INSTANCE_WHY])
{
	struct spoke_json_error error = { 0, "not one JSON value" };
	size_t count = 0;
	int status;

	spoke_builder_init(builder, env, NULL);
	status = spoke_json_read(text, len, builder, &count, &error);
	if (status == SPOKE_OK)
		status = spoke_builder_finish_value(builder, ret_root);
	if (status && status != SPOKE_ENOMEM) {
		(void)snprintf(why, SPOKEI_INSTANCE_WHY, "byte %zu: %s", error.at, error.what);
		return SPOKE_ESYNTAX;
	}
	return status;
}

/* Memory for texts with their NUL. */
struct texts {
	char *at;
	bool bad; /* one had a NUL inside */
};

/* Copies the text of a value, which has at least as many bytes; "": it has none. */
static const char *copy(struct texts *texts, struct spoke_value value)
{
	struct spoke_span span = { "", 0 };
	const char *text = texts->at;

	(void)!spoke_value_str(value, &span);
	if (span.len > 0 && memchr(span.data, '\0', span.len))
		texts->bad = true;
	memcpy(texts->at, span.data, span.len);
	texts->at += span.len;
	*texts->at++ = '\0';
	return text;
}

static const char *copy_member(struct texts *texts, struct spoke_value map, const char *key)
{
	struct spoke_value value = { 0 };

	(void)!spoke_value_get(map, key, &value);
	return copy(texts, value);
}

static int port_of(struct spoke_value map)
{
	struct spoke_value value = { 0 };
	int32_t port;

	if (spoke_value_get(map, "port", &value) || spoke_value_i32(value, &port) || port <= 0 ||
	    port > UINT16_MAX)
		return -1;
	return (int)port;
}

static int compare_keys(const void *one, const void *other)
{
	const struct spoke_url_parameter *left = one;
	const struct spoke_url_parameter *right = other;

	return strcmp(left->key, right->key);
}

/* Copies the texts of a map as parameters, sorted. Returns how many, or -1. */
static int copy_parameters(struct texts *texts, struct spoke_value map,
			   struct spoke_url_parameter *ret)
{
	struct spoke_cursor cursor;
	struct spoke_value key;
	struct spoke_value value;
	int count = 0;

	if (spoke_cursor_map(map, &cursor))
		return -1;
	while (spoke_cursor_next_pair(&cursor, &key, &value)) {
		const char *name = copy(texts, key);

		if (spoke_value_type(value) != SPOKE_VALUE_STR || *name == '\0')
			continue;
		if (count == (int)SPOKE_URL_PARAMETERS_MAX)
			return -1;
		ret[count++] = (struct spoke_url_parameter){ name, copy(texts, value) };
	}
	qsort(ret, (size_t)count, sizeof(*ret), compare_keys);
	for (int i = 1; i < count; i++)
		if (strcmp(ret[i - 1].key, ret[i].key) == 0)
			return -1;
	return count;
}

/* Adds a text of the service itself, unless its parameters have it. */
static void add_own(struct spoke_url_parameter *parameters, unsigned *count, const char *key,
		    const char *value)
{
	for (unsigned i = 0; i < *count; i++)
		if (strcmp(parameters[i].key, key) == 0)
			return;
	if (*value && *count < SPOKE_URL_PARAMETERS_MAX)
		parameters[(*count)++] = (struct spoke_url_parameter){ key, value };
}

/* Appends the URL of a service. `room` is as large as its value. Returns 0, an error of the
 * buffer, or ESYNTAX. */
static int put_read(struct spoke_value service, char *room, struct spokei_buffer *urls)
{
	struct spoke_url_parameter parameters[SPOKE_URL_PARAMETERS_MAX];
	struct texts texts = { .at = room };
	const char *name = copy_member(&texts, service, "name");
	struct spoke_value params = { 0 };
	struct spoke_url url = {
		.scheme = copy_member(&texts, service, "protocol"),
		.host = "0.0.0.0",
		.port = port_of(service),
		.path = copy_member(&texts, service, "path"),
		.parameters = parameters,
	};
	int count = spoke_value_get(service, "params", &params)
			    ? -1
			    : copy_parameters(&texts, params, parameters);

	if (count < 0 || *name == '\0' || *url.path == '\0' || *url.scheme == '\0')
		return SPOKE_ESYNTAX;
	url.parameter_count = (unsigned)count;
	add_own(parameters, &url.parameter_count, "interface", name);
	add_own(parameters, &url.parameter_count, "group", copy_member(&texts, service, "group"));
	add_own(parameters, &url.parameter_count, "version",
		copy_member(&texts, service, "version"));
	return texts.bad ? SPOKE_ESYNTAX : spokei_urls_put(urls, &url);
}

int spokei_instance_read_metadata(const struct spoke_env *env, struct spoke_value metadata,
				  struct spokei_buffer *urls, size_t *ret_count, size_t *ret_bad)
{
	const size_t size = metadata.len + TEXTS_EXTRA;
	char *room = spokei_alloc(env, 1, size);
	struct spoke_value services = { 0 };
	struct spoke_cursor cursor;
	struct spoke_value key;
	struct spoke_value service;
	int error = SPOKE_OK;

	if (room == NULL)
		return SPOKE_ENOMEM;
	if (spoke_value_get(metadata, "services", &services) ||
	    spoke_cursor_map(services, &cursor)) {
		spokei_free(env, room, 1, size);
		return SPOKE_ESYNTAX;
	}
	while (!error && spoke_cursor_next_pair(&cursor, &key, &service)) {
		error = put_read(service, room, urls);
		*ret_count += error == SPOKE_OK;
		*ret_bad += error == SPOKE_ESYNTAX;
		if (error == SPOKE_ESYNTAX)
			error = SPOKE_OK;
	}
	spokei_free(env, room, 1, size);
	return error;
}

int spokei_instance_join(const struct spoke_url *instance, const struct spoke_url *service,
			 struct spokei_buffer *urls)
{
	struct spoke_url_parameter parameters[SPOKE_URL_PARAMETERS_MAX];
	struct spoke_url url = *service;

	memcpy(parameters, service->parameters, service->parameter_count * sizeof(*parameters));
	for (unsigned i = 0; i < instance->parameter_count; i++)
		add_own(parameters, &url.parameter_count, instance->parameters[i].key,
			instance->parameters[i].value);
	url.host = instance->host;
	url.port = service->port > 0 ? service->port : instance->port;
	url.parameters = parameters;
	return spokei_urls_put(urls, &url);
}

/* Returns the member of a member, or { 0 }. */
static struct spoke_value inner(struct spoke_value map, const char *key, const char *inner_key)
{
	struct spoke_value outer = { 0 };
	struct spoke_value value = { 0 };

	if (spoke_value_get(map, key, &outer) == SPOKE_OK)
		(void)!spoke_value_get(outer, inner_key, &value);
	return value;
}

static int refuse(char why[SPOKEI_INSTANCE_WHY], const char *sentence)
{
	(void)snprintf(why, SPOKEI_INSTANCE_WHY, "%s", sentence);
	return SPOKE_ESYNTAX;
}

/* Returns the fault of the URL of an instance, or NULL. */
static const char *find_wrong(const struct spoke_url *url)
{
	const char *revision = spokei_urls_value(url, SPOKEI_INSTANCE_REVISION);
	const char *storage = spokei_urls_value(url, SPOKEI_INSTANCE_STORAGE);

	if (*url->host == '\0' || url->port < 0)
		return "no address or no port";
	if (*revision == '\0' || strcmp(revision, "0") == 0)
		return "no " SPOKEI_INSTANCE_REVISION;
	if (!spokei_instance_is_name(revision, strlen(revision)))
		return SPOKEI_INSTANCE_REVISION " is no name";
	if (*storage && strcmp(storage, "local") != 0 && strcmp(storage, "remote") != 0)
		return "unknown " SPOKEI_INSTANCE_STORAGE;
	return NULL;
}

static int put_read_instance(struct spoke_value root, char *room, struct spokei_buffer *out,
			     char why[SPOKEI_INSTANCE_WHY])
{
	struct spoke_url_parameter parameters[SPOKE_URL_PARAMETERS_MAX];
	struct texts texts = { .at = room };
	struct spoke_url url = {
		.scheme = "dubbo",
		.host = copy_member(&texts, root, "address"),
		.port = port_of(root),
		.path = "",
		.parameters = parameters,
	};
	int count = copy_parameters(&texts, inner(root, "payload", "metadata"), parameters);
	const char *wrong;

	if (count < 0 || texts.bad)
		return refuse(why, "payload has no metadata, or unusable metadata");
	url.parameter_count = (unsigned)count;
	wrong = find_wrong(&url);
	return wrong ? refuse(why, wrong) : spokei_urls_put(out, &url);
}

int spokei_instance_read(const struct spoke_env *env, char *text, size_t len,
			 struct spokei_buffer *url, char why[SPOKEI_INSTANCE_WHY])
{
	struct spoke_value root;
	struct spoke_builder builder;
	int error = spokei_instance_parse(env, text, len, &builder, &root, why);
	char *room = error ? NULL : spokei_alloc(env, 1, root.len + TEXTS_EXTRA);

	if (!error)
		error = room ? put_read_instance(root, room, url, why) : SPOKE_ENOMEM;
	if (room)
		spokei_free(env, room, 1, root.len + TEXTS_EXTRA);
	spoke_builder_fini(&builder);
	return error;
}

/* Returns whether a list of texts has a text. */
static bool has_text(const struct spokei_buffer *texts, struct spoke_span text)
{
	const char *at = (const char *)spokei_buffer_data(texts);
	const char *end = at + spokei_buffer_len(texts);

	for (; at < end; at += strlen(at) + 1)
		if (spokei_span_is(text, at))
			return true;
	return false;
}

static int list_services(struct spoke_value root, struct spokei_buffer *names)
{
	struct spoke_value services = { 0 };
	struct spoke_cursor cursor;
	struct spoke_value key;
	struct spoke_value service;
	int error = spoke_value_get(root, "services", &services);

	if (!error)
		error = spoke_cursor_map(services, &cursor);
	while (!error && spoke_cursor_next_pair(&cursor, &key, &service)) {
		struct spoke_value value = { 0 };
		struct spoke_span name;

		if (spoke_value_get(service, "name", &value) || spoke_value_str(value, &name) ||
		    has_text(names, name))
			continue;
		error = spokei_buffer_append(names, name.data, name.len);
		if (!error)
			error = spokei_buffer_append(names, "", 1);
	}
	return error;
}

int spokei_instance_list(const struct spoke_env *env, const char *metadata,
			 struct spokei_buffer *names)
{
	size_t len = strlen(metadata);
	char *text = spokei_alloc(env, 1, len + 1);
	char why[SPOKEI_INSTANCE_WHY];
	struct spoke_builder builder;
	struct spoke_value root;
	int error;

	if (text == NULL)
		return SPOKE_ENOMEM;
	memcpy(text, metadata, len + 1);
	error = spokei_instance_parse(env, text, len, &builder, &root, why);
	if (!error)
		error = list_services(root, names);
	spoke_builder_fini(&builder);
	spokei_free(env, text, 1, len + 1);
	return error;
}
