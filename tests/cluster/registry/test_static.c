/* SPDX-License-Identifier: Apache-2.0 */
/* A registry whose URL names the providers. */
#include "registryrig.h"
#include "tests/support/test.h"

#include "cluster/registry/registries.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct rig_member *open_one(void **state, const char *url)
{
	struct rig *rig = *state;

	assert_int_equal(registryrig_open(&rig->members[0], &spokei_registry_static, url), 0);
	return &rig->members[0];
}

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

FIXTURE(registryrig_set_up, registryrig_tear_down);

TEST(every_service_has_addresses_of_url)
{
	struct rig_member *one =
		open_one(state, "static://10.0.0.1:20880?backup=host2:20881,,[::1]:9,Host3");

	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_subscribe(one, 2, "a b?c");
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1,
				"dubbo://10.0.0.1:20880/demo.Echo\ndubbo://host2:20881/demo.Echo\n"
				"dubbo://[::1]:9/demo.Echo\ndubbo://host3/demo.Echo\n");
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_list(one, 2,
				"dubbo://10.0.0.1:20880/a%20b%3Fc\ndubbo://host2:20881/a%20b%3Fc\n"
				"dubbo://[::1]:9/a%20b%3Fc\ndubbo://host3/a%20b%3Fc\n");
	registryrig_assert_no_more(one);
}

TEST(protocol_parameter_sets_scheme)
{
	struct rig_member *one = open_one(state, "static://[::1]?protocol=msgpack-rpc");

	registryrig_subscribe(one, 1, "demo.Echo");
	registryrig_assert_done(one, 1, 0);
	registryrig_assert_list(one, 1, "msgpack-rpc://[::1]/demo.Echo\n");
}

TEST(list_of_services_is_refused)
{
	struct rig_member *one = open_one(state, "static://h:1");

	registryrig_subscribe(one, 1, "*");
	registryrig_subscribe(one, 2, "**");
	registryrig_assert_done(one, 1, SPOKE_EUNSUPPORTED);
	registryrig_assert_done(one, 2, 0);
	registryrig_assert_list(one, 2, "dubbo://h:1/**\n");
	registryrig_assert_no_more(one);
	assert_non_null(strstr(spoke_engine_why(one->engine), "name a service"));
}

TEST(other_requests_succeed_at_once)
{
	struct rig_member *one = open_one(state, "static://h:1");

	registryrig_publish(one, 1, "demo.Echo", "dubbo://h2:1/demo.Echo");
	registryrig_assert_done(one, 1, 0);
	registryrig_unwant(one, 2, 1);
	registryrig_assert_done(one, 2, 0);
	registryrig_subscribe(one, 3, "demo.Echo");
	registryrig_assert_done(one, 3, 0);
	registryrig_assert_list(one, 3, "dubbo://h:1/demo.Echo\n");
	registryrig_unwant(one, 4, 3);
	registryrig_assert_done(one, 4, 0);
	registryrig_assert_no_more(one);
}

RIG_TEST(url_without_addresses_is_rejected_with_message)
{
	static const struct {
		const char *url;
		int error;
		const char *part;
	} cases[] = {
		{ "static+unix:/run/x", SPOKE_EINVAL, "static://10.0.0.1:20880?backup=" },
		{ "static://h:1/demo.Echo", SPOKE_EINVAL, "needs hosts and ports" },
		{ "static://h?backup=h2:x", SPOKE_ESYNTAX, "address h2:x: a port is a number" },
		{ "static://h,h2:x", SPOKE_ESYNTAX, "address h2:x: a port is a number" },
		{ "static://h?backup=h2:99999", SPOKE_ERANGE, "at most 65535" },
		{ "static://h?backup=h2/x", SPOKE_ESYNTAX, "address h2/x: write a host" },
		{ "static://h?protocol=a%20b", SPOKE_ESYNTAX, "a scheme is made of" },
		{ "static://h?protocol=dubbo%2Bunix", SPOKE_ESYNTAX, "address h: " },
	};
	struct rig_member *one = &rig->members[0];
	size_t blocks = one->faulty.blocks;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(registryrig_open(one, &spokei_registry_static, cases[i].url),
				 cases[i].error);
		assert_non_null(strstr(spoke_engine_why(one->engine), cases[i].part));
		assert_null(one->registry);
		assert_int_equal(one->faulty.blocks, blocks);
	}
}

RIG_TEST(enomem_fails_request_or_open)
{
	struct rig_member *one = &rig->members[0];
	size_t blocks = one->faulty.blocks;
	uint64_t before;

	for (uint64_t nth = 1;; nth++) {
		before = one->faulty.failed[SPOKEI_FAULTS_MEMORY];
		one->count = 0;
		spokei_faults_fail(&one->faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		if (registryrig_open(one, &spokei_registry_static, "static://h:1?backup=h:2") ==
		    0) {
			registryrig_subscribe(one, 1, "demo.Echo");
			if (one->faulty.failed[SPOKEI_FAULTS_MEMORY] > before)
				registryrig_assert_done(one, 1, SPOKE_ENOMEM);
			else
				assert_int_equal(one->count, 2);
			registryrig_close(one);
			registryrig_pass(rig, MS);
		}
		one->registry = NULL;
		assert_int_equal(one->faulty.blocks, blocks);
		if (one->faulty.failed[SPOKEI_FAULTS_MEMORY] == before)
			break;
	}
	spokei_faults_heal(&one->faulty);
}

TEST(registry_is_found_by_scheme)
{
	assert_ptr_equal(spoke_registry_find("static"), &spokei_registry_static);
	assert_ptr_equal(spoke_registry_find("zookeeper"), &spokei_registry_zookeeper);
	assert_null(spoke_registry_find("statics"));
	assert_null(spoke_registry_find("dubbo"));
	assert_null(spoke_registry_find(NULL));
}

TEST(rows_have_schemes_and_urls_of_registries)
{
	static const char *const urls[] = {
#define ROW(scheme, url) #scheme, url,
		SPOKE_REGISTRIES(ROW, ROW)
#undef ROW
	};

	for (unsigned i = 0; spokei_registries[i]; i++) {
		assert_string_equal(spokei_registries[i]->scheme, urls[2 * i]);
		assert_memory_equal(urls[2 * i + 1], urls[2 * i], strlen(urls[2 * i]));
		assert_non_null(strstr(SPOKE_REGISTRY_URLS, urls[2 * i + 1]));
	}
}
