/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the in-memory network: see netrig.h. */
#include "tests/core/virtual/netrig.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t memrig_now(void *arg)
{
	return ((struct memrig *)arg)->now_ns;
}

struct spoke_address memrig_parse(const char *text)
{
	struct spoke_address address;

	assert_int_equal(spokei_vnet_table.parse(NULL, text, &address), 0);
	return address;
}

void memrig_open(struct memrig *rig, uint64_t seed, int backlog)
{
	*rig = (struct memrig){ .now_ns = SECOND, .near = -1, .far = -1 };
	rig->net = spokei_vnet_new(
		&(struct spokei_vnet_options){ .now = memrig_now, .arg = rig, .seed = seed });
	assert_non_null(rig->net);
	rig->client.net = rig->net;
	rig->server.net = rig->net;
	rig->at = memrig_parse("127.0.0.1:20880");
	assert_int_equal(spokei_vnet_table.listen(&rig->server, &rig->at, backlog, &rig->listener),
			 0);
}

int memrig_set_up(void **state)
{
	struct memrig *rig = malloc(sizeof(*rig));

	if (rig == NULL)
		return -1;
	memrig_open(rig, 1, 8);
	*state = rig;
	return 0;
}

RIG_STEP(memrig_tear_down)
{
	struct memrig *rig = *state;

	spokei_vnet_kill(&rig->client);
	spokei_vnet_kill(&rig->server);
	assert_int_equal(rig->client.fds, 0);
	assert_int_equal(rig->server.fds, 0);
	spokei_vnet_free(rig->net);
	free(rig);
}

int memrig_start_connect(struct memrig *rig)
{
	int fd = -1;

	assert_int_equal(spokei_vnet_table.connect(&rig->client, &rig->at, &fd), -EINPROGRESS);
	return fd;
}

int memrig_accept_next(struct memrig *rig)
{
	struct spoke_address peer;
	int fd = -1;
	int error = spokei_vnet_table.accept(&rig->server, rig->listener, &fd, &peer);

	return error ? error : fd;
}

void memrig_make_pair(struct memrig *rig)
{
	rig->near = memrig_start_connect(rig);
	rig->far = memrig_accept_next(rig);
	assert_true(rig->far >= 0);
	assert_int_equal(spokei_vnet_table.finish(&rig->client, rig->near), 0);
}

ssize_t memrig_put(struct memrig *rig, int fd, size_t len)
{
	static char bytes[1 << 17];
	struct spokei_vnet_user *user = fd == rig->far ? &rig->server : &rig->client;

	return spokei_vnet_table.write(user, fd, &(struct iovec){ bytes, len }, 1);
}

ssize_t memrig_get(struct memrig *rig, int fd)
{
	static char bytes[1 << 17];
	struct spokei_vnet_user *user = fd == rig->far ? &rig->server : &rig->client;

	return spokei_vnet_table.read(user, fd, bytes, sizeof(bytes));
}

void memrig_pass(struct memrig *rig, uint64_t ns)
{
	rig->now_ns += ns;
}
