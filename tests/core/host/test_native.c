/* SPDX-License-Identifier: Apache-2.0 */
/* An engine in a libev loop that its user runs. */
#include "core/engine/engine.h"
#include "core/engine/source.h"
#include "tests/support/test.h"

#include <spoke/engine.h>

#include <ev.h>

struct alarmed {
	struct spoke_alarm alarm;
	struct spoke_engine *engine;
	int count;
	int until; /* number of calls after which the engine is stopped */
};

static void count_alarm(struct spoke_alarm *alarm)
{
	struct alarmed *alarmed = spoke_container_of(alarm, struct alarmed, alarm);

	if (++alarmed->count == alarmed->until)
		spoke_engine_stop(alarmed->engine);
}

static void turn_again(struct spoke_alarm *alarm)
{
	struct alarmed *alarmed = spoke_container_of(alarm, struct alarmed, alarm);

	assert_int_equal(spoke_engine_run(alarmed->engine), SPOKE_ESTATE);
	assert_int_equal(spoke_engine_turn(alarmed->engine, false), SPOKE_ESTATE);
	count_alarm(alarm);
}

TEST(an_engine_turns_in_a_loop_of_the_users)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct spoke_engine_options options = { .native = ev };
	struct alarmed alarmed = { .until = 3 };

	assert_int_equal(spoke_engine_new(&options, &alarmed.engine), SPOKE_OK);
	assert_int_equal(spoke_alarm_every(alarmed.engine, &alarmed.alarm, MS, count_alarm),
			 SPOKE_OK);
	(void)ev_run(ev, 0); /* ended by count_alarm() */
	assert_int_equal(alarmed.count, 3);
	spoke_engine_free(alarmed.engine);
	ev_loop_destroy(ev);
}

static void break_loop(struct ev_loop *ev, struct ev_timer *timer, int events)
{
	(void)timer;
	(void)events;
	ev_break(ev, EVBREAK_ALL);
}

/* Runs the loop for at most `seconds`. Returns whether it was broken out of earlier. */
static bool is_broken(struct ev_loop *ev, double seconds)
{
	struct ev_timer timer;
	bool broken;

	ev_now_update(ev);
	ev_timer_init(&timer, break_loop, seconds, 0.);
	ev_timer_start(ev, &timer);
	(void)ev_run(ev, 0);
	broken = ev_is_active(&timer);
	ev_timer_stop(ev, &timer);
	return broken;
}

TEST(a_drain_breaks_a_loop_of_the_users_once)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct spoke_engine_options options = { .native = ev };
	struct spoke_engine *engine;

	assert_int_equal(spoke_engine_new(&options, &engine), SPOKE_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(spoke_engine_drain(engine, UINT64_MAX), SPOKE_OK);
		assert_true(is_broken(ev, 10.));
		assert_false(is_broken(ev, 0.02));
		assert_false(is_broken(ev, 0.02));
	}
	/* But spoke_engine_run() returns at once. */
	assert_int_equal(spoke_engine_run(engine), SPOKE_OK);
	spoke_engine_free(engine);
	ev_loop_destroy(ev);
}

TEST(engine_on_user_loop_refuses_turn_from_its_callback)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct spoke_engine_options options = { .native = ev };
	struct alarmed alarmed = { .until = 2 };

	assert_int_equal(spoke_engine_new(&options, &alarmed.engine), SPOKE_OK);
	assert_int_equal(spoke_alarm_every(alarmed.engine, &alarmed.alarm, MS, turn_again),
			 SPOKE_OK);
	assert_true(is_broken(ev, 10.));
	assert_int_equal(alarmed.count, 2);
	assert_int_equal(spoke_engine_turn(alarmed.engine, false), SPOKE_OK);
	spoke_engine_free(alarmed.engine);
	ev_loop_destroy(ev);
}

/* A source that is woken by a watcher of the user's, which runs after the engine has settled. */
struct woken {
	struct spokei_source source;
	struct spoke_engine *engine;
	struct ev_loop *ev;
	struct ev_prepare prepare;
	unsigned times; /* that it is woken */
	unsigned served;
};

static bool woken_has(struct spokei_source *source)
{
	const struct woken *woken = spoke_container_of(source, struct woken, source);

	return woken->served < woken->times;
}

static bool woken_sleep(struct spokei_source *source)
{
	return !woken_has(source);
}

static void woken_ready(struct spokei_source *source)
{
	struct woken *woken = spoke_container_of(source, struct woken, source);

	woken->served++;
	ev_break(woken->ev, EVBREAK_ALL);
}

static void wake_late(struct ev_loop *ev, struct ev_prepare *prepare, int events)
{
	struct woken *woken = prepare->data;

	(void)ev;
	(void)events;
	assert_false(woken->engine->inside);
	assert_true(spokei_list_empty(&woken->engine->sources));
	woken->times++;
	spokei_source_wake(woken->engine, &woken->source);
}

TEST(source_woken_after_settle_keeps_loop_from_waiting)
{
	struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
	struct spoke_engine_options options = { .native = ev };
	struct woken woken = {
		.source = { .has = woken_has, .sleep = woken_sleep, .ready = woken_ready },
		.ev = ev,
	};

	/* Of the watchers of one priority, the one that was started first is called last. */
	ev_prepare_init(&woken.prepare, wake_late);
	ev_set_priority(&woken.prepare, EV_MINPRI);
	woken.prepare.data = &woken;
	ev_prepare_start(ev, &woken.prepare);
	assert_int_equal(spoke_engine_new(&options, &woken.engine), SPOKE_OK);
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(is_broken(ev, 10.));
		assert_int_equal(woken.served, i);
	}
	spokei_source_end(&woken.source);
	ev_prepare_stop(ev, &woken.prepare);
	spoke_engine_free(woken.engine);
	ev_loop_destroy(ev);
}
