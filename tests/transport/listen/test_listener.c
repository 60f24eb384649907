/* SPDX-License-Identifier: Apache-2.0 */
/* Accepting connections: budgets, limits, errors. */
#include "core/engine/engine.h"
#include "tests/support/test.h"
#include "tests/transport/listen/listenrig.h"

#include <spoke/engine.h>
#include <spoke/wheel.h>

#include <errno.h>
#include <string.h>

STEP(set_up)
{
	static struct listenrig rig;

	listenrig_open(&rig, 0, 0, 0);
	assert_int_equal(listenrig_listen(&rig, LISTENRIG_AT), SPOKE_OK);
	*state = &rig;
}

STEP(tear_down)
{
	listenrig_close(*state);
}

FIXTURE(set_up, tear_down);

LISTEN_TEST(turn_accepts_at_most_its_budget)
{
	rig->let_go = true;
	for (unsigned i = 0; i < 300; i++)
		(void)listenrig_connect(rig, LISTENRIG_AT);
	for (unsigned due = 128; due <= 384; due += 128) {
		assert_int_equal(spoke_engine_turn(rig->engine, false), SPOKE_OK);
		assert_int_equal(rig->accepted, due < 300 ? due : 300);
	}
	assert_int_equal(listenrig_stat(rig, SPOKE_STAT_ACCEPTED), 300);
}

LISTEN_TEST(listener_returns_port_that_system_chose)
{
	char text[64];
	int fd;

	spokei_listener_free(rig->listener);
	assert_int_equal(listenrig_listen(rig, "127.0.0.1:0"), SPOKE_OK);
	spokei_vnet_table.print(&rig->server, spokei_listener_address(rig->listener), text,
				sizeof(text));
	fd = listenrig_connect(rig, text);
	listenrig_run(rig, MS);
	assert_int_equal(rig->accepted, 1);
	assert_false(listenrig_ended(rig, fd));
}

LISTEN_TEST(held_listener_leaves_clients_in_the_backlog)
{
	int fd;

	spokei_listener_hold(rig->listener, true);
	fd = listenrig_connect(rig, LISTENRIG_AT);
	listenrig_run(rig, 3 * SPOKEI_LISTENER_PAUSE_NS);
	spokei_listener_sweep(rig->listener);
	assert_int_equal(rig->accepted, 0);
	assert_false(listenrig_ended(rig, fd));
	spokei_listener_hold(rig->listener, false);
	listenrig_run(rig, MS);
	assert_int_equal(rig->accepted, 1);
}

LISTEN_TEST(ten_thousand_resets_leave_nothing)
{
	uint64_t gone;

	rig->let_go = true;
	for (unsigned i = 0; i < 10000; i++) {
		int fd = listenrig_connect(rig, LISTENRIG_AT);

		if (i % 3 == 0)
			spokei_vnet_fail_accept(rig->world.net, 0, -ECONNABORTED, 1);
		else
			spokei_vnet_reset(rig->world.net, fd);
		listenrig_run(rig, MS);
		listenrig_hang_up(rig, fd);
	}
	gone = listenrig_stat(rig, SPOKE_STAT_ACCEPTS_FAILED);
	assert_int_equal(gone, 3334);
	assert_int_equal(listenrig_stat(rig, SPOKE_STAT_ACCEPTED) + gone, 10000);
	assert_int_equal(rig->faulty.fds, 2); /* the socket and the spare */
	assert_int_equal(rig->quota.count, 0);
}

LISTEN_TEST(error_of_one_connection_does_not_end_the_turn)
{
	static const int errors[] = { -ECONNABORTED, -EPROTO, -EINTR };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		unsigned before = rig->accepted;

		(void)listenrig_connect(rig, LISTENRIG_AT);
		(void)listenrig_connect(rig, LISTENRIG_AT);
		spokei_faults_fail(&rig->faulty, SPOKEI_FAULTS_ACCEPT, 1, errors[i], false);
		assert_int_equal(spoke_engine_turn(rig->engine, false), SPOKE_OK);
		assert_int_equal(rig->accepted, before + 2);
	}
	assert_int_equal(listenrig_events(rig, SPOKE_ESYSTEM, ""), 0);
	assert_int_equal(listenrig_stat(rig, SPOKE_STAT_ACCEPTS_FAILED), 2);
}

