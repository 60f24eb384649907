/* SPDX-License-Identifier: Apache-2.0 */
/* The path at which the peer of a connector listens on this host: tried first, never relied upon.
 */
#include "core/engine/engine.h"
#include "tests/support/test.h"
#include "tests/transport/connect/connectrig.h"
#include "transport/conn/conn.h"
#include "transport/wire/catalog.h"

#include <spoke/stats.h>

#include <errno.h>
#include <string.h>

#define AT "127.0.0.1:20880"
#define PATH "/run/demo.sock"
#define LOCAL "unix:" PATH

struct both {
	int path; /* listeners; -1: none */
	int port;
};

static struct both start(struct connectrig *rig, bool path, bool port)
{
	struct both both = { -1, -1 };

	if (path)
		both.path = connectrig_listen(rig, LOCAL);
	if (port)
		both.port = connectrig_listen(rig, AT);
	rig->options.local = PATH;
	assert_int_equal(connectrig_start(rig), SPOKE_OK);
	return both;
}

/* Accepts the connection at the path, and reads `len` bytes of the greeting. */
static int accept_greeting(struct connectrig *rig, int listener, unsigned char *bytes, size_t len)
{
	const struct spoke_env *env = &rig->server.env;
	int fd;

	connectrig_run(rig, MS);
	fd = connectrig_accept(rig, listener);
	assert_true(fd >= 0);
	assert_int_equal(env->net->read(env->ctx, fd, bytes, len), len);
	return fd;
}

static void answer(struct connectrig *rig, int fd, const void *bytes, size_t len)
{
	const struct spoke_env *env = &rig->server.env;
	struct iovec part = spokei_stream_part(bytes, len);

	assert_int_equal(env->net->write(env->ctx, fd, &part, 1), len);
}

/* Waits until the connector is open over TCP. Returns the server's end. */
static int assert_uses_tcp(struct connectrig *rig, const struct both *both)
{
	int fd = connectrig_wait_open(rig, both->port);

	assert_false(spokei_connector_is_local(rig->connector));
	assert_string_equal(rig->told[rig->told_count - 1].peer, AT);
	assert_string_equal(spokei_connector_name(rig->connector), AT);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTED_LOCAL), 0);
	return fd;
}

FIXTURE(connectrig_set_up, connectrig_tear_down);

CONNECT_TEST(path_is_used_once_its_peer_has_answered)
{
	struct both both = start(rig, true, true);
	unsigned char greeting[17];
	int fd = accept_greeting(rig, both.path, greeting, sizeof(greeting));

	assert_int_equal(greeting[0], 0xda);
	assert_int_equal(greeting[1], 0xbb);
	assert_int_equal(spokei_connector_state(rig->connector), SPOKEI_CONNECTOR_CONNECTING);
	assert_non_null(spokei_connector_conn(rig->connector)); /* calls wait there */
	connectrig_speak(rig, fd);
	assert_string_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN)->peer, LOCAL);
	assert_true(spokei_connector_is_local(rig->connector));
	assert_string_equal(spokei_connector_name(rig->connector), AT);
	assert_int_equal(connectrig_accept(rig, both.port), -1);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTED_LOCAL), 1);
	assert_int_equal(connectrig_events(rig, SPOKE_OK, "connected to " AT " at " LOCAL), 1);
	/* From now on it is a plain socket. */
	assert_ptr_equal(spokei_connector_conn(rig->connector)->stream.kind, &spokei_stream_socket);
	assert_false(spokei_connector_conn(rig->connector)->stream.layered);
}

CONNECT_TEST(answer_may_come_byte_by_byte)
{
	struct both both = start(rig, true, true);
	unsigned char greeting[17];
	int fd = accept_greeting(rig, both.path, greeting, sizeof(greeting));

	answer(rig, fd, "\xda", 1);
	connectrig_run(rig, MS);
	assert_int_equal(spokei_connector_state(rig->connector), SPOKEI_CONNECTOR_CONNECTING);
	answer(rig, fd, "\xbb", 1);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
	assert_true(spokei_connector_is_local(rig->connector));
}

