/* SPDX-License-Identifier: Apache-2.0 */
/* Instances and metadata, compared with those that Dubbo 3.3.1 has written. */
#include "cluster/registry/instance.h"

#include "cluster/registry/urls.h"
#include "tests/support/test.h"
#include "transport/codec/codec.h"

#include <spoke/host.h>
#include <spoke/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 4096u
#define MADE_MS UINT64_C(1795915350378) /* registrationTimeUTC of the recorded instance */
#define SERVICES 2u

static const struct spoke_env *env;
static char why[SPOKEI_INSTANCE_WHY];

/* Finds the last recorded node of a path. */
static void find_node(const char *path, char data[LINE])
{
	FILE *file = fopen(SPOKE_GOLDEN "/dubbo-3.3.1-nodes.tsv", "re");
	char line[LINE];

	assert_non_null(file);
	*data = '\0';
	while (fgets(line, sizeof(line), file)) {
		char *version = strchr(line, '\t');
		char *text = version ? strchr(version + 1, '\t') : NULL;

		if (text == NULL)
			continue;
		*version = '\0';
		text[strcspn(text, "\n")] = '\0';
		if (strcmp(line, path) == 0)
			memcpy(data, text + 1, strlen(text + 1) + 1);
	}
	(void)fclose(file);
	assert_int_not_equal(*data, 0);
}

static const char *data_of(const struct spokei_buffer *buffer)
{
	return (const char *)spokei_buffer_data(buffer);
}

static void parse(const char *text, struct spoke_url *ret)
{
	assert_int_equal(spoke_url_parse(env, text, strlen(text), ret, NULL), 0);
}

static int read_instance(const char *json, struct spokei_buffer *url)
{
	char text[LINE];

	memcpy(text, json, strlen(json) + 1);
	return spokei_instance_read(env, text, strlen(text), url, why);
}

static void read_json(char *text, struct spoke_builder *builder, struct spoke_value *ret)
{
	assert_int_equal(spokei_instance_parse(env, text, strlen(text), builder, ret, why), 0);
}

static void set_up_env(void)
{
	env = spoke_host_env();
}

TEST(instances_of_java_are_read_and_written_alike)
{
	static const char *const nodes[] = { "/services/prov-all/10.79.0.1:25080",
					     "/services/prov-inst/10.79.0.1:25081",
					     "/services/prov-tri/10.79.0.1:25082" };
	static const char *const names[] = { "prov-all", "prov-inst", "prov-tri" };

	set_up_env();
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		struct spokei_buffer url;
		struct spokei_buffer again;
		struct spoke_url instance;
		char data[LINE];

		find_node(nodes[i], data);
		spokei_buffer_init(&url, env, SIZE_MAX);
		spokei_buffer_init(&again, env, SIZE_MAX);
		assert_int_equal(read_instance(data, &url), 0);
		parse(data_of(&url), &instance);
		assert_int_equal(spokei_instance_print(env, names[i], &instance,
						       strtoull(strstr(data, "TimeUTC\":") + 9,
								NULL, 10),
						       &again),
				 0);
		assert_string_equal(data_of(&again), data);
		spoke_url_fini(&instance);
		spokei_buffer_fini(&url);
		spokei_buffer_fini(&again);
	}
}

