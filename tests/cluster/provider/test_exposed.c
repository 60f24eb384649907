/* SPDX-License-Identifier: Apache-2.0 */
/* Events about addresses of a provider with the files of TLS: open to all hosts, or plain. */
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "examples/spoke/issue.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/provider.h>
#include <spoke/stats.h>
#include <spoke/tls.h>

#include <stdio.h>
#include <string.h>

static struct spokei_world world;
static struct spokei_world_process process;

STEP(set_up)
{
	struct issue_options options = { .name = "authority" };
	struct issued issued;
	struct issued ca;

	scene_open(&world, 1);
	spokei_world_process_init(&process, &world);
	assert_int_equal(issue_make(&process.env, &options, &ca), 0);
	options = (struct issue_options){ .name = "provider",
					  .names = "dns:a.test",
					  .days = 90,
					  .key = ISSUE_ED25519,
					  .ca = ca.cert,
					  .ca_key = ca.key };
	assert_int_equal(issue_make(&process.env, &options, &issued), 0);
	spokei_vfiles_put(world.files, "/ca.pem", ca.cert);
	spokei_vfiles_put(world.files, "/provider.pem", issued.cert);
	spokei_vfiles_put(world.files, "/provider.key", issued.key);
}

STEP(tear_down)
{
	spokei_world_process_fini(&process);
	spokei_world_fini(&world);
}

GROUP(set_up, tear_down);

/* Starts a provider that listens at 10.0.0.1:20880, writes its events, and ends it. */
static void collect(const struct spoke_provider_options *options, const char *parameters,
		    char text[8192])
{
	const struct spoke_engine_options with = { .env = &process.env };
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
		spokei_vfiles_put(world.files, "a.conf", file);
		assert_int_equal(spoke_config_load(&process.env, "a.conf", NULL, NULL,
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
