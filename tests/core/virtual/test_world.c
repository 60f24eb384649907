/* SPDX-License-Identifier: Apache-2.0 */
/* The engine in a virtual world, and in-memory files. */
#include "core/engine/engine.h"
#include "core/virtual/files.h"
#include "core/virtual/world.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/wheel.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * --- the engine in a virtual world: exact times, late turns, lack of memory, one history per
 * seed
 */

#define RIG_TEST(...) TEST_WITH(struct rig *rig, *state, __VA_ARGS__)

FIXTURE(NULL, NULL);

struct fixture {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_alarm alarm;
	uint64_t at_ns[64];
	unsigned count;
};

static void note_alarm(struct spoke_alarm *alarm)
{
	struct fixture *fixture = spoke_container_of(alarm, struct fixture, alarm);

	assert_in_range(fixture->count, 0, 63);
	fixture->at_ns[fixture->count++] = fixture->world.now_ns;
}

static void set_up(struct fixture *fixture)
{
	*fixture = (struct fixture){ .engine = NULL };
	scene_open(&fixture->world, 7);
	fixture->engine = scene_engine(&fixture->world, &fixture->process, NULL, NULL);
}

static void tear_down(struct fixture *fixture)
{
	scene_leave(&fixture->process, NULL, &fixture->engine);
	spokei_world_fini(&fixture->world);
}

TEST(an_alarm_is_due_at_the_tick_at_or_after_its_time)
{
	struct fixture fixture;
	uint64_t start_ns;

	set_up(&fixture);
	start_ns = fixture.world.now_ns;
	for (uint64_t delay_ns = 1; delay_ns < 100000 * MS; delay_ns = delay_ns * 7 + 3) {
		uint64_t set_ns = fixture.world.now_ns;
		uint64_t late_ns;

		assert_int_equal(spoke_alarm_after(fixture.engine, &fixture.alarm, delay_ns,
						   note_alarm),
				 SPOKE_OK);
		fixture.count = 0;
		spokei_world_run(&fixture.world, set_ns + delay_ns + MS);
		assert_int_equal(fixture.count, 1);
		assert_true(fixture.at_ns[0] >= set_ns + delay_ns);
		late_ns = fixture.at_ns[0] - (set_ns + delay_ns);
		assert_true(late_ns < MS);
		assert_int_equal((fixture.at_ns[0] - start_ns) % MS, 0);
	}
	tear_down(&fixture);
}

TEST(period_does_not_drift_by_rounding_to_ticks)
{
	struct fixture fixture;
	uint64_t start_ns;

	set_up(&fixture);
	start_ns = fixture.world.now_ns;
	assert_int_equal(spoke_alarm_every(fixture.engine, &fixture.alarm, 5 * MS / 2, note_alarm),
			 SPOKE_OK);
	spokei_world_run(&fixture.world, start_ns + 100 * MS);
	assert_int_equal(fixture.count, 40);
	assert_int_equal(fixture.at_ns[39], start_ns + 100 * MS);
	tear_down(&fixture);
}

TEST(periods_missed_by_a_late_turn_are_skipped)
{
	struct fixture fixture;
	uint64_t start_ns;

	set_up(&fixture);
	start_ns = fixture.world.now_ns;
	assert_int_equal(spoke_alarm_every(fixture.engine, &fixture.alarm, 10 * MS, note_alarm),
			 SPOKE_OK);
	spokei_world_run(&fixture.world, start_ns + 20 * MS);
	assert_int_equal(fixture.count, 2);
	spokei_world_stall(&fixture.world, 55 * MS);
	spokei_world_run(&fixture.world, start_ns + 80 * MS);
	assert_int_equal(fixture.count, 4);
	assert_int_equal(fixture.at_ns[2], start_ns + 75 * MS); /* once, as soon as possible */
	assert_int_equal(fixture.at_ns[3], start_ns + 80 * MS); /* and in step again */
	tear_down(&fixture);
}

TEST(an_idle_engine_does_not_turn)
{
	struct fixture fixture;

	set_up(&fixture);
	assert_false(spokei_world_step(&fixture.world, fixture.world.now_ns + 3600000 * MS));
	tear_down(&fixture);
}

