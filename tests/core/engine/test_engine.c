/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on the real loop: alarms, posts, and the order of events in a turn. */
#include "core/engine/engine.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/wheel.h>

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static uint64_t clock_ns(void)
{
	const struct spoke_env *env = spoke_host_env();

	return env->now(env->ctx);
}

static struct spoke_engine *make_engine(void)
{
	struct spoke_engine *engine = NULL;

	assert_int_equal(spoke_engine_new(NULL, &engine), SPOKE_OK);
	return engine;
}

struct alarmed {
	struct spoke_alarm alarm;
	struct spoke_engine *engine;
	int count;
	int until; /* number of calls after which the engine is stopped */
	uint64_t at_ns;
};

static void count_alarm(struct spoke_alarm *alarm)
{
	struct alarmed *alarmed = spoke_container_of(alarm, struct alarmed, alarm);

	alarmed->at_ns = clock_ns();
	if (++alarmed->count == alarmed->until)
		spoke_engine_stop(alarmed->engine);
}

TEST(an_alarm_is_due_once_and_not_before_its_time)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 1 };
	uint64_t start_ns = clock_ns();

	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, 20 * MS, count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_int_equal(alarmed.count, 1);
	assert_true(alarmed.at_ns - start_ns >= 20 * MS);
	assert_int_equal(spoke_engine_turn(alarmed.engine, false), SPOKE_OK);
	assert_int_equal(alarmed.count, 1);
	assert_false(spoke_alarm_cancel(&alarmed.alarm));
	spoke_engine_free(alarmed.engine);
}

TEST(an_alarm_set_after_long_code_is_not_early)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 1 };
	uint64_t start_ns = clock_ns();

	while (clock_ns() - start_ns < 30 * MS)
		continue; /* the engine's time does not move meanwhile */
	start_ns = clock_ns();
	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, 20 * MS, count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_true(alarmed.at_ns - start_ns >= 20 * MS);
	spoke_engine_free(alarmed.engine);
}

TEST(an_alarm_can_be_due_again_and_again)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 5 };
	uint64_t start_ns = clock_ns();

	assert_int_equal(spoke_alarm_every(alarmed.engine, &alarmed.alarm, 0, count_alarm),
			 SPOKE_EINVAL);
	assert_int_equal(spoke_alarm_every(alarmed.engine, &alarmed.alarm, 3 * MS / 2, count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_int_equal(alarmed.count, 5);
	assert_true(alarmed.at_ns - start_ns >= 15 * MS / 2);
	assert_true(spoke_alarm_cancel(&alarmed.alarm));
	assert_false(spoke_alarm_cancel(&alarmed.alarm));
	spoke_engine_free(alarmed.engine);
}

TEST(an_alarm_that_is_set_can_be_moved)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 1 };

	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, 3600000 * MS,
					   count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, MS, count_alarm),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_int_equal(alarmed.count, 1);
	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, UINT64_MAX, count_alarm),
			 SPOKE_ERANGE);
	spoke_engine_free(alarmed.engine);
}

static void turn_again(struct spoke_alarm *alarm)
{
	struct alarmed *alarmed = spoke_container_of(alarm, struct alarmed, alarm);

	assert_int_equal(spoke_engine_run(alarmed->engine), SPOKE_ESTATE);
	assert_int_equal(spoke_engine_turn(alarmed->engine, false), SPOKE_ESTATE);
	count_alarm(alarm);
}

TEST(an_engine_cannot_be_run_from_its_own_callback)
{
	struct alarmed alarmed = { .engine = make_engine(), .until = 1 };

	assert_int_equal(spoke_alarm_after(alarmed.engine, &alarmed.alarm, 0, turn_again),
			 SPOKE_OK);
	assert_int_equal(spoke_engine_run(alarmed.engine), SPOKE_OK);
	assert_int_equal(alarmed.count, 1);
	spoke_engine_free(alarmed.engine);
}

struct visitor {
	struct spoke_post post;
	struct spoke_engine *engine;
	pthread_t engine_thread;
	int visits;
};

