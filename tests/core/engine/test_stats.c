/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and their names, the ring of events, and look-up of the wheel's classes. */
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/wheel.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct fixture {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	unsigned lines;
	enum spoke_log_level level;
	char line[SPOKEI_LOG_TEXT_MAX];
};

static struct fixture fixture;

static void note_line(void *ctx, const struct spoke_log_line *line)
{
	(void)ctx;
	fixture.lines++;
	fixture.level = line->level;
	(void)strncpy(fixture.line, line->text, sizeof(fixture.line) - 1);
}

static int set_up(void **state)
{
	struct spoke_engine_options options = { .env = &fixture.process.env };

	(void)state;
	memset(&fixture, 0, sizeof(fixture));
	scene_open(&fixture.world, 3);
	spokei_world_process_init(&fixture.process, &fixture.world);
	fixture.process.env.log = note_line;
	return spoke_engine_new(&options, &fixture.engine);
}

STEP(tear_down)
{
	scene_leave(&fixture.process, NULL, &fixture.engine);
	spokei_world_fini(&fixture.world);
}

FIXTURE(set_up, tear_down);

TEST(every_counter_has_its_name_in_small_letters_and_a_sentence)
{
#define STAT_CAPITALS(name, small, sentence) #name,
	static const char *const capitals[] = { SPOKE_STATS(STAT_CAPITALS) };
#undef STAT_CAPITALS

	for (unsigned stat = 0; stat < SPOKE_STAT_COUNT; stat++) {
		const char *name = spoke_stat_name((enum spoke_stat)stat);

		assert_int_equal(strcasecmp(name, capitals[stat]), 0);
		assert_null(strpbrk(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
		assert_true(strlen(spoke_stat_sentence((enum spoke_stat)stat)) > 0);
	}
	assert_string_equal(spoke_stat_name(SPOKE_STAT_CALLS_OK), "calls_ok");
	assert_string_equal(spoke_stat_sentence(SPOKE_STAT_CALLS), "calls begun");
}

TEST(unknown_counter_has_no_name_and_no_value)
{
	assert_null(spoke_stat_name(SPOKE_STAT_COUNT));
	assert_null(spoke_stat_sentence((enum spoke_stat) - 1));
	assert_int_equal(spoke_stat_get(fixture.engine, SPOKE_STAT_COUNT), 0);
	assert_int_equal(spoke_stat_get(fixture.engine, (enum spoke_stat) - 1), 0);
}

TEST(counters_begin_at_zero_and_add_up)
{
	struct spoke_engine *engine = fixture.engine;

	for (unsigned stat = 0; stat < SPOKE_STAT_COUNT; stat++)
		assert_int_equal(spoke_stat_get(engine, (enum spoke_stat)stat), 0);
	spokei_count(engine, SPOKE_STAT_READS);
	spokei_count(engine, SPOKE_STAT_READS);
	spokei_count_by(engine, SPOKE_STAT_BYTES_READ, UINT64_C(5000000000));
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_READS), 2);
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_BYTES_READ), UINT64_C(5000000000));
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_WRITES), 0);
}

static void ignore_alarm(struct spoke_alarm *alarm)
{
	(void)alarm;
}

TEST(a_late_turn_is_counted_once)
{
	struct spoke_alarm alarm = { 0 };

	assert_int_equal(spoke_alarm_every(fixture.engine, &alarm, 10 * MS, ignore_alarm),
			 SPOKE_OK);
	spokei_world_run(&fixture.world, fixture.world.now_ns + 30 * MS);
	spokei_world_stall(&fixture.world, 40 * MS); /* less than the threshold */
	spokei_world_run(&fixture.world, fixture.world.now_ns + 30 * MS);
	assert_int_equal(spoke_stat_get(fixture.engine, SPOKE_STAT_TURNS_LATE), 0);
	spokei_world_stall(&fixture.world, 100 * MS);
	spokei_world_run(&fixture.world, fixture.world.now_ns + 30 * MS);
	assert_int_equal(spoke_stat_get(fixture.engine, SPOKE_STAT_TURNS_LATE), 1);
	assert_true(spoke_alarm_cancel(&alarm));
}

