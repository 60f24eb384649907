/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-memory network: streams, connections and their faults, virtual time, reproducible
 * runs.
 */
#include "tests/core/virtual/netrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

/* --- the in-memory network: streams and their faults, virtual time, and reproducible runs */

FIXTURE(memrig_set_up, memrig_tear_down);

MEM_TEST(the_first_descriptor_is_zero_and_the_lowest_free_one_is_next)
{
	int one = memrig_start_connect(rig);
	int two = memrig_start_connect(rig);

	assert_int_equal(rig->listener, 0);
	assert_int_equal(one, 1);
	assert_int_equal(two, 2);
	spokei_vnet_table.close(rig, one);
	assert_int_equal(memrig_start_connect(rig), 1);
	assert_int_equal(rig->client.fds, 2);
	assert_int_equal(rig->server.fds, 1);
}

MEM_TEST(readiness_is_level_triggered)
{
	assert_int_equal(spokei_vnet_ready(rig->net, rig->listener), 0);
	rig->near = memrig_start_connect(rig);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->near), SPOKE_IO_WRITE);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->listener), SPOKE_IO_READ);
	rig->far = memrig_accept_next(rig);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->listener), 0);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->far), SPOKE_IO_WRITE);
	assert_int_equal(memrig_put(rig, rig->near, 100000), 65536);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->near), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(spokei_vnet_ready(rig->net, rig->far),
				 SPOKE_IO_READ | SPOKE_IO_WRITE);
	assert_int_equal(memrig_get(rig, rig->far), 65536);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->far), SPOKE_IO_WRITE);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->near), SPOKE_IO_WRITE);
	spokei_vnet_reset(rig->net, rig->near);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->far), SPOKE_IO_READ | SPOKE_IO_WRITE);
}

MEM_TEST(latency_delays_bytes_and_connections)
{
	spokei_vnet_set_all(rig->net, &(struct spokei_vnet_link){ .latency_ns = 5 * MS });
	rig->near = memrig_start_connect(rig);
	assert_int_equal(spokei_vnet_next(rig->net), rig->now_ns + 5 * MS);
	memrig_pass(rig, 5 * MS - 1);
	assert_int_equal(memrig_accept_next(rig), -EAGAIN);
	memrig_pass(rig, 1);
	rig->far = memrig_accept_next(rig);
	assert_int_equal(spokei_vnet_table.finish(rig, rig->near), -EINPROGRESS);
	memrig_pass(rig, 5 * MS);
	assert_int_equal(spokei_vnet_table.finish(rig, rig->near), 0);

	assert_int_equal(memrig_put(rig, rig->near, 10), 10);
	memrig_pass(rig, 5 * MS - 1);
	assert_int_equal(memrig_get(rig, rig->far), -EAGAIN);
	assert_int_equal(spokei_vnet_next(rig->net), rig->now_ns + 1);
	memrig_pass(rig, 1);
	assert_int_equal(memrig_get(rig, rig->far), 10);
	assert_int_equal(spokei_vnet_next(rig->net), NEVER);
}

MEM_TEST(jitter_keeps_the_order)
{
	unsigned char sent = 0;
	unsigned char seen = 0;

	memrig_make_pair(rig);
	*spokei_vnet_link(rig->net, rig->near) = (struct spokei_vnet_link){ .latency_ns = MS,
									    .jitter_ns = 9 * MS };
	while (seen < 200) {
		unsigned char bytes[256];
		ssize_t got = spokei_vnet_table.read(&rig->server, rig->far, bytes, sizeof(bytes));

		for (ssize_t i = 0; i < got; i++)
			assert_int_equal(bytes[i], seen++);
		if (sent < 200) {
			struct iovec part = { &sent, 1 };

			assert_int_equal(spokei_vnet_table.write(rig, rig->near, &part, 1), 1);
			sent++;
		}
		memrig_pass(rig, MS);
	}
}