LISTEN_TEST(endless_errors_of_connections_pause_listener)
{
	static const int errors[] = { -ECONNABORTED, -EPROTO, -EINTR };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		unsigned before = rig->accepted;
		unsigned steps = 0;
		uint64_t end_ns = rig->world.now_ns + 10 * SECOND;

		(void)listenrig_connect(rig, LISTENRIG_AT);
		spokei_faults_fail(&rig->faulty, SPOKEI_FAULTS_ACCEPT, 1, errors[i], true);
		while (spokei_world_step(&rig->world, end_ns))
			steps++;
		assert_in_range(steps, 90, 1000);
		spokei_faults_heal(&rig->faulty);
		listenrig_run(rig, 102 * MS);
		assert_int_equal(rig->accepted, before + 1);
	}
}

LISTEN_TEST(lasting_error_pauses_listener_without_spinning)
{
	static const int errors[] = { -ENOBUFS, -ENOMEM, -EIO };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		unsigned before = rig->accepted;
		uint64_t calls = rig->faulty.calls[SPOKEI_FAULTS_ACCEPT];
		unsigned steps = 0;
		uint64_t end_ns = rig->world.now_ns + 10 * SECOND;

		(void)listenrig_connect(rig, LISTENRIG_AT);
		spokei_faults_fail(&rig->faulty, SPOKEI_FAULTS_ACCEPT, 1, errors[i], true);
		while (spokei_world_step(&rig->world, end_ns))
			steps++;
		assert_in_range(rig->faulty.calls[SPOKEI_FAULTS_ACCEPT] - calls, 90, 101);
		assert_in_range(steps, 90, 250);
		assert_int_equal(rig->accepted, before);
		spokei_faults_heal(&rig->faulty);
		listenrig_run(rig, 102 * MS);
		assert_int_equal(rig->accepted, before + 1);
	}
	/* The event is limited to one in ten seconds. */
	assert_in_range(listenrig_events(rig, SPOKE_ESYSTEM, "listener 127.0.0.1:20880 pauses"), 3,
			4);
}

LISTEN_TEST(clients_are_closed_when_descriptors_run_out)
{
	int fds[8];

	rig->server.user.fds_max = 2 + 3;
	for (int i = 0; i < 8; i++) {
		fds[i] = listenrig_connect(rig, LISTENRIG_AT);
		listenrig_run(rig, MS);
		assert_int_equal(listenrig_ended(rig, fds[i]), i >= 3);
	}
	assert_int_equal(rig->accepted, 3);
	assert_int_equal(listenrig_stat(rig, SPOKE_STAT_ACCEPTS_SHED), 5);
	assert_int_equal(listenrig_events(rig, SPOKE_ESYSTEM, "raise the limit of open files"), 1);
	listenrig_release(rig, 1);
	fds[0] = listenrig_connect(rig, LISTENRIG_AT);
	listenrig_run(rig, MS);
	assert_int_equal(rig->accepted, 4);
	assert_false(listenrig_ended(rig, fds[0]));
}

/* Another thread takes the descriptor that the spare one has freed. */
LISTEN_TEST(lost_spare_descriptor_pauses_listener)
{
	uint64_t calls;

	spokei_faults_fail(&rig->faulty, SPOKEI_FAULTS_SPARE, 1, -EMFILE, true);
	rig->server.user.fds_max = 2;
	(void)listenrig_connect(rig, LISTENRIG_AT);
	(void)listenrig_connect(rig, LISTENRIG_AT);
	listenrig_run(rig, MS);
	assert_int_equal(listenrig_stat(rig, SPOKE_STAT_ACCEPTS_SHED), 1);
	rig->server.user.fds_max = 1;
	calls = rig->faulty.calls[SPOKEI_FAULTS_ACCEPT];
	listenrig_run(rig, 10 * SECOND);
	assert_in_range(rig->faulty.calls[SPOKEI_FAULTS_ACCEPT] - calls, 90, 101);
	assert_int_equal(rig->accepted, 0);
	spokei_faults_heal(&rig->faulty);
	rig->server.user.fds_max = 0;
	listenrig_run(rig, 102 * MS);
	assert_int_equal(rig->accepted, 1);
	assert_int_equal(rig->faulty.fds, 3); /* the spare one is open again */
}

