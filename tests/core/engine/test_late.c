/* SPDX-License-Identifier: Apache-2.0 */
/* Late turns: how long peers that send without end may hold back the timers of others. */
#include "core/engine/source.h"
#include "core/virtual/world.h"
#include "tests/support/test.h"

#include <spoke/engine.h>
#include <spoke/wheel.h>

#include <string.h>

#define MS UINT64_C(1000000)
#define LATE (50 * MS) /* the default of the option */

enum {
	PEERS = 300
};

/* A process that reads its peers slowly: each one takes `cost_ns`. */
static struct {
	struct spokei_world world;
	struct spokei_world_process process;
	struct spoke_engine *engine;
	struct spoke_alarm alarm;
	uint64_t alarm_ns; /* when it was due, as the process saw it; 0: not yet */
	uint64_t cost_ns;
	unsigned rounds;
	bool floods; /* there is always more to read */
	bool was_reported[PEERS];
	unsigned reported;
	unsigned repeated; /* reports of a peer that was reported before */
	int listener;
	struct peer {
		struct spoke_watch watch;
		int far;
	} peers[PEERS];
	unsigned peer_count;
	struct spokei_source source;
} rig;

static uint64_t now(void)
{
	return rig.process.env.now(rig.process.env.ctx);
}

static void note_alarm(struct spoke_alarm *alarm)
{
	(void)alarm;
	rig.alarm_ns = now();
}

static void note_round(struct spokei_world_process *process)
{
	(void)process;
	rig.rounds++;
}

static void peer_ready(struct spoke_watch *watch, unsigned io)
{
	struct peer *peer = spoke_container_of(watch, struct peer, watch);
	const struct spoke_env *env = rig.engine->env;
	bool *was = &rig.was_reported[peer - rig.peers];
	char byte;

	(void)io;
	rig.repeated += *was;
	rig.reported += !*was;
	*was = true;
	spokei_world_hold(&rig.process, rig.cost_ns);
	if (!rig.floods)
		assert_int_equal(env->net->read(env->ctx, watch->fd, &byte, 1), 1);
}

static int set_up(void **state)
{
	struct spoke_engine_options options = { .env = &rig.process.env };

	(void)state;
	memset(&rig, 0, sizeof(rig));
	assert_true(spokei_world_init(&rig.world, 11));
	spokei_world_process_init(&rig.process, &rig.world);
	assert_int_equal(spoke_engine_new(&options, &rig.engine), SPOKE_OK);
	spokei_vnet_route(rig.world.net, "mem:late", SPOKEI_VNET_AT_ONCE);
	return 0;
}

static int tear_down(void **state)
{
	const struct spoke_env *env = rig.engine->env;

	(void)state;
	spokei_source_end(&rig.source);
	for (unsigned i = 0; i < rig.peer_count; i++) {
		env->loop->watch(rig.engine->loop, &rig.peers[i].watch, 0);
		env->net->close(env->ctx, rig.peers[i].watch.fd);
		env->net->close(env->ctx, rig.peers[i].far);
	}
	spoke_engine_free(rig.engine);
	assert_int_equal(rig.process.blocks, 0);
	spokei_world_process_fini(&rig.process);
	spokei_world_fini(&rig.world);
	return 0;
}

FIXTURE(set_up, tear_down);

/* Connects peers that have each sent a byte. */
static void connect_peers(unsigned count)
{
	const struct spoke_env *env = rig.engine->env;
	char x = 'x';
	struct iovec byte = { &x, 1 };
	struct spoke_address at;

	assert_int_equal(env->net->parse(env->ctx, "mem:late", &at), 0);
	assert_int_equal(env->net->listen(env->ctx, &at, PEERS, &rig.listener), 0);
	for (unsigned i = 0; i < count; i++) {
		struct peer *peer = &rig.peers[i];
		struct spoke_address from;

		peer->watch.ready = peer_ready;
		assert_int_equal(env->net->connect(env->ctx, &at, &peer->far), 0);
		assert_int_equal(env->net->accept(env->ctx, rig.listener, &peer->watch.fd, &from),
				 0);
		env->loop->watch(rig.engine->loop, &peer->watch, SPOKE_IO_READ);
		assert_int_equal(env->net->write(env->ctx, peer->far, &byte, 1), 1);
	}
	rig.peer_count = count;
	env->net->close(env->ctx, rig.listener);
}

