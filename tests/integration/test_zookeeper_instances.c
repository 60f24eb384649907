/* SPDX-License-Identifier: Apache-2.0 */
/* Providers that are published as instances of applications, in a real ZooKeeper. */
#define _GNU_SOURCE
#include "cluster/registry/instance.h"
#include "tests/integration/zoorig.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

#define APPLICATION "shop.orders"
#define INSTANCES "/services/" APPLICATION
#define MAPPING "/dubbo/mapping/" SERVICE
#define OTHER "demo.Other"
#define TEXT 4096u

static struct spoke_config *config;
static struct spoke_provider *provider;

static void serve(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void add(const char *name)
{
	const struct spoke_service_options service = { .name = name };
	const struct spoke_handler handler = { .method = "echo", .handle = serve };

	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
}

static void provide(const char *lines)
{
	char text[512];
	struct spoke_provider_options options = { .registry_retry_ns = 300 * MS };

	(void)snprintf(text, sizeof(text),
		       "[registry]\nurl = zookeeper://127.0.0.1:%u\n[provider]\n"
		       "%s%s",
		       (unsigned)zooserver_port(),
		       strstr(lines, "application") ? "" : "application = " APPLICATION "\n",
		       lines);
	assert_int_equal(spoke_config_parse(spoke_host_env(), "test",
					    (struct spoke_span){ text, strlen(text) }, NULL, NULL,
					    &config),
			 0);
	options.config = config;
	assert_int_equal(spoke_provider_new(rig.engine, &options, &provider), 0);
	add(SERVICE);
	assert_int_equal(spoke_provider_listen(provider, "dubbo://127.0.0.1:0"), 0);
}

static bool is_registered(void)
{
	size_t wanted;

	return spoke_provider_registered(provider, &wanted) == wanted && wanted > 0;
}

static void end(void)
{
	spoke_provider_free(provider);
	zoorig_until(zoostranger_count(INSTANCES) == 0);
	spoke_config_free(config);
}

static const char *text_of(const char *path)
{
	static char text[TEXT];

	assert_int_equal(zoostranger_data(path, text, sizeof(text)), ZOK);
	return text;
}

/* Reads the only instance, by what Java asks of it. */
static void read_instance(char path[TEXT], struct spoke_url *ret)
{
	const char *names;
	char why[SPOKEI_INSTANCE_WHY];
	struct spokei_buffer url;
	char text[TEXT];

	assert_int_equal(zoostranger_count(INSTANCES), 1);
	names = zoostranger_list(INSTANCES);
	(void)snprintf(path, TEXT, INSTANCES "/%.*s", (int)strcspn(names, "\n"), names);
	(void)snprintf(text, sizeof(text), "%s", text_of(path));
	assert_non_null(strstr(text, "{\"name\":\"" APPLICATION "\",\"id\":\"127.0.0.1:"));
	assert_non_null(
		strstr(text,
		       "\"@class\":\"org.apache.dubbo.registry.zookeeper.ZookeeperInstance\""));
	spokei_buffer_init(&url, spoke_host_env(), SIZE_MAX);
	assert_int_equal(spokei_instance_read(spoke_host_env(), text, strlen(text), &url, why), 0);
	assert_int_equal(spoke_url_parse(spoke_host_env(), (char *)spokei_buffer_data(&url),
					 spokei_buffer_len(&url) - 1, ret, NULL),
			 0);
	assert_string_equal(spoke_url_get(ret, SPOKEI_INSTANCE_STORAGE), "remote");
	assert_non_null(spoke_url_get(ret, "timestamp"));
	spokei_buffer_fini(&url);
}

/* Returns the metadata of an instance. */
static const char *metadata_of(const struct spoke_url *instance)
{
	char path[TEXT];

	(void)snprintf(path, sizeof(path), "/dubbo/metadata/" APPLICATION "/%s",
		       spoke_url_get(instance, SPOKEI_INSTANCE_REVISION));
	return text_of(path);
}

NEEDS(zooserver_absent);

GROUP(zoorig_set_up_all, zoorig_tear_down_all);

FIXTURE(zoorig_set_up, zoorig_tear_down);

TEST(provider_is_an_instance_with_metadata_and_mapping)
{
	struct spoke_url instance;
	char path[TEXT];

	provide("");
	zoorig_until(is_registered());
	read_instance(path, &instance);
	assert_int_equal(zoostranger_owner_of(path), zoorig_session());
	assert_non_null(strstr(metadata_of(&instance), "\"" SERVICE ":dubbo\":{"));
	assert_null(strstr(metadata_of(&instance), "timestamp"));
	assert_string_equal(text_of(MAPPING), APPLICATION);
	assert_int_equal(zoostranger_count(FOLDER), 1);
	spoke_url_fini(&instance);
	end();
	assert_string_equal(text_of(MAPPING), APPLICATION);
}

TEST(another_service_changes_the_instance_in_place)
{
	struct spoke_url first;
	struct spoke_url second;
	char path[TEXT];
	char again[TEXT];

	provide("");
	zoorig_until(is_registered());
	read_instance(path, &first);
	add(OTHER);
	zoorig_until(zoostranger_count("/dubbo/" OTHER "/providers") == 1 && is_registered());
	read_instance(again, &second);
	assert_string_equal(again, path);
	assert_string_not_equal(spoke_url_get(&first, SPOKEI_INSTANCE_REVISION),
				spoke_url_get(&second, SPOKEI_INSTANCE_REVISION));
	assert_non_null(strstr(metadata_of(&second), OTHER ":dubbo"));
	assert_null(strstr(metadata_of(&first), OTHER ":dubbo"));
	assert_string_equal(text_of("/dubbo/mapping/" OTHER), APPLICATION);
	spoke_url_fini(&first);
	spoke_url_fini(&second);
	end();
}

TEST(other_applications_stay_in_the_mapping)
{
	assert_int_equal(zoostranger_create("/dubbo", "", 0), ZOK);
	assert_int_equal(zoostranger_create("/dubbo/mapping", "", 0), ZOK);
	assert_int_equal(zoostranger_create(MAPPING, "first, " APPLICATION ".x", 0), ZOK);
	provide("");
	zoorig_until(is_registered());
	assert_string_equal(text_of(MAPPING), "first, " APPLICATION ".x," APPLICATION);
	end();
	provide("");
	zoorig_until(is_registered());
	assert_string_equal(text_of(MAPPING), "first, " APPLICATION ".x," APPLICATION);
	end();
}

TEST(instance_comes_back_with_a_new_session)
{
	int64_t session;
	struct spoke_url instance;
	char path[TEXT];

	provide("");
	zoorig_until(is_registered());
	session = zoorig_session();
	assert_int_equal(zoostranger_delete(MAPPING), ZOK);
	zoostranger_ends_session();
	zoorig_until(zoorig_session() != session && is_registered() &&
		     zoostranger_count(INSTANCES) == 1);
	read_instance(path, &instance);
	assert_int_equal(zoostranger_owner_of(path), zoorig_session());
	assert_string_equal(text_of(MAPPING), APPLICATION);
	spoke_url_fini(&instance);
	end();
}

TEST(removed_instance_is_created_again)
{
	provide("");
	zoorig_until(is_registered());
	zoostranger_clears(INSTANCES);
	zoorig_until(zoostranger_count(INSTANCES) == 1);
	end();
}

TEST(mode_says_what_is_published)
{
	provide("register-mode = interface\n");
	zoorig_until(is_registered());
	assert_int_equal(zoostranger_count(INSTANCES), 0);
	assert_int_equal(zoostranger_count(FOLDER), 1);
	end();
	provide("register-mode = instance\n");
	zoorig_until(is_registered());
	assert_int_equal(zoostranger_count(INSTANCES), 1);
	assert_int_equal(zoostranger_count(FOLDER), 0);
	end();
}

TEST(application_that_is_no_name_is_reported)
{
	provide("application = a/b\n");
	zoorig_until(zoorig_said("not published as an instance"));
	zoorig_until(zoostranger_count(FOLDER) == 1);
	assert_int_equal(spoke_provider_registered(provider, NULL), 0);
	end();
}

/* --- lists */

static void create(const char *path, const char *data)
{
	char parent[TEXT];

	for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(at - path), path);
		(void)zoostranger_create(parent, "", 0);
	}
	assert_int_equal(zoostranger_create(path, data, 0), ZOK);
}