LISTEN_TEST(spare_descriptor_is_kept_when_it_does_not_help)
{
	uint64_t calls = rig->faulty.calls[SPOKEI_FAULTS_ACCEPT];

	(void)listenrig_connect(rig, LISTENRIG_AT);
	spokei_vnet_fail_accept(rig->world.net, 0, -ENFILE, 20);
	listenrig_run(rig, 950 * MS);
	assert_in_range(rig->faulty.calls[SPOKEI_FAULTS_ACCEPT] - calls, 18,
			20); /* two every 100 ms */
	assert_int_equal(listenrig_stat(rig, SPOKE_STAT_ACCEPTS_SHED), 0);
	assert_int_equal(rig->faulty.fds, 2);
	listenrig_run(rig, SECOND);
	assert_int_equal(rig->accepted, 1);
}

TEST(listener_pauses_when_wheel_is_full, .bare = true)
{
	struct listenrig rig;
	uint64_t calls;

	listenrig_open(&rig, 0, 0, 1);
	assert_int_equal(listenrig_listen(&rig, LISTENRIG_AT), SPOKE_OK);
	(void)listenrig_connect(&rig, LISTENRIG_AT);
	spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_ACCEPT, 1, -ENOBUFS, true);
	calls = rig.faulty.calls[SPOKEI_FAULTS_ACCEPT];
	listenrig_run(&rig, SECOND);
	assert_in_range(rig.faulty.calls[SPOKEI_FAULTS_ACCEPT] - calls, 9, 11);
	spokei_faults_heal(&rig.faulty);
	listenrig_run(&rig, 2 * 3600 * SECOND); /* renews its timer in the wheel */
	assert_int_equal(rig.accepted, 1);
	(void)listenrig_connect(&rig, LISTENRIG_AT);
	spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_ACCEPT, 1, -ENOBUFS, false);
	listenrig_run(&rig, SECOND);
	assert_int_equal(rig.accepted, 2);
	listenrig_close(&rig);
}

TEST(listener_needs_room_in_the_wheel, .bare = true)
{
	struct listenrig rig;
	struct spoke_alarm alarm = { .period_ns = 0 };
	struct spokei_listener *none;

	listenrig_open(&rig, 0, 0, 1);
	assert_int_equal(spoke_alarm_after(rig.engine, &alarm, SECOND, NULL), SPOKE_OK);
	none = rig.listener;
	assert_int_equal(listenrig_listen(&rig, LISTENRIG_AT), SPOKE_ELIMIT);
	assert_ptr_equal(rig.listener, none);
	(void)spoke_alarm_cancel(&alarm);
	listenrig_close(&rig);
}

LISTEN_TEST(accept_callback_can_free_listener)
{
	rig->free_now = true;
	for (int i = 0; i < 5; i++)
		(void)listenrig_connect(rig, LISTENRIG_AT);
	listenrig_run(rig, SECOND);
	assert_int_equal(rig->accepted, 1);
	assert_int_equal(rig->faulty.fds, 1);
}

LISTEN_TEST(listener_can_be_freed_while_it_pauses)
{
	struct spoke_wheel_counts counts;

	(void)listenrig_connect(rig, LISTENRIG_AT);
	spokei_faults_fail(&rig->faulty, SPOKEI_FAULTS_ACCEPT, 1, -ENOBUFS, true);
	listenrig_run(rig, 50 * MS);
	spokei_listener_free(rig->listener);
	spokei_listener_free(rig->listener); /* its memory stays until the turn ends */
	rig->listener = NULL;
	spoke_wheel_counts(rig->engine->wheel, &counts);
	assert_int_equal(counts.pending, 0);
	listenrig_run(rig, SECOND);
	assert_int_equal(rig->faulty.fds, 0);
}

