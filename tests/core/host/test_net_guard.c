/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that make the kernel detect a dead peer, on every network. */
#define _GNU_SOURCE
#include "tests/core/host/netrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define S UINT64_C(1000000000)

/* The settings that Linux reports for a guarded TCP socket. */
struct settings {
	int user_ms;
	int keeps;
	int idle_s;
	int interval_s;
	int count;
};

static int option_of(int fd, int level, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, level, option, &value, &len) != 0)
		assert_int_equal(errno, ENOPROTOOPT);
	return value;
}

static struct settings settings_of(int fd)
{
	return (struct settings){
		.user_ms = option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT),
		.keeps = option_of(fd, SOL_SOCKET, SO_KEEPALIVE),
		.idle_s = option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE),
		.interval_s = option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL),
		.count = option_of(fd, IPPROTO_TCP, TCP_KEEPCNT),
	};
}

static bool is_tcp(const struct netrig *rig)
{
	return !rig->on->in_memory && rig->on->at;
}

/* Guards a connection. On TCP, compares the socket's settings with the wanted ones. */
static void guard(struct netrig *rig, int fd, uint64_t unanswered_ns, uint64_t keepalive_ns,
		  struct settings wanted)
{
	struct settings got;

	assert_int_equal(rig->net->guard(rig, fd, unanswered_ns, keepalive_ns), 0);
	if (!is_tcp(rig))
		return;
	got = settings_of(fd);
	if (got.user_ms >= 0)
		assert_int_equal(got.user_ms, wanted.user_ms);
	assert_int_equal(got.keeps, wanted.keeps);
	if (wanted.keeps && got.idle_s >= 0) {
		assert_int_equal(got.idle_s, wanted.idle_s);
		assert_int_equal(got.interval_s, wanted.interval_s);
		assert_int_equal(got.count, wanted.count);
	}
}

RUNNER(netrig_run);

NET_TEST(times_are_those_of_the_system_rounded_up)
{
	int ends[2];

	netrig_make_pair(rig, ends);
	guard(rig, ends[0], 30 * S, 60 * S, (struct settings){ 30000, 1, 60, 15, 4 });
	guard(rig, ends[0], 1, 1, (struct settings){ 1, 1, 1, 1, 2 });
	guard(rig, ends[0], 1500 * MS + 1, 1500 * MS, (struct settings){ 1501, 1, 2, 1, 2 });
	guard(rig, ends[0], S, 11 * S, (struct settings){ 1000, 1, 11, 2, 4 });
	guard(rig, ends[0], UINT64_MAX, UINT64_MAX,
	      (struct settings){ INT32_MAX, 1, 32767, 8191, 4 });
	netrig_close_pair(rig, ends);
}

NET_TEST(zero_is_as_the_system_has_it)
{
	int ends[2];

	netrig_make_pair(rig, ends);
	guard(rig, ends[1], 0, 0, (struct settings){ 0 });
	guard(rig, ends[1], S, S, (struct settings){ 1000, 1, 1, 1, 2 });
	guard(rig, ends[1], 2 * S, 0, (struct settings){ .user_ms = 2000 });
	guard(rig, ends[1], 0, 3 * S, (struct settings){ 0, 1, 3, 1, 3 });
	guard(rig, ends[1], 0, 0, (struct settings){ 0 });
	netrig_close_pair(rig, ends);
}

/* A connection may be guarded before it is established; a guarded connection carries bytes. */
NET_TEST(a_guarded_connection_carries_bytes)
{
	struct spoke_address peer;
	int ends[2];
	int error = rig->net->connect(rig, &rig->at, &ends[0]);

	assert_true(error == 0 || error == -EINPROGRESS);
	assert_int_equal(rig->net->guard(rig, ends[0], 20 * S, 20 * S), 0);
	netrig_wait_for(rig, ends[0], SPOKE_IO_WRITE);
	assert_int_equal(rig->net->finish(rig, ends[0]), 0);
	ends[1] = netrig_accept_one(rig, &peer);
	assert_int_equal(rig->net->guard(rig, ends[1], 20 * S, 20 * S), 0);
	netrig_write_all(rig, ends[0], "there", 5);
	netrig_assert_reads(rig, ends[1], "there");
	netrig_write_all(rig, ends[1], "back", 4);
	netrig_assert_reads(rig, ends[0], "back");
	netrig_close_pair(rig, ends);
}

