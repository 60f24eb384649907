/* SPDX-License-Identifier: Apache-2.0 */
/* The connector: keeps one address connected, waits, and is freed at any time. */
#include "core/engine/engine.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"
#include "tests/transport/connect/connectrig.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <spoke/engine.h>
#include <spoke/stats.h>
#include <spoke/wheel.h>

#include <errno.h>
#include <string.h>

#define AT "127.0.0.1:20880"

FIXTURE(connectrig_set_up, connectrig_tear_down);

CONNECT_TEST(digits_are_connecting_before_new_returns)
{
	int listener = connectrig_listen(rig, AT);
	struct spokei_conn *conn;

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	assert_int_equal(spokei_connector_state(rig->connector), SPOKEI_CONNECTOR_CONNECTING);
	conn = spokei_connector_conn(rig->connector);
	assert_non_null(conn);
	assert_string_equal(spokei_connector_name(rig->connector), AT);
	(void)connectrig_wait_open(rig, listener);
	assert_ptr_equal(spokei_connector_conn(rig->connector), conn);
	assert_int_equal(rig->told[rig->told_count - 1].error, SPOKE_OK);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS), 1);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTED), 1);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS_FAILED), 0);
	assert_int_equal(connectrig_events(rig, SPOKE_OK, "connected to " AT), 1);
}

CONNECT_TEST(failure_inside_new_is_reported_later)
{
	rig->client.user.fds_max = 1;
	assert_int_equal(spokei_vnet_table.spare(&rig->client, &(int){ 0 }), 0);
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	assert_int_equal(spokei_connector_state(rig->connector), SPOKEI_CONNECTOR_WAITING);
	assert_null(spokei_connector_conn(rig->connector));
	assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_ECONNECT);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS_FAILED), 1);
	assert_int_equal(connectrig_events(rig, SPOKE_ECONNECT, strerror(EMFILE)), 1);
	connectrig_run(rig, 60 * SECOND);
	assert_in_range(connectrig_stat(rig, SPOKE_STAT_CONNECTS), 9, 13);
	spokei_vnet_kill(&rig->client.user);
	(void)connectrig_listen(rig, AT);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
}

CONNECT_TEST(refused_it_waits_longer_each_time_and_never_too_long)
{
	uint64_t first_at_cap_ns = 0;
	bool spread = false;

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING);
	for (unsigned i = 0; i < 24; i++) {
		const struct told *waiting = connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
		uint64_t pause_ns = connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING)->at_ns -
				    waiting->at_ns;

		assert_int_equal(waiting->error, SPOKE_ECONNECT);
		assert_string_equal(waiting->peer, "");
		connectrig_assert_pause(pause_ns, i);
		spread |= first_at_cap_ns && pause_ns != first_at_cap_ns;
		first_at_cap_ns = i == 20 ? pause_ns : first_at_cap_ns;
		assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS), i + 2);
		assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS_FAILED), i + 1);
	}
	assert_true(spread);
	assert_int_equal(connectrig_events(rig, SPOKE_ECONNECT, "cannot connect to " AT), 1);
}

CONNECT_TEST(silence_ends_an_attempt_after_its_time)
{
	const struct told *began;
	uint64_t took_ns;

	spokei_vnet_route(rig->world.net, AT, SPOKEI_VNET_SILENT);
	rig->options.connect_ns = 700 * MS;
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	began = connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING);
	took_ns = connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->at_ns - began->at_ns;
	assert_in_range(took_ns, 700 * MS, 700 * MS + CONNECTRIG_TICK);
	assert_int_equal(rig->client.user.fds, 0);
	assert_int_equal(connectrig_events(rig, SPOKE_ECONNECT, "no answer in 700 ms"), 1);
	spokei_vnet_route(rig->world.net, AT, SPOKEI_VNET_NORMAL);
	(void)connectrig_listen(rig, AT);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
	connectrig_run(rig, 10 * SECOND); /* the attempt's timeout has passed */
	assert_int_equal(spokei_connector_state(rig->connector), SPOKEI_CONNECTOR_OPEN);
}