/* One process reads a byte from each of many peers; the byte cancels that peer's timeout. */
enum {
	PEERS = 150
};

struct reader {
	struct fixture fixture;
	unsigned timer_class;
	unsigned read;
	unsigned timed_out;
	unsigned rounds;
	struct peer {
		struct reader *reader;
		struct spoke_watch watch;
		struct spoke_timer timeout;
		int far;
	} peers[PEERS];
};

static void peer_ready(struct spoke_watch *watch, unsigned io)
{
	struct peer *peer = spoke_container_of(watch, struct peer, watch);
	struct reader *reader = peer->reader;
	const struct spoke_env *env = reader->fixture.engine->env;
	char byte;

	(void)io;
	if (env->net->read(env->ctx, watch->fd, &byte, 1) != 1)
		return;
	if (spoke_wheel_cancel(reader->fixture.engine->wheel, &peer->timeout))
		reader->read++;
}

static void peer_timed_out(struct spoke_timer *timer, void *arg)
{
	struct reader *reader = arg;

	(void)timer;
	reader->timed_out++;
}

static void connect_peers(struct reader *reader)
{
	const struct spoke_env *env = reader->fixture.engine->env;
	struct spoke_address at;
	int listener;

	spokei_vnet_route(reader->fixture.world.net, "mem:reader", SPOKEI_VNET_AT_ONCE);
	assert_int_equal(env->net->parse(env->ctx, "mem:reader", &at), 0);
	assert_int_equal(env->net->listen(env->ctx, &at, PEERS, &listener), 0);
	for (int i = 0; i < PEERS; i++) {
		struct peer *peer = &reader->peers[i];
		struct spoke_address from;

		*peer = (struct peer){ .reader = reader, .watch.ready = peer_ready };
		assert_int_equal(env->net->connect(env->ctx, &at, &peer->far), 0);
		assert_int_equal(env->net->accept(env->ctx, listener, &peer->watch.fd, &from), 0);
		env->loop->watch(reader->fixture.engine->loop, &peer->watch, SPOKE_IO_READ);
	}
	env->net->close(env->ctx, listener);
}

static void disconnect_peers(struct reader *reader)
{
	const struct spoke_env *env = reader->fixture.engine->env;

	for (int i = 0; i < PEERS; i++) {
		struct peer *peer = &reader->peers[i];

		env->loop->watch(reader->fixture.engine->loop, &peer->watch, 0);
		env->net->close(env->ctx, peer->watch.fd);
		env->net->close(env->ctx, peer->far);
	}
	assert_int_equal(reader->fixture.process.user.fds, 0);
}

TEST(late_turn_reads_all_sockets_before_timeouts)
{
	static struct reader reader;
	const struct spoke_env *env;
	uint64_t start_ns;

	reader = (struct reader){ .read = 0 };
	set_up(&reader.fixture);
	env = reader.fixture.engine->env;
	connect_peers(&reader);
	assert_int_equal(spoke_wheel_add_class(reader.fixture.engine->wheel, "peer", peer_timed_out,
					       &reader, &reader.timer_class),
			 SPOKE_WHEEL_OK);
	start_ns = reader.fixture.world.now_ns;
	for (int i = 0; i < PEERS; i++) {
		char x = 'x';
		struct iovec byte = { &x, 1 };

		assert_int_equal(spoke_wheel_schedule(reader.fixture.engine->wheel,
						      &reader.peers[i].timeout, reader.timer_class,
						      start_ns + 50 * MS),
				 SPOKE_WHEEL_OK);
		assert_int_equal(env->net->write(env->ctx, reader.peers[i].far, &byte, 1), 1);
	}
	/* Set the time that the engine waits for, then stall the engine. */
	reader.fixture.engine->due_ns = spoke_wheel_next(reader.fixture.engine->wheel);
	spokei_world_stall(&reader.fixture.world, 200 * MS);
	/* A round reports 1 to 64 descriptors, and at most 16 rounds may precede the wheel. */
	spokei_world_run(&reader.fixture.world, start_ns + 300 * MS);
	assert_int_equal(reader.read + reader.timed_out, PEERS);
	assert_int_equal(reader.timed_out, 0);
	/* All rounds together are one turn. */
	assert_int_equal(spoke_stat_get(reader.fixture.engine, SPOKE_STAT_TURNS_LATE), 1);
	disconnect_peers(&reader);
	tear_down(&reader.fixture);
}

