/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of leases: the life of one, its terms and uses, names and refusals of the store.
 */
#include "cluster/lease/lease.h"
#include "cluster/lease/script.h"
#include "cluster/lease/settings.h"
#include "tests/support/test.h"

#include <spoke/call.h>

#include <stdlib.h>
#include <string.h>

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

static const struct row moves[] = {
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
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		if (moves[i].state == state && moves[i].event == event)
			return moves[i];
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
	spokei_lease_sent(&life, NOW);
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

/* --- The terms of one lease: those of all, changed by the options of its ask */

static const struct spokei_lease_settings all = {
	.ttl_ns = 10 * SECOND,
	.wait_ns = 5 * SECOND,
	.guard_ns = SECOND,
};

static struct spokei_lease_terms terms_of(const struct spoke_lease_options *options)
{
	char why[SPOKEI_LEASE_WHY_MAX];
	struct spokei_lease_terms terms = { 0 };

	assert_int_equal(spokei_lease_terms(&all, options, &terms, why), SPOKE_OK);
	return terms;
}

TEST(ask_without_options_has_the_terms_of_all)
{
	static const struct spoke_lease_options none;

	for (unsigned i = 0; i < 2; i++) {
		struct spokei_lease_terms terms = terms_of(i ? &none : NULL);

		assert_int_equal(terms.ttl_ns, 10 * SECOND);
		assert_int_equal(terms.wait_ns, 5 * SECOND);
	}
}

TEST(options_of_an_ask_override_the_terms_of_all)
{
	struct spokei_lease_terms terms = terms_of(&(struct spoke_lease_options){
		.wait_ns = SPOKE_LEASE_FOREVER, .ttl_ns = 60 * SECOND + 7 });

	assert_int_equal(terms.wait_ns, SPOKE_LEASE_FOREVER);
	assert_int_equal(terms.ttl_ns, 60 * SECOND);
}

TEST(terms_out_of_range_are_refused)
{
	static const struct {
		struct spoke_lease_options options;
		const char *sentence;
	} rows[] = {
		{ { .ttl_ns = 1 }, "option lease.ttl=1ns: not between 100ms and 24h" },
		{ { .ttl_ns = UINT64_MAX },
		  "option lease.ttl=18446744073709551615ns: not between 100ms and 24h" },
		{ { .ttl_ns = 2 * SECOND },
		  "the lease's guard: not less than half of the time to live, which is 2s" },
	};
	char why[SPOKEI_LEASE_WHY_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spokei_lease_terms terms = { .ttl_ns = 77 };

		assert_int_equal(spokei_lease_terms(&all, &rows[i].options, &terms, why),
				 SPOKE_ERANGE);
		assert_string_equal(why, rows[i].sentence);
		assert_int_equal(terms.ttl_ns, 77);
	}
}

/* --- The names of channels and fencing counters, and the scripts: their texts, and their answers
 */

static void assert_named(enum spokei_lease_name which, const char *name, const char *expected)
{
	struct spoke_span span = { name, strlen(name) };
	size_t room = span.len + SPOKEI_LEASE_NAME_MORE;
	char *to = malloc(room);
	size_t len;

	assert_non_null(to);
	len = spokei_lease_name(to, which, span);
	assert_in_range(len, 1, room);
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(to, expected, len);
	free(to);
}

TEST(plain_name_is_put_in_braces)
{
	assert_named(SPOKEI_LEASE_CHANNEL, "job", "redisson_lock__channel:{job}");
	assert_named(SPOKEI_LEASE_TOKEN, "job", "redisson_lock_token:{job}");
	assert_named(SPOKEI_LEASE_TOKEN, "two words", "redisson_lock_token:{two words}");
	assert_named(SPOKEI_LEASE_TOKEN, "a}b", "redisson_lock_token:{a}b}");
	assert_named(SPOKEI_LEASE_CHANNEL, "", "redisson_lock__channel:{}");
}

TEST(name_with_an_open_brace_stays_as_it_is)
{
	assert_named(SPOKEI_LEASE_CHANNEL, "a:{tag}", "redisson_lock__channel:a:{tag}");
	assert_named(SPOKEI_LEASE_TOKEN, "{", "redisson_lock_token:{");
	assert_named(SPOKEI_LEASE_TOKEN, "x{", "redisson_lock_token:x{");
}

TEST(bytes_of_a_name_are_copied_unchanged)
{
	static const char name[] = { 'a', '\0', (char)0xff, '\n' };
	static const char expected[] = "redisson_lock_token:{a\0\xff\n}";
	char to[sizeof(name) + SPOKEI_LEASE_NAME_MORE];

	assert_int_equal(spokei_lease_name(to, SPOKEI_LEASE_TOKEN,
					   (struct spoke_span){ name, sizeof(name) }),
			 sizeof(expected) - 1);
	assert_memory_equal(to, expected, sizeof(expected) - 1);
}

TEST(each_script_has_a_text_of_its_own)
{
	for (int i = SPOKEI_SCRIPT_ACQUIRE; i < SPOKEI_SCRIPTS; i++) {
		const char *text = spokei_script_text((enum spokei_script)i);

		assert_in_range(strlen(text), 1, 1024);
		for (int j = SPOKEI_SCRIPT_ACQUIRE; j < i; j++) {
			assert_string_not_equal(text, spokei_script_text((enum spokei_script)j));
			assert_string_not_equal(spokei_script_name((enum spokei_script)i),
						spokei_script_name((enum spokei_script)j));
		}
	}
}

TEST(answer_of_a_script_has_its_form)
{
	static const struct {
		enum spokei_script script;
		const char *reply;
		bool answers;
	} rows[] = {
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:0\r\n:7\r\n", true },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:0\r\n$1\r\n7\r\n", true },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:1\r\n:-1\r\n", true },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:0\r\n:-1\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:2\r\n:7\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:-1\r\n:7\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, "*2\r\n:0\r\n$1\r\nx\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, "*1\r\n:0\r\n", false },
		{ SPOKEI_SCRIPT_ACQUIRE, ":0\r\n", false },
		{ SPOKEI_SCRIPT_RENEW, "*2\r\n:0\r\n:1\r\n", true },
		{ SPOKEI_SCRIPT_RENEW, "*1\r\n:1\r\n", false },
		{ SPOKEI_SCRIPT_RENEW, "*2\r\n:1\r\n$1\r\n1\r\n", false },
		{ SPOKEI_SCRIPT_RENEW, "$1\r\n1\r\n", false },
		{ SPOKEI_SCRIPT_RELEASE, ":0\r\n", true },
		{ SPOKEI_SCRIPT_RELEASE, "+OK\r\n", false },
		{ SPOKEI_SCRIPT_NONE, "+OK\r\n", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const unsigned char *at = (const unsigned char *)rows[i].reply;
		struct spokei_resp_cursor reply = { at, at + strlen(rows[i].reply) };

		assert_int_equal(spokei_script_answers(rows[i].script, 2, reply), rows[i].answers);
	}
}