TEST(an_engine_to_which_nothing_happened_has_no_events)
{
	struct spoke_event event;

	assert_int_equal(spoke_event_get(fixture.engine, 0, &event), SPOKE_ENOENT);
	assert_int_equal(spoke_event_get(fixture.engine, 1, &event), SPOKE_ENOENT);
}

TEST(events_are_numbered_from_one_and_can_be_followed)
{
	struct spoke_event event = { 0 };

	spokei_world_run(&fixture.world, fixture.world.now_ns + 5 * MS);
	spokei_event(fixture.engine, SPOKE_OK, "conn %d opened", 7);
	spokei_event(fixture.engine, SPOKE_ELOST, "conn %d closed", 7);
	assert_int_equal(spoke_event_get(fixture.engine, 0, &event), SPOKE_OK);
	assert_int_equal(event.number, 1);
	assert_int_equal(event.at_ns, spoke_engine_now(fixture.engine));
	assert_int_equal(event.error, SPOKE_OK);
	assert_string_equal(event.text, "conn 7 opened");
	assert_int_equal(spoke_event_get(fixture.engine, 2, &event), SPOKE_OK);
	assert_int_equal(event.number, 2);
	assert_int_equal(event.error, SPOKE_ELOST);
	assert_string_equal(event.text, "conn 7 closed");
	assert_int_equal(spoke_event_get(fixture.engine, 3, &event), SPOKE_ENOENT);
	assert_int_equal(spoke_event_get(fixture.engine, UINT64_MAX, &event), SPOKE_ENOENT);
}

TEST(the_ring_forgets_the_oldest_events)
{
	struct spoke_event event = { 0 };
	uint64_t number = 1;
	unsigned found = 0;

	for (unsigned i = 1; i <= SPOKE_EVENTS; i++)
		spokei_event(fixture.engine, SPOKE_OK, "event %u", i);
	assert_int_equal(spoke_event_get(fixture.engine, 1, &event), SPOKE_OK);
	assert_string_equal(event.text, "event 1");
	for (unsigned i = SPOKE_EVENTS + 1; i <= SPOKE_EVENTS + 10; i++)
		spokei_event(fixture.engine, SPOKE_OK, "event %u", i);
	while (spoke_event_get(fixture.engine, number, &event) == SPOKE_OK) {
		char text[32];

		assert_int_equal(event.number, found == 0 ? 11 : number);
		(void)snprintf(text, sizeof(text), "event %u", (unsigned)event.number);
		assert_string_equal(event.text, text);
		number = event.number + 1;
		found++;
	}
	assert_int_equal(found, SPOKE_EVENTS);
}

TEST(the_text_of_an_event_is_cut_with_dots)
{
	struct spoke_event event = { 0 };
	char text[SPOKE_EVENT_TEXT + 1];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	spokei_event(fixture.engine, SPOKE_OK, "%s", text + 1);
	spokei_event(fixture.engine, SPOKE_OK, "%s", text);
	assert_int_equal(spoke_event_get(fixture.engine, 1, &event), SPOKE_OK);
	assert_string_equal(event.text, text + 1);
	assert_int_equal(spoke_event_get(fixture.engine, 2, &event), SPOKE_OK);
	assert_int_equal(strlen(event.text), SPOKE_EVENT_TEXT - 1);
	assert_string_equal(event.text + SPOKE_EVENT_TEXT - 5, "x...");
}

TEST(event_is_logged_and_a_failure_as_warning_with_reason)
{
	spokei_event(fixture.engine, SPOKE_OK, "provider %s", "began");
	assert_int_equal(fixture.lines, 1);
	assert_int_equal(fixture.level, SPOKE_LOG_INFO);
	assert_string_equal(fixture.line, "provider began");
	spokei_event(fixture.engine, SPOKE_ELOST, "conn %s", "ended");
	assert_int_equal(fixture.lines, 2);
	assert_int_equal(fixture.level, SPOKE_LOG_WARN);
	assert_string_equal(fixture.line, "conn ended: the connection was lost");
}

