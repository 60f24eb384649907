/* SPDX-License-Identifier: Apache-2.0 */
/* Callers without a good token: how long they may try, and the bounds until then. */
#include "cluster/provider/parts.h"
#include "tests/cluster/provider/proofrig.h"
#include "tests/support/test.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <string.h>

/* --- bounds */

FIXTURE(proofrig_set_up, proofrig_tear_down);

TEST(third_refusal_closes_the_connection)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_open(1, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(1, "demo.A", SECRET), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
		assert_false(proofrig.conns[0].ended);
	}
	assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_AUTH), 1);
	assert_int_equal(proofrig.lines, 1);
	assert_non_null(strstr(proofrig.line, "no or bad credentials for demo.A"));
	assert_int_equal(proofrig_call(1, "demo.A", SECRET), 0);
}

TEST(limit_of_refusals_is_a_setting)
{
	proofrig_configure("[provider]\ntoken = " SECRET "\nauth.failures.max = 1\n");
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.None", NULL), SPOKE_EFORBIDDEN);
	assert_true(proofrig.conns[0].ended);
}

TEST(flood_of_bad_requests_gets_three_answers)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 1000; i++)
		proofrig_put(0, "demo.A", "get", "correct-horse-9", 0);
	(void)proofrig_ask(0);
	assert_true(proofrig.seen[0].count <= 3);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_AUTH), 1);
	assert_int_equal(proofrig.served, 0);
}

/* Puts a request in Hessian 2 with these bytes as its body. */
static void put_hessian2(unsigned which, const unsigned char *body, size_t len)
{
	const unsigned char head[] = { 0xda,
				       0xbb,
				       0xc2,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       0,
				       1,
				       0,
				       0,
				       (unsigned char)(len >> 8),
				       (unsigned char)len };

	peer_put_bytes(&proofrig.conns[which], spokei_span(head, sizeof(head)));
	peer_put_bytes(&proofrig.conns[which], spokei_span(body, len));
}

TEST(third_unread_request_closes_unproven_connection)
{
	static const unsigned char bad[] = "H\005token";

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 1000; i++)
		put_hessian2(0, bad, sizeof(bad) - 1);
	assert_int_equal(proofrig_ask(0), SPOKE_EBADREQUEST);
	assert_int_equal(proofrig.seen[0].count, 3);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_BAD_REQUESTS), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_AUTH), 1);
	assert_int_equal(proofrig.lines, 1);
	assert_non_null(strstr(proofrig.line, "no or bad credentials for this provider"));
}

/* That it is too late must not tell a stranger that the service exists. */
TEST(third_late_request_closes_unproven_connection)
{
	static const unsigned char late[] = "\0052.0.2\006demo.A\000\003get\022Ljava/lang/Object;N"
					    "H\003_TO\0010Z";

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 1000; i++)
		put_hessian2(0, late, sizeof(late) - 1);
	assert_int_equal(proofrig_ask(0), SPOKE_EFORBIDDEN);
	assert_true(proofrig.seen[0].count <= 3);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 3);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REQUESTS_EXPIRED), 0);
	proofrig_open(1, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(1, "demo.A", SECRET), 0);
	put_hessian2(1, late, sizeof(late) - 1);
	assert_int_equal(proofrig_ask(1), SPOKE_EFORBIDDEN);
}

TEST(unread_requests_of_a_proven_peer_are_no_failures)
{
	static const unsigned char bad[] = "H\005token";

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	for (unsigned i = 0; i < 10; i++) {
		put_hessian2(0, bad, sizeof(bad) - 1);
		assert_int_equal(proofrig_ask(0), SPOKE_EBADREQUEST);
	}
	assert_false(proofrig.conns[0].ended);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 0);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
}

/* A list with one value, and lists that each refer twice to the one before. */
static size_t nest(unsigned char *body, size_t lists)
{
	static const char names[] = "\0052.0.2\006demo.A\000\003get\022Ljava/lang/Object;\127\170";
	size_t len = sizeof(names) - 1;

	memcpy(body, names, len);
	for (size_t i = 1; i < lists; i++) {
		const unsigned char twice[] = { 0x7a, 'Q', (unsigned char)(0x90 + i), 'Q',
						(unsigned char)(0x90 + i) };

		memcpy(body + len, twice, sizeof(twice));
		len += sizeof(twice);
	}
	body[len++] = 'Z';
	body[len++] = 'H';
	body[len++] = 'Z';
	return len;
}

