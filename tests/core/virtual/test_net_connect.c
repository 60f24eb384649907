/* SPDX-License-Identifier: Apache-2.0 */
/* The in-memory network: connections that succeed, are refused or time out. */
#include "tests/core/virtual/netrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

FIXTURE(memrig_set_up, memrig_tear_down);

TEST(connect_result_depends_on_route)
{
	static const struct {
		enum spokei_vnet_route route;
		int error;
	} cases[] = {
		{ SPOKEI_VNET_NORMAL, 0 },
		{ SPOKEI_VNET_REFUSE, -ECONNREFUSED },
		{ SPOKEI_VNET_UNREACHABLE, -EHOSTUNREACH },
		{ SPOKEI_VNET_NORMAL, 0 },
	};
	struct memrig *rig = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd;

		spokei_vnet_route(rig->net, "127.0.0.1:20880", cases[i].route);
		fd = memrig_start_connect(rig);
		assert_true(spokei_vnet_ready(rig->net, fd) & SPOKE_IO_WRITE);
		assert_int_equal(spokei_vnet_table.finish(rig, fd), cases[i].error);
		spokei_vnet_table.close(rig, fd);
	}
	spokei_vnet_route(rig->net, "127.0.0.1:20880", SPOKEI_VNET_AT_ONCE);
	assert_int_equal(spokei_vnet_table.connect(rig, &rig->at, &rig->near), 0);
	assert_int_equal(spokei_vnet_table.finish(rig, rig->near), 0);
}

TEST(a_silent_address_answers_late_or_never)
{
	struct memrig *rig = *state;
	int never;
	int late;

	spokei_vnet_route(rig->net, "127.0.0.1:20880", SPOKEI_VNET_SILENT);
	never = memrig_start_connect(rig);
	memrig_pass(rig, 126 * SECOND);
	assert_int_equal(spokei_vnet_ready(rig->net, never), 0);
	assert_int_equal(spokei_vnet_table.finish(rig, never), -EINPROGRESS);
	memrig_pass(rig, SECOND);
	assert_int_equal(spokei_vnet_table.finish(rig, never), -ETIMEDOUT);

	late = memrig_start_connect(rig);
	memrig_pass(rig, SECOND + SECOND / 2);
	assert_int_equal(spokei_vnet_ready(rig->net, late), 0);
	spokei_vnet_route(rig->net, "127.0.0.1:20880", SPOKEI_VNET_NORMAL);
	assert_int_equal(spokei_vnet_next(rig->net), rig->now_ns + 3 * SECOND / 2);
	memrig_pass(rig, 3 * SECOND / 2);
	assert_int_equal(spokei_vnet_table.finish(rig, late), 0);
}

TEST(a_connection_can_lead_to_itself)
{
	struct memrig *rig = *state;
	struct spoke_address local;
	struct spoke_address peer;

	spokei_vnet_route(rig->net, "127.0.0.1:20880", SPOKEI_VNET_SELF);
	rig->near = memrig_start_connect(rig);
	assert_int_equal(spokei_vnet_table.finish(rig, rig->near), 0);
	assert_int_equal(spokei_vnet_table.local(rig, rig->near, &local), 0);
	assert_int_equal(spokei_vnet_table.peer(rig, rig->near, &peer), 0);
	assert_memory_equal(&local, &peer, sizeof(local));
	assert_int_equal(memrig_put(rig, rig->near, 5), 5);
	assert_int_equal(memrig_get(rig, rig->near), 5);
	assert_int_equal(spokei_vnet_table.shut(rig, rig->near), 0);
	assert_int_equal(memrig_get(rig, rig->near), 0);
}

TEST(accept_works_again_after_set_failures)
{
	struct memrig *rig = *state;
	int gone;

	spokei_vnet_fail_accept(rig->net, rig->listener, -ENFILE, 2);
	assert_int_equal(memrig_accept_next(rig), -EAGAIN);
	gone = memrig_start_connect(rig);
	assert_int_equal(memrig_accept_next(rig), -ENFILE);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->listener), SPOKE_IO_READ);
	assert_int_equal(memrig_accept_next(rig), -ENFILE);
	spokei_vnet_fail_accept(rig->net, rig->listener, -ECONNABORTED, 1);
	assert_int_equal(memrig_accept_next(rig), -ECONNABORTED);
	assert_int_equal(memrig_accept_next(rig), -EAGAIN);
	assert_int_equal(memrig_get(rig, gone), -ECONNRESET);
	memrig_make_pair(rig);
}

TEST(without_descriptors_nothing_opens_and_a_spare_one_makes_room)
{
	struct memrig *rig = *state;
	struct spoke_address other = memrig_parse("mem:other");
	int spare;
	int fd = -1;

	assert_int_equal(spokei_vnet_table.spare(&rig->server, &spare), 0);
	rig->server.fds_max = 2;
	rig->near = memrig_start_connect(rig);
	assert_int_equal(memrig_accept_next(rig), -EMFILE);
	assert_int_equal(spokei_vnet_table.connect(&rig->server, &rig->at, &fd), -EMFILE);
	assert_int_equal(spokei_vnet_table.listen(&rig->server, &other, 1, &fd), -EMFILE);
	assert_int_equal(spokei_vnet_table.spare(&rig->server, &fd), -EMFILE);
	assert_int_equal(fd, -1);
	spokei_vnet_table.close(&rig->server, spare);
	rig->far = memrig_accept_next(rig);
	assert_int_equal(rig->far, spare);
	assert_int_equal(rig->client.fds, 1);
}

