/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a network, tested on the real one and on the in-memory one. */
#include "tests/core/host/netrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>

enum {
	LARGE = 256 << 20, /* more than any kernel buffers */
	BEYOND_FULL = 300000,
	CROWD = 40,
	PARTS = 3000, /* more than the kernel accepts in one call */
};

RUNNER(netrig_run);

NET_TEST(both_sides_agree_on_their_addresses)
{
	struct spoke_address accepted;
	struct spoke_address address;
	int client = netrig_connect_to(rig, &rig->at);
	int server = netrig_accept_one(rig, &accepted);

	assert_int_equal(rig->net->peer(rig, client, &address), 0);
	netrig_assert_same(rig, &address, &rig->at);
	assert_int_equal(rig->net->local(rig, server, &address), 0);
	netrig_assert_same(rig, &address, &rig->at);
	assert_int_equal(rig->net->local(rig, client, &address), 0);
	netrig_assert_same(rig, &address, &accepted);
	assert_int_equal(rig->net->peer(rig, server, &address), 0);
	netrig_assert_same(rig, &address, &accepted);
	rig->net->close(rig, client);
	rig->net->close(rig, server);
}

NET_TEST(an_address_printed_is_parsed_to_the_same)
{
	struct spoke_address back;
	char text[128];

	rig->net->print(rig, &rig->at, text, sizeof(text));
	assert_int_equal(rig->net->parse(rig, text, &back), 0);
	assert_int_equal(back.len, rig->at.len);
	assert_memory_equal(back.bytes, rig->at.bytes, back.len);
	rig->net->print(rig, &rig->at, text, 5);
	assert_int_equal(strlen(text), 4);
}

NET_TEST(nothing_to_accept_or_to_read_is_eagain)
{
	struct spoke_address peer;
	int ends[2];
	char byte;

	assert_int_equal(rig->net->accept(rig, rig->listener, ends, &peer), -EAGAIN);
	netrig_make_pair(rig, ends);
	assert_int_equal(rig->net->accept(rig, rig->listener, ends, &peer), -EAGAIN);
	assert_int_equal(rig->net->read(rig, ends[0], &byte, 1), -EAGAIN);
	assert_int_equal(rig->net->read(rig, ends[1], &byte, 1), -EAGAIN);
	assert_int_equal(rig->net->finish(rig, ends[0]), 0);
	assert_int_equal(rig->net->finish(rig, ends[1]), 0);
	netrig_close_pair(rig, ends);
}

NET_TEST(bytes_go_both_ways)
{
	int ends[2];

	netrig_make_pair(rig, ends);
	for (int i = 0; i < 20; i++) {
		netrig_write_all(rig, ends[i % 2], "there", 5);
		netrig_assert_reads(rig, ends[1 - i % 2], "there");
		netrig_write_all(rig, ends[1 - i % 2], "and back", 8);
		netrig_assert_reads(rig, ends[i % 2], "and back");
	}
	netrig_close_pair(rig, ends);
}

NET_TEST(the_end_comes_after_the_data)
{
	int ends[2];

	for (int closer = 0; closer < 2; closer++) {
		netrig_make_pair(rig, ends);
		netrig_write_all(rig, ends[closer], "last words", 10);
		rig->net->close(rig, ends[closer]);
		netrig_assert_reads(rig, ends[1 - closer], "last words");
		netrig_assert_ended(rig, ends[1 - closer]);
		rig->net->close(rig, ends[1 - closer]);
	}
}

NET_TEST(half_a_connection_goes_on_when_the_other_half_has_ended)
{
	int ends[2];

	netrig_make_pair(rig, ends);
	netrig_write_all(rig, ends[0], "question", 8);
	assert_int_equal(rig->net->shut(rig, ends[0]), 0);
	assert_int_equal(netrig_try_write(rig, ends[0], "more", 4), -EPIPE);
	netrig_assert_reads(rig, ends[1], "question");
	netrig_assert_ended(rig, ends[1]);
	netrig_write_all(rig, ends[1], "an", 2);
	netrig_write_all(rig, ends[1], "swer", 4);
	rig->net->close(rig, ends[1]);
	netrig_assert_reads(rig, ends[0], "answer");
	netrig_assert_ended(rig, ends[0]);
	rig->net->close(rig, ends[0]);
}

