/* SPDX-License-Identifier: Apache-2.0 */
/* The listener: limits on connections, failures of system calls, and their events. */
#include "tests/support/test.h"
#include "tests/transport/listen/listenrig.h"

#include <spoke/wheel.h>

#include <errno.h>
#include <string.h>

TEST(connections_over_total_limit_are_closed)
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

TEST(connections_over_peer_limit_close_only_that_peer)
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

TEST(unix_socket_peers_count_only_in_total)
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

TEST(address_in_use_reports_event_with_advice)
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

TEST(failed_listen_reports_event_and_leaves_nothing)
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

TEST(lack_of_memory_closes_only_the_connection)
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

TEST(listener_without_memory_leaks_nothing)
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