TEST(logged_failure_has_its_reason_once)
{
	spokei_event(fixture.engine, SPOKE_EINVAL, "option %s: use on or off", "tls");
	assert_string_equal(fixture.line, "option tls: use on or off");
	spokei_event(fixture.engine, SPOKE_ENOENT, "token.file = /none: No such file or directory");
	assert_string_equal(fixture.line, "token.file = /none: No such file or directory");
	spokei_event(fixture.engine, SPOKE_EPROTOCOL, "closed because %s",
		     spoke_strerror(SPOKE_EPROTOCOL));
	assert_string_equal(fixture.line, "closed because the peer violated the protocol");
	spokei_event(fixture.engine, SPOKE_ELIMIT, "failback.tasks = 2 is reached (tickets)");
	assert_string_equal(fixture.line, "failback.tasks = 2 is reached (tickets)");
	spokei_event(fixture.engine, SPOKE_EPROTOCOL, "lost the connection");
	assert_string_equal(fixture.line, "lost the connection: the peer violated the protocol");
}

TEST(failed_handshakes_share_the_log_limit_of_refused_callers)
{
	for (unsigned i = 0; i < 20; i++)
		spokei_event(fixture.engine, i % 2 ? SPOKE_EHANDSHAKE : SPOKE_EFORBIDDEN,
			     "refused");
	assert_int_equal(fixture.lines, SPOKEI_LOG_RATE);
	spokei_event(fixture.engine, SPOKE_ETIMEOUT, "call %u", 1);
	assert_int_equal(fixture.lines, SPOKEI_LOG_RATE + 1);
}

TEST(connections_keep_no_other_line_out_of_the_log)
{
	for (unsigned i = 0; i < 20; i++)
		spokei_event_of_peer(fixture.engine, "%u connected", i);
	assert_int_equal(fixture.lines, SPOKEI_LOG_RATE);
	spokei_event(fixture.engine, SPOKE_OK, "drain begins");
	assert_string_equal(fixture.line, "drain begins");
}

static void *due_arg;

static void one_due(struct spoke_timer *timer, void *arg)
{
	(void)timer;
	due_arg = arg;
}

static void other_due(struct spoke_timer *timer, void *arg)
{
	(void)timer;
	(void)arg;
}

TEST(a_callback_has_one_class_on_an_engine)
{
	struct spoke_timer timer = { 0 };
	unsigned one = 0;
	unsigned other = 0;
	unsigned again = 0;

	assert_int_equal(spokei_engine_class(fixture.engine, "one", one_due, &one), SPOKE_OK);
	assert_int_equal(spokei_engine_class(fixture.engine, "other", other_due, &other), SPOKE_OK);
	assert_int_equal(spokei_engine_class(fixture.engine, "one", one_due, &again), SPOKE_OK);
	assert_int_equal(one, again);
	assert_int_not_equal(one, other);
	assert_int_equal(spoke_wheel_schedule(fixture.engine->wheel, &timer, one,
					      fixture.world.now_ns + MS),
			 SPOKE_WHEEL_OK);
	spokei_world_run(&fixture.world, fixture.world.now_ns + 3 * MS);
	assert_ptr_equal(due_arg, fixture.engine);
}

TEST(classes_beyond_the_wheels_are_refused)
{
	unsigned found;
	int added = 0;

	while (spoke_wheel_add_class(fixture.engine->wheel, "filler", other_due, NULL, &found) ==
	       SPOKE_WHEEL_OK)
		added++;
	assert_true(added > 0);
	assert_int_equal(spokei_engine_class(fixture.engine, "one", one_due, &found), SPOKE_ELIMIT);
	assert_int_equal(spokei_engine_class(fixture.engine, "one", one_due, &found), SPOKE_ELIMIT);
}

TEST(the_scratch_can_be_written_to_its_last_byte)
{
	memset(fixture.engine->scratch, 1, SPOKEI_ENGINE_SCRATCH);
	assert_int_equal(fixture.engine->scratch[SPOKEI_ENGINE_SCRATCH - 1], 1);
}
