/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that spoke makes for trying. */
#include "tests/support/test.h"
#include "tests/transport/stream/issuer.h"

#include <string.h>

FIXTURE(issuer_set_up, issuer_tear_down);

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
		if (issuer_issue(wrong[i], 1) != SPOKE_EINVAL)
			fail_msg("\"%s\" is taken", wrong[i]);
		assert_int_not_equal(strlen(issuer.issued.why), 0);
		assert_string_equal(issuer.issued.key, "");
	}
	assert_int_equal(issuer_issue("dns:*.a.test, uri:spiffe://a/b, ip:::1, ip:10.0.0.1", 1), 0);
}

TEST(certificate_that_may_not_sign_is_refused)
{
	static struct issued other;
	struct issue_options options = { .name = "x", .names = "dns:x" };

	assert_int_equal(issuer_issue("dns:a.test", 1), 0);
	options.ca = issuer.issued.cert;
	options.ca_key = issuer.issued.key;
	assert_int_equal(issue_make(&issuer.process.env, &options, &other), SPOKE_EINVAL);
	assert_non_null(strstr(other.why, "may not sign"));
	options.ca = issuer.ca.cert;
	assert_int_equal(issue_make(&issuer.process.env, &options, &other), SPOKE_EINVAL);
	assert_non_null(strstr(other.why, "belongs to another"));
	options.ca_key = "no PEM";
	assert_int_equal(issue_make(&issuer.process.env, &options, &other), SPOKE_EINVAL);
}
