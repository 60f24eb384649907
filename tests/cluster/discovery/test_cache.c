/* SPDX-License-Identifier: Apache-2.0 */
/* The cache file of the last provider list. */
#include "tests/cluster/discovery/keeperrig.h"
#include "tests/support/test.h"

#include "core/engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "# providers of demo.Echo\n"

static const struct spokei_keeper_options cached = { .cache = "cache" };

FIXTURE(keeperrig_set_up, keeperrig_tear_down);

TEST(last_list_is_written_to_cache)
{
	fakereg_add(ECHO, PLACE);
	fakereg_add(ECHO, OTHER "?weight=1");
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_pass(400 * MS);
	assert_int_equal(keeperrig.writes, 0);
	keeperrig_pass(200 * MS);
	assert_int_equal(keeperrig.writes, 1);
	assert_string_equal(keeperrig.file, HEAD PLACE "\n" OTHER "?weight=1\n");
	fakereg_remove(ECHO, PLACE);
	fakereg_remove(ECHO, OTHER "?weight=1");
	keeperrig_pass(SECOND);
	assert_int_equal(keeperrig.writes, 1); /* an empty list is not written */
}

TEST(cache_is_written_at_most_every_500_ms)
{
	char url[64];

	keeperrig_keep(&cached);
	keeperrig_subscribe();
	for (int i = 1; i <= 100; i++) {
		(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%d/demo.Echo", i);
		fakereg_add(ECHO, url);
		keeperrig_pass(50 * MS);
	}
	assert_in_range(keeperrig.writes, 8, 10);
	keeperrig_pass(SECOND);
	assert_non_null(strstr(keeperrig.file, ":100/"));
	keeperrig.writes = 0;
	fakereg_add("demo.Other", PLACE);
	keeperrig_pass(SECOND);
	assert_int_equal(keeperrig.writes, 0); /* nothing has changed */
}

TEST(pending_list_is_written_at_the_end)
{
	fakereg_add(ECHO, PLACE);
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.writes, 0);
	keeperrig_free();
	keeperrig_free_engine();
	assert_int_equal(keeperrig.writes, 1);
	assert_string_equal(keeperrig.file, HEAD PLACE "\n");
}

TEST(failed_cache_write_is_only_logged)
{
	keeperrig.file_error = -EACCES;
	keeperrig_keep(&cached);
	fakereg_add(ECHO, PLACE);
	keeperrig_subscribe();
	keeperrig_pass(SECOND);
	fakereg_add(ECHO, OTHER);
	keeperrig_pass(SECOND);
	assert_int_equal(keeperrig.writes, 2);
	assert_int_equal(keeperrig.count, 2);
	assert_int_equal(keeperrig_events("cannot be written"), 1);
	keeperrig.file_error = 0;
	fakereg_add("demo.Other", "dubbo://h"); /* delivers the same list again */
	keeperrig_pass(SECOND);
	assert_string_equal(keeperrig.file, HEAD PLACE "\n" OTHER "\n");
}

static void nothing(struct spoke_work *work)
{
	(void)work;
}

TEST(list_is_written_once_the_pool_has_room)
{
	static struct spoke_work other = { .run = nothing, .done = nothing };
	struct spoke_engine *engine = keeperrig.engine;

	fakereg_add(ECHO, PLACE);
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	engine->env->loop->pool_limit(engine->loop, 1, 1);
	keeperrig.process.pool_is_busy = true;
	assert_int_equal(engine->env->loop->offload(engine->loop, &other), 0);
	keeperrig_pass(2 * SECOND);
	assert_int_equal(keeperrig.writes, 0);
	keeperrig.process.pool_is_busy = false;
	keeperrig_pass(SECOND);
	assert_int_equal(keeperrig.writes, 1);
	assert_string_equal(keeperrig.file, HEAD PLACE "\n");
}

TEST(cached_list_is_used_while_registry_is_silent)
{
	fakereg.fails = SPOKE_ECONNECT;
	keeperrig_write_file(HEAD PLACE "\n\n" OTHER);
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	assert_int_equal(keeperrig.lists, 0); /* not from within the call */
	keeperrig_pass(MS);
	assert_int_equal(keeperrig.lists, 1);
	assert_int_equal(keeperrig.count, 2);
	assert_string_equal(keeperrig.first, PLACE);
	fakereg.fails = 0;
	fakereg_add(ECHO, OTHER);
	keeperrig_pass(RETRY_NS * 12 / 10 + 10 * MS);
	assert_int_equal(keeperrig.count, 1);
	assert_string_equal(keeperrig.first, OTHER);
	keeperrig_pass(SECOND);
	assert_string_equal(keeperrig.file, HEAD OTHER "\n");
}

TEST(empty_list_does_not_overwrite_cache)
{
	keeperrig_write_file(HEAD PLACE "\n");
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_pass(SECOND);
	assert_int_equal(keeperrig.lists, 2);
	assert_int_equal(keeperrig.count, 0);
	assert_string_equal(keeperrig.file, HEAD PLACE "\n");
}

TEST(damaged_lines_of_cache_are_skipped)
{
	static const char *const texts[] = {
		"",
		"# providers of demo.Other\n" PLACE "\n",
		"# providers of demo.Ech\n" PLACE "\n",
		"# providers of demo.Echo",
		HEAD,
		HEAD "\n\n\n# nothing\n\x01\n",
		PLACE "\n",
	};

	fakereg.fails = SPOKE_ECONNECT;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		keeperrig_write_file(texts[i]);
		keeperrig_keep(&cached);
		keeperrig_subscribe();
		keeperrig_pass(10 * MS);
		assert_int_equal(keeperrig.lists, 0);
		keeperrig_free();
		keeperrig_pass(SECOND);
	}
	keeperrig_write_file(HEAD "\x02\n" PLACE "\n\x01\n");
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.count, 1);
}

TEST(oversized_cache_is_ignored)
{
	size_t len = (32u << 20) + 1;

	fakereg.fails = SPOKE_ECONNECT;
	keeperrig_write_file("");
	free(keeperrig.file);
	keeperrig.file = calloc(1, len);
	keeperrig.file_len = len;
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.lists, 0);
	assert_int_equal(keeperrig_events("too large"), 1);
	keeperrig_free();
	keeperrig_pass(SECOND);
	keeperrig.file_len = len - 1;
	memset(keeperrig.file, '\n', keeperrig.file_len);
	memcpy(keeperrig.file, HEAD PLACE, strlen(HEAD PLACE));
	keeperrig_keep(&cached);
	keeperrig_subscribe();
	keeperrig_pass(10 * MS);
	assert_int_equal(keeperrig.count, 1);
}