CONNECT_TEST(the_time_of_an_attempt_has_a_default)
{
	spokei_vnet_route(rig->world.net, AT, SPOKEI_VNET_SILENT);
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	connectrig_run(rig, 4999 * MS);
	assert_int_equal(spokei_connector_state(rig->connector), SPOKEI_CONNECTOR_CONNECTING);
	connectrig_run(rig, 3 * MS);
	assert_int_equal(spokei_connector_state(rig->connector), SPOKEI_CONNECTOR_WAITING);
}

CONNECT_TEST(a_stall_of_this_process_is_not_the_peers_silence)
{
	int listener = connectrig_listen(rig, AT);

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	rig->engine->due_ns = spoke_wheel_next(rig->engine->wheel);
	spokei_world_stall(&rig->world, 20 * SECOND);
	(void)connectrig_wait_open(rig, listener);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS), 1);
}

CONNECT_TEST(unreachable_address_is_retried)
{
	spokei_vnet_route(rig->world.net, AT, SPOKEI_VNET_UNREACHABLE);
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_ECONNECT);
	spokei_vnet_route(rig->world.net, AT, SPOKEI_VNET_NORMAL);
	(void)connectrig_listen(rig, AT);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
}

CONNECT_TEST(a_connection_to_itself_is_closed_before_a_byte)
{
	spokei_vnet_route(rig->world.net, AT, SPOKEI_VNET_SELF);
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_ESELF);
	for (unsigned i = 0; i < rig->told_count; i++)
		assert_int_not_equal(rig->told[i].state, SPOKEI_CONNECTOR_OPEN);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS_SELF), 1);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS_FAILED), 1);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTED), 0);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_BYTES_WRITTEN), 0);
	assert_int_equal(connectrig_events(rig, SPOKE_ESELF, AT), 1);
	assert_int_equal(rig->client.user.fds, 0);
	connectrig_run(rig, 60 * SECOND);
	assert_in_range(connectrig_stat(rig, SPOKE_STAT_CONNECTS_SELF), 9, 13);
}

CONNECT_TEST(a_full_backlog_of_a_unix_socket_is_a_failed_attempt)
{
	rig->options.host = NULL;
	rig->options.path = "/run/demo";
	(void)connectrig_listen(rig, "unix:/run/demo");
	spokei_faults_fail(&rig->faulty, SPOKEI_FAULTS_CONNECT, 1, -EAGAIN, false);
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	assert_string_equal(spokei_connector_name(rig->connector), "unix:/run/demo");
	assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_ECONNECT);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
}

CONNECT_TEST(peer_that_never_sends_does_not_reset_backoff)
{
	int listener = connectrig_listen(rig, AT);

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	for (unsigned i = 0; i < 8; i++) {
		const struct told *waiting;

		connectrig_hang_up(rig, connectrig_wait_open(rig, listener));
		waiting = connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
		assert_int_equal(waiting->error, SPOKE_ELOST);
		connectrig_assert_pause(connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING)->at_ns -
						waiting->at_ns,
					i);
	}
	assert_int_equal(connectrig_events(rig, SPOKE_ELOST, "which never spoke"), 8);
}

/* Neither a peer that expects TLS nor one that denies this host answers a plain byte. */
CONNECT_TEST(peer_that_ends_before_a_byte_raises_the_question_of_tls_once)
{
	int listener = connectrig_listen(rig, AT);
	int fd;

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	for (unsigned i = 0; i < 3; i++)
		connectrig_hang_up(rig, connectrig_wait_open(rig, listener));
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
	assert_int_equal(connectrig_events(rig, SPOKE_ELOST, "which never spoke"), 3);
	assert_int_equal(connectrig_events(rig, SPOKE_ELOST, "does it expect TLS (tls=on here)"),
			 1);
	assert_non_null(strstr(spokei_connector_reason(rig->connector), "does it expect TLS"));
	fd = connectrig_wait_open(rig, listener);
	connectrig_speak(rig, fd);
	connectrig_run(rig, SECOND);
	assert_string_equal(spokei_connector_reason(rig->connector), "");
	connectrig_hang_up(rig, fd);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
	assert_int_equal(connectrig_events(rig, SPOKE_ELOST, "does it expect TLS"), 1);
}

/* A provider that shuts down ends new connections for some seconds. One that expects TLS from now
 * on does so for ever. */