CONNECT_TEST(missing_path_leads_to_tcp_without_a_pause)
{
	struct both both = start(rig, false, true);

	(void)assert_uses_tcp(rig, &both);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_RECONNECTS), 0);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_LOCAL_FAILED), 1);
	assert_int_equal(connectrig_events(rig, SPOKE_ECONNECT, LOCAL ": "), 1);
	assert_string_equal(spokei_connector_reason(rig->connector), "");
}

CONNECT_TEST(path_that_closes_at_once_leads_to_tcp)
{
	struct both both = start(rig, true, true);
	unsigned char greeting[1];

	connectrig_hang_up(rig, accept_greeting(rig, both.path, greeting, 1));
	(void)assert_uses_tcp(rig, &both);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_LOCAL_FAILED), 1);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_RECONNECTS), 0);
}

CONNECT_TEST(mute_path_leads_to_tcp_after_half_a_second)
{
	struct both both;

	rig->options.connect_ns = 700 * MS;
	both = start(rig, true, true);
	connectrig_run(rig, 490 * MS);
	assert_int_equal(spokei_connector_state(rig->connector), SPOKEI_CONNECTOR_CONNECTING);
	(void)assert_uses_tcp(rig, &both);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_LOCAL_FAILED), 1);
	assert_string_equal(spokei_connector_reason(rig->connector), "");
}

CONNECT_TEST(path_where_another_protocol_is_spoken_leads_to_tcp)
{
	struct both both = start(rig, true, true);
	unsigned char greeting[1];
	int fd = accept_greeting(rig, both.path, greeting, 1);

	answer(rig, fd, "HTTP/1.1 400\r\n", 14);
	(void)assert_uses_tcp(rig, &both);
	assert_int_equal(connectrig_events(rig, SPOKE_ECONNECT, "another protocol"), 1);
}

CONNECT_TEST(path_that_breaks_the_protocol_later_leads_to_tcp)
{
	struct both both = start(rig, true, true);
	static const unsigned char bad[24] = { 0xda, 0xbb, 0x22, [12] = 0xff };
	unsigned char greeting[1];
	int fd = accept_greeting(rig, both.path, greeting, 1);

	answer(rig, fd, bad, sizeof(bad));
	assert_string_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN)->peer, LOCAL);
	(void)connectrig_wait_open(rig, both.port);
	assert_false(spokei_connector_is_local(rig->connector));
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_RECONNECTS), 0);
}

CONNECT_TEST(next_round_begins_with_the_path)
{
	struct both both = start(rig, false, true);
	unsigned char greeting[1];
	int fd = assert_uses_tcp(rig, &both);

	connectrig_speak(rig, fd);
	connectrig_run(rig, MS);
	both.path = connectrig_listen(rig, LOCAL);
	connectrig_hang_up(rig, fd);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING);
	fd = accept_greeting(rig, both.path, greeting, 1);
	connectrig_speak(rig, fd);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
	assert_true(spokei_connector_is_local(rig->connector));
	/* It has brought no answer, so the path is left out once. */
	connectrig_run(rig, MS);
	connectrig_hang_up(rig, fd);
	fd = connectrig_wait_open(rig, both.port);
	assert_false(spokei_connector_is_local(rig->connector));
	assert_int_equal(connectrig_events(rig, SPOKE_ECONNECT, "; uses TCP"), 1);
	connectrig_speak(rig, fd);
	connectrig_run(rig, MS);
	connectrig_hang_up(rig, fd);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_CONNECTING);
	fd = accept_greeting(rig, both.path, greeting, 1);
	connectrig_speak(rig, fd);
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_OPEN);
	assert_true(spokei_connector_is_local(rig->connector));
}

