/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeats keep links alive and detect dead ones, exact to the tick on the virtual clock. */
#include "cluster/consumer/parts.h"
#include "cluster/provider/parts.h"
#include "tests/cluster/stage.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#define INTERVAL (100 * MS)
#define TICK MS

enum {
	CLIENT,
	SERVER,
	NEWS = 512
};

/* The link events of one side. */
struct diary {
	struct stage *stage;
	unsigned count;
	struct {
		enum spoke_link_change change;
		int error;
		unsigned missed;
		uint64_t at_ns;
	} news[NEWS];
	void (*then)(struct stage *stage, const struct spoke_link_event *event);
};

static struct diary consumers_diary;
static struct diary providers_diary;

static void note(void *arg, const struct spoke_link_event *event)
{
	struct diary *diary = arg;

	assert_true(diary->count < NEWS);
	assert_non_null(event->name);
	diary->news[diary->count].change = event->change;
	diary->news[diary->count].error = event->error;
	diary->news[diary->count].missed = event->missed;
	diary->news[diary->count].at_ns = diary->stage->world.now_ns;
	diary->count++;
	if (diary->then)
		diary->then(diary->stage, event);
}

static unsigned count_of(const struct diary *diary, enum spoke_link_change change)
{
	unsigned count = 0;

	for (unsigned i = 0; i < diary->count; i++)
		count += diary->news[i].change == change;
	return count;
}

/* Asserts that the next event after *at is this one. Returns its time. */
static uint64_t assert_next(const struct diary *diary, unsigned *at, enum spoke_link_change change,
			    int error)
{
	assert_true(*at < diary->count);
	assert_string_equal(spoke_link_change_name(diary->news[*at].change),
			    spoke_link_change_name(change));
	assert_int_equal(diary->news[*at].error, error);
	return diary->news[(*at)++].at_ns;
}

/* Runs by the world's clock, because the clock of a frozen process is ahead. */
static void pass(struct stage *stage, uint64_t ns)
{
	spokei_world_run(&stage->world, stage->world.now_ns + ns);
}

static void echo_ends_well(struct stage *stage)
{
	stage_assert_text(stage_end_of(stage, stage_call(stage, stage_method(stage, "echo"),
							 stage_text(stage, "x"))),
			  "x");
}

/* Returns the stage, or NULL if this setting has no virtual clock or no heartbeats. */
static struct stage *begin(void **state, uint64_t consumers_ns, uint64_t providers_ns)
{
	struct stage *stage = stage_bare(state);
	struct spoke_provider_options provider = {
		.heartbeat_ns = providers_ns,
		.changed = note,
		.changed_arg = &providers_diary,
	};
	struct spoke_consumer_options consumer = {
		.heartbeat_ns = consumers_ns,
		.changed = note,
		.changed_arg = &consumers_diary,
	};

	consumers_diary = (struct diary){ .stage = stage };
	providers_diary = (struct diary){ .stage = stage };
	if (!stage->setting->in_memory || !stage->setting->dubbo)
		return NULL;
	stage_provide(stage, &provider);
	stage_consume(stage, &consumer);
	stage_until_ready(stage, 1);
	pass(stage, 2 * MS);
	return stage;
}

/* Freezes a process, whose kernel still accepts connections and data. */
static void freeze(struct stage *stage, unsigned process, uint64_t ns)
{
	spokei_world_hold(&stage->processes[process], ns);
}

/* Begins the next case on a new stage. */
static void restart(void **state)
{
	const struct stage_setting *setting = ((struct stage *)*state)->setting;

	assert_int_equal(stage_tear_down(state), 0);
	*state = (void *)(uintptr_t)setting;
	assert_int_equal(stage_set_up(state), 0);
}

RUNNER(stage_run);