/* Makes the URLs of the services in recorded metadata, as a provider would publish them. */
static void make_services(const char *json, struct spoke_url services[SERVICES])
{
	char text[LINE];
	struct spoke_builder builder;
	struct spoke_value metadata;
	struct spokei_buffer urls;
	struct spokei_buffer joined;
	struct spoke_url instance;
	const char *at;
	size_t count = 0;
	size_t bad = 0;

	memcpy(text, json, strlen(json) + 1);
	read_json(text, &builder, &metadata);
	spokei_buffer_init(&urls, env, SIZE_MAX);
	spokei_buffer_init(&joined, env, SIZE_MAX);
	assert_int_equal(spokei_instance_read_metadata(env, metadata, &urls, &count, &bad), 0);
	assert_int_equal(count, SERVICES);
	assert_int_equal(bad, 0);
	parse("dubbo://10.79.0.1:25081?timestamp=1795915350136", &instance);
	at = data_of(&urls);
	for (size_t i = 0; i < count; i++, at += strlen(at) + 1) {
		struct spoke_url service;

		parse(at, &service);
		spokei_buffer_clear(&joined);
		assert_int_equal(spokei_instance_join(&instance, &service, &joined), 0);
		parse(data_of(&joined), &services[i]);
		spoke_url_fini(&service);
	}
	spoke_url_fini(&instance);
	spokei_buffer_fini(&urls);
	spokei_buffer_fini(&joined);
	spoke_builder_fini(&builder);
}

/* Compares values without the order of pairs. */
static void assert_same(struct spoke_value one, struct spoke_value other)
{
	struct spoke_cursor cursor;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_value found;

	assert_int_equal(one.len, other.len);
	if (spoke_cursor_map(one, &cursor)) { /* no map */
		assert_true(spoke_value_equal(one, other));
		return;
	}
	while (spoke_cursor_next_pair(&cursor, &key, &value)) {
		struct spoke_span text;
		char name[64] = { 0 };

		assert_int_equal(spoke_value_str(key, &text), 0);
		assert_true(text.len < sizeof(name));
		memcpy(name, text.data, text.len);
		assert_int_equal(spoke_value_get(other, name, &found), 0);
		assert_same(value, found);
	}
}

TEST(instance_and_metadata_are_those_of_java)
{
	struct spoke_url services[SERVICES];
	const struct spoke_url *all[SERVICES] = { &services[0], &services[1] };
	struct spokei_buffer url;
	struct spokei_buffer metadata;
	struct spokei_buffer node;
	struct spoke_builder builders[2];
	struct spoke_value values[2];
	struct spoke_url instance;
	char golden[LINE];
	char made[LINE];

	set_up_env();
	find_node("/dubbo/metadata/prov-inst/948c00502369c3f5b99a1dc08017adf2", golden);
	make_services(golden, services);
	spokei_buffer_init(&url, env, SIZE_MAX);
	spokei_buffer_init(&metadata, env, SIZE_MAX);
	spokei_buffer_init(&node, env, SIZE_MAX);
	assert_int_equal(spokei_instance_describe(env, all, SERVICES, &url, &metadata), 0);
	/* The same pairs; Java's order of parameters is that of its hash map. */
	memcpy(made, data_of(&metadata), spokei_buffer_len(&metadata));
	read_json(golden, &builders[0], &values[0]);
	read_json(made, &builders[1], &values[1]);
	assert_same(values[0], values[1]);
	parse(data_of(&url), &instance);
	find_node("/services/prov-inst/10.79.0.1:25081", golden);
	assert_int_equal(spokei_instance_print(env, "prov-inst", &instance, MADE_MS, &node), 0);
	assert_string_equal(data_of(&node), golden);
	for (size_t i = 0; i < SERVICES; i++) {
		spoke_url_fini(&services[i]);
		spoke_builder_fini(&builders[i]);
	}
	spoke_url_fini(&instance);
	spokei_buffer_fini(&url);
	spokei_buffer_fini(&metadata);
	spokei_buffer_fini(&node);
}

static void describe(const char *one, const char *other, struct spokei_buffer *url,
		     struct spokei_buffer *metadata)
{
	struct spoke_url services[SERVICES];
	const struct spoke_url *all[SERVICES] = { &services[0], &services[1] };

	parse(one, &services[0]);
	parse(other, &services[1]);
	spokei_buffer_clear(url);
	spokei_buffer_clear(metadata);
	assert_int_equal(spokei_instance_describe(env, all, SERVICES, url, metadata), 0);
	spoke_url_fini(&services[0]);
	spoke_url_fini(&services[1]);
}

