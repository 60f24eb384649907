/* SPDX-License-Identifier: Apache-2.0 */
/* The section of leases in config files, and secrets, which no message shows. */
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

static struct memory memory;
static char told[4096];

static void tell(void *arg, const char *sentence)
{
	size_t len = strlen(told);

	(void)arg;
	(void)snprintf(told + len, sizeof(told) - len, "%s\n", sentence);
}

/* Uses the real network functions to parse addresses. */
static void begin(void)
{
	memory_init(&memory);
	memory.env.net = spoke_host_env()->net;
	told[0] = '\0';
}

static int read_bytes(const char *text, size_t len, struct spoke_config **ret_config)
{
	begin();
	return spoke_config_parse(&memory.env, "a.conf", (struct spoke_span){ text, len }, tell,
				  NULL, ret_config);
}

/* Reads one line of the section [lease]. */
static void reads(const char *line, const char *key, const char *value)
{
	struct spoke_config *config = NULL;
	char text[256];

	(void)snprintf(text, sizeof(text), "[lease]\n%s", line);
	assert_int_equal(read_bytes(text, strlen(text), &config), SPOKE_OK);
	assert_string_equal(spoke_config_get(config, "lease", key), value);
	spoke_config_free(config);
	assert_int_equal(memory.bytes, 0);
}

static void wrong(const char *text, const char *sentences)
{
	struct spoke_config *config = NULL;

	assert_int_equal(read_bytes(text, strlen(text), &config), SPOKE_ESYNTAX);
	assert_null(config);
	assert_string_equal(told, sentences);
	assert_int_equal(memory.bytes, 0);
}

TEST(store_of_leases_is_checked)
{
	reads("store = redis://:pw@h/1?lease.ttl=1s", "store", "redis://:pw@h/1?lease.ttl=1s");
	reads("store = \"sentinel://a:1,[::1]/m\"", "store", "sentinel://a:1,[::1]/m");
	reads("password = \"a # b\"", "password", "a # b");
	wrong("[lease]\nstore = redis://h/x\nttl = 99ms\n",
	      "a.conf:2: store = redis://h/x: a database is a number, e.g. "
	      "redis://127.0.0.1:6379/0\n"
	      "a.conf:3: ttl = 99ms: too small; it goes from 100ms to 24h\n");
}

TEST(secrets_are_not_shown)
{
	static const char *const lines[] = {
		"[consumer]\npassword = geheim\n",
		"[lease]\npasword = geheim\n",
		"[lease]\npassword = \"geheim\n",
		"[lease]\npassword = a\npassword = geheim\n",
		"[lease]\nsentinel.pass = geheim\n",
		"[lease]\nPASSWORD = geheim\n",
		"[lease]\nstore = redis://:geheim@h/x\n",
		"[lease]\nstore = redis:geheim@h\n",
		"[lease]\nstore = redis://h?password=geheim\n",
		"[provider]\ntoken = \"geheim\n",
		"[consumer]\ntokn = geheim\n",
		"password = geheim\n",
		"[somewhere]\npassword = \"geheim\n",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct spoke_config *config = NULL;

		assert_int_equal(read_bytes(lines[i], strlen(lines[i]), &config), SPOKE_ESYNTAX);
		assert_null(strstr(told, "geheim"));
		if (strstr(lines[i], "store"))
			assert_non_null(strstr(told, "store = ...: "));
		else
			assert_non_null(strstr(told, " = ***: "));
	}
	wrong("[lease]\npasword = geheim\n",
	      "a.conf:2: pasword = ***: no such key; did you mean password?\n");
}