CONNECT_TEST(peer_that_has_spoken_raises_the_question_of_tls_late)
{
	int listener = connectrig_listen(rig, AT);
	int fd;

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	fd = connectrig_wait_open(rig, listener);
	connectrig_speak(rig, fd);
	connectrig_run(rig, SECOND);
	connectrig_hang_up(rig, fd);
	for (unsigned i = 1; i <= 12; i++) {
		const char *reason;

		connectrig_hang_up(rig, connectrig_wait_open(rig, listener));
		(void)connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
		assert_int_equal(connectrig_events(rig, SPOKE_ELOST, "does it expect TLS"),
				 i >= 10);
		reason = spokei_connector_reason(rig->connector);
		assert_non_null(strstr(reason, "ended the connection before it sent a byte"));
		assert_int_equal(strstr(reason, "does it expect TLS") != NULL, i >= 10);
	}
}

/* Its first byte shows that it does not wait for a handshake. */
CONNECT_TEST(peer_that_has_sent_a_part_of_a_frame_raises_no_question)
{
	static const unsigned char part[] = { 0xda, 0xbb };
	struct iovec bytes = spokei_stream_part(part, sizeof(part));
	int listener = connectrig_listen(rig, AT);
	int fd;

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	fd = connectrig_wait_open(rig, listener);
	assert_int_equal(rig->server.env.net->write(rig->server.env.ctx, fd, &bytes, 1),
			 sizeof(part));
	connectrig_run(rig, 10 * MS);
	connectrig_hang_up(rig, fd);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
	assert_int_equal(connectrig_events(rig, SPOKE_ELOST, "which never spoke"), 1);
	assert_int_equal(connectrig_events(rig, SPOKE_ELOST, "does it expect TLS"), 0);
}

CONNECT_TEST(once_the_peer_has_spoken_the_pauses_start_over)
{
	const struct told *waiting;
	int listener;

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	for (unsigned i = 0; i < 6; i++)
		(void)connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
	listener = connectrig_listen(rig, AT);
	for (unsigned i = 0; i < 3; i++) {
		int fd = connectrig_wait_open(rig, listener);

		connectrig_speak(rig, fd);
		connectrig_run(rig, 10 * SECOND);
		connectrig_hang_up(rig, fd);
		waiting = connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
		assert_int_equal(waiting->error, SPOKE_ELOST);
		connectrig_assert_pause(connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING)->at_ns -
						waiting->at_ns,
					0);
	}
	connectrig_hang_up(rig, connectrig_wait_open(rig, listener));
	waiting = connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
	connectrig_assert_pause(connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING)->at_ns -
					waiting->at_ns,
				1);
	assert_int_equal(connectrig_events(rig, SPOKE_ELOST, "lost the connection to " AT ";"), 3);
}

CONNECT_TEST(a_peer_that_speaks_garbage_is_a_failure)
{
	int listener = connectrig_listen(rig, AT);
	char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	struct iovec part = { http, sizeof(http) - 1 };

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	for (unsigned i = 0; i < 5; i++) {
		int fd = connectrig_wait_open(rig, listener);
		const struct told *waiting;

		assert_true(spokei_vnet_table.write(&rig->server, fd, &part, 1) > 0);
		waiting = connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING);
		assert_int_equal(waiting->error, SPOKE_EPROTOCOL);
		connectrig_assert_pause(connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING)->at_ns -
						waiting->at_ns,
					i);
	}
}

/* It refuses the plain bytes with an alert. */
CONNECT_TEST(peer_that_answers_with_a_record_of_tls_is_known_to_expect_it)
{
	static unsigned char alert[] = { 0x15, 3, 3, 0, 2, 2, 10 };
	int listener = connectrig_listen(rig, AT);
	struct iovec part = { alert, sizeof(alert) };

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	assert_true(spokei_vnet_table.write(&rig->server, connectrig_wait_open(rig, listener),
					    &part, 1) > 0);
	assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_EPROTOCOL);
	assert_int_equal(connectrig_events(rig, SPOKE_EPROTOCOL, "it speaks TLS; set tls=on here"),
			 1);
}

