/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in ZooKeeper: URLs of the registry, paths of nodes, and the message of a build without
 * ZooKeeper.
 */
#include "cluster/registry/registries.h"
#include "cluster/registry/urls.h"
#include "cluster/registry/zookeeper/names.h"
#include "core/engine/engine.h"
#include "tests/support/test.h"

#include <spoke/host.h>

#include <stdio.h>

#include <string.h>

static struct spokei_zoo_settings settings;
static char why[SPOKEI_ZOO_WHY_MAX];

static int read_url(const char *text)
{
	struct spoke_url url = { 0 };
	int error;

	assert_int_equal(spoke_url_parse(spoke_host_env(), text, strlen(text), &url, NULL), 0);
	why[0] = '\0';
	error = spokei_zoo_settings_read(spoke_host_env(), &url, &settings, why);
	spoke_url_fini(&url);
	return error;
}

TEST(host_alone_is_valid_url)
{
	assert_int_equal(read_url("zookeeper://zoo.test"), 0);
	assert_int_equal(settings.place_count, 1);
	assert_string_equal(settings.places[0].name, "zoo.test:2181");
	assert_false(settings.places[0].fixed);
	assert_int_equal(settings.session_ms, 60000);
	assert_string_equal(settings.root, "/dubbo");
}

TEST(all_parameters_are_read)
{
	assert_int_equal(read_url("zookeeper://127.0.0.1:1/a/b?backup=h2,h3:3,[::1],[::2]:5"
				  "&group=/g&session=7000&unknown=1"),
			 0);
	assert_int_equal(settings.place_count, 5);
	assert_true(settings.places[0].fixed);
	assert_string_equal(settings.places[0].name, "127.0.0.1:1");
	assert_string_equal(settings.places[1].name, "h2:2181");
	assert_string_equal(settings.places[2].name, "h3:3");
	assert_string_equal(settings.places[3].name, "[::1]:2181");
	assert_string_equal(settings.places[4].name, "[::2]:5");
	assert_true(settings.places[4].fixed);
	assert_int_equal(settings.session_ms, 7000);
	assert_string_equal(settings.root, "/a/b/g");
}

TEST(invalid_urls_are_rejected_with_message)
{
	static const struct {
		const char *url;
		int error;
		const char *words;
	} rows[] = {
		{ "zookeeper://me:secret@h", SPOKE_EUNSUPPORTED, "users and passwords" },
		{ "zookeeper://h:0", SPOKE_EINVAL, "no server" },
		{ "zookeeper://h?backup=i:0", SPOKE_ESYNTAX, "server 1 has no port" },
		{ "zookeeper://h?backup=i:", SPOKE_ESYNTAX, "server 1 has no port" },
		{ "zookeeper://h?backup=i:65536", SPOKE_ESYNTAX, "server 1 has no port" },
		{ "zookeeper://h?backup=i:1x,j", SPOKE_ESYNTAX, "server 1 has no port" },
		{ "zookeeper://h?backup=i,:9", SPOKE_EINVAL, "server 3: invalid host name" },
		{ "zookeeper://h?backup=i,,j", SPOKE_EINVAL, "server 3: invalid host name" },
		{ "zookeeper://h?backup=a,b,c,d,e,f,g,i,j,k,l,m,n,o,p,q", SPOKE_ETOOLARGE,
		  "at most 16 servers" },
		{ "zookeeper://h?session=1y", SPOKE_ESYNTAX, "session" },
		{ "zookeeper://h?session=199", SPOKE_ERANGE, "session" },
		{ "zookeeper://h?session=3600001", SPOKE_ERANGE, "session" },
		{ "zookeeper://h?group=a//b", SPOKE_EINVAL, "invalid path" },
		{ "zookeeper://h?group=a/", SPOKE_EINVAL, "invalid path" },
		{ "zookeeper://h?group=a/.", SPOKE_EINVAL, "invalid path" },
		{ "zookeeper://h/..", SPOKE_EINVAL, "invalid path" },
		{ "zookeeper://h/a%C3%A4", SPOKE_EINVAL, "invalid path" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(read_url(rows[i].url), rows[i].error);
		if (strstr(why, rows[i].words) == NULL)
			fail_msg("%s: \"%s\" instead of \"%s\"", rows[i].url, why, rows[i].words);
	}
}

TEST(path_is_written_only_if_it_fits)
{
	char text[64] = "before";
	const char *folder = "/dubbo/a%2Fb+c/providers";

	assert_int_equal(read_url("zookeeper://h"), 0);
	assert_int_equal(spokei_zoo_print_folder(&settings, "a/b c", "providers", text,
						 strlen(folder)),
			 strlen(folder));
	assert_string_equal(text, "before");
	assert_int_equal(spokei_zoo_print_folder(&settings, "a/b c", "providers", text,
						 strlen(folder) + 1),
			 strlen(folder));
	assert_string_equal(text, folder);
}

static bool same(const char *one, const char *other)
{
	struct spoke_url urls[2] = { 0 };
	bool result;

	assert_int_equal(spoke_url_parse(spoke_host_env(), one, strlen(one), &urls[0], NULL), 0);
	assert_int_equal(spoke_url_parse(spoke_host_env(), other, strlen(other), &urls[1], NULL),
			 0);
	result = spokei_urls_same(&urls[0], &urls[1]);
	spoke_url_fini(&urls[0]);
	spoke_url_fini(&urls[1]);
	return result;
}

TEST(provider_is_identified_by_address_group_version)
{
	assert_true(same("dubbo://h:1/a?timestamp=1&pid=7", "dubbo://h:1/b?timestamp=2"));
	assert_true(same("dubbo://h:1/a?group=&version=2", "dubbo://h:1/a?version=2"));
	assert_false(same("dubbo://h:1/a", "dubbo://h:2/a"));
	assert_false(same("dubbo://h:1/a", "dubbo://i:1/a"));
	assert_false(same("dubbo://h:1/a", "tri://h:1/a"));
	assert_false(same("dubbo://h:1/a?group=x", "dubbo://h:1/a"));
	assert_false(same("dubbo://h:1/a?version=2", "dubbo://h:1/a?version=1"));
	assert_true(same("unix:/run/a.sock", "unix:/run/a.sock"));
	assert_false(same("unix:/run/a.sock", "unix:/run/b.sock"));
}

TEST(missing_library_is_reported)
{
	const struct spoke_registry *table = &spokei_registry_zookeeper_absent;
	struct spoke_url url = { 0 };
	struct spoke_engine *engine;
	const struct spoke_event *event;
	void *registry;

	assert_int_equal(spoke_engine_new(NULL, &engine), 0);
	assert_string_equal(table->scheme, "zookeeper");
	assert_int_equal(table->open(engine, &url, NULL, NULL, &registry), SPOKE_EUNSUPPORTED);
	event = spokei_events_find(engine, engine->events.last);
	assert_non_null(event);
	assert_int_equal(event->error, SPOKE_EUNSUPPORTED);
	assert_non_null(strstr(event->text, "not built in; build spoke with libzookeeper_st"));
	spoke_engine_free(engine);
}
