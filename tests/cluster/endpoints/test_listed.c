/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a registry as a program sees them: its balancer, and what is said about ignored URLs. */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"

#include <string.h>

static size_t pick_last(void *memory, const struct spoke_balancer_candidates *candidates,
			const struct spoke_balancer_choice *choice)
{
	(void)memory;
	(void)choice;
	return candidates->able[candidates->count - 1] ? candidates->count - 1 : SPOKE_NO_ENDPOINT;
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(balancer_of_a_program_places_calls)
{
	static const struct spoke_balancer last = { .name = "last", .pick = pick_last };
	static const struct spoke_consumer_options options = { .balancer = &last };

	for (unsigned i = 0; i < 3; i++)
		dirrig_start(i);
	dirrig_consume("", &options);
	LIST(A, B, C);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(2), 4);
	LIST(A, B);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_OK);
	assert_int_equal(dirrig_served(1), 1);
}

static const struct spoke_consumer_options presets;

static unsigned count_events(const char *words)
{
	struct spoke_event event = { 0 };
	unsigned count = 0;

	while (spoke_event_get(dirrig.engine, event.number + 1, &event) == 0)
		count += strstr(event.text, words) != NULL;
	return count;
}

TEST(ignored_urls_are_explained)
{
	dirrig_consume("?version=1", &presets);
	LIST("tri://127.0.0.1:20880/demo.Echo?version=1", A "?version=1&disabled=true",
	     B "?version=1&enabled=false", "dubbo://127.0.0.1:20882/demo.Other");
	assert_int_equal(count_events("ignored because spoke does not have its protocol: tri://"),
			 1);
	assert_int_equal(count_events("ignored because it is disabled: dubbo://127.0.0.1:2088"), 2);
	assert_int_equal(count_events("version or group"), 0);
	/* The other version is told once, until there are providers again. */
	LIST(A "?version=2&group=blue", B);
	LIST(B, A "?version=2&group=blue");
	assert_int_equal(count_events(
				 "list of demo.Echo: 2 providers ignored because their version "
				 "or group is another one, e.g. version=2 group=blue"),
			 1);
	assert_int_equal(count_events("version or group"), 1);
	LIST(A "?version=1&enabled=false&disabled=false", B);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 1);
	assert_int_equal(count_events("version or group"), 1);
}
