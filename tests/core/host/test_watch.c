/* SPDX-License-Identifier: Apache-2.0 */
/* The public view of an engine's wheel, and users' descriptors on its loop. */
#include "core/engine/engine.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/wheel.h>

#include <sys/socket.h>
#include <unistd.h>

struct watched {
	struct spoke_watch watch;
	struct spoke_engine *engine;
	unsigned io;   /* of the last call */
	int told;      /* number of calls */
	unsigned next; /* events to watch from then on */
};

static void note(struct spoke_watch *watch, unsigned io)
{
	struct watched *watched = spoke_container_of(watch, struct watched, watch);

	watched->io = io;
	watched->told++;
	spoke_engine_watch(watched->engine, watch, watched->next);
}

static void turn(struct spoke_engine *engine)
{
	assert_int_equal(spoke_engine_turn(engine, false), SPOKE_OK);
}

TEST(descriptor_is_reported_while_watched)
{
	struct watched watched = { .watch.ready = note, .next = SPOKE_IO_READ };
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(spoke_engine_new(NULL, &watched.engine), SPOKE_OK);
	watched.watch.fd = fds[0];
	spoke_engine_watch(watched.engine, &watched.watch, SPOKE_IO_READ);
	turn(watched.engine);
	assert_int_equal(watched.told, 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	turn(watched.engine);
	assert_int_equal(watched.told, 1);
	assert_int_equal(watched.io, SPOKE_IO_READ);

	/* The callback changes the watch and finally ends it. */
	spoke_engine_watch(watched.engine, &watched.watch, SPOKE_IO_READ | SPOKE_IO_WRITE);
	watched.next = SPOKE_IO_WRITE;
	turn(watched.engine);
	assert_int_equal(watched.told, 2);
	assert_int_equal(watched.io, SPOKE_IO_READ | SPOKE_IO_WRITE);
	watched.next = 0;
	turn(watched.engine);
	assert_int_equal(watched.told, 3);
	assert_int_equal(watched.io, SPOKE_IO_WRITE);
	turn(watched.engine);
	assert_int_equal(watched.told, 3);
	spoke_engine_free(watched.engine);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void never(struct spoke_alarm *alarm)
{
	(void)alarm;
	fail();
}

TEST(the_wheel_shows_the_alarms_that_are_set)
{
	struct spoke_alarm alarm = { 0 };
	struct spoke_engine *engine = NULL;

	assert_int_equal(spoke_engine_new(NULL, &engine), SPOKE_OK);
	assert_int_equal(spoke_wheel_next(spoke_engine_wheel(engine)), UINT64_MAX);
	assert_int_equal(spoke_alarm_after(engine, &alarm, UINT64_C(60000000000), never), SPOKE_OK);
	assert_true(spoke_wheel_next(spoke_engine_wheel(engine)) < UINT64_MAX);
	assert_true(spoke_alarm_cancel(&alarm));
	spoke_engine_free(engine);
}
