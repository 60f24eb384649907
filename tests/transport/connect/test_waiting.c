/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait at the connection of a connector which is freed or retired meanwhile. */
#include "core/engine/engine.h"
#include "tests/support/test.h"
#include "tests/transport/connect/connectrig.h"
#include "transport/conn/conn.h"

#define AT "127.0.0.1:20880"
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

FIXTURE(connectrig_set_up, connectrig_tear_down);

TEST(waiting_call_is_closed_with_a_connector_freed_in_a_report)
{
	struct connectrig *rig = *state;
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

TEST(connector_retired_as_it_opens_notices_a_silent_peer)
{
	struct connectrig *rig = *state;

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
