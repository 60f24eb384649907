/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/core/host/netrig.h"

#include "core/host/host.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PATIENCE_MS = 20000, /* for events that are immediate on an idle machine */
};

static const struct medium media[] = {
	{ .name = "tcp4", .at = "127.0.0.1:0" },
	{ .name = "tcp6", .at = "[::1]:0" },
	{ .name = "unix" },
	{ .name = "memory", .at = "mem:server", .in_memory = true },
	{ .name = "rough memory",
	  .at = "127.0.0.1:0",
	  .in_memory = true,
	  .link = { .latency_ns = 1000000,
		    .jitter_ns = 700000,
		    .capacity = 1000,
		    .write_max = 300,
		    .read_max = 200,
		    .eagain_permille = 200 } },
};

static uint64_t rig_now(void *arg)
{
	return ((struct netrig *)arg)->now_ns;
}

static int set_up(void **state)
{
	const struct medium *on = *state;
	struct netrig *rig = calloc(1, sizeof(*rig));
	struct spoke_address at;
	int error;

	if (rig == NULL)
		return -1;
	*state = rig;
	rig->on = on;
	rig->net = on->in_memory ? &spokei_vnet_table : &spokei_host_net;
	rig->user.net = spokei_vnet_new(&(struct spokei_vnet_options){
		.now = rig_now, .arg = rig, .seed = 1, .link = on->link });
	(void)snprintf(rig->folder, sizeof(rig->folder), "/tmp/spoke-test-net-XXXXXX");
	if (rig->user.net == NULL || mkdtemp(rig->folder) == NULL)
		return -1;
	(void)snprintf(rig->text, sizeof(rig->text), "unix:%s/s", rig->folder);
	error = rig->net->parse(rig, on->at ? on->at : rig->text, &at);
	if (!error)
		error = rig->net->listen(rig, &at, NETRIG_BACKLOG, &rig->listener);
	rig->absent = error == -EADDRNOTAVAIL || error == -EAFNOSUPPORT;
	if (rig->absent) {
		print_message("no %s on this machine\n", on->name);
		return 0;
	}
	return error ? error : rig->net->local(rig, rig->listener, &rig->at);
}

static int tear_down(void **state)
{
	struct netrig *rig = *state;
	int result = 0;

	if (rig->listener >= 0 && !rig->absent)
		rig->net->close(rig, rig->listener);
	result |= rmdir(rig->folder); /* fails if a listener left its path behind */
	result |= rig->user.fds != 0;
	spokei_vnet_free(rig->user.net);
	free(rig);
	return result;
}

struct netrig *netrig_begin(void **state)
{
	struct netrig *rig = *state;

	if (rig->absent)
		skip();
	return rig;
}

/* Waits until the descriptor is ready for any of `io`. */
void netrig_wait_for(struct netrig *rig, int fd, unsigned io)
{
	struct pollfd wanted = { .fd = fd };

	if (rig->on->in_memory) {
		while ((spokei_vnet_ready(rig->user.net, fd) & io) == 0) {
			rig->now_ns = spokei_vnet_next(rig->user.net);
			assert_true(rig->now_ns != UINT64_MAX);
		}
		return;
	}
	wanted.events = (short)((io & SPOKE_IO_READ ? POLLIN : 0) |
				(io & SPOKE_IO_WRITE ? POLLOUT : 0));
	assert_int_equal(poll(&wanted, 1, PATIENCE_MS), 1);
}

int netrig_connect_to(struct netrig *rig, const struct spoke_address *to)
{
	int fd = -1;
	int error = rig->net->connect(rig, to, &fd);

	if (error == -EINPROGRESS) {
		netrig_wait_for(rig, fd, SPOKE_IO_WRITE);
		error = rig->net->finish(rig, fd);
	}
	assert_int_equal(error, 0);
	return fd;
}

int netrig_accept_one(struct netrig *rig, struct spoke_address *ret_peer)
{
	int fd = -1;

	netrig_wait_for(rig, rig->listener, SPOKE_IO_READ);
	assert_int_equal(rig->net->accept(rig, rig->listener, &fd, ret_peer), 0);
	return fd;
}

/* Connects a pair: [0] is the connecting end, [1] the accepted one. */
void netrig_make_pair(struct netrig *rig, int *ret_ends)
{
	struct spoke_address peer;

	ret_ends[0] = netrig_connect_to(rig, &rig->at);
	ret_ends[1] = netrig_accept_one(rig, &peer);
}

void netrig_close_pair(struct netrig *rig, const int *ends)
{
	rig->net->close(rig, ends[0]);
	rig->net->close(rig, ends[1]);
}

ssize_t netrig_try_write(struct netrig *rig, int fd, const char *bytes, size_t len)
{
	union {
		const char *given;
		char *taken;
	} cast = { .given = bytes };

	return rig->net->write(rig, fd, &(struct iovec){ cast.taken, len }, 1);
}

void netrig_write_all(struct netrig *rig, int fd, const char *bytes, size_t len)
{
	for (size_t written = 0; written < len;) {
		ssize_t got = netrig_try_write(rig, fd, bytes + written, len - written);

		if (got == -EAGAIN) {
			netrig_wait_for(rig, fd, SPOKE_IO_WRITE);
			continue;
		}
		assert_true(got > 0);
		written += (size_t)got;
	}
}

/* Reads like read(), but waits until there is something to read. */
ssize_t netrig_read_some(struct netrig *rig, int fd, char *bytes, size_t len)
{
	ssize_t got = -EAGAIN;

	while (got == -EAGAIN) {
		netrig_wait_for(rig, fd, SPOKE_IO_READ);
		got = rig->net->read(rig, fd, bytes, len);
	}
	return got;
}

void netrig_assert_reads(struct netrig *rig, int fd, const char *text)
{
	char bytes[64] = "";
	size_t len = 0;

	while (len < strlen(text)) {
		ssize_t got = netrig_read_some(rig, fd, bytes + len, strlen(text) - len);

		assert_true(got > 0);
		len += (size_t)got;
	}
	assert_string_equal(bytes, text);
}

void netrig_assert_ended(struct netrig *rig, int fd)
{
	char byte;

	for (int i = 0; i < 3; i++)
		assert_int_equal(netrig_read_some(rig, fd, &byte, 1), 0);
}

void netrig_assert_same(struct netrig *rig, const struct spoke_address *a,
			const struct spoke_address *b)
{
	char text[2][128];

	rig->net->print(rig, a, text[0], sizeof(text[0]));
	rig->net->print(rig, b, text[1], sizeof(text[1]));
	assert_string_equal(text[0], text[1]);
}

int netrig_run(const char *group, const struct CMUnitTest *tests, size_t count)
{
	enum {
		MEDIA = sizeof(media) / sizeof(media[0]),
		CASES_MAX = 256,
		NAME_SIZE = 120,
	};
	static char names[CASES_MAX][NAME_SIZE];
	static struct CMUnitTest cases[CASES_MAX];

	if (count * MEDIA > CASES_MAX)
		return 1;
	for (size_t i = 0; i < count * MEDIA; i++) {
		const struct CMUnitTest *test = &tests[i / MEDIA];
		const struct medium *on = &media[i % MEDIA];

		(void)snprintf(names[i], NAME_SIZE, "%s %s", test->name, on->name);
		cases[i] = (struct CMUnitTest){ names[i], test->test_func, set_up, tear_down,
						(void *)(uintptr_t)on };
	}
	return _cmocka_run_group_tests(group, cases, count * MEDIA, NULL, NULL);
}
