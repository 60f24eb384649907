/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a registry as a program sees them: its balancer, ignored URLs, and lists that are too
 * long or without a usable provider. */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static size_t pick_last(void *memory, const struct spoke_balancer_candidates *candidates,
			const struct spoke_balancer_choice *choice)
{
	(void)memory;
	(void)choice;
	return candidates->able[candidates->count - 1] ? candidates->count - 1 : SPOKE_NO_ENDPOINT;
}

#define MAX 500u /* endpoints.max */
#define MANY (MAX + 3)

static const struct spoke_consumer_options presets;

/* Lists providers at the first `count` addresses. Returns the result. */
static int list_crowd(size_t count)
{
	static struct spoke_url urls[MANY];
	char text[80];
	int error;

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(text, sizeof(text), "dubbo://10.0.%zu.%zu:20880/demo.Echo", i / 250,
			       i % 250);
		assert_int_equal(spoke_url_parse(&dirrig.process.env, text, strlen(text), &urls[i],
						 NULL),
				 0);
	}
	error = spokei_directory_set(dirrig.consumer->directory, urls, count);
	for (size_t i = 0; i < count; i++)
		spoke_url_fini(&urls[i]);
	return error;
}

/* Returns the number of events that contain these words. */
static unsigned events_with(const char *words)
{
	return scene_events(dirrig.engine, words);
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

static unsigned count_events(const char *words)
{
	return scene_events(dirrig.engine, words);
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

TEST(crowded_list_is_cut_and_told_once)
{
	dirrig_consume("?lazy=true&endpoints.max=500", &presets);
	assert_int_equal(list_crowd(MAX), 0);
	assert_int_equal(events_with("providers ignored"), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(list_crowd(MANY), 0);
		assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), MAX);
	}
	assert_int_equal(events_with("3 providers ignored; endpoints.max = 500 are used"), 1);
	assert_int_equal(list_crowd(2), 0);
	assert_int_equal(list_crowd(MANY), 0);
	assert_int_equal(events_with("3 providers ignored"), 2);
}

TEST(only_own_disabled_providers_empty_a_protected_list)
{
	static const char *const foreign[] = {
		"dubbo://127.0.0.1:20880/demo.Other?disabled=true",
		A "?disabled=true&group=other",
		A "?disabled=true&version=2",
	};

	dirrig_start(0);
	dirrig_consume("", &presets);
	dirrig_beat(MS);
	dirrig.consumer->directory->settings.protects = true;
	LIST(A);
	dirrig_pass(10 * MS);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		LIST(foreign[i]);
		assert_int_equal(dirrig_call(), SPOKE_OK);
	}
	LIST(A "?disabled=true");
	assert_int_equal(dirrig_call(), SPOKE_ENOPROVIDER);
}

TEST(kept_providers_are_told_once_until_list_has_one)
{
	dirrig_start(0);
	dirrig_consume("", &presets);
	dirrig_beat(MS);
	dirrig.consumer->directory->settings.protects = true;
	for (unsigned i = 1; i <= 2; i++) {
		LIST(A);
		dirrig_pass(10 * MS);
		for (unsigned repeats = 0; repeats < 3; repeats++) {
			assert_int_equal(spokei_directory_set(dirrig.consumer->directory, NULL, 0),
					 0);
			assert_int_equal(dirrig_call(), SPOKE_OK);
		}
		assert_int_equal(events_with("the known ones are kept"), i);
	}
}