/* --- The listener: limits on connections, failures of system calls, and their events */

TEST(connections_over_total_limit_are_closed, .bare = true)
{
	struct listenrig rig;
	int fd;

	listenrig_open(&rig, 3, 0, 0);
	assert_int_equal(listenrig_listen(&rig, LISTENRIG_AT), SPOKE_OK);
	for (int i = 0; i < 50; i++) {
		fd = listenrig_connect(&rig, LISTENRIG_AT);
		listenrig_run(&rig, MS);
		assert_int_equal(listenrig_ended(&rig, fd), i >= 3);
	}
	assert_int_equal(rig.accepted, 3);
	assert_int_equal(listenrig_stat(&rig, SPOKE_STAT_ACCEPTED), 3);
	assert_int_equal(listenrig_stat(&rig, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL), 47);
	assert_int_equal(listenrig_events(&rig, SPOKE_ELIMIT, LISTENRIG_AT), 1);
	listenrig_run(&rig, 10 * SECOND);
	(void)listenrig_connect(&rig, LISTENRIG_AT);
	listenrig_run(&rig, MS);
	assert_int_equal(listenrig_events(&rig, SPOKE_ELIMIT, LISTENRIG_AT), 2);
	listenrig_release(&rig, 1);
	fd = listenrig_connect(&rig, LISTENRIG_AT);
	listenrig_run(&rig, MS);
	assert_false(listenrig_ended(&rig, fd));
	listenrig_close(&rig);
}

TEST(connections_over_peer_limit_close_only_that_peer, .bare = true)
{
	struct listenrig rig;
	struct spokei_listener *v4;
	int fd;

	listenrig_open(&rig, 0, 2, 0);
	assert_int_equal(listenrig_listen(&rig, LISTENRIG_AT), SPOKE_OK);
	v4 = rig.listener;
	assert_int_equal(listenrig_listen(&rig, "[::1]:20880"), SPOKE_OK);
	for (int i = 0; i < 5; i++) {
		fd = listenrig_connect(&rig, LISTENRIG_AT);
		listenrig_run(&rig, MS);
		assert_int_equal(listenrig_ended(&rig, fd), i >= 2);
	}
	fd = listenrig_connect(&rig, "[::1]:20880");
	listenrig_run(&rig, MS);
	assert_false(listenrig_ended(&rig, fd));
	assert_int_equal(listenrig_stat(&rig, SPOKE_STAT_ACCEPTS_REFUSED_PEER), 3);
	assert_int_equal(listenrig_stat(&rig, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL), 0);
	assert_int_equal(listenrig_events(&rig, SPOKE_ELIMIT, "a peer address is at its limit"), 1);
	spokei_listener_free(v4);
	listenrig_close(&rig);
}

TEST(unix_socket_peers_count_only_in_total, .bare = true)
{
	struct listenrig rig;

	listenrig_open(&rig, 4, 1, 0);
	assert_int_equal(listenrig_listen(&rig, "unix:/run/demo"), SPOKE_OK);
	for (int i = 0; i < 6; i++)
		(void)listenrig_connect(&rig, "unix:/run/demo");
	listenrig_run(&rig, MS);
	assert_int_equal(rig.accepted, 4);
	assert_int_equal(listenrig_stat(&rig, SPOKE_STAT_ACCEPTS_REFUSED_TOTAL), 2);
	listenrig_close(&rig);
}

