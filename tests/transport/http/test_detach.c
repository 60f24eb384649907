/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that the user of an HTTP connection takes away. */
#include "tests/support/test.h"
#include "tests/transport/http/kvrig.h"

#include "transport/http/request.h"

#include <string.h>

#define rig kvrig

STEP(set_up)
{
	kvrig_open();
}

STEP(tear_down)
{
	kvrig_close();
}

FIXTURE(set_up, tear_down);

TEST(detached_descriptor_stays_open)
{
	const struct spoke_env *env = &rig.faulty.env;
	struct iovec part = { (void *)(uintptr_t) "mine", 4 };
	bool ended;
	int client = kvrig_connect();
	int fd;

	kvrig_send(client, KVRIG_GET("/later"));
	kvrig_run(MS);
	fd = spokei_http_detach(rig.later);
	assert_int_equal(fd, rig.accepted);
	spokei_quota_leave(&rig.quota, kvrig_seat(rig.later));
	rig.later = NULL;
	kvrig_run(60 * SECOND);
	assert_int_equal(rig.closed, 0);
	assert_int_equal(env->net->write(env->ctx, fd, &part, 1), 4);
	assert_string_equal(kvrig_read(client, &ended), "mine");
	assert_false(ended);
	env->net->close(env->ctx, fd);
}

TEST(more_bytes_than_the_request_prevent_a_detach)
{
	int client = kvrig_connect();

	kvrig_send(client, KVRIG_GET("/later") "x");
	kvrig_run(MS);
	assert_int_equal(spokei_http_detach(rig.later), -1);
	spokei_http_close(rig.later);
	client = kvrig_connect();
	kvrig_send(client, KVRIG_GET("/later"));
	kvrig_run(MS);
	kvrig_send(client, "x");
	kvrig_run(MS);
	assert_int_equal(spokei_http_detach(rig.later), -1);
	kvrig_respond_later("now");
}

TEST(end_of_the_peers_side_prevents_a_detach)
{
	const struct spoke_env *env = &rig.client.env;
	int client = kvrig_connect();

	kvrig_send(client, KVRIG_GET("/later"));
	assert_int_equal(env->net->shut(env->ctx, client), 0);
	kvrig_run(MS);
	assert_int_equal(spokei_http_detach(rig.later), -1);
}
