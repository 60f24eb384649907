/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the known name that is most similar to a misspelt one. */
#include "core/text/similar.h"
#include "tests/support/test.h"

#include <string.h>

static const char *const names[] = {
	"timeout", "heartbeat", "retries", NULL, "retry.period", "tcp"
};

#define COUNT (sizeof(names) / sizeof(names[0]))

static const char *name_at(const void *of, size_t i)
{
	assert_ptr_equal(of, names);
	return names[i];
}

TEST(nearest_name_is_found)
{
	static const struct {
		const char *name;
		const char *nearest;
	} cases[] = {
		{ "timeuot", "timeout" },
		{ "timeouts", "timeout" },
		{ "Timeout", "timeout" },
		{ "hartbet", "heartbeat" },
		{ "retry", NULL },
		{ "retrys", "retries" },
		{ "retry_period", "retry.period" },
		{ "tcq", "tcp" },
		{ "udp", NULL },
		{ "x", NULL },
		{ "", NULL },
		{ "frobnicate", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *nearest = spokei_similar_nearest(cases[i].name, name_at, names, COUNT);

		if (cases[i].nearest)
			assert_string_equal(nearest, cases[i].nearest);
		else
			assert_null(nearest);
	}
}

TEST(long_name_has_no_nearest_name)
{
	char name[3000];

	memset(name, 't', sizeof(name));
	for (size_t len = 40; len < sizeof(name); len++) {
		name[len] = '\0';
		assert_null(spokei_similar_nearest(name, name_at, names, COUNT));
		name[len] = 't';
	}
}