static void visit(struct spoke_post *post)
{
	struct visitor *visitor = spoke_container_of(post, struct visitor, post);

	assert_true(pthread_equal(pthread_self(), visitor->engine_thread));
	visitor->visits++;
	spoke_engine_stop(visitor->engine);
}

static void *post_one(void *arg)
{
	struct visitor *visitor = arg;

	spoke_engine_post(visitor->engine, &visitor->post);
	return NULL;
}

TEST(a_post_of_another_thread_wakes_the_engine)
{
	struct visitor visitor = {
		.post.run = visit,
		.engine = make_engine(),
		.engine_thread = pthread_self(),
	};

	for (int i = 1; i <= 20; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, post_one, &visitor), 0);
		assert_int_equal(spoke_engine_run(visitor.engine), SPOKE_OK);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(visitor.visits, i);
	}
	spoke_engine_free(visitor.engine);
}

/* Each event of a turn appends its letter to the text. */
struct story {
	struct spoke_engine *engine;
	char text[16];
	struct spoke_watch watch;
	struct spoke_alarm alarm;
	struct spoke_post post;
	struct spokei_task soon, last, dead;
	int fd[2];
};

static void tell(struct story *story, char letter)
{
	size_t len = strlen(story->text);

	assert_true(len < sizeof(story->text) - 1);
	story->text[len] = letter;
}

static void tell_ready(struct spoke_watch *watch, unsigned io)
{
	struct story *story = spoke_container_of(watch, struct story, watch);
	char byte;

	assert_int_equal(io, SPOKE_IO_READ);
	assert_int_equal(read(watch->fd, &byte, 1), 1);
	tell(story, 'r');
	/* Requested in reverse order. */
	spokei_engine_dead(story->engine, &story->dead);
	spokei_engine_last(story->engine, &story->last);
	spokei_engine_soon(story->engine, &story->soon);
	spoke_engine_post(story->engine, &story->post);
}

static void tell_alarm(struct spoke_alarm *alarm)
{
	tell(spoke_container_of(alarm, struct story, alarm), 'w');
}

static void tell_post(struct spoke_post *post)
{
	tell(spoke_container_of(post, struct story, post), 'p');
}

static void tell_soon(struct spokei_task *task)
{
	tell(spoke_container_of(task, struct story, soon), 's');
}

static void tell_last(struct spokei_task *task)
{
	tell(spoke_container_of(task, struct story, last), 'l');
}

static void tell_dead(struct spokei_task *task)
{
	struct story *story = spoke_container_of(task, struct story, dead);

	tell(story, 'd');
	spoke_engine_stop(story->engine);
}

TEST(a_turn_has_one_order)
{
	struct story story = {
		.engine = make_engine(),
		.watch.ready = tell_ready,
		.post.run = tell_post,
		.soon.run = tell_soon,
		.last.run = tell_last,
		.dead.run = tell_dead,
	};
	const struct spoke_loop *loop = spoke_host_env()->loop;
	uint64_t start_ns = clock_ns();

	/* A late turn would poll again before its wheel advances. */
	story.engine->late_max_ns = UINT64_MAX;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, story.fd), 0);
	story.watch.fd = story.fd[0];
	loop->watch(story.engine->loop, &story.watch, SPOKE_IO_READ);
	assert_int_equal(spoke_alarm_after(story.engine, &story.alarm, MS, tell_alarm), SPOKE_OK);
	assert_int_equal(write(story.fd[1], "x", 1), 1);
	while (clock_ns() - start_ns < 5 * MS)
		continue; /* both are due when the turn begins */
	assert_int_equal(spoke_engine_run(story.engine), SPOKE_OK);
	assert_string_equal(story.text, "rwpsld");
	loop->watch(story.engine->loop, &story.watch, 0);
	spoke_engine_free(story.engine);
	(void)close(story.fd[0]);
	(void)close(story.fd[1]);
}

enum {
	CALLS = 500
};

/* Calls that wait for a byte and time out after 50 ms. */
struct calls {
	struct spoke_engine *engine;
	unsigned timer_class;
	int answered;
	int timed_out;
	struct spoke_alarm stall;
	struct call {
		struct calls *all;
		struct spoke_watch watch;
		struct spoke_timer timeout;
		int peer;
	} call[CALLS];
};

