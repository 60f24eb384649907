/* SPDX-License-Identifier: Apache-2.0 */
/* Events about addresses of a provider with the files of TLS: open to all hosts, or plain. */
#include "core/virtual/files.h"
#include "tests/support/test.h"
#include "tests/transport/stream/issuer.h"

#include <spoke/config.h>
#include <spoke/provider.h>
#include <spoke/stats.h>
#include <spoke/tls.h>

#include <stdio.h>
#include <string.h>

STEP(set_up)
{
	assert_int_equal(issuer_set_up(state), 0);
	assert_int_equal(issuer_issue("dns:a.test", 90), 0);
	spokei_vfiles_put(issuer.world.files, "/ca.pem", issuer.ca.cert);
	spokei_vfiles_put(issuer.world.files, "/provider.pem", issuer.issued.cert);
	spokei_vfiles_put(issuer.world.files, "/provider.key", issuer.issued.key);
}

GROUP(set_up, issuer_tear_down);

/* Starts a provider that listens at 10.0.0.1:20880, writes its events, and ends it. */
static void collect(const struct spoke_provider_options *options, const char *parameters,
		    char text[8192])
{
	const struct spoke_engine_options with = { .env = &issuer.process.env };
	struct spoke_event event = { .number = 0 };
	struct spoke_provider *provider;
	struct spoke_engine *engine;
	size_t len = 0;
	char url[128];

	(void)snprintf(url, sizeof(url), "dubbo://10.0.0.1:20880%s", parameters);
	assert_int_equal(spoke_engine_new(&with, &engine), 0);
	assert_int_equal(spoke_provider_new(engine, options, &provider), 0);
	assert_int_equal(spoke_provider_listen(provider, url), 0);
	text[0] = '\0';
	while (spoke_event_get(engine, event.number + 1, &event) == SPOKE_OK)
		len += (size_t)snprintf(text + len, 8192 - len, "%s\n", event.text);
	spoke_provider_free(provider);
	spoke_engine_free(engine);
}

TEST(provider_that_requires_no_certificate_says_all_may_call)
{
	static const struct {
		const char *ca;
		enum spoke_tls_verify verify;
		const char *parameters;
		const char *event; /* NULL: none */
	} rows[] = {
		{ NULL, SPOKE_TLS_VERIFY_DEFAULT, "",
		  "may call, because TLS asks for no certificate; set tls.ca, allow.from" },
		{ "/ca.pem", SPOKE_TLS_VERIFY_OPTIONAL, "",
		  "may call, because TLS requires no certificate; set tls.verify = required" },
		{ "/ca.pem", SPOKE_TLS_VERIFY_NONE, "",
		  "may call, because TLS requires no certificate; set tls.verify = required" },
		{ "/ca.pem", SPOKE_TLS_VERIFY_DEFAULT, "?tls=optional", "may call, in plain text" },
		{ "/ca.pem", SPOKE_TLS_VERIFY_DEFAULT, "?tls=off", "may call, in plain text" },
		{ "/ca.pem", SPOKE_TLS_VERIFY_DEFAULT, "", NULL },
		{ NULL, SPOKE_TLS_VERIFY_DEFAULT, "?allow.from=10.0.0.0/8", NULL },
	};
	char text[8192];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct spoke_tls_options tls = { .cert = "/provider.pem",
						       .key = "/provider.key",
						       .ca = rows[i].ca,
						       .verify = rows[i].verify };
		const struct spoke_provider_options options = { .tls = &tls };

		collect(&options, rows[i].parameters, text);
		if (rows[i].event)
			assert_non_null(strstr(text, rows[i].event));
		else
			assert_null(strstr(text, "all hosts"));
	}
}

TEST(settings_of_tls_without_tls_have_an_event)
{
#define FILES "tls.cert = /provider.pem\ntls.key = /provider.key\n"
	static const struct {
		const char *file;
		const char *parameters;
		const char *event; /* NULL: none */
	} rows[] = {
		{ "tls.verify = required\n", "", "tls: tls.verify is set, but TLS is off" },
		{ "tls.verify = none\n", "", "tls: tls.verify is set, but TLS is off" },
		{ "tls.verify = auto\n", "", NULL },
		{ "tls.ca = /ca.pem\n", "", "tls: tls.ca is set, but TLS is off" },
		{ FILES, "",
		  "listen: 10.0.0.1:20880 is plain, although tls.cert is set; set tls = on" },
		{ FILES, "?tls=on", NULL },
		{ FILES, "?tls=off", NULL },
		{ "tls = on\n" FILES, "", NULL },
	};
	char text[8192];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoke_provider_options options = { .config = NULL };
		char file[256];

		(void)snprintf(file, sizeof(file), "[provider]\n%s", rows[i].file);
		spokei_vfiles_put(issuer.world.files, "a.conf", file);
		assert_int_equal(spoke_config_load(&issuer.process.env, "a.conf", NULL, NULL,
						   &options.config),
				 0);
		collect(&options, rows[i].parameters, text);
		if (rows[i].event)
			assert_non_null(strstr(text, rows[i].event));
		else
			assert_true(!strstr(text, "TLS is off") && !strstr(text, "is plain"));
		spoke_config_free(options.config);
	}
}
