/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a unix socket that a provider publishes with its ports, and when it does not. */
#include "tests/cluster/discovery/keeperrig.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

#define PORT "dubbo://127.0.0.1:20880"
#define PATH "unix:/run/echo.sock"
#define HOST "&spoke.host=00005907e0000001&"
#define LOCAL "&spoke.local=" PATH "&"
#define OWN_ENTRY "dubbo+" PATH "?"

static struct spoke_provider *provider;
static struct spoke_config *config;

static void answer(struct spoke_request *request, void *arg)
{
	(void)arg;
	spoke_reply(request, (struct spoke_value){ NULL, 0 });
}

static void provide_with(struct spoke_provider_options options)
{
	const struct spoke_handler handler = { .method = "echo", .handle = answer };
	const struct spoke_service_options service = { .name = ECHO };

	options.registry = "fake://here";
	options.registry_kind = &fakereg_kind;
	assert_int_equal(spoke_provider_new(keeperrig.engine, &options, &provider), 0);
	assert_int_equal(spoke_provider_add(provider, &service, &handler, 1), 0);
}

static void provide(void)
{
	provide_with((struct spoke_provider_options){ .weight = 0 });
}

static void listen_at(const char *url)
{
	assert_int_equal(spoke_provider_listen(provider, url), 0);
}

static void listen_at_both(void)
{
	listen_at(PORT);
	listen_at(PATH);
	keeperrig_pass(10 * MS);
}

static int tear_down(void **state)
{
	int result;

	spoke_provider_free(provider);
	provider = NULL;
	result = keeperrig_tear_down(state);
	spoke_config_free(config);
	config = NULL;
	return result;
}

FIXTURE(keeperrig_set_up, tear_down);

/* Asserts that the path is published with the port only. */
static void assert_with_port(void)
{
	size_t wanted;

	assert_int_equal(fakereg_listed(ECHO), 1);
	assert_int_equal(fakereg_listed_with(PORT "/"), 1);
	assert_int_equal(fakereg_listed_with(HOST), 1);
	assert_int_equal(fakereg_listed_with(LOCAL), 1);
	assert_int_equal(spoke_provider_registered(provider, &wanted), 1);
	assert_int_equal(wanted, 1);
}

/* Asserts that port and path have an entry each. */
static void assert_apart(void)
{
	size_t wanted;

	assert_int_equal(fakereg_listed(ECHO), 2);
	assert_int_equal(fakereg_listed_with("spoke.local="), 0);
	assert_int_equal(fakereg_listed_with("spoke.host="), 0);
	assert_int_equal(fakereg_listed_with(OWN_ENTRY), 1);
	assert_int_equal(spoke_provider_registered(provider, &wanted), 2);
	assert_int_equal(wanted, 2);
}

TEST(path_is_published_with_the_port)
{
	provide();
	listen_at_both();
	assert_with_port();
	assert_int_equal(fakereg.publishes, 1);
}

TEST(keys_of_the_url_stay_sorted)
{
	provide();
	listen_at_both();
	assert_int_equal(fakereg_listed_with("&side=provider" HOST "spoke.local=" PATH
					     "&spoke.serialization=msgpack&"),
			 1);
}

TEST(order_of_listening_does_not_matter)
{
	provide();
	listen_at(PORT);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed_with("spoke.local="), 0);
	listen_at(PATH);
	keeperrig_pass(20 * MS);
	assert_with_port();
}

TEST(entry_of_the_path_is_withdrawn_when_a_port_comes)
{
	provide();
	listen_at(PATH);
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed_with(OWN_ENTRY), 1);
	listen_at(PORT);
	keeperrig_pass(20 * MS);
	assert_with_port();
}

TEST(every_port_names_the_first_path)
{
	provide();
	listen_at(PATH);
	listen_at("unix:/run/other.sock");
	listen_at(PORT);
	listen_at("dubbo://[::1]:20881");
	keeperrig_pass(10 * MS);
	assert_int_equal(fakereg_listed(ECHO), 3);
	assert_int_equal(fakereg_listed_with(LOCAL), 2);
	assert_int_equal(fakereg_listed_with("dubbo+unix:/run/other.sock?"), 1);
}

TEST(unknown_host_publishes_apart)
{
	keeperrig.process.host_id = 0;
	provide();
	listen_at_both();
	assert_apart();
}

TEST(local_path_off_publishes_apart)
{
	static const char text[] = "[provider]\nlocal.path = off\n";

	assert_int_equal(spoke_config_parse(&keeperrig.process.env, "a.conf",
					    (struct spoke_span){ text, strlen(text) }, NULL, NULL,
					    &config),
			 0);
	provide_with((struct spoke_provider_options){ .config = config });
	listen_at_both();
	assert_apart();
}

TEST(list_of_callers_that_asks_for_addresses_publishes_apart)
{
	provide_with((struct spoke_provider_options){
		.allow_callers = "uid:0,addr:10.0.0.0/8",
	});
	listen_at_both();
	assert_apart();
}

TEST(list_of_callers_without_addresses_changes_nothing)
{
	provide_with((struct spoke_provider_options){ .allow_callers = "uid:0,dns:a.test" });
	listen_at_both();
	assert_with_port();
}

TEST(host_that_cannot_be_read_later_stays_the_same)
{
	provide();
	listen_at_both();
	assert_with_port();
	keeperrig.process.host_id = 0;
	listen_at("dubbo://127.0.0.1:20881");
	keeperrig_pass(20 * MS);
	assert_int_equal(fakereg_listed_with(LOCAL), 2);
	assert_int_equal(fakereg_listed(ECHO), 2);
}