/* Java keeps metadata by their revision, and registries keep them for ever. */
TEST(revision_depends_on_services_only)
{
	struct spokei_buffer first;
	struct spokei_buffer second;
	struct spokei_buffer metadata;

	set_up_env();
	spokei_buffer_init(&first, env, SIZE_MAX);
	spokei_buffer_init(&second, env, SIZE_MAX);
	spokei_buffer_init(&metadata, env, SIZE_MAX);
	describe("dubbo://h:1/a.A?application=x&timestamp=1",
		 "dubbo://h:1/a.B?application=x&timestamp=1", &first, &metadata);
	describe("dubbo://h:1/a.B?application=x&spoke.host=9&spoke.local=unix:/s&timestamp=1",
		 "dubbo://h:1/a.A?admin=h:8&application=x&timestamp=1", &second, &metadata);
	assert_null(strstr(data_of(&metadata), "timestamp"));
	assert_null(strstr(data_of(&metadata), "spoke."));
	assert_int_equal(strncmp(strstr(data_of(&first), SPOKEI_INSTANCE_REVISION),
				 strstr(data_of(&second), SPOKEI_INSTANCE_REVISION),
				 strlen(SPOKEI_INSTANCE_REVISION "=") + 32),
			 0);
	describe("dubbo://h:1/a.A?application=x", "dubbo://h:1/a.C?application=x", &second,
		 &metadata);
	assert_int_not_equal(strncmp(strstr(data_of(&first), SPOKEI_INSTANCE_REVISION),
				     strstr(data_of(&second), SPOKEI_INSTANCE_REVISION),
				     strlen(SPOKEI_INSTANCE_REVISION "=") + 32),
			     0);
	spokei_buffer_fini(&first);
	spokei_buffer_fini(&second);
	spokei_buffer_fini(&metadata);
}

TEST(unusable_instances_are_refused_with_a_reason)
{
	static const struct {
		const char *json;
		const char *why;
	} cases[] = {
		{ "", "byte 0" },
		{ "{\"address\":\"h\"", "" },
		{ "[]", "no metadata" },
		{ "{\"address\":\"h\",\"port\":1,\"payload\":{}}", "no metadata" },
		{ "{\"address\":\"h\",\"port\":1,\"payload\":{\"metadata\":{}}}", "no dubbo." },
		{ "{\"address\":\"h\",\"port\":1,\"payload\":{\"metadata\":{"
		  "\"dubbo.metadata.revision\":\"0\"}}}",
		  "no dubbo." },
		{ "{\"address\":\"h\",\"port\":1,\"payload\":{\"metadata\":{"
		  "\"dubbo.metadata.revision\":\"../x\"}}}",
		  "is no name" },
		{ "{\"address\":\"h\",\"port\":70000,\"payload\":{\"metadata\":{"
		  "\"dubbo.metadata.revision\":\"a\"}}}",
		  "no port" },
		{ "{\"port\":1,\"payload\":{\"metadata\":{\"dubbo.metadata.revision\":\"a\"}}}",
		  "no address" },
		{ "{\"address\":\"h\",\"port\":1,\"payload\":{\"metadata\":{"
		  "\"dubbo.metadata.revision\":\"a\",\"dubbo.metadata.storage-type\":\"odd\"}}}",
		  "unknown" },
	};
	struct spokei_buffer url;

	set_up_env();
	spokei_buffer_init(&url, env, SIZE_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_instance(cases[i].json, &url), SPOKE_ESYNTAX);
		assert_non_null(strstr(why, cases[i].why));
		assert_int_equal(spokei_buffer_len(&url), 0);
	}
	spokei_buffer_fini(&url);
}

