/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one lease: every event in every state, and the arithmetic of its times. */
#include "cluster/lease/lease.h"
#include "tests/support/test.h"

#include <string.h>

#define MS UINT64_C(1000000)
#define TTL_MS 30000u
#define TTL (TTL_MS * MS)
#define NOW (1000 * TTL)
#define SENT (NOW - 10 * MS)
#define VALID (SENT + TTL - TTL / 100 - 2 * MS - TTL / 10)

enum {
	NONE = SPOKEI_LEASE_NONE,
	WAITING = SPOKEI_LEASE_WAITING,
	ASKING = SPOKEI_LEASE_ASKING,
	RETURNING = SPOKEI_LEASE_RETURNING,
	HELD = SPOKEI_LEASE_HELD,
	RELEASING = SPOKEI_LEASE_RELEASING,
	OVER = SPOKEI_LEASE_OVER,
};

/* Returns a lease in one of the states, asked for with a waiting time. */
static struct spokei_lease_life lease_in(int state)
{
	struct spokei_lease_life life = {
		.end_ns = NOW + TTL / 2, .sent_ns = SENT, .ttl_ms = TTL_MS, .state = (uint8_t)state
	};

	if (state == HELD)
		life.fence = 7;
	return life;
}

static struct spokei_lease_verdict step(struct spokei_lease_life *life, int event)
{
	const struct spokei_lease_news news = {
		.event = (enum spokei_lease_event)event,
		.now_ns = NOW,
		.sent_ns = SENT,
		.fence = 8,
	};

	return spokei_lease_step(life, 0, &news);
}

/* What is expected of an event in a state. A row that is missing changes nothing. */
struct row {
	int state;
	int event;
	int next;
	enum spokei_lease_tell tell;
	int error; /* of the ask; or the reason of the loss */
	bool release;
};

#define FAILED(error) SPOKEI_LEASE_TELL_FAILED, error
#define LOST(why) SPOKEI_LEASE_TELL_LOST, why
#define QUIET SPOKEI_LEASE_TELL_NOTHING, 0

static const struct row rows[] = {
	{ ASKING, SPOKEI_LEASE_GRANT, HELD, SPOKEI_LEASE_TELL_HELD, 0, false },
	{ ASKING, SPOKEI_LEASE_REFUSE, WAITING, QUIET, false },
	{ ASKING, SPOKEI_LEASE_DENY, OVER, FAILED(SPOKE_ESTORE), false },
	{ RETURNING, SPOKEI_LEASE_DENY, OVER, FAILED(SPOKE_ESTORE), false },
	{ RELEASING, SPOKEI_LEASE_DENY, OVER, QUIET, false },
	{ ASKING, SPOKEI_LEASE_MISS, WAITING, QUIET, false },
	{ HELD, SPOKEI_LEASE_DISOWN, OVER, LOST(SPOKE_LEASE_TAKEN), false },
	{ WAITING, SPOKEI_LEASE_RELEASE, OVER, FAILED(SPOKE_ECANCELED), false },
	{ ASKING, SPOKEI_LEASE_RELEASE, RELEASING, FAILED(SPOKE_ECANCELED), true },
	{ RETURNING, SPOKEI_LEASE_RELEASE, RELEASING, FAILED(SPOKE_ECANCELED), true },
	{ HELD, SPOKEI_LEASE_RELEASE, RELEASING, QUIET, true },
	{ RETURNING, SPOKEI_LEASE_RELEASED, WAITING, QUIET, false },
	{ RELEASING, SPOKEI_LEASE_RELEASED, OVER, QUIET, false },
	{ WAITING, SPOKEI_LEASE_CLOSE, OVER, FAILED(SPOKE_ECLOSED), false },
	{ ASKING, SPOKEI_LEASE_CLOSE, RELEASING, FAILED(SPOKE_ECLOSED), true },
	{ RETURNING, SPOKEI_LEASE_CLOSE, RELEASING, FAILED(SPOKE_ECLOSED), true },
	{ HELD, SPOKEI_LEASE_CLOSE, RELEASING, LOST(SPOKE_LEASE_CLOSED), true },
};

static struct row expected(int state, int event)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].state == state && rows[i].event == event)
			return rows[i];
	}
	return (struct row){ state, event, state, QUIET, false };
}

