/* SPDX-License-Identifier: Apache-2.0 */
/* A registry that lists more providers than a consumer uses. */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define MANY (SPOKEI_ENDPOINTS_MAX + 3)

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
	struct spoke_event event;
	unsigned count = 0;

	for (uint64_t number = 1; spoke_event_get(dirrig.engine, number, &event) == 0;
	     number = event.number + 1)
		count += strstr(event.text, words) != NULL;
	return count;
}

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(crowded_list_is_cut_and_told_once)
{
	dirrig_consume("?lazy=true", &presets);
	assert_int_equal(list_crowd(SPOKEI_ENDPOINTS_MAX), 0);
	assert_int_equal(events_with("providers ignored"), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(list_crowd(MANY), 0);
		assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0),
				 SPOKEI_ENDPOINTS_MAX);
	}
	assert_int_equal(events_with("3 providers ignored; the first 4096 are used"), 1);
	assert_int_equal(list_crowd(2), 0);
	assert_int_equal(list_crowd(MANY), 0);
	assert_int_equal(events_with("3 providers ignored"), 2);
}