/* What stops Java's consumers does not stop spoke's. */
TEST(services_that_cannot_be_used_are_skipped)
{
	char json[] = "{\"services\":{"
		      "\"1\":{\"name\":\"a\",\"path\":\"a\",\"params\":{}},"
		      "\"2\":{\"name\":\"a\",\"protocol\":\"dubbo\",\"params\":{}},"
		      "\"3\":{\"name\":\"a\",\"path\":\"a\",\"protocol\":\"dubbo\"},"
		      "\"4\":5,"
		      "\"5\":{\"name\":\"a\",\"path\":\"p\",\"protocol\":\"dubbo\",\"group\":\"g\","
		      "\"params\":{\"weight\":\"7\",\"odd\":1}}}}";
	struct spoke_builder builder;
	struct spoke_value metadata;
	struct spokei_buffer urls;
	size_t count = 0;
	size_t bad = 0;

	set_up_env();
	read_json(json, &builder, &metadata);
	spokei_buffer_init(&urls, env, SIZE_MAX);
	assert_int_equal(spokei_instance_read_metadata(env, metadata, &urls, &count, &bad), 0);
	assert_int_equal(count, 1);
	assert_int_equal(bad, 4);
	assert_string_equal(data_of(&urls), "dubbo://0.0.0.0/p?weight=7&interface=a&group=g");
	spokei_buffer_fini(&urls);
	spoke_builder_fini(&builder);
}

/* The answer of a provider whose metadata are not in the registry, which Java has taken. */
static const char told[] = "914330266f72672e6170616368652e647562626f2e6d657461646174612e4d65"
			   "746164617461496e666f93087365727669636573087265766973696f6e036170"
			   "7060480e68392e416c7068613a647562626f4330326f72672e6170616368652e"
			   "647562626f2e6d657461646174612e4d65746164617461496e666f2453657276"
			   "696365496e666f9706706172616d73047061746804706f72740870726f746f63"
			   "6f6c0776657273696f6e0567726f7570046e616d65614804736964650870726f"
			   "76696465725a0868392e416c706861d4620d05647562626f4e4e0868392e416c"
			   "7068615a046c6f63310673706f6b656c";

TEST(metadata_told_in_hessian2_are_read)
{
	const struct spokei_codec *codec = &spokei_codec_hessian2;
	const struct spoke_value_limits limits = { 0 };
	unsigned char body[sizeof(told) / 2];
	struct spokei_codec_values values = { 0 };
	struct spokei_buffer scratch;
	struct spokei_buffer urls;
	struct spoke_cursor cursor;
	struct spoke_value marker;
	struct spoke_value metadata;
	size_t count = 0;
	size_t bad = 0;

	set_up_env();
	for (size_t i = 0; i < sizeof(body); i++) {
		const char digits[] = { told[2 * i], told[2 * i + 1], '\0' };

		body[i] = (unsigned char)strtoul(digits, NULL, 16);
	}
	spokei_buffer_init(&scratch, env, 4096);
	spokei_buffer_init(&urls, env, SIZE_MAX);
	assert_int_equal(codec->to_values(&limits, SPOKEI_CODEC_REPLY,
					  (struct spoke_span){ body, sizeof(body) }, &scratch,
					  &values),
			 0);
	cursor = spoke_cursor_bytes(values.values);
	assert_true(spoke_cursor_next(&cursor, &marker));
	assert_true(spoke_cursor_next(&cursor, &metadata));
	assert_int_equal(spokei_instance_read_metadata(env, metadata, &urls, &count, &bad), 0);
	assert_int_equal(count, 1);
	assert_string_equal(data_of(&urls),
			    "dubbo://0.0.0.0:25101/h9.Alpha?side=provider&interface=h9.Alpha");
	spokei_buffer_fini(&scratch);
	spokei_buffer_fini(&urls);
}

TEST(names_of_applications_are_names_of_nodes)
{
	assert_true(spokei_instance_is_name("order-service_2.x", 17));
	assert_false(spokei_instance_is_name("", 0));
	assert_false(spokei_instance_is_name("..", 2));
	assert_false(spokei_instance_is_name("a/b", 3));
	assert_false(spokei_instance_is_name("a\nb", 3));
}
