/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen at in config files: secrets in messages about them, and TLS. */
#include "tests/core/memory.h"
#include "tests/support/test.h"

#include <spoke/config.h>
#include <spoke/host.h>

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct memory memory;
static char told[1024];

static void tell(void *arg, const char *sentence)
{
	(void)arg;
	(void)snprintf(told, sizeof(told), "%s", sentence);
}

static int read_text(const char *text, struct spoke_config **ret_config)
{
	memory_init(&memory);
	memory.env.net = spoke_host_env()->net;
	told[0] = '\0';
	return spoke_config_parse(&memory.env, "a.conf", (struct spoke_span){ text, strlen(text) },
				  tell, NULL, ret_config);
}

TEST(messages_hide_secrets_in_malformed_urls)
{
	static const char *const cases[][2] = {
		{ "listen = dubbo://1.1.1.1:x?mode=1&token=hush",
		  "a.conf:2: listen = dubbo://1.1.1.1:x?mode=1&token=***: a port is a number, e.g. "
		  "20880" },
		{ "allow.from = a?password=hush, 1.1.1.1",
		  "a.conf:2: allow.from = a?password=***, 1.1.1.1: entry 1, a?password=***: not an "
		  "address in digits, a range like 10.0.0.0/8, or unix" },
		{ "advertise = \"a?say.Token=hush",
		  "a.conf:2: advertise = \"a?say.Token=***: missing closing quotation mark" },
	};
	struct spoke_config *config;
	char text[256];

	for (size_t i = 0; i < COUNT(cases); i++) {
		(void)snprintf(text, sizeof(text), "[provider]\n%s\n", cases[i][0]);
		assert_int_equal(read_text(text, &config), SPOKE_ESYNTAX);
		assert_string_equal(told, cases[i][1]);
		assert_int_equal(memory.bytes, 0);
	}
}

TEST(tls_of_section_refuses_shared_memory)
{
	static const char why[] = "shared memory has no TLS; write shm:/PATH?tls=off, or use "
				  "unix:/PATH";
	static const char *const wrong[] = {
		"[provider]\nlisten = shm:/a\ntls = on\n",
		"[provider]\ntls = optional\nlisten = unix:/a, dubbo+shm:/b\n",
		"[provider]\ntls = on\nlisten = shm:/a?tls=off, shm:/b?mode=0600\n",
	};
	struct spoke_config *config;

	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(read_text(wrong[i], &config), SPOKE_ESYNTAX);
		assert_non_null(strstr(told, why));
		assert_int_equal(strncmp(told, i ? "a.conf:3: listen = " : "a.conf:2: listen = ",
					 strlen("a.conf:2: listen = ")),
				 0);
		assert_int_equal(memory.bytes, 0);
	}
}

TEST(shared_memory_is_fine_where_tls_is_off)
{
	static const char *const fine[] = {
		"[provider]\nlisten = shm:/a\n",
		"[provider]\nlisten = shm:/a\ntls = off\n",
		"[provider]\nlisten = shm:/a?tls=off, unix:/b\ntls = on\n",
		"[provider]\nlisten = unix:/shm:/a\ntls = on\n",
		"[provider]\nlisten = shm:/a\n[consumer]\ntls = on\n",
		"[provider]\ntls = on\n",
	};
	struct spoke_config *config;

	for (size_t i = 0; i < COUNT(fine); i++) {
		assert_int_equal(read_text(fine[i], &config), SPOKE_OK);
		assert_string_equal(told, "");
		spoke_config_free(config);
		assert_int_equal(memory.bytes, 0);
	}
}

TEST(check_of_tls_reports_enomem)
{
	static const char text[] = "[provider]\nlisten = shm:/a?tls=off\ntls = on\n";
	struct spoke_config *config;
	int error = SPOKE_ENOMEM;

	for (unsigned fail_at = 1; error == SPOKE_ENOMEM; fail_at++) {
		assert_in_range(fail_at, 1, 100);
		memory_init(&memory);
		memory.env.net = spoke_host_env()->net;
		memory.fail_at = fail_at;
		error = spoke_config_parse(&memory.env, "a.conf",
					   (struct spoke_span){ text, strlen(text) }, tell, NULL,
					   &config);
	}
	assert_int_equal(error, SPOKE_OK);
	spoke_config_free(config);
	assert_int_equal(memory.bytes, 0);
}