TEST(an_idle_link_is_asked_and_kept)
{
	struct stage *stage = begin(state, INTERVAL, 60 * SECOND);

	if (stage == NULL)
		return;
	pass(stage, 100 * INTERVAL);
	assert_in_range(stage_client_stat(stage, SPOKE_STAT_PROBES_WRITTEN), 99, 102);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_PROBES_WRITTEN), 0);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_PROBES_MISSED), 0);
	assert_int_equal(consumers_diary.count, 1);
	assert_int_equal(consumers_diary.news[0].change, SPOKE_LINK_CONNECTED);
	assert_int_equal(providers_diary.count, 1);
	assert_int_equal(providers_diary.news[0].change, SPOKE_LINK_CONNECTED);
}

/* Returns the turns of both sides that had neither a message to read nor a heartbeat to send. */
static uint64_t empty_turns(struct stage *stage)
{
	uint64_t reasons = stage_client_stat(stage, SPOKE_STAT_MESSAGES_READ) +
			   stage_server_stat(stage, SPOKE_STAT_MESSAGES_READ) +
			   stage_client_stat(stage, SPOKE_STAT_PROBES_WRITTEN) +
			   stage_server_stat(stage, SPOKE_STAT_PROBES_WRITTEN);

	return stage->client_engine->turn + stage->server_engine->turn - reasons;
}

/* Over a bare socket, which passes a message on as a whole. */
TEST(only_heartbeats_turn_an_idle_loop)
{
	static const uint64_t both_ns[][2] = { { INTERVAL, 60 * SECOND },
					       { 60 * SECOND, INTERVAL },
					       { INTERVAL, INTERVAL } };

	for (size_t i = 0; i < LENGTH(both_ns); i++) {
		struct stage *stage = begin(state, both_ns[i][0], both_ns[i][1]);
		uint64_t empty;

		if (stage == NULL || stage->setting->stream)
			return;
		pass(stage, 70 * SECOND);
		empty = empty_turns(stage);
		pass(stage, 600 * SECOND);
		assert_int_equal(empty_turns(stage), empty);
		restart(state);
	}
}

TEST(calls_that_come_often_enough_leave_nothing_to_ask)
{
	struct stage *stage = begin(state, INTERVAL, INTERVAL);

	if (stage == NULL)
		return;
	for (int i = 0; i < 40; i++) {
		echo_ends_well(stage);
		pass(stage, INTERVAL / 2);
	}
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_PROBES_WRITTEN), 1);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_PROBES_WRITTEN), 0);
}

TEST(disabled_heartbeat_sends_one_probe_only)
{
	struct stage *stage = begin(state, SPOKE_OFF, SPOKE_OFF);

	if (stage == NULL)
		return;
	freeze(stage, SERVER, 3600 * SECOND);
	pass(stage, 3601 * SECOND);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_PROBES_WRITTEN), 1);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_CLOSED), 0);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 0);
}

/* The kernel of the frozen provider accepts the new connection, and no heartbeat is answered. */
static void assert_probation_ends_in_silence(unsigned *at)
{
	uint64_t from_ns = assert_next(&consumers_diary, at, SPOKE_LINK_PROBATION, SPOKE_OK);

	for (unsigned missed = 1; missed <= 3; missed++)
		(void)assert_next(&consumers_diary, at, SPOKE_LINK_SUSPECT, SPOKE_OK);
	/* The first heartbeat, sent at once, counts. */
	assert_true(assert_next(&consumers_diary, at, SPOKE_LINK_CLOSED, SPOKE_ESILENT) <=
		    from_ns + 3 * INTERVAL + TICK);
}

