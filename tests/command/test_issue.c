/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that spoke makes for trying. */
#include "core/virtual/world.h"
#include "examples/spoke/issue.h"
#include "tests/support/test.h"

#include <string.h>

static struct spokei_world world;
static struct spokei_world_process process;
static struct issued ca;
static struct issued issued;

STEP(set_up)
{
	const struct issue_options options = { .name = "authority" };

	assert_true(spokei_world_init(&world, 1));
	spokei_world_process_init(&process, &world);
	assert_int_equal(issue_make(&process.env, &options, &ca), 0);
}

STEP(tear_down)
{
	spokei_world_process_fini(&process);
	spokei_world_fini(&world);
}

FIXTURE(set_up, tear_down);

static int issue(const char *names)
{
	const struct issue_options options = {
		.name = "provider",
		.names = names,
		.days = 1,
		.key = ISSUE_ED25519,
		.ca = ca.cert,
		.ca_key = ca.key,
	};

	return issue_make(&process.env, &options, &issued);
}

TEST(names_that_are_none_are_refused)
{
	static const char *const wrong[] = {
		"",         "dns:",
		"dns:a b",  "dns:.a",
		"dns:a..b", "dns:*",
		"dns:a/b",  "uri:",
		"uri:x",    "uri:a: b",
		"ip:1.2.3", "ip:10.0.0.1/8",
		"a.test",   "dns:a.test,email:x",
		"ip:::g",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (issue(wrong[i]) != SPOKE_EINVAL)
			fail_msg("\"%s\" is taken", wrong[i]);
		assert_int_not_equal(strlen(issued.why), 0);
		assert_string_equal(issued.key, "");
	}
	assert_int_equal(issue("dns:*.a.test, uri:spiffe://a/b, ip:::1, ip:10.0.0.1"), 0);
}

TEST(certificate_that_may_not_sign_is_refused)
{
	static struct issued other;
	struct issue_options options = { .name = "x", .names = "dns:x" };

	assert_int_equal(issue("dns:a.test"), 0);
	options.ca = issued.cert;
	options.ca_key = issued.key;
	assert_int_equal(issue_make(&process.env, &options, &other), SPOKE_EINVAL);
	assert_non_null(strstr(other.why, "may not sign"));
	options.ca = ca.cert;
	assert_int_equal(issue_make(&process.env, &options, &other), SPOKE_EINVAL);
	assert_non_null(strstr(other.why, "belongs to another"));
	options.ca_key = "no PEM";
	assert_int_equal(issue_make(&process.env, &options, &other), SPOKE_EINVAL);
}