MEM_TEST(the_end_does_not_overtake_data)
{
	spokei_vnet_set_all(rig->net, &(struct spokei_vnet_link){ .jitter_ns = 9 * MS });
	for (int i = 0; i < 20; i++) {
		ssize_t got = -EAGAIN;
		ssize_t seen = 0;

		rig->near = memrig_start_connect(rig);
		memrig_pass(rig, 100 * MS);
		rig->far = memrig_accept_next(rig);
		for (int j = 0; j < 10; j++)
			assert_int_equal(memrig_put(rig, rig->near, 1), 1);
		spokei_vnet_table.close(rig, rig->near);
		while (got != 0) {
			memrig_pass(rig, MS);
			got = memrig_get(rig, rig->far);
			seen += got > 0 ? got : 0;
		}
		assert_int_equal(seen, 10);
		spokei_vnet_table.close(&rig->server, rig->far);
	}
}

MEM_TEST(bandwidth_takes_its_time)
{
	memrig_make_pair(rig);
	spokei_vnet_link(rig->net, rig->near)->bytes_per_s = 1000;
	assert_int_equal(memrig_put(rig, rig->near, 500), 500);
	assert_int_equal(memrig_put(rig, rig->near, 500), 500);
	memrig_pass(rig, SECOND / 2);
	assert_int_equal(memrig_get(rig, rig->far), 500);
	memrig_pass(rig, SECOND / 2 - 1);
	assert_int_equal(memrig_get(rig, rig->far), -EAGAIN);
	memrig_pass(rig, 1);
	assert_int_equal(memrig_get(rig, rig->far), 500);
}

MEM_TEST(capacity_bounds_unread_bytes)
{
	memrig_make_pair(rig);
	spokei_vnet_link(rig->net, rig->near)->capacity = 10;
	spokei_vnet_link(rig->net, rig->near)->latency_ns = MS;
	assert_int_equal(memrig_put(rig, rig->near, 7), 7);
	assert_int_equal(memrig_put(rig, rig->near, 7), 3);
	assert_int_equal(memrig_put(rig, rig->near, 7), -EAGAIN);
	memrig_pass(rig, MS);
	assert_int_equal(memrig_put(rig, rig->near, 7), -EAGAIN);
	assert_int_equal(memrig_get(rig, rig->far), 10);
	assert_int_equal(memrig_put(rig, rig->near, 7), 7);
	/* The other direction is unchanged. */
	assert_int_equal(memrig_put(rig, rig->far, 100), 100);
}