TEST(each_event_in_each_state_has_its_effect)
{
	for (int from = WAITING; from <= OVER; from++) {
		for (int event = 0; event < SPOKEI_LEASE_EVENTS; event++) {
			struct spokei_lease_life life = lease_in(from);
			struct row row = expected(from, event);
			struct spokei_lease_verdict verdict = step(&life, event);

			print_message("state %d, event %d\n", from, event);
			assert_int_equal(life.state, row.next);
			assert_int_equal(verdict.tell, row.tell);
			assert_int_equal(row.tell == SPOKEI_LEASE_TELL_LOST ? (int)verdict.why
									    : verdict.error,
					 row.error);
			assert_int_equal(verdict.release, row.release);
		}
	}
}

/* The same when the time of the lease is over: only PASS and CONFIRM look at it. */
TEST(end_of_time_ends_each_state)
{
	static const struct row late[] = {
		{ WAITING, 0, OVER, FAILED(SPOKE_ETIMEOUT), false },
		{ ASKING, 0, RELEASING, FAILED(SPOKE_ETIMEOUT), true },
		{ RETURNING, 0, RELEASING, FAILED(SPOKE_ETIMEOUT), true },
		{ HELD, 0, RELEASING, LOST(SPOKE_LEASE_EXPIRED), true },
		{ RELEASING, 0, OVER, QUIET, false },
		{ OVER, 0, OVER, QUIET, false },
	};

	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		struct spokei_lease_life life = lease_in(late[i].state);
		struct spokei_lease_verdict verdict;

		life.end_ns = NOW;
		verdict = step(&life, SPOKEI_LEASE_PASS);
		assert_int_equal(life.state, late[i].next);
		assert_int_equal(verdict.tell, late[i].tell);
		assert_int_equal(verdict.tell == SPOKEI_LEASE_TELL_LOST ? (int)verdict.why
									: verdict.error,
				 late[i].error);
		assert_int_equal(verdict.release, late[i].release);
	}
}

TEST(grant_counts_from_when_it_was_sent)
{
	struct spokei_lease_life life = lease_in(ASKING);

	assert_int_equal(step(&life, SPOKEI_LEASE_GRANT).tell, SPOKEI_LEASE_TELL_HELD);
	assert_int_equal(life.end_ns, VALID);
	assert_int_equal(life.fence, 8);
	assert_int_equal(spokei_lease_left_at(&life, NOW), VALID - NOW);
	assert_int_equal(spokei_lease_left_at(&life, VALID), 0);
}

TEST(renewal_counts_from_when_it_was_sent)
{
	struct spokei_lease_life life = lease_in(HELD);

	(void)step(&life, SPOKEI_LEASE_CONFIRM);
	assert_int_equal(life.end_ns, VALID);
	assert_int_equal(life.fence, 7);
}

TEST(lease_that_is_over_is_not_prolonged)
{
	struct spokei_lease_life life = lease_in(HELD);
	struct spokei_lease_verdict verdict;

	life.end_ns = NOW;
	verdict = step(&life, SPOKEI_LEASE_CONFIRM);
	assert_int_equal(verdict.tell, SPOKEI_LEASE_TELL_LOST);
	assert_int_equal(verdict.why, SPOKE_LEASE_EXPIRED);
	assert_int_equal(spokei_lease_left_at(&life, NOW), 0);
}

static struct spokei_lease_verdict late_grant(struct spokei_lease_life *life)
{
	const struct spokei_lease_news news = {
		.event = SPOKEI_LEASE_GRANT,
		.now_ns = VALID,
		.sent_ns = SENT,
		.fence = 8,
	};

	return spokei_lease_step(life, 0, &news);
}

TEST(grant_that_comes_too_late_is_returned)
{
	struct spokei_lease_life life = lease_in(ASKING);
	struct spokei_lease_verdict verdict = late_grant(&life);

	assert_int_equal(life.state, RETURNING);
	assert_int_equal(verdict.tell, SPOKEI_LEASE_TELL_NOTHING);
	assert_true(verdict.release);
}

TEST(ask_that_does_not_wait_ends_with_its_first_answer)
{
	static const struct {
		int event;
		int error;
		int next;
	} cases[] = {
		{ SPOKEI_LEASE_REFUSE, SPOKE_EBUSY, OVER },
		{ SPOKEI_LEASE_DENY, SPOKE_ESTORE, OVER },
		{ SPOKEI_LEASE_UNREACHABLE, SPOKE_EUNAVAILABLE, RELEASING },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spokei_lease_life life = lease_in(ASKING);

		life.once = true;
		assert_int_equal(step(&life, cases[i].event).error, cases[i].error);
		assert_int_equal(life.state, cases[i].next);
	}
}