/* Sets a timer, makes its turn late, and runs until it fires. Returns how long after the begin of
 * that turn. */
static uint64_t delay_of_late_timer(void)
{
	uint64_t begin_ns;

	assert_int_equal(spoke_alarm_after(rig.engine, &rig.alarm, 10 * MS, note_alarm), SPOKE_OK);
	rig.engine->due_ns = spoke_wheel_next(rig.engine->wheel);
	spokei_world_stall(&rig.world, 500 * MS);
	begin_ns = rig.world.now_ns;
	rig.process.turned = note_round;
	while (rig.alarm_ns == 0)
		assert_true(spokei_world_step(&rig.world, begin_ns + 100000 * MS));
	return rig.alarm_ns - begin_ns;
}

TEST(peer_that_floods_postpones_timers_for_one_round)
{
	rig.floods = true;
	rig.cost_ns = MS;
	connect_peers(1);
	assert_in_range(delay_of_late_timer(), MS, 2 * MS);
	assert_int_equal(rig.rounds, 2);
	assert_int_equal(spoke_stat_get(rig.engine, SPOKE_STAT_TURNS_LATE), 1);
}

TEST(slow_round_of_peer_that_floods_postpones_no_timer)
{
	rig.floods = true;
	rig.cost_ns = 400 * MS;
	connect_peers(1);
	assert_in_range(delay_of_late_timer(), 0, 400 * MS);
	assert_int_equal(rig.rounds, 1);
}

/* Each round serves at most 64 of them. */
TEST(peers_that_are_new_postpone_timers_no_longer_than_late)
{
	rig.cost_ns = 2 * MS;
	connect_peers(PEERS);
	assert_in_range(delay_of_late_timer(), LATE, LATE + 64 * rig.cost_ns);
	assert_in_range(rig.reported, 1, PEERS - 1);
}

TEST(peers_are_all_read_before_timers_if_time_allows)
{
	rig.cost_ns = LATE / (PEERS + 1);
	connect_peers(PEERS);
	assert_in_range(delay_of_late_timer(), 0, LATE);
	assert_int_equal(rig.reported, PEERS);
	assert_int_equal(rig.repeated, 0);
}

/* Bytes that came while the rounds lasted may be unread, so a deadline in that time is not over. */
TEST(late_turn_ends_no_deadline_after_its_begin)
{
	uint64_t begin_ns;

	rig.floods = true;
	rig.cost_ns = 20 * MS;
	connect_peers(1);
	begin_ns = delay_of_late_timer();
	assert_in_range(begin_ns, 1, LATE);
	assert_true(spoke_wheel_now(rig.engine->wheel) <= rig.engine->turn_ns);
}

static bool source_has(struct spokei_source *source)
{
	(void)source;
	return true;
}

static bool source_sleep(struct spokei_source *source)
{
	(void)source;
	return false;
}

static void source_ready(struct spokei_source *source)
{
	(void)source;
	spokei_world_hold(&rig.process, rig.cost_ns);
}

TEST(source_that_floods_postpones_timers_for_one_round)
{
	rig.cost_ns = MS;
	rig.source = (struct spokei_source){
		.has = source_has,
		.sleep = source_sleep,
		.ready = source_ready,
	};
	spokei_source_wake(rig.engine, &rig.source);
	assert_in_range(delay_of_late_timer(), MS, 2 * MS);
	assert_int_equal(rig.rounds, 2);
}