NET_TEST(closing_with_unread_data_resets)
{
	int ends[2];
	char byte;

	netrig_make_pair(rig, ends);
	netrig_write_all(rig, ends[0], "never read", 10);
	netrig_wait_for(rig, ends[1], SPOKE_IO_READ);
	rig->net->close(rig, ends[1]);
	assert_int_equal(netrig_read_some(rig, ends[0], &byte, 1), -ECONNRESET);
	assert_int_equal(netrig_try_write(rig, ends[0], "x", 1), -EPIPE);
	netrig_assert_ended(rig, ends[0]);
	rig->net->close(rig, ends[0]);
}

/* Also proves that the write does not raise SIGPIPE. */
NET_TEST(writing_to_closed_peer_fails_in_the_end)
{
	ssize_t result = 1;
	int ends[2];

	netrig_make_pair(rig, ends);
	rig->net->close(rig, ends[1]);
	netrig_assert_ended(rig, ends[0]);
	for (int i = 0; i < 100000 && (result > 0 || result == -EAGAIN); i++) {
		result = netrig_try_write(rig, ends[0], "x", 1);
		netrig_wait_for(rig, ends[0], SPOKE_IO_WRITE);
		if (rig->on->in_memory)
			rig->now_ns += 1000;
	}
	assert_true(result == -EPIPE || result == -ECONNRESET);
	assert_int_equal(netrig_try_write(rig, ends[0], "x", 1), -EPIPE);
	rig->net->close(rig, ends[0]);
}

static char pattern(size_t at)
{
	return (char)(at * 31 + at / 256 + at / 65536);
}

/* Reads and checks the available bytes. Returns the new position in the stream. */
static size_t drain(struct netrig *rig, int fd, size_t at)
{
	static char bytes[1 << 16];
	ssize_t got = rig->net->read(rig, fd, bytes, sizeof(bytes));

	if (got == -EAGAIN)
		return at;
	assert_true(got > 0);
	for (size_t i = 0; i < (size_t)got; i++) {
		if (bytes[i] != pattern(at + i))
			fail_msg("byte %zu is wrong", at + i);
	}
	return at + (size_t)got;
}

/* Writes the stream's bytes at this position. Returns the result of the write. */
static ssize_t write_pattern(struct netrig *rig, int fd, size_t at, size_t len)
{
	static char bytes[1 << 16];
	size_t most = rig->on->link.write_max ? rig->on->link.write_max : sizeof(bytes);

	if (len > most)
		len = most;
	for (size_t i = 0; i < len; i++)
		bytes[i] = pattern(at + i);
	return netrig_try_write(rig, fd, bytes, len);
}

NET_TEST(a_large_transfer_fills_up_goes_on_and_arrives_whole)
{
	size_t total = LARGE;
	size_t written = 0;
	size_t seen = 0;
	ssize_t got = 0;
	int ends[2];

	netrig_make_pair(rig, ends);
	while (got != -EAGAIN && written < total) {
		got = write_pattern(rig, ends[0], written, total - written);
		assert_true(got > 0 || got == -EAGAIN);
		written += got > 0 ? (size_t)got : 0;
	}
	assert_int_equal(got, -EAGAIN); /* nothing has been read yet */
	total = written + BEYOND_FULL;
	while (seen < total) {
		got = 1;
		while (got > 0 && written < total) {
			got = write_pattern(rig, ends[0], written, total - written);
			assert_true(got > 0 || got == -EAGAIN);
			written += got > 0 ? (size_t)got : 0;
		}
		netrig_wait_for(rig, ends[1], SPOKE_IO_READ);
		seen = drain(rig, ends[1], seen);
	}
	assert_int_equal(seen, written);
	netrig_close_pair(rig, ends);
}

NET_TEST(any_number_of_parts_can_be_written)
{
	static struct iovec parts[PARTS];
	static char bytes[PARTS];
	size_t written = 0;
	size_t seen = 0;
	int ends[2];

	for (size_t i = 0; i < PARTS; i++) {
		bytes[i] = pattern(i);
		parts[i] = (struct iovec){ &bytes[i], 1 };
	}
	netrig_make_pair(rig, ends);
	while (seen < PARTS) {
		ssize_t got = 0;

		if (written < PARTS)
			got = rig->net->write(rig, ends[1], parts + written,
					      (int)(PARTS - written));
		assert_true(got >= 0 || got == -EAGAIN);
		written += got > 0 ? (size_t)got : 0;
		if (written > seen)
			netrig_wait_for(rig, ends[0], SPOKE_IO_READ);
		seen = drain(rig, ends[0], seen);
	}
	netrig_close_pair(rig, ends);
}

