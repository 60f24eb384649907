/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a consumer: an address, or with a registry a service. */
#include "tests/cluster/clusterrig.h"
#include "tests/support/test.h"

#include <string.h>

#define rig clusterrig

FIXTURE(clusterrig_set_up, clusterrig_tear_down);

TEST(url_fits_the_registry_or_is_refused)
{
	static const struct {
		const char *url;
		const char *registry;
		const char *text;
	} cases[] = {
		{ "consumer://any/demo.Echo", NULL, "give a registry" },
		{ "file:///run/list", NULL, "file:// is a registry; give a registry" },
		{ "zookeeper://127.0.0.1:2181", NULL, "zookeeper:// is a registry; give a" },
		{ "dubbo://127.0.0.1:20880/demo.Echo", "static://127.0.0.1:20880",
		  "an address and a registry exclude each other" },
		{ "unix:/run/echo?interface=demo.Echo", "static://127.0.0.1:20880",
		  "an address and a registry exclude each other" },
		{ "http://127.0.0.1:80/demo.Echo", NULL, "unknown scheme http" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct spoke_consumer_options options = { .url = cases[i].url,
								.registry = cases[i].registry };
		struct spoke_consumer *consumer;
		int error = spoke_consumer_new(rig.engine, &options, &consumer);

		assert_int_not_equal(error, SPOKE_OK);
		if (!strstr(spoke_engine_why(rig.engine), cases[i].text))
			fail_msg("%s: %s", cases[i].url, spoke_engine_why(rig.engine));
	}
}

TEST(service_of_a_registry_is_accepted)
{
	const struct spoke_consumer_options options = { .url = "consumer://any/demo.Echo",
							.registry = "static://127.0.0.1:20880" };
	struct spoke_consumer *consumer;

	assert_int_equal(spoke_consumer_new(rig.engine, &options, &consumer), SPOKE_OK);
	spoke_consumer_free(consumer);
}

TEST(tcp_means_dubbo)
{
	struct spoke_consumer_options options = { .url = "tcp://127.0.0.1:20880/demo.Echo" };
	struct spoke_consumer *consumer;

	clusterrig_provide(1);
	assert_int_equal(spoke_consumer_new(rig.engine, &options, &rig.consumer), SPOKE_OK);
	clusterrig_pass(100 * MS);
	consumer = rig.consumer;
	assert_int_equal(spoke_consumer_ready(consumer), 1);
	clusterrig_end(clusterrig_call(clusterrig_method("echo", NULL)));
	assert_int_equal(rig.runs, 1);
	assert_int_equal(spoke_provider_listen(rig.providers[0].provider, "tcp://127.0.0.1:20999"),
			 SPOKE_OK);
}