CONNECT_TEST(name_is_resolved_only_if_the_path_fails)
{
	struct both both;
	unsigned char greeting[1];

	spokei_vnet_name(rig->world.net, "demo.test", "127.0.0.1");
	rig->options.host = "demo.test";
	both = start(rig, true, true);
	assert_int_equal(spokei_connector_state(rig->connector), SPOKEI_CONNECTOR_CONNECTING);
	connectrig_hang_up(rig, accept_greeting(rig, both.path, greeting, 1));
	(void)connectrig_wait(rig, SPOKEI_CONNECTOR_RESOLVING);
	assert_non_null(spokei_connector_conn(rig->connector));
	(void)connectrig_wait_open(rig, both.port);
	assert_false(spokei_connector_is_local(rig->connector));
}

CONNECT_TEST(path_and_addresses_that_fail_are_one_round)
{
	struct both both = start(rig, true, false);
	unsigned char greeting[1];

	connectrig_hang_up(rig, accept_greeting(rig, both.path, greeting, 1));
	assert_int_equal(connectrig_wait(rig, SPOKEI_CONNECTOR_WAITING)->error, SPOKE_ECONNECT);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS), 2);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_RECONNECTS), 1);
	assert_non_null(strstr(spokei_connector_reason(rig->connector), AT ": "));
}

CONNECT_TEST(wire_without_heartbeats_has_no_path)
{
	struct both both;

	rig->options.wire = spokei_catalog_wire("msgpack-rpc");
	both = start(rig, true, true);
	(void)assert_uses_tcp(rig, &both);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS), 1);
}

CONNECT_TEST(path_that_is_no_address_is_refused)
{
	char path[200];

	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	rig->options.local = path;
	assert_int_equal(connectrig_start(rig), SPOKE_ETOOLARGE);
	rig->options.local = "";
	assert_int_equal(connectrig_start(rig), SPOKE_EINVAL);
}

CONNECT_TEST(connector_can_be_freed_while_the_peer_is_greeted)
{
	struct both both = start(rig, true, true);
	unsigned char greeting[1];

	(void)accept_greeting(rig, both.path, greeting, 1);
	connectrig_free(rig);
	connectrig_run(rig, 10 * SECOND);
	assert_int_equal(connectrig_stat(rig, SPOKE_STAT_CONNECTS), 1);
}

/* Lets a server without a loop answer all connections at both listeners. */
static void serve_all(struct connectrig *rig, const struct both *both)
{
	unsigned char greeting[1];
	int fd;

	while ((fd = connectrig_accept(rig, both->port)) >= 0)
		connectrig_speak(rig, fd);
	while ((fd = connectrig_accept(rig, both->path)) >= 0) {
		(void)spokei_vnet_table.read(&rig->server, fd, greeting, 1);
		connectrig_speak(rig, fd);
	}
}

/* Whatever fails once, the connector is open in the end, and nothing leaks. */
TEST(any_call_and_any_allocation_may_fail, .bare = true)
{
	for (int kind = 0; kind < SPOKEI_FAULTS_KINDS; kind++) {
		for (uint64_t nth = 1; nth < 20; nth++) {
			static struct connectrig rig;
			struct both both;

			connectrig_open(&rig, nth);
			both.path = connectrig_listen(&rig, LOCAL);
			both.port = connectrig_listen(&rig, AT);
			rig.options.local = PATH;
			spokei_faults_fail(&rig.faulty, (enum spokei_faults_kind)kind, nth, -ENOMEM,
					   false);
			if (connectrig_start(&rig))
				assert_int_equal(connectrig_start(&rig), SPOKE_OK);
			for (unsigned i = 0; i < 20; i++) {
				connectrig_run(&rig, 500 * MS);
				serve_all(&rig, &both);
			}
			assert_int_equal(spokei_connector_state(rig.connector),
					 SPOKEI_CONNECTOR_OPEN);
			connectrig_close(&rig);
		}
	}
}
