/* SPDX-License-Identifier: Apache-2.0 */
/* The check of idle connections, by itself: intervals, probes, and stalls of this process. */
#include "tests/support/test.h"
#include "transport/conn/conn.h"

enum {
	I = 1000 /* the heartbeat interval */
};

static enum spokei_idle_verdict judge_at(struct spokei_idle *idle, uint64_t now_ns)
{
	struct spokei_idle_moment moment = { .now_ns = now_ns, .interval_ns = I };

	return spokei_idle_check(idle, &moment);
}

static void ask_at(struct spokei_idle *idle, uint64_t now_ns)
{
	spokei_idle_asked(idle, now_ns);
	spokei_idle_handed(idle, now_ns);
}

TEST(silent_peer_is_probed_suspected_dead_after_four_intervals)
{
	struct spokei_idle idle;

	spokei_idle_start(&idle, 10);
	assert_int_equal(spokei_idle_due(&idle, I), 10 + I);
	assert_int_equal(judge_at(&idle, 9 + I), SPOKEI_IDLE_KEEP);
	assert_int_equal(judge_at(&idle, 10 + I), SPOKEI_IDLE_PROBE);
	ask_at(&idle, 10 + I);
	assert_int_equal(judge_at(&idle, 9 + 2 * I), SPOKEI_IDLE_KEEP);
	assert_int_equal(judge_at(&idle, 10 + 2 * I), SPOKEI_IDLE_SUSPECT);
	assert_int_equal(idle.misses, 1);
	ask_at(&idle, 10 + 2 * I);
	assert_int_equal(judge_at(&idle, 10 + 3 * I), SPOKEI_IDLE_SUSPECT);
	assert_int_equal(idle.misses, 2);
	ask_at(&idle, 10 + 3 * I);
	assert_int_equal(judge_at(&idle, 9 + 4 * I), SPOKEI_IDLE_KEEP);
	assert_int_equal(judge_at(&idle, 10 + 4 * I), SPOKEI_IDLE_DEAD);
	assert_int_equal(idle.misses, 3);
}

TEST(any_byte_restarts_the_interval)
{
	struct spokei_idle idle;

	spokei_idle_start(&idle, 0);
	assert_false(spokei_idle_heard(&idle, 500));
	assert_int_equal(judge_at(&idle, I), SPOKEI_IDLE_KEEP);
	assert_int_equal(judge_at(&idle, 500 + I), SPOKEI_IDLE_PROBE);
	ask_at(&idle, 500 + I);
	assert_int_equal(judge_at(&idle, 500 + 2 * I), SPOKEI_IDLE_SUSPECT);
	assert_true(spokei_idle_heard(&idle, 600 + 2 * I));
	assert_int_equal(idle.misses, 0);
	assert_int_equal(judge_at(&idle, 600 + 3 * I), SPOKEI_IDLE_PROBE);
}

TEST(an_interval_counts_from_when_the_system_took_the_heartbeat)
{
	struct spokei_idle idle;

	spokei_idle_start(&idle, 0);
	spokei_idle_asked(&idle, I);
	spokei_idle_handed(&idle, I + 300);
	assert_int_equal(judge_at(&idle, 2 * I + 299), SPOKEI_IDLE_KEEP);
	assert_int_equal(judge_at(&idle, 2 * I + 300), SPOKEI_IDLE_SUSPECT);
	/* No probe is waiting any more, so another report of one changes nothing. */
	spokei_idle_handed(&idle, 2 * I + 800);
	assert_int_equal(spokei_idle_due(&idle, I), 3 * I + 300);
}

TEST(unwritable_heartbeat_counts_while_no_byte_moves)
{
	struct spokei_idle idle;

	spokei_idle_start(&idle, 0);
	spokei_idle_asked(&idle, I);
	spokei_idle_moved(&idle, I + 400);
	assert_int_equal(judge_at(&idle, 2 * I), SPOKEI_IDLE_KEEP);
	assert_int_equal(judge_at(&idle, 2 * I + 400), SPOKEI_IDLE_SUSPECT);
	assert_int_equal(judge_at(&idle, 3 * I + 400), SPOKEI_IDLE_SUSPECT);
	assert_int_equal(judge_at(&idle, 4 * I + 400), SPOKEI_IDLE_DEAD);
	/* Once the probe is taken, bytes after it do not count. */
	spokei_idle_start(&idle, 0);
	ask_at(&idle, I);
	spokei_idle_moved(&idle, I + 400);
	assert_int_equal(judge_at(&idle, 2 * I), SPOKEI_IDLE_SUSPECT);
}

TEST(delayed_side_checks_no_peer)
{
	struct spokei_idle_moment moment = { .now_ns = 9 * I, .interval_ns = I, .late = true };
	struct spokei_idle idle;

	spokei_idle_start(&idle, 0);
	ask_at(&idle, I);
	assert_false(spokei_idle_ripe(&idle, &moment));
	assert_int_equal(spokei_idle_check(&idle, &moment), SPOKEI_IDLE_KEEP);
	assert_int_equal(idle.misses, 0);
	/* The peer gets another whole interval. */
	assert_int_equal(judge_at(&idle, 10 * I - 1), SPOKEI_IDLE_KEEP);
	assert_int_equal(judge_at(&idle, 10 * I), SPOKEI_IDLE_SUSPECT);
}

TEST(connection_is_read_before_idle_check)
{
	struct spokei_idle_moment moment = { .now_ns = I - 1, .interval_ns = I };
	struct spokei_idle idle;

	spokei_idle_start(&idle, 0);
	assert_false(spokei_idle_ripe(&idle, &moment));
	moment.now_ns = I;
	assert_true(spokei_idle_ripe(&idle, &moment));
	ask_at(&idle, I);
	assert_false(spokei_idle_ripe(&idle, &moment));
	moment.now_ns = 2 * I;
	assert_true(spokei_idle_ripe(&idle, &moment));
}

TEST(disabled_check_never_times_out)
{
	struct spokei_idle_moment moment = { .now_ns = UINT64_MAX, .interval_ns = SPOKEI_IDLE_OFF };
	struct spokei_idle idle;

	spokei_idle_start(&idle, 5);
	assert_int_equal(spokei_idle_due(&idle, SPOKEI_IDLE_OFF), UINT64_MAX);
	ask_at(&idle, 5);
	moment.now_ns = UINT64_MAX - 1;
	assert_int_equal(spokei_idle_check(&idle, &moment), SPOKEI_IDLE_KEEP);
	/* A time that would overflow is never reached. */
	assert_int_equal(spokei_idle_due(&idle, UINT64_MAX - 2), UINT64_MAX);
}