enum {
	CROWD = 3 * (int)SPOKE_WHEEL_BUDGET
};

static void crowd_due(struct spoke_timer *timer, void *arg)
{
	(void)timer;
	++*(unsigned *)arg;
}

static void peer_is_still_there(struct spoke_watch *watch, unsigned io)
{
	(void)watch;
	(void)io;
}

/* Uses peers that are always ready, and a late turn with more timers than one budget. */
TEST(a_wheel_that_is_behind_goes_on_without_late_rounds)
{
	static struct reader reader;
	static struct spoke_timer timers[CROWD];
	struct spoke_engine *engine;
	unsigned crowd_class;
	unsigned fired = 0;
	unsigned turns = 0;
	uint64_t start_ns;
	char x = 'x';
	struct iovec byte = { &x, 1 };

	reader = (struct reader){ .read = 0 };
	set_up(&reader.fixture);
	engine = reader.fixture.engine;
	connect_peers(&reader);
	assert_int_equal(spoke_wheel_add_class(engine->wheel, "crowd", crowd_due, &fired,
					       &crowd_class),
			 SPOKE_WHEEL_OK);
	start_ns = reader.fixture.world.now_ns;
	reader.peers[0].watch.ready = peer_is_still_there;
	assert_int_equal(engine->env->net->write(engine->env->ctx, reader.peers[0].far, &byte, 1),
			 1);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(spoke_wheel_schedule(engine->wheel, &timers[i], crowd_class,
						      start_ns + 50 * MS),
				 SPOKE_WHEEL_OK);
	engine->due_ns = spoke_wheel_next(engine->wheel);
	spokei_world_stall(&reader.fixture.world, 200 * MS);
	while (fired < CROWD) {
		assert_true(spokei_world_step(&reader.fixture.world, start_ns + 300 * MS));
		assert_in_range(++turns, 1, 2 + 3);
	}
	assert_in_range(turns, 1 + 3, 2 + 3); /* the peer postpones the first part once */
	assert_int_equal(spoke_stat_get(engine, SPOKE_STAT_TURNS_LATE), 1);
	disconnect_peers(&reader);
	tear_down(&reader.fixture);
}

/* Returns whether a turn that begins this late counts as late. */
static bool is_late(struct fixture *fixture, uint64_t late_ns)
{
	uint64_t before = spoke_stat_get(fixture->engine, SPOKE_STAT_TURNS_LATE);

	fixture->count = 0;
	assert_int_equal(spoke_alarm_after(fixture->engine, &fixture->alarm, 10 * MS, note_alarm),
			 SPOKE_OK);
	spokei_world_run(&fixture->world, fixture->world.now_ns + 5 * MS);
	spokei_world_stall(&fixture->world,
			   fixture->engine->due_ns - fixture->world.now_ns + late_ns);
	spokei_world_run(&fixture->world, fixture->world.now_ns + 10 * MS);
	assert_int_equal(fixture->count, 1);
	return spoke_stat_get(fixture->engine, SPOKE_STAT_TURNS_LATE) > before;
}

TEST(turn_is_late_when_it_begins_more_than_50_ms_late)
{
	struct fixture fixture;

	set_up(&fixture);
	assert_false(is_late(&fixture, 50 * MS));
	assert_true(is_late(&fixture, 51 * MS));
	tear_down(&fixture);
}