TEST(ask_that_does_not_wait_returns_a_late_grant)
{
	struct spokei_lease_life late = lease_in(ASKING);
	struct spokei_lease_verdict verdict;

	late.once = true;
	verdict = late_grant(&late);
	assert_int_equal(verdict.error, SPOKE_EUNAVAILABLE);
	assert_true(verdict.release);
	assert_int_equal(late.state, RELEASING);
}

TEST(doubtful_ask_is_released_when_it_ends)
{
	struct spokei_lease_life life = lease_in(ASKING);

	(void)step(&life, SPOKEI_LEASE_MISS);
	assert_int_equal(life.state, WAITING);
	assert_true(step(&life, SPOKEI_LEASE_RELEASE).release);
	assert_int_equal(life.state, RELEASING);
	assert_int_equal(life.end_ns, SENT + TTL + TTL / 12);
}

TEST(refusal_ends_the_doubt)
{
	struct spokei_lease_life life = lease_in(ASKING);

	(void)step(&life, SPOKEI_LEASE_MISS);
	spokei_lease_asks(&life, NOW);
	(void)step(&life, SPOKEI_LEASE_REFUSE);
	assert_false(step(&life, SPOKEI_LEASE_RELEASE).release);
	assert_int_equal(life.state, OVER);
}

TEST(denial_leaves_the_doubt_of_an_earlier_try)
{
	struct spokei_lease_life life = lease_in(ASKING);
	struct spokei_lease_verdict verdict;

	life.doubt = true;
	verdict = step(&life, SPOKEI_LEASE_DENY);
	assert_int_equal(verdict.error, SPOKE_ESTORE);
	assert_true(verdict.release);
}

TEST(validity_leaves_out_guard_drift_and_rounding)
{
	assert_int_equal(spokei_lease_valid_until(5, TTL, 0),
			 5 + TTL - TTL / 10 - TTL / 100 - 2 * MS);
	assert_int_equal(spokei_lease_valid_until(5, TTL, MS), 5 + TTL - MS - TTL / 100 - 2 * MS);
	assert_int_equal(spokei_lease_valid_until(5, 100 * MS, 99 * MS), 5);
}

TEST(renewals_due_close_together_are_due_at_one_time)
{
	uint64_t grid_ns = TTL / 30;

	for (uint64_t sent_ns = NOW; sent_ns < NOW + 3 * grid_ns; sent_ns += grid_ns / 7) {
		uint64_t due_ns = spokei_lease_renewal_due(sent_ns, TTL);

		assert_int_equal(due_ns % grid_ns, 0);
		assert_true(due_ns <= sent_ns + TTL / 3);
		assert_true(due_ns > sent_ns + TTL / 3 - grid_ns);
	}
}

/* --- the clock */

struct clocks {
	uint64_t now_ns;
	uint64_t boot_ns;
};

static uint64_t read_now(void *ctx)
{
	return ((struct clocks *)ctx)->now_ns;
}

static uint64_t read_boot(void *ctx)
{
	return ((struct clocks *)ctx)->boot_ns;
}

TEST(clock_counts_sleep_of_the_machine)
{
	struct clocks clocks = { 100, 9000 };
	struct spoke_env env = { .ctx = &clocks, .now = read_now, .boot_now = read_boot };
	struct spokei_lease_clock clock;

	spokei_lease_clock_init(&clock, &env);
	assert_int_equal(spokei_lease_clock_now(&clock), 100);
	clocks = (struct clocks){ 150, 9050 };
	assert_int_equal(spokei_lease_clock_now(&clock), 150);
	clocks = (struct clocks){ 160, 19060 };
	assert_int_equal(spokei_lease_clock_now(&clock), 10160);
	assert_int_equal(spokei_lease_clock_at(&clock, 20000), 20000);
}

TEST(clock_works_when_boot_time_is_behind)
{
	struct clocks clocks = { 5000, 40 };
	struct spoke_env env = { .ctx = &clocks, .now = read_now, .boot_now = read_boot };
	struct spokei_lease_clock clock;

	spokei_lease_clock_init(&clock, &env);
	clocks = (struct clocks){ 6000, 1040 };
	assert_int_equal(spokei_lease_clock_now(&clock), 6000);
}