/* E.g. the port of a Redis server in the URL of a provider. */
CONNECT_TEST(other_program_is_named_by_its_first_bytes)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *name;
	} rows[] = {
#define BYTES(text) (text), sizeof(text) - 1
		{ BYTES("-ERR unknown command"), "a Redis server answers there" },
		{ BYTES("-NOAUTH Authentication required.\r\n"), "a Redis server answers there" },
		{ BYTES("HTTP/1.1 400 Bad Request\r\n"), "an HTTP server answers there" },
		{ BYTES("<!DOCTYPE HTML>\n<html>"), "an HTTP server answers there" },
		{ BYTES("\0\0\x12\4\0\0\0\0\0"), "a server of HTTP/2 answers there" },
		{ BYTES("SSH-2.0-OpenSSH_9.2\r\n"), "an SSH server answers there" },
		{ BYTES("220 mail.test ESMTP\r\n"), "a server of mail or FTP answers there" },
		{ BYTES("\x15\3\3\0\2\2\x0a"), "it speaks TLS; set tls=on here" },
#undef BYTES
	};
	int listener = connectrig_listen(rig, AT);

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct iovec part = spokei_stream_part(rows[i].bytes, rows[i].len);
		const char *reason;

		assert_true(spokei_vnet_table.write(&rig->server,
						    connectrig_wait_open(rig, listener), &part,
						    1) > 0);
		assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->error,
				 SPOKE_EPROTOCOL);
		reason = spokei_connector_reason(rig->connector);
		assert_non_null(strstr(reason, "another protocol is spoken there: "));
		assert_non_null(strstr(reason, rows[i].name));
		assert_true(connectrig_events(rig, SPOKE_EPROTOCOL, rows[i].name) > 0);
	}
}

CONNECT_TEST(a_connection_that_takes_no_calls_is_not_handed_out)
{
	int listener = connectrig_listen(rig, AT);
	struct spokei_conn *conn;

	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	(void)connectrig_wait_open(rig, listener);
	conn = spokei_connector_conn(rig->connector);
	spokei_conn_finish(conn);
	assert_null(spokei_connector_conn(rig->connector));
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
	conn = spokei_connector_conn(rig->connector);
	spokei_conn_close(conn, SPOKE_ESILENT);
	assert_null(spokei_connector_conn(rig->connector));
	assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_ESILENT);
}

/* --- The connector: freed in each state and after each step, without memory and without timers */

#define OTHER_AT "10.0.0.2:20880"

/* Opens the rig with a name of two addresses: the first refuses connections, the second listens. */
static int open_with_name(struct connectrig *rig, uint64_t seed)
{
	connectrig_open(rig, seed);
	spokei_vnet_name(rig->world.net, "demo.test", "10.0.0.1 10.0.0.2");
	rig->options.host = "demo.test";
	return connectrig_listen(rig, OTHER_AT);
}

/* Asserts that the freed connector reports nothing, connects no more and leaves nothing behind. */
static void assert_gone(struct connectrig *rig)
{
	unsigned told = rig->told_count;
	uint64_t connects = connectrig_stat(rig, SPOKE_STAT_CONNECTS);

	assert_int_equal(connectrig_timers(rig), 0);
	assert_int_equal(rig->client.user.fds, 0);
	connectrig_run(rig, 100 * SECOND);
	assert_int_equal(rig->told_count, told);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS), connects);
	connectrig_close(rig);
}

TEST(connector_may_be_freed_in_report_of_any_state, .bare = true)
{
	static const enum spokei_connector_state states[] = {
		SPOKEI_CONNECTOR_RESOLVING,
		SPOKEI_CONNECTOR_CONNECTING,
		SPOKEI_CONNECTOR_OPEN,
		SPOKEI_CONNECTOR_WAITING,
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct connectrig rig;
		int listener = open_with_name(&rig, 3);

		rig.free_in = (int)states[i];
		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		if (states[i] == SPOKEI_CONNECTOR_WAITING ||
		    states[i] == SPOKEI_CONNECTOR_RESOLVING)
			connectrig_hang_up(&rig, connectrig_wait_open(&rig, listener));
		(void)connectrig_wait(&rig, states[i]);
		assert_null(rig.connector);
		assert_gone(&rig);
	}
}

