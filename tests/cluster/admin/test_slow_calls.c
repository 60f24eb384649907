/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of slow calls and requests. */
#include "core/engine/slow.h"
#include "tests/cluster/admin/statusrig.h"
#include "tests/support/test.h"

#include <string.h>

#define rig clusterrig

/* Makes a call that takes so long, and two ms for the network. */
static void call_for(struct spoke_method *method, uint64_t ns)
{
	spokei_world_hold(&rig.providers[0].process, ns);
	clusterrig_end(clusterrig_call(method));
}

static struct spoke_method *begin(const char *query)
{
	clusterrig_provide(1);
	clusterrig_consume(query, NULL);
	return clusterrig_method("echo", NULL);
}

FIXTURE(statusrig_set_up, statusrig_tear_down);

TEST(slow_calls_are_listed_with_their_peer_and_times)
{
	struct spoke_method *echo = begin("cluster=failfast&slow.after=50ms&timeout=10s");
	struct jsonread status;

	call_for(echo, 20 * MS);
	assert_null(rig.engine->slow);
	call_for(echo, 60 * MS);
	call_for(echo, 200 * MS);
	call_for(echo, 100 * MS);
	status = statusrig_look();
	EXPECT(status, "slow.count", 3);
	assert_int_equal(jsonread_count(jsonread_get(status, "slow.last")), 3);
	EXPECT(status, "slow.last[0].number", 3);
	EXPECT(status, "slow.last[2].number", 1);
	EXPECT_TEXT(status, "slow.last[0].side", "calls");
	EXPECT_TEXT(status, "slow.last[0].service", "demo.Echo");
	EXPECT_TEXT(status, "slow.last[0].method", "echo");
	EXPECT_TEXT(status, "slow.last[0].peer", "127.0.0.1:20880");
	EXPECT_TEXT(status, "slow.last[0].error", "");
	assert_true(jsonread_u64(status, "slow.last[0].took_ns") >= 100 * MS);
	assert_true(jsonread_u64(status, "slow.last[0].took_ns") < 150 * MS);
	EXPECT(status, "slow.slowest[0].number", 2);
	EXPECT(status, "slow.slowest[1].number", 3);
	EXPECT(status, "slow.slowest[2].number", 1);
}

TEST(slow_call_that_fails_has_its_error)
{
	struct spoke_method *echo = begin("cluster=failfast&timeout=2s");
	struct jsonread status;

	rig.providers[0].manner = RIG_SILENT;
	clusterrig_end(clusterrig_call(echo));
	status = statusrig_look();
	EXPECT(status, "slow.count", 1);
	EXPECT_TEXT(status, "slow.last[0].error", "ETIMEOUT");
	assert_true(jsonread_u64(status, "slow.last[0].took_ns") >= 1999 * MS);
}

TEST(request_of_a_slow_handler_is_listed_at_its_provider)
{
	struct spoke_method *echo = begin("cluster=failfast&timeout=10s&slow.after=0");
	struct jsonread status;

	rig.providers[0].manner = RIG_SLOW;
	rig.providers[0].least_ns = 1500 * MS;
	clusterrig_end(clusterrig_call(echo));
	assert_null(rig.engine->slow);
	status = statusrig_look_at(rig.providers[0].engine);
	EXPECT(status, "slow.count", 1);
	EXPECT_TEXT(status, "slow.last[0].side", "requests");
	EXPECT_TEXT(status, "slow.last[0].method", "*");
	EXPECT(status, "slow.last[0].queued_ns", 0);
	assert_true(jsonread_u64(status, "slow.last[0].took_ns") >= 1500 * MS);
	assert_non_null(strstr(jsonread_text(status, "slow.last[0].peer"), "127.0.0.1:"));
}

TEST(a_method_has_a_threshold_of_its_own)
{
	const struct spoke_method_options patient = { .slow_after_ns = 5 * SECOND };
	const struct spoke_method_options off = { .slow_after_ns = SPOKE_OFF };

	(void)begin("cluster=failfast&timeout=10s&other.slow.after=100ms");
	call_for(clusterrig_method("patient", &patient), 2 * SECOND);
	call_for(clusterrig_method("off", &off), 2 * SECOND);
	assert_null(rig.engine->slow);
	call_for(clusterrig_method("other", NULL), 150 * MS);
	assert_int_equal(rig.engine->slow->count, 1);
}

TEST(lists_are_bounded_and_keep_the_slowest)
{
	struct spoke_method *echo = begin("cluster=failfast&slow.after=1ms&timeout=10s");
	const struct spokei_slow *slow;

	for (unsigned i = 0; i < 3 * SPOKEI_SLOW_ROWS; i++)
		call_for(echo, (1 + i * 37 % (3 * SPOKEI_SLOW_ROWS)) * 10 * MS);
	slow = rig.engine->slow;
	assert_int_equal(slow->count, 3 * SPOKEI_SLOW_ROWS);
	assert_int_equal(slow->slowest_count, SPOKEI_SLOW_ROWS);
	for (unsigned i = 1; i < SPOKEI_SLOW_ROWS; i++)
		assert_true(slow->slowest[i - 1].took_ns + slow->slowest[i - 1].queued_ns >=
			    slow->slowest[i].took_ns + slow->slowest[i].queued_ns);
	assert_true(slow->slowest[SPOKEI_SLOW_ROWS - 1].took_ns +
			    slow->slowest[SPOKEI_SLOW_ROWS - 1].queued_ns >
		    2 * SPOKEI_SLOW_ROWS * 10 * MS);
	assert_int_equal(jsonread_count(jsonread_get(statusrig_look(), "slow.last")),
			 SPOKEI_SLOW_ROWS);
}

TEST(name_of_a_peer_is_cut_at_its_beginning)
{
	const struct spokei_figures *figures;
	struct spokei_slow_row row = { 0 };
	char name[SPOKEI_SLOW_PEER + 8];

	(void)begin("cluster=failfast");
	figures = spokei_figures_next(rig.engine, NULL);
	row.figures = figures;
	memset(name, 'a', sizeof(name));
	memcpy(name + sizeof(name) - 7, ":20880", 7);
	spokei_slow_note(&row, name);
	assert_string_equal(rig.engine->slow->last[1].peer, name + 8);
}
