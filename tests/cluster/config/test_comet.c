/* SPDX-License-Identifier: Apache-2.0 */
/* The section of gateways for browsers in config files. */
#include "tests/support/test.h"

#include <spoke/comet.h>
#include <spoke/config.h>

#include <stdio.h>
#include <string.h>

static char told[512];

static void tell(void *arg, const char *sentence)
{
	(void)arg;
	(void)strncat(told, sentence, sizeof(told) - strlen(told) - 1);
}

static struct spoke_config *parse(const char *text)
{
	struct spoke_config *config = NULL;
	int error;

	told[0] = '\0';
	error = spoke_config_parse(NULL, "a.conf", (struct spoke_span){ text, strlen(text) }, tell,
				   NULL, &config);
	assert_true(error == SPOKE_OK || told[0] != '\0');
	return config;
}

TEST(options_of_the_program_override_the_file)
{
	struct spoke_config *config = parse("[comet]\nlisten = 127.0.0.1:1\nlife = 1m\n"
					    "users.max = 5\n");
	struct spoke_comet_options with = { .listen = "127.0.0.1:2", .life_ns = 7, .users_max = 8 };

	assert_non_null(config);
	spoke_config_comet(config, &with);
	assert_string_equal(with.listen, "127.0.0.1:2");
	assert_int_equal(with.life_ns, 7);
	assert_int_equal(with.users_max, 8);
	spoke_config_free(config);
}

TEST(keys_that_are_not_set_change_no_option)
{
	static const struct spoke_comet_options none;
	struct spoke_config *config = parse("[engine]\ntick = 1ms\n");
	struct spoke_comet_options with = none;

	assert_non_null(config);
	spoke_config_comet(config, &with);
	assert_memory_equal(&with, &none, sizeof(none));
	spoke_config_free(config);
}

TEST(wrong_values_are_errors_of_the_file)
{
	assert_null(parse("[comet]\nlife = 1ms\n"));
	assert_string_equal(told, "a.conf:2: life = 1ms: too small; it goes from 10ms to 480h");
	assert_null(parse("[comet]\nframes.per.second = 251\n"));
	assert_null(parse("[comet]\nlisten = 127.0.0.1:0, localhost:0\n"));
	assert_string_equal(told,
			    "a.conf:2: listen = 127.0.0.1:0, localhost:0: entry 2, localhost:0: "
			    "not a numeric address; write e.g. 127.0.0.1:8080 or "
			    "unix:/run/pages.sock");
	assert_null(parse("[comet]\nproxies = 10.0.0.0/8, 127.0.0.1:80\n"));
	assert_string_equal(told, "a.conf:2: proxies = 10.0.0.0/8, 127.0.0.1:80: entry 2, "
				  "127.0.0.1:80: not an address in digits, a range like "
				  "10.0.0.0/8, or unix");
	assert_null(parse("[provider]\nring.messages = 5\n"));
	assert_non_null(strstr(told, "not allowed here; write ring.messages in [comet]"));
}

/* Parses a file with this URL; returns the message. */
static const char *told_of_backend(const char *url, const char *more)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "[comet]\nbackend = %s\n%s", url, more);
	spoke_config_free(parse(text));
	return told;
}

TEST(url_of_the_backend_names_a_service)
{
	assert_string_equal(told_of_backend("tcp://127.0.0.1:1/shop.Texts", ""), "");
	assert_string_equal(told_of_backend("tcp://127.0.0.1:1?interface=shop.Texts", ""), "");
	assert_string_equal(told_of_backend("tcp://127.0.0.1:1", "life = 5\n"),
			    "a.conf:2: backend = tcp://127.0.0.1:1: the URL must name the service, "
			    "e.g. dubbo://127.0.0.1:20880/shop.Texts"
			    "a.conf:3: life = 5: a duration needs a unit; write 5ms or 5s");
	assert_non_null(strstr(told_of_backend("consumer://any", ""), "must name the service"));
	assert_non_null(strstr(told_of_backend("ftp://127.0.0.1:1/a.B", ""),
			       "a.conf:2: backend = ftp://127.0.0.1:1/a.B: unknown scheme; "));
	assert_non_null(strstr(told_of_backend("tcp://127.0.0.1:0/a.B", ""), ": port 0 is not "));
	assert_non_null(strstr(told_of_backend("127.0.0.1:1", ""), "a.conf:2: backend = "));
}

TEST(url_of_the_backend_has_an_address_or_a_registry)
{
	static const char registry[] = "[registry]\nurl = file:///run/a\n";

	assert_string_equal(told_of_backend("consumer://any/a.B", registry), "");
	assert_non_null(strstr(told_of_backend("consumer://any/a.B", ""),
			       "a.conf:2: backend = consumer://any/a.B: consumer:// has no "
			       "address; set url in [registry]"));
	assert_non_null(strstr(told_of_backend("tcp://127.0.0.1:1/a.B", registry),
			       "a.conf:2: backend = tcp://127.0.0.1:1/a.B: an address and the url "
			       "in [registry] exclude each other"));
}