TEST(consumer_detects_frozen_provider_and_reconnects)
{
	struct stage *stage = begin(state, INTERVAL, SPOKE_OFF);
	unsigned at = 1;
	uint64_t from_ns;
	uint64_t last_ns;

	if (stage == NULL)
		return;
	from_ns = stage->world.now_ns;
	freeze(stage, SERVER, 10 * INTERVAL);
	pass(stage, 9 * INTERVAL);
	for (unsigned missed = 1; missed <= 3; missed++) {
		assert_int_equal(consumers_diary.news[at].missed, missed);
		(void)assert_next(&consumers_diary, &at, SPOKE_LINK_SUSPECT, SPOKE_OK);
	}
	last_ns = assert_next(&consumers_diary, &at, SPOKE_LINK_CLOSED, SPOKE_ESILENT);
	assert_true(last_ns <= from_ns + 4 * INTERVAL + TICK);
	(void)assert_next(&consumers_diary, &at, SPOKE_LINK_RECONNECTING, SPOKE_ESILENT);
	/* No handshake finishes while the provider is frozen, so probation begins only later. */
	if (!stage->setting->stream)
		assert_probation_ends_in_silence(&at);
	assert_int_equal(spoke_consumer_ready(stage->consumer), 0);
	stage_until_ready(stage, 1);
	assert_int_equal(consumers_diary.news[consumers_diary.count - 1].change,
			 SPOKE_LINK_RECOVERED);
	echo_ends_well(stage);
}

TEST(a_provider_notices_a_frozen_consumer_and_closes)
{
	struct stage *stage = begin(state, SPOKE_OFF, INTERVAL);
	unsigned at = 1;
	uint64_t from_ns;

	if (stage == NULL)
		return;
	from_ns = stage->world.now_ns;
	freeze(stage, CLIENT, 6 * INTERVAL);
	pass(stage, 5 * INTERVAL);
	for (unsigned missed = 1; missed <= 3; missed++)
		(void)assert_next(&providers_diary, &at, SPOKE_LINK_SUSPECT, SPOKE_OK);
	assert_true(assert_next(&providers_diary, &at, SPOKE_LINK_CLOSED, SPOKE_ESILENT) <=
		    from_ns + 4 * INTERVAL + TICK);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED_SILENT), 1);
	assert_int_equal(spoke_provider_connections(stage->provider), 0);
}

TEST(a_word_in_time_clears_suspicion)
{
	struct stage *stage = begin(state, INTERVAL, SPOKE_OFF);
	unsigned at = 1;

	if (stage == NULL)
		return;
	for (int i = 0; i < 10; i++) {
		echo_ends_well(stage);
		freeze(stage, SERVER, 5 * INTERVAL / 2 + MS);
		pass(stage, 5 * INTERVAL / 2);
		assert_int_equal(spoke_consumer_ready(stage->consumer), 0);
		pass(stage, INTERVAL);
		assert_int_equal(spoke_consumer_ready(stage->consumer), 1);
		(void)assert_next(&consumers_diary, &at, SPOKE_LINK_SUSPECT, SPOKE_OK);
		(void)assert_next(&consumers_diary, &at, SPOKE_LINK_RECOVERED, SPOKE_OK);
	}
	assert_int_equal(at, consumers_diary.count);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_CLOSED), 0);
}

TEST(differing_intervals_close_no_connection)
{
	const uint64_t pairs[][2] = {
		{ 10 * MS, 2 * SECOND },
		{ 2 * SECOND, 10 * MS },
		{ 10 * MS, 10 * MS },
		{ SPOKE_OFF, 10 * MS },
	};

	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct stage *stage = begin(state, pairs[i][0], pairs[i][1]);

		if (stage == NULL)
			return;
		pass(stage, 60 * SECOND);
		assert_int_equal(consumers_diary.count, 1);
		assert_int_equal(providers_diary.count, 1);
		restart(state);
	}
}

/* --- stalls and sleep */

static struct {
	struct stage *stage;
	struct spoke_alarm alarm;
	uint64_t ns;
} stall;

static void hold_up(struct spoke_alarm *alarm)
{
	(void)alarm;
	spokei_world_hold(&stall.stage->processes[CLIENT], stall.ns);
}