#define PAYLOAD(revision)                                                                          \
	"\"port\":7,\"payload\":{\"metadata\":{\"dubbo.metadata.revision\":\"" revision "\"}}}"

TEST(mapping_is_listed_as_it_changes)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_watch(SERVICE, SPOKE_REGISTRY_MAPPING);
	assert_int_equal(zoorig_end(number), 0);
	assert_string_equal(zoorig_list(number), "");
	create(MAPPING, "one, two,../x,");
	zoorig_until(strcmp(zoorig_list(number), "consumer://any/one\nconsumer://any/two\n") == 0);
	assert_int_equal(zoostranger_write(MAPPING, "two"), ZOK);
	zoorig_until(strcmp(zoorig_list(number), "consumer://any/two\n") == 0);
	zoorig_close();
}

TEST(metadata_are_listed_as_urls_once_they_are_there)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_watch("one/r1", SPOKE_REGISTRY_METADATA);
	assert_int_equal(zoorig_end(number), 0);
	assert_string_equal(zoorig_list(number), "");
	create("/dubbo/metadata/one/r1",
	       "{\"services\":{\"k\":{\"name\":\"a.B\",\"path\":\"a.B\",\"protocol\":\"dubbo\","
	       "\"params\":{\"weight\":\"3\"}}}}");
	zoorig_until(strcmp(zoorig_list(number), "dubbo://0.0.0.0/a.B?weight=3&interface=a.B\n") ==
		     0);
	assert_int_equal(zoostranger_write("/dubbo/metadata/one/r1", "{"), ZOK);
	zoorig_until(zoorig_said("ignored metadata of one/r1"));
	zoorig_close();
}