TEST(engine_new_returns_enomem_and_leaks_nothing)
{
	for (uint64_t fail_at = 1;; fail_at++) {
		struct spokei_world world;
		struct spokei_world_process process;
		struct spoke_engine_options options = { .env = &process.env };
		struct spoke_engine *engine = NULL;
		int error;

		scene_open(&world, fail_at);
		spokei_world_process_init(&process, &world);
		process.fail_at = fail_at;
		error = spoke_engine_new(&options, &engine);
		scene_leave(&process, NULL, &engine);
		spokei_world_fini(&world);
		if (error == SPOKE_OK)
			break;
		assert_int_equal(error, SPOKE_ENOMEM);
		assert_null(engine);
	}
}

/*
 * --- in-memory files: shared by the processes of a world, like real files, with failures on
 * demand
 */

struct rig {
	struct spokei_world world;
	struct spokei_world_process one;
	struct spokei_world_process two;
	struct spokei_vfiles *files;
};

static int files_set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL || !spokei_world_init(&rig->world, 7))
		return -1;
	spokei_world_process_init(&rig->one, &rig->world);
	spokei_world_process_init(&rig->two, &rig->world);
	rig->files = rig->world.files;
	*state = rig;
	return 0;
}

STEP(files_tear_down)
{
	struct rig *rig = *state;

	assert_int_equal(rig->one.user.fds + rig->two.user.fds, 0);
	spokei_world_process_fini(&rig->one);
	spokei_world_process_fini(&rig->two);
	spokei_world_fini(&rig->world);
	free(rig);
}

FIXTURE(files_set_up, files_tear_down);

RIG_TEST(file_written_by_one_process_is_read_by_another)
{
	const struct spoke_files *files = rig->one.env.files;
	char bytes[8];

	assert_int_equal(files->read(&rig->two, "a", bytes, sizeof(bytes)), -ENOENT);
	assert_null(spokei_vfiles_get(rig->files, "a"));
	assert_int_equal(files->append(&rig->one, "a", "one", 3), 0);
	assert_int_equal(files->append(&rig->two, "a", "two", 3), 0);
	assert_int_equal(files->read(&rig->two, "a", bytes, 6), 6);
	assert_memory_equal(bytes, "onetwo", 6);
	assert_int_equal(files->read(&rig->two, "a", bytes, 5), -EFBIG);
	assert_int_equal(files->replace(&rig->two, "a", "three", 5, false), 0);
	assert_string_equal(spokei_vfiles_get(rig->files, "a"), "three");
	assert_int_equal(files->read(&rig->two, "b", bytes, sizeof(bytes)), -ENOENT);
	spokei_vfiles_remove(rig->files, "a");
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), -ENOENT);
}

RIG_TEST(exposed_file_is_no_secret)
{
	const struct spoke_files *files = rig->one.env.files;
	char bytes[8];

	assert_int_equal(files->read_secret(&rig->one, "a", bytes, sizeof(bytes)), -ENOENT);
	spokei_vfiles_put(rig->files, "a", "secret");
	assert_int_equal(files->read_secret(&rig->one, "a", bytes, sizeof(bytes)), 6);
	spokei_vfiles_expose(rig->files, "a", true);
	assert_int_equal(files->read_secret(&rig->one, "a", bytes, sizeof(bytes)), -EPERM);
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), 6);
}

RIG_TEST(file_watch_reports_only_its_own_file)
{
	const struct spoke_files *files = rig->one.env.files;
	int fd;
	int gone;

	assert_int_equal(files->watch(&rig->one, "a", &fd), 0);
	assert_int_equal(files->watch(&rig->two, "a", &gone), 0);
	spokei_vnet_kill(&rig->two.user);
	spokei_vfiles_put(rig->files, "b", "text");
	assert_int_equal(spokei_vnet_ready(rig->world.net, fd), 0);
	assert_false(files->changed(&rig->one, fd));
	spokei_vfiles_put(rig->files, "a", "text");
	assert_int_equal(spokei_vnet_ready(rig->world.net, fd), SPOKE_IO_READ);
	assert_true(files->changed(&rig->one, fd));
	assert_int_equal(spokei_vnet_ready(rig->world.net, fd), 0);
	assert_false(files->changed(&rig->one, fd));
	spokei_vfiles_remove(rig->files, "a");
	assert_true(files->changed(&rig->one, fd));
	spokei_vfiles_mute(rig->files, true);
	spokei_vfiles_put(rig->files, "a", "text");
	assert_false(files->changed(&rig->one, fd));
	files->unwatch(&rig->one, fd);
}