NET_TEST(guard_of_non_socket_is_an_error_or_ignored)
{
	int spare = -1;

	assert_int_equal(rig->net->spare(rig, &spare), 0);
	assert_int_equal(rig->net->guard(rig, spare, S, S), rig->on->in_memory ? 0 : -ENOTSOCK);
	rig->net->close(rig, spare);
}

NET_TEST(unacknowledged_bytes_are_reported)
{
	static const char bytes[65536];
	size_t written = 0;
	ssize_t unsent;
	int ends[2];

	netrig_make_pair(rig, ends);
	if (rig->on->in_memory) {
		assert_int_equal(rig->net->unsent(rig, ends[0]), -EOPNOTSUPP);
		netrig_close_pair(rig, ends);
		return;
	}
	assert_int_equal(rig->net->unsent(rig, ends[0]), 0);
	for (ssize_t len = 0; len >= 0; written += (size_t)len) {
		len = netrig_try_write(rig, ends[0], bytes, sizeof(bytes));
		if (len < 0)
			break;
	}
	unsent = rig->net->unsent(rig, ends[0]);
	assert_true(unsent > 0);
	while (written > 0) {
		char some[65536];

		written -= (size_t)netrig_read_some(rig, ends[1], some, sizeof(some));
	}
	assert_true(rig->net->unsent(rig, ends[0]) < unsent);
	netrig_close_pair(rig, ends);
}

NET_TEST(memory_remembers_per_descriptor)
{
	const struct spokei_vnet_guard *guarded;
	int ends[2];

	if (!rig->on->in_memory)
		skip();
	netrig_make_pair(rig, ends);
	assert_int_equal(spokei_vnet_guard(rig->user.net, ends[0])->calls, 0);
	assert_int_equal(rig->net->guard(rig, ends[0], 1, 2), 0);
	assert_int_equal(rig->net->guard(rig, ends[0], 3, 4), 0);
	guarded = spokei_vnet_guard(rig->user.net, ends[0]);
	assert_int_equal(guarded->calls, 2);
	assert_int_equal(guarded->unanswered_ns, 3);
	assert_int_equal(guarded->keepalive_ns, 4);
	assert_int_equal(spokei_vnet_guard(rig->user.net, ends[1])->calls, 0);
	netrig_close_pair(rig, ends);
}

/* A peer that does not read takes what both systems keep; the limit bounds the sender's part. */
NET_TEST(send_buffer_limits_unread_bytes)
{
	int ends[2];

	netrig_make_pair(rig, ends);
	assert_int_equal(rig->net->send_buffer(rig, ends[0], 16384), 0);
	if (rig->on->in_memory)
		assert_int_equal(spokei_vnet_guard(rig->user.net, ends[0])->send_buffer, 16384);
	else
		assert_in_range(option_of(ends[0], SOL_SOCKET, SO_SNDBUF), 16384, 65536);
	netrig_write_all(rig, ends[0], "there", 5);
	netrig_assert_reads(rig, ends[1], "there");
	netrig_close_pair(rig, ends);
}

NET_TEST(accepted_socket_inherits_options_of_its_listener)
{
	int ends[2];

	assert_int_equal(rig->net->guard(rig, rig->listener, 30 * S, 0), 0);
	assert_int_equal(rig->net->send_buffer(rig, rig->listener, 16384), 0);
	netrig_make_pair(rig, ends);
	if (rig->on->in_memory) {
		const struct spokei_vnet_guard *got = spokei_vnet_guard(rig->user.net, ends[1]);

		assert_int_equal(got->unanswered_ns, 30 * S);
		assert_int_equal(got->send_buffer, 16384);
	} else if (is_tcp(rig)) {
		int user_ms = settings_of(ends[1]).user_ms;

		assert_true(user_ms == 30000 || user_ms == -1);
		assert_in_range(option_of(ends[1], SOL_SOCKET, SO_SNDBUF), 16384, 65536);
	}
	netrig_close_pair(rig, ends);
}