TEST(instances_are_listed_with_their_data)
{
	uint64_t number;

	zoorig_open("");
	number = zoorig_watch("one", SPOKE_REGISTRY_INSTANCES);
	assert_int_equal(zoorig_end(number), 0);
	assert_string_equal(zoorig_list(number), "");
	create("/services/one/a:7", "{\"address\":\"a\"," PAYLOAD("r1"));
	create("/services/one/b:7", "{\"address\":\"b\"," PAYLOAD("r1"));
	create("/services/one/bad", "{\"address\":\"b\"}");
	zoorig_until(strcmp(zoorig_list(number), "dubbo://a:7?dubbo.metadata.revision=r1\n"
						 "dubbo://b:7?dubbo.metadata.revision=r1\n") == 0);
	zoorig_until(zoorig_said("ignored bad of one"));
	/* The data of one changes, and another one goes. */
	assert_int_equal(zoostranger_write("/services/one/a:7",
					   "{\"address\":\"a\"," PAYLOAD("r2")),
			 ZOK);
	assert_int_equal(zoostranger_delete("/services/one/b:7"), ZOK);
	zoorig_until(strcmp(zoorig_list(number), "dubbo://a:7?dubbo.metadata.revision=r2\n") == 0);
	zoostranger_clears("/services/one");
	zoorig_until(strcmp(zoorig_list(number), "") == 0);
	zoorig_close();
}

/* --- consumers */

static struct spoke_consumer *consumer;
static struct spoke_config *consumer_config;
static struct spoke_method *echo;
static unsigned ended;
static int last_error;

static void consume(const char *lines)
{
	char text[512];
	struct spoke_consumer_options options = { .url = "consumer://any/" SERVICE };

	(void)snprintf(text, sizeof(text),
		       "[registry]\nurl = zookeeper://127.0.0.1:%u\n[consumer]\n%s",
		       (unsigned)zooserver_port(), lines);
	assert_int_equal(spoke_config_parse(spoke_host_env(), "test",
					    (struct spoke_span){ text, strlen(text) }, NULL, NULL,
					    &consumer_config),
			 0);
	options.config = consumer_config;
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), 0);
	assert_int_equal(spoke_consumer_method(consumer, "echo", NULL, &echo), 0);
}

static void end_consumer(void)
{
	spoke_consumer_free(consumer);
	consumer = NULL;
	zoorig_turn();
	spoke_config_free(consumer_config);
}

static void note_end(void *arg, const struct spoke_result *result)
{
	(void)arg;
	ended++;
	last_error = result->error;
}

static int call(void)
{
	unsigned before = ended;

	zoorig_catch_up();
	assert_int_equal(spoke_call(echo, (struct spoke_span){ NULL, 0 }, NULL, note_end, NULL,
				    NULL),
			 0);
	zoorig_until(ended == before + 1);
	return last_error;
}

TEST(consumer_calls_a_provider_that_is_an_instance_only)
{
	provide("register-mode = instance\n");
	consume("");
	zoorig_until(spoke_consumer_ready(consumer) == 1);
	assert_int_equal(call(), 0);
	end();
	end_consumer();
}