TEST(references_of_unproven_peer_repeat_few_values)
{
	unsigned char body[400];
	size_t len = nest(body, 10);

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	put_hessian2(0, body, len);
	assert_int_equal(proofrig_ask(0), SPOKE_EBADREQUEST);
	assert_int_equal(proofrig_stat(SPOKE_STAT_BODIES_SWOLLEN), 1);
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 1);
}

TEST(references_repeat_what_the_bytes_of_a_peer_earn)
{
	unsigned char body[400];
	size_t len = nest(body, 10);

	proofrig_configure("[provider]\n");
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 100; i++)
		put_hessian2(0, body, len);
	assert_int_equal(proofrig_ask(0), SPOKE_EBADREQUEST);
	assert_int_equal(proofrig.seen[0].count, 100);
	assert_in_range(proofrig_stat(SPOKE_STAT_BODIES_SWOLLEN), 90, 99);
	assert_non_null(strstr(proofrig.seen[0].text, "the body repeats too much"));
	/* A body that repeats little has as many bytes as it needs. */
	len = nest(body, 5);
	put_hessian2(0, body, len);
	assert_int_equal(proofrig_ask(0), 0);
	/* Later, bodies may repeat again. */
	len = nest(body, 10);
	spokei_world_run(&proofrig.world, proofrig.world.now_ns + UINT64_C(125000000));
	put_hessian2(0, body, len);
	assert_int_equal(proofrig_ask(0), 0);
}

TEST(log_has_ten_lines_a_second)
{
	proofrig_provide(SECRET);
	for (unsigned i = 0; i < 30; i++) {
		proofrig_open(0, &spokei_wire_dubbo);
		assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
		assert_int_equal(proofrig_call(0, "demo.A", NULL), SPOKE_EFORBIDDEN);
	}
	assert_int_equal(proofrig_stat(SPOKE_STAT_REFUSED_CREDENTIALS), 60);
	assert_true(proofrig.lines >= 10 && proofrig.lines < 30);
	assert_null(strstr(proofrig.line, SECRET));
}

TEST(unproven_peer_sends_short_frames_only)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_put(0, "demo.A", "get", NULL, 60000);
	assert_int_equal(proofrig_ask(0), SPOKE_EFORBIDDEN);
	proofrig_put(0, "demo.A", "get", SECRET, 65536);
	(void)proofrig_ask(0);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig.seen[0].count, 0);
	assert_int_equal(proofrig_stat(SPOKE_STAT_CLOSED_LARGE), 1);
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_put(0, "demo.A", "get", SECRET, 60000);
	assert_int_equal(proofrig_ask(0), 0);
	proofrig_put(0, "demo.A", "get", SECRET, 120000);
	assert_int_equal(proofrig_ask(0), 0);
	assert_int_equal(proofrig.served, 2);
}

TEST(unproven_peer_of_each_wire_has_the_bound)
{
	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_mprpc);
	proofrig_put(0, "demo.A", "get", NULL, 65536);
	(void)proofrig_ask(0);
	assert_true(proofrig.conns[0].ended);
	proofrig_open(0, &spokei_wire_mprpc);
	assert_int_equal(proofrig_show(0, SECRET), 0);
	proofrig_put(0, "demo.A", "get", NULL, 120000);
	assert_int_equal(proofrig_ask(0), 0);
}

TEST(nothing_is_bounded_where_no_proof_is_asked)
{
	proofrig_configure("[service.demo.B]\ntoken = " SECRET "\n");
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_put(0, "demo.A", "get", NULL, 120000);
	assert_int_equal(proofrig_ask(0), 0);
}