TEST(stalled_side_closes_no_connection)
{
	const uint64_t tenths[] = { 5, 10, 11, 20, 31, 40, 55, 100 };

	for (unsigned i = 0; i < sizeof(tenths) / sizeof(tenths[0]); i++) {
		struct stage *stage = begin(state, INTERVAL, SPOKE_OFF);

		if (stage == NULL)
			return;
		stall.stage = stage;
		stall.ns = INTERVAL / 10 * tenths[i];
		for (uint64_t at_ms = 3; at_ms < 100; at_ms += 16) {
			assert_int_equal(spoke_alarm_after(stage->client_engine, &stall.alarm,
							   at_ms * MS, hold_up),
					 SPOKE_OK);
			pass(stage, 20 * INTERVAL);
		}
		assert_int_equal(stage_client_stat(stage, SPOKE_STAT_PROBES_MISSED), 0);
		assert_int_equal(consumers_diary.count, 1);
		restart(state);
	}
}

TEST(after_a_sleep_of_the_machine_peers_are_asked_at_once)
{
	struct stage *stage = begin(state, 60 * SECOND, SPOKE_OFF);

	if (stage == NULL)
		return;
	spokei_world_sleep(&stage->world, 3600 * SECOND);
	pass(stage, SECOND);
	echo_ends_well(stage); /* an event that makes the engine compare its clocks */
	pass(stage, SECOND);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_SLEEPS), 1);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_PROBES_WRITTEN), 2);
	assert_int_equal(stage_client_stat(stage, SPOKE_STAT_PROBES_MISSED), 0);
	pass(stage, 120 * SECOND);
	assert_int_equal(consumers_diary.count, 1);
}

/* --- choice of the endpoint */

static struct spokei_conn *first_conn(const struct spokei_link *link)
{
	return spoke_container_of(link->conns.next, struct spokei_conn, node);
}

static int first_conn_fd(const struct spokei_link *link)
{
	return first_conn(link)->stream.watch.fd;
}

static void name_instance(struct spoke_alarm *alarm)
{
	(void)alarm;
	spokei_link_name(stall.stage->provider->link, 77, 0);
}

TEST(heartbeat_does_not_wait_for_the_frames_behind_it)
{
	struct spokei_vnet_link narrow = { .blackhole = true, .capacity = 1 };
	struct stage *stage = begin(state, SPOKE_OFF, INTERVAL);
	struct spokei_conn *conn;

	if (stage == NULL || first_conn(stage->provider->link)->stream.layered)
		return;
	conn = first_conn(stage->provider->link);
	spokei_vnet_set_all(stage->world.net, &narrow);
	pass(stage, INTERVAL + 2 * TICK);
	assert_true(conn->idle.asked && !conn->idle.handed);
	stall.stage = stage;
	assert_int_equal(spoke_alarm_after(stage->server_engine, &stall.alarm, TICK, name_instance),
			 SPOKE_OK);
	pass(stage, 3 * TICK);
	assert_true(conn->idle.ahead < spokei_buffer_len(&conn->out.control));
	narrow.capacity += conn->idle.ahead;
	spokei_vnet_set_all(stage->world.net, &narrow);
	pass(stage, 2 * TICK);
	assert_true(conn->idle.handed);
	assert_true(spokei_buffer_len(&conn->out.control) > 0);
}

STAGE_TEST(the_system_watches_over_connections_too)
{
	struct spokei_vnet_guard guard;

	if (!stage->setting->in_memory)
		return;
	stage_until_ready(stage, 1);
	echo_ends_well(stage);
	guard = *spokei_vnet_guard(stage->world.net, first_conn_fd(stage->consumer->link));
	assert_int_equal(guard.unanswered_ns, stage->setting->dubbo ? 45 * SECOND : 120 * SECOND);
	assert_int_equal(guard.keepalive_ns, stage->setting->dubbo ? 0 : 60 * SECOND);
	guard = *spokei_vnet_guard(stage->world.net, first_conn_fd(stage->provider->link));
	assert_int_equal(guard.unanswered_ns, stage->setting->dubbo ? 45 * SECOND : 120 * SECOND);
	assert_int_equal(guard.keepalive_ns, stage->setting->dubbo ? 0 : 60 * SECOND);
}