TEST(provider_in_both_ways_is_one)
{
	provide("");
	zoorig_until(is_registered());
	consume("");
	zoorig_until(spoke_consumer_ready(consumer) == 1);
	assert_int_equal(call(), 0);
	add(OTHER);
	zoorig_until(zoostranger_count("/dubbo/" OTHER "/providers") == 1 && is_registered());
	assert_int_equal(call(), 0);
	assert_int_equal(spoke_consumer_ready(consumer), 1);
	end();
	end_consumer();
}

/* As consumers of Java do. */
TEST(instances_come_first_if_that_is_asked_for)
{
	provide("register-mode = instance\n");
	zoorig_until(is_registered());
	zoostranger_makes_folder();
	assert_int_equal(zoostranger_create(FOLDER "/dubbo%3A%2F%2F127.0.0.1%3A1%2F" SERVICE, "",
					    0),
			 ZOK);
	consume("subscribe-mode = first\n");
	zoorig_until(spoke_consumer_ready(consumer) == 1);
	assert_int_equal(spoke_consumer_endpoints(consumer, NULL, 0), 1);
	end_consumer();
	consume("");
	zoorig_until(spoke_consumer_ready(consumer) == 1);
	zoorig_until(spoke_consumer_endpoints(consumer, NULL, 0) == 2);
	end_consumer();
	consume("subscribe-mode = interface\n");
	zoorig_until(spoke_consumer_endpoints(consumer, NULL, 0) == 1);
	assert_int_equal(spoke_consumer_ready(consumer), 0);
	end_consumer();
	end();
}

/* --- metadata that an instance tells, as Java's do unless that is changed */

#define REVISION "5a0c"

static unsigned asked;

static void tell_metadata(struct spoke_request *request, void *arg)
{
	struct spoke_builder builder;
	struct spoke_value value;

	(void)arg;
	asked++;
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	spoke_pack_map(&builder, 1);
	spoke_pack_text(&builder, "services");
	spoke_pack_map(&builder, 1);
	spoke_pack_text(&builder, SERVICE ":dubbo");
	spoke_pack_map(&builder, 4);
	spoke_pack_text(&builder, "name");
	spoke_pack_text(&builder, SERVICE);
	spoke_pack_text(&builder, "path");
	spoke_pack_text(&builder, SERVICE);
	spoke_pack_text(&builder, "protocol");
	spoke_pack_text(&builder, "dubbo");
	spoke_pack_text(&builder, "params");
	spoke_pack_map(&builder, 0);
	assert_int_equal(spoke_builder_finish_value(&builder, &value), 0);
	spoke_reply(request, value);
	spoke_builder_fini(&builder);
}

TEST(instance_is_asked_for_its_metadata)
{
	const struct spoke_service_options service = {
		.name = "org.apache.dubbo.metadata.MetadataService",
		.version = "1.0.0",
		.group = "java",
	};
	const struct spoke_handler handler = { .method = "getMetadataInfo",
					       .handle = tell_metadata };
	char names[TEXT];
	char text[TEXT];

	asked = 0;
	provide("");
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
	zoorig_until(is_registered());
	(void)snprintf(names, sizeof(names), "%s", zoostranger_list(INSTANCES));
	names[strcspn(names, "\n")] = '\0';
	(void)snprintf(text, sizeof(text),
		       "{\"address\":\"127.0.0.1\",\"port\":%s,\"payload\":{\"metadata\":{"
		       "\"dubbo.metadata.revision\":\"" REVISION "\","
		       "\"dubbo.metadata-service.url-params\":\"{\\\"port\\\":\\\"%s\\\"}\"}}}",
		       strchr(names, ':') + 1, strchr(names, ':') + 1);
	create("/services/java/1", text);
	assert_int_equal(zoostranger_write(MAPPING, "java"), ZOK);
	zoostranger_clears(FOLDER);
	consume("subscribe-mode = instance\n");
	zoorig_until(spoke_consumer_ready(consumer) == 1);
	assert_int_equal(call(), 0);
	assert_int_equal(asked, 1);
	end_consumer();
	end();
}

TEST(instance_that_tells_nothing_is_asked_again_later)
{
	create("/services/java/1",
	       "{\"address\":\"127.0.0.1\",\"port\":1,\"payload\":{\"metadata\":{"
	       "\"dubbo.metadata.revision\":\"" REVISION "\"}}}");
	create(MAPPING, "java");
	consume("");
	zoorig_until(zoorig_said("did not tell its metadata java/" REVISION));
	end_consumer();
}