NET_TEST(many_connections_keep_apart)
{
	struct spoke_address peer;
	int clients[CROWD];
	int servers[CROWD];

	for (int i = 0; i < CROWD; i++)
		clients[i] = netrig_connect_to(rig, &rig->at);
	for (int i = 0; i < CROWD; i++)
		servers[i] = netrig_accept_one(rig, &peer);
	for (int i = 0; i < CROWD; i++)
		netrig_write_all(rig, clients[i], &"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop"[i],
				 1);
	for (int i = 0; i < CROWD; i++) {
		char text[2] = { (char)('a' + i % 26), '\0' };

		netrig_assert_reads(rig, servers[i], text);
		rig->net->close(rig, clients[i]);
		netrig_assert_ended(rig, servers[i]);
		rig->net->close(rig, servers[i]);
	}
}

NET_TEST(connection_without_listener_is_refused)
{
	int fd = -1;
	int error;

	rig->net->close(rig, rig->listener);
	rig->listener = -1;
	error = rig->net->connect(rig, &rig->at, &fd);
	if (error == -EINPROGRESS) {
		netrig_wait_for(rig, fd, SPOKE_IO_WRITE);
		error = rig->net->finish(rig, fd);
		rig->net->close(rig, fd);
	}
	/* The path of a unix socket was removed with its listener. */
	assert_int_equal(error, rig->on->at ? -ECONNREFUSED : -ENOENT);
}

NET_TEST(closing_a_listener_ends_unaccepted_connections)
{
	int client = netrig_connect_to(rig, &rig->at);
	char byte;
	ssize_t got;

	netrig_wait_for(rig, rig->listener, SPOKE_IO_READ);
	rig->net->close(rig, rig->listener);
	rig->listener = -1;
	got = netrig_read_some(rig, client, &byte, 1);
	assert_true(got == 0 || got == -ECONNRESET);
	rig->net->close(rig, client);
}

NET_TEST(an_address_is_in_use_until_its_listener_closes)
{
	int fd = -1;
	int ends[2];

	assert_int_equal(rig->net->listen(rig, &rig->at, NETRIG_BACKLOG, &fd), -EADDRINUSE);
	assert_int_equal(fd, -1);
	netrig_make_pair(rig, ends);
	netrig_close_pair(rig, ends);
	rig->net->close(rig, rig->listener);
	assert_int_equal(rig->net->listen(rig, &rig->at, NETRIG_BACKLOG, &rig->listener), 0);
	netrig_make_pair(rig, ends);
	netrig_close_pair(rig, ends);
}

NET_TEST(a_spare_descriptor_is_a_descriptor)
{
	int spare = -1;
	int again = -1;

	assert_int_equal(rig->net->spare(rig, &spare), 0);
	assert_true(spare >= 0 && spare != rig->listener);
	rig->net->close(rig, spare);
	assert_int_equal(rig->net->spare(rig, &again), 0);
	assert_int_equal(again, spare);
	rig->net->close(rig, again);
}

NET_TEST(invalid_address_is_refused)
{
	struct spoke_address address;

	assert_int_equal(rig->net->parse(rig, "", &address), -EINVAL);
	assert_int_equal(rig->net->parse(rig, "localhost:1", &address), -EINVAL);
	assert_int_equal(rig->net->parse(rig, "127.0.0.1", &address), -EINVAL);
	assert_int_equal(rig->net->parse(rig, "unix:", &address), -EINVAL);
}

NET_TEST(digits_resolve_to_themselves)
{
	struct spoke_address found[4];
	struct spoke_address parsed;

	assert_int_equal(rig->net->parse(rig, "127.0.0.1:77", &parsed), 0);
	assert_int_equal(rig->net->resolve(rig, "127.0.0.1", 77, found, 4), 1);
	netrig_assert_same(rig, &found[0], &parsed);
	assert_int_equal(rig->net->parse(rig, "[::1]:77", &parsed), 0);
	assert_int_equal(rig->net->resolve(rig, "::1", 77, found, 4), 1);
	netrig_assert_same(rig, &found[0], &parsed);
	assert_in_range(rig->net->resolve(rig, "localhost", 77, found, 1), 1, 1);
}