MEM_TEST(reads_and_writes_can_be_one_byte_each)
{
	memrig_make_pair(rig);
	spokei_vnet_set_all(rig->net, &(struct spokei_vnet_link){ .read_max = 1, .write_max = 1 });
	for (int i = 0; i < 10; i++)
		assert_int_equal(memrig_put(rig, rig->near, 1000), 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(memrig_get(rig, rig->far), 1);
	assert_int_equal(memrig_get(rig, rig->far), -EAGAIN);
}

/* Writes one byte `calls` times. Returns how many of these calls returned `result`. */
static unsigned count_puts(struct memrig *rig, unsigned calls, ssize_t result)
{
	unsigned count = 0;

	for (unsigned i = 0; i < calls; i++)
		count += memrig_put(rig, rig->near, 1) == result;
	return count;
}

MEM_TEST(eagain_has_the_set_frequency)
{
	unsigned refused = 0;
	unsigned got = 0;

	memrig_make_pair(rig);
	spokei_vnet_link(rig->net, rig->near)->eagain_permille = 300;
	assert_in_range(count_puts(rig, 2000, -EAGAIN), 500, 700);
	spokei_vnet_link(rig->net, rig->near)->read_max = 1;
	while (got + refused < 1000) {
		assert_true(spokei_vnet_ready(rig->net, rig->far) & SPOKE_IO_READ);
		if (memrig_get(rig, rig->far) == 1)
			got++;
		else
			refused++;
	}
	assert_in_range(refused, 230, 370);
}

MEM_TEST(a_reset_comes_to_both_sides_and_data_before_it_can_be_read)
{
	memrig_make_pair(rig);
	assert_int_equal(memrig_put(rig, rig->near, 9), 9);
	spokei_vnet_link(rig->net, rig->near)->reset_permille = 1000;
	assert_int_equal(spokei_vnet_ready(rig->net, rig->far), SPOKE_IO_READ | SPOKE_IO_WRITE);
	assert_int_equal(memrig_put(rig, rig->near, 9), -ECONNRESET);
	assert_int_equal(memrig_put(rig, rig->near, 9), -EPIPE);
	assert_int_equal(memrig_get(rig, rig->far), 9);
	assert_int_equal(memrig_get(rig, rig->far), -ECONNRESET);
	assert_int_equal(memrig_get(rig, rig->far), 0);
	assert_int_equal(memrig_put(rig, rig->far, 9), -EPIPE);
	assert_int_equal(spokei_vnet_table.finish(&rig->server, rig->far), -ENOTCONN);
}

MEM_TEST(corruption_flips_one_bit)
{
	unsigned char zeros[64] = { 0 };
	unsigned char bytes[64];
	unsigned bits = 0;

	memrig_make_pair(rig);
	spokei_vnet_link(rig->net, rig->near)->corrupt_permille = 1000;
	assert_int_equal(spokei_vnet_table.write(rig, rig->near, &(struct iovec){ zeros, 64 }, 1),
			 64);
	assert_int_equal(spokei_vnet_table.read(&rig->server, rig->far, bytes, 64), 64);
	for (int i = 0; i < 64 * 8; i++)
		bits += ((unsigned)bytes[i / 8] >> (i % 8)) & 1u;
	assert_int_equal(bits, 1);
}

MEM_TEST(one_way_blackhole_holds_data_and_fin_until_it_ends)
{
	memrig_make_pair(rig);
	spokei_vnet_link(rig->net, rig->near)->blackhole = true;
	assert_int_equal(memrig_put(rig, rig->near, 40000), 40000);
	assert_int_equal(memrig_put(rig, rig->near, 40000), 25536);
	assert_int_equal(memrig_put(rig, rig->near, 1), -EAGAIN);
	assert_int_equal(spokei_vnet_table.shut(rig, rig->near), 0);
	memrig_pass(rig, 3600 * SECOND);
	assert_int_equal(memrig_get(rig, rig->far), -EAGAIN);
	assert_int_equal(spokei_vnet_ready(rig->net, rig->far), SPOKE_IO_WRITE);
	assert_int_equal(spokei_vnet_next(rig->net), NEVER);
	assert_int_equal(memrig_put(rig, rig->far, 5), 5);
	assert_int_equal(memrig_get(rig, rig->near), 5);
	spokei_vnet_link(rig->net, rig->near)->blackhole = false;
	assert_int_equal(memrig_get(rig, rig->far), 65536);
	assert_int_equal(memrig_get(rig, rig->far), 0);
}

MEM_TEST(reset_into_blackhole_is_lost_until_next_write)
{
	int near;

	memrig_make_pair(rig);
	near = rig->near;
	assert_int_equal(memrig_put(rig, rig->far, 5), 5);
	spokei_vnet_link(rig->net, near)->blackhole = true;
	assert_true(spokei_vnet_ready(rig->net, near) & SPOKE_IO_READ);
	spokei_vnet_table.close(rig, near); /* with unread data, which causes a reset */
	assert_int_equal(spokei_vnet_ready(rig->net, rig->far), SPOKE_IO_WRITE);
	spokei_vnet_set_all(rig->net, &(struct spokei_vnet_link){ .capacity = 0 });
	assert_int_equal(memrig_get(rig, rig->far), -EAGAIN);
	assert_int_equal(memrig_put(rig, rig->far, 5), 5);
	assert_int_equal(memrig_get(rig, rig->far), -ECONNRESET);
}

/* Runs traffic with all faults enabled. Returns a hash of the history. */
static uint64_t run(uint64_t seed, uint64_t *ret_bytes)
{
	struct memrig rig;
	uint64_t result;

	memrig_open(&rig, seed, 8);
	spokei_vnet_set_all(rig.net, &(struct spokei_vnet_link){ .latency_ns = MS,
								 .jitter_ns = 5 * MS,
								 .bytes_per_s = 1000000,
								 .capacity = 500,
								 .write_max = 40,
								 .read_max = 30,
								 .eagain_permille = 100,
								 .reset_permille = 2,
								 .corrupt_permille = 10 });
	*ret_bytes = 0;
	for (int i = 0; i < 5000; i++) {
		ssize_t got;

		if (rig.near < 0)
			rig.near = memrig_start_connect(&rig);
		if (rig.far < 0)
			rig.far = memrig_accept_next(&rig);
		(void)memrig_put(&rig, rig.near, 100);
		got = rig.far < 0 ? -EAGAIN : memrig_get(&rig, rig.far);
		*ret_bytes += got > 0 ? (uint64_t)got : 0;
		if (got == 0 || (got < 0 && got != -EAGAIN)) {
			spokei_vnet_table.close(&rig.server, rig.far);
			spokei_vnet_table.close(&rig.client, rig.near);
			rig.near = -1;
			rig.far = -1;
		}
		memrig_pass(&rig, MS / 2);
	}
	spokei_vnet_kill(&rig.client);
	spokei_vnet_kill(&rig.server);
	result = spokei_vnet_trace(rig.net);
	spokei_vnet_free(rig.net);
	return result;
}

TEST(the_same_seed_gives_the_same_trace_and_another_another, .bare = true)
{
	uint64_t bytes[3];
	uint64_t first = run(42, &bytes[0]);

	assert_true(bytes[0] > 10000);
	assert_true(run(42, &bytes[1]) == first);
	assert_true(bytes[1] == bytes[0]);
	assert_true(run(43, &bytes[2]) != first);
}

/* --- the in-memory network: connections that succeed, are refused or time out */

MEM_TEST(connect_result_depends_on_route)
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

MEM_TEST(a_silent_address_answers_late_or_never)
{
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

MEM_TEST(a_connection_can_lead_to_itself)
{
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

MEM_TEST(accept_works_again_after_set_failures)
{
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

MEM_TEST(without_descriptors_nothing_opens_and_a_spare_one_makes_room)
{
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

MEM_TEST(a_full_backlog_lets_connections_wait)
{
	int fds[9];

	for (int i = 0; i < 9; i++)
		fds[i] = memrig_start_connect(rig);
	assert_int_equal(spokei_vnet_table.finish(rig, fds[7]), 0);
	assert_int_equal(spokei_vnet_table.finish(rig, fds[8]), -EINPROGRESS);
	assert_true(memrig_accept_next(rig) >= 0);
	memrig_pass(rig, SECOND);
	assert_int_equal(spokei_vnet_table.finish(rig, fds[8]), 0);
}

MEM_TEST(killed_process_closes_all_descriptors)
{
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

MEM_TEST(names_resolve_to_set_addresses)
{
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

MEM_TEST(wildcard_listener_accepts_all_addresses_of_its_family)
{
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

MEM_TEST(credentials_are_those_of_connect_on_unix_sockets_only)
{
	static const char *const places[] = { "unix:/run/x", "10.1.2.3:7" };
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

MEM_TEST(mode_of_a_path_is_noted)
{
	struct spoke_address path = memrig_parse("unix:/run/x");
	struct spoke_address port = memrig_parse("10.1.2.3:7");
	int fd;

	assert_int_equal(spokei_vnet_table.listen_mode(&rig->server, &port, 1, 0660, &fd),
			 -EOPNOTSUPP);
	assert_int_equal(spokei_vnet_table.listen_mode(&rig->server, &path, 1, 0660, &fd), 0);
	assert_int_equal(spokei_vnet_guard(rig->net, fd)->mode, 0660);
}