/* --- The consequence of each error reply, and the text that users see */

#define OLD "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): "

static struct spoke_span span(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

TEST(error_codes_have_their_consequences)
{
	static const struct {
		const char *text;
		enum spokei_refusal refusal;
	} rows[] = {
		{ "BUSY Redis is busy running a script.", SPOKEI_REFUSAL_AGAIN },
		{ "LOADING Redis is loading the dataset in memory", SPOKEI_REFUSAL_AGAIN },
		{ "OOM command not allowed when used memory > 'maxmemory'.", SPOKEI_REFUSAL_AGAIN },
		{ "MISCONF Redis is configured to save RDB snapshots", SPOKEI_REFUSAL_AGAIN },
		{ "MASTERDOWN Link with MASTER is down", SPOKEI_REFUSAL_AGAIN },
		{ "TRYAGAIN Multiple keys request during rehashing", SPOKEI_REFUSAL_AGAIN },
		{ "CLUSTERDOWN The cluster is down", SPOKEI_REFUSAL_AGAIN },
		{ "NOREPLICAS Not enough good replicas to write.", SPOKEI_REFUSAL_AGAIN },
		{ "NOSCRIPT No matching script.", SPOKEI_REFUSAL_RELOAD },
		{ "READONLY You can't write against a read only replica.",
		  SPOKEI_REFUSAL_ELSEWHERE },
		{ "READONLY", SPOKEI_REFUSAL_ELSEWHERE },
		{ "WRONGTYPE Operation against a key", SPOKEI_REFUSAL_REFUSED },
		{ "NOPERM this user has no permissions", SPOKEI_REFUSAL_REFUSED },
		{ "NOAUTH Authentication required.", SPOKEI_REFUSAL_REFUSED },
		{ "MOVED 3999 127.0.0.1:6381", SPOKEI_REFUSAL_REFUSED },
		{ "ERR unknown command", SPOKEI_REFUSAL_REFUSED },
		{ "BUSYGROUP Consumer Group name already exists", SPOKEI_REFUSAL_REFUSED },
		{ "BUS", SPOKEI_REFUSAL_REFUSED },
		{ "", SPOKEI_REFUSAL_REFUSED },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(spokei_refusal_of(span(rows[i].text)), rows[i].refusal);
}

TEST(error_inside_of_a_script_error_counts)
{
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:3: @user_script: 3: -READONLY "
						    "You can't")),
			 SPOKEI_REFUSAL_ELSEWHERE);
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:1: OOM command not allowed")),
			 SPOKEI_REFUSAL_AGAIN);
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:1: WRONGTYPE Operation")),
			 SPOKEI_REFUSAL_REFUSED);
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:1")), SPOKEI_REFUSAL_REFUSED);
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:1: ")), SPOKEI_REFUSAL_REFUSED);
}

static void assert_shown(const char *text, const char *expected)
{
	struct spoke_span shown = spokei_refusal_text(span(text));

	assert_int_equal(shown.len, strlen(expected));
	assert_memory_equal(shown.data, expected, shown.len);
}

TEST(shown_text_is_that_of_the_failed_command)
{
	assert_shown("WRONGTYPE Operation", "WRONGTYPE Operation");
	assert_shown(OLD "@user_script:1: -WRONGTYPE Operation", "WRONGTYPE Operation");
	assert_shown(OLD "@user_script:1: ", OLD "@user_script:1: ");
	assert_shown("MOVED 3999 127.0.0.1:6381",
		     "the store is a node of a Redis cluster, which is not supported");
	assert_shown("ASK 3999 127.0.0.1:6381",
		     "the store is a node of a Redis cluster, which is not supported");
}
