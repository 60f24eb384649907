/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers with TLS: the names that they expect, and what a call learns of a refusal. */
#include "tests/cluster/scenarios/secplay.h"
#include "tests/support/test.h"

#include "core/virtual/files.h"

#include <spoke/config.h>

#include <stdio.h>
#include <string.h>

/* Returns whether a consumer connects to a provider that a registry lists with these parameters. */
static bool connects_to_listed(const char *parameters, const char *peers)
{
	const struct spoke_consumer_options options = { .url = "consumer://any/demo.Echo",
							.registry = "file:///run/providers",
							.tls = &secplay.secure.consumer };
	struct spoke_consumer *consumer;
	char text[256];
	bool connected;

	(void)snprintf(text, sizeof(text), "dubbo://" AT "/demo.Echo?%s\n", parameters);
	spokei_vfiles_put(secplay.world.files, "/run/providers", text);
	secplay.secure.consumer.peers = peers;
	assert_int_equal(spoke_consumer_new(secplay.engines[CLIENT], &options, &consumer), 0);
	secplay_pass(3 * SECOND);
	connected = spoke_consumer_ready(consumer) == 1;
	spoke_consumer_free(consumer);
	secplay_pass(SECOND);
	return connected;
}

FIXTURE(secplay_set_up, secplay_tear_down);

TEST(registry_decides_neither_about_tls_nor_about_names)
{
	static const char lies[] = "tls=off&ssl-enabled=false&tls.peers=dns:other.test";

	secplay_provide_tls("dubbo://" AT);
	assert_true(connects_to_listed(lies, "dns:server.test"));
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 1);
	assert_false(connects_to_listed(lies, "dns:other.test"));
	assert_false(connects_to_listed("tls.peers=dns:server.test", "dns:other.test"));
	assert_int_equal(secplay_stat_of(SERVER, SPOKE_STAT_HANDSHAKES_DONE), 1);
}

/* In TLS 1.3 the consumer may write before it is refused. */
TEST(call_of_a_refused_consumer_ends_with_the_reason)
{
	secplay_provide_tls("dubbo://" AT);
	secplay.secure.consumer.cert = secplay.secure.consumer.key = NULL;
	secplay_consume("dubbo://" AT "/demo.Echo", &secplay.secure.consumer);
	secplay_call(2 * SECOND);
	secplay_pass(3 * SECOND);
	assert_int_equal(secplay.ended, 1);
	assert_int_equal(secplay.error, SPOKE_EHANDSHAKE);
	assert_non_null(strstr(secplay.error_text, "set tls.cert and tls.key"));
}

/* Makes a consumer of demo.Echo, and a method of another service. Returns the method's error. */
static int error_of_method(const struct spoke_tls_options *tls, struct spoke_config *config,
			   const char *service)
{
	const struct spoke_consumer_options options = { .url = "dubbo://" AT "/demo.Echo",
							.tls = tls,
							.config = config };
	const struct spoke_method_options with = { .service = service };
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	int error;

	assert_int_equal(spoke_consumer_new(secplay.engines[CLIENT], &options, &consumer), 0);
	error = spoke_consumer_method(consumer, "echo", &with, &method);
	spoke_consumer_free(consumer);
	secplay_pass(SECOND);
	return error;
}

TEST(method_of_a_service_with_other_peers_is_refused)
{
	static const char text[] = "[consumer]\ntls.peers = dns:server.test\n"
				   "[service.demo.Other]\ntls.peers = dns:other.test\n"
				   "[service.demo.Same]\ntls.peers = dns:server.test\n";
	struct spoke_tls_options tls = secplay.secure.consumer;
	struct spoke_config *config;

	assert_int_equal(spoke_config_parse(NULL, "a.conf",
					    (struct spoke_span){ text, strlen(text) }, NULL, NULL,
					    &config),
			 0);
	assert_int_equal(error_of_method(&tls, config, "demo.Other"), 0); /* the program wins */
	tls.peers = NULL;
	assert_int_equal(error_of_method(&tls, config, "demo.Other"), SPOKE_EINVAL);
	assert_non_null(strstr(secplay_told(CLIENT), "demo.Other has tls.peers of its own"));
	assert_int_equal(error_of_method(&tls, config, "demo.Same"), 0);
	assert_int_equal(error_of_method(&tls, config, "demo.Third"), 0);
	assert_int_equal(error_of_method(NULL, config, "demo.Other"), 0);
	spoke_config_free(config);
}