RIG_TEST(a_lock_keeps_others_out_until_it_is_given_back)
{
	const struct spoke_files *files = rig->one.env.files;
	int fd;
	int other;

	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	assert_int_equal(files->lock(&rig->two, "a", &other), -EAGAIN);
	assert_int_equal(files->lock(&rig->two, "b", &other), 0);
	files->unlock(&rig->two, other);
	files->unlock(&rig->one, fd);
	assert_int_equal(files->lock(&rig->two, "a", &other), 0);
	spokei_vnet_kill(&rig->two.user);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	files->unlock(&rig->one, fd);
	spokei_vfiles_hold(rig->files, "a", true);
	assert_int_equal(files->lock(&rig->one, "a", &fd), -EAGAIN);
	spokei_vfiles_hold(rig->files, "a", false);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	files->unlock(&rig->one, fd);
}

RIG_TEST(lock_is_seen_by_others_until_its_holder_ends)
{
	const struct spoke_files *files = rig->one.env.files;
	int fd;

	assert_int_equal(files->is_locked(&rig->one, "a"), 0);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	assert_int_equal(files->is_locked(&rig->one, "a"), 1);
	assert_int_equal(files->is_locked(&rig->two, "a"), 1);
	assert_int_equal(files->is_locked(&rig->two, "b"), 0);
	files->drop(&rig->one, "a", fd);
	assert_int_equal(files->is_locked(&rig->two, "a"), 0);
	assert_int_equal(files->lock(&rig->two, "a", &fd), 0);
	spokei_vnet_kill(&rig->two.user);
	assert_int_equal(files->is_locked(&rig->one, "a"), 0);
	assert_int_equal(files->lock(&rig->one, "a", &fd), 0);
	spokei_vfiles_break(rig->files, "a");
	assert_int_equal(files->is_locked(&rig->one, "a"), 0);
	files->unlock(&rig->one, fd);
}

RIG_TEST(any_call_fails_as_often_as_it_shall)
{
	const struct spoke_files *files = rig->one.env.files;
	char bytes[8];
	int fd;

	spokei_vfiles_put(rig->files, "a", "old");
	for (enum spokei_vfiles_call call = 0; call < SPOKEI_VFILES_CALLS; call++)
		spokei_vfiles_fail(rig->files, call, 1, -EIO);
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), -EIO);
	assert_int_equal(files->replace(&rig->one, "a", "new", 3, false), -EIO);
	assert_int_equal(files->append(&rig->one, "a", "new", 3), -EIO);
	assert_int_equal(files->watch(&rig->one, "a", &fd), -EIO);
	assert_int_equal(files->lock(&rig->one, "a", &fd), -EIO);
	assert_int_equal(files->is_locked(&rig->one, "a"), -EIO);
	assert_int_equal(files->sweep(&rig->one, "a"), -EIO);
	assert_int_equal(files->open_log(&rig->one, "a", false, &fd), -EIO);
	assert_int_equal(files->sync_folder(&rig->one, "/"), -EIO);
	assert_int_equal(files->list(&rig->one, "/", bytes, sizeof(bytes)), -EIO);
	assert_int_equal(files->remove(&rig->one, "a"), -EIO);
	assert_int_equal(files->open_log(&rig->one, "a", false, &fd), 0);
	assert_int_equal(files->write_at(&rig->one, fd, 0, "", 0), -EIO);
	assert_int_equal(files->allocate(&rig->one, fd, 8), -EIO);
	assert_int_equal(files->sync(&rig->one, fd), -EIO);
	rig->one.env.net->close(&rig->one, fd);
	assert_string_equal(spokei_vfiles_get(rig->files, "a"), "old");
	assert_int_equal(files->read(&rig->one, "a", bytes, sizeof(bytes)), 3);
	assert_int_equal(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_READ), 2);
	assert_int_equal(spokei_vfiles_calls(rig->files, SPOKEI_VFILES_LOCK), 1);
}