/* Runs through all states, one step further each time. */
TEST(connector_may_be_freed_after_any_step, .bare = true)
{
	bool whole = false;

	for (unsigned steps = 0; !whole; steps++) {
		struct connectrig rig;
		int listener = open_with_name(&rig, steps);

		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		for (unsigned i = 0; i < steps; i++) {
			int fd = connectrig_accept(&rig, listener);

			if (fd >= 0) {
				connectrig_speak(&rig, fd);
				connectrig_hang_up(&rig, fd);
			}
			(void)spokei_world_step(&rig.world, rig.world.now_ns + SECOND);
		}
		whole = connectrig_stat(&rig, SPOKE_STAT_CONNECTED) >= 3;
		connectrig_free(&rig);
		assert_gone(&rig);
	}
}

TEST(its_engine_may_be_freed_right_after_it, .bare = true)
{
	for (unsigned steps = 0; steps < 8; steps++) {
		struct connectrig rig;

		(void)open_with_name(&rig, steps);
		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		for (unsigned i = 0; i < steps; i++)
			(void)spokei_world_step(&rig.world, rig.world.now_ns + SECOND);
		connectrig_free(&rig);
		scene_leave(&rig.client, &rig.faulty, &rig.engine);
		scene_kill(&rig.server);
		spokei_world_fini(&rig.world);
	}
}

static struct spoke_work *held;

static int hold_work(void *loop, struct spoke_work *work)
{
	(void)loop;
	held = work;
	return 0;
}

/* Ends the work like a pool that is stopped before it has begun the work. */
static void hand_back(int status)
{
	held->status = status;
	held->done(held);
}

TEST(freed_while_a_name_is_resolved_it_stays_until_that_is_done, .bare = true)
{
	static const int results[] = { 0, -ECANCELED };

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		struct connectrig rig;
		size_t blocks;

		(void)open_with_name(&rig, 3);
		rig.faulty.loop.offload = hold_work;
		blocks = rig.faulty.blocks;
		assert_int_equal(connectrig_start(&rig), SPOKE_OK);
		connectrig_run(&rig, SECOND);
		connectrig_free(&rig);
		connectrig_run(&rig, SECOND);
		assert_int_equal(rig.faulty.blocks, blocks + 2); /* and the lookup */
		if (results[i] == 0)
			held->run(held);
		hand_back(results[i]);
		connectrig_run(&rig, SECOND);
		assert_int_equal(rig.faulty.blocks, blocks);
		assert_gone(&rig);
	}
}

TEST(a_cancelled_work_is_a_failed_round, .bare = true)
{
	struct connectrig rig;

	(void)open_with_name(&rig, 3);
	rig.faulty.loop.offload = hold_work;
	assert_int_equal(connectrig_start(&rig), SPOKE_OK);
	hand_back(-ECANCELED);
	assert_int_equal(spokei_connector_state(rig.connector), SPOKEI_CONNECTOR_WAITING);
	assert_int_equal(connectrig_stat(&rig, SPOKE_STAT_RESOLVES_FAILED), 1);
	connectrig_free(&rig);
	assert_gone(&rig);
}

TEST(one_want_of_memory_anywhere_is_survived, .bare = true)
{
	bool failed = true;

	for (uint64_t nth = 1; failed; nth++) {
		struct connectrig rig;
		int listener = open_with_name(&rig, nth);
		int error;

		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = connectrig_start(&rig);
		if (error == SPOKE_OK) {
			int fd = connectrig_wait_open(&rig, listener);

			connectrig_speak(&rig, fd);
			connectrig_run(&rig, MS);
			connectrig_hang_up(&rig, fd);
			connectrig_run(&rig, SECOND);
			assert_in_range(connectrig_stat(&rig, SPOKE_STAT_CONNECTED), 2, 3);
		} else {
			assert_int_equal(error, SPOKE_ENOMEM);
			assert_null(rig.connector);
		}
		failed = rig.faulty.failed[SPOKEI_FAULTS_MEMORY] > 0;
		spokei_faults_heal(&rig.faulty);
		connectrig_free(&rig);
		connectrig_run(&rig, 0);
		assert_gone(&rig);
	}
}

/* While every allocation fails, the connector can only retry with its backoff. A round has one
 * address then: with this seed that which listens. */