TEST(token_of_a_reload_bounds_connections_that_are_open)
{
	static const unsigned char bad[] = "H\005token";

	proofrig_configure("[provider]\n");
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_open(1, &spokei_wire_dubbo);
	assert_int_equal(proofrig_call(0, "demo.A", NULL), 0);
	assert_int_equal(proofrig_reconfigure("[provider]\ntoken = " SECRET "\n"), 0);
	for (unsigned i = 0; i < 3; i++)
		put_hessian2(0, bad, sizeof(bad) - 1);
	(void)proofrig_ask(0);
	assert_true(proofrig.conns[0].ended);
	assert_int_equal(proofrig_call(1, "demo.A", SECRET), 0);
	proofrig_put(1, "demo.A", "get", SECRET, 120000);
	assert_int_equal(proofrig_ask(1), 0);
}

/* The network takes 4 KiB in each direction. */
TEST(unproven_peer_that_does_not_read_is_not_read)
{
	const struct spokei_vnet_link narrow = { .capacity = 4096 };
	struct spoke_list *node;
	const struct spokei_conn *conn;

	proofrig_configure("[provider]\ntoken = " SECRET "\nauth.failures.max = 1000\n");
	spokei_vnet_set_all(proofrig.world.net, &narrow);
	proofrig_open(0, &spokei_wire_dubbo);
	for (unsigned i = 0; i < 400; i++)
		proofrig_put(0, "demo.A", "get", NULL, 100);
	proofrig_flush(0);
	node = proofrig.provider->link->conns.next;
	conn = spoke_container_of(node, struct spokei_conn, node);
	assert_true(conn->paused & SPOKEI_PAUSED_FULL);
	assert_true(spokei_outlet_len(&conn->out) < 1024 + 600);
	assert_true(spokei_buffer_len(&conn->held) <= 4096);
	assert_true(proofrig_stat(SPOKE_STAT_BYTES_READ) < 20000);
	assert_true(spokei_buffer_len(&proofrig.conns[0].out) > 20000);
	for (unsigned i = 0; i < 400; i++) {
		proofrig_flush(0);
		peer_read(&proofrig.conns[0], proofrig_take, &proofrig.seen[0]);
	}
	assert_int_equal(proofrig.seen[0].count, 400);
}

TEST(unproven_peer_gets_no_pushes)
{
	struct spoke_peer peers[2];

	proofrig_provide(SECRET);
	proofrig_open(0, &spokei_wire_dubbo);
	proofrig_put(0, "demo.A", "get", NULL, 1);
	assert_int_equal(proofrig_ask(0), SPOKE_EFORBIDDEN);
	assert_int_equal(spoke_provider_peers(proofrig.provider, peers, 2), 0);
	assert_int_equal(proofrig_call(0, "demo.A", SECRET), 0);
	assert_int_equal(spoke_provider_peers(proofrig.provider, peers, 2), 1);
}

/* --- names */

/* A request of MessagePack-RPC without a name goes to the default service. */
TEST(unproven_caller_is_told_only_names_that_it_sent)
{
	static const char *const methods[] = { "get", "none", "$token" };

	proofrig_provide(SECRET);
	for (unsigned i = 0; i < 3; i++) {
		proofrig_open(i, &spokei_wire_mprpc);
		proofrig_put(i, "", methods[i], "correct-horse-9", 0);
		assert_int_equal(proofrig_ask(i), SPOKE_EREMOTE);
		assert_string_equal(proofrig.seen[i].text,
				    "no or bad credentials for this provider");
	}
	assert_non_null(strstr(proofrig.line, "no or bad credentials for demo.A"));
}

TEST(caller_on_no_list_is_told_only_names_that_it_sent)
{
	static const char *const lists[] = { "[provider]\nallow.callers = uid:1\n",
					     "[service.demo.A]\nallow.callers = uid:1\n" };

	proofrig_configure("[provider]\n");
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(proofrig_reconfigure(lists[i]), 0);
		proofrig_open(i, &spokei_wire_mprpc);
		assert_int_equal(proofrig_call(i, "", NULL), SPOKE_EREMOTE);
		assert_string_equal(proofrig.seen[i].text,
				    "the provider does not let addr:127.0.0.1 call it");
		assert_int_equal(proofrig_call(i, "demo.A", NULL), SPOKE_EREMOTE);
		assert_string_equal(proofrig.seen[i].text,
				    "demo.A does not let addr:127.0.0.1 call it");
	}
}
