/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine tells the service manager, and when, in a virtual world. */
#include "core/engine/engine.h"
#include "core/engine/notify.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/notify.h>
#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

enum {
	TOLD_MAX = 64,
};

static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	uint64_t watchdog_ns;
	int error; /* of the next messages */
	unsigned tries;
	unsigned count;
	char told[TOLD_MAX][400];
} rig;

static int take_message(void *ctx, const char *text)
{
	assert_ptr_equal(ctx, rig.process.env.ctx);
	rig.tries++;
	if (rig.error)
		return rig.error;
	assert_true(rig.count < TOLD_MAX);
	(void)snprintf(rig.told[rig.count++], sizeof(rig.told[0]), "%s", text);
	return 0;
}

static uint64_t get_watchdog(void *ctx)
{
	(void)ctx;
	return rig.watchdog_ns;
}

static const struct spoke_manager manager = { .notify = take_message, .watchdog = get_watchdog };

static int set_up(void **state)
{
	struct spoke_engine_options options = { .env = &rig.process.env };

	(void)state;
	memset(&rig, 0, sizeof(rig));
	if (!spokei_world_init(&rig.world, 5))
		return -1;
	spokei_world_process_init(&rig.process, &rig.world);
	rig.process.env.manager = &manager;
	return spoke_engine_new(&options, &rig.engine);
}

static int tear_down(void **state)
{
	(void)state;
	spoke_engine_free(rig.engine);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
	return 0;
}

FIXTURE(set_up, tear_down);

static void pass(uint64_t ns)
{
	spokei_world_run(&rig.world, rig.world.now_ns + ns);
}

/* Asserts that these are all messages since the last call. */
static void assert_told(const char *first, const char *second)
{
	unsigned count = first ? second ? 2 : 1 : 0;

	assert_int_equal(rig.count, count);
	if (first)
		assert_string_equal(rig.told[0], first);
	if (second)
		assert_string_equal(rig.told[1], second);
	rig.count = 0;
}

static void notify(const char *status)
{
	assert_int_equal(spoke_engine_notify(rig.engine, status), 0);
}

TEST(engine_says_nothing_unless_asked)
{
	rig.watchdog_ns = S;
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, false);
	pass(10 * S);
	assert_int_equal(spoke_engine_drain(rig.engine, S), 0);
	pass(S);
	assert_int_equal(rig.tries, 0);
}

TEST(ready_carries_status_in_one_line)
{
	static char text[400];

	notify(NULL);
	assert_told("READY=1", NULL);
	notify("it listens\nSTOPPING=1\x7f");
	assert_told("READY=1\nSTATUS=it listens STOPPING=1 ", NULL);
	memset(text, 'x', sizeof(text) - 1);
	notify(text);
	assert_int_equal(strlen(rig.told[0]), strlen("READY=1\nSTATUS=") + SPOKE_NOTIFY_STATUS_MAX);
	rig.count = 0;
	pass(100 * S);
	assert_told(NULL, NULL);
}

TEST(watchdog_gets_two_signs_in_its_time)
{
	rig.watchdog_ns = 10 * S;
	notify("up");
	assert_told("READY=1\nSTATUS=up", NULL);
	pass(4999 * MS);
	assert_told(NULL, NULL);
	pass(10 * MS);
	assert_told("WATCHDOG=1", NULL);
	notify("still up");
	assert_told("READY=1\nSTATUS=still up", NULL);
	pass(4980 * MS);
	assert_told(NULL, NULL);
	pass(50 * MS);
	assert_told("WATCHDOG=1", NULL);
	pass(50 * S);
	assert_in_range(rig.count, 9, 11);
}

TEST(drain_stops_once_and_for_ever)
{
	notify("up");
	rig.count = 0;
	assert_int_equal(spoke_engine_drain(rig.engine, 10 * S), 0);
	assert_told("STOPPING=1\nSTATUS=finishes running requests and calls", NULL);
	assert_int_equal(spoke_engine_drain(rig.engine, 0), 0);
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, false);
	assert_told(NULL, NULL);
}

TEST(reload_is_told_with_its_time_and_result)
{
	char wanted[80];

	notify("up");
	rig.count = 0;
	(void)snprintf(wanted, sizeof(wanted),
		       "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reads its settings",
		       (unsigned long long)(rig.process.env.now(rig.process.env.ctx) / 1000));
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, true);
	assert_told(wanted, "READY=1\nSTATUS=up (errors in the settings file)");
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, false);
	assert_string_equal(rig.told[1], "READY=1\nSTATUS=up");
}

TEST(full_queue_is_tried_again_with_the_newest_state)
{
	rig.error = -EAGAIN;
	notify("up");
	pass(950 * MS);
	assert_int_equal(rig.tries, 10);
	spokei_notify_reloading(rig.engine);
	spokei_notify_reloaded(rig.engine, false);
	rig.error = 0;
	pass(110 * MS);
	assert_told("READY=1\nSTATUS=up", NULL);
	pass(10 * S);
	assert_told(NULL, NULL);
}

TEST(missed_sign_of_life_is_tried_again_soon)
{
	rig.watchdog_ns = 10 * S;
	notify(NULL);
	rig.count = 0;
	rig.error = -EAGAIN;
	pass(5010 * MS);
	rig.error = 0;
	pass(110 * MS);
	assert_told("WATCHDOG=1", NULL);
}

static unsigned events(const char *part)
{
	struct spoke_event event;
	unsigned count = 0;

	for (uint64_t number = 1; spoke_event_get(rig.engine, number, &event) == 0;
	     number = event.number + 1)
		count += strstr(event.text, part) != NULL;
	return count;
}

TEST(absent_manager_is_no_error)
{
	rig.error = -ENOENT;
	notify("up");
	pass(10 * S);
	assert_int_equal(rig.tries, 1);
	assert_int_equal(events("NOTIFY_SOCKET"), 0);
	rig.process.env.manager = NULL;
	notify("up");
}

TEST(other_errors_are_logged_once)
{
	rig.watchdog_ns = S;
	rig.error = -EACCES;
	notify("up");
	pass(10 * S);
	assert_int_equal(events("NOTIFY_SOCKET cannot be notified"), 1);
}