TEST(address_in_use_reports_event_with_advice, .bare = true)
{
	struct listenrig rig;
	struct spokei_listener *first;

	listenrig_open(&rig, 0, 0, 0);
	assert_int_equal(listenrig_listen(&rig, LISTENRIG_AT), SPOKE_OK);
	first = rig.listener;
	assert_int_equal(listenrig_listen(&rig, LISTENRIG_AT), SPOKE_ESYSTEM);
	assert_ptr_equal(rig.listener, first);
	assert_int_equal(listenrig_events(&rig, SPOKE_ESYSTEM, "cannot listen at " LISTENRIG_AT),
			 1);
	assert_int_equal(listenrig_events(&rig, SPOKE_ESYSTEM, strerror(EADDRINUSE)), 1);
	assert_int_equal(listenrig_events(&rig, SPOKE_ESYSTEM,
					  "stop the program that uses it, or choose"),
			 1);
	listenrig_close(&rig);
}

TEST(failed_listen_reports_event_and_leaves_nothing, .bare = true)
{
	static const struct {
		enum spokei_faults_kind kind;
		int error;
		const char *words;
	} cases[] = {
		{ SPOKEI_FAULTS_LISTEN, -EADDRNOTAVAIL, "use an address of this machine" },
		{ SPOKEI_FAULTS_LISTEN, -EACCES, "get the permission, or choose another" },
		{ SPOKEI_FAULTS_LISTEN, -ENOENT, "create its directory" },
		{ SPOKEI_FAULTS_LISTEN, -EIO, "" },
		{ SPOKEI_FAULTS_LISTEN, -4095, "" },
		{ SPOKEI_FAULTS_LOCAL, -ENOBUFS, "" },
		{ SPOKEI_FAULTS_SPARE, -EMFILE, "raise the limit of open files" },
	};
	static const char at[] = "unix:/run/a/path/which/is/longer/than/an/event/shows/but/ends/in/"
				 "demo.socket";
	struct spoke_wheel_counts counts;
	struct listenrig rig;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		listenrig_open(&rig, 0, 0, 0);
		spokei_faults_fail(&rig.faulty, cases[i].kind, 1, cases[i].error, false);
		assert_int_equal(listenrig_listen(&rig, at), SPOKE_ESYSTEM);
		assert_null(rig.listener);
		assert_int_equal(rig.faulty.fds, 0);
		spoke_wheel_counts(rig.engine->wheel, &counts);
		assert_int_equal(counts.pending, 0);
		assert_int_equal(listenrig_events(&rig, SPOKE_ESYSTEM, "demo.socket: "), 1);
		assert_int_equal(listenrig_events(&rig, SPOKE_ESYSTEM, cases[i].words), 1);
		listenrig_close(&rig);
	}
}

TEST(lack_of_memory_closes_only_the_connection, .bare = true)
{
	struct listenrig rig;

	listenrig_open(&rig, 0, 0, 0);
	assert_int_equal(listenrig_listen(&rig, LISTENRIG_AT), SPOKE_OK);
	for (uint64_t nth = 1; nth <= 2; nth++) {
		int fd = listenrig_connect(&rig, LISTENRIG_AT);

		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		listenrig_run(&rig, MS);
		assert_true(listenrig_ended(&rig, fd));
		assert_int_equal(listenrig_stat(&rig, SPOKE_STAT_ACCEPTS_FAILED), nth);
		assert_int_equal(rig.quota.count, 0);
	}
	assert_int_equal(listenrig_events(&rig, SPOKE_ENOMEM, "closing new connections"), 1);
	spokei_faults_heal(&rig.faulty);
	(void)listenrig_connect(&rig, LISTENRIG_AT);
	listenrig_run(&rig, MS);
	assert_int_equal(rig.accepted, 1);
	listenrig_close(&rig);
}

TEST(listener_without_memory_leaks_nothing, .bare = true)
{
	struct listenrig rig;
	int error;

	for (uint64_t nth = 1;; nth++) {
		listenrig_open(&rig, 0, 0, 0);
		spokei_faults_fail(&rig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = listenrig_listen(&rig, LISTENRIG_AT);
		spokei_faults_heal(&rig.faulty);
		listenrig_close(&rig);
		if (error == SPOKE_OK)
			break;
		assert_int_equal(error, SPOKE_ENOMEM);
	}
}