TEST(without_any_memory_it_waits_and_goes_on_later, .bare = true)
{
	struct connectrig rig;
	int listener;

	listener = open_with_name(&rig, 1);
	assert_int_equal(connectrig_start(&rig), SPOKE_OK);
	spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, true);
	assert_int_equal(connectrig_wait(&rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_ENOMEM);
	assert_true(connectrig_events(&rig, SPOKE_ENOMEM, "") >= 1);
	connectrig_run(&rig, 20 * SECOND);
	assert_in_range(connectrig_stat(&rig, SPOKE_STAT_CONNECTS), 1, 30);
	spokei_faults_heal(&rig.faulty);
	(void)connectrig_wait_open(&rig, listener);
	connectrig_close(&rig);
}

static void fill_wheel(struct spoke_alarm *alarm)
{
	(void)alarm;
}

TEST(a_full_wheel_does_not_strand_it, .bare = true)
{
	struct spoke_engine_options options = { .timers_max = 1 };
	struct spoke_alarm alarm = { .period_ns = 0 };
	struct spokei_link_limits limits;
	struct connectrig rig;

	connectrig_open(&rig, 4);
	spokei_link_fini(&rig.link);
	spoke_engine_free(rig.engine);
	options.env = &rig.faulty.env;
	assert_int_equal(spoke_engine_new(&options, &rig.engine), SPOKE_OK);
	spokei_link_limits_init(&limits);
	assert_int_equal(spokei_link_init(&rig.link, rig.engine, &limits), SPOKE_OK);

	assert_int_equal(spoke_alarm_after(rig.engine, &alarm, SECOND, fill_wheel), SPOKE_OK);
	assert_int_equal(connectrig_start(&rig), SPOKE_ELIMIT);
	(void)spoke_alarm_cancel(&alarm);
	assert_int_equal(connectrig_start(&rig), SPOKE_OK);
	for (unsigned i = 0; i < 20; i++)
		(void)connectrig_wait(&rig, SPOKEI_CONNECTOR_WAITING);
	(void)connectrig_listen(&rig, "127.0.0.1:20880");
	(void)connectrig_wait(&rig, SPOKEI_CONNECTOR_OPEN);
	connectrig_run(&rig, 3 * 3600 * SECOND);
	assert_int_equal(connectrig_timers(&rig), 1);
	connectrig_close(&rig);
}

/* --- Calls that wait at the connection of a connector which is freed or retired meanwhile */

#define PATH "/run/demo.sock"

static struct {
	struct spokei_pending pending;
	unsigned ended;
	int error;
} call;

static void note_end(struct spokei_pending *pending, const struct spokei_outcome *outcome)
{
	(void)pending;
	call.ended++;
	call.error = outcome->error;
}

static void begin_call(struct connectrig *rig)
{
	static const unsigned char nil[] = { 0xc0 };
	struct spokei_message message = {
		.kind = SPOKEI_REQUEST,
		.two_way = true,
		.codec = 27,
		.service = { "demo.Echo", 9 },
		.method = { "echo", 4 },
		.args = { nil, sizeof(nil) },
		.arg_count = 1,
	};

	call.ended = 0;
	call.pending = (struct spokei_pending){ .timeout_ns = 1000 * SECOND, .done = note_end };
	assert_int_equal(spokei_conn_call(spokei_connector_conn(rig->connector), &call.pending,
					  &message),
			 0);
}

CONNECT_TEST(waiting_call_is_closed_with_a_connector_freed_in_a_report)
{
	int path = connectrig_listen(rig, "unix:" PATH);
	int fd;

	(void)connectrig_listen(rig, AT);
	rig->options.local = PATH;
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	begin_call(rig);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING);
	connectrig_run(rig, MS);
	fd = connectrig_accept(rig, path);
	rig->free_in = SPOKEI_CONNECTOR_CONNECTING;
	connectrig_hang_up(rig, fd);
	connectrig_run(rig, MS);
	assert_null(rig->connector);
	assert_int_equal(call.ended, 1);
	assert_int_equal(call.error, SPOKE_ECLOSED);
}

CONNECT_TEST(connector_retired_as_it_opens_notices_a_silent_peer)
{
	rig->link.limits.heartbeat_ns = SECOND;
	(void)connectrig_listen(rig, AT);
	rig->retire_in = SPOKEI_CONNECTOR_OPEN;
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	begin_call(rig);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
	connectrig_run(rig, 10 * SECOND);
	assert_int_equal(call.ended, 1);
	assert_int_equal(call.error, SPOKE_ESILENT);
	assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_DONE)->error, SPOKE_ESILENT);
}