TEST(a_full_backlog_lets_connections_wait)
{
	struct memrig *rig = *state;
	int fds[9];

	for (int i = 0; i < 9; i++)
		fds[i] = memrig_start_connect(rig);
	assert_int_equal(spokei_vnet_table.finish(rig, fds[7]), 0);
	assert_int_equal(spokei_vnet_table.finish(rig, fds[8]), -EINPROGRESS);
	assert_true(memrig_accept_next(rig) >= 0);
	memrig_pass(rig, SECOND);
	assert_int_equal(spokei_vnet_table.finish(rig, fds[8]), 0);
}

TEST(killed_process_closes_all_descriptors)
{
	struct memrig *rig = *state;
	int waiting;
	int fd;

	memrig_make_pair(rig);
	waiting = memrig_start_connect(rig);
	spokei_vnet_kill(&rig->server);
	assert_int_equal(rig->server.fds, 0);
	assert_int_equal(memrig_get(rig, rig->near), 0);
	assert_int_equal(memrig_get(rig, waiting), -ECONNRESET);
	fd = memrig_start_connect(rig);
	assert_int_equal(spokei_vnet_table.finish(rig, fd), -ECONNREFUSED);
	assert_int_equal(memrig_put(rig, rig->near, 3), 3);
	assert_int_equal(memrig_put(rig, rig->near, 3), -ECONNRESET);
	assert_int_equal(spokei_vnet_table.listen(&rig->server, &rig->at, 1, &rig->listener), 0);
	memrig_make_pair(rig);
}

TEST(names_resolve_to_set_addresses)
{
	struct memrig *rig = *state;
	struct spoke_address found[4];
	char text[64];

	assert_int_equal(spokei_vnet_table.resolve(rig, "demo.test", 80, found, 4), -ENOENT);
	spokei_vnet_name(rig->net, "demo.test", "10.0.0.1 ::2 10.0.0.3");
	assert_int_equal(spokei_vnet_table.resolve(rig, "demo.test", 80, found, 4), 3);
	spokei_vnet_table.print(rig, &found[1], text, sizeof(text));
	assert_string_equal(text, "[::2]:80");
	assert_int_equal(spokei_vnet_table.resolve(rig, "demo.test", 80, found, 2), 2);
	assert_int_equal(spokei_vnet_table.resolve(rig, "localhost", 1, found, 4), 1);
	spokei_vnet_name(rig->net, "demo.test", "10.0.0.9");
	assert_int_equal(spokei_vnet_table.resolve(rig, "demo.test", 80, found, 4), 1);
}

TEST(wildcard_listener_accepts_all_addresses_of_its_family)
{
	struct memrig *rig = *state;
	struct spoke_address any = memrig_parse("0.0.0.0:7");
	struct spoke_address v4 = memrig_parse("10.1.2.3:7");
	struct spoke_address v6 = memrig_parse("[::1]:7");
	int fd;

	assert_int_equal(spokei_vnet_table.listen(&rig->server, &any, 1, &fd), 0);
	assert_int_equal(spokei_vnet_table.connect(rig, &v4, &fd), -EINPROGRESS);
	assert_int_equal(spokei_vnet_table.finish(rig, fd), 0);
	assert_int_equal(spokei_vnet_table.connect(rig, &v6, &fd), -EINPROGRESS);
	assert_int_equal(spokei_vnet_table.finish(rig, fd), -ECONNREFUSED);
	assert_int_equal(spokei_vnet_table.listen(&rig->server, &v4, 1, &fd), -EADDRINUSE);
}

TEST(credentials_are_those_of_connect_on_unix_sockets_only)
{
	static const char *const places[] = { "unix:/run/x", "10.1.2.3:7" };
	struct memrig *rig = *state;
	const struct spoke_net *net = &spokei_vnet_table;

	for (unsigned i = 0; i < 2; i++) {
		struct spoke_address at = memrig_parse(places[i]);
		struct spoke_address peer;
		uint32_t uid = 0;
		uint32_t gid = 0;
		int32_t pid = 0;
		int listener;
		int client;
		int server;

		assert_int_equal(net->listen(&rig->server, &at, 1, &listener), 0);
		rig->client.uid = 1000;
		rig->client.gid = 100;
		rig->client.pid = 42;
		assert_int_equal(net->connect(&rig->client, &at, &client), -EINPROGRESS);
		rig->client.uid = 0;
		assert_int_equal(net->finish(&rig->client, client), 0);
		assert_int_equal(net->accept(&rig->server, listener, &server, &peer), 0);
		assert_int_equal(net->credentials(&rig->server, server, &uid, &gid, &pid),
				 i == 0 ? 0 : -EOPNOTSUPP);
		assert_int_equal(uid, i == 0 ? 1000 : 0);
		assert_int_equal(gid, i == 0 ? 100 : 0);
		assert_int_equal(pid, i == 0 ? 42 : 0);
	}
}

TEST(mode_of_a_path_is_noted)
{
	struct memrig *rig = *state;
	struct spoke_address path = memrig_parse("unix:/run/x");
	struct spoke_address port = memrig_parse("10.1.2.3:7");
	int fd;

	assert_int_equal(spokei_vnet_table.listen_mode(&rig->server, &port, 1, 0660, &fd),
			 -EOPNOTSUPP);
	assert_int_equal(spokei_vnet_table.listen_mode(&rig->server, &path, 1, 0660, &fd), 0);
	assert_int_equal(spokei_vnet_guard(rig->net, fd)->mode, 0660);
}