static void end_call(struct calls *calls)
{
	if (calls->answered + calls->timed_out == CALLS)
		spoke_engine_stop(calls->engine);
}

static void call_ready(struct spoke_watch *watch, unsigned io)
{
	struct call *call = spoke_container_of(watch, struct call, watch);
	char byte;

	(void)io;
	if (read(watch->fd, &byte, 1) != 1)
		return;
	if (spoke_wheel_cancel(call->all->engine->wheel, &call->timeout))
		call->all->answered++;
	end_call(call->all);
}

static void call_timed_out(struct spoke_timer *timer, void *arg)
{
	struct calls *calls = arg;

	(void)timer;
	calls->timed_out++;
	end_call(calls);
}

/*
 * Begins the calls, sends all replies, and stalls the loop until every call is long overdue. All of
 * this happens in one callback, so that a pause of the machine cannot separate a call from its
 * reply.
 */
static void stall(struct spoke_alarm *alarm)
{
	struct calls *calls = spoke_container_of(alarm, struct calls, stall);
	uint64_t deadline_ns = clock_ns() + 50 * MS;

	for (int i = 0; i < CALLS; i++)
		assert_int_equal(spoke_wheel_schedule(calls->engine->wheel, &calls->call[i].timeout,
						      calls->timer_class, deadline_ns),
				 SPOKE_WHEEL_OK);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(write(calls->call[i].peer, "x", 1), 1);
	while (clock_ns() < deadline_ns + 150 * MS)
		continue;
}

TEST(arrived_answer_does_not_time_out_after_a_stall)
{
	static struct calls calls;
	const struct spoke_loop *loop = spoke_host_env()->loop;

	calls = (struct calls){ .engine = make_engine() };
	assert_int_equal(spoke_wheel_add_class(calls.engine->wheel, "call", call_timed_out, &calls,
					       &calls.timer_class),
			 SPOKE_WHEEL_OK);
	for (int i = 0; i < CALLS; i++) {
		struct call *call = &calls.call[i];
		int fd[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
		*call = (struct call){ .all = &calls,
				       .watch = { .ready = call_ready, .fd = fd[0] },
				       .peer = fd[1] };
		loop->watch(calls.engine->loop, &call->watch, SPOKE_IO_READ);
	}
	assert_int_equal(spoke_alarm_after(calls.engine, &calls.stall, 0, stall), SPOKE_OK);
	assert_int_equal(spoke_engine_run(calls.engine), SPOKE_OK);
	assert_int_equal(calls.timed_out, 0);
	assert_int_equal(calls.answered, CALLS);
	for (int i = 0; i < CALLS; i++) {
		loop->watch(calls.engine->loop, &calls.call[i].watch, 0);
		(void)close(calls.call[i].watch.fd);
		(void)close(calls.call[i].peer);
	}
	spoke_engine_free(calls.engine);
}

TEST(bad_options_are_refused)
{
	struct spoke_engine_options tick = { .tick_ns = SPOKE_WHEEL_TICK_MAX_NS + 1 };
	struct spoke_engine_options many = { .timers_max = SPOKE_WHEEL_PENDING_MAX + 1 };
	struct spoke_engine *engine = NULL;

	assert_int_equal(spoke_engine_new(&tick, &engine), SPOKE_EINVAL);
	assert_int_equal(spoke_engine_new(&many, &engine), SPOKE_EINVAL);
	assert_null(engine);
	spoke_engine_free(NULL);
}

TEST(alarms_over_the_limit_are_refused)
{
	struct spoke_engine_options options = { .timers_max = 1 };
	struct spoke_engine *engine;
	struct spoke_alarm alarms[2] = { 0 };

	assert_int_equal(spoke_engine_new(&options, &engine), SPOKE_OK);
	assert_int_equal(spoke_alarm_after(engine, &alarms[0], MS, count_alarm), SPOKE_OK);
	assert_int_equal(spoke_alarm_after(engine, &alarms[1], MS, count_alarm), SPOKE_ELIMIT);
	assert_false(spoke_alarm_cancel(&alarms[1]));
	spoke_engine_free(engine);
}