BARE_STAGE_TEST(idle_close_ends_silent_connection_without_heartbeats)
{
	struct spoke_provider_options options = { .idle_close_ns = INTERVAL };

	if (!stage->setting->in_memory || stage->setting->dubbo)
		return;
	stage_provide(stage, &options);
	stage_consume(stage, NULL);
	for (int i = 0; i < 10; i++) {
		echo_ends_well(stage);
		pass(stage, INTERVAL - 2 * MS);
	}
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED), 0);
	pass(stage, 3 * MS);
	assert_int_equal(stage_server_stat(stage, SPOKE_STAT_CLOSED_IDLE), 1);
}

BARE_STAGE_TEST(callers_choose_another_endpoint_before_the_reconnect)
{
	struct spoke_provider_options provider = { .heartbeat_ns = SPOKE_OFF };
	char more[256];
	const char *urls[] = { more };
	struct spoke_consumer_options consumer = {
		.heartbeat_ns = INTERVAL,
		.balancer = &spoke_balancer_round_robin,
		.more_urls = urls,
		.more_count = 1,
		.changed = note,
		.changed_arg = &consumers_diary,
	};
	struct spokei_vnet_link frozen = { .blackhole = true };

	consumers_diary = (struct diary){ .stage = stage };
	if (!stage->setting->in_memory || !stage->setting->dubbo)
		return;
	stage_provide(stage, &provider);
	stage_url(stage, stage_listen(stage), "", more, sizeof(more));
	stage_consume(stage, &consumer);
	stage_until_ready(stage, 2);
	pass(stage, 2 * MS);
	/* Requests on one of the two links are lost. */
	*spokei_vnet_link(stage->world.net, first_conn_fd(stage->consumer->link)) = frozen;
	pass(stage, 5 * INTERVAL / 2);
	assert_int_equal(count_of(&consumers_diary, SPOKE_LINK_SUSPECT), 1);
	assert_int_equal(spoke_consumer_ready(stage->consumer), 1);
	for (int i = 0; i < 20; i++)
		echo_ends_well(stage);
}

/* --- freeing in the event callback */

static void free_consumer_now(struct stage *stage, const struct spoke_link_event *event)
{
	(void)event;
	if (stage->consumer)
		spoke_consumer_free(stage->consumer);
	stage->consumer = NULL;
}

static void free_provider_now(struct stage *stage, const struct spoke_link_event *event)
{
	(void)event;
	if (stage->provider)
		spoke_provider_free(stage->provider);
	stage->provider = NULL;
}

static enum spoke_link_change free_change;

static void free_at_change(struct stage *stage, const struct spoke_link_event *event)
{
	if (event->change == free_change)
		free_consumer_now(stage, event);
}

TEST(owners_may_be_freed_in_each_event_callback)
{
	static const enum spoke_link_change changes[] = {
		SPOKE_LINK_SUSPECT,   SPOKE_LINK_CLOSED,    SPOKE_LINK_RECONNECTING,
		SPOKE_LINK_PROBATION, SPOKE_LINK_RECOVERED,
	};

	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct stage *stage = begin(state, INTERVAL, INTERVAL);

		if (stage == NULL)
			return;
		free_change = changes[i];
		consumers_diary.then = free_at_change;
		providers_diary.then = i == 0 ? free_provider_now : NULL;
		(void)stage_call(stage, stage_method(stage, "later"), stage_text(stage, "x"));
		freeze(stage, SERVER, 20 * INTERVAL);
		pass(stage, 10 * SECOND);
		assert_null(stage->consumer);
		restart(state);
	}
}
